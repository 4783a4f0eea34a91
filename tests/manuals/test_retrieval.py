"""Ranking on a corpus of our own: `corpus/`, two invented manuals in Japanese and English, with its gold queries.

It guards against a change that makes searches worse. A single query may lose a place while others win one: look at the
table before a floor is moved.
"""

import random
import re
import unicodedata
from collections import defaultdict
from pathlib import Path

import pytest
import trio

from responses_mcp.manuals.requests import FindRequest, HitsRequest
from responses_mcp.manuals.service import Manuals
from responses_mcp.manuals.words import normalise
from responses_mcp.settings.model import ManualsSettings
from tests.manuals.plain_bm25 import PlainBM25
from tests.manuals.quality import (
    CORPUS,
    DEPTH,
    Outcome,
    figures,
    figures_by_group,
    gold_queries,
    lay_out,
    misses,
    outcome,
    table,
)
from tests.manuals.written import headings, sections

# Measured when they were set: .971, 1.000 and .960; plain BM25 reaches .919, .990 and .844.
FLOORS = {"file MRR": 0.95, "file R@10": 0.98, "section MRR": 0.94}


async def outcomes(root: Path) -> list[Outcome]:
    engine = Manuals(ManualsSettings(root=str(root)))
    try:
        ranked: list[Outcome] = []
        for gold in gold_queries():
            terms = tuple(normalise(term) for term in gold.required_terms)
            request = FindRequest(query=gold.query, manual_id=gold.manual_id, required_terms=terms, use_cache=False)
            trace_id = (await engine.find(request))["trace_id"]
            hits = engine.hits(HitsRequest(trace_id=trace_id, kind="integrated_top", limit=DEPTH))
            ranked.append(outcome(gold, hits["items"]))
        return ranked
    finally:
        await engine.aclose()


def outcomes_of_plain_bm25(root: Path) -> list[Outcome]:
    """Ask plain BM25 the same; its texts are the sections of Markdown files, and JSON files."""
    engines: dict[str, PlainBM25] = {}
    for manual in (each for each in root.iterdir() if each.is_dir()):
        texts: dict[str, str] = {}
        for file in (each for each in sorted(manual.rglob("*")) if each.suffix in (".md", ".json")):
            path, text = file.relative_to(manual).as_posix(), file.read_text(encoding="utf-8-sig")
            parts = [(1, file.name, text)]
            if file.suffix == ".md":
                parts = [(each.line, each.title, each.text) for each in sections(text.splitlines())]
            texts |= {f"{line} {path}": f"{title}\n{part}" for line, title, part in parts}
        engines[manual.name] = PlainBM25(texts)
    ranked = []
    for gold in gold_queries():
        found = engines[gold.manual_id].ranked(" ".join([gold.query, *gold.required_terms]))[:DEPTH]
        places = (name.split(" ", 1) for name in found)
        ranked.append(outcome(gold, [{"ref": {"path": path, "start_line": int(line)}} for line, path in places]))
    return ranked


async def test_searches_of_the_small_corpus_rank_what_was_asked_for_first_and_better_than_plain_bm25(
    tmp_path: Path,
) -> None:
    lay_out(tmp_path / "manuals")
    with trio.fail_after(60):
        ranked = await outcomes(tmp_path / "manuals")
    reached = figures(ranked)
    low = {name: reached[name] for name, floor in FLOORS.items() if reached[name] < floor}
    assert not low, f"below the floors {FLOORS}: {low}\n{table(figures_by_group(ranked))}\n{misses(ranked)}"
    plain = figures(outcomes_of_plain_bm25(tmp_path / "manuals"))
    worse = {name: (reached[name], plain[name]) for name in FLOORS if reached[name] < plain[name]}
    assert not worse, f"plain BM25 is better: {worse}"


@pytest.mark.rule("M4.51")
async def test_every_file_that_holds_a_required_word_is_among_the_hits(tmp_path: Path) -> None:
    lay_out(tmp_path / "manuals")
    manual = tmp_path / "manuals/kaede"
    holding: defaultdict[str, set[str]] = defaultdict(set)
    for file in manual.rglob("*.md"):
        for word in set(re.findall(r"(?<![a-z0-9_])[a-z_][a-z0-9_]{2,}", file.read_text(encoding="utf-8").lower())):
            holding[word].add(unicodedata.normalize("NFC", str(file.relative_to(manual))))
    words = random.Random(13).sample(sorted(word for word in holding if word.strip("_")), 150)
    engine = Manuals(ManualsSettings(root=str(tmp_path / "manuals")))
    left_out: list[str] = []
    try:
        for word in words:
            for query in (word, f"how does {word} work, and what is it for"):
                found = await engine.find(FindRequest(query, "kaede", (word,), use_cache=False))
                hits = engine.hits(HitsRequest(found["trace_id"], "candidates", 0, 50))["items"]
                missing = holding[word] - {unicodedata.normalize("NFC", hit["ref"]["path"]) for hit in hits}
                if missing and not found["applied"]["required_terms_df_filtered"]:
                    left_out.append(f"{word}: {len(missing)} of {len(holding[word])}")
                if query == word:
                    status = found["applied"]["required_effect_status"]
                    assert status in ("required_effective", "term_dropped_or_weakened")
    finally:
        await engine.aclose()
    assert left_out == []


def test_every_gold_query_points_at_a_section() -> None:
    wrong = []
    for gold in gold_queries():
        file = CORPUS / gold.manual_id / gold.path
        lines = file.read_text(encoding="utf-8").split("\n")
        if file.suffix == ".json":
            titles = {1: file.name}
        else:
            titles = {section.line: section.title for section in sections(lines)}
            assert {heading.line for heading in headings(lines)} | {1} >= titles.keys()
        if titles.get(gold.start_line) != gold.title:
            wrong.append(f"{gold.id}: {gold.path}:{gold.start_line} is {titles.get(gold.start_line)!r}")
    assert not wrong
