"""What commands print: all of it passes here, so that names, values and paths cannot steer the terminal."""

from __future__ import annotations

import re
from contextvars import ContextVar

import typer

from shoal.core.messages import visible

__all__ = ["forget_warnings", "say", "say_pair", "say_refusal", "say_warning", "was_said"]

_warnings: ContextVar[list[str]] = ContextVar("warnings that the command has printed")


def say(text: str, *, bold: bool = False) -> None:
    """Print text of one or more lines."""
    typer.secho(visible(text, lines=True), bold=bold or None)


def say_pair(name: str, value: object) -> None:
    """Print a line of a summary."""
    typer.echo(f"{name:<17} {visible(str(value))}")


def say_refusal(text: str) -> None:
    """Print why a command ends, in one line."""
    typer.secho(f"shoal: {visible(text)}", err=True, fg=typer.colors.RED)


def say_warning(category: type[Warning], text: str) -> None:
    """Print a warning in one line, and remember it."""
    _warnings.get([]).append(_plain(text))
    typer.secho(f"{category.__name__}: {visible(text)}", err=True, fg=typer.colors.YELLOW)


def forget_warnings() -> None:
    """Begin a command: none of its warnings has been printed."""
    _warnings.set([])


def was_said(note: str) -> bool:
    """Return whether a warning that was printed holds the words of a note."""
    return any(_plain(note) in warning for warning in _warnings.get([]))


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))
