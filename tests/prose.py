"""Check the English of shoal: ``python tests/prose.py``, a part of ``make lint``.

The check looks for the slips in ``SLIPS`` in docstrings, messages, help texts, comments and docs, and fails if a class
of sentences has more of them than ``LIMIT``. Patterns find a part of what reads badly, so people read samples as well:
``python tests/prose.py --sample 60 --seed 1`` prints sentences drawn at random from each class.
"""

import argparse
import ast
import random
import re
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
LIMIT = 1.0  # percent of the sentences of a class; it may go down, and never up
SLIPS = {
    r"\bstands? (for|in|on|there|twice|once|beside)\b": "means, is in, appears",
    r"\b(is|are|was|were) told\b|\btells? (apart|of|how|which|whether|what|that)\b": "is reported, shows",
    r"\bsays? (which|how|whether|what|of)\b|\bsaid to be\b": "shows, names, is called",
    r"\b(steps|lines?|rows?|files?|seconds|one|two|five) an? (record|row|group|line|value|column)\b": "per",
    r"\basked for\b|\bas asked\b|\bwas asked\b": "requested",
    r"\bgoes? with\b": "requires, can be combined with",
    r"\banew\b|\bonce more over\b": "again",
    r"\bbut for\b": "except",
    r"\bbeside\b": "next to",
    r"\blikewise\b|\ball the same\b": "also, anyway",
    r"\blest\b|\bmaybe\b|\bso many\b|\bas they are\b|\bas it is\b|\bat hand\b": "plain words",
    r"\bwhat (is|was|are|were) (known|asked|told|given|released|written|said|kept|left)\b": "the noun",
    r"\bwhose (records|record) (they|it) (are|is)\b": "the unit",
    r"\breckon|\bconcerned\b": "compute; affected",
    r"\bif not given\b|\bif none is given\b|\bnot given\b": "by default, without X",
    r"\b(is|are) alike\b": "are equal, are similar",
    r"\b(is|are) no (number|integer|file|text|date|column|table)s?\b": "is not a",
    r"\bmiss(es)? (a|the|some|either) (value|column|cell)": "has a missing value",
    r"\bthose (that|of) which\b|\bthat which\b": "the noun",
    r"(?-i:\bTake (a|an|the|fewer|another)\b|\bGive (a|an|the|it|that)\b)": "Use, Pass, Set",
    r"\blies? (in|on|within|beyond|there)\b": "is",
    r"\bfound out\b|\bfinds? out\b": "detected",
}
FIRST = re.compile(r"(What|How|Whether|Where|Who|That)\b")  # a docstring begins with a verb or says what a thing is
SPEAKERS = ("Error", "Warning", "warn", "refuse", "Refusal", "Message", "note", "described", "Help")


class Sentence(NamedTuple):
    """A sentence and the place it is in."""

    path: Path
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}  {self.text}"


def plain_text(node: ast.expr) -> str:
    """Return the text of a string in code; expressions in it become an ellipsis."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else "…" for part in node.values)
    return ""


def docstrings(path: Path, tree: ast.Module) -> Iterator[Sentence]:
    """Yield the first paragraph of each docstring."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            text = (ast.get_docstring(node) or "").split("\n\n")[0]
            if text:
                yield Sentence(path, getattr(node, "lineno", 1), " ".join(text.split()))


def messages(path: Path, tree: ast.Module) -> Iterator[Sentence]:
    """Yield the texts of errors, warnings, notes and help."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            texts = [*node.args[:1]] if name.endswith(SPEAKERS) else []
            texts += [keyword.value for keyword in node.keywords if keyword.arg in ("help", "label", "remedy")]
            for text in (" ".join(plain_text(value).split()) for value in texts):
                if len(text) > 25:
                    yield Sentence(path, node.lineno, text)


def comments(path: Path, tree: ast.Module) -> Iterator[Sentence]:
    """Yield the comments that are sentences; instructions for tools are not."""
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            text = token.string.lstrip("# ")
            if token.type == tokenize.COMMENT and len(text) > 25 and not re.match(r"noqa|type: |fmt: ", text):
                yield Sentence(path, token.start[0], text)


def docs() -> Iterator[Sentence]:
    """Yield the sentences of the README, the docs and the newest entries of the changelog."""
    pages = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
    for path in [*pages, *sorted((ROOT / "docs").rglob("*.md"))]:
        text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
        text = "\n".join("" if line.startswith(("|", "#", "!", "<")) else line for line in text.splitlines())
        for paragraph in re.split(r"\n\s*\n|\n\s*[-\d]+\.? ", text):
            for sentence in re.split(r"(?<=[.!?:])\s+(?=[A-Z`*\[])", " ".join(paragraph.split())):
                if len(sentence) > 30:
                    yield Sentence(path, 0, sentence)


def sentences() -> dict[str, list[Sentence]]:
    """Return all sentences of each class."""
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in sorted((ROOT / "src").rglob("*.py"))}
    classes = {"docstrings": docstrings, "messages": messages, "comments": comments}
    listed = {name: [row for path in trees for row in find(path, trees[path])] for name, find in classes.items()}
    return {**listed, "docs": list(docs())}


def slip(kind: str, sentence: Sentence) -> str | None:
    """Return the first slip of a sentence and the words to use, None if there is none."""
    if kind == "docstrings" and (first := FIRST.match(sentence.text)):
        return f"{first[0]} → a verb, or the noun"
    for pattern, words in SLIPS.items():
        if match := re.search(pattern, sentence.text, re.IGNORECASE):
            return f"{match[0]} → {words}"
    return None


def main() -> str | None:
    """Print a sample, or every slip; return what is wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", type=int, help="number of sentences per class to print for readers")
    parser.add_argument("--seed", type=int, default=0, help="random seed of the sample")
    options = parser.parse_args()
    excess = []
    for kind, rows in sentences().items():
        if options.sample:
            drawn = random.Random(options.seed).sample(rows, min(options.sample, len(rows)))
            sys.stdout.write("\n".join([f"\n## {kind}", *map(str, drawn), ""]))
            continue
        slips = [(row, words) for row in rows if (words := slip(kind, row))]
        share = 100 * len(slips) / len(rows)
        sys.stdout.write(f"{kind}: {len(slips)} of {len(rows)} sentences ({share:.1f} %)\n")
        if share > LIMIT:
            excess += [f"{row}\n    {words}" for row, words in slips]
    return "\n".join([*excess, f"more than {LIMIT} % of a class of sentences"]) if excess else None


if __name__ == "__main__":
    sys.exit(main())
