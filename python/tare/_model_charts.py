"""Charts of a model's page: inline SVG. Across, places are shares of the width, so that words keep their size."""
import math
from html import escape
from typing import Any, Callable, List, Mapping, Sequence, Tuple

from . import _core
from ._core import Missing
from ._model_text import configuration_text, ms, size

HEIGHT, BOTTOM = 220.0, 24.0
BINS_MOST = 40
POINTS_MOST = 1000

Scale = Tuple[float, float, float]


def _round_step(step: float, base: float) -> float:
    ten = 10.0 ** math.floor(math.log10(step / base))
    return next(one for one in (1 * ten * base, 2 * ten * base, 5 * ten * base, 10 * ten * base) if one >= step * 0.999)


def scale_of(low: float, high: float, base: float = 1.0) -> Scale:
    """Lowest, highest and step, all round; from 0 where that leaves the values visible."""
    if 0 <= low < 0.35 * high:
        low = 0.0
    least = 0.05 * max(abs(low), abs(high)) or 1.0
    if high - low < least:
        middle = (low + high) / 2
        low, high = max(0.0, middle - least / 2) if low >= 0 else middle - least / 2, middle + least / 2
    step = _round_step((high - low) / 4, base)
    return math.floor(low / step * 1.000001) * step, math.ceil(high / step * 0.999999) * step, step


def _number(value: float, step: float) -> str:
    digits = max(0, -math.floor(math.log10(step) + 1e-9))
    return f"{0.0 if abs(value) < step / 1e6 else value:,.{digits}f}"


class _Chart:
    """What is drawn, in the order of drawing."""

    def __init__(self, scale: Scale, show: Callable[[float], str], top: float = 12.0):
        (self.low, self.high, step), self.top = scale, top
        self.parts: List[str] = []
        for i in range(round((self.high - self.low) / step) + 1):
            y = self.up(self.low + i * step)
            self.parts.append(f"<line class=grid x1=\"0\" x2=\"100%\" y1=\"{y:.1f}\" y2=\"{y:.1f}\"/>")
            self.words("", "end", 0, -8, y + 4, show(self.low + i * step))

    def up(self, value: float) -> float:
        share = min(1.0, max(0.0, (value - self.low) / (self.high - self.low)))
        return HEIGHT - BOTTOM - (HEIGHT - self.top - BOTTOM) * share

    def words(self, kind: str, anchor: str, x: float, dx: float, y: float, text: str) -> None:
        self.parts.append(f"<text class=\"{kind}\" text-anchor={anchor} x=\"{100 * x:.2f}%\" dx=\"{dx:g}\" y=\"{y:.1f}\">"
                          f"{escape(text)}</text>")

    def under(self, *texts: str) -> None:
        for i, text in enumerate(texts):
            x = i / (len(texts) - 1)
            self.words("" if x in (0, 1) else "roomy", "start" if x == 0 else "end" if x == 1 else "middle", x, 0,
                       HEIGHT - 6, text)

    def upright(self, x: float, text: str, row: int = 0) -> None:
        if not 0 <= x <= 1:
            return
        self.parts.append(f"<line class=at x1=\"{100 * x:.2f}%\" x2=\"{100 * x:.2f}%\" y1=\"{self.top:g}\" "
                          f"y2=\"{HEIGHT - BOTTOM:g}\"/>")
        self.words("size", "end" if x > 0.9 else "start" if x < 0.05 else "middle", x, 0, self.top - 6 - 15 * row, text)

    def figure(self, title: str, more: str) -> str:
        return (f"<figure class=plot><figcaption><strong>{escape(title)}</strong>{escape(more)}</figcaption>"
                f"<div class=area><svg height=\"{HEIGHT:g}\" role=img aria-label=\"{escape(title)}\">"
                f"{''.join(self.parts)}</svg></div></figure>")


def histogram(values: Sequence[float]) -> str:
    """How often which latency; the few that lie far beyond the others are counted in words."""
    low, half, most = min(values), _core.quantile(list(values), 0.5), _core.quantile(list(values), 0.95)
    high = min(max(values), max(half + 2 * (half - low), most + 0.25 * (most - low)))
    if not high > low:
        low, high = low * 0.95, low * 1.05 or 1.0
    bins = min(BINS_MOST, max(5, len(values) // 3))
    counts, beyond = [0] * bins, sum(value > high for value in values)
    for value in values:
        if value <= high:
            counts[min(bins - 1, int((value - low) / (high - low) * bins))] += 1
    chart = _Chart(scale_of(0, max(4, *counts)), lambda one: f"{one:,.0f}", top=36)
    for at, one in enumerate(counts):
        if one:
            chart.parts.append(f"<rect class=bin x=\"{100 * (at + 0.05) / bins:.2f}%\" width=\"{90 / bins:.2f}%\" "
                               f"y=\"{chart.up(one):.1f}\" height=\"{HEIGHT - BOTTOM - chart.up(one):.1f}\"/>")
    places = [(one - low) / (high - low) for one in (half, most)]
    chart.upright(places[0], "p50")
    chart.upright(places[1], "p95", int(places[1] - places[0] < 0.14))
    chart.under(ms(low), ms((low + high) / 2), ms(high))
    more = f"; {beyond} beyond the chart, up to {ms(max(values))}" if beyond else ""
    return chart.figure("Latency", f": {len(values)} runs by how long they took{more}")


def course(title: str, more: str, points: Sequence[Sequence[float]], memory: bool, under: Sequence[str]) -> str:
    """Values in their order; of very many, the highest of each stretch."""
    each = -(-len(points) // POINTS_MOST)
    kept = [max(points[i:i + each], key=lambda one: one[1]) for i in range(0, len(points), each)]
    first, far = points[0][0], points[-1][0] - points[0][0] or 1.0
    low, high = min(one[1] for one in kept), max(one[1] for one in kept)
    base = next((one for one in (2.0 ** 30, 2.0 ** 20, 2.0 ** 10) if memory and high >= one), 1.0)
    scale = scale_of(0.0 if memory else low, high, base)
    chart = _Chart(scale, size if memory else lambda one: f"{_number(one, scale[2])} ms")
    # Memory stays as it is until something is allocated or freed; of runs only the order counts.
    to = "H{:.1f}V{:.1f}" if memory else "L{:.1f} {:.1f}"
    path = f"0 {chart.up(kept[0][1]):.1f}" + "".join(
        to.format(1000 * (x - first) / far, chart.up(y)) for x, y in kept[1:])
    chart.parts.append(f"<svg width=\"100%\" height=\"{HEIGHT:g}\" viewBox=\"0 0 1000 {HEIGHT:g}\" "
                       "preserveAspectRatio=none>"
                       f"<path class=course vector-effect=non-scaling-stroke d=\"M{path}\"/></svg>")
    chart.under(*under)
    return chart.figure(title, more)


def trade_off(rows: Sequence[Mapping[str, Any]]) -> str:
    known = [(row["latency"]["p50"], row["throughput"]["samples_per_second"], row) for row in rows
             if row["status"] == "measured" and not isinstance(row["throughput"]["samples_per_second"], Missing)]
    if len(known) < 2:
        return ""
    far = 1.08 * max(one[0] for one in known)
    scale = scale_of(0, max(one[1] for one in known))
    chart = _Chart(scale, lambda one: _number(one, scale[2]))
    taken: List[Tuple[float, float, float]] = []

    def free(left: float, right: float, y: float) -> bool:
        if left < 0 or right > 1 or any(abs(one[2] - y) < 14 and left < one[1] and right > one[0] for one in taken):
            return False
        taken.append((left, right, y))
        return True
    # The ones worth choosing have their words first; words that would lie on each other are left to the table.
    for latency, throughput, row in sorted(known, key=lambda one: "trade-off" not in one[2]["best"]):
        x, y, name = latency / far, chart.up(throughput), configuration_text(row["configuration"])
        kind = "dot" if "trade-off" in row["best"] else "other"
        chart.parts.append(f"<circle class={kind} r=\"5\" cx=\"{100 * x:.2f}%\" "
                           f"cy=\"{y:.1f}\"><title>{escape(name)}</title></circle>")
        name = name if len(name) <= 28 else name[:27] + "…"
        wide = 0.05 + 0.026 * len(name)  # of a phone's width: what fits there fits everywhere
        if free(x, x + wide, y):
            chart.words("label", "start", x, 9, y + 4, name)
        elif free(x - wide, x, y):
            chart.words("label", "end", x, -9, y + 4, name)
    chart.under("0", ms(far / 2), ms(far))
    return chart.figure("Throughput", " (samples/s, up) against latency (p50, across): upper left is best, the best "
                                      "trade-offs in colour")
