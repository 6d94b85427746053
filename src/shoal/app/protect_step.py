"""Step 3, Protect: the group size, the method and the promises."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from nicegui import ui

import shoal
from shoal.app.jobs import in_background
from shoal.app.tab import Tab
from shoal.app.texts import (
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
from shoal.app.versions import Preview, preview
from shoal.app.widgets import VALUE, Entry, Select, button, card, field, heading, hint, text, tick

__all__ = ["show"]

MOST_K = 50
CASES = ("missing", "small", "integers", "aggregate")  # parameters with fixed choices
NUMBERS = ("refine", "seed")


def show(tab: Tab) -> None:
    """Show the Protect step."""
    heading(
        "Protect",
        "Every record joins a group of at least k similar records, and the group's values replace its own. "
        "A larger k protects more but loses more information.",
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
    """Set a parameter, or remove it if the value is its default."""
    parameters = tab.work.settings.asked
    if value in ("", None) or value == default_of(name):
        parameters.pop(name, None)
    else:
        parameters[name] = value


def _size(tab: Tab) -> None:
    parameters = tab.work.settings.asked
    with card(LABELS["k"]):

        def set_k(value: Any, other: Callable[[], ui.element]) -> None:
            try:
                parameters["k"] = int(value)
            except (TypeError, ValueError):
                tab.refuse(f"Group size k must be a whole number of at least 2, got “{value}”.")
                return
            ui.run_javascript(f"getHtmlElement({other().id}).value = {parameters['k']}")

        with ui.element("div").style("display: flex; gap: 16px; align-items: center"):
            slider = ui.element("input").style("flex: 1; accent-color: var(--mark)")
            slider.props("type=range min=2")
            slider.props["max"] = str(MOST_K)
            slider.props["defaultValue"] = str(parameters["k"])
            slider.props["aria-label"] = "Group size k, slider"
            slider.on("input", lambda e: set_k(e.args, lambda: number), js_handler=VALUE, throttle=0.1)
            number = Entry(
                str(parameters["k"]), lambda value: set_k(value, lambda: slider), label=LABELS["k"], kind="number"
            )
            number.style("width: 84px").props("min=2")
        hint(help_of("k"))
        _preview(tab)


def _preview(tab: Tab) -> None:
    """Show the cost of the settings on a sample, and update it when they change."""
    settings = tab.work.settings
    measured: dict[str, Any] = {}

    @ui.refreshable
    def result(words: str, k: int | None = None) -> None:
        text("p", words, "s-hint").props("role=status data-test=preview").props["data-k"] = str(k)

    async def follow() -> None:
        current = settings.copy()
        if current.asked == measured.get("asked"):
            return
        measured["asked"] = current.asked
        try:
            current.request()
        except shoal.ShoalError as error:
            words = error.worded(in_labels)
        else:
            words = _cost(await in_background(preview, tab.work, current))
        result.refresh(words, current.asked["k"])

    result("Measuring a sample …")
    ui.timer(0.1, follow)


def _cost(sample: Preview | None) -> str:
    if sample is None:
        return "A sample cannot show the cost of these settings. Mask the table to see it."
    linked = "" if sample.linked is None else f", and {100 * sample.linked:.1f} % of the records could be linked"
    return (
        f"A sample of {sample.records:,} records loses {sample.loss:.2f} % of its information "
        f"with method {sample.method}{linked}. The whole table usually loses less: its records are closer together."
    )


def _method(tab: Tab) -> None:
    parameters = tab.work.settings.asked
    method = parameters.get("method", default_of("method"))

    def set_method(name: str) -> None:
        parameters.pop("options", None)
        _put(tab, "method", name)
        options.refresh(name)

    @ui.refreshable
    def options(name: str) -> None:
        hint(method_help(name))
        for option in options_of(name):
            _option(tab, option)

    with card(LABELS["method"]):
        with field(LABELS["method"]):
            choice = Select({name: name for name in methods()}, method, set_method)
        with ui.element("div").style("margin: -8px 0 12px") as description:
            options(method)
        choice.props["aria-describedby"] = description.html_id
        with field(LABELS["effort"], help_of("effort")):
            _choice(tab, "effort")


def _option(tab: Tab, option: Any) -> None:
    """Show an option of a method, from its entry in the registry."""
    parameters = tab.work.settings.asked
    value = parameters.get("options", {}).get(option.name, option.default)

    def put(entry: Any) -> None:
        options = parameters.setdefault("options", {})
        if entry in ("", None) or entry == option.default:
            options.pop(option.name, None)
        else:
            options[option.name] = entry if isinstance(entry, bool) else _number(entry, option.type)

    title = option.name.replace("_", " ")
    title = title[0].upper() + title[1:]
    if option.type is bool:
        tick(f"{title}: {option.help}", bool(value), put)
        return
    with field(title, option.help):
        if option.choices:
            usual = {} if option.default in option.choices else {"": "default"}
            Select(usual | {str(c): str(c) for c in option.choices}, "" if value is None else str(value), put)
        else:
            Entry(str(value) if isinstance(value, (int, float, str)) else "", put)


def _number(entry: Any, kind: type) -> Any:
    try:
        return kind(entry)
    except (TypeError, ValueError):
        return entry  # the request refuses an invalid entry by name


def _choice(tab: Tab, name: str) -> None:
    """Show a parameter with fixed choices."""
    usual = default_of(name)
    options = {} if usual in choices_of(name) else {"": "default"}
    options |= choices_of(name)
    Select(options, tab.work.settings.asked.get(name, usual) or "", partial(_put, tab, name))


def _promises(tab: Tab) -> None:
    settings = tab.work.settings
    with card("Promises for sensitive columns"):
        columns = settings.named("confidential")
        if not columns:
            hint("No column is sensitive. Promises need a column with this role; set it in the Roles step.")
            return
        text("p", f"These promises apply to {', '.join(map(str, columns))}.")
        for name in PROMISES:
            with field(LABELS[name], help_of(name)):
                Entry(str(settings.asked.get(name, "")), partial(_put, tab, name))


def _cases(tab: Tab) -> None:
    parameters = tab.work.settings.asked
    with card("Special cases"):
        for name in CASES:
            with field(LABELS[name], help_of(name)):
                _choice(tab, name)
        with ui.element("details").classes("s-more"):
            text("summary", "More: zeros, sums, refinement, order, random seed")
            _zeros(tab)
            with field(LABELS["sums"], help_of("sums") + " One per line."):
                area = ui.element("textarea").classes("s-in").props("rows=2")
                area.props["defaultValue"] = "\n".join(parameters.get("sums", []))
                area.on("change", lambda event: _put_sums(tab, event.args), js_handler=VALUE)
            for name in NUMBERS:
                with field(LABELS[name], help_of(name)):
                    value = str(parameters.get(name, default_of(name)))
                    Entry(value, partial(_put_number, tab, name), kind="number")
            shuffled = bool(parameters.get("shuffle", False))
            tick(f"{LABELS['shuffle']}: {help_of('shuffle')}", shuffled, partial(_put, tab, "shuffle"))


def _put_number(tab: Tab, name: str, words: str) -> None:
    _put(tab, name, _number(words, int) if words else None)


def _put_sums(tab: Tab, words: str) -> None:
    _put(tab, "sums", [line.strip() for line in words.splitlines() if line.strip()] or None)


def _zeros(tab: Tab) -> None:
    settings = tab.work.settings
    text("p", LABELS["zeros"], "s-label").style("margin: 8px 0 0")
    hint(help_of("zeros"))

    def put(name: Any, keep: bool) -> None:
        names = [column for column in settings.asked.get("zeros") or [] if column != name]
        _put(tab, "zeros", ([*names, name] if keep else names) or None)

    for column in tab.work.columns:
        name = column.name
        if column.kind in ("float", "integer") and settings.roles[name] == "key":
            keep = name in (settings.asked.get("zeros") or [])
            tick(str(name), keep, partial(put, name), label=f"Keep zeros of {name}")


def _start(tab: Tab) -> None:
    with card("Mask the table"):
        try:
            tab.work.settings.request()
        except shoal.ShoalError as error:
            text("p", error.worded(in_labels), "s-note")
        button("Mask", lambda: _mask(tab), kind="main")
        hint("The table is masked, verified and measured in the background. The Compare step keeps every version.")


def _mask(tab: Tab) -> None:
    tab.work.error = ""
    tab.start_version()
    if not tab.work.error:
        tab.go("compare")
