"""Searching a folder of manuals: `python -m tests.lab.retrieval --manuals-root DIR --queries FILE`.

A real server process on a copy of DIR, with an index folder of its own; FILE holds one query a line, in the form of
tests/manuals/corpus/gold.jsonl. Prints how well it finds, and what it costs: times, memory, and how soon pings are
answered meanwhile. Figures are medians of the rounds, each of which starts without an index. Without options it
measures the small corpus of the tests. With `--collection DIR` it asks published collections instead, in every way that
there is, beside plain BM25: see `collection.py`.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import shutil
import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import trio

from tests.lab.bench.results import load, machine
from tests.lab.retrieval import collection
from tests.lab.retrieval.watched import Watched, percentile, watched_server
from tests.manuals.quality import (
    CORPUS,
    DEPTH,
    GOLD,
    GoldQuery,
    Outcome,
    figures_by_group,
    gold_queries,
    outcome,
    table,
)

FINDS = 200  # at least so many before memory is read
CHANGES = 5
CANCELS = 15
STALE = 2.1  # seconds; a change must be seen by a find that starts so much later, or twenty times as a look takes
TRIES = 30
LARGE = 43_000_000  # bytes
PATIENCE = {"time_ms": 600_000}  # for a find that waits for the whole index


class Figures(defaultdict[str, list[float]]):
    """The values of each row, one a round."""

    def note(self, name: str, value: float | None) -> None:
        """Note a value, unless the system does not tell it."""
        if value is not None:
            self[name].append(value)


# name: (unit, what it is)
ROWS = {
    "first_build": ("s", "the first find of all, which builds the index"),
    "build_cpu": ("s", "processor time of the server for that"),
    "index_size": ("MB", "the index folder after that"),
    "build_memory": ("MB", "resident memory after that"),
    "build_memory_peak": ("MB", "its peak"),
    "build_ping": ("ms", "the slowest ping during such a build"),
    "restart_find": ("ms", "the first find after a restart"),
    "find_p50": ("ms", "a warm find"),
    "find_p95": ("ms", ""),
    "find_max": ("ms", ""),
    "find_cpu": ("ms", "processor time of the server for a find and its manual_hits (mean)"),
    "hits_p50": ("ms", "manual_hits after it"),
    "memory": ("MB", f"resident memory after {FINDS} finds or more"),
    "find_ping": ("ms", "the slowest ping during finds"),
    "look_find": ("ms", "a find that looks whether files have changed"),
    "change_find": ("ms", "the same when one file has"),
    "change_cost": ("ms", "the difference"),
    "change_seen": ("", "the part of those changes that it found"),
    "scan": ("ms", "a page of manual_scan at the end of a 43 MB file"),
    "scan_ping": ("ms", "the slowest ping during that"),
    "cancel": ("ms", "how long threads go on after the cancel of a find (median)"),
    "cancel_max": ("ms", "the same (worst)"),
}


def find(gold: GoldQuery, **more: Any) -> dict[str, Any]:
    terms = list(gold.required_terms)
    return {"query": gold.query, "manual_id": gold.manual_id, "required_terms": terms, "inline_hits": {}, **more}


def link(source: str, target: str) -> None:
    """Stand in for a copy; files are replaced here, never written to."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def enlarge(root: Path, times: int) -> None:
    """Put more of each manual beside it, in folders of its own, so that it has so many times as many files.

    Their copies take places from the files asked for: then the times tell something, and the ranks do not.
    """
    for manual in [each for each in root.iterdir() if each.is_dir()]:
        files = [file.relative_to(manual) for file in manual.rglob("*") if file.is_file()]
        for number in range(2, times + 1):
            for file in files:
                target = manual / f"copy-{number}" / file
                target.parent.mkdir(parents=True, exist_ok=True)
                link(str(manual / file), str(target))


def size_of(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def some_file(manual: Path) -> tuple[Path, bytes]:
    """Return a file to be changed, neither tiny nor large, and what is in it."""
    files = [file for file in sorted(manual.rglob("*.md")) if 1000 < file.stat().st_size < 100_000]
    return files[0], files[0].read_bytes()


def replace(file: Path, content: bytes) -> None:
    """Replace a file by another; the old one may be a second name of a file that is not ours."""
    fresh = file.with_name(f".{file.name}")
    fresh.write_bytes(content)
    fresh.replace(file)


def write_large_file(file: Path) -> int:
    """Write a Markdown file of 43 MB; return its length in characters."""
    file.parent.mkdir(parents=True)
    written = characters = number = 0
    with file.open("w", encoding="utf-8", newline="\n") as out:
        while written < LARGE:
            block = f"## 記録 {number}\n\n" + "".join(
                f"{number * 40 + line:08} 水位 {(number * 7 + line * 3) % 997} mm, pump {line % 3} ran {line * 11 % 60} s.\n"
                for line in range(40)
            )
            out.write(block)
            number += 1
            written += len(block.encode())
            characters += len(block)
    return characters


async def build(values: Figures, gold: GoldQuery, index: Path, **env: str) -> None:
    """Make the index with the first find."""
    async with watched_server(**env, MANUALS_INDEX_DIR=str(index)) as server:
        await server.call("manual_ls", {})
        before = server.processor_time()
        _, seconds = await server.call("manual_find", find(gold, budget=PATIENCE))
        values["first_build"].append(seconds)
        values.note("build_cpu", server.processor_time(before))
        for name, memory in zip(("build_memory", "build_memory_peak"), server.memory(), strict=True):
            values.note(name, memory)
    values["index_size"].append(size_of(index) / 1e6)


async def build_pings(values: Figures, gold: GoldQuery, index: Path, **env: str) -> None:
    """Make another index, with pings, which slow it down; once, since it takes long."""
    async with watched_server(**env, MANUALS_INDEX_DIR=str(index)) as server:
        await server.call("manual_ls", {})
        _, pings = await server.with_pings(lambda: server.call("manual_find", find(gold, budget=PATIENCE)))
        values["build_ping"].append(1000 * max(pings))


async def search(server: Watched, values: Figures, gold: Sequence[GoldQuery]) -> list[Outcome]:
    """Ask every query, in turn and without the cache, and rank what comes."""
    _, seconds = await server.call("manual_find", find(gold[0], budget=PATIENCE))
    values["restart_find"].append(1000 * seconds)
    outcomes: list[Outcome] = []
    finds: list[float] = []
    hits: list[float] = []
    before = server.processor_time()
    while len(finds) < max(FINDS, len(gold)):
        query = gold[len(finds) % len(gold)]
        answer, seconds = await server.call("manual_find", find(query, use_cache=False))
        finds.append(1000 * seconds)
        page = {"trace_id": answer["trace_id"], "kind": "integrated_top", "offset": 0, "limit": DEPTH}
        answer, seconds = await server.call("manual_hits", page)
        hits.append(1000 * seconds)
        if len(outcomes) < len(gold):
            outcomes.append(outcome(query, answer["items"]))
    cpu = server.processor_time(before)
    values.note("find_cpu", None if cpu is None else 1000 * cpu / len(finds))
    values.note("find_p50", statistics.median(finds))
    values.note("find_p95", percentile(finds, 0.95))
    values.note("find_max", max(finds))
    values.note("hits_p50", statistics.median(hits))
    values.note("memory", server.memory()[0])
    return outcomes


async def find_pings(server: Watched, values: Figures, gold: Sequence[GoldQuery]) -> None:
    async def finds() -> None:
        for query in gold[:50]:
            await server.call("manual_find", find(query, use_cache=False))

    _, pings = await server.with_pings(finds)
    values["find_ping"].append(1000 * max(pings))


async def changes(server: Watched, values: Figures, gold: GoldQuery, manual: Path) -> None:
    """Change one file at a time, in the copy, and look whether and how fast it is found."""
    file, before = some_file(manual)
    look: list[float] = []
    change: list[float] = []
    seen = 0
    for _ in range(CHANGES):
        await trio.sleep(STALE)
        look.append(1000 * (await server.call("manual_find", find(gold, use_cache=False)))[1])
        word = f"bench{secrets.token_hex(6)}"
        replace(file, before + f"\n\n## {word}\n\n{word}\n".encode())
        asked = {"query": word, "manual_id": gold.manual_id, "required_terms": [word], "use_cache": False}
        for _ in range(TRIES):
            await trio.sleep(STALE)
            answer, seconds = await server.call("manual_find", {**asked, "inline_hits": {}})
            if any(item["title"] == word for item in answer["inline_hits"]["items"]):
                seen += 1
                break
        change.append(1000 * seconds)
    values["look_find"].append(statistics.median(look))
    values["change_find"].append(statistics.median(change))
    values["change_cost"].append(statistics.median(change) - statistics.median(look))
    values["change_seen"].append(seen / CHANGES)


async def scans(server: Watched, values: Figures, characters: int) -> None:
    async def pages() -> list[float]:
        cursors = [{"char_offset": characters - ahead} for ahead in (40_000, 20_000_000, 30_000)]
        asked = [
            {"manual_id": "large", "path": "large.md", "cursor": cursor, "max_chars": 12_000} for cursor in cursors
        ]
        return [1000 * (await server.call("manual_scan", arguments))[1] for arguments in asked]

    milliseconds, pings = await server.with_pings(pages)
    values["scan"].append(max(milliseconds))
    values["scan_ping"].append(1000 * max(pings))


async def cancels(server: Watched, values: Figures, gold: Sequence[GoldQuery]) -> None:
    """Cancel finds with a long query, so that they are at work when the cancel comes."""
    long = " ".join(query.query for query in gold if query.manual_id == gold[0].manual_id)[:3000]
    asked = {"query": long, "manual_id": gold[0].manual_id, "required_terms": [gold[0].required_terms[0]]}
    ends: list[float] = []
    for number in range(CANCELS):
        after = 0.004 + 0.002 * number
        seconds = await server.cancelled("manual_find", {**asked, "use_cache": False}, after)
        if seconds is not None:
            ends.append(1000 * seconds)
    if ends:
        values["cancel"].append(statistics.median(ends))
        values["cancel_max"].append(max(ends))


async def measure(
    values: Figures, gold: Sequence[GoldQuery], root: Path, index: Path, characters: int
) -> list[Outcome]:
    """Measure one round, from no index to the last scan; return how the queries fared."""
    env = {"MANUALS_ROOT": str(root)}
    if not values["build_ping"]:
        await build_pings(values, gold[0], index.with_name("index-for-pings"), **env)
    await build(values, gold[0], index, **env)
    async with watched_server(**env, MANUALS_INDEX_DIR=str(index)) as server:
        await server.call("manual_ls", {})
        outcomes = await search(server, values, gold)
        await find_pings(server, values, gold)
        await changes(server, values, gold[0], root / gold[0].manual_id)
        await cancels(server, values, gold)
        await scans(server, values, characters)
    return outcomes


def shown(values: Figures) -> str:
    """Return a table of the medians, with every round beside them."""
    lines = [f"{'':<18}{'median':>10}      rounds"]
    for name, (unit, meaning) in ROWS.items():
        rounds = values[name]
        median = f"{statistics.median(rounds):.2f}" if rounds else "-"
        each = " ".join(f"{value:.2f}" for value in rounds)
        lines.append(f"{name:<18}{median:>10} {unit:<4} {each:<28} {meaning}".rstrip())
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--manuals-root", type=Path, help="a folder with one folder a manual; it is not changed")
    parser.add_argument("--queries", type=Path, help="what should be found in it, one JSON object a line")
    parser.add_argument("--scale", type=int, default=1, help="a folder so many times as large, made from links")
    parser.add_argument("--collection", type=Path, metavar="DIR", help="a folder of collections; the options after it")
    parser.add_argument("--set", action="append", default=[], metavar="NAME", help="ask only this one (again for more)")
    parser.add_argument(
        "--provider",
        action="append",
        default=[],
        choices=collection.PROVIDERS,
        help="compare meanings, too (again for more)",
    )
    parser.add_argument("--limit", type=int, default=0, metavar="N", help="ask so many questions of each collection")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", type=Path, help="a file for all figures")
    parser.add_argument("--timeout", type=float, default=900, help="seconds for a round")
    options = parser.parse_args()
    if options.collection is not None:
        collection.measure(options.collection, options.set, options.provider, options.limit, options.json)
        return 0
    if (options.manuals_root is None) != (options.queries is None):
        parser.error("--manuals-root and --queries belong together")
    gold = gold_queries(options.queries or GOLD)
    values = Figures(list)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "manuals")
        shutil.copytree(options.manuals_root or CORPUS, root, symlinks=True, copy_function=link)
        enlarge(root, options.scale)
        files = sum(1 for file in root.rglob("*") if file.suffix in (".md", ".json"))
        characters = write_large_file(root / "large" / "large.md")
        print(*machine().values(), f"{files} files, {len(gold)} queries", sep="\n")
        for number in range(options.rounds):
            print(f"round {number + 1}, load {load()}", flush=True)

            async def bounded(index: Path) -> list[Outcome]:
                with trio.fail_after(options.timeout):
                    return await measure(values, gold, root, index, characters)

            outcomes = trio.run(bounded, Path(folder, f"index-{number}"))
    quality = figures_by_group(outcomes)
    print(f"\n{shown(values)}\n\n{table(quality)}")
    if options.json is not None:
        medians = {name: statistics.median(rounds) for name, rounds in values.items()}
        report = {"machine": machine(), "files": files, "medians": medians, "rounds": values, "quality": quality}
        options.json.write_text(json.dumps(report, ensure_ascii=False, indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
