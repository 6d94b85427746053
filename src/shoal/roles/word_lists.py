"""Word lists that identify columns by their names and cells, from words.toml and a user's file."""

from __future__ import annotations

import os
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from shoal.core.errors import FileError, InputError
from shoal.core.messages import parameter
from shoal.core.types import Name
from shoal.tables.identifiers import name_words

__all__ = ["Topic", "WordLists", "read_words"]

LISTS = ("names", "beside", "cells")
FIELDS = {**dict.fromkeys(LISTS, str), "reason": str, "persons": bool, "spreads": bool}
LOGARITHM = re.compile("^(ln|log|l)_?")  # prefix of a logarithm's name
NOTHING = re.compile(r"(?!)")
MANY, SHARE = 3, 1 / 3  # columns of a topic, and their ratio to unclear columns, needed to extend the topic
CONTEXT = 2  # minimum number of a topic's columns before ambiguous names, or the whole table, are assigned to it


@dataclass(frozen=True)
class Topic:
    """A topic: the words of its column names and cells, and its scope."""

    names: re.Pattern[str]
    beside: re.Pattern[str]  # ambiguous names, which count only next to other columns of the topic
    cells: re.Pattern[str]
    reason: str = ""
    persons: bool = False  # True if the topic is sensitive only for persons
    spreads: bool = False  # True if the topic extends to unclear columns of a table about the topic

    def has(self, name: Name) -> bool:
        """Return whether a column name contains a word of the topic."""
        words = name_words(name)
        return self.names.search(words) is not None or self.names.search(LOGARITHM.sub("", words)) is not None


@dataclass(frozen=True)
class WordLists:
    """The sensitive topics and the other topics, keyed by name."""

    sensitive: Mapping[str, Topic]
    others: Mapping[str, Topic]

    def has(self, topic: str, name: Name) -> bool:
        """Return whether a column name contains a word of a topic that is not sensitive."""
        return self.others[topic].has(name)

    def of_firms(self, names: Iterable[Name]) -> bool:
        """Return whether columns describe firms rather than persons."""
        names = list(names)
        return sum(self.has("firms", name) for name in names) >= CONTEXT and not any(
            self.has("persons", name) for name in names
        )

    def sensitive_topics(self, names: Iterable[Name]) -> dict[Name, str]:
        """Return the topics of columns with sensitive names.

        Examples
        --------
        >>> read_words().sensitive_topics(["age", "Diagnose", "salary", "HospitalCounty"])
        {'Diagnose': 'health or treatment', 'salary': 'income, wealth or debt'}
        """
        names = [name for name in names if not self.has("places", name)]
        firms = self.of_firms(names)
        reasons: dict[Name, str] = {}
        for topic in self.sensitive.values():
            if not (firms and topic.persons):
                clear = [name for name in names if topic.has(name)]
                ambiguous = names if len(clear) >= CONTEXT else ()
                beside = [name for name in ambiguous if topic.beside.search(name_words(name))]
                reasons = {**dict.fromkeys([*clear, *beside], topic.reason), **reasons}
        reasons |= self._by_context(names, reasons)
        return {name: reasons[name] for name in names if name in reasons}

    def _by_context(self, names: Iterable[Name], reasons: Mapping[Name, str]) -> dict[Name, str]:
        """Return the topic of unclear columns if many columns of the table belong to one topic."""
        unclear = [name for name in names if name not in reasons and not self._is_clear(name)]
        spreading = [topic.reason for topic in self.sensitive.values() if topic.spreads]
        topics = Counter(reason for reason in reasons.values() if reason in spreading).most_common(1)
        if not topics or topics[0][1] < max(MANY, SHARE * len(unclear)):
            return {}
        return dict.fromkeys(unclear, f"{topics[0][0]}, as other columns do")

    def _is_clear(self, name: Name) -> bool:
        """Return whether a column name denotes an observable property, a code, a period or a person."""
        return any(self.has(topic, name) for topic in ("observable", "codes", "periods", "persons"))

    def topic_of_cells(self, values: Iterable[str]) -> str | None:
        """Return the sensitive topic of at least two and at least half of the distinct texts; None if there is none.

        Examples
        --------
        >>> read_words().topic_of_cells(["catholic", "muslim", "none"])
        'religion or belief'
        """
        texts = [name_words(value) for value in values]
        for topic in self.sensitive.values():
            if (hits := sum(topic.cells.fullmatch(text) is not None for text in texts)) >= 2 and 2 * hits >= len(texts):
                return topic.reason
        return None


def read_words(path: str | os.PathLike[str] | None = None) -> WordLists:
    """Return the word lists of shoal, extended by a user's file."""
    return _shoal_words() if path is None else _combined(_topics(_read(Path(path))))


@cache
def _shoal_words() -> WordLists:
    return _combined({})


def _combined(additions: Mapping[tuple[str, ...], Mapping[str, Any]]) -> WordLists:
    """Return the word lists of shoal with additions."""
    tables = _topics(tomllib.loads(files("shoal.roles").joinpath("words.toml").read_text(encoding="utf-8")))
    for topic, lists in additions.items():
        known_lists = tables.setdefault(topic, {})
        for field, value in lists.items():
            known_lists[field] = f"{known_lists.get(field, '')} {value}" if field in LISTS else value
    topics = {
        name: Topic(
            _pattern(lists.get("names", "")),
            _pattern(lists.get("beside", "")),
            _cell_pattern(lists.get("cells", "")),
            str(lists.get("reason", name[-1])),
            bool(lists.get("persons", False)),
            bool(lists.get("spreads", False)),
        )
        for name, lists in tables.items()
    }
    return WordLists(
        {name[-1]: topic for name, topic in topics.items() if name[0] == "confidential"},
        {name[-1]: topic for name, topic in topics.items() if name[0] != "confidential"},
    )


def _read(path: Path) -> dict[str, Any]:
    """Read a user's file; refuse a file that is not TOML."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise FileError(
            f"Word list {path} cannot be read: {error.strerror}. Check the path and its permissions."
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"Word list {path} is not TOML: {error}. Correct it.") from None
    return content


def _topics(content: Mapping[str, Any]) -> dict[tuple[str, ...], dict[str, Any]]:
    """Return the word lists of each topic; refuse unknown fields."""
    sensitive = content.get("confidential", {})
    sections: dict[tuple[str, ...], Any] = {(name,): lists for name, lists in content.items() if name != "confidential"}
    sections |= (
        {("confidential", name): lists for name, lists in sensitive.items()}
        if isinstance(sensitive, Mapping)
        else {("confidential",): sensitive}
    )
    for name, lists in sections.items():
        fields = lists.items() if isinstance(lists, Mapping) else [("", lists)]
        wrong = [field for field, value in fields if type(value) is not FIELDS.get(field)]
        if wrong:
            raise InputError(
                f"{parameter('words')} has an invalid entry {'.'.join(filter(None, (*name, wrong[0])))!r}. Use names, "
                "beside, cells and reason with text, and persons and spreads with true or false."
            )
    return sections


def _pattern(words: str) -> re.Pattern[str]:
    """Compile words of names, separated by blanks; * matches any letters, and =word matches only a whole name."""
    patterns = []
    for word in words.split():
        text = re.escape(word.removeprefix("=")).replace(r"\*", "[^_]*")
        patterns.append(rf"^{text}$" if word.startswith("=") else rf"(?:^|_){text}\d*(?:_|$)")
    return re.compile("|".join(patterns)) if patterns else NOTHING


def _cell_pattern(words: str) -> re.Pattern[str]:
    """Compile words of whole cells, separated by blanks; * matches any characters."""
    patterns = [re.escape(word).replace(r"\*", ".*") for word in words.split()]
    return re.compile("|".join(patterns)) if patterns else NOTHING
