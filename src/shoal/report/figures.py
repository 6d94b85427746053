"""Figures of a report: matplotlib drawings as inline SVG, with a text alternative, readable without colour."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.assessment.statistics import Pair
from shoal.core.display import for_people
from shoal.core.messages import count as number_of
from shoal.core.types import Ints
from shoal.report.protection import Bins

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from shoal.comparison.trials import Price, Trial

__all__ = [
    "Figure",
    "bars",
    "category_shares",
    "correlations",
    "distribution",
    "group_sizes_chart",
    "price_curves",
    "risk_utility_map",
]

INK, ACCENT, PALE = "#1d2a30", "#0a5c66", "#c5ced3"
STYLE: Any = {
    "svg.fonttype": "none",
    "text.parse_math": False,
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.edgecolor": "#7b878d",
    "axes.labelcolor": INK,
    "axes.linewidth": 0.7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "text.color": INK,
    "xtick.color": "#55636a",
    "ytick.color": "#55636a",
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
}
MARKERS = "osD^vP*XphH8<>d"


@dataclass(frozen=True)
class Figure:
    """A drawing with its caption."""

    svg: str  # the drawing, ready to insert into a page
    caption: str = ""  # text below the drawing; may be empty
    wide: bool = True  # True if it takes the whole width of the page


def distribution(name: str, bins: Bins, records: int) -> Figure:
    """Draw a column's distribution before (pale area) and after masking (dark line)."""
    inner = np.arcsinh(bins.edges / bins.unit) if bins.unit else bins.edges
    edges = np.r_[inner[0] - bins.step, inner, inner[-1] + bins.step]
    widths = np.diff(edges)
    before, after = (counts / records / widths * bins.step * 100 for counts in (bins.before, bins.after))

    def draw(axes: Axes) -> None:
        axes.stairs(before, edges, fill=True, color=PALE, label="before")
        axes.stairs(after, edges, color=INK, linewidth=1.3, label="after")
        axes.set_title(name)
        axes.set_xlim(edges[0], edges[-1])
        axes.set_ylim(0, 1.12 * float(max(before.max(), after.max())))
        axes.yaxis.set_major_locator(_few(3))
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g} %")
        ticks = _ticks(bins, edges)
        axes.set_xticks(np.arcsinh(ticks / bins.unit) if bins.unit else ticks, [short(tick) for tick in ticks])

    difference = 100 * float(np.abs(bins.before - bins.after).sum() / 2 / records)
    text = (
        f"Distribution of {name} before and after masking, as shares of the records over {len(bins.before)} bins. "
        f"{difference:.0f} percent of the records are in another bin after masking."
    )
    return Figure(_svg(draw, (2.25, 1.5), text), wide=False)


def bars(names: Sequence[str], values: Sequence[float], label: str, text: str) -> Figure:
    """Draw one horizontal bar per name, labelled with its value."""

    def draw(axes: Axes) -> None:
        places = np.arange(len(names))[::-1]
        axes.barh(places, values, color=ACCENT, height=0.62)
        axes.set_yticks(places, [_clip(name) for name in names])
        axes.tick_params(axis="y", length=0, labelsize=9)
        axes.set_xlabel(label)
        axes.set_xlim(0, 1.15 * max([*values, 1e-9]))
        for place, value in zip(places, values, strict=True):
            axes.annotate(
                f"{for_people(value, 3)} %",
                (value, place),
                va="center",
                fontsize=8.5,
                xytext=(4, 0),
                textcoords="offset points",
            )

    return Figure(_svg(draw, (6.6, 0.6 + 0.29 * len(names)), text))


def group_sizes_chart(sizes: Ints, k: int) -> Figure:
    """Draw the number of groups of each size; the last bar collects a long tail."""
    values, counts = np.unique(sizes, return_counts=True)
    last = int(values[0]) + 24
    beyond = int(counts[values > last].sum())
    places, heights = values[values <= last], counts[values <= last]
    if beyond:
        places, heights = np.r_[places, last + 1], np.r_[heights, beyond]

    def draw(axes: Axes) -> None:
        axes.bar(places, heights, color=ACCENT, width=0.7)
        axes.set_xlabel("records in a group")
        axes.set_ylabel("groups")
        axes.yaxis.set_major_locator(_few(4))
        # Keep a bar narrow if there is only one size.
        axes.set_xlim(min(k, int(places[0])) - 0.8, max(int(places[-1]), k + 5) + 0.8)
        axes.xaxis.set_major_locator(_few(14, integer=True))
        if beyond:
            axes.set_xticks([*range(int(places[0]), last, 4), last + 1])
            axes.xaxis.set_major_formatter(lambda value, _: f"> {last}" if value > last else f"{value:.0f}")
        for place, count in zip(places, heights, strict=True):
            axes.annotate(
                f"{count:,}", (place, count), ha="center", va="bottom", fontsize=8, xytext=(0, 1.5),
                textcoords="offset points",
            )  # fmt: skip

    text = (
        f"Histogram of group sizes: {number_of(len(sizes), 'group')} of {int(sizes.min())} to {int(sizes.max())} "
        f"records; none has fewer than {k}."
    )
    return Figure(_svg(draw, (6.6, 2.2), text))


def category_shares(name: str, values: Sequence[tuple[str, int, int]], records: int) -> Figure:
    """Draw the share of each category before (pale bar) and after masking (dark line)."""

    def draw(axes: Axes) -> None:
        places = np.arange(len(values))[::-1]
        axes.barh(places, [100 * before / records for _, before, _ in values], color=PALE, height=0.7)
        after = np.array([100 * count / records for *_, count in values])
        axes.vlines(after, places - 0.42, places + 0.42, color=INK, linewidth=1.6)
        axes.set_title(name)
        axes.set_yticks(places, [_clip(label, 16) for label, _, _ in values])
        axes.tick_params(axis="y", length=0, labelsize=7.5)
        axes.xaxis.set_major_locator(_few(3))
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g} %")

    text = f"Shares of the values of {name} before and after masking: " + ", ".join(
        f"{label} {100 * before / records:.1f} and {100 * after / records:.1f} percent"
        for label, before, after in values
    )
    return Figure(_svg(draw, (2.25, 1.5), text), wide=False)


def correlations(pairs: Sequence[tuple[str, Pair]], measure: str, text: str) -> Figure:
    """Draw correlations before (open circle) and after masking (filled circle), one row per pair."""

    def draw(axes: Axes) -> None:
        places = np.arange(len(pairs))[::-1]
        before = [pair.before for _, pair in pairs]
        after = [pair.after for _, pair in pairs]
        axes.axvline(0, color="#9aa5aa", linewidth=0.7)
        axes.hlines(places, before, after, color=INK, linewidth=1.2)
        axes.scatter(after, places, s=26, color=INK, zorder=3, label="after")
        axes.scatter(before, places, s=34, facecolor="white", edgecolor=INK, zorder=4, label="before")
        axes.set_yticks(places, [_clip(name, 40) for name, _ in pairs])
        axes.tick_params(axis="y", length=0, labelsize=8.5)
        axes.set_ylim(-0.7, len(pairs) - 0.3)
        low = min(0.0, *before, *after)
        axes.set_xlim(low - 0.05 if low < 0 else -0.02, 1.03)
        axes.set_xlabel(f"{measure}: ○ before, ● after")
        axes.grid(axis="x", color="#e4e9eb", linewidth=0.6)
        axes.set_axisbelow(True)

    return Figure(_svg(draw, (6.6, 0.65 + 0.24 * len(pairs)), text))


def risk_utility_map(trials: Sequence[Trial], ringed: tuple[str, int] | None, text: str) -> Figure:
    """Draw risk against loss, with a marker shape per method, labels for k, a line along the front and one ring."""
    names = list(dict.fromkeys(trial.name for trial in trials))

    def draw(axes: Axes) -> None:
        for promise in sorted({trial.promise for trial in trials}):
            front = sorted((t.loss, 100 * t.risk) for t in trials if t.pareto and t.promise == promise)
            axes.plot(*zip(*front, strict=True), color="#8d999e", linewidth=0.9, linestyle="--", zorder=1)
        for i, name in enumerate(names):
            marks = [trial for trial in trials if trial.name == name]
            axes.scatter(
                [trial.loss for trial in marks],
                [100 * trial.risk for trial in marks],
                marker=MARKERS[i % len(MARKERS)],
                s=30,
                facecolor=[ACCENT if trial.pareto else "white" for trial in marks],
                edgecolor=INK,
                linewidth=0.9,
                zorder=3,
                label=name,
            )
        for k in sorted({trial.k for trial in trials}):
            # One label for all methods at this k, above the highest mark.
            of_k = [trial for trial in trials if trial.k == k]
            y = max(100 * trial.risk for trial in of_k)
            x = float(np.mean([trial.loss for trial in of_k if 100 * trial.risk == y]))
            axes.annotate(f"k = {k}", (x, y), xytext=(0, 10), textcoords="offset points", ha="center", fontsize=8.5)
        for trial in trials:
            if (trial.name, trial.k) == ringed:
                axes.scatter(trial.loss, 100 * trial.risk, s=190, facecolor="none", edgecolor=INK, linewidth=1.4)
        axes.set_xlabel("information loss, %   (left is more useful)")
        axes.set_ylabel("risk of being found, %   (low is safer)")
        axes.set_xlim(0, 1.08 * max(trial.loss for trial in trials) or 1.0)
        axes.set_ylim(0, 1.18 * max(100 * trial.risk for trial in trials) or 1.0)
        axes.grid(color="#e4e9eb", linewidth=0.6)
        axes.set_axisbelow(True)
        if len(names) > 1:
            axes.legend(frameon=False, fontsize=8.5, loc="upper left", bbox_to_anchor=(1.01, 1), borderaxespad=0)

    return Figure(_svg(draw, (6.6, 3.3), text))


def price_curves(prices: Sequence[Price], label: str, text: str) -> Figure:
    """Draw the loss against l or t, with a line per method and k and a dotted line for the loss without the promise."""

    def draw(axes: Axes) -> None:
        for i, price in enumerate(prices):
            x, losses = zip(*price.losses, strict=True)
            name = f"{price.name}, k = {price.k}"
            axes.plot(
                x,
                losses,
                color=INK,
                linewidth=0.9,
                marker=MARKERS[i % len(MARKERS)],
                markersize=5,
                markerfacecolor=ACCENT,
                label=name,
            )
            if price.without is not None:
                axes.axhline(price.without, color="#8d999e", linewidth=0.9, linestyle=":")
        if all(x == int(x) for price in prices for x, _ in price.losses):
            axes.xaxis.set_major_locator(_few(8, integer=True))
        axes.set_xlabel(label)
        axes.set_ylabel("information loss, %")
        axes.set_ylim(bottom=0)
        axes.grid(color="#e4e9eb", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.legend(frameon=False, fontsize=8.5, loc="upper left", bbox_to_anchor=(1.01, 1), borderaxespad=0)

    return Figure(_svg(draw, (6.6, 2.8), text))


def short(value: float) -> str:
    """Return a number as short text for a tick label.

    Examples
    --------
    >>> short(12_000), short(-3e6), short(0.5)
    ('12k', '−3M', '0.5')
    """
    size = abs(value)
    for unit, sign in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if size >= unit:
            return f"{value / unit:g}{sign}".replace("-", "−")
    return f"{value:.4g}".replace("-", "−")


def _ticks(bins: Bins, edges: Any) -> Any:
    """Return a few round values between the edges."""
    from matplotlib.ticker import MaxNLocator

    if not bins.unit:
        inside = MaxNLocator(4).tick_values(edges[0], edges[-1])
        return inside[(inside >= edges[0]) & (inside <= edges[-1])]
    span = float(edges[-1] - edges[0])
    low, high = bins.unit * np.sinh([edges[0], edges[-1]])
    powers = 10.0 ** np.arange(np.floor(np.log10(bins.unit)), np.ceil(np.log10(max(abs(low), abs(high)))) + 1)
    ticks: list[float] = []
    # From the outside in, so that the ends of the axis get labels first.
    for value in sorted({0.0, *powers, *-powers}, key=lambda v: -abs(v)):
        place = np.arcsinh(value / bins.unit)
        near = any(abs(place - np.arcsinh(tick / bins.unit)) < span / 6 for tick in ticks)
        if low <= value <= high and not near:
            ticks.append(value)
    return np.array(sorted(ticks))


def _few(n: int, *, integer: bool = False) -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(n, integer=integer)


def _clip(name: str, length: int = 28) -> str:
    return name if len(name) <= length else name[: length - 1] + "…"


def _svg(draw: Callable[[Axes], None], size: tuple[float, float], text: str) -> str:
    """Draw on new axes and return the SVG element, with a text alternative for people who cannot see it."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure as Drawing

    # Identifiers must differ between the figures of a page but not between runs.
    with rc_context(STYLE | {"svg.hashsalt": text}), warnings.catch_warnings():
        # The browser draws the text in the page's fonts, so a missing glyph here does not matter.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        drawing = Drawing(figsize=size, layout="constrained")
        FigureCanvasSVG(drawing)
        draw(drawing.add_subplot())
        buffer = io.StringIO()
        drawing.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    svg = buffer.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    # Identifiers without references would clash between the figures of a page.
    svg = re.sub(r' id="(?:[a-z.]+|line2d|[A-Z][A-Za-z]+Collection)_\d+"', "", svg)
    # Remove sizes in points, so that the drawing scales with the page.
    svg = re.sub(r'<svg ([^>]*?)(?: ?width="[^"]*pt")([^>]*)>', r"<svg \1\2>", svg, count=1)
    svg = re.sub(r'<svg ([^>]*?)(?: ?height="[^"]*pt")([^>]*)>', r"<svg \1\2>", svg, count=1)
    # Two decimals of a point are finer than any print resolution.
    svg = re.sub(r"<[^>]+>", lambda tag: re.sub(r"(\d\.\d{2})\d+", r"\1", tag[0]), svg)
    label = escape(text)
    return svg.replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1).replace(">", f"><title>{label}</title>", 1)
