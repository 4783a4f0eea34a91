"""reStructuredText: underlined headings; directives, roles and targets become the text in them."""

from __future__ import annotations

import re
from typing import Final

from responses_mcp.manuals.formats.markup import ADORNMENT, Markup

_OPTION: Final = re.compile(r"\s+:[\w-]+:(?:\s|$)")
_ROLE: Final = re.compile(r":[\w:+.-]{1,40}:`~?!?([^`<]*+)(?:<[^`<>]*+>)?`")
_LINK: Final = re.compile(r"`([^`<]*+)<[^`<>]*+>`_{1,2}")
_REFERENCE: Final = re.compile(r"`([^`]+)`__?(?!\w)")
_SUBSTITUTION: Final = re.compile(r"(?<![\w|])\|([A-Za-z][\w.-]{0,60})\|_{0,2}(?![\w|])")
_LITERAL: Final = re.compile(r"``([^`]+)``")
# Directives whose content is no text, those whose argument is none, and those that a reader sees by name.
_NO_TEXT: Final = frozenset({
    "toctree", "contents", "include", "highlight", "raw", "index", "meta", "currentmodule", "module",
    "image", "sectionauthor", "moduleauthor", "default-role", "role", "tabularcolumns", "replace",
})  # fmt: skip
_QUIET: Final = frozenset({
    "code-block", "code", "sourcecode", "literalinclude", "table", "list-table", "csv-table", "only",
    "container", "figure",
})  # fmt: skip
_NAMED: Final = frozenset({
    "note", "warning", "tip", "important", "caution", "danger", "hint", "attention", "error", "seealso",
    "todo", "deprecated", "versionadded", "versionchanged",
})  # fmt: skip
_MARKS: Final = re.compile(
    r"(?P<blank>\s*$)|\s*(?:(?P<note>\.\.\s+(?=\[[^\]]*\]\s+\S))|(?P<directive>\.\.\s+(?:\|[^|]*\|\s*)?[\w:+.-]+?::(?:\s|$))"
    rf"|(?P<explicit>\.\.(?:\s|$)|__\s))|(?P<adornment>{ADORNMENT})"
)
_TITLE: Final = re.compile(r"\S")


class Rst(Markup):
    """reStructuredText."""

    _match = staticmethod(_MARKS.match)
    _is_title = staticmethod(_TITLE.match)

    def _text(self, line: str) -> None:
        self.page.lines.append(_plain(line))

    def _marked(self, kind: str, line: str, found: re.Match[str]) -> None:
        indent = line[: len(line) - len(line.lstrip())]
        if kind == "note":
            self.page.lines.append(_plain(f"{indent}{line[found.end() :]}"))
            return
        name = found[kind].rstrip(": \t").split()[-1] if kind == "directive" else ""
        self.page.lines.append(_said(indent, name, line[found.end() :]) if name else "")
        if name in _NO_TEXT or kind == "explicit":  # what is deeper goes with it
            self.hide(lambda each: not each[: len(indent) + 1].strip())
        elif name:
            self.hide(_OPTION.match)
        elif kind == "adornment":
            self._underline(line)

    def _underline(self, line: str) -> None:
        title, wide = self.title_above(line), len(line.rstrip())
        if title and (wide > 3 or wide >= len(title)):
            self.page.lines[-2] = _plain(title)
            self.page.heading(self.level_of(line), _plain(title), lines=2)


def _said(indent: str, name: str, argument: str) -> str:
    if name in _NO_TEXT or name in _QUIET:
        return ""
    if name in _NAMED:
        argument = f"{name.capitalize()}: {argument}".rstrip(": ")
    return indent + _plain(argument)


def _plain(text: str) -> str:
    if "|" in text:
        text = _SUBSTITUTION.sub(r"\1", text)
    if "`" not in text:
        return text
    text = _ROLE.sub(lambda found: f"`{found[1].strip()}`", text)
    text = _LITERAL.sub(r"`\1`", text)
    return _REFERENCE.sub(r"\1", _LINK.sub(lambda found: found[1].strip(), text))
