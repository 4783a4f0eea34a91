"""`python -m tests.picture`: run the demo and draw what it prints as docs/demo.svg. The same text gives the same file."""

import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from html import escape
from pathlib import Path

FILE = Path(__file__).parent.parent / "docs/demo.svg"
COLUMNS, CELL, LINE, MARGIN = 96, 8.4, 20, 20  # width in characters; the rest in units of the picture

STYLE = """\
rect { fill: #ffffff; stroke: #d0d7de }
text { fill: #1f2328; font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace }
.quoted { fill: #0a5a2a }
.step, .typed { font-weight: bold }
@media (prefers-color-scheme: dark) {
  rect { fill: #0d1117; stroke: #3d444d }
  text { fill: #e6edf3 }
  .quoted { fill: #7ee787 }
}"""


def printed() -> str:
    """Return what the demo prints."""
    command = [sys.executable, "-m", "responses_mcp", "demo"]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", timeout=60, check=True)
    return done.stdout


def draw(text: str) -> str:
    """Return the picture of a terminal in which the demo has printed `text`."""
    rows = [("typed", "$ openai-responses-mcp demo"), *lines(text)]
    width, height = round(COLUMNS * CELL + 2 * MARGIN), len(rows) * LINE + 2 * MARGIN
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
            'role="img" aria-labelledby="title">',
            '<title id="title">What openai-responses-mcp demo prints</title>',
            f"<style>\n{STYLE}\n</style>",
            f'<rect x="0.5" y="0.5" width="{width - 1}" height="{height - 1}" rx="8"/>',
            *(drawn(kind, row, MARGIN + LINE * number) for number, (kind, row) in enumerate(rows, 1) if row.strip()),
            "</svg>\n",
        ]
    )


def lines(text: str) -> Iterator[tuple[str, str]]:
    """Yield the lines of `text` as they fit the picture, each with its kind."""
    for line in text.splitlines():
        quoted = line.startswith("   | ")
        column = re.match(r" *\S+  +", line)  # of a table, such as that of the tools
        indent = "   | " if quoted else " " * (column.end() if column else 5)
        kind = "quoted" if quoted else "step" if re.match(r"\d\. ", line) else "plain"
        wrapped = textwrap.wrap(
            line, COLUMNS, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        ) or [""]
        yield from ((kind, row) for row in wrapped)


def drawn(kind: str, row: str, y: int) -> str:
    """Return one line. Its length is given, so that it fits in whatever monospaced font the reader has."""
    bare = row.lstrip()
    x = MARGIN + (len(row) - len(bare)) * CELL
    return (
        f'<text class="{kind}" x="{x:.1f}" y="{y - 5}" textLength="{len(bare) * CELL:.1f}" xml:space="preserve">'
        f"{escape(bare, quote=False)}</text>"
    )


if __name__ == "__main__":
    FILE.write_text(draw(printed()), encoding="utf-8", newline="\n")
