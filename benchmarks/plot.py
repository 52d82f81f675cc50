"""How does a curve of costs look? Small pictures in one SVG file, both axes logarithmic.

One panel for each operation: its median at each size, a bar from the cheapest to the dearest round, and
a dashed line that rises as steeply as the cost may, through the first point that the exponent is fitted
to. Plain SVG, one element a line, so that a change shows in a diff; colours follow the reader's light or
dark background.
"""

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape

from fit import UPPER, Fit

COLUMNS = 4
WIDTH, HEIGHT = 250, 190
_LEFT, _RIGHT, _TOP, _BOTTOM = 50, 14, 40, 34
_HEAD = 76
_TICKS = 5
# At least this wide, so that noise round a constant does not look like a mountain.
_DECADES = 1.0

_STYLE = """
  .back { fill: #ffffff } .text { fill: #24292f } .soft { fill: #57606a } .grid { stroke: #d8dee4 }
  .line { stroke: #0969da; fill: none; stroke-width: 1.8 } .dot { fill: #0969da } .bar { stroke: #0969da }
  .may { stroke: #bc4c00; stroke-dasharray: 5 3; stroke-width: 1.4 } .over { fill: #cf222e }
  text { font: 11px system-ui, sans-serif } .title { font-size: 15px; font-weight: 600 }
  .name { font-size: 12px; font-weight: 600 } .end { text-anchor: end } .mid { text-anchor: middle }
  @media (prefers-color-scheme: dark) {
    .back { fill: #0d1117 } .text { fill: #e6edf3 } .soft { fill: #9198a1 } .grid { stroke: #30363d }
    .line { stroke: #58a6ff } .dot { fill: #58a6ff } .bar { stroke: #58a6ff } .may { stroke: #f0883e }
    .over { fill: #ff7b72 }
  }
"""


class Panel(NamedTuple):
    """One operation: its cost at each size in each round, the exponent, and what that may be."""

    name: str
    curve: Mapping[float, Sequence[float]]
    fit: Fit
    may: float
    kept: bool


class Scale(NamedTuple):
    """From a value to a place on the picture, logarithmically."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        """Return the place of a value."""
        share = (math.log(value) - math.log(self.low)) / (math.log(self.high) - math.log(self.low))
        return self.start + share * (self.end - self.start)


def svg(title: str, x_unit: str, y_unit: str, panels: Sequence[Panel]) -> str:
    """Return the picture as text."""
    columns = min(COLUMNS, len(panels))
    rows = math.ceil(len(panels) / columns)
    # Wide enough for the title and the legend, however few panels there are.
    width, height = max(columns * WIDTH, 2 * WIDTH) + 10, _HEAD + rows * HEIGHT + 8
    box = f'viewBox="0 0 {width} {height}"'
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {box} width="{width}" height="{height}" role="img">',
        f"<title>{escape(title)}</title>",
        f"<style>{_STYLE}</style>",
        f'<rect class="back" width="{width}" height="{height}"/>',
        f'<text class="text title" x="12" y="22">{escape(title)}</text>',
        *_legend(y_unit),
    ]
    for number, panel in enumerate(panels):
        row, column = divmod(number, columns)
        lines.append(f'<g transform="translate({column * WIDTH} {_HEAD + row * HEIGHT})">')
        lines += _panel(panel, x_unit, y_unit)
        lines.append("</g>")
    lines.append("</svg>")
    return "\n".join(lines) + "\n"


def ticks(low: float, high: float) -> list[float]:
    """Return round numbers between the two: 1, 2 and 5 times the powers of ten, or fewer."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for digits in ((1, 2, 5), (1, 3), (1,)):
        found = [digit * 10.0**power for power in powers for digit in digits]
        found = [tick for tick in found if low * 0.999 <= tick <= high * 1.001]
        if len(found) <= _TICKS:
            return found
    return found[:: math.ceil(len(found) / _TICKS)]


def short(value: float) -> str:
    """Return a number as it stands at an axis: 30k, 0.2."""
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}"


def _legend(y_unit: str) -> Iterator[str]:
    yield '<line class="line" x1="12" y1="40" x2="36" y2="40"/><circle class="dot" cx="24" cy="40" r="2.6"/>'
    measured = f"{escape(y_unit)}, median of the rounds; bar: cheapest to dearest; both axes logarithmic"
    yield f'<text class="soft" x="42" y="44">{measured}</text>'
    yield '<line class="may" x1="12" y1="58" x2="36" y2="58"/>'
    yield '<text class="soft" x="42" y="62">as steep as it may be</text>'


def _panel(panel: Panel, x_unit: str, y_unit: str) -> Iterator[str]:
    sizes = sorted(panel.curve)
    medians = {size: statistics.median(panel.curve[size]) for size in sizes}
    begin = sizes[-UPPER:][0]
    dashed = [(size, medians[begin] * (size / begin) ** panel.may) for size in (begin, sizes[-1])]
    costs = [cost for size in sizes for cost in panel.curve[size]] + [cost for _, cost in dashed]
    low, high = _range(min(costs), max(costs))
    x = Scale(sizes[0], sizes[-1], _LEFT, WIDTH - _RIGHT)
    y = Scale(low, high, HEIGHT - _BOTTOM, _TOP)
    yield f'<text class="text name" x="10" y="14">{escape(panel.name)}</text>'
    mark = "soft" if panel.kept else "over"
    found = panel.fit
    says = f"exponent {found.exponent:.2f} ({found.low:.2f} to {found.high:.2f}), may be {panel.may:g}"
    yield f'<text class="{mark}" x="10" y="29">{says}</text>'
    yield from _axes(x, y, y_unit)
    yield f'<line class="may" {_ends(*((x(size), y(cost)) for size, cost in dashed))}/>'
    for size in sizes:
        cheapest, dearest = min(panel.curve[size]), max(panel.curve[size])
        yield f'<line class="bar" {_ends((x(size), y(cheapest)), (x(size), y(dearest)))}/>'
        yield f'<circle class="dot" cx="{x(size):.1f}" cy="{y(medians[size]):.1f}" r="2.6"/>'
    points = " ".join(f"{x(size):.1f},{y(medians[size]):.1f}" for size in sizes)
    yield f'<polyline class="line" points="{points}"/>'
    middle = (_LEFT + WIDTH - _RIGHT) / 2
    yield f'<text class="soft mid" x="{middle:g}" y="{HEIGHT - 6}">{escape(x_unit)}</text>'


def _axes(x: Scale, y: Scale, y_unit: str) -> Iterator[str]:
    for tick in ticks(y.low, y.high):
        yield f'<line class="grid" {_ends((x.start, y(tick)), (x.end, y(tick)))}/>'
        yield f'<text class="soft end" x="{x.start - 4}" y="{y(tick) + 4:.1f}">{short(tick)} {y_unit}</text>'
    for tick in ticks(x.low, x.high):
        yield f'<line class="grid" {_ends((x(tick), y.start), (x(tick), y.end))}/>'
        yield f'<text class="soft mid" x="{x(tick):.1f}" y="{y.start + 13}">{short(tick)}</text>'


def _ends(begin: tuple[float, float], end: tuple[float, float]) -> str:
    return f'x1="{begin[0]:.1f}" y1="{begin[1]:.1f}" x2="{end[0]:.1f}" y2="{end[1]:.1f}"'


def _range(low: float, high: float) -> tuple[float, float]:
    spare = max(_DECADES - math.log10(high / low), 0.1) / 2
    return low / 10**spare, high * 10**spare
