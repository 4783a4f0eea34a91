"""The `Sources:` block that every searched answer ends in (spec 3.2); most of its forms are in golden_sources.yaml."""

import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_mcp.responses_api.response import dates, source_lines, sources_block, web_pages
from responses_mcp.responses_api.response.citations import Citation
from responses_mcp.responses_api.response.sources_block import with_sources

DATE = "2026-11-22"
A = "https://a.jp/"
KNOWN = (Citation(A, "A", DATE), Citation("oai-weather", "api", DATE))
OURS = f"- {A} ({DATE})\n- oai-weather ({DATE})"


def text_with_sources(text: str, citations: tuple[Citation, ...] = KNOWN) -> str:
    return with_sources(text, citations, DATE)[0]


@pytest.mark.rule("spec 6")
@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("Rain.", f"Rain.\n\nSources:\n{OURS}"),
        ("Rain.\n\n", f"Rain.\n\nSources:\n{OURS}"),
        ("雨。", f"雨。\n\nSources:\n{OURS}"),
        ("Data Sources: many.", f"Data Sources: many.\n\nSources:\n{OURS}"),
        ("Sources of the Nile", f"Sources of the Nile\n\nSources:\n{OURS}"),
        ("", f"Sources:\n{OURS}"),
    ],
)
def test_a_missing_block_is_added_at_the_end(text: str, whole: str) -> None:
    assert text_with_sources(text) == whole


@pytest.mark.rule("spec 6")
@pytest.mark.parametrize(
    ("text", "whole"),
    [
        ("Rain.\n\nSources:\n- x", f"Rain.\n\nSources:\n- x\n{OURS}"),
        ("Rain.\n\nSources:\n- x\n\n", f"Rain.\n\nSources:\n- x\n{OURS}"),
        ("Rain.\nSources:", f"Rain.\nSources:\n{OURS}"),
        ("Rain.\r\n\r\nSources:\r\n- x\r\n", f"Rain.\r\n\r\nSources:\r\n- x\n{OURS}"),
        ("雨。\n\nSources：\n・x", f"雨。\n\nSources：\n・x\n{OURS}"),
        ("Rain.\n\nSources:\n- x (2026-11-20)", f"Rain.\n\nSources:\n- x (2026-11-20)\n{OURS}"),
        ("Rain.\n\nSources\n-------\n- x", f"Rain.\n\nSources\n-------\n- x\n{OURS}"),
        ("Rain.\n\nSources (read today):\n- x", f"Rain.\n\nSources (read today):\n- x\n{OURS}"),
        ("Sources:\n\nRain.", f"Rain.\n\nSources:\n{OURS}"),
        ("Sources:\n- x \n \n\n 1. y\t\n \nRain.", f"Rain.\n\nSources:\n- x \n \n\n 1. y\n{OURS}"),
    ],
)
def test_a_block_of_the_model_gets_our_lines_under_the_same_header(text: str, whole: str) -> None:
    assert text_with_sources(text) == whole


@pytest.mark.parametrize("header", [
    "Sources", "Sources:", "Source:", "## Sources", "## Sources:", "### **Sources**", "**Sources**", "**Sources:**", "**Sources**:",
    "__Sources__", "*Sources:*", "> Sources:", "References", "📚 Sources:", "## 4. Sources", "SOURCES:", "Sources used:", "出典", "出典:", "出典：",
    "**出典**", "## 出典：", "【出典】", "■出典", "情報源：", "主な情報源", "参考", "参考:", "参考文献", "参考リンク：", "引用元：", "出典一覧", "出典（閲覧日つき）：",
    "Key sources:", "Sources and dates:", "Sources & references", "List of sources:", "Sources / 出典:", "情報源（Sources）", "出典・参考文献：",
    "参照した情報源：",
])  # fmt: skip
def test_a_header_in_the_forms_of_models_is_the_only_one(header: str) -> None:
    finished = f"Rain.\n\n{header}\n{OURS}"
    assert text_with_sources(finished) == finished
    assert text_with_sources(f"Rain.\n\n{header}") == finished
    assert text_with_sources(f"Rain.\n\n{header}\n{OURS}\n\nWind.") == f"Rain.\n\nWind.\n\n{header}\n{OURS}"


@pytest.mark.parametrize("line", [
    "Sources: the report of 2024-05-01 says so.", "Sources say so:", "Sourcesx", "Resources:", "- Sources", "1. Sources", "参考までに", "参考になる",
    "この出典：", "出典: 2024-05-01の報告によると雨", "Source code:", "| Sources |", "`Sources:`", "Sources, 2026-11-20",
    "Sources: the report at https://a.jp/ says so.", "出典：https://a.jp/ の報告です。", "Sources and sinks",
])  # fmt: skip
def test_a_line_that_only_looks_like_a_header_is_none(line: str) -> None:
    assert text_with_sources(f"{line}\nRain.") == f"{line}\nRain.\n\nSources:\n{OURS}"


@pytest.mark.rule("spec 6")
def test_a_search_without_any_known_source_is_named_itself() -> None:
    assert text_with_sources("Rain.", ()) == f"Rain.\n\nSources:\n- web_search ({DATE})"
    assert text_with_sources("Rain.\n\nSources:\n- x", ()) == f"Rain.\n\nSources:\n- x\n- web_search ({DATE})"
    later = "Rain.\n\nSources:\n- x (2026-11-23)"
    assert text_with_sources(later, ()) == f"{later}\n- web_search ({DATE})"


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
    "\n- ", "\nx.", "https://a.jp/", "https://b.jp/", "oai-weather", "\n```\n", "\n---\n", "\n| a |", "[a](", "## Sinks\n", "\n1. ", "2026-11-23", "\n**Primary**\n", "\nSeen:\n", "\nmy sources", "<summary>", "\n</p>\n", "\u3000",
]  # fmt: skip


@pytest.mark.rule("spec 6")
@given(
    st.lists(st.sampled_from(PIECES), max_size=40).map("".join),
    st.lists(st.sampled_from([A, "https://b.jp/", "oai-weather", *ODD]), unique=True, max_size=4),
)
def test_a_block_is_there_afterwards_and_a_second_pass_changes_nothing(text: str, names: list[str]) -> None:
    citations = tuple(Citation(name, None, DATE) for name in names)
    once, dated = with_sources(text, citations, DATE)
    assert with_sources(once, citations, DATE) == (once, dated)
    named = [part for citation in dated for part in (citation.url, citation.published_at)]
    headers = re.finditer(r"^.*(?:Sources?|References|出典).*$", once, re.MULTILINE)
    assert any(all(part in once[header.start() :] for part in named) for header in headers)
    assert all(citation.published_at <= DATE for citation in dated)


def repetitions(parsed: Any) -> Iterator[Any]:
    """Yield the kinds of item that each repetition in a parsed pattern repeats."""
    for each in parsed if isinstance(parsed, list | tuple) or hasattr(parsed, "data") else ():
        if isinstance(each, tuple) and str(each[0]).endswith("_REPEAT"):
            yield [str(kind) for kind, _ in each[1][2]]
        yield from repetitions(each)


WHOLE = {
    f"{module.__name__.rpartition('.')[2]}.{name}": each
    for module in (dates, source_lines, sources_block, web_pages)
    for name, each in vars(module).items()
    if isinstance(each, re.Pattern)
    if (module, name) not in {(web_pages, "_CITED"), (web_pages, "_LINK"), (dates, "_DATE")}  # of one value each
}


@pytest.mark.parametrize("name", WHOLE)
def test_no_pattern_that_meets_a_whole_answer_repeats_more_than_one_character(name: str) -> None:
    # For each turn of a repeated group the engine keeps a hundred bytes or more: gigabytes for an answer of many lines.
    # A possessive group would need none, but Python before 3.11.5 (Debian 12 has 3.11.2) finds wrong ends for them.
    pattern = WHOLE[name]
    for repeated in repetitions(import_module("re._parser").parse(pattern.pattern, pattern.flags)):
        assert repeated in (["IN"], ["ANY"], ["LITERAL"], ["NOT_LITERAL"])


def test_a_block_is_looked_for_at_the_end_of_the_text_only() -> None:
    block, rest = f"Sources:\n{OURS}", "\n\n" + "And so on. " * 30_000
    assert text_with_sources(f"{rest}\n{block}") == f"{rest}\n{block}"
    assert text_with_sources(block + rest) == f"{block}{rest.rstrip()}\n\nSources:\n{OURS}"


def test_the_end_of_the_text_that_is_looked_at_begins_no_line() -> None:
    words = "Data Sources: many. "
    text = words * 30_000
    for cut in range(len(words)):
        assert text_with_sources(text + "x" * cut).endswith(f"\n\nSources:\n{OURS}")
