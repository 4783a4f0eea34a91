"""The help texts in the pages: `python -m tests.help_texts` puts what the commands print between their marks.

A block stands between `<!-- help: NAME -->` and `<!-- help: end -->`, where NAME is a command such as `ask` or
`manuals find`; `begin` is the command line itself. tests/test_docs.py compares them.
"""

import io
import os
import re
from collections.abc import Iterator
from contextlib import redirect_stdout, suppress
from pathlib import Path
from unittest.mock import patch

from responses_mcp import cli

ROOT = Path(__file__).parent.parent
BLOCK = re.compile(r"<!-- help: (?!end)([\w ]+) -->\n```text\n(.*?)```\n<!-- help: end -->", re.DOTALL)


def help_of(name: str) -> str:
    """Return what a command prints on a terminal of 80 columns when it is asked for help."""
    words = [] if name == "begin" else name.split()
    printed = io.StringIO()
    with patch.dict(os.environ, COLUMNS="80", NO_COLOR="1"), redirect_stdout(printed), suppress(SystemExit):
        cli.run([*words, "--help"])
    return printed.getvalue()


def pages() -> Iterator[Path]:
    """Yield the pages that have such blocks."""
    for page in sorted((ROOT / "docs").rglob("*.md")):
        if BLOCK.search(page.read_text(encoding="utf-8")):
            yield page


def with_help(text: str) -> str:
    """Return the text of a page with every help as it is now."""

    def block(found: re.Match[str]) -> str:
        return f"<!-- help: {found[1]} -->\n```text\n{help_of(found[1])}```\n<!-- help: end -->"

    return BLOCK.sub(block, text)


if __name__ == "__main__":
    for page in pages():
        old = page.read_text(encoding="utf-8")
        if (new := with_help(old)) != old:
            page.write_text(new, encoding="utf-8", newline="\n")
            print(f"{page.relative_to(ROOT)}: brought up to date")
