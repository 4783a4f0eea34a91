"""Results as pictures, drawn with matplotlib: its dependency group is `plots`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tests.lab.bench.results import Results
from tests.lab.bench.table import SERVERS, failures, number

UPSTREAM = 0.2  # seconds that the upstream takes for each answer
SIZES = (1, 10, 100, 500, 1000)  # calls at once
COLOURS = {
    "ours": "#0969da",
    "before": "#6e7781",
    "original": "#bc4c00",
    "python-sdk": "#1a7f37",
    "typescript-sdk": "#8250df",
}
BARE = "#6e7781"
# Text stays text, and the same results give the same files.
STYLE = {"svg.fonttype": "none", "svg.hashsalt": "bench", "axes.spines.top": False, "axes.spines.right": False}


def draw(results: Results, folder: Path) -> None:
    """Write the pictures. Nothing else about matplotlib in this process is changed."""
    with mpl.rc_context(STYLE):
        for name, picture in (("start", start), ("calls", calls), ("memory", memory)):
            figure = Figure(figsize=(8, 4), layout="constrained")
            axes = figure.add_subplot()
            picture(results, axes)
            figure.savefig(folder / f"{name}.svg", metadata={"Date": None, "Creator": None})


def start(results: Results, axes: Axes) -> None:
    """Draw bars of how long each program takes to start, the fastest first."""
    named = {
        "python": ("an empty Python program", "exit"),
        "trio": ("the same with import trio", "exit"),
        **{key: (name, "initialize") for key, name in SERVERS.items()},
    }
    found = [(sample, name) for key, (name, case) in named.items() if (sample := results.sample("start", case, key))]
    found.sort(key=lambda one: -one[0].median)
    for sample, name in found:
        low, high = sample.median - min(sample.values), max(sample.values) - sample.median
        bar = axes.barh(name, sample.median, color=COLOURS.get(sample.subject, BARE), xerr=[[low], [high]], capsize=3)
        axes.bar_label(bar, [f"{number(sample.median)} ms"], padding=4)
    axes.set_title(f"Cold start, until initialize is answered: medians of {results.rounds} rounds")
    axes.set_xlabel("milliseconds; an empty program, until it ends")
    axes.margins(x=0.12)


def calls(results: Results, axes: Axes) -> None:
    """Draw how long each server takes for many calls at once, beside what no server can beat."""
    _curves(results, axes, "calls", SIZES, "s")
    axes.plot([SIZES[0], SIZES[-1]], [UPSTREAM, UPSTREAM], "--", color=BARE, label="the upstream alone")
    axes.set_title(f"Calls at once, until the last is answered: medians of {results.rounds} rounds")
    axes.set_xlabel("calls at once")
    axes.set_ylabel("seconds")
    axes.set_xscale("log")
    axes.set_xticks(SIZES, [f"{size:,}" for size in SIZES])
    axes.legend()


def memory(results: Results, axes: Axes) -> None:
    """Draw the memory of each server after so many calls."""
    _curves(results, axes, "memory", range(0, 1001, 100), "MiB")
    axes.set_title(f"Resident memory of the process: medians of {results.rounds} rounds")
    axes.set_xlabel("calls answered, ten at a time")
    axes.set_ylabel("MiB")
    axes.legend()


def _curves(results: Results, axes: Axes, measure: str, places: Sequence[int], unit: str) -> None:
    for key, name in SERVERS.items():
        found = [(place, results.median(measure, str(place) if place else "idle", key)) for place in places]
        points = [(place, median) for place, median in found if median is not None]
        if not points:
            continue
        last, figure = points[-1]
        failed = failures(results, str(last), key) if measure == "calls" else 0
        said = f"{name}: {number(figure)} {unit}" + (f" at {last}" if last < places[-1] else "")
        label = f"{said}, {failed} failed" if failed else said
        axes.plot(*zip(*points, strict=True), marker="o", markersize=4, color=COLOURS[key], label=label)
    axes.set_ylim(bottom=0)
