"""The `Sources:` block of an answer: the server writes it, from the citations (spec 3.2).

A model often ends its answer in a block of its own: a header, its sources, and perhaps one more paragraph. The header
and the sources are taken out and read for dates; what says more than that stays. Lines are read from the end of the
text up to the first that belongs to no block, so the work is linear, and a second pass changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import date
from typing import Final, Literal

from responses_mcp.responses_api.response.citations import Citation
from responses_mcp.responses_api.response.dates import WrittenDate, dates_in
from responses_mcp.responses_api.response.markdown import unpaired
from responses_mcp.responses_api.response.web_pages import page_key

LONGEST_HEADER: Final = 80  # characters
_LOOKED_THROUGH: Final = 64 * 1024  # characters at the end of an answer
_MOST_HEADERS: Final = 10
_LONGEST_ITEM: Final = 4 * 1024
_FEWEST_WORDS: Final = 4  # of a sentence; "Published 2026-11-20." is none

_ADDRESS: Final = r"https?://[^\s<>\"\\^`{}|、。，．！？：；「」『』（）【】〔〕〈〉《》［］“”…]{1,1000}"
_BRACKET: Final = re.compile(r"[()\[\]]")
_TOUCHING: Final = re.compile(r"[(\[]|[^\x00-\x7f]")
_NAMES_ONE: Final = re.compile("https?://|[0-9]{4} ?[-/.年]", re.IGNORECASE)  # an address, or a date
_DRAWN: Final = re.compile(r"[ \t\u3000>]*(?:<(/?)(?:details|summary|div|ul|ol|p|hr)[^<>]{0,80}>|[-=*_]{3,99}|)")
_FENCE: Final = re.compile(r"[ \t>]*(?:`{3}|~{3})")
_ITEM: Final = re.compile(  # it has a mark, or belongs to one that has
    r"([ \t\u3000>]*)(?:[-*+](?=[ \t])|[•・‣◦●○■□◆◇①-⑳|]|[0-9０-９]{1,3}[.)．）](?![0-9０-９])|\[\^?[0-9A-Za-z]{1,4}\])"
    r"|[ \t\u3000]"
)
_NEVER_HEADER: Final = re.compile(r"[ \t>]*(?:[-*+][ \t]+[^*]|[0-9|`])")
_NO_LETTERS: Final = re.compile(r"<[^<>]*>|[\W\d_]+")
_WORD_FOR_SOURCES: Final = re.compile(
    r"(?<![^\W_])(?:sources?|references?|citations?|bibliography|works cited|quellen|fuentes|références|referencias"
    r"|fonti|источники)(?![^\W_])|参考资料|來源|来源|출처|(?:主な)?(?:出典|出所|情報源|参考|引用|参照|(?<!リ)ソース)"
    r"(?:文献|資料|情報|リンク|サイト|元|先|一覧)?",
    re.IGNORECASE,
)
_TITLE: Final = re.compile(rf"{_ADDRESS}|\[[^\[\]]*\]|\*[^*]+\*|\"[^\"]*\"|「[^「」]*」", re.IGNORECASE)
_SENTENCE_ENDS: Final = re.compile(r"[.!?](?=[\s)\"'”*_]|\Z)|[。！？…]")
_WORD: Final = re.compile(r"[\u3041-\u309f]|[\u30a0-\u30ff\u3400-\u9fff]{2}|[^\W\d_\u3041-\u30ff\u3400-\u9fff]+")


def written(citations: Iterable[Citation], accessed: str) -> str:
    """Return the block for these citations; the search itself is named where there are none."""
    lines = [f"- {citation.url} ({citation.published_at})" for citation in citations]
    return "\n".join(["Sources:", *(lines or [f"- web_search ({accessed})"])])


def without_block(text: str, citations: Mapping[str, Citation], newest: date) -> tuple[str, tuple[Citation, ...]]:
    """Return an answer without the model's own block, and the citations with the dates that the block has.

    Of several dates beside one source, the first that is not one of access is taken. Dates after `newest` are none.
    """
    begin = text.find("\n", len(text) - _LOOKED_THROUGH) + 1 if len(text) > _LOOKED_THROUGH else 0
    lines = text[begin:].rstrip().split("\n")
    top = behind = len(lines)  # of the block, and of the paragraph behind it
    left, blank = _MOST_HEADERS, False
    listed: list[str] = []
    kept: list[str] = []  # both from the last line to the first
    dates: dict[str, str] = {}
    for at in range(top - 1, -1, -1):
        line, kind = lines[at], kind_of(lines[at])
        # With a source on its line, and right below another line, a header says where that is from.
        if kind == "header" and left and not (at and lines[at - 1].strip() and _NAMES_ONE.search(line)):
            left -= 1
            found = _dates(line, listed[::-1], bool(kept) or behind < len(lines), citations, newest)
            if found is not None:
                top, listed, dates = at, [], found | dates
                continue
        elif kind == "header" and _NAMES_ONE.search(line):
            kind = "source"
        if kind == "source":
            listed.append(line)
        elif kind == "blank":
            blank = True
        elif top < len(lines) or kind == "code" or (blank and kind != "words"):
            break
        elif kind == "words":
            kept.append(line)
        else:
            behind, listed, kept = at, [], []
    while top and (drawn := _DRAWN.fullmatch(lines[top - 1].rstrip())) and not drawn[1]:
        top -= 1
    stays = [*kept[::-1], *lines[behind:]] if top < behind else []
    body = (text[:begin] + "\n".join(lines[:top])).rstrip()
    cited = (replace(each, published_at=dates[key]) if key in dates else each for key, each in citations.items())
    return "\n\n".join(filter(None, (body, "\n".join(stays)))), tuple(cited)


# Where the block is


def kind_of(line: str) -> Literal["blank", "header", "source", "words", "prose", "code"]:
    """Return what a line is where it is one of a block; "words" is an item that says more than its source."""
    if _DRAWN.fullmatch(line.rstrip()):
        return "blank"
    if _FENCE.match(line):
        return "code"
    if _header(line) is not None:
        return "header"
    item, names_one = _ITEM.match(line), _NAMES_ONE.search(line)
    if _says_more(line) or not (item or names_one) or not (names_one or not _stops(line)):
        return "words" if item else "prose"
    return "source"


def _header(line: str) -> tuple[bool, str] | None:
    """Return whether a header has no other words, and what is behind its colon; None for a line that is no header."""
    label, _, source = line.replace("：", ":").partition(":")
    word = _WORD_FOR_SOURCES.search(label[:LONGEST_HEADER])
    if word is None or len(label) > LONGEST_HEADER or _NEVER_HEADER.match(line):
        return None
    if _NO_LETTERS.sub("", label) == _NO_LETTERS.sub("", word[0]):
        return True, source if _NO_LETTERS.sub("", source) else ""
    return None if len(line) > LONGEST_HEADER or "://" in line or _stops(line) else (False, "")


def _stops(line: str) -> bool:
    return line.rstrip(" \t*_").endswith((*".。!?！？…",))


def _says_more(line: str) -> bool:
    """Tell whether a line has a sentence in it, beside titles and addresses."""
    *sentences, _ = _SENTENCE_ENDS.split(_TITLE.sub(" ", line))
    return any(len(_WORD.findall(each)) >= _FEWEST_WORDS for each in sentences)


# Which dates are in it


def _dates(header: str, listed: list[str], more: bool, known: Collection[str], newest: date) -> dict[str, str] | None:
    """Return the dates of the sources below a header; None if that is no block. `more` tells that some text stays."""
    alone, source = _header(header) or (False, "")
    items = [list(_marks(item[:_LONGEST_ITEM], known, newest)) for item in _items([source, *listed])]
    pages = [mark for marks in items for mark in marks if isinstance(mark, str)]
    dated = any(isinstance(mark, WrittenDate) for marks in items for mark in marks)
    if source:
        is_block = bool(pages) and not _says_more(source)
    elif alone:
        is_block = bool(pages) or dated or not (listed or more)
    else:  # a line about sources is a header only above dated ones that are all cited
        is_block = bool(pages) and all(pages) and dated and not more
    return {page: iso for marks in reversed(items) for page, iso in _beside(marks)} if is_block else None


def _items(lines: Iterable[str]) -> Iterator[str]:
    """Yield the items of a list, each with all below it; lines without marks are one."""
    item: list[str] = []
    depth = -1
    for line in lines:
        mark = _ITEM.match(line)
        if mark and mark[1] is not None and (depth < 0 or len(mark[1]) <= depth):
            yield "\n".join(item)
            item, depth = [], len(mark[1])
        item.append(line)
    yield "\n".join(item)


def _marks(item: str, known: Collection[str], newest: date) -> Iterator[str | WrittenDate]:
    """Yield the sources of an item, "" for one that is not cited, and its dates, in order."""
    names = (rf"(?<![\w-]){re.escape(name)}(?![A-Za-z0-9_-])" for name in known if "?" not in name)
    mention = re.compile("|".join([_ADDRESS, *names]), re.IGNORECASE)
    places: dict[int, str | WrittenDate] = {}
    at = 0
    while found := mention.search(item, at):
        start = found.start()
        places[start], length = _page(found[0], known)
        at = start + length
        # A date within an address says when a page appeared on a site, not when it was published.
        item = item[:start] + " " * length + item[at:]
    places |= {each.start: each for each in dates_in(item, newest)}
    return (mark for _, mark in sorted(places.items()))


def _page(address: str, known: Collection[str]) -> tuple[str, int]:
    """Return which of the `known` sources an address is, and its length; it ends sooner where words touch it."""
    closing = (at for at in unpaired(address, _BRACKET) if address[at] in ")]")
    address = address[: min(closing, default=len(address))]
    for candidate in (address, address.rstrip(".,;:!?'*_~&(["), _TOUCHING.split(address)[0]):
        page = page_key(candidate) or candidate
        if page in known:
            return page, len(candidate)
    return "", len(address)


def _beside(marks: list[str | WrittenDate]) -> Iterator[tuple[str, str]]:
    """Yield the sources of an item that have a date beside them, with it."""
    pages = [at for at, mark in enumerate(marks) if isinstance(mark, str)]
    if len({marks[at] for at in pages}) == 1:
        marks = marks[pages[0] :] + marks[: pages[0]]  # dates behind it first
    elif pages and pages[0] > 0 and pages[-1] == len(marks) - 1:
        marks = marks[::-1]  # each date is in front of its source
    found: dict[str, list[WrittenDate]] = {}
    page = ""
    for mark in marks:
        if isinstance(mark, str):
            page = mark
        else:
            found.setdefault(page, []).append(mark)
    for page, dates in found.items():
        yield page, min(dates, key=lambda each: each.is_access).iso
