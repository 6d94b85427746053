"""ECharts options for the charts of the page: the map of versions, distributions and correlations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import Any

import numpy as np
import polars as pl

from shoal.app.versions import Version

__all__ = ["correlations", "distribution", "risk_utility_map"]

BINS = 24
CATEGORIES = 12
WIDTH = 52  # characters per line of a tooltip
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


def _frame(dark: bool, x: str, y: str, **options: Any) -> dict[str, Any]:
    """Return the options shared by all charts: fonts, colours, named axes and safe tooltips."""
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
        "grid": {"left": 64, "right": 24, "top": 36 if "legend" in options else 12, "bottom": 52},
        # Rich text shows tooltips as text, so markup in names, values or saved work never becomes HTML.
        "tooltip": {"trigger": "item", **options.pop("tooltip", {}), "renderMode": "richText"},
        "xAxis": {"type": "value", "name": x, "nameGap": 30, **axis, **options.pop("xAxis", {})},
        "yAxis": {"type": "value", "name": y, "nameGap": 44, **axis, **options.pop("yAxis", {})},
        **options,
    }


def _tooltip(*lines: str) -> dict[str, Any]:
    """Return a tooltip with lines of text, wrapped to the width of a chart."""
    # ECharts reads {b} and {name|text} as templates; an invisible character after the brace prevents this.
    return {"formatter": "\n".join(fill(line, WIDTH) for line in lines).replace("{", "{\u2060")}


def risk_utility_map(versions: Sequence[Version], chosen: int | None, *, dark: bool) -> dict[str, Any]:
    """Return the chart of versions by information loss and risk; a hollow point shows a lower bound of the risk."""
    c = DARK if dark else LIGHT
    points = [
        {
            "name": version.title,
            "value": [round(version.figures["loss"], 4), round(100 * _risk(version), 4), version.number],
            "symbol": "circle" if version.figures["linked"] is not None else "emptyCircle",
            "symbolSize": 20 if version.number == chosen else 14,
            "itemStyle": {"color": c["mark"] if version.number == chosen else c["after"]},
            "label": {"show": True, "formatter": str(version.number), "position": "right", "color": c["ink"]},
            "tooltip": _tooltip(version.title, f"loss {version.figures['loss']:.3f} %", f"linked {_linked(version)}"),
        }
        for version in versions
    ]
    return _frame(
        dark,
        "information loss, %",
        "records linked, %",
        xAxis={"min": 0},
        yAxis={"min": 0},
        series=[{"type": "scatter", "data": points}],
    )


def _risk(version: Version) -> float:
    """Return the share of linked records; without a measurement, the share that random guesses within groups link."""
    figures = version.figures
    linked = figures["linked"]
    return float(figures["groups"] / max(figures["records"], 1) if linked is None else linked)


def _linked(version: Version) -> str:
    risk = f"{100 * _risk(version):.2f} %"
    return f"not measured, at least {risk}" if version.figures["linked"] is None else risk


def distribution(before: pl.Series, after: Mapping[str, pl.Series], *, dark: bool) -> dict[str, Any]:
    """Return the chart of a column's distribution before masking and in the versions."""
    c = DARK if dark else LIGHT
    series = {"before": before, **after}
    numeric = all(cells.dtype.is_numeric() for cells in series.values()) and before.n_unique() > CATEGORIES
    labels, shares = (_shares_of_bins if numeric else _shares_of_values)(list(series.values()))
    colours = [c["before"], c["after"], c["mark"]]
    bars = [
        {"type": "bar", "name": name, "data": data, "itemStyle": {"color": colour}, "barGap": "0%"}
        for name, data, colour in zip(series, shares, colours, strict=False)
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


def _shares_of_bins(series: Sequence[pl.Series]) -> tuple[list[str], list[list[float]]]:
    """Return bins and their percentages of records; the outermost bins include the lowest and highest 1 % of values."""
    original = series[0].drop_nulls().to_numpy()
    low, high = np.quantile(original, [0.01, 0.99]) if len(original) else (0.0, 1.0)
    edges = np.linspace(low, high if high > low else low + 1, BINS + 1)
    shares = []
    for cells in series:
        values = np.clip(cells.drop_nulls().to_numpy(), edges[0], edges[-1])
        shares.append((100 * np.histogram(values, edges)[0] / max(len(cells), 1)).round(3).tolist())
    return [f"{edge:.4g}" for edge in edges[:-1]], shares


def _shares_of_values(series: Sequence[pl.Series]) -> tuple[list[str], list[list[float]]]:
    """Return the most frequent values and their percentages, with all other values combined."""
    texts = [cells.cast(pl.String, strict=False).fill_null("missing") for cells in series]
    counts = [dict(cells.value_counts().rows()) for cells in texts]
    values = sorted(set().union(*counts), key=lambda value: -max(count.get(value, 0) for count in counts))
    frequent, rare = values[:CATEGORIES], values[CATEGORIES:]
    shares = []
    for count, cells in zip(counts, texts, strict=True):
        records = [count.get(value, 0) for value in frequent]
        records += [sum(count.get(value, 0) for value in rare)] if rare else []
        shares.append([round(100 * number / max(len(cells), 1), 3) for number in records])
    return [*frequent, *(["others"] if rare else [])], shares


def correlations(pairs: Sequence[tuple[str, float, float]], *, dark: bool) -> dict[str, Any]:
    """Return the chart of correlations before and after masking; points on the diagonal have not changed."""
    c = DARK if dark else LIGHT
    points = [
        {
            "name": name,
            "value": [round(before, 4), round(after, 4)],
            "tooltip": _tooltip(name, f"{before:.3f} before, {after:.3f} after"),
        }
        for name, before, after in pairs
    ]
    line = [{"coord": [-1, -1]}, {"coord": [1, 1]}]
    diagonal = {"silent": True, "symbol": "none", "lineStyle": {"color": c["soft"]}, "data": [line]}
    return _frame(
        dark,
        "before",
        "after",
        xAxis={"min": -1, "max": 1},
        yAxis={"min": -1, "max": 1},
        series=[{"type": "scatter", "data": points, "itemStyle": {"color": c["after"]}, "markLine": diagonal}],
    )
