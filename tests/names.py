"""Check that variables are named after what they hold: ``python tests/names.py``, a part of ``make lint``.

The check counts assigned names and arguments in ``src`` that are a bare participle or a filler word, and fails above
the limit with the files that have the most of them.
"""

import ast
import re
import sys
from collections import Counter
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src"
LIMIT = 1.5  # percent of all bindings; it may go down, and never up
BARE = re.compile(
    "apart|asked|beside|both|chosen|found|given|held|here|how|kept|known|least|left|listed|made|more|most|named|others?"
    "|own|ready|said|seen|shown|some|taken|told|wanted|way|what|whole|written"
)


def bound_names(path: Path) -> list[str]:
    """Return the names that a module assigns and the arguments of its functions, once per binding."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    arguments = [node.arg for node in nodes if isinstance(node, ast.arg)]
    return arguments + [node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]


def main() -> str | None:
    """Return what is wrong, if the share of bare names exceeds the limit."""
    names = {path: bound_names(path) for path in SOURCE.rglob("*.py")}
    bare = Counter({path: sum(1 for name in bound if BARE.fullmatch(name)) for path, bound in names.items()})
    share = 100 * bare.total() / sum(map(len, names.values()))
    worst = "".join(f"\n{number:4} {path.relative_to(SOURCE)}" for path, number in bare.most_common(10))
    message = f"{share:.2f} % of all variables are bare participles or fillers, more than {LIMIT} %; most are in{worst}"
    return message if share > LIMIT else None


if __name__ == "__main__":
    sys.exit(main())
