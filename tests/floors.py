"""Print the oldest versions of dependencies that pyproject.toml allows, as pip's constraints: ``make test-oldest``."""

import re
import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"
TOOLS = {"bench", "docs", "mutants"}  # extras that no test needs


def floors(text: str) -> list[str]:
    """Return ``name==version`` for the requirements of the package, its extras and its tests."""
    project = tomllib.loads(text)["project"]
    extras = [listed for name, listed in project["optional-dependencies"].items() if name not in TOOLS]
    bounds = (
        re.match(r"([\w-]+)(?:\[[\w,]+\])?>=([\d.]+)", requirement)
        for requirement in sum(extras, project["dependencies"])
    )
    return [f"{bound[1]}=={bound[2]}" for bound in bounds if bound]  # extras of shoal have no version


if __name__ == "__main__":
    print("\n".join(floors(PROJECT.read_text(encoding="utf-8"))))  # noqa: T201
