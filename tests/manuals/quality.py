"""How well searches find what they should: gold queries, the ranks of what was found, figures and tables.

A gold query names one section of one file that answers it. A file's rank counts distinct files, a section's rank counts
hits; both go down to the tenth hit, which is as far as a reader looks.
"""

from __future__ import annotations

import json
import shutil
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

CORPUS: Final = Path(__file__).parent / "corpus"
GOLD: Final = CORPUS / "gold.jsonl"
DEPTH: Final = 10
DECOMPOSED: Final = "kaede/ja/保守/バックアップ.md"  # gets its name in NFD, as copies from a Mac have
CARRIAGE_RETURNS: Final = "kaede/ja/導入/設置.md"  # gets a BOM and CRLF, as editors on Windows write
EMPTY: Final = "kaede/ja/空.md"  # gets no byte at all


@dataclass(frozen=True, slots=True, kw_only=True)
class GoldQuery:
    """A query and the section that should be found: `start_line` of `path`, or any of `paths` at file level."""

    id: str
    kind: str
    lang: str
    query: str
    required_terms: Sequence[str]
    rt_noisy: bool
    manual_id: str
    path: str
    start_line: int
    title: str
    paths: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """The ranks at which a query found its target, from 1 on; None where it did not."""

    gold: GoldQuery
    file_rank: int | None
    section_rank: int | None
    top: tuple[str, ...]


def gold_queries(file: Path = GOLD) -> list[GoldQuery]:
    """Read a file of one JSON object a line."""
    with file.open(encoding="utf-8") as lines:
        return [GoldQuery(**json.loads(line)) for line in lines if line.strip()]


def lay_out(root: Path) -> None:
    """Copy the corpus into `root`, with the spellings and line ends that do not survive in a repository."""
    shutil.copytree(CORPUS, root, ignore=shutil.ignore_patterns(GOLD.name))
    composed = root / DECOMPOSED
    composed.rename(composed.with_name(unicodedata.normalize("NFD", composed.name)))
    text = (root / CARRIAGE_RETURNS).read_text(encoding="utf-8")
    (root / CARRIAGE_RETURNS).write_text(text, encoding="utf-8-sig", newline="\r\n")
    (root / EMPTY).touch()


def outcome(gold: GoldQuery, items: Iterable[Mapping[str, Any]]) -> Outcome:
    """Rank the items of `manual_hits(kind="integrated_top")`."""
    wanted = {unicodedata.normalize("NFC", path) for path in (gold.paths or [gold.path])}
    target = (unicodedata.normalize("NFC", gold.path), gold.start_line)
    files: list[str] = []
    hits: list[tuple[str, int]] = []
    for item in list(items)[:DEPTH]:
        ref = item["ref"]
        path = unicodedata.normalize("NFC", ref["path"])
        hits.append((path, ref["start_line"] or 1))
        if path not in files:
            files.append(path)
    ranks = [rank for rank, path in enumerate(files, 1) if path in wanted]
    section_rank = hits.index(target) + 1 if target in hits else None
    return Outcome(gold, min(ranks, default=None), section_rank, tuple(f"{path}:{line}" for path, line in hits[:2]))


def figures(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """Return MRR@10 and recall at 1, 5 and 10, of files and of sections."""
    shown: dict[str, float] = {"n": len(outcomes)}
    for level in ("file", "section"):
        ranks = [each.file_rank if level == "file" else each.section_rank for each in outcomes]
        found = [rank for rank in ranks if rank is not None]
        for depth in (1, 5, DEPTH):
            shown[f"{level} R@{depth}"] = sum(rank <= depth for rank in found) / len(ranks)
        shown[f"{level} MRR"] = sum(1 / rank for rank in found) / len(ranks)
    return {name: round(value, 4) for name, value in shown.items()}


def figures_by_group(outcomes: Sequence[Outcome]) -> dict[str, dict[str, float]]:
    """Return the figures of all, then by kind and language, then by whether a required term is noise."""
    keys: list[Callable[[Outcome], str]] = [
        lambda _: "all",
        lambda each: each.gold.lang,
        lambda each: f"{each.gold.kind} {each.gold.lang}",
        lambda each: "noisy term" if each.gold.rt_noisy else "clean terms",
    ]
    shown: dict[str, dict[str, float]] = {}
    for key in keys:
        groups: defaultdict[str, list[Outcome]] = defaultdict(list)
        for each in outcomes:
            groups[key(each)].append(each)
        shown |= {name: figures(groups[name]) for name in sorted(groups)}
    return shown


def table(groups: Mapping[str, Mapping[str, float]]) -> str:
    """Return one line of figures a group, under a head line."""
    names = list(next(iter(groups.values())))
    lines = [f"{'':<14}" + "".join(f"{name:>13}" for name in names)]
    for group, row in groups.items():
        cells = (f"{value:>13.0f}" if name == "n" else f"{value:>13.3f}" for name, value in row.items())
        lines.append(f"{group:<14}" + "".join(cells))
    return "\n".join(lines)


def misses(outcomes: Iterable[Outcome]) -> str:
    """Return one line for each query whose section is not on top: its ranks, and what is on top instead."""
    return "\n".join(
        f"{each.gold.id:<18} file {each.file_rank or '-':>2} section {each.section_rank or '-':>2}  {each.gold.query}"
        f"  wants {each.gold.path}:{each.gold.start_line}  got {', '.join(each.top) or 'nothing'}"
        for each in outcomes
        if each.file_rank != 1 or each.section_rank != 1
    )
