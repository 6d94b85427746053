"""Widgets shared by all steps: headings, fields with their help, lists, tables, charts and dialogs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import escape
from pathlib import Path
from typing import Any

from nicegui import ui
from nicegui.elements.mixins.text_element import TextElement

__all__ = [
    "Entry",
    "Select",
    "actions",
    "ask_to_replace",
    "banner",
    "button",
    "card",
    "chart",
    "dialog_over",
    "fact",
    "field",
    "heading",
    "hint",
    "list_row",
    "plain_table",
    "row",
    "text",
    "tick",
    "upload",
]

VALUE = "(e) => emit(e.target.value)"  # sends the value of an input element with its event
# Replaces the buttons of the uploader, which screen readers cannot name.
CHOOSE = """<div style="padding: 14px">
    <label class="s-btn" style="position: relative; display: inline-block">LABEL
        <q-uploader-add-trigger aria-label="LABEL" tabindex="0" />
    </label>
    <span style="margin-left: 12px">or drop it here</span>
</div>"""


@contextmanager
def dialog_over(tab: Any, title: str, *, closed: Callable[[], None] | None = None) -> Iterator[ui.dialog]:
    """Open a dialog over the page of a tab. It stays open while the step is rebuilt; `closed` runs when it closes."""
    with tab.layer, ui.dialog() as dialog, ui.card().classes("s-dialog"):
        text("h2", title)
        yield dialog

    def end() -> None:
        dialog.delete()
        if closed is not None:
            closed()

    dialog.on("hide", end, args=[])
    dialog.open()


def actions(dialog: ui.dialog, label: str, act: Callable[[], Any]) -> None:
    """Show the buttons at the end of a dialog."""
    with row():
        button(label, act, kind="main")
        button("Cancel", dialog.close)


def ask_to_replace(tab: Any, existing: Sequence[Path], replace: Callable[[], None]) -> None:
    """Ask the user before existing files are replaced."""
    with dialog_over(tab, "Replace this file?" if len(existing) == 1 else "Replace these files?") as dialog:
        with ui.element("ul").props("data-test=existing"):
            for path in existing:
                text("li", str(path)).style("overflow-wrap: anywhere")

        def confirm() -> None:
            dialog.close()
            replace()

        actions(dialog, "Replace", confirm)


def text(tag: str, words: str, classes: str = "") -> TextElement:
    """Show text in an HTML element."""
    return TextElement(tag=tag, text=words).classes(classes)


def heading(title: str, lead: str) -> None:
    """Show the heading of a step."""
    text("h1", title)
    text("p", lead, "s-lead")


def hint(words: str) -> TextElement:
    """Show a help text."""
    return text("p", words, "s-hint")


@contextmanager
def card(title: str = "") -> Iterator[ui.element]:
    """Show a card with the content of the block."""
    with ui.element("section").classes("s-card") as section:
        if title:
            text("h2", title)
        yield section


def row() -> ui.element:
    """Return an element that places its children side by side."""
    return ui.element("div").classes("s-row")


def fact(figure: str, words: str) -> None:
    """Show a figure with its label."""
    with ui.element("div").classes("s-fact"):
        text("b", figure)
        text("span", words)


def banner(message: str, buttons: Mapping[str, Callable[[], Any]], *, test: str, alert: bool = False) -> None:
    """Show a message with buttons above the step."""
    with ui.element("div").classes("s-alert" if alert else "s-note s-banner") as element:
        element.props(f"role={'alert' if alert else 'status'} data-test={test}")
        text("div", message).style("flex: 1; overflow-wrap: anywhere")
        for words, act in buttons.items():
            button(words, act, kind="small")


def button(words: str, act: Callable[[], Any], *, kind: str = "", label: str = "") -> TextElement:
    """Show a button; `label` replaces its text for screen readers."""
    element = text("button", words, f"s-btn {kind}").props("type=button")
    if label:
        element.props["aria-label"] = label
    element.on("click", act, args=[])
    return element


def list_row(words: str, action: str, act: Callable[[], Any], label: str) -> None:
    """Show a list item with a button."""
    with ui.element("li"):
        text("span", words).style("flex: 1; overflow-wrap: anywhere")
        button(action, act, kind="small", label=label)


@contextmanager
def field(label: str, words: str = "") -> Iterator[ui.element]:
    """Show the input element of the block with its label and help text."""
    with ui.element("div").classes("s-field") as element:
        caption = text("label", label)
        yield element
        inputs = [child for child in element.default_slot.children if child is not caption]
        if inputs:
            caption.props["for"] = inputs[0].html_id
            if words:
                inputs[0].props["aria-describedby"] = hint(words).html_id


class Select(ui.element):
    """A native select element, which works with keyboards and screen readers."""

    def __init__(
        self, options: Mapping[str, str], value: str, on_change: Callable[[str], Any], *, label: str = ""
    ) -> None:
        super().__init__("select")
        self.classes("s-in")
        if label:
            self.props["aria-label"] = label
        with self:
            for option, words in options.items():
                element = text("option", words)
                element.props["value"] = option
                # Vue would reset the value of the select element with every update of the page.
                element.props["selected"] = option == value
        self.on("change", lambda event: on_change(event.args), js_handler=VALUE)


class Entry(ui.element):
    """A text field, which reports a change when it loses the focus or Enter is pressed."""

    def __init__(
        self, value: str, on_change: Callable[[str], Any] | None = None, *, label: str = "", kind: str = "text"
    ) -> None:
        super().__init__("input")
        self.classes("s-in")
        self.value = value
        self.props["defaultValue"] = value  # Vue would reset `value` while the user types
        self.props["type"] = kind
        if label:
            self.props["aria-label"] = label

        def changed(event: Any) -> Any:
            self.value = event.args
            return on_change(event.args) if on_change is not None else None

        self.on("change", changed, js_handler=VALUE)


def tick(words: str, checked: bool, on_change: Callable[[bool], Any], *, label: str = "") -> None:
    """Show a checkbox."""
    with ui.element("div").classes("s-check"):
        box = ui.element("input")
        box.props["type"] = "checkbox"
        box.props["checked"] = checked
        if label:
            box.props["aria-label"] = label
        box.on("change", lambda event: on_change(bool(event.args)), js_handler="(e) => emit(e.target.checked)")
        if words:
            text("label", words).props["for"] = box.html_id


def upload(
    receive: Callable[[Any], Awaitable[None]],
    limit: int,
    too_large: Callable[[], Any] | None = None,
    *,
    label: str = "Choose a file",
) -> None:
    """Show an area to choose or drop a file of at most `limit` bytes."""

    async def take(event: Any) -> None:
        element.reset()  # another file may follow
        await receive(event)

    element = ui.upload(auto_upload=True, max_files=1, max_file_size=limit, on_upload=take, on_rejected=too_large)
    element.props("flat").classes("s-upload")
    element.add_slot("header", CHOOSE.replace("LABEL", label))


def chart(options: dict[str, Any], label: str, style: str) -> ui.echart:
    """Show a chart, with a label for screen readers."""
    element = ui.echart(options, renderer="svg").style(f"width: 100%; {style}")
    element.props["role"] = "img"
    element.props["aria-label"] = label
    return element


def plain_table(head: Sequence[object], rows: Sequence[Sequence[object]], *, numbers: Sequence[int] = ()) -> None:
    """Show a table of text; the columns at positions `numbers` are right-aligned."""

    def line(tag: str, cells: Sequence[object]) -> str:
        classes = [' class="n"' if place in numbers else "" for place in range(len(cells))]
        scope = ' scope="col"' if tag == "th" else ""
        return "".join(f"<{tag}{scope}{c}>{escape(str(cell))}</{tag}>" for cell, c in zip(cells, classes, strict=True))

    body = "".join(f"<tr>{line('td', cells)}</tr>" for cells in rows)
    content = f'<table class="s-table"><thead><tr>{line("th", head)}</tr></thead><tbody>{body}</tbody></table>'
    scroll = ui.html(content, sanitize=False).classes("s-scroll")
    scroll.props["tabindex"] = "0"  # makes the table scrollable with the keyboard
    scroll.props["role"] = "group"
    scroll.props["aria-label"] = "Table: " + ", ".join(map(str, head[:4]))
