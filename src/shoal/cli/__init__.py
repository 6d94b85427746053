"""The command line, with one file per command; commands import heavy libraries only when they run."""

from __future__ import annotations

import gc
import os
import signal
import sys
import warnings
from collections import UserDict
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from functools import partial, wraps
from importlib import import_module
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

from shoal.cli.mask_command import mask
from shoal.cli.terminal import flags_of, forget_warnings, say, say_refusal, say_warning, typed, typed_text
from shoal.core.errors import ShoalError
from shoal.core.memory_limits import lacks_memory
from shoal.core.messages import without_passwords
from shoal.core.progress import SIGNALS, Terminated, forget_interrupts, interrupt
from shoal.tables.outputs import noting

__all__ = ["app", "main"]

COMMANDS = {name: name for name in ("inspect", "mask", "publish", "assess", "compare", "methods", "demo")}
COMMANDS["app"] = "page"


class _Commands(UserDict[str, Any]):
    """The commands by name, each imported on first use, so that no command loads the modules of others."""

    def __getitem__(self, name: str) -> Any:
        function = super().__getitem__(name)
        if isinstance(function, str):
            alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich")
            alone.command(name)(_guarded(getattr(import_module(f"shoal.cli.{function}_command"), function)))
            self[name] = function = typer.main.get_command(alone)
        return function


class _Group(TyperGroup):
    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes | {"commands": _Commands(COMMANDS)})


app = typer.Typer(
    cls=_Group,
    name="shoal",
    help="Microaggregation: hide every record in a group of at least k similar ones.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


_running: ContextVar[Callable[..., None]] = ContextVar("the running command")


def _guarded(command: Callable[..., None]) -> Callable[..., None]:
    """Wrap a command so that a refusal or an interrupt prints one line and sets an exit code, without a traceback."""

    @wraps(command)
    def run(*arguments: Any, **keywords: Any) -> None:
        _running.set(command)
        forget_warnings()
        with noting() as placed:
            try:
                command(*arguments, **keywords)
            except KeyboardInterrupt as interrupted:
                code = _report_interrupt(interrupted, placed)
            except BaseException as error:  # a Rust library that cannot start threads raises a BaseException
                code = 1
                if lacks_memory(error):  # lack of memory may look like an unreadable file
                    sys.unraisablehook = lambda _: None  # half-written files print errors when they are freed
                    say_refusal(
                        f"Memory ran out; {_in_place(placed)}. Use --engine local with --memory for a large table, a "
                        "machine with more memory, or a higher limit (ulimit -v)."
                    )
                elif isinstance(error, ShoalError):
                    say_refusal(error.worded(partial(typed, flags=_flags())))
                else:
                    raise
            else:
                return
        raise typer.Exit(code)  # outside the except block, so that the objects held by the error are freed

    return run


@app.callback(invoke_without_command=True)
def _options(version: bool = typer.Option(False, "--version", help="Print the version and exit.")) -> None:
    if version:
        from shoal.core.version import __version__

        say(f"shoal {__version__}")
        raise typer.Exit


def main() -> None:
    """Run a command. Exit codes: 0 success, 1 refusal, 2 usage error, 130 interrupt, 143 ended by SIGTERM."""
    # Libraries are never garbage, but their imports create about 150,000 objects. Searching these for garbage, now and
    # at exit, took a quarter of a short run.
    gc.set_threshold(300_000)
    warnings.showwarning = _show_warning  # type: ignore[assignment]
    # When memory runs out, Rust deadlocks while it prints a backtrace.
    os.environ["RUST_BACKTRACE"] = "0"
    for number in SIGNALS:
        signal.signal(number, interrupt)
    with noting() as placed:
        try:
            app()
        except KeyboardInterrupt as interrupted:  # before or after the command itself
            sys.exit(_report_interrupt(interrupted, placed))
        finally:
            gc.freeze()
            _clear_exec_interrupt()


def _clear_exec_interrupt() -> None:
    """Let the process exit with its own code after a handled `KeyboardInterrupt`.

    CPython exits with SIGINT if a `KeyboardInterrupt` escaped code made by ``exec()``, such as that of dataclasses,
    even when it is handled. Another ``exec()`` clears the flag.
    """
    exec("")  # noqa: S102


def _report_interrupt(interrupted: KeyboardInterrupt, placed: Sequence[Path | str]) -> int:
    """Print the interrupt and the files in place; return the exit code that shells use for the signal."""
    forget_interrupts()
    number = interrupted.number if isinstance(interrupted, Terminated) else signal.SIGINT
    cause = "interrupted" if number == signal.SIGINT else f"ended by {signal.Signals(number).name}"
    say_refusal(f"{cause}; {_in_place(placed)}")
    return 128 + number


def _in_place(placed: Sequence[Path | str]) -> str:
    """Return a phrase that lists the files written by a run that ended early."""
    listed = without_passwords(", ".join(map(str, placed)))
    return f"these files are complete and in place: {listed}" if placed else "nothing was released"


def _show_warning(message: Warning | str, category: type[Warning], *_: object) -> None:
    text = message.args[0] if isinstance(message, Warning) and message.args else str(message)
    say_warning(category, typed_text(text, _flags()))


def _flags() -> dict[str, str]:
    """Return the flags of the running command and of shoal mask, which messages of other commands may name."""
    return flags_of(mask) | flags_of(_running.get(main))
