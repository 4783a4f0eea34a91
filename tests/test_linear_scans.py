"""Everything that goes through the text of others takes time in proportion to it, and nobody waits for it."""

import io
import logging
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout, suppress
from datetime import date
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import trio

from responses_mcp.commands.clients.codex_table import CodexTable
from responses_mcp.commands.clients.files import Unmergeable
from responses_mcp.commands.clients.json_merge import JsonDocument
from responses_mcp.commands.terminal import NAME, StatusLine, say_text, wrapped
from responses_mcp.errors import UpstreamError
from responses_mcp.json_types import replace_lone_surrogates
from responses_mcp.manuals.cancellation import unchecked
from responses_mcp.manuals.errors import ManualsError
from responses_mcp.manuals.files.documents import document_of
from responses_mcp.manuals.files.exclusion import _fits
from responses_mcp.manuals.files.snippets import around
from responses_mcp.manuals.formats.document import Unserved
from responses_mcp.manuals.index.rows import entries
from responses_mcp.manuals.index.tokens import tokens
from responses_mcp.manuals.requests.parsing import parse_find
from responses_mcp.manuals.requests.paths import parse_child_id, parts_of
from responses_mcp.manuals.search.claims import claim_graph
from responses_mcp.manuals.search.contract import sub_queries
from responses_mcp.manuals.search.query import query, required_term
from responses_mcp.manuals.search.reader import Row, Text
from responses_mcp.manuals.search.shown import Showing
from responses_mcp.manuals.words import alike, normalise, prepared, runs
from responses_mcp.protocol.framing import MessageReader
from responses_mcp.protocol.jsonrpc import decode, encode
from responses_mcp.responses_api.failures import response_error
from responses_mcp.responses_api.response.parser import Answer, read_answer
from responses_mcp.responses_api.response.search_results import listed_items, read_results
from responses_mcp.responses_api.response.sources import Citation, without_block
from responses_mcp.responses_api.response.web_pages import page_key, shown, without_markers, without_tracking
from responses_mcp.sanitization import sanitized
from responses_mcp.secrets import OutgoingText, Redactor
from responses_mcp.settings import load_settings
from responses_mcp.settings.findings import Findings, printable
from responses_mcp.settings.model import OpenAISettings, Settings
from responses_mcp.settings.system_policy import instructions_from
from responses_mcp.testing import Json, bodies, open_fake_api
from responses_mcp.testing.client import connected_client
from tests.debug_lines import configured
from tests.growth import Hostile, superlinear
from tests.manuals.written import headings, sections
from tests.test_linear_time import FRAGMENTS

TODAY = "2026-11-22"
SECRETS = Redactor(["canary-secret", "a" * 1000, "Bearer aaaaaaaaaaaa"])
WAIT = 30.0  # seconds; a bound for a stuck machine, not an expectation

HEADS = ("", "Sources:\n- x", '{"url": "', "```\n", "---\ntitle: ", "Content-Length: ")
REPEATED = (
    *FRAGMENTS, '{"a":', "{'a': ", "[[], ", '"', '"""', "Sources:\n", "# a\n", "a: 1\n", "a: {", "? ", "&a ", "*a ", "<<: ", "- - ", "| ",
    "%41", "%c3%a4", "é", "e\u0301", "\u0316\u0300", "\ud800", "ー", "亜と", "a、", "a or ", "ﾞ", "a.", "k1 = [1, {}]\n", "[a.b]\n",
    "Content-Length: 3\r\n\r\n", "\\u3042", "\r", "\r\n", "\x00", "\x1b[", "$", "${", "((a)", "[](a)", "sk-aaaaaaaaaaaaaaaa ",
)  # fmt: skip
TEXTS = [Hostile(head, repeated, '"}]') for head, repeated in product(HEADS, REPEATED)]


def response(text: str, annotations: list[Any]) -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": annotations}
    search = {"type": "web_search_call", "status": "completed", "action": {"url": "https://a.jp/"}}
    return {"status": "completed", "output": [search, {"type": "message", "content": [part]}]}


def cited(text: str) -> list[Any]:
    """Return as many annotations as fit the text, each of which covers all that follows it."""
    cite = {"type": "url_citation", "end_index": len(text), "title": "t"}
    return [{**cite, "url": f"https://a.jp/{at}", "start_index": at} for at in range(0, min(len(text), 4000), 2)]


def long_citations(text: str) -> list[Any]:
    pieces = [text[at : at + 4000] for at in range(0, len(text), 4000)]
    return [{"type": "url_citation", "url": f"https://a.jp/{each}", "title": each} for each in pieces]


def answer(text: str) -> None:
    read_answer(response(text, cited(text[:4000])), model="m", max_citations=10, date=TODAY, redact=SECRETS.known)


def failed(text: str) -> dict[str, Any]:
    return {"status": "failed", "error": {"message": text, "code": text, "metadata": {"raw": text}}}


def search(text: str, annotations: list[Any]) -> None:
    read_results(response(text, annotations), limit=50, today=TODAY, redact=SECRETS.known)


def log_line(text: str) -> None:
    with configured(redact=Redactor("canary-secret")):
        logging.getLogger("responses_mcp").info("heard %s", text)


def rows(path: str) -> Callable[[str], object]:
    def found(text: str) -> object:
        try:
            document = document_of(path, text.encode("utf-8", "replace"), unchecked)
        except Unserved:
            return None
        return list(entries(path, document, unchecked))

    return found


def row_shown(path: str) -> Callable[[str], object]:
    asked = query("a あ b Cd-e 12 取扱")

    def look(text: str) -> object:
        return Showing(asked).show(Row("m", 1, path, 1, len(text), "a", "", "", ""), Text(1, 0, "a", text))

    return look


def feed(text: str, size: int, limit: int = 0) -> None:
    reader, data = MessageReader(limit), text.encode("utf-8", "replace")
    for at in range(0, len(data), size):
        reader.feed(data[at : at + size])
    reader.feed_eof()


def merge(text: str, dialect: Any) -> None:
    document = JsonDocument(text, container="mcpServers", name="a", dialect=dialect)
    document.changed({"command": "c", "args": []})


def merge_toml(text: str) -> None:
    document = CodexTable(text, container="mcp_servers", name="a")
    document.changed({"command": "c", "args": []})


def question(text: str) -> None:
    request = parse_find({"manual_id": "m", "query": text, "required_terms": [text[:1000]]})
    for each in request.required_terms:
        required_term(each).hits(text)
    ref = {"target": "manual", "manual_id": "m", "path": "a.md", "start_line": 1, "signals": []}
    claim_graph(text, sub_queries(text), [{"ref": ref, "title": text, "score": 1.0, "match_coverage": 1.0}])


def patient(scan: Callable[[str], object]) -> Callable[[str], None]:
    """Let a scan refuse what it is given."""

    def work(text: str) -> None:
        with suppress(Unmergeable, ManualsError, UpstreamError, UnicodeError):
            scan(text)

    return work


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def on_a_terminal(text: str) -> None:
    with redirect_stdout(Terminal()), redirect_stderr(Terminal()):
        say_text(text)
        with StatusLine() as status:
            status.show(text)


CITED = {"a.jp?": Citation("https://a.jp/", None, TODAY), "oai-weather": Citation("oai-weather", None, TODAY)}

SCANS: dict[str, Callable[[str], object]] = {
    "an answer": answer,
    "an answer that is cut": lambda text: Answer(text, True, (), "m", text).as_json(1_000),
    "the block of sources": lambda text: without_block(text, CITED, date.fromisoformat(TODAY)),
    "lines below a header": lambda text: without_block(f"Sources:\n{text}", CITED, date.fromisoformat(TODAY)),
    "a pattern of what is left out": lambda text: _fits("*a*a*b*[!a]?c", text),
    "tracking in URLs": without_tracking,
    "marks of citations": without_markers,
    "what is shown of a page": lambda text: shown(text, len(text), SECRETS.known),
    "the key of a page": page_key,
    "a list of pages": listed_items,
    "a search": lambda text: search(text, cited(text[:4000])),
    "a failure": lambda text: response_error(failed(text), SECRETS),
    "results with long citations": lambda text: search("", long_citations(text)),
    "what is shown": sanitized,
    "secrets": SECRETS,
    "known secrets": SECRETS.known,
    "a log line": log_line,
    "a payload": lambda text: decode(text.encode("utf-8", "replace")),
    "a message": encode,
    "lone surrogates": replace_lone_surrogates,
    "folding for places": alike,
    "a name of a file": parts_of,
    "an id of a file": lambda text: parse_child_id(f"file::m::{text}"),
    "what is printable": printable,
    "a question that leaves": OutgoingText("mask").question,
}
# What takes longer for a character, or never meets more than so many.
SHORT_SCANS: dict[str, tuple[int, Callable[[str], object]]] = {
    "input at once": (2**18, lambda text: feed(text, 2**20)),
    "input in pieces": (2**18, lambda text: feed(text, 1000)),
    "rows of JSON": (2**18, rows("a.json")),
    "what a row of JSON shows": (2**14, row_shown("a.json")),
    "what a row of Markdown shows": (2**14, row_shown("a.md")),
    "a snippet": (2**18, lambda text: around(text, text[:9], text)),
    "folding": (2**18, normalise),
    "tokens": (2**18, lambda text: tokens(prepared(text))),
    "reading on a terminal": (2**18, on_a_terminal),
    "a line on a terminal": (2**14, wrapped),
    "commands on a terminal": (2**14, lambda text: wrapped(f": {text.replace('a', NAME)}")),
    "words": (2**18, runs),
    "input byte by byte": (2**18, lambda text: feed(text, 1)),
    "input that is too long": (2**18, lambda text: feed(text, 10, 1000)),
    "headings": (2**18, lambda text: list(headings(text.split("\n")))),
    "sections": (2**18, lambda text: list(sections(text.split("\n")))),
    "rows of Markdown": (2**18, rows("a.md")),
    **{
        f"rows of {ending}": (2**17, rows(f"a.{ending}"))
        for ending in ("txt", "mdx", "rst", "adoc", "org", "html", "ipynb", "man")
    },
    "a question": (2**14, question),
    "terms": (2**14, lambda text: [each.hits(text) for each in query(text).terms]),
    "parts of a question": (2**14, sub_queries),
}
OPENINGS = ("", "{", "{\n  ", '{"mcpServers": {', '{"mcpServers": {"a": {', '{"mcpServers": {"a": {"b": [')
MEMBERS = (
    '"k": 1, ',
    '"k":1,\n',
    '"\\"k": "\\"", ',
    '"k": [{}], // a\n',
    '"k": "',
    '/* */"k": 1,',
    "/*",
    "//",
    ",",
    "[], ",
    "1, ",
    " ",
    "\n",
)
FILES = [
    Hostile(head, each, f"{tail}\n") for head, each, tail in product(OPENINGS, MEMBERS, ('"z": 0}}', "0]}}}", '"'))
]
ITEMS = ("1, ", "[], ", "{}, ", "'a', ", '"\\"", ', "'''a''', ", '"""\\""\\""""\n, ', "# a\n", " ", "\n")
TABLES = [Hostile(f"[mcp_servers.a]\nb = [{start}", each, f"{start}]\n") for start, each in product(("", "'''"), ITEMS)]
MERGES: dict[str, tuple[list[Hostile[str]], Callable[[str], object]]] = {
    "JSON": (FILES, lambda text: merge(text, "json")),
    "JSON with comments": (FILES, lambda text: merge(text, "json with comments")),
    "JSON with commas": (FILES, lambda text: merge(text, "jsonc")),
    "JSON on one line": ([Hostile("{", '"k":1,', '"mcpServers": {"a": {\n}}}')], lambda text: merge(text, "json")),
    "TOML": (TABLES, merge_toml),
    "TOML on one line": ([Hostile("[mcp_servers.a]\nb = [", "[],", "]\n")], merge_toml),
}


@pytest.mark.parametrize(
    ("longest", "scan"),
    [*((2**20, each) for each in SCANS.values()), *SHORT_SCANS.values()],
    ids=[*SCANS, *SHORT_SCANS],
)
def test_a_scan_takes_time_in_proportion_to_its_text(longest: int, scan: Callable[[str], object]) -> None:
    assert superlinear(patient(scan), TEXTS, shortest=256, longest=longest) is None


def test_many_citations_of_the_same_words_are_read_in_time_in_proportion_to_the_text() -> None:
    texts = [Hostile("", each, "") for each in ("a", "[](", "- ", "https://a?")]
    assert superlinear(lambda text: search(text, cited(text)), texts, shortest=1024, longest=2**18) is None


@pytest.mark.parametrize(("texts", "merge"), MERGES.values(), ids=MERGES)
def test_a_file_of_a_client_is_changed_in_time_in_proportion_to_its_text(
    texts: list[Hostile[str]], merge: Callable[[str], object]
) -> None:
    longest = 2**18 if len(texts) > 1 else 2**20
    assert superlinear(patient(merge), texts, shortest=256, longest=longest) is None


def test_a_word_of_a_question_that_repeats_itself_is_found_in_time_in_proportion_to_the_text() -> None:
    def work(text: str) -> None:
        [term] = query(text[: len(text) // 2]).terms
        assert term.hits(text) == 0

    assert superlinear(work, [Hostile("", "a", "")], shortest=256, longest=2**16) is None


def test_a_file_of_settings_is_read_in_time_in_proportion_to_its_text(tmp_path: Path) -> None:
    def work(text: str) -> None:
        path = tmp_path / "a file"
        path.write_text(text.encode("utf-8", "replace").decode(), newline="", encoding="utf-8")
        load_settings({}, config_path=path)
        instructions_from(path, "append", "built in", "", Findings())

    # At brackets PyYAML looks back over a thousand characters, which would hide all else.
    texts = [Hostile("a: ", each, "\n") for each in REPEATED if not {*each} & {*"[{"}]
    assert superlinear(work, texts, shortest=1024, longest=2**16) is None


# Through the front


async def test_a_ping_is_answered_while_an_answer_of_blanks_behind_a_header_is_read() -> None:
    body = bodies.answer(
        "Sources: x" + " " * 48_000 + ".", searches=[bodies.web_search_call(["why"], ["https://a.jp/"])]
    )
    with trio.fail_after(WAIT):
        async with (
            open_fake_api(Json(body)) as api,
            connected_client(Settings(openai=OpenAISettings(base_url=api.base_url))) as client,
        ):
            call = await client.start_call("answer", {"query": "Why?"})
            await api.wait_requests(1)
            await client.ask("ping")
            await client.response(call)
