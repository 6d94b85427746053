"""Sizes, centroids, SSE, information loss, standardising, aggregates and verification, against hand-worked cases."""

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from shoal.core.errors import VerificationError
from shoal.core.measures import canonical_labels, centroids, information_loss, released_loss, sse, sst, standardise
from shoal.masking.aggregate import group_values
from shoal.masking.verification import identical_records, verify

X = np.array([[0.0, 1.0], [2.0, 1.0], [10.0, 4.0], [13.0, 7.0], [16.0, 1.0]])
LABELS = np.array([0, 0, 1, 1, 1])


def test_hand_worked_partition():
    assert centroids(X, LABELS).tolist() == [[1.0, 1.0], [13.0, 4.0]]
    assert sse(X, LABELS) == 2 + (9 + 0 + 9) + (0 + 9 + 9)
    assert sst(X) == pytest.approx(((X - X.mean(axis=0)) ** 2).sum())
    assert information_loss(X, LABELS) == pytest.approx(100 * 38 / sst(X))


def test_weighted_centroids_keep_weighted_totals():
    weights = np.array([1.0, 3.0, 2.0, 1.0, 1.0])
    means = centroids(X, LABELS, weights)
    assert means[0].tolist() == [1.5, 1.0]
    assert (means[LABELS] * weights[:, None]).sum(axis=0) == pytest.approx((X * weights[:, None]).sum(axis=0))


def test_a_large_offset_costs_no_digits():
    rng = np.random.default_rng(0)
    values = rng.integers(0, 1000, (500, 3)) / 1024
    labels = canonical_labels(rng.integers(0, 50, 500))
    assert sse(values + 1e9, labels) == pytest.approx(sse(values, labels), rel=1e-12)
    assert standardise(values + 1e9) == pytest.approx(standardise(values), rel=1e-9)


def test_equal_values_have_that_value_as_mean():
    values = np.full((7, 1), 0.1)
    assert (centroids(values, np.zeros(7, dtype=np.int64)) == 0.1).all()


@given(arrays(np.float64, (9, 2), elements=st.floats(-1e300, 1e300)))
@example(np.array([[0.0, 0.0], *[[2.0**-1023, 2.0**-1074]] * 8]))
@settings(max_examples=100, deadline=None)
def test_standardised_columns_have_mean_0_and_variance_1_or_are_constant(values):
    Z = standardise(values)
    assert np.isfinite(Z).all()
    for j in range(2):
        if np.ptp(values[:, j] / 2) == 0:
            assert (Z[:, j] == 0).all()
        else:
            assert Z[:, j].mean() == pytest.approx(0, abs=1e-9)
            assert Z[:, j].var() == pytest.approx(1)


def test_standardising_leaves_missing_cells_and_their_column_alone():
    Z = standardise(np.array([[1.0, np.nan], [3.0, np.nan], [np.nan, np.nan]]))
    assert Z[:2, 0].tolist() == [-1.0, 1.0]
    assert np.isnan(Z[2, 0])
    assert np.isnan(Z[:, 1]).all()


def test_released_loss_is_information_loss_for_means():
    Z = standardise(X)
    total, each = released_loss(Z, centroids(Z, LABELS)[LABELS])
    assert total == pytest.approx(information_loss(Z, LABELS))
    assert each.mean() == pytest.approx(total)


def test_no_loss_where_nothing_varies():
    assert information_loss(np.ones((4, 2)), np.array([0, 0, 1, 1])) == 0.0


def test_canonical_labels_number_groups_by_first_appearance():
    assert canonical_labels(np.array([5, 5, -1, 5, 2, -1])).tolist() == [0, 0, 1, 0, 2, 1]


def test_median_and_medoid_by_hand():
    assert group_values(X, X, LABELS, "median").tolist() == [[1.0, 1.0], [13.0, 4.0]]
    assert group_values(X, X, LABELS, "medoid").tolist() == [[0.0, 1.0], [10.0, 4.0]]  # two ties: the first record


def test_median_against_numpy():
    rng = np.random.default_rng(3)
    values, labels = rng.normal(size=(200, 2)), canonical_labels(rng.integers(0, 9, 200))
    expected = [np.median(values[labels == g], axis=0) for g in range(9)]
    assert group_values(values, values, labels, "median") == pytest.approx(np.array(expected))


def test_verify_counts_the_values_alone():
    values = np.array([[1.0, 2.0]] * 3 + [[1.0, 3.0]] * 2)
    verify(values, 2)
    with pytest.raises(VerificationError, match="1 of 2 groups of identical records has fewer than k=3"):
        verify(values, 3)


def test_verify_counts_within_strata():
    values = np.ones((4, 1))
    verify(values, 2, np.array([0, 0, 1, 1]))
    with pytest.raises(VerificationError, match="the smallest has 1"):
        verify(values, 2, np.array([0, 0, 0, 1]))


def test_verify_takes_missing_cells_as_equal_and_distinct_floats_as_distinct():
    verify(np.array([[np.nan], [np.nan]]), 2)
    with pytest.raises(VerificationError):
        verify(np.array([[1.0], [np.nextafter(1.0, 2)]]), 2)


def code_step(code, word):
    code = (code ^ word) * 0x9E3779B97F4A7C15 % 2**64
    return code ^ (code >> 29)


def test_identical_records_compares_values_not_only_codes():
    # Two columns, the second chosen so that all records have one code.
    first = np.arange(1.0, 7.0)
    target = code_step(0, int(first[:1].view(np.uint64)[0]))
    words = [target ^ code_step(0, int(word)) for word in first.view(np.uint64)]
    second = np.array(words, dtype=np.uint64)
    assert (
        len({code_step(code_step(0, int(a)), int(b)) for a, b in zip(first.view(np.uint64), words, strict=True)}) == 1
    )
    assert identical_records([first, second]).tolist() == [0, 1, 2, 3, 4, 5]
    twice = np.array([0, 3, 1, 0, 3, 1])
    assert identical_records([first[twice], second[twice]]).tolist() == [0, 1, 2, 0, 1, 2]
    with pytest.raises(VerificationError, match="6 of 6 groups"):
        verify([first, second], 2)


def test_identical_records_of_any_columns():
    rng = np.random.default_rng(0)
    columns = [
        rng.choice([0.0, -0.0, np.nan, 1.5], 300),
        rng.integers(-2, 2, 300),
        rng.choice(["a", "b"], 300),
        rng.random(300) < 0.5,
        rng.choice([0.1, np.nan], 300).astype(np.float32),
    ]
    strata = rng.integers(0, 2, 300)
    keys = [
        tuple(str(v + 0.0 if isinstance(v, float) else v) for v in row) for row in zip(*columns, strata, strict=True)
    ]
    numbers = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    assert identical_records(columns, strata).tolist() == [numbers[key] for key in keys]
    assert identical_records(np.empty((0, 2))).tolist() == []


@pytest.mark.parametrize("labels", [[7, 3, 7, 9], [-1, 5, -1], [10**12, 4], [0, 2, 1, 2], [], [1.5, 0.5, 1.5]])
def test_labels_are_numbered_by_first_appearance(labels):
    numbers = {label: number for number, label in enumerate(dict.fromkeys(labels))}
    assert canonical_labels(labels).tolist() == [numbers[label] for label in labels]
