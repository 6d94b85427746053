"""A new kind is one class and one entry: masking, options, manifests and the reference know it at once."""

import sys
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import ClassVar

import numpy as np
import polars as pl
import pytest

import shoal
from shoal.cli.terminal import values_of, with_parameters
from shoal.core.measures import centroids
from shoal.kinds.kind import Coding, Kind
from shoal.kinds.kind_registry import KINDS, KindEntry, from_options
from shoal.masking.request import MaskRequest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "docs"))
TABLE = pl.DataFrame({"wind": [350.0, 10.0, 170.0, 190.0], "speed": [1.0, 2.0, 3.0, 4.0]})


class AngleCoding(Coding):
    """The sine and the cosine of degrees."""

    standardised: ClassVar = False
    width = 2

    def place(self, X, j, Z):
        return np.column_stack([np.sin(np.radians(X[:, j])), np.cos(np.radians(X[:, j]))])

    def represent(self, X, j, labels, means, weights):
        sine, cosine = centroids(self.place(X, j, X), labels, weights).T
        return np.degrees(np.arctan2(sine, cosine)).round(9) % 360


@dataclass(frozen=True)
class Angle(Kind):
    """Directions around a circle; the middle direction of a group is released."""

    word = "angle"
    holds = "angles"
    represented_by = "the middle direction"

    @classmethod
    def from_plain(cls, plain):
        return cls() if plain == "angle" else None

    def fit(self, name, names, parts):
        return AngleCoding(), [None] * len(parts)


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    entry = KindEntry(f"{__name__}:Angle", "--angle", "COLUMN", "Column of directions.", "direction", ("integer",))
    monkeypatch.setitem(KINDS, "angle", entry)


@pytest.mark.parametrize("kind", [Angle(), "angle"])
def test_it_masks_and_is_recorded(kind, tmp_path):
    release = shoal.mask(TABLE, 2, columns=["wind", "speed"], kinds={"wind": kind})
    assert release.data["wind"].to_list() == [0.0, 0.0, 180.0, 180.0]
    assert release.kinds == {"wind": "angle"}
    assert "wind (angle)" in str(release)
    assert release.parameters["kinds"] == {"wind": "angle"}
    assert "--angle wind" in release.command("in.csv", "out.csv")
    TABLE.write_csv(tmp_path / "in.csv")
    out = tmp_path / "out.csv"
    stored = shoal.mask(tmp_path / "in.csv", 2, columns=["wind", "speed"], kinds={"wind": kind}, output=out)
    manifest = stored.manifest(tmp_path / "m.json", source=tmp_path / "in.csv", output=out)
    from shoal.masking.manifest import read_manifest

    assert read_manifest(manifest).content["parameters"]["kinds"] == {"wind": "angle"}
    assert "the middle direction (angle)" in release.report(tmp_path / "r.html", original=TABLE).read_text()


def test_the_command_line_and_the_reference_list_it():
    from reference_pages import parameter_page

    @with_parameters(MaskRequest)
    def run(**values: object) -> None:
        assert values_of(MaskRequest, values)["kinds"] == {"wind": Angle()}

    options = signature(run).parameters
    assert "angle" in options
    run(**{name: option.default for name, option in options.items()} | {"angle": ["wind"]})
    assert from_options({"angle": ["wind"]}) == {"wind": Angle()}
    assert "`--angle`" in parameter_page()


def test_the_page_offers_it():
    from shoal.app.kind_dialogs import kinds_for

    column = shoal.inspect(TABLE, 2).columns[0]
    assert kinds_for(column)["angle"] == "direction"
