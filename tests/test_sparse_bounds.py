"""Bounds for tables of any size: below every partition, no group missed, close to the dense bound, not fooled."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import polars as pl
import pytest
from test_search import best_partition

import shoal
from shoal.algorithms.optimize.cuts import Cuts, no_cuts, reduced_costs
from shoal.algorithms.optimize.group_columns import GroupColumns
from shoal.algorithms.optimize.lower_bounds import lower_bound
from shoal.algorithms.optimize.pricing import distances
from shoal.algorithms.optimize.sparse.near_table import make_table
from shoal.algorithms.optimize.sparse.prover import Rounds, bound_from
from shoal.algorithms.optimize.sparse.repair import Effort, list_groups, prove_by, repair
from shoal.algorithms.partition import find_groups
from shoal.core.errors import InputError
from shoal.core.measures import group_sizes, partition_of, sse, sst, standardise
from shoal.core.progress import STOP, fresh_state

SHORT = Rounds(guesses=4, exact=2, cuts=2, turns=1, steps=100, exact_steps=200, cut_steps=100)


def awkward(random, case):
    """A tiny table: with ties, copies, records far away, values near 1e9, columns of different sizes; and k."""
    k = int(random.integers(2, 5))
    X = random.normal(size=(int(random.integers(2 * k, 13)), int(random.integers(1, 4))))
    X *= np.exp(random.normal(size=(len(X), 1)) * (case % 4))
    if case % 3 == 0:
        X = np.round(X)
    if case % 5 == 0:
        X += 1e9
    if case % 7 == 0:
        X[0] += 1e6
    if case % 11 == 0:
        X[: 2 * k + 1] = X[0]
    return np.ascontiguousarray(X), k


def some_cuts(random, n, size):
    triples = {tuple(sorted(random.choice(n, 3, replace=False).tolist())) for _ in range(4)}
    fives = {tuple(sorted(random.choice(n, 5, replace=False).tolist())) for _ in range(n >= 5)}
    cuts = Cuts.of([(records, (1,) * len(records), 2) for records in [*sorted(triples), *sorted(fives)]])
    return cuts.priced(random.uniform(0, size, len(cuts)))


def every_group(X, k, cuts):
    sizes = range(k, min(2 * k - 1, len(X)) + 1) if len(cuts) else [k]
    groups = [np.array(group) for size in sizes for group in combinations(range(len(X)), size)]
    return GroupColumns.of(X, groups)


@pytest.mark.parametrize("case", range(0, 300, 50))
def test_every_group_is_listed_once(case):
    for number in range(case, case + 50):
        random = np.random.default_rng(number)
        X, k = awkward(random, number)
        table = make_table(X, k, 2 * k - 1, fresh_state())
        size = np.median(table.floor) + 1e-9
        duals = size * random.uniform(-0.5, 6.0, len(table)) * np.exp(random.normal(size=len(table)) * (number % 2))
        duals[table.fixed] = 0.0
        cuts = some_cuts(random, len(table), size) if number % 2 and not table.fixed.any() else no_cuts()
        found, _ = list_groups(table, k, duals, cuts, Effort(fresh_state()))
        rows = found.keys()
        assert len(set(rows)) == len(rows)
        every = every_group(table.rows, k, cuts)
        negative = np.flatnonzero(reduced_costs(every, duals, cuts) < -1e-12 * np.abs(duals).sum())
        assert set(every.take(negative).keys()) <= set(rows)


@pytest.mark.parametrize("case", range(0, 60, 20))
def test_bounds_are_never_above_the_optimum(case):
    for number in range(case, case + 20):
        random = np.random.default_rng(1000 + number)
        X, k = awkward(random, number)
        X = X[: 8 if k < 4 else 9]
        least = best_partition(X, k)
        proven = bound_from(X, k, find_groups(X, k, "mdav").labels, state=fresh_state(), rounds=SHORT)
        assert 0.0 <= proven.bound <= least
        check = shoal.verify_bound(X, k, proven.certificate)
        assert check, check.reason
        assert proven.bound <= check.proven <= least * (1 + 1e-12)


@pytest.mark.parametrize("way", [prove_by, repair])
def test_any_multipliers_are_repaired_to_feasible_ones(way):
    for number in range(60):
        random = np.random.default_rng(2000 + number)
        X, k = awkward(random, number)
        table = make_table(X, k, 2 * k - 1, fresh_state())
        size = np.median(table.floor) + 1e-9
        duals = np.where(table.fixed, 0.0, size * random.uniform(-0.5, 4.0, len(table)))
        cuts = some_cuts(random, len(table), size) if number % 2 and not table.fixed.any() else no_cuts()
        over = () if way is prove_by else (np.where(table.fixed, 0.0, 0.2 * size),)
        proven = way(table, k, duals, cuts, *over, Effort(fresh_state()))
        every = every_group(table.rows, k, cuts)
        rest = reduced_costs(every, proven.duals, cuts)
        assert rest.min() >= -1e-13 * (np.abs(proven.duals).sum() + every.cost.max())
        assert proven.value <= proven.duals.sum() - cuts.worth.sum()
        larger = every_group(table.rows, k, some_cuts(random, len(table), 0.0))
        if not len(cuts):  # groups of k records bound all sizes
            assert reduced_costs(larger, proven.duals, cuts).min() >= -1e-13 * larger.cost.max()


def test_the_repair_worked_by_hand():
    """Pairs of 0, 2 and 4 with duals of 2: {0, 2} and {2, 4} cost 2 and lack 2, {0, 4} costs 8 and lacks nothing."""
    table = make_table(np.array([[0.0], [2.0], [4.0]]), 2, 3, fresh_state())
    by_formula = prove_by(table, 2, np.full(3, 2.0), no_cuts(), Effort(fresh_state()))
    assert by_formula.duals == pytest.approx([1.0, 1.0, 1.0])
    # {0, 2} takes 1 from each; {2, 4} then lacks 1 and takes ½ from each; 0 can then be raised by ½.
    in_order = repair(table, 2, np.full(3, 2.0), no_cuts(), np.full(3, 0.1), Effort(fresh_state()))
    assert sorted(in_order.duals) == pytest.approx([0.5, 1.5, 1.5])
    assert in_order.value == pytest.approx(3.5)


def test_an_outlier_makes_no_other_list_longer():
    random = np.random.default_rng(0)
    X = random.normal(size=(400, 2))
    labels = find_groups(X, 3, "mdav").labels
    near = bound_from(X, 3, labels, state=fresh_state(), rounds=SHORT)
    table = make_table(np.vstack([X, [1e9, 1e9]]), 3, 5, fresh_state())
    duals = np.append(near.certificate.duals, 1e18)[table.ids]
    _, few = list_groups(
        make_table(X, 3, 5, fresh_state()), 3, near.certificate.duals, no_cuts(), Effort(fresh_state())
    )
    found, visited = list_groups(table, 3, duals, no_cuts(), Effort(fresh_state(), room=10**6, max_visits=10**6))
    assert len(found) <= 400 * 399 / 2 + few  # those with the record far away, and as many as before without it
    assert visited < 400 * 400


@pytest.mark.parametrize(("n", "k", "d"), [(300, 2, 3), (1000, 3, 2), (300, 5, 4)])
def test_the_bound_agrees_with_the_dense_one(n, k, d):
    X = np.random.default_rng(k).normal(size=(n, d))
    labels = find_groups(X, k, "mdav").labels
    sparse = bound_from(X, k, labels, state=fresh_state(), rounds=Rounds(cuts=0, turns=0))
    duals = sparse.certificate.duals
    dense = lower_bound(X, distances(X), k, duals, no_cuts(), room=10**6, max_visits=10**8, state=fresh_state())
    assert dense.value == pytest.approx(sparse.bound, rel=1e-9)
    # The linear relaxation by the simplex method over all pairs of records, without cuts.
    relaxed = _relaxation(X, k, labels)
    assert sparse.bound == pytest.approx(relaxed, rel=2e-3)
    assert sparse.bound <= relaxed * (1 + 1e-9)


def _relaxation(X, k, labels):
    from shoal.algorithms.optimize.column_generation import ColumnGeneration, GenerationLimits
    from shoal.algorithms.optimize.group_columns import groups_in

    columns = GroupColumns.of(X, groups_in(labels))
    run = ColumnGeneration(
        X, k, partition_of(X, labels), columns, len(columns), fresh_state(), GenerationLimits(rounds=0)
    )
    run.run()
    return run.best.value


def test_cuts_close_a_part_of_the_gap_and_hold():
    X = np.random.default_rng(3).normal(size=(300, 2))
    labels = find_groups(X, 3, "search", steps=6000, seed=0).labels
    plain = bound_from(X, 3, labels, state=fresh_state(), rounds=Rounds(cuts=0, turns=0))
    cut = bound_from(X, 3, labels, state=fresh_state(), rounds=Rounds(cuts=3, turns=0))
    upper = sse(X, labels)
    assert plain.bound < cut.bound <= upper
    assert upper - cut.bound < 0.6 * (upper - plain.bound)
    assert shoal.verify_bound(X, 3, cut.certificate)


def test_altered_certificates_prove_what_is_true_of_them_or_are_rejected():
    X = np.random.default_rng(4).normal(size=(60, 2))
    labels = find_groups(X, 3, "search", steps=2000, seed=0).labels
    proven = bound_from(X, 3, labels, state=fresh_state())
    certificate = proven.certificate
    assert shoal.verify_bound(X, 3, certificate)
    upper = sse(X, labels)
    raised = replace(certificate, duals=certificate.duals * 1.01, bound=certificate.bound * 1.01)
    check = shoal.verify_bound(X, 3, raised)
    assert not check
    assert check.proven <= upper
    one = certificate.duals.copy()
    one[7] += 1.0
    assert not shoal.verify_bound(X, 3, replace(certificate, duals=one, bound=certificate.bound + 0.5))
    assert shoal.verify_bound(X, 3, replace(certificate, bound=certificate.bound * 0.9))
    assert not shoal.verify_bound(X, 3, replace(certificate, bound=upper))
    assert not shoal.verify_bound(X, 4, certificate)
    assert not shoal.verify_bound(X + np.random.default_rng(0).normal(size=X.shape), 3, certificate)
    if len(certificate.cuts):
        cheaper = certificate.cuts.priced(certificate.cuts.price * 0.5)
        assert not shoal.verify_bound(X, 3, replace(certificate, cuts=cheaper, bound=certificate.bound * 1.05))


def test_bounds_hold_with_copies():
    random = np.random.default_rng(5)
    X = np.repeat(random.normal(size=(40, 2)), random.integers(1, 60, 40), axis=0)
    X = np.vstack([X, random.normal(size=(50, 2))])[random.permutation(len(X) + 50)]
    labels = find_groups(X, 3, "mdav").labels
    proven = bound_from(X, 3, labels, state=fresh_state())
    assert 0.0 < proven.bound <= sse(X, labels)
    assert shoal.verify_bound(X, 3, proven.certificate)
    same = bound_from(np.zeros((30, 2)), 3, np.arange(30) // 3, state=fresh_state())
    assert same.bound == 0.0
    assert same.status == "optimal"


def test_the_bound_does_not_depend_on_threads():
    X = np.random.default_rng(6).normal(size=(4200, 2))  # more than one chunk
    labels = find_groups(X, 3, "mdav").labels
    one, two = (
        bound_from(X, 3, labels, state=fresh_state(), rounds=Rounds(2, 1, 1, 0, 50, 50, 50), threads=t) for t in (1, 2)
    )
    assert one.bound == two.bound
    assert (one.certificate.duals == two.certificate.duals).all()


def test_a_stop_keeps_the_best_bound_so_far():
    X = np.random.default_rng(7).normal(size=(300, 2))
    labels = find_groups(X, 3, "mdav").labels
    state = fresh_state()
    state[STOP] = 1
    assert bound_from(X, 3, labels, state=state).bound == 0.0
    quick = bound_from(X, 3, labels, state=fresh_state(), rounds=Rounds(0, 0, 0, 0))
    assert 0.3 * sse(X, labels) < quick.bound < sse(X, labels)
    assert shoal.verify_bound(X, 3, quick.certificate)


def test_the_groups_generated_hold_a_better_partition():
    X = np.random.default_rng(9).normal(size=(650, 2))  # two regions
    labels = find_groups(X, 3, "mdav").labels
    proven = bound_from(X, 3, labels, state=fresh_state(), rounds=Rounds(cuts=0, turns=1))
    assert group_sizes(proven.labels).min() >= 3
    assert proven.bound <= sse(X, proven.labels) < 0.9 * sse(X, labels)


def test_bounds_of_strata_add_up_and_blocks_have_none():
    random = np.random.default_rng(10)
    table = pl.DataFrame({"a": random.normal(size=60), "b": random.normal(size=60), "by": np.arange(60) % 2})
    release = shoal.mask(table, k=3, columns=["a", "b"], by="by", method="search", steps=200, bound=True, seed=0)
    X = standardise(table.select("a", "b").to_numpy())
    parts = [X[value::2] for value in (0, 1)]
    bounds = [find_groups(part, 3, "search", steps=100, bound=True, seed=0).bound for part in parts]
    assert release.bound == pytest.approx(100 * sum(bounds) / sst(X), rel=1e-6)
    assert release.status in ("bounded", "optimal")
    with pytest.raises(InputError, match="'bound' of method 'search' needs all records of a stratum at once"):
        shoal.mask(table, k=3, columns=["a", "b"], method="search", steps=200, bound=True, block=20)


def test_search_proves_a_bound_beyond_what_fits_in_pairs():
    X = np.random.default_rng(8).normal(size=(2001, 2))
    outcome = find_groups(X, 3, "search", time_limit=4.0, seed=0, bound=True)
    assert outcome.status == "bounded"
    assert 0.3 * sse(X, outcome.labels) < outcome.bound <= sse(X, outcome.labels)
    assert shoal.verify_bound(X, 3, outcome.certificate)
