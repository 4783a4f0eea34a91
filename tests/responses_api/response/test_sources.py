"""The `Sources:` block that every searched answer ends in (spec 3.2); texts of models are in golden_sources.yaml."""

import re
from collections.abc import Iterator
from datetime import date
from importlib import import_module
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_mcp.responses_api.response import parser, sources, web_pages
from responses_mcp.responses_api.response.sources import Citation, choose_citations, without_block, written

DATE = "2026-11-22"
A = "https://a.jp/"
KNOWN = (Citation(A, "A", DATE), Citation("oai-weather", "api", DATE))
OURS = f"- {A} ({DATE})\n- oai-weather ({DATE})"


def with_sources(text: str, citations: tuple[Citation, ...] = KNOWN) -> tuple[str, tuple[Citation, ...]]:
    chosen = choose_citations(citations, citations, limit=10)
    body, citations = without_block(text, chosen, date.fromisoformat(DATE))
    return "\n\n".join(filter(None, (body, written(citations, DATE)))), citations


# Names that look like something else, and addresses that no text could be asked for
ODD = (
    "Sources:",
    "x (2026-01-01)",
    "https://a b/",
    "https://c.jp/「x」",
    "https://d.jp/(",
    "| t |",
    "# h",
    "```",
    "feed",
)
PIECES = [
    *"a:： \n-*>#.(/)|`1", "Sources", "Sources:", "## Sources", "出典：", "Source: https://a.jp/", "References", f"({DATE})", "(2026-11-20)", "\n\n",
    "\n- ", "\nx.", "https://a.jp/", "https://b.jp/", "oai-weather", "\n```\n", "\n---\n", "\n| a |", "[a](", "## Sinks\n", "\n1. ", "2026-11-23", "\n**Primary**\n", "\nSeen:\n", "\nmy sources", "<summary>", "\n</p>\n", "\u3000", "This is only so for that.", "<details>\n",
]  # fmt: skip


@pytest.mark.rule("spec 6")
@given(
    st.lists(st.sampled_from(PIECES), max_size=40).map("".join),
    st.lists(st.sampled_from([A, "https://b.jp/", "oai-weather", *ODD]), unique=True, max_size=4),
)
def test_a_block_is_there_afterwards_and_a_second_pass_changes_nothing(text: str, names: list[str]) -> None:
    citations = tuple(Citation(name, None, DATE) for name in names)
    once, cited = with_sources(text, citations)
    assert with_sources(once, citations) == (once, cited)
    assert once.endswith(written(cited, DATE))
    assert all(citation.published_at <= DATE for citation in cited)


def repetitions(parsed: Any) -> Iterator[Any]:
    """Yield the kinds of item that each repetition in a parsed pattern repeats."""
    for each in parsed if isinstance(parsed, list | tuple) or hasattr(parsed, "data") else ():
        if isinstance(each, tuple) and str(each[0]).endswith("_REPEAT"):
            yield [str(kind) for kind, _ in each[1][2]]
        yield from repetitions(each)


WHOLE = {
    f"{module.__name__.rpartition('.')[2]}.{name}": each
    for module in (parser, sources, web_pages)
    for name, each in vars(module).items()
    if isinstance(each, re.Pattern)
    if (module, name)
    not in {
        *((web_pages, name) for name in ("_CITED", "_LINK", "_PAGE", "_PAIRED_PARENTHESES")),
        *((web_pages, name) for name in ("_PAIRED_BRACKETS", "_PAIRED_TICKS")),
        (sources, "_FOR_SOURCES"),
    }  # of one value each
}


@pytest.mark.parametrize("name", WHOLE)
def test_no_pattern_that_meets_a_whole_answer_repeats_more_than_one_character(name: str) -> None:
    # For each turn of a repeated group the engine keeps a hundred bytes or more: gigabytes for an answer of many lines.
    # A possessive group would need none, but Python before 3.11.5 (Debian 12 has 3.11.2) finds wrong ends for them.
    pattern = WHOLE[name]
    for repeated in repetitions(import_module("re._parser").parse(pattern.pattern, pattern.flags)):
        assert repeated in (["IN"], ["ANY"], ["LITERAL"], ["NOT_LITERAL"])


def test_a_block_is_looked_for_at_the_end_of_the_text_only() -> None:
    block, rest = f"Sources:\n{OURS}", "And so on. " * 30_000
    assert with_sources(f"{rest}\n\n{block}")[0] == f"{rest.rstrip()}\n\n{block}"
    for lines in (["- https://b.jp/"] * 10_000, ["- https://b.jp/"] * 200):
        text = "\n".join(["Sources:", *lines])
        assert with_sources(text)[0] == f"{text}\n\n{block}"
    assert with_sources(text.replace("- https://b.jp/\n", "", 2))[0] == block
