"""Charts of the page, as options of ECharts: the map of tries, distributions and correlations before and after."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import Any

import numpy as np
import polars as pl

from shoal.app.work import Try

__all__ = ["correlations", "distribution", "risk_utility_map"]

BINS = 24
CATEGORIES = 12
WIDTH = 52  # characters in a line of a tooltip
LIGHT = {
    "ink": "#16242c",
    "soft": "#4a5b66",
    "line": "#d5dde2",
    "before": "#8296a1",
    "after": "#0a5a76",
    "mark": "#b4540a",
}
DARK = {
    "ink": "#e8eef1",
    "soft": "#a9b8c1",
    "line": "#33434c",
    "before": "#71848f",
    "after": "#7fd0ec",
    "mark": "#ffb065",
}


def _frame(dark: bool, x: str, y: str, **more: Any) -> dict[str, Any]:
    """Return what all charts share: quiet axes with names, in colours that can be read."""
    c = DARK if dark else LIGHT
    axis = {
        "axisLabel": {"color": c["soft"]},
        "nameTextStyle": {"color": c["soft"]},
        "axisLine": {"lineStyle": {"color": c["line"]}},
        "splitLine": {"lineStyle": {"color": c["line"]}},
        "nameLocation": "middle",
    }
    return {
        "animation": False,
        "textStyle": {"fontFamily": "system-ui, sans-serif", "color": c["ink"]},
        "grid": {"left": 64, "right": 24, "top": 36 if "legend" in more else 12, "bottom": 52},
        # Rich text draws tooltips as text: markup in names, values or saved work never becomes HTML.
        "tooltip": {"trigger": "item", **more.pop("tooltip", {}), "renderMode": "richText"},
        "xAxis": {"type": "value", "name": x, "nameGap": 30, **axis, **more.pop("xAxis", {})},
        "yAxis": {"type": "value", "name": y, "nameGap": 44, **axis, **more.pop("yAxis", {})},
        **more,
    }


def _tooltip(*lines: str) -> dict[str, Any]:
    """Return a tooltip that shows lines as they are, wrapped to the width of a chart."""
    # ECharts reads {b} and {name|text} as templates; an invisible character after the brace prevents it.
    return {"formatter": "\n".join(fill(line, WIDTH) for line in lines).replace("{", "{\u2060")}


def risk_utility_map(tries: Sequence[Try], chosen: int | None, *, dark: bool) -> dict[str, Any]:
    """Return the map: what each try loses, and what it still risks; hollow where only the least risk is known."""
    c = DARK if dark else LIGHT
    points = [
        {
            "name": one.title,
            "value": [round(one.figures["loss"], 4), round(100 * _risk(one), 4), one.number],
            "symbol": "circle" if one.figures["linked"] is not None else "emptyCircle",
            "symbolSize": 20 if one.number == chosen else 14,
            "itemStyle": {"color": c["mark"] if one.number == chosen else c["after"]},
            "label": {"show": True, "formatter": str(one.number), "position": "right", "color": c["ink"]},
            "tooltip": _tooltip(one.title, f"loss {one.figures['loss']:.3f} %", f"linked {_linked(one)}"),
        }
        for one in tries
    ]
    return _frame(
        dark,
        "information loss, %",
        "records linked, %",
        xAxis={"min": 0},
        yAxis={"min": 0},
        series=[{"type": "scatter", "data": points}],
    )


def _risk(one: Try) -> float:
    """Return the share of records that are linked, or at least that which blind choice within groups finds."""
    found = one.figures
    return float(found["groups"] / max(found["records"], 1) if found["linked"] is None else found["linked"])


def _linked(one: Try) -> str:
    told = f"{100 * _risk(one):.2f} %"
    return f"not measured, at least {told}" if one.figures["linked"] is None else told


def distribution(before: pl.Series, afters: Sequence[tuple[str, pl.Series]], *, dark: bool) -> dict[str, Any]:
    """Return the distribution of a column before, and after each of some tries."""
    c = DARK if dark else LIGHT
    colours = [c["before"], c["after"], c["mark"]]
    named = [("before", before), *afters]
    numeric = all(cells.dtype.is_numeric() for _, cells in named) and before.n_unique() > CATEGORIES
    labels, counts = _binned(named) if numeric else _counted(named)
    bars = [
        {"type": "bar", "name": name, "data": found, "itemStyle": {"color": colour}, "barGap": "0%"}
        for (name, _), found, colour in zip(named, counts, colours, strict=False)
    ]
    return _frame(
        dark,
        "",
        "records, %",
        xAxis={"type": "category", "data": labels, "axisLabel": {"color": c["soft"], "hideOverlap": True}},
        legend={"textStyle": {"color": c["ink"]}, "top": 0},
        series=bars,
        tooltip={"trigger": "axis"},
    )


def _binned(named: Sequence[tuple[str, pl.Series]]) -> tuple[list[str], list[list[float]]]:
    """Count numbers in bins; values beyond the outermost percent are in the first and last bin."""
    original = named[0][1].drop_nulls().to_numpy()
    low, high = np.quantile(original, [0.01, 0.99]) if len(original) else (0.0, 1.0)
    edges = np.linspace(low, high if high > low else low + 1, BINS + 1)
    found = []
    for _, cells in named:
        values = np.clip(cells.drop_nulls().to_numpy(), edges[0], edges[-1])
        found.append((100 * np.histogram(values, edges)[0] / max(len(cells), 1)).round(3).tolist())
    return [f"{edge:.4g}" for edge in edges[:-1]], found


def _counted(named: Sequence[tuple[str, pl.Series]]) -> tuple[list[str], list[list[float]]]:
    """Count the most frequent values, and all others together."""
    texts = [cells.cast(pl.String, strict=False).fill_null("missing") for _, cells in named]
    counts = [dict(cells.value_counts().rows()) for cells in texts]
    labels = sorted(set().union(*counts), key=lambda value: -max(count.get(value, 0) for count in counts))
    shown, rest = labels[:CATEGORIES], labels[CATEGORIES:]
    found = []
    for count, cells in zip(counts, texts, strict=True):
        shares = [count.get(value, 0) for value in shown] + ([sum(count.get(v, 0) for v in rest)] if rest else [])
        found.append([round(100 * share / max(len(cells), 1), 3) for share in shares])
    return [*shown, *(["others"] if rest else [])], found


def correlations(pairs: Sequence[tuple[str, float, float]], *, dark: bool) -> dict[str, Any]:
    """Return correlations of columns before and after, as points: on the diagonal nothing has changed."""
    c = DARK if dark else LIGHT
    points = [
        {
            "name": name,
            "value": [round(before, 4), round(after, 4)],
            "tooltip": _tooltip(name, f"{before:.3f} before, {after:.3f} after"),
        }
        for name, before, after in pairs
    ]
    diagonal = {"silent": True, "symbol": "none", "lineStyle": {"color": c["soft"]}, "data": [_diagonal()]}
    return _frame(
        dark,
        "before",
        "after",
        xAxis={"min": -1, "max": 1},
        yAxis={"min": -1, "max": 1},
        series=[{"type": "scatter", "data": points, "itemStyle": {"color": c["after"]}, "markLine": diagonal}],
    )


def _diagonal() -> list[dict[str, Any]]:
    return [{"coord": [-1, -1]}, {"coord": [1, 1]}]
