"""`python -m tests.picture`: ask the server as an agent does, and draw the call and its answer as docs/answer.svg.

Server and client are real; the API behind them is the fake one. Only figures differ from run to run.
"""

import textwrap
from collections.abc import Iterator, Mapping
from html import escape
from pathlib import Path
from typing import Any

import trio

from responses_mcp.commands.demo import QUESTION, searched_answer
from responses_mcp.settings import OpenAISettings, Settings
from responses_mcp.testing import Json, open_fake_api
from responses_mcp.testing.client import connected_client

FILE = Path(__file__).parent.parent / "docs/answer.svg"
COLUMNS, CELL, LINE, MARGIN = 84, 8.4, 20, 20  # width in characters; the rest in units of the picture

STYLE = """\
rect { fill: #ffffff; stroke: #d0d7de }
text { fill: #1f2328; font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace }
.answer { fill: #0a5a2a }
.call { font-weight: bold }
@media (prefers-color-scheme: dark) {
  rect { fill: #0d1117; stroke: #3d444d }
  text { fill: #e6edf3 }
  .answer { fill: #7ee787 }
}"""


async def call_and_answer() -> list[tuple[str, str]]:
    """Ask one question, and return the rows of the picture: the kind of each, and its text."""
    arguments = {"query": QUESTION}
    async with open_fake_api(Json(searched_answer())) as api:
        settings = Settings(openai=OpenAISettings(base_url=api.base_url, api_key="picture-key-0123456789"))
        async with connected_client(settings) as client:
            result = (await client.call("answer", arguments))["result"]
    return [*call("answer", arguments), ("", ""), *answer(result["structuredContent"])]


def call(tool: str, arguments: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "call", f"The agent calls the tool {tool}:"
    for name, value in arguments.items():
        yield "plain", f"  {name}: {value}"


def answer(found: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "call", "It gets back:"
    for line in str(found["answer"]).splitlines():
        yield "answer", f"  {line}"
    yield "", ""
    for citation in found["citations"]:
        yield "plain", f"  citation: {citation['title']}, {citation['published_at']}"
    yield "plain", f"  used_search: {str(found['used_search']).lower()}, model: {found['model']}"


def draw(rows: list[tuple[str, str]]) -> str:
    """Return the picture of a terminal that shows these rows."""
    lines = [(kind, line) for kind, row in rows for line in wrapped(row)]
    width, height = round(COLUMNS * CELL + 2 * MARGIN), len(lines) * LINE + 2 * MARGIN
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
            'role="img" aria-labelledby="title">',
            '<title id="title">A question of an agent, and the answer with its source</title>',
            f"<style>\n{STYLE}\n</style>",
            f'<rect x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="8"/>',
            *(drawn(kind, line, MARGIN + LINE * number) for number, (kind, line) in enumerate(lines, 1) if line),
            "</svg>\n",
        ]
    )


def wrapped(row: str) -> list[str]:
    indent = " " * (len(row) - len(row.lstrip()))
    lines = textwrap.wrap(row, COLUMNS, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return lines or [""]


def drawn(kind: str, line: str, y: int) -> str:
    """Return one line. Its length is given, so that it fits in whatever monospaced font the reader has."""
    bare = line.lstrip()
    x = MARGIN + (len(line) - len(bare)) * CELL
    return (
        f'<text class="{kind}" x="{x:.1f}" y="{y - 5}" textLength="{len(bare) * CELL:.1f}" xml:space="preserve">'
        f"{escape(bare, quote=False)}</text>"
    )


if __name__ == "__main__":
    FILE.write_text(draw(trio.run(call_and_answer)), encoding="utf-8", newline="\n")
