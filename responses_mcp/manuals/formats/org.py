"""Org: headings with `*`; keywords, drawers and addresses of links are left out."""

from __future__ import annotations

import re
from typing import Final

from responses_mcp.manuals.formats.markup import Markup

_STATE: Final = re.compile(r"(?:(?:TODO|DONE|NEXT|WAITING)[ \t]+)?(?:\[#[A-Z0-9]\][ \t]*)?")
_TAGS: Final = re.compile(r"[ \t]:[\w@#%:]+:$")
_END: Final = re.compile(r"\s*:END:\s*$", re.IGNORECASE)
_LINK: Final = re.compile(r"\[\[[^\[\]]*\]\[([^\[\]]*)\]\]|\[\[([^\[\]]*)\]\]")
_MARKS: Final = re.compile(
    r"(?P<blank>\s*$)|(?P<heading>\*+[ \t]+)|\s*(?:(?P<keyword>#\+\w+)|(?P<comment>#(?:[ \t]|$))"
    r"|(?P<drawer>:(?!END:)[A-Za-z_-]+:\s*$))"
)


class Org(Markup):
    """Org."""

    _match = staticmethod(_MARKS.match)

    def _text(self, line: str) -> None:
        self.page.lines.append(_plain(line))

    def _marked(self, kind: str, line: str, found: re.Match[str]) -> None:
        if kind == "heading":
            title = _STATE.sub("", line[found.end() :], count=1).rstrip()
            self.page.heading(found[kind].count("*"), _plain(_TAGS.sub("", title)))
            return
        self.page.lines.append("")
        name = (found["keyword"] or "").lower()
        if name == "#+title":
            self.page.title = self.page.title or line.partition(":")[2].strip()
        elif name.startswith("#+begin"):
            self.take(lambda each: each.lstrip().lower().startswith("#+end"), shown=name != "#+begin_comment")
        elif kind == "drawer":
            self.take(_END.match, shown=False)


def _plain(text: str) -> str:
    return _LINK.sub(r"\1\2", text) if "[[" in text else text
