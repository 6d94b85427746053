"""The recount of released tables that other code made: counts and refusals."""

from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from shoal.core.errors import FileError, VerificationError
from shoal.kinds.nominal import Nominal
from shoal.kinds.number import Number
from shoal.masking import verification
from shoal.masking.confidential import Chosen, Promise
from shoal.masking.request import MaskRequest
from shoal.masking.roles import Columns
from shoal.masking.sums import read_rule
from shoal.masking.verification import check_sizes, count_unique, identical_records, recount, row_hashes, verify
from shoal.promises.closeness import Closeness
from shoal.promises.distinct_units import fingerprints
from shoal.promises.diversity import Diversity
from shoal.tables.formats.frames import open_table
from shoal.tables.identifiers import NUMBERED


class Parts:
    """Minimal engine for the recount: a released table in parts, and targets of a given size."""

    def __init__(self, frames, rows, forgotten):
        self.tables, self.rows, self.forgotten = [open_table(frame) for frame in frames], rows, forgotten

    @property
    def names(self):
        return self.tables[0].names

    def rows_of_a_target(self, numbers, *, counted):
        assert counted
        return self.rows

    def keep(self, function, *arguments, columns):
        self.read = columns
        firsts = np.cumsum([0, *(table.rows for table in self.tables)]).tolist()
        found = [
            function(table.only(columns), first, *arguments)
            for table, first in zip(self.tables, firsts[:-1], strict=True)
        ]
        self.arrays = [arrays for arrays, _ in found]
        return [known._replace(**self.forgotten) if self.forgotten else known for _, known in found]

    def regroup(self, how):
        """Bring records together like engines that send arrays of declared shapes."""
        dealt = [how.deal(part, arrays, how.own[part], *how.dealing) for part, arrays in enumerate(self.arrays)]
        self.targets = np.concatenate([targets for targets, _ in dealt])
        assert not len(self.targets) or 0 <= self.targets.min() <= self.targets.max() < how.targets
        for _, sent in dealt:
            rows = len(sent["words"])
            assert not rows or {n: (str(array.dtype), array.size // rows) for n, array in sent.items()} == how.sent
        assert how.answered == {}
        known = []
        for target in range(how.targets):
            sent = {
                name: np.concatenate([one[name][to == target] for to, one in dealt]).reshape(-1, width)
                for name, (_, width) in how.sent.items()
            }
            answers, found = how.gather(sent, None, *how.gathering)
            assert answers == {}
            known.append(found)
        return known


def counted(frames, k=2, masked=("x",), *, by=(), rows=100, **more):
    """Recount a release; defaults are those of a table that promises only k."""
    frames = frames if isinstance(frames, list) else [frames]
    kinds, names, zeros = more.get("kinds", {}), frames[0].columns, more.get("zeros", {})
    columns = Columns(
        masked=tuple(masked), by=tuple(by), weights=more.get("weights"), unit=more.get("unit"),
        kinds=tuple(kinds.get(name, Number()) for name in masked),
        given=frozenset(), released=tuple(more.get("planned", names)), importance=None, codes={},
        zeros=tuple(zeros),
        rules=tuple(map(read_rule, more.get("sums", ()))), totals=more.get("totals", False),
        confidential=tuple(Chosen(name, Number()) for name in more.get("confidential", ())),
    )  # fmt: skip
    request = MaskRequest(
        k=k, columns=list(masked), method=more.get("method", "mdav"), unit=more.get("unit"),
        output=more.get("output"),
    )  # fmt: skip
    plan = SimpleNamespace(
        request=request, columns=columns,
        rows=more.get("released", sum(map(len, frames))), zeros=np.array(list(zeros.values()), int),
        promise=Promise(models=more.get("models", ())), spellings=SimpleNamespace(codes=more.get("codes", {})),
    )  # fmt: skip
    buckets = [SimpleNamespace(new_zeros=np.array(new)) for new in more.get("new_zeros", [[0] * len(plan.zeros)])]
    engine = Parts(frames, rows, more.get("forgotten", {}))
    return recount(engine, plan, buckets, more.get("units")), engine


def table(**columns):
    return pl.DataFrame({name: list(cells) for name, cells in columns.items()})


# --- counting --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rows", [1, 2, 3, 100])
def test_groups_are_counted_across_parts_and_targets(rows):
    frames = [
        table(x=[1.0, 2.0, 1.0], y=[5, 5, 5]),
        table(x=[2.0, 1.0, 3.0], y=[5, 5, 5]),
        table(x=[3.0] * 2, y=[5] * 2),
    ]
    found, engine = counted(frames, 2, ["x", "y"], rows=rows)
    assert found == (0, {}, pytest.approx([0, 0]), {}, [], {}, {}, 0, None)
    assert len(engine.targets) == 8
    with pytest.raises(
        VerificationError, match=r"^\d of \d groups? of identical records ha(s|ve) fewer than k=3 records; "
    ):
        counted(frames, 3, ["x", "y"], rows=rows)


def test_columns_are_the_planned_ones_and_no_others():
    found, _ = counted(table(x=[1.0] * 3, y=[5] * 3), 3, planned=["x", "y"])
    assert found.singled_out == 0
    with pytest.raises(VerificationError, match=r"^Column 'y' is in the release but was not planned\. Nothing was"):
        counted(table(x=[1.0] * 3, y=[5] * 3), 3, planned=["x"])
    with pytest.raises(VerificationError, match=r"^Column 'y' is not in the release but was planned\. Nothing was"):
        counted(table(x=[1.0] * 3), 3, planned=["x", "y"])


def test_equal_records_meet_and_others_are_spread():
    frame = table(x=np.repeat(np.arange(40.0), 3))
    _, engine = counted(frame, 3, rows=10)
    assert all(len(set(group)) == 1 for group in engine.targets.reshape(40, 3).tolist())
    assert set(engine.targets.tolist()) == set(range(12))
    assert set(counted(frame, 3, rows=7)[1].targets.tolist()) <= set(range(18))  # 120 / 7, rounded up


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        ((2, 3, 3), "1 of 3 groups of identical records has fewer than k=3 records; the smallest has 2. Nothing was"),
        ((2, 1, 3), "2 of 3 groups of identical records have fewer than k=3 records; the smallest has 1. Nothing was"),
    ],
)
def test_a_refusal_says_how_many_groups_are_too_small(sizes, said):
    frame = table(x=np.repeat(np.arange(3.0), sizes))
    with pytest.raises(VerificationError, match=f"^{said} released.$"):
        counted(frame, 3)


def test_strata_are_counted_apart_and_by_their_values_not_their_codes():
    """Parts number their strata by themselves; those of equal values are one, others are not."""
    frames = [table(x=[1.0, 1.0], s=["b", "a"]), table(x=[1.0, 1.0], s=["a", "b"])]
    assert counted(frames, 2, by=["s"])[0].singled_out == 0
    with pytest.raises(VerificationError, match="1 of 3 groups"):
        counted([*frames, table(x=[1.0], s=["c"])], 2, by=["s"])
    two = [frame.with_columns(t=pl.Series([1, 1])) for frame in frames]
    assert counted(two, 2, by=["s", "t"])[0].singled_out == 0
    with pytest.raises(VerificationError, match="4 of 4 groups of identical records have fewer than k=2"):
        counted([two[0], two[1].with_columns(t=pl.Series([2, 2]))], 2, by=["s", "t"])


def test_columns_masked_separately_are_counted_separately():
    frame = table(x=[1.0, 1.0, 2.0, 2.0], y=[5.0, 6.0, 5.0, 6.0], s=[0, 0, 0, 0])
    with pytest.raises(VerificationError, match="4 of 4 groups"):
        counted(frame, 2, ["x", "y"])
    found, engine = counted(frame, 2, ["x", "y"], by=["s"], method="individual-ranking")
    assert found.singled_out == 4  # told all the same
    assert engine.read == ["x", "y", "s"]
    for column in ("x", "y"):
        with pytest.raises(VerificationError, match="2 of 3 groups"):
            counted(
                frame.with_columns(pl.Series(column, [1.0, 1.0, 2.0, 3.0])), 2, ["x", "y"], method="individual-ranking"
            )
    with pytest.raises(VerificationError, match="2 of 3 groups"):
        counted(frame.with_columns(s=pl.Series([0, 0, 0, 1])), 2, ["x", "y"], by=["s"], method="individual-ranking")


def test_units_and_values_in_two_unicode_forms_are_one():
    one, two = "Jos\u00e9", "Jose\u0301"
    with pytest.raises(VerificationError, match="fewer than k=2 units; the smallest has 1"):
        counted(table(x=[1.0] * 2 + [2.0] * 2, u=[one, two, one, "Ann"]), 2, unit="u")
    frames = [table(x=[1.0, 2.0, 2.0], c=[one, one, "Ann"]), table(x=[1.0], c=[two])]
    with pytest.raises(VerificationError, match="Nothing was released"):
        counted(frames, 2, confidential=["c"], models=((0, Diversity(2)),))
    assert counted(frames, 2, confidential=["c"])[0].reached["c"]["diversity"] == 1


def test_strata_and_categories_are_counted_as_they_are_written():
    one, two = "Jos\u00e9", "Jose\u0301"
    for asked in ({"by": ["s"]}, {"masked": ["x", "s"], "kinds": {"s": Nominal()}}):
        counted(table(x=[1.0] * 4, s=[one, one, two, two]), 2, **asked)
        with pytest.raises(VerificationError, match="fewer than k=3 records"):
            counted(table(x=[1.0] * 4, s=[one, one, two, two]), 3, **asked)


def test_units_are_counted_not_their_records():
    frames = [table(x=[1.0, 1.0], id=["a", "b"]), table(x=[1.0, 2.0, 2.0, 2.0], id=["a", "c", "d", "e"])]
    assert counted(frames, 2, unit="id")[0].singled_out == 0
    with pytest.raises(
        VerificationError, match="1 of 2 groups of identical records has fewer than k=3 units; the small"
    ):
        counted(frames, 3, unit="id")
    with pytest.raises(VerificationError, match="fewer than k=3 units"):
        counted(frames, 3, unit="id", rows=2)


def test_units_that_are_not_released_are_read_from_the_original():
    frame, units = table(x=[1.0, 1.0, 1.0, 2.0, 2.0, 2.0]), np.array([7, 8, 8, 7, 8, 9], dtype=np.uint64)
    assert counted(frame, 2, unit="id", units=units)[0].singled_out == 0
    with pytest.raises(VerificationError, match="1 of 2 groups of identical records has fewer than k=3 units"):
        counted(frame, 3, unit="id", units=units)
    # A column of the release takes precedence over other sources.
    with pytest.raises(VerificationError, match="2 of 2 groups of identical records have fewer than k=3 units"):
        counted(frame.with_columns(id=pl.Series([1, 2, 2, 1, 2, 2])), 3, unit="id", units=units)


def test_records_are_singled_out_by_what_an_outsider_can_know():
    frames = [table(x=[1.0, 1.0, 1.0], z=["a", "b", "c"]), table(x=[1.0, 2.0, 2.0], z=["b", "b", "b"])]
    found, engine = counted(frames, 2)
    assert found.singled_out == 2
    assert engine.read == ["x", "z"]
    whole = table(x=[1.0, 1.0], s=["a", "a"])
    found, engine = counted(whole, 2, by=["s"])
    assert engine.read == ["x", "s"]
    assert set(engine.arrays[0]) == {"words", "codes"}  # only the columns that form groups


def test_no_outsider_knows_sensitive_columns_weights_or_units():
    frame = table(x=[1.0] * 4, z=["a", "b", "a", "a"], u=[1, 2, 3, 4], w=[1.5, 2.5, 3.5, 4.5], ill=list("abcd"))
    assert counted(frame, 2)[0].singled_out == 4
    roles = {"confidential": ["ill"], "unit": "u", "weights": "w"}
    for name, column in (("confidential", "ill"), ("unit", "u"), ("weights", "w")):
        others = {role: value for role, value in roles.items() if role != name}
        assert counted(frame.drop("z"), 2, **others)[0].singled_out == 4, column
        assert counted(frame.drop("z", column), 2, **others)[0].singled_out == 0
    assert counted(frame, 2, **roles)[0].singled_out == 1
    assert counted(frame.drop("z"), 2, **roles)[0].singled_out == 0
    # A weight that is masked too, or a stratum, has a role that outsiders know.
    ranked = {"method": "individual-ranking", "weights": "w"}
    frame = table(x=[1.0, 1.0, 2.0, 2.0], w=[1.0, 2.0, 1.0, 2.0])
    assert counted(frame, 2, ["x", "w"], **ranked)[0].singled_out == 4
    assert counted(frame.with_columns(y=pl.lit(1.0)), 2, ["x", "y"], **ranked)[0].singled_out == 0


@pytest.mark.parametrize("rows", [1, 3, 100])
def test_units_are_unique_by_all_their_records(rows):
    """Units u and v have the same records in different order, w only one of them, x one of them twice, y others."""
    records = {"u": "ab", "v": "ba", "w": "a", "x": "aa", "y": "bc", "z": "a"}
    cells = [(unit, record) for unit, own in records.items() for record in own]
    units, values = zip(*cells, strict=True)
    frame = table(x=[1.0] * len(cells), z=values, unit=units, pay=range(len(cells)))
    roles = {"unit": "unit", "confidential": ["pay"], "rows": rows}
    assert counted(frame, 2, **roles)[0].unique_units == (2, 6)
    for parts in ([frame[:1], frame[1:]], [frame[1::2], frame[::2]], [frame[6:], frame[:0], frame[:6]]):
        assert counted(parts, 2, **roles)[0].unique_units == (2, 6)
    assert counted(frame, 2, unit="unit", rows=rows)[0].unique_units == (6, 6)  # pay is known
    assert counted(frame.drop("z"), 2, **roles)[0].unique_units == (0, 6)  # two have one record, four have two
    assert counted(frame.drop("z"), 2, **{**roles, "unit": None})[0].unique_units is None
    dropped = np.arange(len(frame), dtype=np.uint64)
    assert counted(frame.drop("unit"), 2, **roles, units=dropped)[0].unique_units is None  # nothing links records


@pytest.mark.parametrize(
    ("one", "two", "alike"),
    [
        ([1, 2], [2, 1], True),
        ([1, 2, 2], [2, 1, 2], True),
        ([1, 1], [2, 2], False),
        ([1, 1, 1], [1], False),
        ([1, 2], [2], False),
        ([1, 4], [2, 3], False),  # even if the sums of their words are equal
    ],
)
def test_units_have_the_same_fingerprint_if_they_have_the_same_records(one, two, alike):
    units = np.repeat(np.array([9, 7], dtype=np.uint64), [len(one), len(two)])
    records = np.array([*one, *two], dtype=np.uint64)
    order = np.random.default_rng(0).permutation(len(units))
    words = fingerprints(units[order], records[order])
    assert len(words) == 2
    assert (words[0] == words[1]) == alike
    assert records.tolist() == [*one, *two], "they are not changed"


def test_units_are_distinguished_by_masked_columns_and_strata():
    frame = table(x=[1.0, 1.0, 2.0, 2.0], s=[5, 6, 5, 6], unit=list("abcd"))
    ranked = {"method": "individual-ranking", "unit": "unit"}
    assert counted(frame, 2, ["x", "s"], **ranked)[0].unique_units == (4, 4)
    assert counted(frame.with_columns(s=pl.lit(5)), 2, ["x", "s"], **ranked)[0].unique_units == (0, 4)
    assert counted(frame.with_columns(x=pl.lit(1.0)), 2, by=["s"], unit="unit")[0].unique_units == (0, 4)


def test_weights_that_no_other_record_has_are_counted(monkeypatch):
    frames = [table(x=[1.0] * 3, w=[1.5, 2.5, 2.5]), table(x=[1.0] * 3, w=[1.5, 3.5, 4.5])]
    assert counted(frames, 2, weights="w")[0].unique_weights == 2
    assert counted(frames, 2)[0].unique_weights == 0  # no weights
    assert counted([frame.drop("w") for frame in frames], 2, weights="w")[0].unique_weights == 0  # not released
    monkeypatch.setattr(verification, "WEIGHTS", 1000)
    rng = np.random.default_rng(0)
    weights = np.r_[rng.uniform(size=5000), np.repeat(rng.uniform(size=2500), 2)]
    frame = table(x=np.ones(10_000), w=rng.permutation(weights))
    found = counted([frame[:6000], frame[6000:]], 2, weights="w")[0].unique_weights
    assert found == pytest.approx(5000, rel=0.15)
    assert found % 10 == 0  # a tenth of the weights was counted
    assert found != 5000


# --- promises other than k -------------------------------------------------------------------------------------------


def test_a_lost_record_is_detected():
    with pytest.raises(FileError, match=r"^Output out.csv has 3 records instead of 4. Nothing was released.$"):
        counted([table(x=[1.0, 1.0]), table(x=[1.0])], 2, released=4, output="out.csv")


@pytest.mark.parametrize("parts", [1, 2])
def test_missing_cells_are_spelled_in_one_way_in_all_parts(parts):
    nan, null = table(x=[np.nan] * 2, y=[1.0] * 2), table(x=[None] * 2, y=[1.0] * 2).cast(pl.Float64)
    assert counted([nan, nan], 2, ["x", "y"])[0].singled_out == 0
    assert counted([null, null], 2, ["y", "x"])[0].singled_out == 0
    frames = [nan, null] if parts == 2 else [pl.concat([nan, null])]
    with pytest.raises(VerificationError, match=r"^Column 'x' has missing cells with different spellings. Noth"):
        counted(frames, 2, ["y", "x"])
    # Each column has its own spelling.
    assert counted(nan.with_columns(y=null["x"]), 2, ["x", "y"])[0].singled_out == 0


@pytest.mark.parametrize(("value", "code"), [("a", "?"), (1, 9), (1.0, 9)])
def test_missing_categories_are_spelled_in_one_way_too(value, code):
    """Numbers are categories where the user says so."""
    frame = table(x=[value, value, None, None, code, code])
    kinds = {"x": Nominal()}
    assert counted(frame, 2, kinds=kinds)[0].singled_out == 0
    with pytest.raises(VerificationError, match="Column 'x' has missing cells with different spellings"):
        counted(frame, 2, kinds=kinds, codes={"x": code})


def test_a_code_for_missing_is_missing():
    frame = table(x=[-9.0, -9.0, None, None, 1.0, 1.0])
    assert counted(frame, 2)[0].singled_out == 0
    with pytest.raises(VerificationError, match="Column 'x' has missing cells with different spellings"):
        counted(frame, 2, codes={"x": -9})
    assert counted(frame.filter(pl.col("x").is_not_null()), 2, codes={"x": -9})[0].singled_out == 0


def test_integers_may_look_like_missing_cells():
    assert counted(table(x=[-1, -1, 5, 5]), 2)[0].singled_out == 0


def test_zeros_are_kept_in_number():
    frames = [table(x=[0.0, 0.0], y=[0.0, 0.0]), table(x=[0.0, 2.0, 2.0], y=[0.0, 1.0, 1.0])]
    asked = {"masked": ["x", "y"], "k": 2}
    counted(frames, **asked, zeros={"y": 3, "x": 3})
    counted(frames, **asked, zeros={"y": 2, "x": 0}, new_zeros=[[1, 1], [0, 2]])
    for zeros, said in (
        ({"x": 3, "y": 4}, "'y' has 3 zeros instead of 4"),
        ({"x": 2, "y": 3}, "'x' has 3 zeros instead of 2"),
    ):
        with pytest.raises(VerificationError, match=f"^Column {said}. Nothing was released.$"):
            counted(frames, **asked, zeros=zeros)
    with pytest.raises(VerificationError, match="'y' has 3 zeros instead of 5"):
        counted(frames, **asked, zeros={"x": 2, "y": 3}, new_zeros=[[1, 1], [0, 1]])


def test_sums_are_kept_by_every_record():
    right, wrong = table(a=[1.0] * 2, b=[2.0] * 2, t=[3.0] * 2), table(a=[1.0] * 2, b=[2.0] * 2, t=[3.5] * 2)
    names = ["a", "b", "t"]
    counted([right, right], 2, names, sums=["t = a + b", "b = t - a"])
    with pytest.raises(VerificationError, match=r"^Rule 't = a \+ b' is broken by 4 records. Nothing was released.$"):
        counted([wrong, right, wrong], 2, names, sums=["t = a + b"])
    with pytest.raises(VerificationError, match=r"^Rule 'b = t - a' is broken by 2 records"):
        counted([right, wrong], 2, names, sums=["b = t - a", "t = a + b"])


@pytest.mark.parametrize("forgotten", ["spellings", "zeros", "broken"])
def test_a_part_without_an_answer_does_not_count_as_correct(forgotten):
    frame = table(x=[0.0, 0.0], y=[0.0, 0.0])
    asked = {"masked": ["x", "y"], "zeros": {"x": 4, "y": 4}, "sums": ["x = y"]}
    counted([frame, frame], **asked)
    with pytest.raises(ValueError, match="zip"):
        counted([frame, frame], **asked, forgotten={forgotten: ()})


def test_totals_are_those_of_the_release():
    frames = [table(x=[1, 1], c=["a", "a"], y=[5, 5]), table(x=[4, 4], c=["b", "b"], y=[7, 7])]
    kinds = {"c": Nominal()}
    assert counted(frames, 2, ["x", "c", "y"], kinds=kinds, totals=True)[0].totals.tolist() == [10, 0, 24]
    assert counted(frames, 2, ["x", "c", "y"], kinds=kinds)[0].totals.tolist() == [0, 0, 0]


def test_confidential_values_keep_promises():
    frames = [table(x=[1.0, 1.0, 2.0], ill=["flu", "gout", "flu"]), table(x=[2.0, 2.0], ill=["cold", "flu"])]
    found, _ = counted(frames, 2, confidential=["ill"], models=((0, Diversity(2)),))
    shares = np.array([2, 1]) / 3
    entropy = float(np.exp(-(shares * np.log(shares)).sum()))
    assert found.reached == {
        "ill": {"diversity": 2.0, "entropy": pytest.approx(entropy), "closeness": pytest.approx((0.3 + 0.2 + 0.1) / 2)}
    }
    with pytest.raises(VerificationError, match="2 of 2 groups of identical records lack at least 3 different values"):
        counted(frames, 2, confidential=["ill"], models=((0, Diversity(3)),))
    with pytest.raises(
        VerificationError, match=r"1 of (1 group|2 groups) of identical records lacks a distribution at most 0.25"
    ):
        counted(frames, 2, confidential=["ill"], models=((0, Closeness(0.25)),), rows=1)


def test_groups_that_share_a_sensitive_value_are_counted_over_all_parts():
    """The first group shares it whole, the second all but one of ten, the third all but two of ten."""
    ill = [*["flu"] * 2, *["flu"] * 4, "gout", *["flu"] * 5, *["flu"] * 8, "gout", "cold"]
    frame = table(x=np.repeat([1.0, 2.0, 3.0], [2, 10, 10]), ill=ill, pay=range(22))
    for parts, rows in (([frame], 100), ([frame[::2], frame[1::2]], 100), ([frame[:5], frame[5:]], 1)):
        found, _ = counted(parts, 2, confidential=["ill", "pay"], rows=rows)
        assert found.homogeneous == {"ill": (1, 3), "pay": (0, 3)}
        assert found.concentrated == {"ill": (2, 3), "pay": (0, 3)}


def test_confidential_values_are_compared_with_those_of_all_parts():
    """Every target has the groups that came to it, but the distribution is that of the table."""
    frame = table(x=np.repeat(np.arange(6.0), 4), ill=["a", "b", "c", "d"] * 6, pay=[1, 2, 3, 4] * 6)
    found = [
        counted(frames, 4, confidential=["ill", "pay"], models=((1, Closeness(0.1)),), rows=rows)[0].reached
        for frames in (frame, [frame[:9], frame[9:]]) for rows in (100, 5)
    ]  # fmt: skip
    assert all(one == found[0] for one in found)
    assert found[0]["ill"] == {"diversity": 4.0, "entropy": pytest.approx(4.0), "closeness": 0.0}


# --- reports ---------------------------------------------------------------------------------------------------------


def numbered(first, last, step=1):
    values = range(first, last, step)
    return table(x=[1.0] * len(values), no=values)


def test_a_numbering_is_recognised_in_any_parts():
    halves = [numbered(1, 60, 2), numbered(2, 61, 2)]
    assert counted(halves)[0].identifiers == {"no": NUMBERED}
    assert counted([*halves, numbered(1, 1)])[0].identifiers == {"no": NUMBERED}  # a part without records
    assert counted([*halves, numbered(200, 400, 3)])[0].identifiers == {}
    twice = [halves[0], halves[0]]
    assert counted(twice)[0].identifiers == {}
    assert counted([halves[0], halves[1].with_columns(no=pl.lit(0.5))])[0].identifiers == {}


def test_an_identifier_looks_like_one_in_every_part_and_is_not_masked():
    names = [f"{chr(97 + i % 26)}{i}@example.org" for i in range(30)]
    mail, other = table(x=[1.0] * 30, z=names, y=names), table(x=[1.0] * 30, z=["-"] * 30, y=names)
    found = counted([mail, mail], masked=["x"])[0].identifiers
    assert set(found) == {"z", "y"}
    assert "e-mail" in found["z"]
    assert set(counted([mail, other])[0].identifiers) == {"y"}
    words = [a + b + c for a in "bdfg" for b in "aeiou" for c in "klm"][:30]
    assert counted(table(x=[1.0] * 60, surname=words * 2, town=words * 2))[0].identifiers == {
        "surname": "the column name suggests a name"
    }
    alike = table(x=[1.0] * 30, z=["a@b.org"] * 30)
    assert "e-mail" in counted(alike)[0].identifiers["z"]
    assert counted(alike, masked=["x", "z"], kinds={"z": Nominal()})[0].identifiers == {}
    assert counted(alike, by=["z"])[0].identifiers == {}


def test_formulas_are_reported_for_text_in_csv_files():
    frames = [
        table(x=[1.0] * 2, a=["=1+1", "b"], c=["@x", "@x"], d=["a", "a"]),
        table(x=[1.0] * 2, a=["c", "=2"], c=["@x"] * 2, d=["-a"] * 2),
    ]
    kinds = {"c": Nominal()}
    assert counted(frames, masked=["x", "c"], kinds=kinds, output="out.csv")[0].formulas == ["a", "c", "d"]
    assert counted(frames, masked=["x", "c"], kinds=kinds, output="out.parquet")[0].formulas == []


# --- counting by values alone ----------------------------------------------------------------------------------------


def test_hashes_of_records_are_those_of_their_cells():
    one = pl.DataFrame({"a": ["x", "y", "x"], "b": [1, 1, 1]}, schema={"a": pl.Categorical, "b": pl.Int64})
    two = pl.DataFrame({"a": ["y", "x", "z"], "b": [1, 1, 1]}, schema={"a": pl.Categorical, "b": pl.Int64})
    first, second = row_hashes(one), row_hashes(two)
    assert first[0] == first[2] == second[1] != first[1] == second[0]
    assert second[2] not in first
    assert row_hashes(one.cast(pl.String)[:, :1])[0] != first[0]
    assert count_unique(np.concatenate([first, second])) == 1


def test_sizes_are_refused_below_k_and_not_at_k():
    check_sizes(np.array([3, 4]), 3)
    check_sizes(np.array([], dtype=np.int64), 3)
    with pytest.raises(
        VerificationError, match=r"1 of 2 groups of identical records has fewer than k=4 units; .* has 3"
    ):
        check_sizes(np.array([3, 4]), 4, "units")


@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.float32, np.uint64, np.bool_, object, "U1"])
def test_records_are_equal_in_arrays_of_any_type(dtype):
    values = np.array([[1, 0], [1, 1], [1, 0], [0, 1]]).astype(dtype)
    assert identical_records(values).tolist() == [0, 1, 0, 2]
    assert identical_records(np.asfortranarray(values)).tolist() == [0, 1, 0, 2]
    assert identical_records(list(values.T)).tolist() == [0, 1, 0, 2]
    assert identical_records(values, np.array(["a", "a", "b", "a"])).tolist() == [0, 1, 2, 3]
    verify(values[[0, 2]], 2)
    with pytest.raises(VerificationError, match="2 of 2 groups"):
        verify(values[[0, 2]], 2, ["a", "b"])
