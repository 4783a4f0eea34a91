"""docs/performance.md says what the results beside it say, and a run of the benchmarks makes such results."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab.bench import page
from tests.lab.bench.results import Results
from tests.processes import ROOT

WAIT = 60  # seconds; a bound for a stuck machine, not an expectation


def test_the_page_is_made_from_the_results_beside_it_in_which_no_call_failed() -> None:
    text = page.PAGE.read_text(encoding="utf-8")
    results = Results.read(page.RESULTS)
    assert page.written(results, text) == text, "run `python -m tests.lab.bench.page`"
    mine = [sample for sample in results.samples if sample.subject == "ours"]
    assert [sample for sample in mine if len(sample.values) != results.rounds] == []
    assert [sample for sample in mine if sample.measure == "calls_failed" and any(sample.values)] == []


@pytest.mark.skipif(sys.platform == "win32", reason="the benchmarks need os.wait4")
def test_a_run_prints_a_table_and_writes_results_that_are_read_and_written_alike(tmp_path: Path) -> None:
    file, again = tmp_path / "results.json", tmp_path / "again.json"
    options = ["--rounds", "1", "--only", "start", "--subjects", "ours,python", "--json", str(file)]
    command = [sys.executable, "-m", "tests.lab.bench", *options]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=WAIT, check=True)
    assert "start, until `initialize` is answered" in ran.stdout
    results = Results.read(file)
    results.write(again)
    assert again.read_bytes() == file.read_bytes()
    assert {(sample.subject, sample.case) for sample in results.samples} == {
        *(("ours", "initialize"), ("ours", "tools/list"), ("python", "exit")),
    }
