"""Results as pictures: SVG for light and dark pages, written by hand, that needs nothing from elsewhere."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

from tests.bench.results import Results
from tests.bench.table import SERVERS, failures, number
from tests.bench.targets import OURS

# In units of the picture.
WIDTH, EDGE = 800, 20
TOP = 78  # above a plot: its title, and what its figures are
LINE = 18  # from one label to the next, so that none touches another

UPSTREAM = 0.2  # seconds that the upstream takes for each answer

STYLE = """\
path { fill: none }
.page { fill: #ffffff; stroke: #d0d7de }
text { fill: #59636e; font: 13px system-ui, -apple-system, "Segoe UI", "Helvetica Neue", "DejaVu Sans", sans-serif }
.title { fill: #1f2328; font-size: 16px; font-weight: bold }
.grid { stroke: #e4e8ec }
.base { stroke: #8c959f }
.range { stroke: #1f2328 }
.curve { stroke: currentColor; stroke-width: 2; stroke-linejoin: round }
.dashed { stroke-width: 1.5; stroke-dasharray: 5 4 }
.lead { stroke: currentColor; stroke-opacity: 0.5 }
.dot, .bar { fill: currentColor }
.failed { fill: #ffffff; stroke: currentColor; stroke-width: 2 }
.name { fill: currentColor }
.ours { color: #0969da }
.ours .name { font-weight: bold }
.ours .curve { stroke-width: 3 }
.original { color: #bc4c00 }
.python-sdk { color: #1a7f37 }
.typescript-sdk { color: #8250df }
.bare { color: #6e7781 }
@media (prefers-color-scheme: dark) {
  .page, .failed { fill: #0d1117 }
  .page { stroke: #3d444d }
  text { fill: #9198a1 }
  .title { fill: #f0f6fc }
  .grid { stroke: #262c36 }
  .base { stroke: #656c76 }
  .range { stroke: #f0f6fc }
  .ours { color: #58a6ff }
  .original { color: #f0883e }
  .python-sdk { color: #3fb950 }
  .typescript-sdk { color: #bc8cff }
  .bare { color: #9198a1 }
  .bar { fill-opacity: 0.65 }
}"""


@dataclass(frozen=True)
class Curve:
    """One line of a plot, with what is written at its end."""

    subject: str  # also the class of its colour
    name: str
    end: str
    points: tuple[tuple[float, float], ...]  # in the units of the axes
    failed: frozenset[float] = frozenset()  # where on the first axis calls failed


@dataclass(frozen=True)
class Axes:
    """What two axes mean, and how the first is laid out."""

    across: str
    up: str
    ticks: tuple[float, ...]
    place: Callable[[float], float]  # from a figure to 0 (left) to 1 (right)


def draw(results: Results) -> dict[str, str]:
    """Return the pictures by their file names; raise ValueError where this server was not measured."""
    return {"start.svg": start(results), "calls.svg": calls(results), "memory.svg": memory(results)}


def start(results: Results) -> str:
    """Return bars of how long each program takes to start, the fastest first."""
    named = {
        "python": ("bare", "an empty Python program", "exit"),
        "trio": ("bare", "the same with import trio", "exit"),
        **{key: (key, name, "initialize") for key, name in SERVERS.items()},
    }
    found = [
        (sample, kind, name)
        for key, (kind, name, case) in named.items()
        if (sample := results.sample("start", case, key)) is not None
    ]
    _must_have_ours(OURS in {sample.subject for sample, *_ in found}, "start")
    found.sort(key=lambda one: one[0].median)
    left, right, row = 210, WIDTH - EDGE - 70, 34
    bottom = TOP + row * len(found)
    ticks = _ticks(max(max(sample.values) for sample, *_ in found))

    def x(value: float) -> float:
        return left + (right - left) * value / ticks[-1]

    parts = []
    for tick in ticks:
        parts += [
            f'<path class="base" d="M{_n(x(tick))} {bottom}v5"/>',
            _text(x(tick), bottom + 20, f"{tick:,g}", anchor="middle"),
        ]
    for index, (sample, kind, name) in enumerate(found):
        y = TOP + row * index + row / 2
        low, high = x(min(sample.values)), x(max(sample.values))
        parts += [
            f'<g class="{kind}">',
            _text(left - 10, y + 4.5, name, kind="name", anchor="end"),
            f'<rect class="bar" x="{left}" y="{_n(y - 9)}" width="{_n(x(sample.median) - left)}" height="18" rx="2"/>',
            f'<path class="range" d="M{_n(low)} {_n(y)}H{_n(high)}M{_n(low)} {_n(y - 4)}v8M{_n(high)} {_n(y - 4)}v8"/>',
            _text(high + 8, y + 4.5, f"{number(sample.median)} {sample.unit}", kind="name"),
            "</g>",
        ]
    parts += [
        f'<path class="base" d="M{left} {TOP}V{bottom}H{right}"/>',
        _text((left + right) / 2, bottom + 38, "milliseconds", anchor="middle"),
    ]
    return _picture(
        "Cold start",
        f"Until initialize is answered; an empty program, until it ends. Medians of {results.rounds} rounds.",
        _told((name, f"{number(sample.median)} {sample.unit}") for sample, _, name in found),
        bottom + 52,
        parts,
    )


def calls(results: Results) -> str:
    """Return how long each server takes for many calls at once, beside what no server can beat."""
    sizes = (1, 10, 100, 500, 1000)
    curves = []
    for key, name in SERVERS.items():
        points = _points(results, "calls", key, sizes)
        if points:
            failed = {size: failures(results, str(size), key) for size in sizes}
            last = failed[round(points[-1][0])]
            said = _end(points, sizes, "s") + (f", {last} failed" if last else "")
            curves.append(Curve(key, name, said, points, frozenset(size for size in sizes if failed[size])))
    _must_have_ours(OURS in {curve.subject for curve in curves}, "calls")
    ideal = Curve("bare", "the upstream alone", f"{UPSTREAM:g} s", ((sizes[0], UPSTREAM), (sizes[-1], UPSTREAM)))
    hollow = " (hollow: some failed)" if any(curve.failed for curve in curves) else ""
    axes = Axes(f"calls at once{hollow}", "seconds", sizes, lambda size: math.log10(size) / math.log10(sizes[-1]))
    return _plot(
        "Calls at once",
        f"Until the last is answered; the upstream takes {UPSTREAM:g} s for each. Medians of {results.rounds} rounds.",
        axes,
        [ideal, *curves],
    )


def memory(results: Results) -> str:
    """Return the memory of each server after so many calls."""
    steps = tuple(range(0, 1001, 100))
    curves = []
    for key, name in SERVERS.items():
        points = _points(results, "memory", key, steps)
        if points:
            curves.append(Curve(key, name, _end(points, steps, "MiB"), points))
    _must_have_ours(OURS in {curve.subject for curve in curves}, "memory")
    axes = Axes("calls answered, ten at a time", "MiB", steps[::2], lambda calls: calls / steps[-1])
    told = f"Resident memory of the process after so many calls. Medians of {results.rounds} rounds."
    return _plot("Memory", told, axes, curves)


def _must_have_ours(measured: bool, measure: str) -> None:
    if not measured:
        raise ValueError(f"the results lack {measure} of this server")


def _points(results: Results, measure: str, subject: str, places: Sequence[int]) -> tuple[tuple[float, float], ...]:
    found = ((place, results.median(measure, str(place) if place else "idle", subject)) for place in places)
    return tuple((place, median) for place, median in found if median is not None)


def _end(points: Sequence[tuple[float, float]], places: Sequence[int], unit: str) -> str:
    """Return the last figure of a curve, and where that is if others may go further."""
    place, figure = points[-1]
    return f"{number(figure)} {unit}" + (f" at {place:g}" if place < places[-1] else "")


def _plot(title: str, told: str, axes: Axes, curves: Sequence[Curve]) -> str:
    left, right, bottom = 64, WIDTH - EDGE - 270, TOP + 280
    ticks = _ticks(max(y for curve in curves for _, y in curve.points))

    def x(value: float) -> float:
        return left + (right - left) * axes.place(value)

    def y(value: float) -> float:
        return bottom - (bottom - TOP) * value / ticks[-1]

    parts = []
    for tick in ticks:
        kind = "grid" if tick else "base"
        parts += [
            f'<path class="{kind}" d="M{left} {_n(y(tick))}H{right}"/>',
            _text(left - 8, y(tick) + 4.5, f"{tick:,g}", anchor="end"),
        ]
    parts += [_text(x(tick), bottom + 18, f"{tick:,.0f}", anchor="middle") for tick in axes.ticks]
    parts += [
        _text((left + right) / 2, bottom + 38, axes.across, anchor="middle"),
        f'<text transform="translate({EDGE + 4} {_n((TOP + bottom) / 2)}) rotate(-90)" text-anchor="middle">'
        f"{axes.up}</text>",
    ]
    labels = _apart([y(curve.points[-1][1]) for curve in curves], bottom)
    # Ours is drawn last, so that no other lies on it.
    for curve, label in sorted(zip(curves, labels, strict=True), key=lambda one: one[0].subject == OURS):
        path = "L".join(f"{_n(x(across))} {_n(y(up))}" for across, up in curve.points)
        end = x(curve.points[-1][0]), y(curve.points[-1][1])
        dashed = curve.subject == "bare"
        parts += [
            f'<g class="{curve.subject}">',
            f'<path class="curve{" dashed" if dashed else ""}" d="M{path}"/>',
            *(
                f'<circle class="{"failed" if across in curve.failed else "dot"}" cx="{_n(x(across))}" '
                f'cy="{_n(y(up))}" r="3.5"/>'
                for across, up in ([] if dashed else curve.points)
            ),
            f'<path class="lead" d="M{_n(end[0] + 7)} {_n(end[1])}L{_n(right + 20)} {_n(label)}"/>',
            _text(right + 24, label + 4.5, f"{curve.name}: {curve.end}", kind="name"),
            "</g>",
        ]
    return _picture(title, told, _told((curve.name, curve.end) for curve in curves), bottom + 52, parts)


def _apart(places: Sequence[float], bottom: float) -> list[float]:
    """Return the places moved as little as keeps them a line apart, in the same order, none below `bottom`."""
    order = sorted(range(len(places)), key=lambda index: places[index])
    moved = list(places)
    for above, below in pairwise(order):
        moved[below] = max(moved[below], moved[above] + LINE)
    limit = bottom
    for index in reversed(order):
        moved[index] = min(moved[index], limit)
        limit = moved[index] - LINE
    return moved


def _ticks(highest: float) -> list[float]:
    """Return round figures, evenly spaced from 0, the last of them at or above `highest`."""
    power = 10 ** math.floor(math.log10(highest))
    step = next(step for step in (0.2 * power, 0.25 * power, 0.5 * power, power, 2 * power) if highest <= 6 * step)
    return [index * step for index in range(math.ceil(highest / step) + 1)]


def _told(figures: Iterable[tuple[str, str]]) -> str:
    return "; ".join(f"{name}: {figure}" for name, figure in figures)


def _picture(title: str, told: str, description: str, height: float, parts: Sequence[str]) -> str:
    """Return the file: what is told stands below the title, the description is for those who do not see it."""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {_n(height)}" width="{WIDTH}" '
            f'height="{_n(height)}" role="img" aria-labelledby="title desc">',
            f'<title id="title">{escape(title)}</title>',
            f'<desc id="desc">{escape(f"{told} {description}.", quote=False)}</desc>',
            f"<style>\n{STYLE}\n</style>",
            f'<rect class="page" x="0.5" y="0.5" width="{WIDTH - 1}" height="{_n(height - 1)}" rx="8"/>',
            _text(EDGE, 32, title, kind="title"),
            _text(EDGE, 53, told),
            *parts,
            "</svg>\n",
        ]
    )


def _text(x: float, y: float, text: str, *, kind: str = "", anchor: str = "") -> str:
    kind = f' class="{kind}"' if kind else ""
    anchor = f' text-anchor="{anchor}"' if anchor else ""
    return f'<text{kind} x="{_n(x)}" y="{_n(y)}"{anchor}>{escape(text, quote=False)}</text>'


def _n(value: float) -> str:
    """Return a coordinate: a tenth is finer than any screen shows."""
    return f"{value:.1f}".removesuffix(".0")
