"""reStructuredText, line by line: underlined headings; directives, roles and targets become the text in them."""

from __future__ import annotations

import re
from typing import Final

from responses_mcp.manuals.cancellation import CancellationCheck
from responses_mcp.manuals.formats.document import LONGEST_TITLE, Document, Page, checked_lines

_ADORNMENT: Final = re.compile(r"([!-/:-@\[-`{-~])\1+\s*$")
_DIRECTIVE: Final = re.compile(r"(\s*)\.\.\s+(?:\|[^|]*\|\s*)?([\w:+.-]+?)::(?:\s+(.*))?$")
_EXPLICIT: Final = re.compile(r"(\s*)(?:\.\.(?:\s|$)|__\s)")
_NOTE: Final = re.compile(r"(\s*)\.\.\s+\[([^\]]*)\]\s+(.*)$")
_OPTION: Final = re.compile(r"\s+:[\w-]+:(?:\s|$)")
_ROLE: Final = re.compile(r":[\w:+.-]{1,40}:`~?!?([^`<]*+)(?:<[^`<>]*+>)?`")
_LINK: Final = re.compile(r"`([^`<]*+)<[^`<>]*+>`_{1,2}")
_REFERENCE: Final = re.compile(r"`([^`]+)`__?(?!\w)")
_SUBSTITUTION: Final = re.compile(r"(?<![\w|])\|([A-Za-z][\w.-]{0,60})\|_{0,2}(?![\w|])")
_LITERAL: Final = re.compile(r"``([^`]+)``")
_NO_TEXT: Final = frozenset(
    {
        *("toctree", "contents", "include", "highlight", "raw", "index", "meta", "currentmodule", "module", "image"),
        *("sectionauthor", "moduleauthor", "default-role", "role", "tabularcolumns", "replace"),
    }
)
_QUIET: Final = frozenset(
    {
        *("code-block", "code", "sourcecode", "literalinclude", "table", "list-table", "csv-table"),
        *("only", "container", "figure"),
    }
)
_SAID: Final = frozenset(
    {
        *("note", "warning", "tip", "important", "caution", "danger", "hint", "attention", "error", "seealso", "todo"),
        *("deprecated", "versionadded", "versionchanged"),
    }
)


def convert(text: str, check: CancellationCheck) -> Document:
    """Return the text in as many lines as the file has."""
    page = Page()
    levels: dict[str, int] = {}
    lines = list(checked_lines(text, check))
    hidden: int | None = None  # the indentation of an explicit block that has no text; what is deeper goes with it
    options = False
    for number, line in enumerate(lines):
        if not number % 1024:
            check()
        blank = not line.strip()
        indent = len(line) - len(line.lstrip())
        if hidden is not None:
            if blank or indent > hidden:
                page.lines.append("")
                continue
            hidden = None
        if options and _OPTION.match(line):
            page.lines.append("")
            continue
        options = False
        following = lines[number + 1] if number + 1 < len(lines) else ""
        before = lines[number - 1] if number else ""
        if blank:
            page.lines.append("")
        elif _is_adornment(line, before, following):
            page.lines.append("")
            if (found := _level(line, before, lines[number - 2] if number > 1 else "", levels)) is not None:
                page.lines[-2] = ""
                page.lines[-2] = _plain(before.strip())
                page.heading(found, page.lines[-2], back=2)
        elif (note := _NOTE.match(line)) is not None:
            page.lines.append(f"{note[1]}[{note[2]}] {_plain(note[3])}")
        elif (directive := _DIRECTIVE.match(line)) is not None:
            name, argument = directive[2], directive[3] or ""
            if name in _NO_TEXT:
                hidden = indent
            options = True
            page.lines.append("" if name in _NO_TEXT or name in _QUIET else _said(directive[1], name, argument))
        elif _EXPLICIT.match(line):  # a target or a comment
            hidden = indent
            page.lines.append("")
        else:
            page.lines.append(_plain(line))
    return page.document()


def _said(indent: str, name: str, argument: str) -> str:
    if name in _SAID:
        return f"{indent}{name.capitalize()}: {_plain(argument)}".rstrip(": ")
    return f"{indent}{_plain(argument)}"


def _is_adornment(line: str, before: str, following: str) -> bool:
    mark = _ADORNMENT.match(line)
    if mark is None or len(line.rstrip()) < 2:
        return False
    if before.strip() and not _ADORNMENT.match(before):  # below a title
        return before[:1] not in " \t" or len(line.rstrip()) >= len(before.rstrip())
    return len(line.rstrip()) > 3 or following.rstrip() != ""  # above one, or between paragraphs


def _level(line: str, title: str, above: str, levels: dict[str, int]) -> int | None:
    """Return the level of the heading that a line ends, None if it ends none."""
    if not title.strip() or _ADORNMENT.match(title) or len(title) > LONGEST_TITLE:
        return None
    if above.strip() and not _ADORNMENT.match(above):
        return None  # the last line of a paragraph
    over = _ADORNMENT.match(above) is not None and above.strip() == line.strip()
    wide = len(line.rstrip())
    if wide < len(title.strip()) and wide < 4:
        return None
    if title[:1] in " \t" and not over:
        return None
    return levels.setdefault(f"{line[0]}{over}", len(levels) + 1)


def _plain(text: str) -> str:
    if "|" in text:
        text = _SUBSTITUTION.sub(r"\1", text)
    if "`" not in text:
        return text
    text = _ROLE.sub(lambda found: f"`{found[1].strip()}`", text)
    text = _LITERAL.sub(r"`\1`", text)
    return _REFERENCE.sub(r"\1", _LINK.sub(lambda found: found[1].strip(), text))
