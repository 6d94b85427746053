"""Models and their rules, group by group: against slow references, at their bounds, and in messages.

Tables are small: `make mutants` runs these tests with kernels that are not compiled.
"""

from dataclasses import FrozenInstanceError
from itertools import product
from math import ceil, exp, inf, log
from typing import ClassVar

import numpy as np
import pytest
import slow

from shoal.core.errors import InputError
from shoal.promises import rules as rules_module
from shoal.promises.closeness import TABLED, Closeness, least_size, with_masses
from shoal.promises.distinct_units import COUNTERS, count_units, least_units, record_counters, units_in_cells
from shoal.promises.diversity import ROOM, Diversity
from shoal.promises.promise import ROUNDING, ConfidentialColumn, GroupPromise, RuleKind, is_number, run_end
from shoal.promises.promise_registry import read_promise
from shoal.promises.rules import (
    KINDS,
    broken,
    changed,
    group_shortfall,
    is_foreign,
    kinds_of,
    make_rules,
    reached_by,
    size_for,
)

MODELS = [
    Diversity(2), Diversity(3), Diversity(4), Diversity(2, "entropy"), Diversity(2.5, "entropy"),
    Diversity(2, "recursive", 2.0), Diversity(3, "recursive", 1.5), Diversity(4, "recursive"), Closeness(0.05),
    Closeness(0.2), Closeness(0.4),
]  # fmt: skip


def column(values, ordered=True):
    _, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    return ConfidentialColumn(codes.astype(np.int64), counts, ordered)


def rules_of(values, model, ordered=True):
    return make_rules([column(values, ordered)], [(0, model)], len(values))


# --- measures of a group ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("model", MODELS, ids=str)
def test_measures_of_groups_follow_from_their_histograms(model, ordered):
    rng = np.random.default_rng(0)
    for n, m, groups in ((5, 2, 2), (12, 4, 3), (30, 7, 4), (40, 3, 5), (24, 24, 6)):
        found = column(np.r_[rng.integers(0, m, n - 1), m], ordered)
        labels = np.r_[np.arange(groups), rng.integers(0, groups, n - groups)]
        rules = make_rules([found], [(0, model)], n)
        lacks, seen = reached_by(rules, 0, labels)
        if ordered and isinstance(model, Closeness):
            assert reached_by(with_masses(rules), 0, labels)[1] == pytest.approx(seen, abs=1e-12)
        for group in range(groups):
            histogram = np.bincount(found.codes[labels == group], minlength=len(found.counts))
            value, allowed = slow.model(histogram, found.counts, model, ordered)
            assert seen[group] == pytest.approx(value, abs=1e-9)
            assert (lacks[group] == 0) == allowed
            assert lacks[group] >= 0


@pytest.mark.parametrize(
    ("model", "values", "reached", "lacks"),
    [
        (Diversity(4), [0, 0, 1], 2.0, 1 - 2 / 4),
        (Diversity(2), [0, 1, 2], 3.0, 0.0),
        (Diversity(4, "entropy"), [0, 0, 1, 1], log(2), log(4) - log(2)),
        (Diversity(2, "recursive", 2.0), [0, 0, 0, 1], 3.0, 1 - 2 / 4),
        (Diversity(2, "recursive", 3.0), [0, 0, 0, 1], 3.0, 1 - 3 / 4),  # fewer than c times, not as many
        (Diversity(4, "recursive", 3.0), [0, 0, 1], inf, 1 + 4 - 2),  # each value that is missing counts
        (Diversity(3, "recursive", 3.0), [0, 0, 0, 1, 1, 1, 2, 2], 1.5, 0.0),
    ],
)
def test_shortfall_of_a_group(model, values, reached, lacks):
    """Searches reduce the shortfall, so it must grow with the violation."""
    rest = [0, 1, 2, 3]
    rules, labels = rules_of(values + rest, model), np.repeat([0, 1], [len(values), len(rest)])
    found = reached_by(rules, 0, labels)
    assert (found[1][0], found[0][0]) == pytest.approx((reached, lacks))


@pytest.mark.parametrize("ordered", [True, False])
def test_the_shortfall_of_a_distance_is_its_excess(ordered):
    values, labels = np.array([0, 0, 1, 2]), np.array([0, 0, 1, 1])
    t = 0.25
    lacks, found = reached_by(rules_of(values, Closeness(t), ordered), 0, labels)
    assert found == pytest.approx([0.375, 0.375] if ordered else [0.5, 0.5])
    assert lacks == pytest.approx(found - t)
    # At the bound, and beyond it by what float64 loses, a rule is kept.
    for bound in (found[0], found[0] - ROUNDING / 2):
        assert reached_by(rules_of(values, Closeness(bound), ordered), 0, labels)[0].tolist() == [0, 0]
    assert (reached_by(rules_of(values, Closeness(found[0] - 3 * ROUNDING), ordered), 0, labels)[0] > 0).all()


def test_an_entropy_at_its_bound_is_kept():
    values, labels = np.array([0, 0, 0, 1]), np.zeros(4, dtype=np.int64)
    least = exp(-(0.75 * log(0.75) + 0.25 * log(0.25)))
    assert reached_by(rules_of(values, Diversity(least * (1 + ROUNDING / 3), "entropy")), 0, labels)[0].tolist() == [0]
    assert reached_by(rules_of(values, Diversity(least * (1 + 3 * ROUNDING), "entropy")), 0, labels)[0][0] > 0


def test_one_value_is_at_no_distance_however_it_is_measured():
    values = np.zeros(6)
    for ordered, own in product((True, False), (lambda rules: rules, with_masses)):
        assert reached_by(own(rules_of(values, Closeness(0.1), ordered)), 0, np.repeat([0, 1], 3))[1].tolist() == [0, 0]


def test_groups_beyond_the_table_of_quantiles_are_measured_too():
    """The table holds sizes below `TABLED`; the largest of them, and the first beyond."""
    rng = np.random.default_rng(1)
    values = rng.integers(0, 9, 2 * TABLED + 2)
    found = column(values)
    plain = rules_of(values, Closeness(0.1))
    rules = with_masses(plain)
    assert rules.masses.shape == (1, TABLED, TABLED)
    sizes = [TABLED - 1, TABLED, TABLED + 1, len(values) - 3 * TABLED]
    for size in sizes[:3]:
        labels = np.repeat([0, 1], [size, len(values) - size])
        histogram = np.bincount(found.codes[:size], minlength=9)
        expected = slow.model(histogram, found.counts, Closeness(0.1), ordered=True)[0]
        for own in (plain, rules):
            assert reached_by(own, 0, labels)[1][0] == pytest.approx(expected, abs=1e-12)


def check_swaps(found, rules, rule, rows, pairs):
    """Compare the reported change of a swap with a new measurement of the group."""
    members = np.sort([int(found.codes[row]) << 32 | int(row) for row in rows])
    one, size = np.zeros(len(rows), dtype=np.int64), len(rows)
    before = group_shortfall(rules, rule, rows, one, 1)[1][0]
    for out, into in pairs:
        lacks, reached = group_shortfall(rules, rule, np.where(rows == out, into, rows), one, 1)
        pair = (int(found.codes[row]) << 32 | int(row) for row in (out, into))
        told = changed(rules, rule, members, size, *pair, before, np.empty(size + 1, dtype=np.int64))
        assert told == pytest.approx((reached[0], lacks[0]), abs=1e-12)


@pytest.mark.parametrize("tabled", [False, True])
@pytest.mark.parametrize("m", [1, 2, 3, 8])
def test_a_swap_changes_a_distance_like_a_new_measurement(m, tabled):
    """All pairs of a small table. Members go out at both ends and within, codes repeat, there are other rules."""
    rng = np.random.default_rng(m)
    found, other = column(np.r_[np.arange(m), rng.integers(0, m, 12 - m)]), column(np.arange(12) % 5)
    models = [(0, Closeness(0.3)), (1, Closeness(0.15)), (0, Closeness(0.2))]
    rules = make_rules([other, found], models, 12)
    rules = with_masses(rules) if tabled else rules
    for size in (1, 2, 5, 11):
        rows = rng.permutation(12)[:size]
        check_swaps(found, rules, 1, rows, product(rows, sorted(set(range(12)) - set(rows.tolist()))))


def test_swaps_in_groups_beyond_the_table_of_quantiles():
    values = np.random.default_rng(2).integers(0, 6, TABLED + 4)
    rules = with_masses(rules_of(values, Closeness(0.02)))
    for size in (TABLED - 1, TABLED, TABLED + 1):
        rows = np.arange(size)
        check_swaps(column(values), rules, 0, rows, [(0, size), (size - 1, size + 1), (size // 2, size)])


def test_several_rules_are_measured_each_in_its_own_column():
    first, second = np.array([0, 1, 2, 3, 0, 1]), np.array([5, 5, 5, 6, 7, 7])
    labels = np.array([0, 0, 0, 1, 1, 1])
    columns = [column(first), column(second), column(first, ordered=False)]
    models = [
        (1, Closeness(0.1)),
        (0, Closeness(0.1)),
        (2, Closeness(0.1)),
        (1, Diversity(2)),
        (0, Diversity(3, "recursive")),
    ]
    rules = make_rules(columns, models, 6)
    for own, (rule, (place, model)) in product((rules, with_masses(rules)), enumerate(models)):
        for group in range(2):
            counts = columns[place].counts
            histogram = np.bincount(columns[place].codes[labels == group], minlength=len(counts))
            value, allowed = slow.model(histogram, counts, model, columns[place].ordered)
            lacks, reached = reached_by(own, rule, labels)
            assert (reached[group], lacks[group] == 0) == (pytest.approx(value, abs=1e-12), allowed)
    assert broken(rules, np.arange(6), labels).tolist() == [True, True]


def test_runs_end_where_the_code_does():
    codes = np.array([1, 1, 1, 4, 7, 7])
    assert [run_end(codes, begin, 6) for begin in (0, 1, 3, 4)] == [3, 3, 4, 6]
    assert run_end(codes, 0, 2) == 2  # of a smaller group in a larger array


# --- text of models --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "text", "says", "measured", "told", "number"),
    [
        (Diversity(3), "3", "at least 3 different values", "diversity", (2.0, "2 different values"), 2.0),
        (Diversity(2.5, "entropy"), "entropy:2.5", "an entropy of at least log 2.5", "entropy",
         (log(2), "an entropy of log 2"), pytest.approx(2.0)),
        (Diversity(3, "recursive", 1.5), "recursive:3:1.5", "recursive (1.5, 3)-diversity", "recursive",
         (1.23456, "a ratio of 1.235"), 1.23456),
        (Closeness(0.2), "0.2", "a distribution at most 0.2 from that of the table", "closeness",
         (0.123456, "a distance of 0.1235"), 0.123456),
    ],
)  # fmt: skip
def test_models_in_words(model, text, says, measured, told, number):
    assert (model.text, model.says, model.measured) == (text, says, measured)
    assert (model.reached_text(told[0]), model.number(told[0])) == (told[1], number)
    assert read_promise(model.parameter, text) == model


@pytest.mark.parametrize(
    ("given", "model"),
    [
        ("3", Diversity(3)), (3, Diversity(3)), ("distinct:3", Diversity(3)), ("entropy:4", Diversity(4, "entropy")),
        ("recursive:3", Diversity(3, "recursive", 3.0)), ("recursive:3:2", Diversity(3, "recursive", 2.0)),
        ("diversity:3", Diversity(3)), ("diversity:entropy:3", Diversity(3, "entropy")), (Diversity(3), Diversity(3)),
        ("0.2", Closeness(0.2)), (0.2, Closeness(0.2)), (0, Closeness(0)), ("closeness:0.2", Closeness(0.2)),
        (Closeness(0.2), Closeness(0.2)),
    ],
)  # fmt: skip
def test_models_are_read_from_all_forms(given, model):
    assert read_promise(model.parameter, given) == model
    if not isinstance(given, str) or not given.startswith(model.parameter):
        assert type(model).read(given) == model


def test_a_model_of_another_parameter_is_refused():
    with pytest.raises(
        InputError, match=r"^Parameter 'closeness' cannot be Diversity\(.*, which is a value of 'diversity'"
    ):
        read_promise("closeness", Diversity(2))
    with pytest.raises(InputError, match=r"must be at least 0 and less than 1, got 'diversity:3'"):
        read_promise("closeness", "diversity:3")


WHOLE = "must be a whole number of at least 2, got "
READS = "must read like 3, entropy:3 or recursive:3:2 (l, then c), got "
SMALL = "must be at least 0 and less than 1, got "


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Diversity(1), f"diversity' {WHOLE}1."),
        (lambda: Diversity(2.5), f"diversity' {WHOLE}2.5."),
        (lambda: Diversity(2.5, "recursive"), f"diversity' {WHOLE}2.5."),
        (lambda: Diversity(1, "entropy"), f"diversity' {WHOLE}1."),
        (lambda: Diversity(True), f"diversity' {WHOLE}True."),
        (lambda: Diversity(inf), f"diversity' {WHOLE}inf."),
        (lambda: Diversity("3"), f"diversity' {WHOLE}'3'."),
        (
            lambda: Diversity(3, "x"),
            "diversity' must have one of the kinds 'distinct', 'entropy', 'recursive', got 'x'.",
        ),
        (lambda: Diversity(3, "recursive", 0), "diversity' must have a positive factor c, got 0."),
        (lambda: Diversity(3, "recursive", inf), "diversity' must have a positive factor c, got inf."),
        (lambda: Diversity.read("many"), f"diversity' {READS}'many'."),
        (lambda: Diversity.read("entropy:3:2"), f"diversity' {READS}'entropy:3:2'."),
        (lambda: Diversity.read("recursive:3:2:1"), f"diversity' {READS}'recursive:3:2:1'."),
        (lambda: Diversity.read("recursive:x"), f"diversity' {READS}'recursive:x'."),
        (lambda: Closeness(1.0), f"closeness' {SMALL}1.0."),
        (lambda: Closeness(-0.1), f"closeness' {SMALL}-0.1."),
        (lambda: Closeness.read("much"), f"closeness' {SMALL}'much'."),
        (lambda: Closeness.read("nan"), f"closeness' {SMALL}'nan'."),
        (lambda: Closeness.read(None), f"closeness' {SMALL}None."),
    ],
)
def test_refusals_name_the_parameter_the_rule_and_the_value(make, said):
    with pytest.raises(InputError) as refusal:
        make()
    assert str(refusal.value) == f"Parameter '{said}"


def test_weakest_values_of_models():
    assert (Closeness(0).t, Closeness(0.999).t, Diversity(2).least, Diversity(1.001, "entropy").least) == (
        0,
        0.999,
        2,
        1.001,
    )
    assert Diversity(3, "recursive", 0.5).c == 0.5
    assert Diversity(3).values == 3
    assert Closeness(0.1).values == 0  # asks for no number of values
    with pytest.raises(FrozenInstanceError):
        Closeness(0.1).t = 0.9


@pytest.mark.parametrize(
    ("model", "reached", "said"),
    [
        (Diversity(5), 3.0, "diversity 3"),
        (Diversity(5), 2.0, "diversity 2"),
        (Diversity(5), 1.0, "a smaller l"),
        (Diversity(5, "entropy"), log(2.71829), "diversity entropy:2.7182"),  # rounded down
        (Diversity(5, "entropy"), log(3), "diversity entropy:3"),
        (Diversity(5, "entropy"), 0.0, "a smaller l"),
        (Diversity(3, "recursive"), 4.0, "diversity recursive:3:4.0001"),  # c must be above what is reached
        (Diversity(3, "recursive"), 4.00004, "diversity recursive:3:4.0001"),
        (Diversity(3, "recursive"), 4.00006, "diversity recursive:3:4.0002"),
        (Diversity(3, "recursive"), inf, "a smaller l"),
        (Closeness(0.1), 0.2, "closeness 0.2"),
        (Closeness(0.1), 0.20001, "closeness 0.2001"),
    ],
)
def test_what_is_possible_is_rounded_to_the_safe_side(model, reached, said):
    """The value named as possible can be parsed, and allows the measured one."""
    assert model.possible(reached) == said
    parameter, _, text = said.partition(" ")
    if parameter == model.parameter:
        asked = read_promise(parameter, text)
        bound = {"distinct": lambda: asked.least <= reached, "entropy": lambda: log(asked.least) <= reached + 1e-9}
        bound |= {"recursive": lambda: reached < asked.c, "t": lambda: reached <= asked.t}
        assert bound[getattr(asked, "kind", "t")]()


def test_the_worst_of_several_groups():
    found = np.array([2.0, 5.0, 3.0])
    worst = [Diversity(2), Diversity(2, "entropy"), Diversity(2, "recursive"), Closeness(0.2)]
    assert [model.worst(found) for model in worst] == [2.0, 2.0, 5.0, 5.0]


def test_a_model_with_only_the_required_methods():
    """The defaults that a new model inherits."""

    class Least(GroupPromise):
        parameter = "diversity"

    model = Least()
    assert (model.measured, model.values, model.number(0.5), model.scaled(2.0)) == ("diversity", 0.0, 0.5, None)
    assert model.worst(np.array([1.0, 4.0, 2.0])) == 4.0


def test_a_promise_that_kernels_do_not_know_never_seems_to_be_kept():
    class Late(GroupPromise):
        parameter = "diversity"

        def rule(self, ordered):
            return RuleKind(run_end, lambda *_: 1.0), 1.0, 0.0

    one = ConfidentialColumn(np.array([0, 1]), np.array([1, 1]), ordered=True)
    with pytest.raises(
        InputError, match="'diversity' belongs to a promise that was registered after the first table was masked"
    ):
        make_rules([one], [(0, Late())], 2)


def test_kernels_of_other_packages_are_not_cached(monkeypatch):
    class Foreign(GroupPromise):
        kinds: ClassVar = {"foreign": RuleKind(run_end, lambda *_: 1.0)}

    stopped = []
    monkeypatch.setattr(rules_module, "stop_caching", lambda: stopped.append(1))
    assert kinds_of([Diversity, Closeness]) == KINDS
    assert not stopped
    assert kinds_of([Diversity, Foreign])[-1].measure is run_end
    assert stopped
    Foreign.__module__ = "nowhere"
    assert is_foreign(Foreign)


@pytest.mark.parametrize(
    ("model", "factor", "scaled"),
    [
        (Diversity(3), 2.0, Diversity(5)), (Diversity(3), 0.5, Diversity(2)), (Diversity(2), 0.5, None),
        (Diversity(3), 1.0, None), (Diversity(5, "recursive", 2.0), 0.5, Diversity(3, "recursive", 2.0)),
        (Closeness(0.2), 2.0, Closeness(0.4)), (Closeness(0.2), 0.5, Closeness(0.1)), (Closeness(0.6), 2.0, None),
        (Closeness(0.5), 2.0, None), (Closeness(0.2), 1.0, None), (Closeness(0.2), 0.0, None),
        (Closeness(0), 2.0, None), (Closeness(0.123), 2.0, Closeness(0.25)),
    ],
)  # fmt: skip
def test_stronger_and_weaker_promises(model, factor, scaled):
    assert model.scaled(factor) == scaled


def test_the_least_size_is_that_of_the_paper_and_leaves_few_records_over():
    """Soria-Comas et al. 2015: k′ = max(k, ⌈n / (2 (n−1) t + 1)⌉), and what is left over is shared by all groups."""
    for n, k, t in product((10, 17, 100, 1080), (2, 5, 7), (0.01, 0.05, 0.13, 0.3, 0.9)):
        least = max(k, ceil(n / (2 * (n - 1) * t + 1)))
        groups, left = divmod(n, least)
        assert least_size(n, k, t) == least + left // groups
        assert size_for([Closeness(t).rule(ordered=True)[:2]], n, k) == max(k, 1.5 * least_size(n, k, t) + 3)
        assert size_for([Closeness(t).rule(ordered=False)[:2]], n, k) == max(k, 1.5 * least_size(n, k, t) + 3)
    assert least_size(3, 2, 0.5) == 3  # one group, and the remaining records
    assert least_size(10, 2, 1 / 18) == 5  # exactly 10 / 2, which rounding must not make 6
    for asked in (Diversity(4), Diversity(4, "entropy"), Diversity(4, "recursive")):
        assert size_for([asked.rule(ordered=True)[:2]], 100, 3) == ROOM * 4
        assert size_for([asked.rule(ordered=True)[:2]], 100, 7) == ROOM * 7


def test_rules_contain_the_request():
    for ordered in (True, False):
        kind, bound, factor = Closeness(0.2).rule(ordered)
        assert (kind, bound, factor) == (Closeness.kinds["ordered" if ordered else "nominal"], 0.2, 0.0)
        assert Diversity(3, "recursive", 1.5).rule(ordered) == (Diversity.kinds["recursive"], 3.0, 1.5)
    assert all(
        isinstance(number, float)
        for number in (*Diversity(3, "recursive", 2).rule(True)[1:], *Closeness(0).rule(True)[1:])
    )


@pytest.mark.parametrize(
    ("given", "is_one"),
    [(0.5, True), (0, False), (1, False), (np.float32(0.5), True), (True, False), ("0.5", False), (None, False),
     (float("nan"), False)],
)  # fmt: skip
def test_numbers_lie_between_their_limits(given, is_one):
    assert is_number(given, 0, 1) is is_one
    assert not is_number(True, 0, 2)


# --- units -----------------------------------------------------------------------------------------------------------


def test_units_are_counted_once_in_each_group():
    labels, units = np.array([2, 0, 0, 2, 0, 2]), np.array([5, 9, 9, 5, 4, 8], dtype=np.uint64)
    assert count_units(labels, units).tolist() == [2, 0, 2]
    assert count_units(labels[:0], units[:0]).tolist() == []
    # Neighbours in two groups are counted in both, although they are one unit.
    assert count_units(np.array([0, 1, 1]), np.array([3, 3, 4], dtype=np.uint64)).tolist() == [1, 2]


def test_the_least_units_of_each_group():
    labels, units = np.array([1, 0, 0, 1, 0, 1]), np.array([5, 9, 9, 5, 4, 2**63 + 8], dtype=np.uint64)
    assert [found.tolist() for found in least_units(labels, units, 2)] == [[4, 9], [5, 2**63 + 8]]
    assert [found.tolist() for found in least_units(labels, units, 1)] == [[4], [5]]
    assert least_units(labels[:0], units[:0], 2) == []


def test_units_of_parts_are_one_set():
    def words(*values):
        return np.array(values, dtype=np.uint64)

    parts, roots = [[words(3, 7)], [words(7, 9), words(1)]], [np.array([2]), np.array([2, 0])]
    found = units_in_cells(parts, roots, 4, k=3)
    assert [cell.tolist() for cell in found] == [[1], [], [3, 7, 9], []]
    assert all(cell.dtype == np.uint64 for cell in found)
    assert [cell.tolist() for cell in units_in_cells(parts, roots, 3, k=2)] == [[1], [], [3, 7]]
    for wrong in ((parts, roots[:1]), (parts, [roots[0], np.array([2])])):
        with pytest.raises(ValueError, match="zip"):
            units_in_cells(*wrong, 4, k=3)


def test_counters_bound_the_records_of_a_unit():
    units = np.array([7, 7, 8, 7 + COUNTERS, 2**64 - 1], dtype=np.uint64)
    counters = record_counters(units)
    assert len(counters) == COUNTERS == 2**20
    assert (counters[7], counters[8], counters[-1], counters.sum()) == (3, 1, 1, 5)
    assert (record_counters(units[:2]) + record_counters(units[2:])).tolist() == counters.tolist()
