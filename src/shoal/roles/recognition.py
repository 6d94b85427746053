"""Recognition of columns by name and cells: weights, units, strata, codes, diagnoses and codes for missing values.

No function here refuses a column. The results are guesses for people to review.
"""

from __future__ import annotations

import re

import numpy as np
import polars as pl

from shoal.core.types import Floats, Name
from shoal.kinds.column import MOST, Cells
from shoal.roles.word_lists import WordLists, read_words
from shoal.tables.identifiers import FEW, IDS, PEOPLE, name_pattern, name_words

__all__ = [
    "counts_units",
    "holds_diagnoses",
    "is_code",
    "is_of_person",
    "is_stratum",
    "is_weight",
    "missing_codes",
    "names_id",
    "repeats_like_unit",
]

BODIES = ((0.5, 6.5), (20.0, 350.0), (500.0, 6500.0))  # newborns in kg, persons in kg or pounds, newborns in grams

# Words next to "weight" in names of survey weights. Other weights (birth weight, weight in kg) are measurements.
_SURVEY = (
    "sampling sample samp survey svy design final finl fnl afnl base basic expansion grossing calibrated calibration "
    "calib cal raked adjusted adj normalised normalized norm rescaled scaled trimmed replicate repl rep bootstrap boot "
    "frequency freq probability prob inverse inv ipw person personal pers per individual indiv household house hh "
    "family fam population pop firm company enterprise establishment respondent resp cross longitudinal long wave "
    "national stratum strata poststrat psp asec an analysis a d f i p"
).replace(" ", "|")
SURVEY = re.compile(rf"{_SURVEY}|\d+")
# Words that never precede a body weight; "final", "person" or "p" may precede either kind of weight.
SAMPLING = re.compile(
    r"sampl\w+|samp|survey|svy|design|a?fnl|expansion|grossing|calib\w*|raked|repl?(icate)?|boot(strap)?|freq(uency)?|"
    r"prob(ability)?|inv(erse)?|ipw|household|hh|family|fam|pop(ulation)?|firm|company|enterprise|establishment|national|"
    r"strat(um|a)|poststrat|psp|pondera\w*|coeffy|an|analysis|hochrechnung\w*|weeg\w*|weging\w*|asec"
)
WEIGHT = re.compile(
    rf"(?P<of>{_SURVEY})?(?:weights?|wgh?ts?|wts?|gewicht|poids|peso|pes|waga)[a-z]?\d*|"
    r"(?P<word>pondera\w*|coeffy|(?:hochrechnungs|weeg|wegings?)fa[kc]tor)"
)
FACTOR = re.compile(r"(factor|coef\w*)_(de_)?(elevacion|expansion|ponder\w*|riporto|extrapolation)|peso_campion\w*")
PERSONS = name_pattern(
    r"height|bmi|waist|chest|ages?|sex|gender|born|birth\w*|dob|gestation\w*|parity|mothers?|maternal|infants?|newborns?|"
    r"bab(y|ies)|child|patients?|systolic|diastolic|pulse|smok\w+|pregnan\w+"
)
STRATA = name_pattern(
    r"region|province|state|county|canton|district|sector|industry|nace|strat\w+|^(year|quarter|month|wave)$"
)
DIAGNOSIS = re.compile(r"(?i)[a-tv-z]\d[0-9ab](\.?[0-9a-z]{1,4})?")  # ICD-10
QUANTITIES = name_pattern(
    r"n|num|number|count|size|age|hours|days|children|rooms|persons|members|population|amount|price|order|exper\w*|tenure|"
    r"sib\w*|kids|visits"
)
SITES = name_pattern(
    r"facility|site|clinic|cent(re|er)|product|item|store|shop"
)  # sites and goods, each of which has many persons
CODES = (-7, -8, -9, *(sign * (10**d - c) for d in range(2, 7) for sign in (1, -1) for c in (1, 2, 3)))
CODES += tuple(sign * c for sign in (1, -1) for c in (88, 888, 8888))
WORDS = r"(?i)^(\?+|-+|\.|n/?a|n\.a\.|#n/a|nan|null|unknown|not known|not stated|missing|no answer|refused)$"


def is_code(name: Name, cells: Cells, words: WordLists | None = None) -> bool:
    """Return True if numbers are codes, which have the name of a code, few values that repeat, or gaps like codes.

    Examples
    --------
    >>> import polars as pl
    >>> [is_code(name, Cells.of(pl.Series([1, 2, 2] * 10))) for name in ("sex", "rooms")]
    [True, False]
    """
    if not len(cells.numbers) or QUANTITIES.search(name_words(name)):
        return False
    words = words or read_words()
    again = cells.present >= 2 * cells.distinct
    if words.has("trees", name) and (cells.whole or again):  # NACE 01.1 is not a number
        return True
    if not cells.whole:
        return False
    if words.has("codes", name) and again:
        return True
    few = 60 if is_stratum(name) else FEW
    again = cells.distinct > 1 and cells.present >= 5 * cells.distinct
    return again and (cells.distinct <= few or _has_gaps(cells))


def _has_gaps(cells: Cells) -> bool:
    """Return True if numbers of equal length, at least three digits, fill little of their range at irregular steps."""
    values = cells.values.unique().sort().cast(pl.Int64, strict=False)
    least, greatest = int(values[0] or 0), int(values[-1] or 0)
    if least < 100 or len(str(least)) != len(str(greatest)) or not FEW < len(values) <= 0.4 * (greatest - least):
        return False
    return int(np.gcd.reduce(values.diff().drop_nulls().to_numpy())) == 1


def missing_codes(cells: Cells) -> dict[int | str, int]:
    """Return probable codes for missing values, with their counts: numbers far from the rest, and words such as NA.

    A numeric code occurs at least three times. It is negative while no other number is, or it exceeds all others by
    more than their range.

    Examples
    --------
    >>> import polars as pl
    >>> missing_codes(Cells.of(pl.Series([18, 30, 44, 999, -9, 52, 999, -9, 999, -9])))
    {-9: 3, 999: 3}
    >>> missing_codes(Cells.of(pl.Series(["smith", "?", "baker", "?"])))
    {'?': 2}
    """
    if cells.text:
        written = cells.values.filter(cells.values.str.contains(WORDS))
        words: dict[int | str, int] = {word: int((written == word).sum()) for word in written.unique().sort()}
        return words if len(words) < cells.distinct else {}
    coded = np.isin(cells.numbers, CODES)
    rest = cells.numbers[~coded]
    if len(rest) < 2:
        return {}
    least, most = float(rest.min()), float(rest.max())
    codes, counts = np.unique(cells.numbers[coded], return_counts=True)
    return {
        int(code): int(times)
        for code, times in zip(codes, counts, strict=True)
        if times >= 3 and (code < 0 <= least or code > 2 * most - least)
    }


def is_weight(name: Name, cells: Cells, *, persons: bool = False) -> bool:
    """Return whether a column is a survey weight: positive numbers with the name of a survey weight.

    "Weight" alone may be a body weight. It is not a survey weight if the table describes `persons`, or if the numbers
    may be kilograms, pounds or grams. "Final weight" is not a survey weight if both conditions hold.

    Examples
    --------
    >>> import polars as pl
    >>> bodies, counts = Cells.of(pl.Series([61.5, 80.0, 72.5])), Cells.of(pl.Series([900.5, 12_000.0, 3.5]))
    >>> is_weight("sampling_weight", bodies), is_weight("weight", bodies), is_weight("weight", counts)
    (True, False, True)
    >>> is_weight("birthweight", counts), is_weight("weight", counts, persons=True)
    (False, False)
    >>> is_weight("final_weight", counts, persons=True), is_weight("final_weight", bodies, persons=True)
    (True, False)
    """
    numbers = cells.numbers
    if FACTOR.fullmatch(name_words(name)):
        return bool(len(numbers)) and bool(numbers.min() > 0)
    words = name_words(name).split("_")
    weights = [match for word in words if (match := WEIGHT.fullmatch(word))]
    others = [word for word in words if WEIGHT.fullmatch(word) is None]
    named = bool(weights) and all(map(SURVEY.fullmatch, others))
    if not named or not len(numbers) or not numbers.min() > 0:
        return False
    prefixes = [*(match["of"] or match["word"] or "" for match in weights), *others]
    if any(map(SAMPLING.fullmatch, prefixes)):
        return True
    bodies = _may_be_bodies(numbers)
    return not (persons and bodies if any(word.strip("0123456789") for word in prefixes) else persons or bodies)


def _may_be_bodies(numbers: Floats) -> bool:
    """Return whether most numbers are in the range of body weights of persons or newborns."""
    return any(((least <= numbers) & (numbers <= most)).mean() >= MOST for least, most in BODIES)


def is_of_person(name: Name) -> bool:
    """Return whether a column name denotes a property of persons, so that a weight may be a body weight."""
    return PERSONS.search(name_words(name)) is not None


def is_stratum(name: Name) -> bool:
    """Return whether a column name indicates regions, sectors or periods, which usually divide tables."""
    return STRATA.search(name_words(name)) is not None


def holds_diagnoses(cells: Cells) -> bool:
    """Return whether the cells are codes of the International Classification of Diseases.

    Examples
    --------
    >>> holds_diagnoses(Cells.of(pl.Series(["I10", "J45.9", "E11.65", "M54"] * 5)))
    True
    """
    return cells.text and cells.distinct > 3 and cells.look_like(DIAGNOSIS)


def counts_units(column: pl.Series, period: pl.Series) -> bool:
    """Return whether a column contains units that occur at most once per period, as in a panel of persons or firms."""
    units, periods, records = column.n_unique(), period.n_unique(), len(column)
    repeats = 1.2 * units <= records <= units * periods and not column.null_count()
    # If the column did not contain units, some records would share value and period by chance.
    if not repeats or units <= FEW or records**2 < 20 * units * periods:
        return False
    return pl.DataFrame([column.alias("unit"), period.alias("period")]).n_unique() == records


def names_id(name: Name) -> bool:
    """Return whether a column name indicates an ID of persons, households or firms."""
    return IDS.search(name_words(name)) is not None


def repeats_like_unit(name: Name, cells: Cells) -> bool:
    """Return whether a column contains IDs of persons, households or firms with a few records each."""
    words = name_words(name)
    many = cells.distinct > 100 or (cells.distinct > FEW and PEOPLE.search(words) is not None)
    ids = (cells.text or cells.whole) and names_id(name) and SITES.search(words) is None
    return ids and many and 1.5 * cells.distinct <= cells.present <= 50 * cells.distinct
