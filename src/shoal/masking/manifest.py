"""The manifest of a run, and the command and the Python call that repeat the run."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shlex
from collections.abc import Mapping
from dataclasses import Field, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.algorithms.registry import ALL_METHODS, find
from shoal.core.errors import FileError, InputError, VerificationError, closest
from shoal.core.messages import parameter, setting
from shoal.core.version import __version__
from shoal.kinds.kind_registry import KINDS, as_option
from shoal.masking.request import MaskRequest, not_recorded, parameters
from shoal.tables.databases import is_database, without_password
from shoal.tables.files import DatabaseTable, named_source, sha256
from shoal.tables.outputs import written_beside, written_path
from shoal.tables.sources import find_paths

if TYPE_CHECKING:
    from shoal.masking.release import Release

__all__ = [
    "LIBRARIES",
    "PARAMETERS",
    "Recorded",
    "as_call",
    "as_command",
    "as_json",
    "described",
    "plain",
    "read_manifest",
    "relative_to",
    "versions",
    "write_manifest",
]

LIBRARIES = ("numpy", "numba", "polars", "pyarrow", "narwhals")
# Names of the JSON types in messages.
WORDS = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    list: "a list of names",
    dict: "an object",
    NoneType: "null",
}
# Values that reproduce version 0.2, whose manifests lack these parameters.
EARLIER = {"small": "error", "rest": "keep", "decimals": "all", "max_left_out": 1}
# Required keys and their JSON types; a key that may be null may be missing.
CONTENT: dict[str, tuple[type, ...]] = {
    "shoal": (str,),
    "versions": (dict,),
    "input": (dict,),
    "output": (dict,),
    "parameters": (dict,),
}
FILE: dict[str, tuple[type, ...]] = {"path": (str,), "sha256": (str,)}
# The parameters that a manifest sets; none of them names a file or a machine.
PARAMETERS: dict[str, tuple[type, ...]] = {
    item.name: item.metadata["stored"] for item in parameters() if item.metadata["stored"]
}


def write_manifest(
    release: Release,
    path: Path,
    *,
    source: str | os.PathLike[str],
    output: str | os.PathLike[str],
    name: str | None = None,
) -> None:
    """Write the manifest of a release, with paths relative to its folder; `name` replaces the path of the source."""
    place = without_password(os.fspath(source)) if is_database(source) else relative_to(source, path)
    content = {
        **described(release),
        "input": {"path": name or place, **digests(source, release.parameters["query"])},
        "output": {"path": relative_to(output, path), "sha256": sha256(written_path(output))},
    }
    with written_beside(path) as temporary:
        temporary.write_text(as_json(content) + "\n", encoding="utf-8")


def digests(source: str | os.PathLike[str], query: str | None = None) -> dict[str, Any]:
    """Return the SHA-256 of a source: a file, the result of a database query, or the list of files of a folder or glob.

    For a folder or a glob, also return the SHA-256 of each file.
    """
    table = named_source(source)
    if isinstance(table, DatabaseTable):
        return {"sha256": table.digest(query)}
    if Path(source).is_file():
        return {"sha256": sha256(source)}
    files = {path.name: sha256(path) for path in files_of(source)}
    lines = "".join(f"{digest}  {name}\n" for name, digest in files.items())
    return {"sha256": hashlib.sha256(lines.encode()).hexdigest(), "files": files}


def files_of(source: str | os.PathLike[str]) -> list[Path]:
    """Return the files of a path, a folder or a glob."""
    return [Path(source)] if Path(source).is_file() else find_paths(source)


def versions() -> dict[str, str]:
    """Return the versions of Python and of the libraries on which results depend."""
    return {"python": platform.python_version(), **{name: version(name) for name in LIBRARIES}}


def described(release: Release) -> dict[str, Any]:
    """Return the content of a manifest without the input and output files."""
    return {
        "shoal": __version__,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": versions(),
        "parameters": dict(release.parameters),
        "result": {
            "records": release.records,
            "groups": release.groups,
            "loss": release.loss,
            "partition_loss": release.partition_loss,
            "bound": release.bound,
            "gap": release.gap,
            "status": release.status,
            "column_loss": {str(name): loss for name, loss in release.column_loss.items()},
            "group_sizes": {str(size): count for size, count in release.size_histogram.items()},
            "reached": {str(name): dict(figures) for name, figures in release.reached.items()},
            "verdict": {
                "level": release.verdict.level,
                "reasons": [vars(reason) for reason in release.verdict.reasons],
            },
            "singled_out": release.singled_out,
            "homogeneous": {str(name): count._asdict() for name, count in release.homogeneous.items()},
            "concentrated": {str(name): count._asdict() for name, count in release.concentrated.items()},
            "unique_units": None if release.unique_units is None else release.unique_units._asdict(),
            "dominated": {str(name): count._asdict() for name, count in release.dominated.items()},
            "facts": dict(release.facts),
            "notes": list(release.notes),
            "verified": True,
        },
        "seconds": {step: round(seconds, 4) for step, seconds in release.timings.items()},
    }


def as_json(content: Mapping[str, Any]) -> str:
    """Return the content of a manifest as JSON text."""
    return json.dumps(content, indent=2, ensure_ascii=False, default=plain)


def relative_to(target: str | os.PathLike[str], manifest: Path) -> str:
    """Return a path relative to the folder of a manifest."""
    return Path(os.path.relpath(target, manifest.parent)).as_posix()


def plain(value: object) -> object:
    """Return a NumPy number as a Python number, for JSON."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"cannot write a {type(value).__name__} to a manifest")


@dataclass(frozen=True)
class Recorded:
    """A manifest read from a file. It sets the parameters of a run, but not the files or the cluster."""

    path: Path
    content: Mapping[str, Any]

    def source(self, given: Path | DatabaseTable | None, query: str | None = None) -> Path | DatabaseTable:
        """Return the table to mask, by default the recorded table; refuse a table whose SHA-256 differs."""
        if is_database(self.content["input"]["path"]) and (given is None or query is None):
            raise self._unnamed_database()
        source = given if given is not None else self._own("input", "IN")
        try:
            current = digests(source, query)
        except FileError:
            if is_database(source):
                raise
            raise FileError(
                f"Manifest {self.path} was made from the input {source}, which does not exist. Put the file back."
            ) from None
        if given is None and not all(_lies_in(file, self.path.parent) for file in files_of(source)):
            raise self._elsewhere("input", "IN")
        recorded = self.content["input"]
        if current["sha256"] != recorded["sha256"]:
            before = recorded.get("files", {})
            if is_database(source):
                raise InputError(
                    f"Database {source} does not return the recorded table: its SHA-256 differs. Use the recorded "
                    f"{parameter('query')}, with an ORDER BY if the order of the records varies."
                )
            changed = [name for name, digest in current.get("files", {}).items() if before.get(name) != digest]
            which = f" ({', '.join(changed[:5])})" if changed else ""
            raise InputError(
                f"Input {source} is not the recorded one: its SHA-256 differs{which}. Put the recorded file back."
            )
        return source

    def target(self, given: Path | None) -> Path:
        """Return the path of the masked table, by default the recorded path."""
        return given if given is not None else self._own("output", "-o")

    def request(
        self,
        *,
        engine: str | None = None,
        scheduler: str | None = None,
        master: str | None = None,
        output: Path | None,
        labels: Path | None = None,
        query: str | None = None,
    ) -> MaskRequest:
        """Return the recorded request; the engine may differ, and files and the scheduler come from the arguments."""
        recorded = dict(self.content["parameters"])
        if recorded.get("shuffle") is True:
            raise InputError(
                f"Manifest {self.path} cannot be repeated to the byte: the records are in random order. Use a number "
                f"as {parameter('shuffle')} in Python to make a run repeatable."
            )
        if recorded.get("refine") and recorded["seed"] is None:
            raise InputError(
                f"Manifest {self.path} cannot be repeated to the byte: its groups were refined without a seed. Set "
                f"{parameter('seed')} to make a run repeatable."
            )
        entry = find(recorded["method"])
        if not entry.repeatable(recorded["options"]):
            remedy = "another method" if entry.steps_option is None else f"{entry.steps_option} instead of a time limit"
            raise InputError(
                f"Manifest {self.path} cannot be repeated to the byte: method {entry.name!r} had a time limit, and its "
                f"result depends on the speed of the machine. Use {remedy} to make a run repeatable."
            )
        if engine is not None and engine != recorded.get("engine"):
            recorded |= {"engine": engine, "memory": None, "processes": None}
        if recorded.get("engine") == "spark" or master is not None:
            raise InputError(
                f"Manifest {self.path} cannot be repeated byte for byte with engine 'spark', because the bytes of the "
                f"files depend on the cluster. Use {setting('engine', 'local')}, or mask without the manifest."
            )
        clustered = recorded.get("engine") == "dask"
        if clustered and engine is None and scheduler is None:
            raise InputError(
                f"Manifest {self.path} requires engine 'dask' but does not name a cluster. Set "
                f"{parameter('scheduler')}, or use {setting('engine', 'dask')} for a cluster on this machine."
            )
        if scheduler is not None and not clustered:
            raise InputError(
                f"{parameter('scheduler')} requires engine 'dask', which manifest {self.path} does not use. Add "
                f"{setting('engine', 'dask')}, or leave it out."
            )
        recorded |= {"query": query}
        return MaskRequest(**recorded, scheduler=scheduler, output=self.target(output), labels=labels, progress=True)

    def check(self, target: Path) -> None:
        """Refuse a masked table whose bytes differ from the recorded bytes."""
        if sha256(written_path(target)) != self.content["output"]["sha256"]:
            raise VerificationError(
                f"The repeated table differs from the recorded one; nothing was written to {target}. The manifest was "
                f"made by shoal {self.content['shoal']!r} with {self.content['versions']}; this is shoal {__version__}."
            )

    def _own(self, what: str, way: str) -> Path:
        """Return a recorded path; refuse a path outside the folder of the manifest."""
        named, folder = Path(self.content[what]["path"]), self.path.parent
        if named.is_absolute() or ".." in named.parts or not _lies_in(folder / named, folder):
            raise self._elsewhere(what, way)
        return folder / named

    def _unnamed_database(self) -> InputError:
        words = [self.content["input"]["path"], "--query", self.content["parameters"].get("query") or "…"]
        return InputError(
            f"Manifest {self.path} names a database, but shoal never reads a database address or query from a "
            f"manifest. Put IN and {parameter('query')} on the command line, such as {shlex.join(words)}."
        )

    def _elsewhere(self, what: str, way: str) -> InputError:
        named = self.content[what]["path"]
        return InputError(
            f"Manifest {self.path} names the {what} {named!r}, which is outside its folder. Put {way} on the command "
            "line (shoal mask IN --from-manifest … -o OUT)."
        )


def _lies_in(path: Path, folder: Path) -> bool:
    """Return True if a path, with all links resolved, is inside a folder at any depth."""
    try:
        return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))
    except (ValueError, OSError):  # not a valid path
        return False


def read_manifest(path: Path) -> Recorded:
    """Read a manifest of `shoal mask`; errors name the invalid key."""
    content = _read(path)
    _check_keys(path, content, "", CONTENT)
    _check_keys(path, content["input"], "input.", {**FILE, "files": (dict, NoneType)})
    _check_keys(path, content["output"], "output.", FILE)
    parameters = content["parameters"] = {**EARLIER, **content["parameters"]}
    for name in parameters:
        if name not in PARAMETERS:
            raise InputError(
                f"Manifest {path} must not hold the key 'parameters.{name}': a manifest may set "
                f"{', '.join(PARAMETERS)}. Set files and the scheduler on the command line."
                f"{closest(name, PARAMETERS)}"
            )
    _check_keys(path, parameters, "parameters.", PARAMETERS)
    _check_kinds(path, parameters.get("kinds") or {})
    # The name of a user's function begins with its module.
    if "." in parameters["method"]:
        raise InputError(
            f"Manifest {path} cannot be repeated by shoal alone: its method {parameters['method']!r} is a user's "
            "function. Mask the table again in Python, with that function."
        )
    objects = not_recorded(parameters)
    if objects:
        raise InputError(
            f"Manifest {path} cannot be repeated: {objects[0]!r} was an object, which a manifest cannot hold. Mask the "
            "table again in Python, with the same object."
        )
    method = find(parameters["method"])
    for option in method.options:
        if not option.scalar and parameters["options"].get(option.name) is not None:
            raise InputError(f"Manifest {path} must not hold a value for the key 'parameters.options.{option.name}'.")
    return Recorded(
        path, {**content, "parameters": {**parameters, "options": method.read_options(parameters["options"])}}
    )


def _read(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileError(f"Manifest {path} does not exist. Check the path.") from None
    except OSError as error:
        raise FileError(f"Manifest {path} cannot be read: {error.strerror}.") from None
    except (ValueError, RecursionError):
        raise _not_a_manifest(path, "it is not JSON") from None
    if type(content) is not dict:
        raise _not_a_manifest(path, "it is not a JSON object")
    return content


def _check_keys(path: Path, content: Mapping[str, Any], above: str, keys: Mapping[str, tuple[type, ...]]) -> None:
    """Refuse a missing key or a value of the wrong type; a key that may be null may be missing."""
    for name, types in keys.items():
        if name not in content and NoneType not in types:
            raise _not_a_manifest(path, f"the key {above + name!r} is missing")
        value = content.get(name)
        if type(value) not in types or (type(value) is list and not all(type(part) is str for part in value)):
            rule = " or ".join(WORDS[kind] for kind in types)
            raise _not_a_manifest(path, f"the key {above + name!r} must be {rule}, got {value!r}")


def _check_kinds(path: Path, kinds: Mapping[str, Any]) -> None:
    """Refuse a kind that is not in the form of `Kind.plain`, which never contains the path of a file."""
    for name, kind in kinds.items():
        if not any(entry.load().is_plain(kind) for entry in KINDS.values()):
            raise _not_a_manifest(path, f"the key {f'parameters.kinds.{name}'!r} is not a kind of column, got {kind!r}")


def _not_a_manifest(path: Path, reason: str) -> InputError:
    return InputError(f"File {path} is not a manifest of shoal: {reason}. Write one with shoal mask … --manifest.")


def as_command(
    recorded: Mapping[str, Any], source: str, output: str, hierarchies: Mapping[Any, str] | None = None
) -> str:
    """Return the command line of a masking; `recorded` is the result of `MaskRequest.recorded`.

    `hierarchies` maps columns to the files of their hierarchies, which a command cannot contain.

    Examples
    --------
    >>> as_command({"k": 5, "columns": ["sales"], "method": "v-mdav", "options": {"gamma": 0.2}}, "in.csv", "out.csv")
    'shoal mask in.csv -k 5 -c sales -m v-mdav -O gamma=0.2 -o out.csv'
    """
    words = ["shoal", "mask", source]
    changed, options = _chosen(recorded)
    items = {item.name: item for item in parameters() if item.metadata["flags"]}
    for name, value in changed.items():
        if name == "kinds":
            for column, kind in value.items():
                words += as_option(column, kind, (hierarchies or {}).get(column))
        elif name in items:
            words += _option(items[name], value)
    for name, value in options.items():
        words += ["-O", f"{name}={value}"]
    return shlex.join([*words, "-o", output])


def _chosen(recorded: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the parameters and the method options that differ from their defaults, except objects."""
    objects = not_recorded(recorded)
    changed = {
        item.name: recorded[item.name]
        for item in parameters()
        if item.name not in ("options", *objects)
        and recorded.get(item.name, item.default) not in (item.default, None, [])
    }
    entry = ALL_METHODS.get(recorded.get("method", ""))
    defaults = {option.name: option.default for option in entry.options} if entry is not None else {}
    unsaid = (*changed, *objects)
    options = {
        name: value
        for name, value in recorded["options"].items()
        if name not in unsaid and value not in (None, defaults.get(name))
    }
    return changed, options


def _option(item: Field[Any], value: Any) -> list[str]:
    """Return a parameter as command-line options, one per value; the values of a promise share one option."""
    flag = item.metadata["flags"][0]
    if value is True:
        return [flag]
    if isinstance(value, dict):
        value = [f"{column}={_listed(part)}" for column, part in value.items()]
        value = value if item.metadata["typed"] is list else ",".join(value)
    return [word for part in (value if isinstance(value, list) else [value]) for word in (flag, str(part))]


def _listed(part: Any) -> str:
    return ",".join(map(str, part)) if isinstance(part, (list, tuple)) else str(part)


def as_call(recorded: Mapping[str, Any], source: str | None, output: str | None = None) -> str:
    """Return the Python call of a masking on the path `source`, or on the variable `data` if there is no path.

    Examples
    --------
    >>> print(as_call({"k": 5, "columns": ["sales"], "options": {}}, "in.csv"))
    import shoal
    <BLANKLINE>
    shoal.mask(
        'in.csv',
        k=5,
        columns=['sales'],
    )
    """
    changed, options = _chosen(recorded)
    changed |= options | ({} if output is None else {"output": output})
    arguments = ",\n    ".join(f"{name}={value!r}" for name, value in changed.items())
    return f"import shoal\n\nshoal.mask(\n    {'data' if source is None else repr(source)},\n    {arguments},\n)"
