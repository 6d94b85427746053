"""Generate the page of modules from the sources: the layers of the packages, and one line per module.

Nothing is imported: sources are parsed, and the layers are those of the import-linter contract in pyproject.toml.
"""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

__all__ = ["module_page"]

ROOT = Path(__file__).resolve().parent.parent
INTRODUCTION = """# Modules

Made from the sources when the site is built. A package imports from its own layer or from below, inside functions too;
`make lint` checks it. [Architecture](architecture.md) explains how the packages work together.

## Layers

Uppermost first. Packages with the same number share a layer.

| layer | package | purpose | imports |
|---|---|---|---|
"""


def module_page(root: Path = ROOT) -> str:
    """Return the page of the packages in ``src/shoal`` and their modules."""
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    layers = [re.findall(r"shoal\.(\w+)", layer) for layer in project["tool"]["importlinter"]["contracts"][0]["layers"]]
    rows, lists = list[str](), list[str]()
    for number, layer in enumerate(layers, 1):
        for package in layer:
            modules = read_package(root / "src" / "shoal", package)
            others = sorted(set().union(*map(imported_packages, modules.values())) - {package})
            imports = ", ".join(f"`{name}`" for name in others)
            rows.append(f"| {number} | `{package}` | {summary(modules[package])} | {imports} |")
            lines = [f"- `{name}`: {summary(tree)}" for name, tree in modules.items() if name != package]
            if lines:
                lists.append("\n".join([f"## {package}\n", *lines]))
    return INTRODUCTION + "\n".join(rows) + "\n\n" + "\n\n".join(lists) + "\n"


def read_package(source: Path, package: str) -> dict[str, ast.Module]:
    """Return the syntax trees of a package, or of a single module, by dotted name."""
    paths = sorted((source / package).rglob("*.py")) or [source / f"{package}.py"]
    names = [".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__") for path in paths]
    return {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in sorted(zip(names, paths, strict=True))}


def summary(tree: ast.Module) -> str:
    """Return the first line of a docstring as a cell of a table."""
    return (ast.get_docstring(tree) or "").split("\n")[0].replace("``", "`").replace("|", "\\|")


def imported_packages(tree: ast.Module) -> set[str]:
    """Return the packages of shoal that a module imports at run time."""
    return {name.split(".")[1] for name in imported_modules(tree) if name.startswith("shoal.")}


def imported_modules(node: ast.AST) -> Iterator[str]:
    """Yield the imported modules, also in functions, except those used only for annotations."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        if isinstance(child, ast.ImportFrom):
            yield str(child.module)
        elif isinstance(child, ast.Import):
            yield from (alias.name for alias in child.names)
        yield from imported_modules(child)
