"""What a column looks like, by its name and its cells: an identifier, a weight, a date, a code, a code for missing.

Every recogniser is a small function that never refuses a column. What it says is a guess for people to judge, in words
that hold no cell of the column, codes for missing excepted.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from shoal.core.types import Floats, Name
from shoal.kinds.recognition import MOST, Cells
from shoal.kinds.registry import kind_of_cells
from shoal.kinds.storage import Column

__all__ = [
    "NUMBERED",
    "SMALL",
    "Span",
    "is_code",
    "is_confidential",
    "is_numbering",
    "is_of_person",
    "is_stratum",
    "is_weight",
    "looks_like_identifier",
    "missing_codes",
    "names_id",
    "number_span",
    "repeats_like_unit",
]

SMALL = 20  # records of a table in which all values may differ by chance
FEW = 10  # values of a code
LONG = 400  # characters of a name, of which only both ends are looked at
BODIES = ((0.5, 6.5), (20.0, 350.0), (500.0, 6500.0))  # newborns in kg, persons in kg or pounds, newborns in grams
NUMBERED = "whole numbers next to each other, all different: a numbering of the records"

_PEOPLE = (
    "person pers patient pat subject participant respondent resp individual household house hh family fam member firm "
    "company enterprise establishment business customer cust client user student pupil employee emp utility school "
    "hospital case record rec row account"
).replace(" ", "|")
_NUMBER = r"(_?(id|number|num|no|nr))?"


def _name(pattern: str) -> re.Pattern[str]:
    """Compile what a name must end in, from the beginning of a word."""
    return re.compile(rf"(?:^|_)(?:{pattern})$")


def _word(pattern: str) -> re.Pattern[str]:
    """Compile a word that a name must have."""
    return re.compile(rf"(?:^|_)(?:{pattern})(?:_|$)")


NAMED = {
    "a name": _name(
        rf"^name|^names|(first|last|sur|given|family|full|middle|maiden|fore|nick|user|birth|vor|nach|{_PEOPLE})_?names?"
    ),
    "an e-mail address": _name(r"e_?mail(_?addr(ess)?)?"),
    "a telephone number": _name(rf"((tele|mobile_?|cell_?|home_?|work_?)?phone|tel|telefon|fax|mobile(?=_)){_NUMBER}"),
    "an account": _name(rf"(bank_?)?(account|acct|konto){_NUMBER}|iban|(credit_?)?card_(number|num|no|nr)"),
    "an official number": _name(
        rf"ssn|social_?security{_NUMBER}|nino|dni|nif|cpf|bsn|ahv|passport{_NUMBER}|(national|tax)_?(id|number|num|no|nr)"
    ),
    "an address": _name(r"address|addr|street|strasse|straße|addr(ess)?_?(line_?)?\d"),
}
IDS = _name(
    r"ids?|uid|uuid|guid|hid|pid|hhid|idhh|idpers|id_?(no|nr|num|number)|mrn|serial(_?(no|nr|num|number))?|"
    rf"({_PEOPLE})_?(id|no|nr|number)|^id_\w+"
)
PEOPLE = re.compile(rf"hid|pid|idhh|(?:{_PEOPLE})(?:_|id|$)")
NAMES = _name(r"\w*name")
# A weight of anything else (birth weight, weight in kg) is a measurement.
_SURVEY = (
    "sampling sample samp survey svy design final finl fnl afnl base basic expansion grossing calibrated calibration "
    "calib cal raked adjusted adj normalised normalized norm rescaled scaled trimmed replicate repl rep bootstrap boot "
    "frequency freq probability prob inverse inv ipw person personal pers per individual indiv household house hh "
    "family fam population pop firm company enterprise establishment respondent resp cross longitudinal long wave "
    "national stratum strata poststrat psp a d f i p"
).replace(" ", "|")
SURVEY = re.compile(rf"{_SURVEY}|\d+")
# Words that no weight of a body has; "final", "person" or "p" may come before both.
SAMPLING = re.compile(
    r"sampl\w+|samp|survey|svy|design|a?fnl|expansion|grossing|calib\w*|raked|repl?(icate)?|boot(strap)?|freq(uency)?|"
    r"prob(ability)?|inv(erse)?|ipw|household|hh|family|fam|pop(ulation)?|firm|company|enterprise|establishment|national|"
    r"strat(um|a)|poststrat|psp|pondera\w*"
)
WEIGHT = re.compile(rf"(?P<of>{_SURVEY})?(?:weights?|wgh?ts?|wts?)\d*|(?P<word>pondera\w*)")
PERSONS = _word(
    r"height|bmi|waist|chest|ages?|sex|gender|born|birth\w*|dob|gestation\w*|parity|mothers?|maternal|infants?|newborns?|"
    r"bab(y|ies)|child|patients?|systolic|diastolic|pulse|smok\w+|pregnan\w+"
)
STRATA = _word(
    r"region|province|state|county|canton|district|sector|industry|nace|strat\w+|^(year|quarter|month|wave)$"
)
CONFIDENTIAL = _word(
    r"health|diseases?|diagnos\w+|illness|icd\w*|hiv|aids|cancer|symptoms?|medication|drugs?|disab\w+|pregnan\w+|genet\w+|"
    r"religio\w*|faith|beliefs?|part(y|ies)_vot\w+|vot(e|ed|ing)|politic\w+|trade_union|union_memb\w+|crim\w+|convict\w+|"
    r"offen[cs]e\w*|arrest\w*|sexual\w*|(test|lab|ct)_results?|^results?$"
)
QUANTITIES = _word(r"n|num|number|count|size|age|hours|days|children|rooms|persons|members")

LOOKS = {
    "e-mail addresses": re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+"),
    "accounts (IBAN)": re.compile(r"[A-Z]{2}\d{2} ?([A-Z0-9]{4} ?){2,7}[A-Z0-9]{1,4}"),
    "universal identifiers or hashes": re.compile(r"(?i)[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{32,}"),
    "addresses of the internet": re.compile(r"https?://\S+|(\d{1,3}\.){3}\d{1,3}"),
}
DIGITS = re.compile(r"(?!\d+[.,]\d+$)\+?\(?\d([ ()/.-]{0,2}\d){7,}")  # telephones, accounts, social security
CODES = (-7, -8, -9, *(sign * (10**d - c) for d in range(2, 7) for sign in (1, -1) for c in (1, 2, 3)))
CODES += tuple(sign * c for sign in (1, -1) for c in (88, 888, 8888))
WORDS = re.compile(r"(?i)\?+|-+|\.|n/?a|n\.a\.|#n/a|nan|null|unknown|not known|not stated|missing|no answer|refused")


class Span(NamedTuple):
    """Whole numbers of a column, no two of them alike."""

    present: int
    least: float
    greatest: float


def _plain(name: Name) -> str:
    """Return the words of a name, in small letters.

    Examples
    --------
    >>> _plain("patientID"), _plain("Marital-Status"), _plain("UTILNAME")
    ('patient_id', 'marital_status', 'utilname')
    """
    text = str(name)
    if len(text) > LONG:  # patterns may take the square of its length
        text = f"{text[: LONG // 2]}_{text[-LONG // 2 :]}"
    parted = re.sub(r"(?<=[a-z\d])(?=[A-Z])", "_", text)
    return "_".join(re.findall(r"[^\W_]+", parted)).lower()


def is_code(name: Name, cells: Cells) -> bool:
    """Say whether whole numbers are a code: a few come back again and again, and the name speaks of no quantity.

    Examples
    --------
    >>> [is_code(name, Cells.of(pl.Series([1, 2, 2] * 10))) for name in ("sex", "rooms")]
    [True, False]
    """
    few = 60 if is_stratum(name) else FEW
    again = 1 < cells.distinct <= few and cells.present >= 5 * cells.distinct
    return cells.whole and again and QUANTITIES.search(_plain(name)) is None


def missing_codes(cells: Cells) -> dict[int | str, int]:
    """Return what looks like a code for missing, and how often it stands: numbers far from the rest, words such as NA.

    A number is repeated and lies below zero where all others do not, or farther above all others than these lie apart.

    Examples
    --------
    >>> missing_codes(Cells.of(pl.Series([18, 30, 44, 999, -9, 52, 999, -9, 999, -9])))
    {-9: 3, 999: 3}
    >>> missing_codes(Cells.of(pl.Series(["smith", "?", "baker", "?"])))
    {'?': 2}
    """
    if cells.text:
        words = [word for word in cells.values.unique().sort() if WORDS.fullmatch(word)]
        return {word: int((cells.values == word).sum()) for word in words} if len(words) < cells.distinct else {}
    numbers = cells.numbers
    rest = numbers[~np.isin(numbers, CODES)]
    if len(rest) < 2:
        return {}
    least, most = float(rest.min()), float(rest.max())
    apart: dict[int | str, int] = {
        code: int((numbers == code).sum()) for code in sorted(CODES) if code < 0 <= least or code > 2 * most - least
    }
    return {code: count for code, count in apart.items() if count >= 3}


# Roles


def is_weight(name: Name, cells: Cells, *, persons: bool = False) -> bool:
    """Return whether a column is a survey weight: positive numbers under a name that survey weights have.

    The bare word "weight" is also that of a body: if the table describes `persons`, or the numbers may be kilograms,
    pounds or grams, the column is not proposed as a survey weight. A "final weight" of persons may be of their bodies
    too, if the numbers are.

    Examples
    --------
    >>> bodies, counts = Cells.of(pl.Series([61.5, 80.0, 72.5])), Cells.of(pl.Series([900.5, 12_000.0, 3.5]))
    >>> is_weight("sampling_weight", bodies), is_weight("weight", bodies), is_weight("weight", counts)
    (True, False, True)
    >>> is_weight("birthweight", counts), is_weight("weight", counts, persons=True)
    (False, False)
    >>> is_weight("final_weight", counts, persons=True), is_weight("final_weight", bodies, persons=True)
    (True, False)
    """
    numbers = cells.numbers
    words = _plain(name).split("_")
    weights = [found for word in words if (found := WEIGHT.fullmatch(word))]
    others = [word for word in words if WEIGHT.fullmatch(word) is None]
    named = bool(weights) and all(map(SURVEY.fullmatch, others))
    if not named or not len(numbers) or not numbers.min() > 0:
        return False
    prefixes = [*(found["of"] or found["word"] or "" for found in weights), *others]
    if any(map(SAMPLING.fullmatch, prefixes)):
        return True
    bodies = _may_be_bodies(numbers)
    return not (persons and bodies if any(word.strip("0123456789") for word in prefixes) else persons or bodies)


def _may_be_bodies(numbers: Floats) -> bool:
    """Return whether most numbers lie where the weights of persons or newborns do."""
    return any(((least <= numbers) & (numbers <= most)).mean() >= MOST for least, most in BODIES)


def is_of_person(name: Name) -> bool:
    """Return whether the name is that of a property of persons; a bare weight next to it may be of their bodies."""
    return PERSONS.search(_plain(name)) is not None


def is_stratum(name: Name) -> bool:
    """Say whether the name is that of regions, sectors or periods, by which tables are divided."""
    return STRATA.search(_plain(name)) is not None


def is_confidential(name: Name) -> bool:
    """Say whether the name speaks of health, belief, politics, crime or sexual life."""
    return CONFIDENTIAL.search(_plain(name)) is not None


def names_id(name: Name) -> bool:
    """Say whether the name is one of ids: of a person, a household, a firm."""
    return IDS.search(_plain(name)) is not None


def repeats_like_unit(name: Name, cells: Cells) -> bool:
    """Say whether a column numbers persons, households or firms with a few records each."""
    many = cells.distinct > 100 or (cells.distinct > FEW and PEOPLE.search(_plain(name)) is not None)
    ids = (cells.text or cells.whole) and names_id(name)
    return ids and many and 1.5 * cells.distinct <= cells.present <= 50 * cells.distinct


# Identifiers. To count the different values of a column takes longest, so that it is asked for last.


def looks_like_identifier(name: Name, column: pl.Series | Column | Cells) -> str | None:
    """Say why a column looks like one that names its record, a person or a firm; None if it does not.

    Examples
    --------
    >>> looks_like_identifier("contact", pl.Series(["ann@example.org", "bob@example.org"]))
    'the cells look like e-mail addresses'
    >>> looks_like_identifier("sales", pl.Series([10.5, 7.25])) is None
    True
    """
    cells = column if isinstance(column, Cells) else Cells.of(column)
    if kind_of_cells(cells) not in ("nominal", "integer") or not cells.present:
        return None
    return next((reason for says in IDENTIFIERS if (reason := says(_plain(name), cells))), None)


def _various(cells: Cells) -> bool:
    """Say whether there are more values than a code has, or than half of a small table."""
    return cells.distinct > min(FEW, cells.present / 2)


def _all_different(cells: Cells) -> bool:
    return cells.present > SMALL and cells.distinct >= MOST * cells.present


def _named(plain: str, cells: Cells) -> str | None:
    """Recognise what identifies by its name; yes and no to a telephone do not."""
    found = [what for what, pattern in NAMED.items() if pattern.search(plain)]
    return f"the name says that it is {found[0]}" if found and _various(cells) else None


def _named_id(plain: str, cells: Cells) -> str | None:
    single = IDS.search(plain) and cells.present < 1.5 * cells.distinct and _various(cells)
    return "the name says that it is an id, and most values stand once" if single else None


def _many_names(plain: str, cells: Cells) -> str | None:
    """Recognise names of firms or places, unless they are a classification."""
    many = cells.text and NAMES.search(plain) and cells.distinct > 100
    return f"the name says that it holds names, {cells.distinct:,} different ones" if many else None


def _spelled_so(plain: str, cells: Cells) -> str | None:
    found = [what for what, pattern in LOOKS.items() if cells.look_like(pattern)] if cells.text else []
    return f"the cells look like {found[0]}" if found else None


def _long_digits(plain: str, cells: Cells) -> str | None:
    """Recognise numbers of telephones, accounts and insurances: as text, or as numbers that are all equally long."""
    if not cells.look_like(DIGITS) or not _various(cells):
        return None
    if not cells.text and not (_all_different(cells) and len(set(map(len, cells.spelled))) == 1):
        return None
    return "the cells are long strings of digits, as those of telephones or accounts"


def _running_number(plain: str, cells: Cells) -> str | None:
    """Recognise a numbering of the records: whole numbers, no two alike, next to each other."""
    span = number_span(cells)
    return NUMBERED if span is not None and is_numbering([span]) else None


def number_span(cells: Cells) -> Span | None:
    """Return how many whole numbers there are, and the least and the greatest, if no two are alike."""
    if not cells.whole or not cells.present:
        return None
    values: Any = cells.values
    least, greatest = values.min(), values.max()
    # Whole numbers that lie closer are not all different: then they need not be counted.
    different = greatest - least >= cells.present - 1 and cells.distinct == cells.present
    return Span(cells.present, least, greatest) if different else None


def is_numbering(spans: Sequence[Span]) -> bool:
    """Say whether whole numbers of all parts of a table are a numbering of its records.

    Examples
    --------
    >>> is_numbering([Span(50, 1, 99), Span(50, 2, 100)]), is_numbering([Span(50, 1, 99)])
    (True, False)
    """
    present = sum(span.present for span in spans)
    reach = max(span.greatest for span in spans) - min(span.least for span in spans)
    return present > SMALL and present - 1 <= reach < 1.2 * present


def _different_text(plain: str, cells: Cells) -> str | None:
    if not cells.text or not _all_different(cells):
        return None
    return f"{'all' if cells.distinct == cells.present else 'almost all'} values are different"


def _free_text(plain: str, cells: Cells) -> str | None:
    if not cells.text or np.mean([len(cell) for cell in cells.spelled]) < 40:
        return None
    return "free text, which may tell anything" if 2 * cells.distinct >= cells.present and _various(cells) else None


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
