"""Draw the way of the data and the layers of the package in CONTRIBUTING.md, from the code alone.

``python docs/draw_layers.py`` draws anew; with ``--check`` it fails where the drawings are stale. Nothing is imported:
sources are parsed, and the layers are those of the import-linter contract in pyproject.toml.
"""

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from textwrap import shorten

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "shoal"
PAGE = ROOT / "CONTRIBUTING.md"
STEPS = ("masking.bucket", "masking.recount", "masking.reading", "masking.warm_up", "masking.steps")


def parse(name: str) -> ast.Module:
    """Return the syntax tree of a module or package, by its dotted name below shoal."""
    path = SOURCE / name.replace(".", "/")
    return ast.parse((path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).read_text(encoding="utf-8"))


def summary(node: ast.Module | ast.FunctionDef, width: int) -> str:
    """Return the first line of a docstring, as much of it as fits."""
    return shorten((ast.get_docstring(node) or "").split("\n")[0], width, placeholder=" …")


class Way(ast.NodeVisitor):
    """The way of the data: what `mask_records` calls, and the step functions it hands to the engine, in this order."""

    def __init__(self) -> None:
        body = parse("masking.pipeline").body + parse("masking.recount").body
        imports = [(str(node.module), node.names) for node in body if isinstance(node, ast.ImportFrom)]
        self.homes = {name.name: home[6:] for home, names in imports for name in names if home.startswith("shoal.")}
        self.own = {node.name: node.body for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
        engine = (SOURCE / "engines" / "records.py").read_text(encoding="utf-8")
        self.methods = set(re.findall(r"def (\w+)\(\s*self, (?:function|how): ", engine))
        self.lines = [f"{'stage':11}{'engine':9}{'function':19}{'of':21}what it does"]
        self.stage, self.handed, self.depth = "", list[str](), 0
        self.visit(ast.parse("mask_records()"))

    def visit_Name(self, node: ast.Name) -> None:
        """Keep the step functions that are named: the next call of the engine gets them."""
        if self.homes.get(node.id) in STEPS and node.id.islower():
            self.handed.append(node.id)

    def visit_Call(self, node: ast.Call) -> None:
        """Follow the pipeline's own functions; draw those of other modules, and the engine's with their steps."""
        name = ast.unparse(node.func)
        if name == "seconds":
            self.stage = ast.literal_eval(node.args[0])
        elif self.depth == 1 and name.islower() and name in self.homes:
            self.draw("", name)
        self.generic_visit(node)
        # The public functions of the pipeline are parts of its first one.
        part = self.depth == 1 and name in self.own and name not in self.homes and not name.startswith("_")
        before, self.depth = self.depth, self.depth + (not part)
        for statement in self.own.get(name, []):
            self.visit(statement)
        self.depth = before
        if name.rpartition(".")[2] in self.methods and self.handed:
            for position, step in enumerate(self.handed):
                self.draw("" if position else name.rpartition(".")[2], step)
            self.handed = []

    def draw(self, method: str, name: str) -> None:
        """Add a line; a stage is named once."""
        body = parse(self.homes[name]).body
        (told,) = (summary(node, 60) for node in body if isinstance(node, ast.FunctionDef) and node.name == name)
        self.lines.append(f"{self.stage:11}{method:9}{name:19}{self.homes[name]:21}{told}")
        self.stage = ""


def imported(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield the modules that a module imports, in functions too (●) or by name (○), but not for its types alone."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.ImportFrom):
            yield str(node.module), "●"
        elif isinstance(node, ast.Import):
            yield from ((alias.name, "●") for alias in node.names)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "import_module":
            yield ast.unparse(node.args[0]).lstrip("f").strip("'"), "○"
        yield from imported(node)


def draw() -> str:
    """Return the text between the marks."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = [re.findall(r"shoal\.(\w+)", layer) for layer in project["tool"]["importlinter"]["contracts"][0]["layers"]]
    packages = [package for layer in layers for package in layer]
    matrix, modules = ["imports:".ljust(17) + "".join(f"{i + 1:3}" for i in range(len(packages)))], list[str]()
    for number, package in enumerate(packages, 1):
        if any(package == layer[0] for layer in layers):
            matrix.append("─" * 120)
        marks = {package: "■"}
        for path in sorted((SOURCE / package).rglob("*.py")) or [SOURCE / f"{package}.py"]:
            name = ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
            modules.append(f"{'    ' * name.count('.')}{name.rpartition('.')[2]:24}{summary(parse(name), 92)}")
            found = sorted(imported(parse(name)), key=lambda pair: pair[1])
            marks = {each.split(".")[1]: mark for each, mark in found if each.startswith("shoal.")} | marks
        cells = "".join(f"  {marks.get(other, '·')}" for other in packages)
        matrix.append(f"{number:3} {package:13}{cells}   {summary(parse(package), 58)}")
    way, layered, listed = ("```text\n" + "\n".join(lines) + "\n```\n" for lines in (Way().lines, matrix, modules))
    return f"\n{way}\n{layered}\n<details><summary>All modules</summary>\n\n{listed}\n</details>\n\n"


if __name__ == "__main__":
    page = PAGE.read_text(encoding="utf-8")
    drawn, marked = re.subn(r"(?<=<!-- layers -->\n).*(?=<!-- /layers -->)", lambda _: draw(), page, flags=re.DOTALL)
    if "--check" not in sys.argv:
        PAGE.write_text(drawn, encoding="utf-8")
    elif not marked or page != drawn:
        sys.exit("CONTRIBUTING.md shows the code as it was. Draw it as it is: python docs/draw_layers.py")
