"""Print the oldest versions of dependencies that pyproject.toml allows, as pip's constraints: ``make test-oldest``."""

import re
import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"
TOOLS = {"bench", "docs"}  # extras that no test needs


def floors(text: str) -> list[str]:
    """Return ``name==version`` for what an installation needs and its tests use, extras included."""
    project = tomllib.loads(text)["project"]
    extras = [listed for name, listed in project["optional-dependencies"].items() if name not in TOOLS]
    found = []
    for requirement in sum(extras, project["dependencies"]):
        if bound := re.match(r"([\w-]+)(?:\[[\w,]+\])?>=([\d.]+)", requirement):  # not the extras of shoal itself
            found.append(f"{bound[1]}=={bound[2]}")
    return found


if __name__ == "__main__":
    print("\n".join(floors(PROJECT.read_text(encoding="utf-8"))))  # noqa: T201
