"""Results as tables of Markdown: `python -m tests.lab.bench.page` puts those of docs/performance/results.json on the page."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from tests.house import between
from tests.lab.bench.results import Results, Sample
from tests.lab.bench.targets import OURS, TARGETS
from tests.processes import ROOT

PAGE = ROOT / "docs" / "performance.md"
RESULTS = ROOT / "docs" / "performance" / "results.json"

SERVERS = {
    OURS: "this server",
    "before": "the state before",
    "original": "the original",
    "python-sdk": "Python SDK",
    "typescript-sdk": "TypeScript SDK",
}
BARE = {"python": "Python", "trio": "Trio", "httpx": "httpx"}  # no servers, but what a server cannot do without

ROWS = {
    ("start", "exit"): "an empty program, from start to end",
    ("start", "initialize"): "start, until `initialize` is answered",
    ("start", "tools/list"): "start, until the tools are listed",
    ("start_cpu", "initialize"): "processor time of the first start, its end included",
    ("start_cpu", "tools/list"): "processor time of the second start, its end included",
    ("memory", "idle"): "memory after the start",
    ("memory", "100"): "memory after 100 calls",
    ("memory", "1000"): "memory after 1000 calls",
    ("messages", "ping"): "pings",
    ("messages", "tools/list"): "lists of tools",
    ("message_cpu", "ping"): "processor time of a ping",
    ("message_cpu", "tools/list"): "processor time of a list of tools",
    ("calls", "1"): "1 call",
    ("calls", "10"): "10 calls at once",
    ("calls", "100"): "100 calls at once",
    ("calls", "500"): "500 calls at once",
    ("calls", "1000"): "1000 calls at once",
    ("calls", "1000/1024 files"): "1000 calls at once, 1024 open files allowed",
    ("call_cpu", "one by one"): "processor time of a call, one by one",
    ("call_cpu", "1000 at once"): "processor time of a call, 1000 at once",
    ("overhead", "call"): "one call, over an upstream that answers at once",
    ("overhead_cpu", "call"): "processor time of such a call",
    ("overhead_cpu", "json"): "processor time of a call, its 300 words in one JSON reply",
    ("overhead_cpu", "stream"): "the same, its 300 words as a stream of so many deltas",
    ("cancel", "one"): "cancelling one call",
    ("cancel", "500 at once"): "cancelling 500 calls at once",
    ("body_ping", "100 of 1 MB"): "slowest ping while 100 replies of 1 MB are read",
    ("query", "1 MB"): "a question of 1 MB",
}
MORE_IS_BETTER = {"messages"}


def written(results: Results, text: str) -> str:
    """Return the text of the page with what stands between its marks made from the results.

    Raises ValueError if the results lack something that has a target: a page must not leave out what went wrong.
    """
    if missing := [row[0] for row in verdicts(results) if row[-1] == "not measured"]:
        raise ValueError(f"not measured: {'; '.join(missing)}")
    for mark, table in tables(results).items():
        text = between(text, f"bench-{mark}", f"\n{table}\n\n")
    return text


def tables(results: Results) -> dict[str, str]:
    """Return what the page has between its marks."""
    names = SERVERS | {key: f"bare {name}" for key, name in BARE.items()}
    facts = results.machine | {names[key]: told for key, told in results.subjects.items()}
    machine = [["", ""], *([name, short_versions(fact)] for name, fact in facts.items())]
    return {
        "targets": "\n\n".join([_piped(verdicts(results)), *notes(results)]),
        "table": _piped(figures(results)),
        "machine": _piped(machine),
    }


def figures(results: Results) -> Iterator[list[str]]:
    """Yield the head, then a row for each case that was measured."""
    measured = {one.subject for one in results.samples}
    peers = [key for key in SERVERS if key in measured and key != OURS]
    bare = [key for key in BARE if key in measured]
    yield ["", "unit", SERVERS[OURS], "from – to", *(SERVERS[key] for key in peers), *(["bare"] if bare else [])]
    # Failures stand beside the calls.
    units = {(one.measure, one.case): one.unit for one in results.samples if one.measure != "calls_failed"}
    for measure, case in sorted(units, key=list(ROWS).index):
        mine = results.sample(measure, case, OURS)
        yield [
            ROWS[measure, case],
            units[measure, case],
            _with_failures(results, mine, number(mine.median)) if mine else "",
            f"{number(min(mine.values))} – {number(max(mine.values))}" if mine else "",
            *(_beside(results, mine, results.sample(measure, case, key)) for key in peers),
            *([_bare(results, measure, case, bare)] if bare else []),
        ]


def verdicts(results: Results) -> Iterator[list[str]]:
    """Yield the head, then a row for each target."""
    yield ["target", "measured", "needed", ""]
    for target in TARGETS:
        verdict = target.judge(results)
        if verdict and verdict.bound is None:
            yield [target.wording, "", "", "not measured"]
        elif verdict and verdict.bound is not None:
            needed = f"{target.sign} {number(verdict.bound)}{' ¹' if verdict.note else ''}"
            met = "met" if verdict.met else "**not met**"
            yield [target.wording, f"{number(verdict.figure)} {verdict.unit}", needed, met]


def notes(results: Results) -> list[str]:
    """Return what a reader of the targets must know of where bounds come from."""
    judged = [target.judge(results) for target in TARGETS]
    return [f"¹ {note}" for note in dict.fromkeys(one.note for one in judged if one and one.note)]


def number(value: float) -> str:
    """Return three digits that count, or all of those before the point."""
    if value == 0:
        return "0"
    digits = 0 if abs(value) >= 99.95 else 1 if abs(value) >= 9.995 else 2 if abs(value) >= 0.9995 else 3
    return f"{value:,.{digits}f}"


def short_versions(text: str) -> str:
    """Return the text with versions of two numbers: a third says more than a reader needs."""
    return re.sub(r"(?<![\d.])(\d+\.\d+)\.\d+(?![\d.])", r"\1", text)


def failures(results: Results, case: str, subject: str) -> int:
    """Return how many of a case's calls failed in the worst round."""
    failed = results.sample("calls_failed", case, subject)
    return round(max(failed.values)) if failed else 0


def _with_failures(results: Results, sample: Sample, text: str) -> str:
    failed = failures(results, sample.case, sample.subject) if sample.measure == "calls" else 0
    return f"{text}, {failed} failed" if failed else text


def _beside(results: Results, mine: Sample | None, other: Sample | None) -> str:
    """Return a peer's median, and how many times as good ours is; nothing is better than calls that fail."""
    if other is None:
        return ""
    text = number(other.median)
    said = _with_failures(results, other, text)
    if said != text or mine is None or not mine.median or not other.median:
        return said
    ratio = mine.median / other.median if other.measure in MORE_IS_BETTER else other.median / mine.median
    return f"{text} ({ratio:.{0 if ratio >= 9.95 else 1 if ratio >= 0.995 else 2}f}×)"


def _bare(results: Results, measure: str, case: str, subjects: Iterable[str]) -> str:
    found = ((key, results.median(measure, case, key)) for key in subjects)
    return ", ".join(f"{BARE[key]} {number(median)}" for key, median in found if median is not None)


def _piped(rows: Iterable[list[str]]) -> str:
    """Return a table of Markdown; the first column is text, the others are figures."""
    head, *others = rows
    rule = ["---", *(["---:"] * (len(head) - 1) if len(head) > 2 else ["---"])]
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, rule, *others])


if __name__ == "__main__":
    PAGE.write_text(written(Results.read(RESULTS), PAGE.read_text(encoding="utf-8")), encoding="utf-8", newline="\n")
