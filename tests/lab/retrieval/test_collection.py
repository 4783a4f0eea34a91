"""The benchmark of published collections: its figures, and that its session's options work on a tiny collection."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab.retrieval.__main__ import enlarge
from tests.lab.retrieval.collection import Terms, measure, quality
from tests.processes import ROOT

WAIT = 60  # seconds; a bound for a stuck machine, not an expectation


@pytest.mark.parametrize(
    ("path", "text", "said"),
    [
        ("one/guide/a.md", "# A", "holds no collection: a folder with root and queries.jsonl."),
        ("one/queries.jsonl", "{}", "one is no collection: it needs a folder root and a file queries.jsonl."),
        ("root/.git/a.md", "# A", "root has no manuals: put the files into a folder in it."),
        ("queries.jsonl", "\n", "queries.jsonl has no questions."),
        ("queries.jsonl", "\n{", "queries.jsonl, line 2: "),
        ("queries.jsonl", '{"query": "q", "relevant": ["a.md"]}', "queries.jsonl, line 1: "),
        ("queries.jsonl", '{"query": "q", "relevant": {"b.md": 1}}', "b.md is no .md file of root"),
    ],
)
def test_a_folder_that_is_no_collection_is_told_in_a_sentence(tmp_path: Path, path: str, text: str, said: str) -> None:
    if path == "queries.jsonl":
        (tmp_path / "root/m").mkdir(parents=True)
        (tmp_path / "root/m/a.md").write_text("# A", encoding="utf-8")
    elif path.startswith("root"):
        (tmp_path / "queries.jsonl").write_text("", encoding="utf-8")
    (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / path).write_text(text, encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        measure(tmp_path, [], [], 0, None)
    assert said in str(ended.value)


def test_a_run_asks_in_every_way_and_writes_the_figures(tmp_path: Path) -> None:
    for path, text in {"one/a.md": "# Pump\n\nHow to oil it.", "one/b.md": "# Valve\n", "two/a.md": "# Pump\n"}.items():
        file = tmp_path / "both/root" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    asked = [
        {"id": "one:1", "query": "how is the pump oiled?", "relevant": {"one/a.md": 2}},
        {"id": "two:1", "query": "pumps", "relevant": {"two/a.md": 1}},
        {"id": "one:2", "query": "left out by the limit", "relevant": {"one/b.md": 1}},
    ]
    (tmp_path / "both/queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in asked), encoding="utf-8")
    report = tmp_path / "report.json"
    options = f"--collection {os.path.relpath(tmp_path, ROOT)} --set both --provider none --limit 2 --json {report}"
    command = [sys.executable, "-m", "tests.lab.retrieval", *options.split()]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=WAIT, check=True)
    assert "both: 3 files, 2 questions" in ran.stdout
    rows = json.loads(report.read_text(encoding="utf-8"))["both"]
    assert list(rows) == ["plain BM25", "find, longest", "find, rare", "find, none", "search"]
    assert {name: figures["nDCG@10"] for name, figures in rows.items()} == dict.fromkeys(rows, 1.0)
    assert all(figures["p95"] > 0 for figures in rows.values())


def test_the_gain_is_exponential_and_recall_counts_what_there_is_to_find() -> None:
    found = quality(["x", "good", "fair"], {"good": 2, "fair": 1, "never": 1, "wrong": 0})
    assert found["nDCG@10"] == pytest.approx((3 / 1.58496 + 1 / 2) / (3 + 1 / 1.58496 + 1 / 2), abs=1e-4)
    assert found["R@10"] == pytest.approx(2 / 3)
    assert (found["MRR@10"], found["hit@3"]) == (0.5, 1.0)


def test_required_terms_are_the_longest_words_the_rarest_that_a_file_has_or_none() -> None:
    terms = Terms(["The valve of the pump", "pump seal", "pump"])
    question = "What does the pump or valve have to do with a flamethrower?"
    assert terms.chosen("longest", question) == ["flamethrower", "valve"]
    assert terms.chosen("rare", question) == ["valve", "pump"]
    assert len(terms.chosen("none", question)) == 1


def test_a_larger_folder_is_made_from_links(tmp_path: Path) -> None:
    (tmp_path / "m/ja").mkdir(parents=True)
    (tmp_path / "m/ja/a.md").write_text("# A\n", encoding="utf-8")
    enlarge(tmp_path, 3)
    assert len(list(tmp_path.rglob("a.md"))) == 3
