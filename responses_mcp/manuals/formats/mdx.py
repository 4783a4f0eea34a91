"""MDX: Markdown with imports, exports and comments of JavaScript, which are left out line by line."""

from __future__ import annotations

import re
from typing import Final

from responses_mcp.manuals.cancellation import CancellationCheck
from responses_mcp.manuals.formats import markdown
from responses_mcp.manuals.formats.document import Document, checked_lines

_CODE: Final = re.compile(r"(?:import|export)\s+[\w{*'\"]")
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")
_MOST_LINES: Final = 200  # of one import or export; then it is text


def convert(text: str, check: CancellationCheck) -> Document:
    """Return the text in as many lines as the file has."""
    shown: list[str] = []
    fence = ""
    code = 0  # lines since an import or export began
    comment = 0  # lines since a comment began that has not ended
    for line in checked_lines(text, check):
        if (mark := _FENCE.match(line)) is not None and not code:
            fence = "" if fence and line.strip().startswith(fence) else fence or mark[1]
        elif not fence and not code and _CODE.match(line):
            code = 1
        if comment:
            end = line.find("*/}")
            comment = 0 if end >= 0 or comment == _MOST_LINES else comment + 1
            shown.append(line[end + 3 :] if end >= 0 else "")
        elif code:
            code = 0 if not line.strip() or code == _MOST_LINES else code + 1
            shown.append("")
        elif fence or "{/*" not in line:
            shown.append(line)
        else:
            kept, closed = _without_comments(line)
            comment = int(not closed)
            shown.append(kept)
    return Document("\n".join(shown), markdown.outline(shown))


def _without_comments(line: str) -> tuple[str, bool]:
    """Return a line without its comments, and whether the last one ends in it."""
    kept: list[str] = []
    at = 0
    while (begin := line.find("{/*", at)) >= 0:
        kept.append(line[at:begin])
        end = line.find("*/}", begin)
        if end < 0:
            return "".join(kept), False
        at = end + 3
    return "".join((*kept, line[at:])), True
