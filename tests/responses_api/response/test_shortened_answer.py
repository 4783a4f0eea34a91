"""Asker that are too long: where they are cut, what is said of it, and that the sources stay."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_mcp.responses_api.response.parser import Answer

SOURCES = "Sources:\n- https://example.com/a (2026-11-01)\n- https://example.com/b (2026-11-02)"
SENTENCE = "The pump runs dry after ten seconds. "
JAPANESE = "ポンプは十秒で空になります。「すぐに止めてください。」"
CUT = re.compile(r"\n\n\[Cut here: the first ([\d,]+) of ([\d,]+) characters are shown\.")


def shortened(body: str, most: int, sources: str = "") -> str:
    text = Answer(body, used_search=False, citations=(), model="m", sources=sources).as_json(most)["answer"]
    assert isinstance(text, str)
    return text


def test_an_answer_that_is_no_longer_is_the_same() -> None:
    text = f"{SENTENCE * 10}\n\n{SOURCES}"
    assert shortened(SENTENCE * 10, len(text), SOURCES) == text


@pytest.mark.parametrize(("sentence", "ends"), [(SENTENCE, "."), (JAPANESE, ("。", "。」"))])
def test_it_is_cut_at_a_sentence_is_marked_and_keeps_its_sources(sentence: str, ends: str) -> None:
    text = sentence * 400
    cut = shortened(text, 2_000, SOURCES)
    assert len(cut) <= 2_000
    assert cut.endswith(f"\n\n{SOURCES}")
    mark = CUT.search(cut)
    assert mark is not None
    body = cut[: mark.start()]
    assert text.startswith(body)
    assert body.endswith(ends)
    assert int(mark[1].replace(",", "")) == len(body) > 1_500


def test_of_very_many_sources_the_first_whole_lines_stay() -> None:
    lines = "\n".join(f"- https://example.com/{number} (2026-11-01)" for number in range(2_000))
    cut = shortened(SENTENCE * 400, 4_000, f"Sources:\n{lines}")
    assert len(cut) <= 4_000
    assert "\n\nSources:\n- https://example.com/0 (" in cut
    assert cut.endswith("(2026-11-01)")
    assert CUT.search(cut)


def test_code_that_is_cut_open_is_closed() -> None:
    text = f"Do this:\n\n```python\n{'print(1)' + chr(10)}" + "x = 1\n" * 2_000 + "```\n\nDone."
    cut = shortened(text, 1_500)
    assert cut[: CUT.search(cut).start()].endswith("\n```")  # type: ignore[union-attr]
    assert len(re.findall("^```", cut, re.MULTILINE)) == 2


@given(st.text(st.sampled_from("ab .。\n`#-é👨\u200d\u3099"), max_size=3_000), st.integers(1_000, 2_000))
def test_whatever_the_text_it_is_never_longer_and_what_is_cut_says_so(text: str, most: int) -> None:
    cut = shortened(text, most)
    assert len(cut) <= most
    assert (cut == text) == (len(text) <= most)
    assert cut == text or "[Cut here: " in cut
