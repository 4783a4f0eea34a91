"""`python -m tests.lab.bench.page`: bring docs/performance.md up to date with docs/performance/results.json."""

from __future__ import annotations

import re
from pathlib import Path

from tests.lab.bench import table
from tests.lab.bench.results import Results
from tests.lab.bench.targets import TARGETS

DOCS = Path(__file__).parents[3] / "docs"
PAGE = "performance.md"
FOLDER = "performance"  # of the figures and the pictures
RESULTS = "results.json"

NAMES = table.SERVERS | {key: f"bare {name}" for key, name in table.BARE.items()}
PACKAGES = {"trio": "Trio", "pyyaml": "PyYAML"}  # as their makers write them


def update(results: Results, docs: Path = DOCS) -> None:
    """Put the results into the page, and write the pictures and the results beside it.

    Raises ImportError without matplotlib, and ValueError if the page lacks a mark, or the results something that has a
    target: a page must not leave out what went wrong. Nothing has been written then.
    """
    from tests.lab.bench import plots  # only here is matplotlib needed

    missing = [one.wording for one in TARGETS if not one.samples(results)]
    if missing:
        raise ValueError(f"not measured: {'; '.join(missing)}")
    page = docs / PAGE
    text = written(results, page.read_text(encoding="utf-8"))
    results.write(docs / FOLDER / RESULTS)
    plots.draw(results, docs / FOLDER)
    page.write_text(text, encoding="utf-8", newline="\n")


def written(results: Results, text: str) -> str:
    """Return the text of the page with what stands between its marks made from the results."""
    for name, make in BLOCKS.items():
        mark = f"bench:{name}"
        parts = re.split(rf"(<!-- /?{mark} -->)", text)
        if parts[1::2] != [f"<!-- {mark} -->", f"<!-- /{mark} -->"]:
            raise ValueError(f"the page should have <!-- {mark} --> and <!-- /{mark} -->, each once")
        parts[2] = f"\n\n{make(results)}\n\n"
        text = "".join(parts)
    return text


def machine(results: Results) -> str:
    """Return what was measured, and where, as Markdown."""
    found = results.machine
    versions = {"Python": found.python} | {PACKAGES.get(name, name): one for name, one in found.packages.items()}
    if found.node:
        versions["Node"] = found.node
    facts = {
        "Machine": f"{found.processor}, {found.cores} cores, {found.memory_gib:g} GiB, {found.system}",
        "Versions": ", ".join(f"{name} {version}" for name, version in versions.items()),
        "Run": f"{results.rounds} rounds on {found.date}; load {found.load[0]:g} before and {found.load[1]:g} after it",
        **{NAMES.get(key, key): told for key, told in results.subjects.items()},
    }
    rows = [f"| {name} | {table.short_versions(fact)} |" for name, fact in facts.items()]
    return "\n".join(["| | |", "| --- | --- |", *rows])


BLOCKS = {"machine": machine, "table": table.markdown, "targets": table.markdown_targets}  # by the names of their marks

if __name__ == "__main__":
    update(Results.read(DOCS / FOLDER / RESULTS))
