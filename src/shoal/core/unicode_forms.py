"""Text in one Unicode form: é is one character or an e with an accent, and means the same.

Values are compared in the composed form, NFC. Where records must look alike, one of the spellings is released.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any
from unicodedata import normalize

if TYPE_CHECKING:
    import polars as pl

    from shoal.core.types import Spelling

__all__ = ["composed", "composed_cells", "one_form"]


def composed(value: Any) -> Any:
    r"""Return a text in NFC; any other value as it is.

    Examples
    --------
    >>> composed("Zoe\u0308") == "Zo\u00eb", composed(7)
    (True, 7)
    """
    return normalize("NFC", value) if isinstance(value, str) else value


def composed_cells(cells: pl.Series) -> pl.Series:
    """Return text and categories in NFC; ASCII, and cells of any other type, as they are."""
    import polars as pl  # kinds are read before it is imported

    if isinstance(cells.dtype, (pl.Categorical, pl.Enum)):
        listed = cells.unique().cast(pl.String)
        return cells if composed_cells(listed).equals(listed) else composed_cells(cells.cast(pl.String))
    if cells.dtype != pl.String or (cells.str.len_bytes() == cells.str.len_chars()).all():
        return cells
    return cells.str.normalize("NFC")


def one_form(values: Iterable[Any]) -> dict[Spelling, Spelling]:
    r"""Return which texts are to be spelled otherwise, and how, so that none is spelled in several Unicode forms.

    Of several spellings the shortest is chosen, the first of these by the alphabet.

    Examples
    --------
    >>> one_form(["Zoe\u0308", "Zo\u00eb", "Ann", 7]) == {"Zoe\u0308": "Zo\u00eb"}
    True
    """
    texts = [value for value in values if isinstance(value, str)]
    if all(map(str.isascii, texts)):
        return {}
    chosen: dict[str, str] = {}
    for text in sorted(texts, key=lambda text: (len(text.encode()), text)):
        chosen.setdefault(composed(text), text)
    return {text: chosen[composed(text)] for text in texts if chosen[composed(text)] != text}
