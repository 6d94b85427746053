"""Budget ledger of a data set: a JSON file of spent budgets, checked and written before each release.

While a ledger is read and written, an operating system lock on a small file next to it excludes other processes. A
process that crashes releases this lock. Symbolic links are resolved first, so that all names of a ledger share one
lock. A ledger with a second hard link is refused, because the other name would keep the old sum. Amounts are added as
decimals, as typed: ten times 0.1 is 1.

A ledger belongs to one data set. The data set is identified by a name that the data holder chooses and by its column
names, never by anything computed from values. All budgets in a ledger have the same unit and the same definition of
privacy. ε and δ have separate sums and totals (basic composition); without a total for δ, no δ can be spent. A ledger
is only created on request (`new`), so that a lost ledger is not mistaken for a first release.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, BinaryIO

from shoal.core.errors import FileError, InputError
from shoal.core.messages import parameter, setting
from shoal.privacy.budgets import check_epsilon
from shoal.tables.files import check_target
from shoal.tables.outputs import written_beside

__all__ = ["BudgetExceededError", "spend", "spent"]

FORMAT = "shoal budget ledger 1"
DATA_SET = ("dataset", "schema")  # recorded once per ledger


class BudgetExceededError(InputError):
    """Error for a release that would exceed the data set's total budget."""


def spend(
    path: str | os.PathLike[str],
    epsilon: float,
    total: float | None,
    details: Mapping[str, Any],
    *,
    delta: float | None = None,
    total_delta: float | None = None,
    new: bool = False,
) -> dict[str, Any]:
    """Record a budget as spent; refuse it if it exceeds the total.

    Parameters
    ----------
    path
        The ledger's file.
    epsilon
        The budget to spend.
    total
        The total budget of the data set. A new ledger requires it; for an existing ledger, it must equal the recorded
        total.
    details
        Further information to record in the entry. All entries of a ledger must agree in ``"unit"`` and in
        ``"definition"``. ``"dataset"`` and ``"schema"``, the names of the data set and of all its columns, are recorded
        once.
    delta, total_delta
        The same for δ. A ledger created without a total for δ allows no δ to be spent.
    new
        True for the first release of the data set. The ledger must then not exist yet; otherwise it must exist.

    Returns
    -------
    entry
        The recorded entry.
    """
    target = _resolved(Path(path))
    check_target(target, endings=(".json",))
    if total is not None:
        total = check_epsilon(total, "total_budget")
    if total_delta is not None:
        total_delta = check_epsilon(total_delta, "total_delta")
    with _locked(target):
        _check_one_name(target)
        totals = {"total_budget": total, "total_delta": total_delta}
        content = _started(target, totals, details) if new else _open(target, totals)
        _check_data_set(target, content, details)
        _check_kind(target, content, details)
        before = _sum(content, "epsilon")
        _check_sum(target, "epsilon", before, epsilon, content["total_budget"])
        before_delta, allowed_delta = _sum(content, "delta"), content.get("total_delta", 0.0)
        _check_sum(target, "delta", before_delta, delta or 0.0, allowed_delta)
        entry = {
            "number": len(content["entries"]) + 1,
            "time": datetime.now(UTC).isoformat(timespec="seconds"),
            "epsilon": epsilon,
            **({} if delta is None else {"delta": delta}),
            **{name: value for name, value in details.items() if name not in DATA_SET},
        }
        content["entries"].append(entry)
        _write(target, content)
    sums = {"spent": float(before + _decimal(epsilon)), "total": content["total_budget"]}
    if delta is not None:
        sums |= {"spent_delta": float(before_delta + _decimal(delta)), "total_delta": allowed_delta}
    return entry | {"ledger": target.name} | sums


def _check_sum(target: Path, name: str, before: Decimal, amount: float, total: float) -> None:
    """Refuse an amount that exceeds the remainder of a total."""
    if amount and not total:
        raise BudgetExceededError(
            f"Ledger {target} was created without a total of {name}, so {name}={amount:g} is refused. Use a method "
            f"without {name}, or keep the data unpublished: a total raised afterwards protects nobody."
        )
    if before + _decimal(amount) > _decimal(total):
        raise BudgetExceededError(
            f"Ledger {target} allows {name}={total:g} in total; {before.normalize():f} is spent, so {amount:g} more is "
            f"refused. Use a smaller {name}, or keep the data unpublished: a total raised afterwards protects nobody."
        )


def _write(target: Path, content: Mapping[str, Any]) -> None:
    """Write a ledger in one step, and wait until the file and its name are on disk."""
    if target.exists() and not os.access(target, os.W_OK):
        raise FileError(f"Ledger {target} cannot be written: it is read-only for you. Ask its owner for access.")
    with written_beside(target) as temporary:
        temporary.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    if os.name == "posix":
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def spent(path: str | os.PathLike[str]) -> float:
    """Return the ε recorded as spent in a ledger."""
    return float(_sum(_open(Path(path), {}), "epsilon"))


def _resolved(path: Path) -> Path:
    """Return the path with its links resolved, because a lock next to a link would protect only that link."""
    try:
        return path.resolve()
    except (OSError, RuntimeError):  # RuntimeError before Python 3.13
        raise FileError(f"Ledger {path} cannot be read: its links cannot be resolved. Use the file's path.") from None


def _check_one_name(path: Path) -> None:
    try:
        names = path.stat().st_nlink
    except FileNotFoundError:
        return
    except OSError as error:
        raise FileError(f"Ledger {path} cannot be read: {error.strerror}.") from None
    if names > 1:
        raise InputError(
            f"Ledger {path} must have one name, but it has {names} (hard links): budgets spent under one name would be "
            "missing under the others. Remove the others, or make them symbolic links."
        )


def _check_data_set(path: Path, content: dict[str, Any], details: Mapping[str, Any]) -> None:
    """Refuse a ledger that belongs to another data set."""
    name, columns = details.get("dataset"), details.get("columns", [])
    recorded, schema = content.setdefault("dataset", name), content.setdefault("schema", details.get("schema"))
    if recorded != name:
        raise InputError(
            f"Ledger {path} records the budget of data set {recorded!r}, got {name!r} in {parameter('dataset')}. Use "
            "the ledger of this data set; budgets of the same people belong in one ledger."
        )
    strange = next((column for column in columns if column not in (schema or columns)), None)
    if strange is not None:
        raise InputError(
            f"Ledger {path} records the budget of data set {recorded!r} with columns {', '.join(schema or ())}; "
            f"{strange!r} is not one of them. If this is another data set, use another ledger, unless the same people "
            "are in both."
        )


def _check_kind(path: Path, content: Mapping[str, Any], details: Mapping[str, Any]) -> None:
    """Refuse to add budgets of different kinds.

    A unit with m records spends m times as much as a single record. ε of Definition 1 covers the groups and ε of
    Definition 3 does not, so a sum of both would guarantee neither.
    """
    units = [details.get("unit"), *(entry.get("unit") for entry in content["entries"])]
    ours, *earlier = ["single records" if unit is None else f"{unit!r} with all of its records" for unit in units]
    different = next((whom for whom in earlier if whom != ours), None)
    if different is not None:
        raise InputError(
            f"Ledger {path} contains budgets of {different}, so a budget of {ours} cannot be added. Use the same "
            f"{parameter('unit')} as before, or another ledger whose total leaves room for the budget already spent "
            "here."
        )
    definition = details.get("definition")
    spent_under = next(
        (e.get("definition") for e in content["entries"] if e.get("definition") != definition), definition
    )
    if spent_under != definition:
        raise InputError(
            f"Ledger {path} adds up budgets under Definition {spent_under}, and one under Definition {definition} "
            "cannot be added to them: they guarantee different things. Use a method of the same definition, or use "
            "another ledger whose total leaves room for the budget spent here."
        )


def _started(path: Path, totals: Mapping[str, float | None], details: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of a new ledger."""
    if path.exists():
        raise InputError(
            f"Ledger {path} already exists, so {setting('new_ledger', True)} is refused: the recorded budgets must not "
            "be lost. Leave it out to continue with this ledger."
        )
    if totals["total_budget"] is None:
        raise InputError(
            f"Ledger {path} does not exist yet; a new ledger needs the total budget of the data set. Set "
            f"{parameter('total_budget')}."
        )
    budgets = {name: total for name, total in totals.items() if total is not None}
    return {"format": FORMAT, **budgets, **{n: details[n] for n in DATA_SET if n in details}, "entries": []}


def _open(path: Path, totals: Mapping[str, float | None]) -> dict[str, Any]:
    try:
        text = path.read_text(encoding="utf-8")
        content = json.loads(text, parse_constant=_refuse, object_pairs_hook=_without_doubles)
        json.dumps(content, ensure_ascii=False).encode()  # an unpaired surrogate could not be written back
    except FileNotFoundError:
        raise InputError(
            f"Ledger {path} does not exist. If the data set had one, restore it: a new ledger would not contain the "
            f"budget spent so far. For the first release, use {setting('new_ledger', True)} and set the total budget "
            f"of the data set in {parameter('total_budget')}."
        ) from None
    except OSError as error:
        raise FileError(f"Ledger {path} cannot be read: {error.strerror}.") from None
    except (ValueError, RecursionError):
        raise _not_a_ledger(path) from None
    if not _is_sound(content):
        raise _not_a_ledger(path)
    for name, total in totals.items():
        recorded = content.get(name, 0.0)
        if total is not None and total != recorded:
            raise InputError(
                f"{parameter(name)} must equal the total recorded in ledger {path}, {recorded:g}, got {total:g}. Leave "
                "it out."
            )
    ledger: dict[str, Any] = content
    return ledger


def _is_sound(content: Any) -> bool:
    """Return True if a file's content is a valid ledger with numbered entries and valid amounts."""
    if not isinstance(content, dict) or content.get("format") != FORMAT or not isinstance(content.get("entries"), list):
        return False
    entries = content["entries"]
    numbered = all(isinstance(e, dict) and e.get("number") == i for i, e in enumerate(entries, start=1))
    if not numbered:
        return False
    schema = content.get("schema")
    if schema is not None and not (isinstance(schema, list) and all(isinstance(name, str) for name in schema)):
        return False
    amounts = [content.get("total_budget"), *(entry.get("epsilon") for entry in entries)]
    deltas = [content.get("total_delta", 1.0), *(entry.get("delta", 1.0) for entry in entries)]
    return all(map(_is_amount, amounts + deltas))


def _is_amount(value: object) -> bool:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return False
    return 0 < value <= sys.float_info.max  # JSON integers may exceed the largest float


def _refuse(constant: str) -> float:
    raise ValueError(constant)


def _without_doubles(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object as a dictionary; refuse duplicate keys, because their meaning is ambiguous."""
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ValueError(pairs)
    return content


def _not_a_ledger(path: Path) -> InputError:
    return InputError(
        f"File {path} is not a shoal budget ledger, or it is damaged. Use another file, or restore this one from a "
        "backup. The file was not changed."
    )


def _sum(content: Mapping[str, Any], name: str) -> Decimal:
    return sum((_decimal(entry.get(name, 0.0)) for entry in content["entries"]), Decimal(0))


def _decimal(amount: float) -> Decimal:
    return Decimal(repr(float(amount)))


@contextmanager
def _locked(target: Path) -> Iterator[None]:
    """Hold the lock of a ledger; keep the empty lock file, because removing it could let two processes in."""
    path = target.with_name(f".{target.name}.lock")
    try:
        file = path.open("a+b")
    except OSError as error:
        raise FileError(f"Ledger {target} cannot be locked: {error.strerror} ({path}).") from None
    with file:
        _lock(file)
        try:
            yield
        finally:
            _unlock(file)


if sys.platform == "win32":
    import msvcrt
    import time

    def _lock(file: BinaryIO) -> None:
        file.seek(0)
        while True:
            try:
                msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
            except OSError:
                time.sleep(0.05)
            else:
                return

    def _unlock(file: BinaryIO) -> None:
        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _lock(file: BinaryIO) -> None:
        fcntl.flock(file, fcntl.LOCK_EX)

    def _unlock(file: BinaryIO) -> None:
        fcntl.flock(file, fcntl.LOCK_UN)
