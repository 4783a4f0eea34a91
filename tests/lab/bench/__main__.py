"""All measures of this server and of others beside it: `python -m tests.lab.bench`.

Each round measures every subject, one after the other and in another order each time, so that a machine that slows
down or gets busy does the same to all. What cannot be measured is left out, and why is told on stderr.
"""

from __future__ import annotations

import argparse
import gc
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import trio

from tests.lab.bench import page, peers
from tests.lab.bench.measures import MEASURES
from tests.lab.bench.results import Results, Sample, load, machine
from tests.lab.bench.subjects import Subject, before, original, own, raise_file_limit
from tests.lab.upstream import open_upstream

PATIENCE = 60.0  # seconds for one measure of one subject in one round


def rotated(subjects: Sequence[Subject], by: int) -> list[Subject]:
    """Return the subjects in another order for each round: all have been first after as many rounds."""
    first = by % len(subjects)
    return [*subjects[first:], *subjects[:first]]


async def run(subjects: Sequence[Subject], measures: Sequence[str], rounds: int) -> list[Sample]:
    found: dict[tuple[str, str, str, str], list[float]] = {}  # by measure, case, subject and unit
    failed: set[tuple[str, str]] = set()

    def record(subject: str, measure: str, case: str, unit: str, value: float | None) -> None:
        if value is not None:
            found.setdefault((measure, case, subject, unit), []).append(float(value))

    async with open_upstream("tests.lab.bench.upstream") as upstream:
        for number in range(rounds):
            began = time.monotonic()
            for measure in measures:
                for subject in rotated(subjects, number):
                    if subject.only not in (None, measure) or (measure, subject.key) in failed:
                        continue
                    gc.collect()
                    try:
                        with trio.fail_after(PATIENCE):
                            await MEASURES[measure](subject, upstream, partial(record, subject.key))
                    except Exception as error:  # noqa: BLE001  # one that fails must not keep the others from it
                        failed.add((measure, subject.key))
                        print(f"{measure} of {subject.key} is given up", file=sys.stderr)
                        traceback.print_exception(error)
            print(f"round {number + 1} of {rounds}: {time.monotonic() - began:.0f} s", file=sys.stderr)
    return [Sample(*key, values) for key, values in found.items()]


def names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def arguments(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.lab.bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", type=names, default=list(MEASURES), help=f"measures: {','.join(MEASURES)}")
    parser.add_argument("--subjects", type=names, help="keys of subjects, such as ours,trio; default: all there are")
    parser.add_argument("--original", type=Path, metavar="DIR", help="measure the original too, which is built in DIR")
    parser.add_argument("--before", type=Path, metavar="DIR", help="measure another state too, checked out in DIR")
    parser.add_argument("--peers", action="store_true", help="measure servers on the official SDKs too")
    parser.add_argument("--peers-folder", type=Path, metavar="DIR", help="install those in DIR, to use them again")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results to FILE")
    parser.add_argument("--page", action="store_true", help="put the results on the page of the documentation")
    options = parser.parse_args(given)
    if unknown := set(options.only) - set(MEASURES):
        parser.error(f"no such measure: {', '.join(sorted(unknown))}")
    if options.rounds < 1:
        parser.error("--rounds must be at least 1")
    return options


def measured(options: argparse.Namespace, folder: Path) -> Results:
    """Measure what the options say. Raises SystemExit if what they name is not there."""
    subjects = own()
    for name, make, folder_of in (("original", original, options.original), ("state before", before, options.before)):
        if folder_of is not None:
            try:
                subjects.append(make(folder_of))
            except (OSError, ValueError) as error:
                sys.exit(f"the {name} is not there: {error}")
    if options.peers or options.peers_folder is not None:
        subjects += peers.install(options.peers_folder or folder)
    if options.subjects is not None:
        keys = {subject.key for subject in subjects}
        if unknown := set(options.subjects) - keys:
            sys.exit(f"no such subject: {', '.join(sorted(unknown))}; there are {', '.join(sorted(keys))}")
        subjects = [subject for subject in subjects if subject.key in options.subjects]
    described = {subject.key: subject.description for subject in subjects}
    load_before = load()
    samples = trio.run(run, subjects, options.only, options.rounds)
    ran = f"{options.rounds} rounds on {datetime.now(tz=UTC).date()}; load {load_before} before and {load()} after it"
    return Results(machine() | {"Run": ran}, described, options.rounds, samples)


def main(given: Sequence[str] | None = None) -> int:
    options = arguments(given)
    raise_file_limit()
    gc.disable()  # a collection while something is timed would look like a slow server; there is one before each measure
    with tempfile.TemporaryDirectory() as folder:
        results = measured(options, Path(folder))
    print(*page.tables(results).values(), sep="\n\n")
    if options.json is not None:
        results.write(options.json)
    if options.page:
        text = page.written(results, page.PAGE.read_text(encoding="utf-8"))
        results.write(page.RESULTS)
        page.PAGE.write_text(text, encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
