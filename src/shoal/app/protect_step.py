"""Step 3, Protect: how many records share their values, by which method, with which promises."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from nicegui import ui

import shoal
from shoal.app.jobs import in_background
from shoal.app.parts import Entry, Select, button, card, field, heading, hint, text, tick
from shoal.app.tab import Tab
from shoal.app.trying import Preview, preview
from shoal.app.words import (
    LABELS,
    PROMISES,
    choices_of,
    default_of,
    help_of,
    in_labels,
    method_help,
    methods,
    options_of,
)

__all__ = ["show"]

MOST_K = 50
CASES = ("missing", "small", "integers", "aggregate")  # choices among words
NUMBERS = ("refine", "seed")


def show(tab: Tab) -> None:
    """Show the step."""
    heading(
        "Protect",
        "Every record is hidden in a group of at least k similar ones, and the group's values replace its own. "
        "A larger k protects more and costs more.",
    )
    with ui.element("div").classes("s-two"):
        with ui.element("div"):
            _size(tab)
            _method(tab)
            _start(tab)
        with ui.element("div"):
            _promises(tab)
            _cases(tab)


def _put(tab: Tab, name: str, value: Any) -> None:
    """Ask for something, or for nothing if it is what is usual."""
    asked = tab.work.settings.asked
    if value in ("", None) or value == default_of(name):
        asked.pop(name, None)
    else:
        asked[name] = value


def _size(tab: Tab) -> None:
    settings = tab.work.settings
    measured: dict[str, Any] = {}
    with card(LABELS["k"]):

        def set_k(value: Any, other: Callable[[], ui.element]) -> None:
            try:
                settings.asked["k"] = int(value)
            except (TypeError, ValueError):
                tab.refuse(f"Group size k must be a whole number of at least 2, got “{value}”.")
                return
            ui.run_javascript(f"getHtmlElement({other().id}).value = {settings.asked['k']}")

        with ui.element("div").style("display: flex; gap: 16px; align-items: center"):
            slider = ui.element("input").style("flex: 1; accent-color: var(--mark)")
            slider.props("type=range min=2")
            slider.props["max"] = str(MOST_K)
            slider.props["defaultValue"] = str(settings.asked["k"])
            slider.props["aria-label"] = "Group size k, by moving"
            slider.on(
                "input", lambda e: set_k(e.args, lambda: number), js_handler="(e) => emit(e.target.value)", throttle=0.1
            )
            number = Entry(
                str(settings.asked["k"]), lambda value: set_k(value, lambda: slider), label=LABELS["k"], kind="number"
            ).style("width: 84px")
            number.props("min=2")
        hint(help_of("k"))
        shown = ui.refreshable(_previewed)
        shown("Measuring a sample …")

        async def follow() -> None:
            """Measure what is asked now, unless it was measured last: while a slider moves, again and again."""
            asked = settings.copy()
            if asked.asked == measured.get("asked"):
                return
            measured["asked"] = asked.asked
            try:
                asked.request()
            except shoal.ShoalError as error:
                shown.refresh(error.worded(in_labels), asked.asked["k"])
                return
            found = await in_background(preview, tab.work, asked)
            shown.refresh(_told(found), asked.asked["k"])

        ui.timer(0.1, follow)


def _told(found: Preview | None) -> str:
    if found is None:
        return "A sample cannot say what this costs. Try it."
    linked = "" if found.linked is None else f", and {100 * found.linked:.1f} % of its records could be linked"
    return (
        f"A sample of {found.records:,} records loses {found.loss:.2f} % of its information by {found.method}{linked}. "
        "All records together usually lose less: they are nearer to each other."
    )


def _previewed(words: str, k: int | None = None) -> None:
    text("p", words, "s-hint").props("role=status data-test=preview").props["data-k"] = str(k)


def _method(tab: Tab) -> None:
    settings = tab.work.settings
    chosen = settings.asked.get("method", default_of("method"))

    def set_method(name: str) -> None:
        settings.asked.pop("options", None)
        _put(tab, "method", name)
        options.refresh(name)

    @ui.refreshable
    def options(name: str) -> None:
        hint(method_help(name))
        for option in options_of(name):
            _option(tab, option)

    with card(LABELS["method"]):
        with field(LABELS["method"]):
            choice = Select({name: name for name in methods()}, chosen, set_method)
        with ui.element("div").style("margin: -8px 0 12px") as told:
            options(chosen)
        choice.props["aria-describedby"] = told.html_id
        with field(LABELS["effort"], help_of("effort")):
            _words(tab, "effort")


def _option(tab: Tab, option: Any) -> None:
    """Show an option of a method, as the registry tells it."""
    asked = tab.work.settings.asked
    value = asked.get("options", {}).get(option.name, option.default)

    def put(given: Any) -> None:
        options = asked.setdefault("options", {})
        if given in ("", None) or given == option.default:
            options.pop(option.name, None)
        else:
            options[option.name] = given if isinstance(given, bool) else _number(given, option.type)

    title = option.name.replace("_", " ")
    title = title[0].upper() + title[1:]
    if option.type is bool:
        tick(f"{title}: {option.help}", bool(value), put)
        return
    with field(title, option.help):
        if option.choices:
            usual = {} if option.default in option.choices else {"": "as usual"}
            Select(usual | {str(c): str(c) for c in option.choices}, "" if value is None else str(value), put)
        else:
            Entry("" if value is None or not isinstance(value, (int, float, str)) else str(value), put)


def _number(given: Any, kind: type) -> Any:
    try:
        return kind(given)
    except (TypeError, ValueError):
        return given  # refused by name when it is asked for


def _words(tab: Tab, name: str) -> None:
    """Show a choice among words."""
    usual = default_of(name)
    options = {} if usual in choices_of(name) else {"": "as usual"}
    options |= choices_of(name)
    Select(options, tab.work.settings.asked.get(name, usual) or "", lambda value: _put(tab, name, value))


def _promises(tab: Tab) -> None:
    settings = tab.work.settings
    with card("Promises about confidential columns"):
        named = settings.named("confidential")
        if not named:
            hint("No column is confidential. Give the role to a column in the step Roles to promise something of it.")
            return
        text("p", f"About {', '.join(map(str, named))}: what nobody should learn of anybody.")
        for name in PROMISES:
            with field(LABELS[name], help_of(name)):
                Entry(str(settings.asked.get(name, "")), partial(_put, tab, name))


def _cases(tab: Tab) -> None:
    settings = tab.work.settings
    with card("Special cases"):
        for name in CASES:
            with field(LABELS[name], help_of(name)):
                _words(tab, name)
        with ui.element("details").classes("s-more"):
            text("summary", "More: zeros, sums, refinement, order, random seed")
            _zeros(tab)
            with field(LABELS["sums"], help_of("sums") + " One on each line."):
                area = ui.element("textarea").classes("s-in").props("rows=2")
                area.props["defaultValue"] = "\n".join(settings.asked.get("sums", []))
                area.on("change", lambda e: _put_sums(tab, e.args), js_handler="(e) => emit(e.target.value)")
            for name in NUMBERS:
                with field(LABELS[name], help_of(name)):
                    Entry(
                        str(settings.asked.get(name, default_of(name))),
                        partial(_put_number, tab, name),
                        kind="number",
                    )
            shuffled = bool(settings.asked.get("shuffle", False))
            tick(f"{LABELS['shuffle']}: {help_of('shuffle')}", shuffled, lambda on: _put(tab, "shuffle", on))


def _put_number(tab: Tab, name: str, written: str) -> None:
    _put(tab, name, _number(written, int) if written else None)


def _put_sums(tab: Tab, written: str) -> None:
    _put(tab, "sums", [line.strip() for line in written.splitlines() if line.strip()] or None)


def _zeros(tab: Tab) -> None:
    settings, found = tab.work.settings, tab.work.inspection
    if found is None:
        return
    numbers = [c.name for c in found.columns if c.kind in ("float", "integer") and settings.roles[c.name] == "key"]
    text("p", LABELS["zeros"], "s-label").style("margin: 8px 0 0")
    hint(help_of("zeros"))

    def put(name: Any, kept: bool) -> None:
        zeros = [other for other in settings.asked.get("zeros") or [] if other != name]
        _put(tab, "zeros", ([*zeros, name] if kept else zeros) or None)

    for name in numbers:
        kept = name in (settings.asked.get("zeros") or [])
        tick(str(name), kept, partial(put, name), label=f"Keep zeros of {name}")


def _start(tab: Tab) -> None:
    with card("Try it"):
        try:
            tab.work.settings.request()
        except shoal.ShoalError as error:
            text("p", error.worded(in_labels), "s-note")
        button("Try", lambda: _try(tab), kind="main")
        hint(
            "The whole table is masked, verified and measured in the background. Every try is kept in the step Compare."
        )


def _try(tab: Tab) -> None:
    before = tab.work.error = ""
    tab.start_try()
    if tab.work.error == before:
        tab.go("compare")
