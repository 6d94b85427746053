"""Bounds and proofs: below every partition, exact where all can be enumerated, not fooled by altered multipliers."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_search import best_partition

import shoal
from shoal.algorithms.optimize.cuts import Cuts, cut_entries, no_cuts, pair_prices, reduced_costs
from shoal.algorithms.optimize.group_columns import GroupColumns
from shoal.algorithms.optimize.heuristic_pricing import guess_groups
from shoal.algorithms.optimize.lower_bounds import lower_bound
from shoal.algorithms.optimize.master import Master
from shoal.algorithms.optimize.pricing import distances, enumerate_groups, pair_weights
from shoal.algorithms.optimize.separation import KINDS, _linked, _pick, violated_cuts
from shoal.algorithms.optimize.set_partitioning import choose
from shoal.algorithms.partition import find_groups
from shoal.core.errors import InputError
from shoal.core.measures import sse
from shoal.core.progress import STOP, fresh_state

LIMITS = {"room": 10**6, "max_visits": 10**8}


def random_cuts(random, n, count):
    kinds = [kind for kind in KINDS if len(kind[0]) <= n]
    chosen = [kinds[at] for at in random.integers(0, len(kinds), count)]
    return Cuts.of([(tuple(random.choice(n, len(p), replace=False).tolist()), p, q) for p, q in chosen])


def random_multipliers(random, n, count):
    return random.normal(0.5, 0.5, n), random_cuts(random, n, count).priced(random.uniform(0, 0.8, count))


def left_sides(cuts, groups):
    """Return the left side of every cut for a choice of groups, from its definition."""
    return [
        sum(sum(p for i, p in zip(records, parts, strict=True) if i in set(group)) // whole for group in groups)
        for records, parts, whole in cuts.each()
    ]


def all_groups(X, size):
    return GroupColumns.of(X, [np.array(group) for group in combinations(range(len(X)), size)])


@pytest.mark.parametrize("cuts", [0, 12])
@pytest.mark.parametrize("size", [2, 3, 4, 5])
@pytest.mark.parametrize("limit", [-0.3, 0.0, 0.4])
def test_enumeration_lists_every_group_once(cuts, size, limit):
    random = np.random.default_rng(size + cuts)
    X = random.normal(size=(13, 2))
    duals, priced = random_multipliers(random, 13, cuts)
    found = enumerate_groups(distances(X), 2, duals, priced, size, limit, **LIMITS, state=fresh_state())
    assert found.complete
    rows = [tuple(row) for row in found.groups]
    assert len(set(rows)) == len(rows)
    every = all_groups(X, size)
    wanted = {tuple(every[j]) for j in np.flatnonzero(reduced_costs(every, duals, priced) <= limit - 1e-12)}
    assert wanted <= set(rows)
    if not cuts:
        assert len(rows) == (reduced_costs(every, duals, priced) <= limit + 1e-12).sum()


def test_enumeration_with_ties_everywhere():
    X = np.repeat([[0.0], [1.0]], 5, axis=0)
    found = enumerate_groups(distances(X), 1, np.full(10, 0.01), no_cuts(), 3, 0.0, **LIMITS, state=fresh_state())
    assert len(found.groups) == len(np.unique(found.groups, axis=0)) == 20


def test_enumeration_reports_when_it_gave_up():
    X = np.zeros((12, 1))
    D = distances(X)
    for limits in ({"room": 5, "max_visits": 10**6}, {"room": 10**6, "max_visits": 5}):
        assert not enumerate_groups(D, 1, np.ones(12), no_cuts(), 3, 0.0, **limits, state=fresh_state()).complete
    stopped = fresh_state()
    stopped[STOP] = 1
    assert not enumerate_groups(D, 1, np.ones(12), no_cuts(), 3, 0.0, **LIMITS, state=stopped).complete


def test_guesses_are_groups_below_the_limit():
    random = np.random.default_rng(0)
    X = random.normal(size=(40, 2))
    D, duals = distances(X), np.full(40, 0.3)
    W = np.empty_like(D)
    pair_weights(D, 2, duals, no_cuts(), 4, W)
    groups = guess_groups(W, 4, -1e-6, fresh_state())
    assert len(groups)
    assert all(len(set(group)) == 4 for group in groups.tolist())
    columns = GroupColumns.of(X, list(np.sort(groups, axis=1)))
    assert reduced_costs(columns, duals, no_cuts()).max() < 0
    best = reduced_costs(all_groups(X, 4), duals, no_cuts()).min()
    assert reduced_costs(columns, duals, no_cuts()).min() == pytest.approx(best)


def test_reduced_costs_by_hand():
    X = np.array([[0.0], [2.0], [4.0], [9.0]])
    columns = GroupColumns.of(X, [np.array([0, 1]), np.array([0, 1, 2]), np.array([2, 3])])
    cuts = Cuts.of([((0, 1, 2), (1, 1, 1), 2), ((1, 2, 3), (1, 1, 1), 2)]).priced(np.array([0.25, 4.0]))
    expected = [2 - 0.3 + 0.25, 8 - 0.6 + 0.25 + 4, 12.5 - 0.7 + 4]
    np.testing.assert_allclose(reduced_costs(columns, np.array([0.1, 0.2, 0.3, 0.4]), cuts), expected)


@settings(max_examples=40, deadline=None)
@given(st.integers(4, 9), st.integers(2, 3), st.integers(0, 6), st.integers(0, 10**6), st.sampled_from([0.0, 1e9]))
def test_any_multipliers_prove_a_bound_below_the_optimum(n, k, cuts, seed, offset):
    if n < k:
        return
    random = np.random.default_rng(seed)
    X = np.round(random.normal(size=(n, 2)), 3)
    duals, priced = random_multipliers(random, n, cuts)
    bound = lower_bound(X + offset, distances(X + offset), k, duals, priced, **LIMITS, state=fresh_state())
    assert bound.value <= best_partition(X, k) + (1e-5 if offset else 0.0)
    for size in range(k, min(2 * k - 1, n) + 1):
        assert reduced_costs(all_groups(X + offset, size), bound.duals, priced).min() > -1e-9


@pytest.mark.parametrize("seed", range(5))
def test_every_partition_fulfils_every_cut(seed):
    random = np.random.default_rng(seed)
    cuts = random_cuts(random, 14, 60)
    for _ in range(30):
        labels = random.integers(0, random.integers(1, 7), 14)
        groups = [np.flatnonzero(labels == g).tolist() for g in np.unique(labels)]
        assert (np.array(left_sides(cuts, groups)) <= cuts.right_sides).all()


@pytest.mark.parametrize("seed", range(5))
def test_links_and_picked_cuts_as_counted_one_by_one(seed):
    random = np.random.default_rng(seed)
    n = 25
    columns = GroupColumns.of(np.zeros((n, 1)), [np.sort(random.choice(n, 3, replace=False)) for _ in range(60)])
    x = random.choice([0.25, 0.5, 1.0], 60)
    first, column, links = _linked(columns, x, n)
    for i in range(n):
        assert sorted(column[first[i] : first[i + 1]]) == [j for j in range(60) if i in columns[j]]
        together = {o: sum(x[j] for j in range(60) if {i, o} <= {*columns[j]}) for o in range(n) if o != i}
        order = sorted((o for o in together if together[o]), key=lambda o, of=together: (-of[o], o))[:16]
        assert links[i].tolist() == order + [-1] * (16 - len(order))
    rows, times, taken = random.integers(0, n, (80, 4)), np.zeros(n, dtype=int), []
    for number, row in enumerate(rows):
        if len(taken) < 9 and all(times[i] < 2 for i in row):
            taken.append(number)
            np.add.at(times, row, 1)
    assert _pick(rows, n, 2, 9).tolist() == taken


def test_cut_entries_and_pair_prices_agree_with_the_definition():
    random = np.random.default_rng(0)
    n, size = 11, 5
    columns = all_groups(np.zeros((n, 1)), size)
    cuts = random_cuts(random, n, 40).priced(random.uniform(0, 1, 40))
    dense = np.zeros((len(columns), len(cuts)))
    column, cut, times = cut_entries(columns, n, cuts)
    dense[column, cut] = times
    expected = [left_sides(cuts, [columns[j].tolist()]) for j in range(len(columns))]
    np.testing.assert_array_equal(dense, expected)
    # The pairs of a group never receive more than the group pays.
    pair, price = pair_prices(cuts, size)
    W = np.zeros((n, n))
    np.add.at(W, (pair[:, 0], pair[:, 1]), price)
    W += W.T
    got = np.array([sum(W[i, j] for i, j in combinations(columns[g], 2)) for g in range(len(columns))])
    assert (got <= dense @ cuts.price + 1e-12).all()
    assert got.max() > 0


def test_cuts_are_joined_and_split():
    cuts = random_cuts(np.random.default_rng(1), 12, 9).priced(np.arange(9.0))
    parts = cuts.take(np.array([4, 2])).join(cuts.take(np.array([0])))
    assert parts.each() == [cuts.each()[4], cuts.each()[2], cuts.each()[0]]
    assert parts.price.tolist() == [4.0, 2.0, 0.0]
    np.testing.assert_array_equal(parts.right_sides, cuts.right_sides[[4, 2, 0]])


@pytest.mark.parametrize("seed", range(4))
def test_master_problem_agrees_with_a_linear_programme_of_scipy(seed):
    from scipy.optimize import linprog

    random = np.random.default_rng(seed)
    n = 9
    X = random.normal(size=(n, 2))
    columns = all_groups(X, 3).join(all_groups(X, 4))
    cuts = random_cuts(random, n, 25) if seed else no_cuts()
    rows = np.zeros((n, len(columns)))
    rows[columns.member, np.repeat(np.arange(len(columns)), columns.sizes)] = 1.0
    dense = np.zeros((len(cuts), len(columns)))
    column, cut, times = cut_entries(columns, n, cuts)
    dense[cut, column] = times
    wanted = linprog(columns.cost, dense if seed else None, cuts.right_sides if seed else None, rows, np.ones(n)).fun
    # Half of the columns and cuts come later.
    half, cut_half = len(columns) // 2, len(cuts) // 2
    master = Master(
        n, columns.take(np.arange(half, len(columns))), cuts.take(np.arange(cut_half)), lambda: False,
        unit=wanted, deadline=np.inf,
    )  # fmt: skip
    master.solve()
    master.add(columns.take(np.arange(half)))
    master.cut(cuts.take(np.arange(cut_half, len(cuts))))
    found = master.solve()
    assert found.value == pytest.approx(wanted, rel=1e-6)
    assert found.duals.sum() - found.cuts.worth.sum() == pytest.approx(wanted, rel=1e-6)
    assert found.cuts.price.min(initial=0.0) >= 0
    assert reduced_costs(master.columns, found.duals, found.cuts).min() > -1e-6
    np.testing.assert_allclose(
        np.bincount(master.columns.member, np.repeat(found.x, master.columns.sizes)), 1.0, atol=1e-6
    )


@pytest.mark.parametrize("seed", range(6))
def test_cuts_are_violated_as_reported_and_unique(seed):
    random = np.random.default_rng(seed)
    n = 20
    X = random.normal(size=(n, 2))
    columns = all_groups(X, 3)
    x = Master(n, columns, no_cuts(), lambda: False, unit=1.0, deadline=np.inf).solve().x
    cuts = violated_cuts(columns, x, n, threshold=0.05, limit=10, each=3, state=fresh_state())
    column, cut, times = cut_entries(columns, n, cuts)
    left = np.bincount(cut, x[column] * times, minlength=len(cuts))
    assert (left > cuts.right_sides + 0.04).all()
    assert len(set(cuts.each())) == len(cuts)
    used = np.zeros((n, len(KINDS)), dtype=int)
    for records, parts, whole in cuts.each():
        kind = KINDS.index((tuple(sorted(parts, reverse=True)), whole))
        used[list(records), kind] += 1
    assert used.max(initial=0) <= 3


def test_a_violated_triple_is_found():
    pairs = [np.array(pair) for pair in ([0, 1], [1, 2], [0, 2], [3, 4], [4, 5], [3, 5])]
    cuts = violated_cuts(
        GroupColumns.of(np.zeros((6, 1)), pairs),
        np.full(6, 0.5),
        6,
        threshold=0.1,
        limit=9,
        each=1,
        state=fresh_state(),
    )
    triples = {records for records, parts, whole in cuts.each() if (parts, whole) == ((1, 1, 1), 2)}
    assert triples == {(0, 1, 2), (3, 4, 5)}


def test_set_partitioning_finds_the_best_choice():
    X = np.random.default_rng(2).normal(size=(9, 2))
    columns = all_groups(X, 3).join(all_groups(X, 4)).join(all_groups(X, 5))
    choice = choose(columns, 9, 1e9, cuts=Cuts.of([((0, 1, 2), (1, 1, 1), 2)]), state=fresh_state())
    assert choice.proven
    assert sse(X, choice.labels) == pytest.approx(best_partition(X, 3))
    nothing = choose(columns, 9, best_partition(X, 3) * 0.99, state=fresh_state())
    assert nothing.labels is None


@pytest.mark.parametrize(("n", "k", "seed"), [(6, 2, 0), (7, 2, 1), (8, 3, 2), (9, 3, 3), (10, 3, 4), (9, 4, 5)])
def test_tiny_tables_are_proven_optimal(n, k, seed):
    X = np.random.default_rng(seed).normal(size=(n, 2))
    outcome = find_groups(X, k, "search", steps=100, seed=0, bound=True)
    optimum = best_partition(X, k)
    assert outcome.status == "optimal"
    assert sse(X, outcome.labels) == pytest.approx(optimum)
    assert optimum * (1 - 1e-7) <= outcome.bound <= sse(X, outcome.labels)
    assert shoal.verify_bound(X, k, outcome.certificate)


@pytest.mark.parametrize(
    "X",
    [
        np.column_stack([np.repeat([0.0, 1.0, 2.0], 5), np.full(15, 7.0)]),
        np.ones((12, 2)),
        np.random.default_rng(0).normal(size=(40, 2)),
        np.round(np.random.default_rng(1).normal(size=(40, 2)), 2) + 1e9,
        np.random.default_rng(2).standard_t(1.5, size=(60, 3)),
    ],
    ids=["duplicates", "all equal", "normal", "near a billion", "heavy tails"],
)
@pytest.mark.parametrize("k", [3, 4])
def test_the_bound_is_below_the_loss_and_verifiable(X, k):
    outcome = find_groups(X, k, "search", steps=2000, seed=0, bound=True)
    value = sse(X, outcome.labels)
    assert outcome.bound <= value
    assert outcome.status in {"optimal", "bounded"}
    assert outcome.bound >= 0.9 * value
    check = shoal.verify_bound(X, k, outcome.certificate)
    assert check.valid
    assert check.proven <= value


@pytest.mark.parametrize("k", [7, 8])
def test_large_groups_are_bounded_closely(k):
    X = np.random.default_rng(k).normal(size=(60, 2))
    outcome = find_groups(X, k, "search", steps=3000, seed=0, bound=True)
    value = sse(X, outcome.labels)
    assert 0.97 * value <= outcome.bound <= value
    assert shoal.verify_bound(X, k, outcome.certificate)


def test_altered_certificates_are_rejected_or_prove_less():
    X = np.random.default_rng(0).normal(size=(40, 2))
    outcome = find_groups(X, 3, "search", steps=2000, seed=0, bound=True)
    good = outcome.certificate
    optimum = sse(X, outcome.labels)
    assert outcome.status == "optimal"
    random = np.random.default_rng(1)
    for factor in (0.5, 0.99, 1.01, 1.5):
        check = shoal.verify_bound(X, 3, replace(good, duals=good.duals * factor))
        assert not check.valid
        assert check.proven < good.bound
    for _ in range(10):
        noisy = replace(good, duals=good.duals + random.normal(0, 0.05, 40))
        assert shoal.verify_bound(X, 3, noisy).proven <= optimum
    assert not shoal.verify_bound(X, 3, replace(good, bound=optimum * 1.001))
    assert not shoal.verify_bound(X, 4, good)
    assert not shoal.verify_bound(X * 0.9, 3, good)
    for cut, price, reason in [
        (((0, 1, 2), (1, 1, 1), 2), -0.1, "negative"),
        (((0, 1, 1), (1, 1, 1), 2), 0.1, "twice"),
        (((0, 1, 40), (1, 1, 1), 2), 0.1, "does not name"),
        (((0, 1, 2), (1, 0, 1), 2), 0.1, "not positive"),
    ]:
        wrong = replace(good, cuts=Cuts.of([cut]).priced(np.array([price])))
        assert reason in shoal.verify_bound(X, 3, wrong).reason
    with pytest.raises(InputError, match="one dual for each"):
        shoal.verify_bound(X[:30], 3, good)


def test_steps_alone_decide_the_bound_too():
    X = np.random.default_rng(4).normal(size=(60, 2))
    a, b = (find_groups(X, 3, "search", steps=1500, seed=2, bound=True) for _ in range(2))
    np.testing.assert_array_equal(a.labels, b.labels)
    assert a.bound == b.bound


def test_four_hundred_records_are_proven_optimal(reference):
    X = reference("census")[:400]
    outcome = find_groups(X, 3, "search", steps=20_000, seed=0, bound=True)
    assert outcome.status == "optimal"
    assert (1 - 1e-7) * sse(X, outcome.labels) <= outcome.bound <= sse(X, outcome.labels)
    assert shoal.verify_bound(X, 3, outcome.certificate)
    assert sse(X, outcome.labels) < sse(X, shoal.partition(X, 3, "two-swap"))
