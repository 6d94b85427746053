"""MkDocs hooks that add pages from outside docs/: generated from the code, from the examples, and from other folders.

`make docs` builds the site; MkDocs calls `on_files` before it reads the pages, and the other hooks for each page.
"""

import re
import sys
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "docs"), str(ROOT / "src")]

from module_page import module_page  # noqa: E402
from reference_pages import command_page, method_page, parameter_page  # noqa: E402
from render_examples import index_page, render_all  # noqa: E402

# Files in other folders of the repository that are pages of the site.
MIRRORED = {
    "CHANGELOG.md": "changelog.md",
    "CODE_OF_CONDUCT.md": "conduct.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "benchmarks/RESULTS.md": "results.md",
    "examples/README.md": "examples/index.md",
}
NOT_SHOWN = ("LICENSE", "CITATION.cff")  # links to these files become plain text
ELSEWHERE = re.compile(r"<(?:script|link|img|iframe)\b[^>]*(?:src|href)=[\"']?(?:https?:)?//[^>]*>")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages."""
    made: dict[str, str | bytes] = {
        "reference/commands.md": command_page(),
        "reference/parameters.md": parameter_page(),
        "reference/methods.md": method_page(),
        "dev/modules.md": module_page(),
    }
    for source, page in MIRRORED.items():
        if source != "examples/README.md":
            made[page] = (ROOT / source).read_text(encoding="utf-8")
    examples = render_all()
    made["examples/index.md"] = index_page()
    made |= {f"examples/{name}": content for name, content in examples.items()}
    for path, content in made.items():
        files.append(File.generated(config, path, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Point links to files of the repository to their pages."""
    at = PurePosixPath(page.file.src_uri)
    came = {name: source for source, name in MIRRORED.items()}.get(
        str(at), str(at) if at.parts[0] == "examples" else f"docs/{at}"
    )

    def lead(found: re.Match[str]) -> str:
        text, target, anchor = found[1], found[2], found[3] or ""
        if "://" in target or not target:
            return found[0]
        where = normpath(PurePosixPath(came).parent / target)
        if where in NOT_SHOWN:
            return text
        if where.startswith("examples/") and where.endswith(".py"):
            where = where.removesuffix(".py") + ".md"
        to = MIRRORED.get(where, where.removeprefix("docs/"))
        return f"[{text}]({relpath(to, at.parent)}{anchor})"

    return re.sub(r"\[([^\]]*)\]\(([^)#\s]*)(#[^)\s]*)?\)", lead, markdown)


def on_post_page(output: str, page: Page, **_: object) -> str:
    """Refuse a page that loads anything from elsewhere."""
    if found := ELSEWHERE.search(output):
        raise PluginError(f"{page.file.src_uri} loads something from elsewhere: {found[0]}")
    return output
