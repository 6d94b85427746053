"""Shuffles of a cluster: records arrive in the order of the input, and answers return to them."""

import operator

import numpy as np
import pytest

from shoal.core.errors import InputError
from shoal.engines.cluster import (
    ROW,
    TARGET,
    PartState,
    Piece,
    SharedArguments,
    as_arrays,
    as_columns,
    assign_records,
    collect_part,
    column_types,
    gather_records,
    label_part,
    look,
    merge,
)
from shoal.engines.records import Regrouping

SHAPES = {"block": ("int32", 1), "X": ("float64", 3), "unit": ("uint64", 1)}


def deal(part, arrays, own, targets):
    return arrays["block"] % targets, arrays


def gather(arrays, state, factor):
    return {"sum": arrays["X"].sum(axis=1) * factor, "place": np.arange(len(arrays["X"]))}, len(arrays["X"])


def test_arrays_are_moved_as_columns_of_their_types():
    arrays = {
        "block": np.array([1, 2], dtype=np.int64),
        "X": np.array([[1.0, np.nan, -0.0], [2.0, 1e300, 5e-324]]),
        "unit": np.array([2**64 - 1, 0], dtype=np.uint64),
    }
    columns = as_columns(arrays, SHAPES)
    assert {name: str(column.dtype) for name, column in columns.items()} == column_types(SHAPES)
    back = as_arrays(columns, SHAPES)
    for name, array in arrays.items():
        np.testing.assert_array_equal(back[name], array.reshape(2, -1))


@pytest.mark.parametrize("seed", range(5))
def test_in_any_order_the_records_of_a_target_are_in_that_of_the_input(seed):
    rng = np.random.default_rng(seed)
    sizes = [40, 0, 7, 23]
    parts = [
        {"block": rng.integers(0, 9, n), "X": rng.normal(size=(n, 3)), "unit": np.arange(n, dtype=np.uint64)}
        for n in sizes
    ]
    answered = {"sum": ("float64", 1), "place": ("int64", 1)}
    how = Regrouping(deal, gather, 3, SHAPES, answered, own=[None] * 4, dealing=(3,), gathering=(2.0,))
    seen = PartState(0, 0, b"")
    sent = [
        assign_records(part, Piece(arrays, (None, seen)), (seen, None), SharedArguments(how, "")).arrays
        for part, arrays in enumerate(parts)
    ]
    moved = {name: np.concatenate([one[name] for one in sent]) for name in sent[0]}
    mixed = rng.permutation(sum(sizes))
    back = []
    for target in range(3):
        rows = mixed[moved[TARGET][mixed] == target]
        answers, known = gather_records(
            target, {name: column[rows] for name, column in moved.items()}, None, SharedArguments(how)
        )
        assert known == len(rows)
        # Row by row: parts in order, with their records in order.
        places = np.lexsort((answers["place_0"],))
        origin = list(zip(answers[TARGET][places], answers[ROW][places], strict=True))
        assert origin == sorted(origin)
        back.append(answers)
    returned = {name: np.concatenate([one[name] for one in back]) for name in back[0]}
    for part, arrays in enumerate(parts):
        mine = rng.permutation(np.flatnonzero(returned[TARGET] == part))
        collected = collect_part({name: column[mine] for name, column in returned.items()}, answered)
        np.testing.assert_array_equal(collected["sum"], 2 * arrays["X"].sum(axis=1, keepdims=True))


@pytest.mark.parametrize("rows", [[0, 1], [0, 1, 1], [0, 2, 3, 4]])
def test_lost_or_duplicated_records_are_detected(rows):
    def label(rows):
        count = len(rows)
        answers = {TARGET: np.zeros(count, int), "group": np.arange(count), "size": np.ones(count)}
        state = PartState(5, 3, b"")  # three of five records are released
        return label_part(7, {ROW: np.array(rows), **answers}, (state, 10), SharedArguments(np.array([4])))

    with pytest.raises(RuntimeError, match="lost or duplicated records of partition 7"):
        label(rows)
    labels = label([0, 2, 4])
    assert labels["record"].to_pylist() == [11, 13, 15]
    assert labels["group"].to_pylist() == [4, 5, 6]


def test_a_recomputed_part_with_other_records_is_refused():
    piece = Piece({"X": np.zeros((3, 1))}, (None, PartState(3, 3, b"new")))
    with pytest.raises(InputError, match="partition 2 has changed"):
        look(2, piece, (PartState(3, 3, b"old"), None), SharedArguments(len, (), "partition {part} has changed"))


def test_the_first_of_several_refusals_is_raised():
    assert merge([1, 2, 3], operator.add) == 6
    first, second = InputError("a"), InputError("b")
    assert merge([1, first, 2, second], operator.add) is first
