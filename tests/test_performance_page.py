"""docs/performance.md and its pictures show the results that lie beside them, and no others."""

import re
import shutil
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.bench import page
from tests.bench.results import Results

PICTURES = ("start.svg", "calls.svg", "memory.svg")


@pytest.fixture(scope="module")
def results() -> Results:
    return Results.read(page.DOCS / page.FOLDER / page.RESULTS)


def files(docs: Path) -> dict[str, bytes]:
    """Return the page and all that lies in its folder."""
    found = [docs / page.PAGE, *(docs / page.FOLDER).iterdir()]
    return {file.relative_to(docs).as_posix(): file.read_bytes() for file in found}


def test_the_page_and_its_pictures_are_made_from_the_results_beside_them(results: Results, tmp_path: Path) -> None:
    # `python -m tests.bench.page` makes them anew.
    shutil.copy(page.DOCS / page.PAGE, tmp_path)
    page.update(results, tmp_path)
    assert files(tmp_path) == files(page.DOCS)


def test_the_page_shows_every_picture() -> None:
    shown = re.findall(r"!\[[^]]+\]\(performance/(\S+)\)", (page.DOCS / page.PAGE).read_text(encoding="utf-8"))
    assert sorted(shown) == sorted(PICTURES)


def test_this_server_was_measured_in_every_round(results: Results) -> None:
    assert [one for one in results.samples if one.subject == "ours" and len(one.values) != results.rounds] == []


def test_no_call_of_this_server_failed(results: Results) -> None:
    failed = [one for one in results.samples if (one.measure, one.subject) == ("calls_failed", "ours")]
    assert failed
    assert all(value == 0 for one in failed for value in one.values)


def test_the_results_do_not_tell_whose_machine_it_was() -> None:
    text = (page.DOCS / page.FOLDER / page.RESULTS).read_text(encoding="utf-8")
    assert re.findall(r"/(?:home|root|tmp|usr|var|opt|Users|private)\b|[A-Z]:\\\\", text) == []


@pytest.mark.parametrize("name", PICTURES)
def test_each_picture_is_small_and_can_be_read(name: str) -> None:
    picture = page.DOCS / page.FOLDER / name
    assert picture.stat().st_size < 8192
    assert ET.parse(picture).getroot().tag == "{http://www.w3.org/2000/svg}svg"
