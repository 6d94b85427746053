"""Recognition of columns that identify records, such as names, addresses, account numbers and record numbers.

Each recogniser is a small function that takes a column's name and cells. It never refuses a column, but returns a
reason for people to judge. The reason quotes no cell.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple
from unicodedata import combining, normalize

import numpy as np
import polars as pl

from shoal.core.types import Name
from shoal.kinds.column import MOST, Cells, Column
from shoal.kinds.kind_registry import kind_of_cells

__all__ = [
    "DIFFERENT",
    "FEW",
    "IDS",
    "LOOKS",
    "NUMBERED",
    "PEOPLE",
    "SMALL",
    "WholeNumbers",
    "identifying_columns",
    "is_numbering",
    "looks_like_identifier",
    "name_pattern",
    "name_words",
]

SMALL = 20  # records; in a table of this size, all values may differ by chance
FEW = 10  # distinct values; a code has at most this many
# Letters that NFKD does not decompose.
LETTERS = str.maketrans({"ß": "ss", "ł": "l", "Ł": "L", "ø": "o", "Ø": "O", "æ": "ae", "đ": "d"})
LONG = 400  # characters; only the start and the end of a longer name are examined
DIFFERENT = ("all values are different", "almost all values are different")
NUMBERED = "nearly consecutive whole numbers, all different: a numbering of the records"

_PEOPLE = (
    "person pers patient pat subject participant respondent resp individual household house hh family fam member firm "
    "company enterprise establishment business customer cust client user student pupil employee emp utility school "
    "hospital case record rec row account"
).replace(" ", "|")
_NUMBER = r"(_?(id|number|num|no|nr))?"


def _ends(pattern: str) -> re.Pattern[str]:
    """Compile a pattern that matches whole words at the end of a name."""
    return re.compile(rf"(?:^|_)(?:{pattern})$")


def name_pattern(pattern: str) -> re.Pattern[str]:
    """Compile a pattern that matches whole words anywhere in a name."""
    return re.compile(rf"(?:^|_)(?:{pattern})(?:_|$)")


# English, German, French, Spanish, Italian, Dutch, Catalan and Polish.
NAMED = {
    "a name": _ends(
        rf"^name|^names|(first|last|sur|given|family|full|middle|maiden|fore|nick|user|birth|vor|nach|voor|achter|{_PEOPLE})"
        r"_?names?|\w*naam|nom|nom_de_famille|prenoms?|nombres?(_propio)?|apellidos?\d*|nome|cognomes?|cognoms?\d*|"
        r"imie|imiona|nazwisko"
    ),
    "an e-mail address": _ends(r"e_?mail(_?addr(ess)?)?|courriel|correo(_electronico)?"),
    "a telephone number": _ends(
        rf"((tele|mobile_?|cell_?|home_?|work_?)?phone|tel|telefon[oe]?|telefoon|telefono_movil|movil|handy|fax|"
        rf"mobile(?=_)){_NUMBER}"
    ),
    "an account": _ends(
        rf"(bank_?)?(account|acct|konto|cuenta|compte|conto|rekening){_NUMBER}|iban|"
        r"(credit_?)?card_(number|num|no|nr)"
    ),
    "an official number": _ends(
        rf"ssn|social_?security{_NUMBER}|nino|dni|nif|cpf|bsn|ahv|insee|siren|siret|pesel|regon|cip|"
        rf"codice_fiscale|partita_iva|steuer_?(id|nummer)|sozialversicherungs?_?nummer|numero_de_securite_sociale|"
        rf"passport{_NUMBER}|(licen[cs]e|vat|permit|policy)_?(id|number|num|no|nr)|(national|tax)_?(id|number|num|no|nr)"
    ),
    "an address": _ends(
        r"address|addr|street|strasse|anschrift|adresse|adreca|direccion|domicilio|indirizzo|adres|ulica|rue|calle|"
        r"addr(ess)?_?(line_?)?\d"
    ),
}
IDS = _ends(
    r"ids?|uid|uuid|guid|hid|pid|hhid|hhnum|hhnr|idhh|idpers|idno|id_?(no|nr|num|number)|mrn|serial(_?(no|nr|num|number))?|"
    rf"({_PEOPLE})_?(id|no|nr|number)|^id_\w+|\w*(patient|person|kund|versichert|mitglied|haushalt|beleg)\w*nummer"
)
PEOPLE = re.compile(rf"hid|pid|idhh|(?:{_PEOPLE})(?:_|id|$)")
NAMES = _ends(r"\w*name")

LOOKS = {
    "e-mail addresses": re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+"),
    "accounts (IBAN)": re.compile(r"[A-Z]{2}\d{2} ?([A-Z0-9]{4} ?){2,7}[A-Z0-9]{1,4}"),
    "universal identifiers or hashes": re.compile(r"(?i)[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32,}"),
    "Internet addresses": re.compile(r"https?://\S+|(\d{1,3}\.){3}\d{1,3}"),
}
DIGITS = re.compile(r"(?!\d+[.,]\d+$)\+?\(?\d([ ()/.-]{0,2}\d){7,}")  # telephone, account and social security numbers


class WholeNumbers(NamedTuple):
    """Count and range of the whole numbers in a column without repeated values."""

    present: int
    least: float
    greatest: float


def name_words(name: Name) -> str:
    """Return the words of a name in lower case, without accents and joined by underscores.

    Examples
    --------
    >>> name_words("patientID"), name_words("Marital-Status"), name_words("UTILNAME"), name_words("Prénom")
    ('patient_id', 'marital_status', 'utilname', 'prenom')
    """
    text = str(name)
    if len(text) > LONG:  # matching may take quadratic time
        text = f"{text[: LONG // 2]}_{text[-LONG // 2 :]}"
    if not text.isascii():
        text = "".join(sign for sign in normalize("NFKD", text.translate(LETTERS)) if not combining(sign))
    separated = re.sub(r"(?<=[a-z\d])(?=[A-Z])", "_", text)
    return "_".join(re.findall(r"[^\W_]+", separated)).lower()


def identifying_columns(columns: Mapping[Name, pl.Series]) -> tuple[dict[Name, str], dict[Name, WholeNumbers]]:
    """Return why columns look like identifiers, by column, and the ranges of whole numbers that may number records."""
    cells = Cells.of_columns(columns)
    reasons = {name: looks_like_identifier(name, column) for name, column in cells.items()}
    numbers = {name: _whole_numbers(column) for name, column in cells.items()}
    return (
        {name: reason for name, reason in reasons.items() if reason is not None},
        {name: range_ for name, range_ in numbers.items() if range_ is not None},
    )


# Counting distinct values is the slowest step, so it is done last.


def looks_like_identifier(name: Name, column: pl.Series | Column | Cells) -> str | None:
    """Return why a column looks like an identifier of a record, person or firm; None if it does not look like one.

    Examples
    --------
    >>> looks_like_identifier("contact", pl.Series(["ann@example.org", "bob@example.org"]))
    'the cells look like e-mail addresses'
    >>> looks_like_identifier("sales", pl.Series([10.5, 7.25])) is None
    True
    """
    cells = column if isinstance(column, Cells) else Cells.of(column)
    if not cells.present or not (cells.text or cells.whole) or kind_of_cells(cells) not in ("nominal", "integer"):
        return None
    words = name_words(name)
    return next((reason for recognise in IDENTIFIERS if (reason := recognise(words, cells))), None)


def _various(cells: Cells) -> bool:
    """Return whether a column has too many distinct values for a code; in a small table, more than half its cells."""
    return cells.distinct > min(FEW, cells.present / 2)


def _all_different(cells: Cells) -> bool:
    return cells.present > SMALL and cells.distinct >= MOST * cells.present


def _named(words: str, cells: Cells) -> str | None:
    """Recognise identifiers by the column name, except columns with few values, such as phone = yes or no."""
    content = next((content for content, pattern in NAMED.items() if pattern.search(words)), None)
    return f"the column name suggests {content}" if content is not None and _various(cells) else None


def _named_id(words: str, cells: Cells) -> str | None:
    single = IDS.search(words) and cells.present < 1.5 * cells.distinct and _various(cells)
    return "the column name suggests an ID, and most values occur once" if single else None


def _many_names(words: str, cells: Cells) -> str | None:
    """Recognise names of firms or places, unless they are few enough to be a classification."""
    many = cells.text and NAMES.search(words) and cells.distinct > 100
    return f"the column name suggests names, with {cells.distinct:,} different values" if many else None


def _spelled_so(words: str, cells: Cells) -> str | None:
    content = cells.first_like(LOOKS) if cells.text else None
    return None if content is None else f"the cells look like {content}"


def _long_digits(words: str, cells: Cells) -> str | None:
    """Recognise telephone, account and insurance numbers, as text or as numbers of equal length."""
    if not cells.look_like(DIGITS) or not _various(cells):
        return None
    if not cells.text and not (_all_different(cells) and len(set(map(len, cells.spelled))) == 1):
        return None
    return "the cells are long strings of digits, like telephone or account numbers"


def _running_number(words: str, cells: Cells) -> str | None:
    """Recognise record numbers, which are nearly consecutive whole numbers without repetition."""
    span = _whole_numbers(cells)
    return NUMBERED if span is not None and is_numbering([span]) else None


def _whole_numbers(cells: Cells) -> WholeNumbers | None:
    """Return the count and the range of the whole numbers if all are different, else None."""
    if not cells.whole or not cells.present:
        return None
    values: Any = cells.values
    least, greatest = values.min(), values.max()
    # Whole numbers in a narrower range cannot all be different, so their distinct values are not counted.
    different = greatest - least >= cells.present - 1 and cells.distinct == cells.present
    return WholeNumbers(cells.present, least, greatest) if different else None


def is_numbering(spans: Sequence[WholeNumbers]) -> bool:
    """Return whether the whole numbers in all parts of a table number its records.

    Examples
    --------
    >>> is_numbering([WholeNumbers(50, 1, 99), WholeNumbers(50, 2, 100)]), is_numbering([WholeNumbers(50, 1, 99)])
    (True, False)
    """
    present = sum(span.present for span in spans)
    reach = max(span.greatest for span in spans) - min(span.least for span in spans)
    return present > SMALL and present - 1 <= reach < 1.2 * present


def _different_text(words: str, cells: Cells) -> str | None:
    if not cells.text or not _all_different(cells):
        return None
    return DIFFERENT[cells.distinct < cells.present]


def _free_text(words: str, cells: Cells) -> str | None:
    if not cells.text or np.mean([len(cell) for cell in cells.spelled]) < 40:
        return None
    return "free text, which may contain anything" if 2 * cells.distinct >= cells.present and _various(cells) else None


IDENTIFIERS: tuple[Callable[[str, Cells], str | None], ...] = (
    _named,
    _named_id,
    _spelled_so,
    _long_digits,
    _running_number,
    _free_text,
    _different_text,
    _many_names,
)
