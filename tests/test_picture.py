"""The picture in the README shows what an agent gets from the server, and can be read anywhere."""

import re
import xml.etree.ElementTree as ET

import pytest
import trio

from tests.picture import FILE, call_and_answer, draw
from tests.processes import ROOT, WAIT


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "127.0.0.1")


def without_figures(text: str) -> str:
    """Return `text` without what differs from day to day."""
    return re.sub(r"[0-9]+", "0", text)


async def test_the_picture_shows_what_an_agent_gets() -> None:
    # `python -m tests.picture` draws it anew.
    with trio.fail_after(WAIT):
        now = draw(await call_and_answer())
    assert without_figures(FILE.read_text(encoding="utf-8")) == without_figures(now)


@pytest.mark.parametrize("page", ["README.md", "README.ja.md"])
def test_the_readme_begins_with_the_picture(page: str) -> None:
    assert "](docs/answer.svg)" in (ROOT / page).read_text(encoding="utf-8").partition("\n## ")[0]


def test_what_a_server_answers_cannot_become_markup() -> None:
    [shown] = ET.fromstring(draw([("answer", "<script>&amp;</script>")])).iter("{http://www.w3.org/2000/svg}text")
    assert shown.text == "<script>&amp;</script>"
