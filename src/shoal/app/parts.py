"""Parts that all steps are made of: headings, choices with their help, tables, and the page's style."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import Any

from nicegui import ui
from nicegui.elements.mixins.text_element import TextElement

__all__ = [
    "Entry",
    "Select",
    "ask_to_replace",
    "button",
    "card",
    "dialog_over",
    "dropped",
    "fact",
    "field",
    "heading",
    "hint",
    "plain_table",
    "text",
    "tick",
]

# The uploader's own buttons have no names that a screen reader could tell.
CHOOSE = """<div style="padding: 14px">
    <label class="s-btn" style="position: relative; display: inline-block">Choose a file
        <q-uploader-add-trigger aria-label="Choose a file" tabindex="0" />
    </label>
    <span style="margin-left: 12px">or drop it here</span>
</div>"""


@contextmanager
def dialog_over(tab: Any, *, afterwards: Callable[[], None] | None = None) -> Iterator[ui.dialog]:
    """Open a dialog over the page of a tab; it stays while the step below is shown anew. `afterwards` it is closed."""
    with tab.layer, ui.dialog() as dialog, ui.card().classes("s-dialog"):
        yield dialog

    def closed() -> None:
        dialog.delete()
        if afterwards is not None:
            afterwards()

    dialog.on("hide", closed, args=[])
    dialog.open()


def ask_to_replace(tab: Any, existing: Sequence[Path], replace: Callable[[], None]) -> None:
    """Ask whether exactly these files are to be replaced."""
    with dialog_over(tab) as dialog:
        text("h2", "Replace this file?" if len(existing) == 1 else "Replace these files?")
        with ui.element("ul").props("data-test=existing"):
            for path in existing:
                text("li", str(path)).style("overflow-wrap: anywhere")

        def confirm() -> None:
            dialog.close()
            replace()

        with ui.element("div").classes("s-row"):
            button("Replace", confirm, kind="main")
            button("Cancel", dialog.close)


def text(tag: str, words: str, classes: str = "") -> TextElement:
    """Show words in an element."""
    return TextElement(tag=tag, text=words).classes(classes)


def heading(title: str, lead: str) -> None:
    """Show the heading of a step."""
    text("h1", title)
    text("p", lead, "s-lead")


def hint(words: str) -> TextElement:
    """Show a help text."""
    return text("p", words, "s-hint")


@contextmanager
def card(title: str = "", classes: str = "") -> Iterator[ui.element]:
    """Show a part of a step."""
    with ui.element("section").classes(f"s-card {classes}") as section:
        if title:
            text("h2", title)
        yield section


def fact(figure: str, words: str) -> None:
    """Show a figure and what it is."""
    with ui.element("div").classes("s-fact"):
        text("b", figure)
        text("span", words)


def button(words: str, act: Callable[[], Any], *, kind: str = "", label: str = "") -> TextElement:
    """Show a button; a label says more than the words where they need it."""
    made = text("button", words, f"s-btn {kind}").props("type=button")
    if label:
        made.props["aria-label"] = label
    made.on("click", act, args=[])
    return made


@contextmanager
def field(label: str, words: str = "") -> Iterator[ui.element]:
    """Show a choice with its label and help; the choice is made within the block."""
    with ui.element("div").classes("s-field") as made:
        told = text("label", label)
        yield made
        inner = [child for child in made.default_slot.children if child is not told]
        if inner:
            told.props["for"] = inner[0].html_id
            if words:
                inner[0].props["aria-describedby"] = hint(words).html_id


class Select(ui.element):
    """A choice among words: the browser's own, which keyboards and screen readers know.

    Parameters
    ----------
    options
        What is chosen, and how it reads.
    value
        What is chosen now.
    on_change
        It gets what was chosen.
    label
        What is chosen, for screen readers, if no label stands beside it.
    """

    def __init__(
        self, options: Mapping[str, str], value: str, on_change: Callable[[str], Any], *, label: str = ""
    ) -> None:
        super().__init__("select")
        self.classes("s-in")
        if label:
            self.props["aria-label"] = label
        with self:
            for option, words in options.items():
                made = text("option", words)
                made.props["value"] = option
                # Not the value of the whole: Vue would set it anew with every update of the page.
                made.props["selected"] = option == value
        self.on("change", lambda event: on_change(event.args), js_handler="(e) => emit(e.target.value)")


class Entry(ui.element):
    """A line that is typed; it is taken when it is left or Enter is pressed."""

    def __init__(self, value: str, on_change: Callable[[str], Any], *, label: str = "", kind: str = "text") -> None:
        super().__init__("input")
        self.classes("s-in")
        self.value = value
        self.props["defaultValue"] = value  # the value itself would be set anew while somebody types
        self.props["type"] = kind
        if label:
            self.props["aria-label"] = label

        def changed(event: Any) -> Any:
            self.value = event.args
            return on_change(event.args)

        self.on("change", changed, js_handler="(e) => emit(e.target.value)")


def tick(words: str, checked: bool, on_change: Callable[[bool], Any], *, label: str = "") -> None:
    """Show a box to tick."""
    with ui.element("div").classes("s-check"):
        box = ui.element("input")
        box.props["type"] = "checkbox"
        box.props["checked"] = checked
        if label:
            box.props["aria-label"] = label
        box.on("change", lambda event: on_change(bool(event.args)), js_handler="(e) => emit(e.target.checked)")
        if words:
            text("label", words).props["for"] = box.html_id


def dropped(take: Callable[[Any], Any], most: int, too_large: Callable[[], Any] | None = None) -> None:
    """Let a file of at most so many bytes be chosen or dropped."""
    upload = ui.upload(auto_upload=True, max_files=1, max_file_size=most, on_upload=take, on_rejected=too_large)
    upload.props("flat").classes("s-upload")
    upload.add_slot("header", CHOOSE)


def plain_table(head: Sequence[object], rows: Sequence[Sequence[object]], *, numbers: Sequence[int] = ()) -> None:
    """Show a table of text; `numbers` are the places of columns that are set to the right."""

    def line(tag: str, cells: Sequence[object]) -> str:
        right = [' class="n"' if place in numbers else "" for place in range(len(cells))]
        scope = ' scope="col"' if tag == "th" else ""
        return "".join(f"<{tag}{scope}{r}>{escape(str(c))}</{tag}>" for c, r in zip(cells, right, strict=True))

    body = "".join(f"<tr>{line('td', row)}</tr>" for row in rows)
    content = f'<table class="s-table"><thead><tr>{line("th", head)}</tr></thead><tbody>{body}</tbody></table>'
    scroll = ui.html(content, sanitize=False).classes("s-scroll")
    scroll.props["tabindex"] = "0"  # so that keyboards can scroll it
    scroll.props["role"] = "group"
    scroll.props["aria-label"] = "Table: " + ", ".join(map(str, head[:4]))
