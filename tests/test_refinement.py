"""The last pass over a partition: hand-worked losses of releases, groups of k, seeds, refusals."""

import numpy as np
import polars as pl
import pytest
import slow
from conftest import command, reference_path
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.algorithms.refinement import MEDIAN, MODE, Variables, group_cost, refine
from shoal.core.errors import InputError
from shoal.core.measures import scaling
from shoal.core.progress import STOP, fresh_state
from shoal.kinds.hierarchy import Hierarchy
from shoal.kinds.kind import PLAIN, Embedding
from shoal.kinds.nominal import Nominal
from shoal.kinds.ordinal import Ordinal
from shoal.masking.group import variables_of

TOWNS = {"Bath": ["South", "all"], "Bristol": ["South", "all"], "York": ["North", "all"], "Leeds": ["North", "all"]}
COLUMNS = ["age", "job", "school", "town"]
KINDS = {"school": Ordinal(["none", "some", "much"]), "town": Hierarchy(TOWNS)}


def people(n=200, seed=0):
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "age": rng.integers(18, 80, n),
            "job": rng.choice(["clerk", "nurse", "smith", "cook"], n),
            "school": rng.choice(["none", "some", "much"], n),
            "town": rng.choice(sorted(TOWNS), n),
        }
    )


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_the_cost_of_a_group_equals_the_reference(data):
    n = data.draw(st.integers(1, 9))
    codes = np.array(data.draw(st.lists(st.tuples(*[st.integers(0, 3)] * 4), min_size=n, max_size=n)))
    counts = np.array([3, 1, 4, 2])
    kinds = [Nominal(), Ordinal(list(TOWNS)), Hierarchy(TOWNS), Hierarchy(TOWNS, "mode")]
    codings = [kind.coding("x", list(TOWNS), counts) for kind in kinds]
    numbers = np.array(data.draw(st.lists(st.floats(-9, 9), min_size=n, max_size=n)))
    X = np.column_stack([codes, numbers]).astype(np.float64)
    scale = scaling(X)
    variables = variables_of(X, Embedding((*codings, PLAIN)), scale)
    zeros = np.zeros(n, dtype=np.int64)
    expected = slow.released_cost(scale.apply(X)[:, [4]], range(n), zeros, "mean")
    for j, coding in enumerate(codings):
        expected += slow.released_cost(coding.coordinates, codes[:, j], zeros, coding.release, coding.lineage)
    count = np.zeros(9, dtype=np.int64)
    found = group_cost(variables, np.arange(n), n, np.empty(n), count)
    assert found == pytest.approx(expected, abs=1e-9)
    assert not count.any()


def test_similar_records_are_grouped():
    """Two groups of half a and half b, ranks in disorder: exchanged until what is released is what was there."""
    values = np.array([[0.0, 0], [1, 5], [0, 0], [1, 5], [0, 0], [1, 5]])
    squares = np.array([[[0.0, 2.0], [2.0, 0.0]]])
    variables = Variables(np.array([MODE, MEDIAN]), values, np.zeros(2, dtype=np.int64), squares,
                          np.zeros((1, 2, 1), dtype=np.int64))  # fmt: skip
    labels = refine(values, np.array([0, 0, 0, 1, 1, 1]), 3, variables, steps=100, seed=0, state=fresh_state())
    assert labels.tolist() == [0, 1, 0, 1, 0, 1]


@pytest.mark.parametrize("method", ["mdav", "path", "mst"])
def test_loss_falls_and_k_is_kept(method):
    before, after = (
        shoal.mask(people(), 4, columns=COLUMNS, kinds=KINDS, method=method, refine=steps) for steps in (0, 100)
    )
    assert after.loss < before.loss
    assert after.data.group_by(COLUMNS).len()["len"].min() >= 4
    assert after.sizes.min() >= 4
    assert after.sizes.sum() == 200
    assert shoal.assess(people(), after.data, columns=COLUMNS, kinds=KINDS).utility.loss == pytest.approx(after.loss)


@given(st.integers(2, 30), st.integers(2, 5), st.integers(0, 3), st.integers(0, 20))
@settings(max_examples=40, deadline=None)
def test_no_table_loses_more_or_breaks_k(n, k, seed, steps):
    if n < k:
        return
    asked = {"columns": COLUMNS, "kinds": KINDS, "method": "mdav", "seed": seed}
    plain, found = (shoal.mask(people(n, seed), k, **asked, refine=count) for count in (0, steps))
    assert found.loss <= plain.loss + 1e-9
    assert found.sizes.min() >= k


def test_the_seed_alone_decides():
    found = [shoal.mask(people(), 3, columns=COLUMNS, kinds=KINDS, refine=20, seed=seed) for seed in (1, 1, 2)]
    assert found[0].data.equals(found[1].data)
    assert not found[0].data.equals(found[2].data)


def test_units_are_counted_after_it():
    table = people().with_columns(person=pl.int_range(200) // 3)
    release = shoal.mask(table, 4, columns=COLUMNS, kinds=KINDS, refine=30, unit="person", identifiers=["person"])
    counted = release.data.with_columns(table["person"]).group_by(COLUMNS).agg(pl.col("person").n_unique())
    assert counted["person"].min() >= 4


def test_it_stops_on_request():
    state = fresh_state()
    state[STOP] = 1
    X = np.random.default_rng(0).normal(size=(60, 2))
    labels = np.arange(60) // 3
    variables = variables_of(X, Embedding.of_numbers(2), scaling(X))
    assert refine(X, labels, 3, variables, steps=10**9, seed=0, state=state).tolist() == labels.tolist()


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"refine": -1}, "must be a whole number of at least 0"),
        ({"refine": 2.5}, "must be a whole number"),
        ({"refine": 5, "importance": {"age": 2.0}}, "cannot be combined with 'importance'"),
        ({"refine": 5, "weights": "age", "columns": ["job"]}, "cannot be combined with 'weights'"),
        ({"refine": 5, "aggregate": "median"}, "requires aggregate='mean'"),
        ({"refine": 5, "columns": ["age", "school"], "kinds": {"school": KINDS["school"]},
          "method": "individual-ranking"}, "moves whole records"),
    ],
)  # fmt: skip
def test_refusals(asked, words):
    with pytest.raises(InputError, match=words):
        shoal.mask(people(), 3, **{"columns": COLUMNS, "kinds": KINDS, **asked})


def test_the_command_line_and_the_manifest(tmp_path):
    people().write_csv(tmp_path / "in.csv")
    words = ["mask", "in.csv", "-k", 4, "-c", "age", "-c", "job", "--refine", 30, "-o", "out.csv"]
    done = command(*words, "--manifest", "run.json", "--report", "page.html", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "same bytes" in command("mask", "--from-manifest", "run.json", cwd=tmp_path).stdout
    assert "--refine 30" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_adult():
    table = pl.read_csv(reference_path("adult"))[:3000]
    names = ["age", "education-num", "occupation", "race", "sex"]
    asked = {"columns": names, "kinds": {"education-num": Ordinal(range(1, 17))}, "method": "mdav"}
    plain, found = (shoal.mask(table, 5, **asked, refine=steps, keep=["fnlwgt"]) for steps in (0, 50))
    assert found.loss < 0.85 * plain.loss
