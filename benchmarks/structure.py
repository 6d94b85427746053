"""Compare the structure of two versions of shoal: the modules that a masking passes through, lines and files.

The command masks the demo table within regions. A change of module is a call into another module, or its return. A call
goes upward if the layer of the called module, in pyproject.toml, is above that of its caller. The first run, which
compiles kernels, does not count.

Run: python benchmarks/structure.py OLD NEW [--record], with two checkouts.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from results import table

from shoal.demo import firms

TITLE = "The structure of the code"
HEAD = "figure | before {:,} | after {:,} | goal {:,}"
COLUMNS = [
    "--by",
    "region",
    "--missing",
    "group",
    *(part for name in ("sales", "wages", "assets") for part in ("-c", name)),
]
MASK = ["mask", "firms.csv", "-k", "5", *COLUMNS, "-o", "out.csv"]
WALK = """
import json, sys, threading
from pathlib import Path
import shoal
from shoal.cli import main

root, level = str(Path(shoal.__file__).parent) + "/", json.loads(sys.argv[1])
names, stacks = {}, threading.local()
modules, counts = set(), {"changes": 0, "upward": 0}

def module(path):
    if path not in names:
        inside = path[len(root) : -3].replace("/", ".") if path.startswith(root) else ""
        names[path] = inside.removesuffix(".__init__")
    return names[path]

def profile(frame, event, _):
    # A frame of the stack is the module it belongs to: None for other packages, "" while a module is imported.
    stack = stacks.__dict__.setdefault("stack", [])
    code = frame.f_code
    if event == "call":
        imports = code.co_name == "<module>" or "importlib" in code.co_filename or bool(stack and stack[-1][1] == "")
        stack.append((code, "" if imports else module(code.co_filename) or None))
        called = stack[-1][1]
        callers = [name for _, name in stack[:-1] if name]
        if called:
            modules.add(called)
            if callers and callers[-1] != called:
                counts["changes"] += 2
                above = level.get(called.split(".")[0], 0) > level.get(callers[-1].split(".")[0], 0)
                counts["upward"] += above
    elif event == "return" and stack and stack[-1][0] is code:
        stack.pop()

sys.argv = ["shoal", *sys.argv[2:]]
threading.setprofile(profile)
sys.setprofile(profile)
try:
    main()
except SystemExit:
    pass
finally:
    sys.setprofile(None)
    threading.setprofile(None)
print(json.dumps([len(modules), counts["changes"], counts["upward"]]))
"""


def main(trees: list[str]) -> None:
    """Print one row per figure: before, after, goal."""
    with tempfile.TemporaryDirectory() as name, table("structure", TITLE, HEAD) as add:
        folder = Path(name)
        firms().write_csv(folder / "firms.csv")
        walks = [[json.loads(run(WALK, tree, folder)) for _ in range(2)][1] for tree in trees]
        for place, (title, goal) in enumerate(
            (("modules that a masking passes through", 35), ("changes of module", 700), ("calls up the layers", 0))
        ):
            add(title, *(walk[place] for walk in walks), goal)
        files = [list(Path(tree, "src").rglob("*.py")) for tree in trees]
        add("lines in src", *(sum(len(path.read_text().splitlines()) for path in each) for each in files), 41_500)
        add("files in src", *map(len, files), 240)


def layers(tree: str) -> dict[str, int]:
    """Return the level of each package, counted from the top layer."""
    contracts = tomllib.loads(Path(tree, "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    rows = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    return {
        name.strip().removeprefix("shoal."): -place
        for place, row in enumerate(rows)
        for name in row.replace("|", ":").split(":")
    }


def run(program: str, tree: str, folder: Path) -> str:
    """Run a program with the shoal of a checkout; return its last line of output."""
    environment = {**os.environ, "PYTHONPATH": str(Path(tree, "src").resolve())}
    done = subprocess.run(
        [sys.executable, "-c", program, json.dumps(layers(tree)), *MASK],
        env=environment, cwd=folder, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout.splitlines()[-1]


if __name__ == "__main__":
    main(sys.argv[1:3])
