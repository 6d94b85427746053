"""Print the oldest versions of dependencies that pyproject.toml allows, as pip's constraints: ``make test-oldest``."""

import re
import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"
TOOLS = {"bench", "dev", "docs"}  # extras of tools: their newest versions are as good


def floors(text: str) -> list[str]:
    """Return ``name==version`` for what an installation needs, extras included."""
    project = tomllib.loads(text)["project"]
    extras = [listed for name, listed in project["optional-dependencies"].items() if name not in TOOLS]
    found = []
    for requirement in sum(extras, project["dependencies"]):
        name, floor = re.match(r"([\w-]+)(?:\[[\w,]+\])?>=([\d.]+)", requirement).groups()
        found.append(f"{name}=={floor}")
    return found


if __name__ == "__main__":
    print("\n".join(floors(PROJECT.read_text(encoding="utf-8"))))  # noqa: T201
