"""Blocks: the tree from counts against a tree of moved records, fusing against all pairs, and unusual tables."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.algorithms.registry import SEARCH_SECONDS, Method, Option
from shoal.blocks import blocking, split_choice
from shoal.blocks.block_groups import share_options
from shoal.blocks.blocking import InMemory, assign, extent_of, find_blocks
from shoal.blocks.fusion import fuse, leaf_sums
from shoal.blocks.quantisation import BITS, frame_of, moments, quantise, scaling_of
from shoal.blocks.rule import Blocking
from shoal.blocks.split_choice import choose_split
from shoal.core.errors import InputError
from shoal.core.measures import bounds, canonical_labels, released_loss, standardise


def uniform(n, d, seed=0):
    return np.random.default_rng(seed).uniform(-10_000, 10_000, (n, d))


def skewed(n, d, seed=0):
    return np.random.default_rng(seed).lognormal(0, 2, (n, d))


class Parts:
    """Records in several parts, as in engines."""

    def __init__(self, X, roots, many):
        self.parts = list(zip(np.array_split(X, many), np.array_split(roots, many), strict=True))
        self.firsts = np.cumsum([0, *(len(X) for X, _ in self.parts)]).tolist()

    def reduce(self, function, combine, *arguments):
        results = [function(first, *part, *arguments) for first, part in zip(self.firsts, self.parts, strict=False)]
        total = results[-1]
        for result in results[:-1]:  # in any order
            total = combine(total, result)
        return total

    def call(self, function, *arguments):
        return function(*arguments)

    def assign(self, blocks):
        found = [assign(first, *part, blocks) for first, part in zip(self.firsts, self.parts, strict=False)]
        return np.concatenate(found)


def blocks_of(X, L, k, split="all", roots=None, parts=1, by=()):
    roots = np.zeros(len(X), dtype=np.int64) if roots is None else roots
    held = Parts(X, roots, parts)
    blocks = find_blocks(held, extent_of(X, roots), Blocking(L, k, split, by))
    return blocks, held.assign(blocks)


def slow_leaves(Q, rows, L, split, bit=0):
    """Split records by moving them, one bit after the other: Section 2.2 of the paper, word for word."""
    d = Q.shape[1]
    if len(rows) <= L or bit == BITS * d:
        return [rows]
    step = d if split == "all" else 1
    codes = np.zeros(len(rows), dtype=np.int64)
    for b in range(bit, bit + step):
        codes = codes * 2 + ((Q[rows, b % d] >> np.uint64(BITS - 1 - b // d)) & np.uint64(1)).astype(np.int64)
    return [leaf for code in np.unique(codes) for leaf in slow_leaves(Q, rows[codes == code], L, split, bit + step)]


@pytest.mark.parametrize("split", ["all", "one"])
@pytest.mark.parametrize("d", [1, 2, 3, 7])
@pytest.mark.parametrize("table", [uniform, skewed])
def test_the_tree_from_counts_is_the_tree_of_moved_records(table, d, split):
    X = table(3000, d)
    frame = frame_of(bounds(X))
    leaves = slow_leaves(quantise(X, frame), np.arange(len(X)), 50, split)
    expected = np.empty(len(X), dtype=np.int64)
    for number, rows in enumerate(leaves):
        expected[rows] = number
    _, found = blocks_of(X, 50, 1, split)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("split", ["all", "one"])
def test_blocks_are_cut_along_the_columns_that_were_chosen(split):
    X = skewed(3000, 5)
    _, found = blocks_of(X, 50, 1, split, by=(3, 1))
    _, expected = blocks_of(np.ascontiguousarray(X[:, [3, 1]]), 50, 1, split)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("split", ["all", "one"])
def test_records_equal_in_the_chosen_columns_are_cut_along_the_others(split):
    X = uniform(3000, 3)
    X[:, 1] = np.arange(3000) % 3
    blocks, found = blocks_of(X, 100, 3, split, by=(1,), parts=4)
    assert all(len(np.unique(X[found == block, 1])) == 1 for block in range(len(blocks.sizes)))
    assert blocks.sizes.max() <= 100
    for value in range(3):  # each is cut like a separate table, in the frame of all
        rows = np.flatnonzero(X[:, 1] == value)
        frame = frame_of(bounds(X[:, [0, 2]]))
        leaves = slow_leaves(
            quantise(np.ascontiguousarray(X[rows][:, [0, 2]]), frame), np.arange(len(rows)), 100, split
        )
        assert {frozenset(rows[leaf]) for leaf in leaves} == {
            frozenset(rows[found[rows] == block]) for block in np.unique(found[rows])
        }


def slow_runs(values, L, k):
    """Sort, ties in the order of the input, and cut every L records; the last block has at least k."""
    starts = list(range(0, len(values), L))
    starts[-1] = min(starts[-1], len(values) - k)
    found = np.empty(len(values), dtype=np.int64)
    for number, rows in enumerate(np.split(np.argsort(values, kind="stable"), starts[1:])):
        found[rows] = number
    return found


@pytest.mark.parametrize("n", [1000, 1001, 1002, 1003, 99])
@pytest.mark.parametrize("table", ["uniform", "skewed", "few values", "one value"])
def test_sorted_blocks_are_runs_of_the_sorted_records(table, n):
    made = {
        "uniform": uniform,
        "skewed": skewed,
        "few values": lambda n, d: np.random.default_rng(0).integers(0, 7, (n, d)).astype(float),
        "one value": lambda n, d: np.ones((n, d)),
    }
    X = made[table](2 * n, 3)
    roots = np.repeat([0, 1], n)[np.random.default_rng(1).permutation(2 * n)]
    blocks, found = blocks_of(X, 100, 3, "sorted", roots=roots, parts=5, by=(2,))
    expected = np.empty(2 * n, dtype=np.int64)
    expected[roots == 0] = slow_runs(X[roots == 0, 2], 100, 3)
    expected[roots == 1] = slow_runs(X[roots == 1, 2], 100, 3) + expected[roots == 0].max() + 1
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(blocks.sizes, np.bincount(found))
    assert blocks.facts["oversized"] == 0


@pytest.mark.parametrize("split", ["all", "one", "univariate", "sorted"])
def test_blocks_do_not_depend_on_the_distribution_of_records(split):
    X = skewed(5000, 3)
    X[::2] = X[0]
    one, found = blocks_of(X, 100, 3, split)
    other, again = blocks_of(X, 100, 3, split, parts=7)
    np.testing.assert_array_equal(found, again)
    np.testing.assert_array_equal(one.sizes, np.bincount(found))
    assert one.sizes.min() >= 3
    assert all((a == b).all() for a, b in zip(one.scale, other.scale, strict=True))


def test_shuffled_records_have_the_same_blocks():
    X = skewed(4000, 4)
    order = np.random.default_rng(1).permutation(len(X))
    _, found = blocks_of(X, 100, 3)
    _, again = blocks_of(X[order], 100, 3)
    np.testing.assert_array_equal(found[order], again)


def test_blocks_stay_within_their_root():
    X, roots = uniform(3000, 2), np.random.default_rng(2).integers(0, 3, 3000)
    blocks, found = blocks_of(X, 100, 5, roots=roots)
    assert all(len(np.unique(roots[found == block])) == 1 for block in range(len(blocks.sizes)))


def slow_fuse(sizes, centroids, k, L):
    """Fuse by comparing all pairs of centroids; only leaves with room for k − 1 records below L, if there are any."""
    groups = [{i} for i in range(len(sizes))]
    while True:
        count = [sum(sizes[i] for i in group) for group in groups]
        middle = [sum(centroids[i] * sizes[i] for i in group) / n for group, n in zip(groups, count, strict=True)]
        room = [g for g in range(len(groups)) if count[g] <= L - k + 1]
        limited = len(room) > 1
        small = [g for g in range(len(groups)) if count[g] < k]
        if not small:
            return groups
        joined = list(groups)
        for g in small:
            others = [h for h in (room if limited else range(len(groups))) if h != g]
            h = min(others, key=lambda h, g=g: (((middle[g] - middle[h]) ** 2).sum(), h))
            one, other = (next(group for group in joined if groups[i] <= group) for i in (g, h))
            both = one | other
            if one != other and (not limited or sum(sizes[i] for i in both) <= L):
                joined = [both, *(group for group in joined if group not in (one, other))]
        groups = sorted(joined, key=min)


@pytest.mark.parametrize("L", [10, 1000])
def test_small_leaves_are_fused_with_the_nearest_centroid_that_has_room(L):
    rng = np.random.default_rng(5)
    leaves = np.sort(rng.integers(0, 60, 200))
    leaves = canonical_labels(leaves)
    X = uniform(200, 2)
    frame = frame_of(bounds(X))
    sizes = np.bincount(leaves)
    sums = leaf_sums(X, leaves, frame, len(sizes))
    Q = quantise(X, frame).astype(np.float64)
    middle = np.stack([Q[leaves == leaf].mean(axis=0) for leaf in range(len(sizes))])
    found = fuse(sizes, sums, np.zeros(len(sizes), dtype=np.int64), np.ones(2), 4, L)
    expected = slow_fuse(sizes, middle, 4, L)
    assert {frozenset(np.flatnonzero(found == head).tolist()) for head in np.unique(found)} == set(
        map(frozenset, expected)
    )
    fused = np.bincount(found, sizes)[np.unique(found)]
    assert fused.min() >= 4
    assert fused.max() <= max(L, sizes.max())


def test_fusing_goes_beyond_the_limit_only_where_nothing_has_room():
    sums = np.array([[0, 0], [0, 4], [0, 10 * 11]])
    one_root = np.zeros(3, dtype=np.int64)
    assert fuse(np.array([10, 1, 10]), sums, one_root, np.ones(1), k=2, L=10).tolist() == [0, 0, 2]
    assert fuse(np.array([10, 1, 9]), sums, one_root, np.ones(1), k=2, L=10).tolist() == [0, 1, 1]


def test_exact_moments_standardise():
    X = np.column_stack([uniform(1000, 1) + 1e9, skewed(1000, 1), np.full(1000, 7.0)])
    X[3, 0] = np.nan
    frame = frame_of(bounds(X))
    scale = scaling_of(moments(X, frame), frame)
    np.testing.assert_allclose(scale.apply(X), standardise(X), rtol=1e-9, atol=1e-9)


@settings(max_examples=40, deadline=None)
@given(
    n=st.integers(6, 80),
    d=st.integers(1, 4),
    k=st.integers(2, 3),
    L=st.integers(6, 20),
    seed=st.integers(0, 10**6),
    split=st.sampled_from(["all", "one", "univariate", "sorted"]),
    along=st.integers(0, 4),
    values=st.integers(1, 30),
)
def test_any_table_can_be_masked_in_blocks(n, d, k, L, seed, split, along, values):
    X = np.random.default_rng(seed).integers(0, values, (n, d)).astype(np.float64)
    release = shoal.mask(X, k, block=L, split=split, block_by=[along] if along < d else None)
    assert release.sizes.min() >= k
    assert release.facts["blocks"] >= 1
    loss, _ = released_loss(standardise(X), standardise_like(X, release.data))
    assert release.loss == pytest.approx(loss, abs=1e-9)


@settings(max_examples=300, deadline=None)
@given(
    n=st.integers(8, 300),
    d=st.integers(1, 3),
    k=st.integers(2, 7),
    room=st.integers(0, 40),
    values=st.sampled_from([1, 2, 4, 30, 10**6]),
    split=st.sampled_from(["all", "one", "sorted"]),
    seed=st.integers(0, 10**6),
    piece=st.sampled_from([10, 256]),
)
def test_blocks_are_as_large_as_the_docs_say(n, d, k, room, values, split, seed, piece):
    X = np.random.default_rng(seed).integers(0, values, (n, d)).astype(np.float64) ** 2
    L = 2 * k + room
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocking, "PIECE", piece)
        blocks, found = blocks_of(X, L, k, split)
    np.testing.assert_array_equal(blocks.sizes, np.bincount(found))
    assert blocks.sizes.min() >= k
    most = L if split == "sorted" else max(L, 2 * min(L, max(k, piece)) - 1) + k - 1
    assert blocks.sizes.max() <= most


def test_equal_records_fill_blocks_beyond_their_size():
    blocks, _ = blocks_of(np.zeros((101, 2)), 51, 3)
    assert blocks.sizes.tolist() == [101]
    assert blocks_of(np.zeros((1022, 2)), 400, 3)[0].sizes.max() <= 511
    assert blocks_of(np.zeros((101, 1)), 50, 3, "sorted")[0].sizes.max() <= 50


def standardise_like(X, released):
    spread = X.std(axis=0)
    return (released - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


def test_half_the_records_identical():
    X = uniform(20_000, 3)
    X[::2] = X[0]
    release = shoal.mask(X, 3, block=500)
    assert release.sizes.min() >= 3
    assert release.facts["oversized"] == 0


def test_missing_values_and_strata_in_blocks():
    X = uniform(3000, 3)
    X[::5, 1] = np.nan
    X[:, 2] = np.arange(3000) % 4
    release = shoal.mask(X, 4, columns=[0, 1], by=[2], missing="group", block=100)
    np.testing.assert_array_equal(np.isnan(release.data), np.isnan(X))
    for label in range(len(release.sizes)):
        rows = release.labels == label
        assert len(np.unique(X[rows, 2])) == 1
        assert len(np.unique(np.isnan(X[rows, 1]))) == 1


def choose(X, rule, parts=1):
    roots = np.zeros(len(X), dtype=np.int64)
    return choose_split(Parts(X, roots, parts), extent_of(X, roots), rule, lambda X, scale: scale.apply(X))


def test_the_split_that_loses_less_is_taken():
    chosen = set()
    for X in (skewed(2000, 6), uniform(2000, 6), uniform(3000, 3)):
        losses = {split: shoal.mask(X, 3, method="mdav", block=100, split=split).loss for split in ("all", "one")}
        release = shoal.mask(X, 3, method="mdav", block=100)
        assert release.loss == min(losses.values())
        chosen.add(release.facts["split"])
    assert chosen == {"all", "one"}


def test_a_sample_that_chooses_the_split_does_not_depend_on_parts(monkeypatch):
    monkeypatch.setattr(split_choice, "SAMPLE", 3000)
    X = np.random.default_rng(3).lognormal(0, 2.5, (12_000, 6))
    rule = Blocking(1000, 3, "one")
    samples = []
    for parts in (1, 2, 13):
        roots = np.zeros(len(X), dtype=np.int64)
        sample = Parts(X, roots, parts).reduce(split_choice._draw, split_choice._combine, 0.25, np.array([True]))
        order = np.argsort(sample.numbers)
        samples.append(sample.numbers[order])
        np.testing.assert_array_equal(sample.X[order], X[sample.numbers[order]])
        assert choose(X, rule, parts) == choose(X, rule)
    assert all(np.array_equal(one, samples[0]) for one in samples)
    assert 2700 < len(samples[0]) < 3300


def test_a_sample_overrules_the_usual_split_only_by_a_margin_and_where_its_blocks_are_large(monkeypatch):
    X = np.random.default_rng(3).lognormal(0, 2.5, (12_000, 6))
    monkeypatch.setattr(split_choice, "SAMPLE", 6000)
    losses = {"one": 1.0, "all": 0.96}
    monkeypatch.setattr(split_choice, "_loss", lambda *given: losses[given[2].split])
    assert choose(X, Blocking(1000, 3, "one")) == "one"
    losses["all"] = 0.94
    assert choose(X, Blocking(1000, 3, "one")) == "all"
    assert choose(X, Blocking(1000, 3, "all")) == "all"
    assert choose(X, Blocking(1000, 90, "one")) == "one"  # blocks of 500 records in the sample, groups of 90
    losses["all"] = np.nan
    assert choose(X, Blocking(1000, 3, "one")) == "one"


def test_the_usual_split_is_that_of_the_method(monkeypatch):
    monkeypatch.setattr(split_choice, "SAMPLE", 10)  # too few to tell
    few, many = uniform(400, 3), uniform(400, 6)
    assert shoal.mask(few, 3, method="mdav", block=100).facts["split"] == "all"
    assert shoal.mask(many, 3, method="mdav", block=100).facts["split"] == "one"
    assert shoal.mask(few, 3, effort="fast", block=100).facts["split"] == "one"
    assert shoal.mask(few, 3, effort="fast", block=100, split="all").facts["split"] == "all"


def test_more_columns_than_records():
    release = shoal.mask(uniform(12, 60), 2, block=4)
    assert release.facts["split"] == "one"
    assert release.sizes.min() >= 2


@pytest.mark.parametrize("method", ["v-mdav", "diameter", "centroid"])
def test_any_method_in_a_block(method):
    release = shoal.mask(uniform(2000, 2), 3, method=method, block=200)
    assert release.facts["blocks"] >= 10
    assert release.sizes.min() >= 3


def test_the_loss_in_blocks_is_close_to_the_loss_without():
    X = uniform(20_000, 2)
    whole, blocks = (shoal.mask(X, 3, method="mdav", block=block) for block in (0, 2000))
    assert whole.facts == {}
    assert whole.loss < blocks.loss < 1.2 * whole.loss


def test_large_tables_are_masked_in_blocks_by_default():
    X = uniform(100_001, 2)
    assert shoal.mask(X, 50, method="mdav").facts["block"] == shoal.mask(X, 3, effort="fast").facts["block"] == 10_000
    assert "block" not in shoal.mask(X[:, :1], 50, method="univariate").facts


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"block": 5}, "'block' must be at least 2k = 6"),
        ({"block": 1.5}, "'block' must be a number of records"),
        ({"block": 100, "split": "two"}, "'split' must be one of"),
        ({"block": 100, "method": "individual-ranking"}, "'block' cannot be combined with method 'individual-ranking'"),
        ({"block": 100, "split": "all", "columns": list(range(41))}, "up to 40 columns"),
        ({"block": 100, "block_by": [41]}, "'block_by' names column 41, which the table does not have"),
        ({"block": 100, "block_by": [1], "columns": [2, 3]}, "'block_by' names column 1, which is not masked"),
        ({"block": 100, "block_by": [1, 1]}, "'block_by' names column 1 twice"),
        ({"block": 100, "block_by": []}, "'block_by' must name at least one"),
        ({"block": 0, "block_by": [1]}, "'block_by' requires blocks, but 'block' is 0. Leave one of them out."),
        ({"block": 100, "block_by": [1, 2], "split": "sorted"}, "cuts along one column, but 'block_by' names 2"),
    ],
)
def test_refusals(keywords, message):
    with pytest.raises(InputError, match=message):
        shoal.mask(uniform(200, 41), 3, **keywords)


def test_one_pass_holds_everything_in_memory():
    X = uniform(100, 2)
    roots = np.zeros(100, dtype=np.int64)
    blocks = find_blocks(InMemory(X, roots), extent_of(X, roots), Blocking(20, 2, "all"))
    assert blocks.sizes.sum() == 100


@pytest.mark.parametrize("split", ["all", "one"])
def test_a_sample_saves_rounds_and_changes_no_block(split, monkeypatch):
    X = skewed(20_000, 4)
    deep, found = blocks_of(X, 50, 3, split, parts=3)
    monkeypatch.setattr(blocking, "deepen", lambda *given: given[0])
    plain, expected = blocks_of(X, 50, 3, split, parts=3)
    np.testing.assert_array_equal(found, expected)
    assert deep.facts["rounds"] < plain.facts["rounds"]


def test_time_and_steps_are_shared_for_any_option_names():
    options = Option("patience", float, None, ""), Option("moves", int, None, "")
    entry = Method("any", "", "", "O(n)", "m:f", "variable", options=options, anytime=True)
    timed = replace(entry, time_option="patience", steps_option="moves")
    nothing = {"patience": None, "moves": None}
    assert share_options(timed, nothing, 0.5) == {"patience": SEARCH_SECONDS / 2, "moves": None}
    assert share_options(timed, {**nothing, "moves": 100}, 0.25) == {"patience": None, "moves": 25}
    assert share_options(timed, {**nothing, "patience": 8.0}, 0.25, parallel=2) == {"patience": 4.0, "moves": None}
    # A method without a time option gets no time limit, but can be stopped at any time.
    assert share_options(entry, {}, 0.5) == {}
