"""Detection and removal of title lines above the header of a CSV file."""

from __future__ import annotations

import csv
from collections.abc import Sequence

__all__ = ["count_title_lines", "without_lines"]

LINES = 40  # lines searched at the beginning of a file
LONGEST = 100_000  # characters; files with longer lines are not searched
MOST = 10  # title lines, including blank ones


def without_lines(content: str, count: int, newline: str) -> str | None:
    r"""Return a text without its first lines; None if nothing remains.

    Examples
    --------
    >>> without_lines("Firms;;\n\na;b;c\n", 2, "\n")
    'a;b;c\n'
    """
    lines = content.split(newline, count)
    return lines[-1] if len(lines) > count and lines[-1].strip() else None


def count_title_lines(content: str, newline: str, delimiters: Sequence[str]) -> int:
    r"""Return the number of lines above the header; 0 if in doubt.

    Title lines have far fewer cells than the lines below. The first line below them has a different name in each cell.

    Examples
    --------
    >>> count_title_lines("Firms of 2020\n\na;b;c\n1;2;3\n", "\n", ";,")
    2
    >>> count_title_lines("Firms of 2020;;\na;b;c\n1;2;3\n", "\n", ";,")
    1
    >>> count_title_lines("a;b;c\n1;2;3\n4;5;6\n", "\n", ";,")
    0
    """
    lines = content.split(newline, LINES)
    lines = lines[:-1] if len(lines) > 1 else lines
    if '"' in lines[0] or max(map(len, lines)) > LONGEST:  # a quoted name may contain a line break
        return 0
    return max(_titles([next(csv.reader([line], delimiter=sign), []) for line in lines]) for sign in delimiters)


def _titles(rows: Sequence[list[str]]) -> int:
    """Return the number of lines above the header; 0 if in doubt."""
    width = len(rows[-1])
    if width < 2:
        return 0
    header = next((place for place, row in enumerate(rows) if len(row) == width and _are_names(row)), 0)
    titles, body = [row for row in rows[:header] if row], rows[header:]
    full = all(len(row) == width for row in body if row)
    if not titles or len(body) < 2 or header > MOST or not full:
        return 0
    first, *others = titles
    sure = _is_title(first, width) and all(len(row) < width or _filled(row) <= 1 for row in others)
    return header if sure else 0


def _is_title(row: Sequence[str], width: int) -> bool:
    return 2 * len(row) <= width or (_filled(row) <= 1 and (len(row) == 1 or width > 2))


def _filled(row: Sequence[str]) -> int:
    return sum(bool(cell.strip()) for cell in row)


def _are_names(row: Sequence[str]) -> bool:
    names = [cell.strip() for cell in row]
    return len(set(names)) == len(names) and all(any(sign.isalpha() for sign in name) for name in names)
