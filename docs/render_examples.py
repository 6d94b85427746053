"""Run the examples and render them: ``python docs/render_examples.py [FOLDER]``, part of ``make examples``.

An example is a Python program in the percent format: ``# %% [markdown]`` begins text, ``# %%`` code. The cells run in
order in one namespace; the output of a cell and its open figures follow its code.
"""

import io
import os
import re
import sys
import warnings
from contextlib import chdir, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
ORDER = ("one_column", "spanning_tree", "blocks", "noise", "decomposition", "release")

__all__ = ["EXAMPLES", "ORDER", "Cell", "index_page", "read_cells", "render", "render_all"]


@dataclass(frozen=True)
class Cell:
    """A cell of an example."""

    text: str
    markdown: bool


def read_cells(source: str) -> list[Cell]:
    """Split a program in the percent format into its cells."""
    parts = re.split(r"^# %%(.*)\n", source, flags=re.MULTILINE)[1:]
    cells = []
    for mark, body in zip(parts[::2], parts[1::2], strict=True):
        markdown = "[markdown]" in mark
        text = re.sub(r"^# ?", "", body, flags=re.MULTILINE) if markdown else body
        if text.strip():
            cells.append(Cell(text.strip("\n"), markdown))
    return cells


def render(path: Path) -> dict[str, str | bytes]:
    """Run an example in a temporary folder; return its page and its pictures by name."""
    os.environ.setdefault("MPLBACKEND", "Agg")
    import matplotlib.pyplot as plt

    page, files, names = list[str](), dict[str, str | bytes](), {"__name__": "__main__", "__file__": str(path)}
    sys.path.insert(0, str(path.parent))
    with TemporaryDirectory() as folder, chdir(folder), warnings.catch_warnings():
        for cell in read_cells(path.read_text(encoding="utf-8")):
            if cell.markdown:
                page.append(cell.text)
                continue
            with redirect_stdout(io.StringIO()) as printed:
                exec(compile(cell.text, path.name, "exec"), names)  # noqa: S102
            page.append(f"```python\n{cell.text}\n```")
            if printed.getvalue().strip():
                page.append(f"```text\n{printed.getvalue().rstrip()}\n```")
            for number in plt.get_fignums():
                name, picture = f"{path.stem}-{len(files) + 1}.png", io.BytesIO()
                plt.figure(number).savefig(picture, dpi=110, metadata={"Software": None})
                files[name] = picture.getvalue()
                page.append(f"![What the code above draws]({name})")
            plt.close("all")
    sys.path.remove(str(path.parent))
    page.append(f"*The whole program: `examples/{path.name}`. It runs as it is, and so does `make examples`.*")
    return {f"{path.stem}.md": "\n\n".join(page) + "\n"} | files


def render_all() -> dict[str, str | bytes]:
    """Render all examples."""
    return {name: content for stem in ORDER for name, content in render(EXAMPLES / f"{stem}.py").items()}


def index_page() -> str:
    """Return the page with the list of examples."""
    return (EXAMPLES / "README.md").read_text(encoding="utf-8")


if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "demo/examples")
    target.mkdir(parents=True, exist_ok=True)
    for stem in ORDER:
        for name, content in render(EXAMPLES / f"{stem}.py").items():
            (target / name).write_bytes(content.encode() if isinstance(content, str) else content)
            print(target / name)  # noqa: T201
