"""Odd inputs that are not tables of a file: names, arrays, encodings, ledgers, manifests. Used, or refused in words.

``python -m fuzz.inputs FIRST COUNT`` (in ``tests/``) runs cases and prints defects with the number of their case.
"""

import copy
import encodings.aliases
import json
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import pandas as pd

import shoal
from shoal.masking.manifest import read_manifest
from shoal.privacy.ledger import spend

from .columns import some

__all__ = ["KINDS", "run_input"]

NAMES = [0, 1, 2, True, 1.0, "1", "x", np.nan, None, ("a", 1), "2", 10**20]
CODECS = ["rot13", "hex", "zlib", "bz2", "base64", "uu", "quopri", "undefined", "idna", "punycode", "", "a\0b", 5, b"a"]
ENCODINGS = [*CODECS, *sorted(set(encodings.aliases.aliases.values()))]
ODD = [
    5, True, None, -1, 1.5, 10**400, "", "x", [], [1], [[1]], [None], {}, {"x": 5}, {"x": None}, {"x": []},
    {"x": [["a"], ["b"]]}, {"x": ["a", "a"]}, {"x": [{}]}, {"x": {"ways": 3, "release": "mode"}},
    {"x": {"ways": "/etc/hosts", "release": "mode"}}, {"x": {"ways": {"a": 5}, "release": "mode"}},
    {"x": {"ways": {"a": [["b"]]}, "release": "mode"}}, {"x": {"ways": {}, "release": []}}, {"y": "nominal"},
]  # fmt: skip


def _names(rng, _):
    """Return the masking of a pandas table whose columns have names of any type."""
    names = pd.Index([some(rng, NAMES) for _ in range(3)], dtype=object)
    table = pd.DataFrame(rng.normal(size=(12, 3)), columns=names)
    asked = {"identifiers": [some(rng, NAMES)]} if rng.random() < 0.6 else {"columns": [some(rng, NAMES)]}
    return lambda: shoal.mask(table, 3, **asked)


def _arrays(rng, _):
    """Return the masking of an array of any type and subclass, with masked cells."""
    kind = some(rng, [np.longdouble, np.float16, np.float32, ">f8", "i8", "u8", "u1", bool, complex, object])
    array = (50 * rng.random(size=(12, 2))).astype(kind)
    if array.dtype == np.uint64 and rng.random() < 0.5:
        array[0, 0] = 2**64 - 1
    masked = np.ma.masked_array(array, mask=rng.random(size=(12, 2)) < some(rng, [0.0, 0.1]))
    given = some(rng, [array, np.matrix(array), masked])

    def run():
        release = shoal.mask(given, 3, missing="drop", max_left_out=1)
        hidden = np.ma.getmaskarray(given).any(axis=1).sum()
        assert release.records == 12 - hidden, "masked cells are missing"

    return run


def _encoding(rng, folder):
    """Return the masking of a CSV file with a declared encoding, which may be a codec that packs bytes."""
    (folder / "in.csv").write_text("x,y\n" + "".join(f"{i},{i % 3}\n" for i in range(12)))
    encoding, engine = some(rng, ENCODINGS), some(rng, ["memory", "local"])
    return lambda: shoal.mask(
        folder / "in.csv", 3, columns=["x"], encoding=encoding, engine=engine, output=folder / "out.csv"
    )


def _integers(rng, folder):
    """Return the masking of a CSV file with integers at the limits of 64 bits."""
    near = some(rng, [2**63 - 1, 2**63, -(2**63), 2**64 - 1, 2**53])
    cells = [near + int(shift) for shift in rng.integers(-2000, 1, size=12)]
    (folder / "in.csv").write_text("x\n" + "".join(f"{cell}\n" for cell in cells))
    integers = some(rng, ["round", "totals", "float"])
    return lambda: shoal.mask(folder / "in.csv", 3, columns=["x"], integers=integers, output=folder / "out.csv")


def _ledger(rng, folder):
    """Return a budget that is spent in a ledger that is damaged in one place."""
    path = folder / "ledger.json"
    details = {"dataset": "d", "schema": ["x", "y"], "columns": ["x"], "unit": None}
    spend(path, 0.5, 2.0, details, new=True)
    content = json.loads(path.read_text())
    place = some(rng, [content, content["entries"][0]])
    place[some(rng, [*place])] = some(rng, ODD)
    text = json.dumps(content)
    how = int(rng.integers(4))
    if how == 0:
        text = "[" * 100_000 + text + "]" * 100_000
    elif how == 1:
        text = text.replace("{", '{"epsilon": 0.1, "epsilon": 0.2, ', 1)
    path.write_text(text)
    return lambda: spend(path, 0.5, None, details)


def _manifest(rng, folder):
    """Return the run of a manifest that is damaged in one place."""
    pd.DataFrame({"x": rng.normal(size=12), "word": list("aabbccaabbcc")}).to_csv(folder / "in.csv", index=False)
    asked = {"columns": ["x", "word"], "kinds": {"word": "nominal"}, "method": "mdav", "rest": "keep"}
    release = shoal.mask(folder / "in.csv", 3, output=folder / "out.csv", **asked)
    release.manifest(folder / "run.json", source=folder / "in.csv", output=folder / "out.csv")
    content = json.loads((folder / "run.json").read_text())
    place = some(rng, [content["parameters"], content["parameters"], content, content["input"]])
    key = "kinds" if "kinds" in place and rng.random() < 0.4 else some(rng, [*place])
    odd = copy.deepcopy(some(rng, ODD))
    place[key] = {"word": odd["x"]} if key == "kinds" and isinstance(odd, dict) and "x" in odd else odd
    (folder / "bad.json").write_text(json.dumps(content))

    def run():
        recorded = read_manifest(folder / "bad.json")
        request = recorded.request(output=folder / "again.csv")
        shoal.masking.mask.mask_request(recorded.source(None), request)

    return run


KINDS = (_names, _arrays, _encoding, _integers, _ledger, _manifest)


def run_input(number):
    """Return the class of a case and its message."""
    rng = np.random.default_rng((2028, number))
    make = KINDS[number % len(KINDS)]
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = make(rng, Path(folder))
        try:
            run()
        except shoal.ShoalError as error:
            clear = str(error).endswith((".", "?", ".)")) and "\n" not in str(error)
            return ("refused" if clear else "unclear"), f"{make.__name__}: {error}"
        except BaseException:  # noqa: BLE001 - every other exception is a defect
            return "raw", f"{make.__name__}: {traceback.format_exc(limit=-4)}"
    return "used", make.__name__


def main(arguments):
    """Run cases; return 1 if there was a defect."""
    total: Counter[str] = Counter()
    for number in range(int(arguments[0]), int(arguments[0]) + int(arguments[1])):
        kind, said = run_input(number)
        total[kind] += 1
        if kind in ("raw", "unclear"):
            print(f"{kind} {number}: {said}", flush=True)  # noqa: T201
    print(dict(total))  # noqa: T201
    return int(total["raw"] + total["unclear"] > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
