"""The `Sources:` block of an answer: the server writes it, from the citations (spec 3.2).

A model often ends its answer in a block of its own: a header, its sources, and perhaps one more paragraph. The header
and the sources are taken out and read for dates; what says more than that stays. Lines are read from the end of the
text up to the first that belongs to no block, so the work is linear, and a second pass changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from typing import Final

from responses_mcp.responses_api.response.citations import Citation
from responses_mcp.responses_api.response.dates import WrittenDate, dates_in
from responses_mcp.responses_api.response.markdown import unpaired
from responses_mcp.responses_api.response.web_pages import page_key

LONGEST_HEADER: Final = 80  # characters
_LOOKED_THROUGH: Final = 64 * 1024  # characters at the end of an answer
_MOST_HEADERS: Final = 10
_LONGEST_NAME: Final = 200  # characters of a line that names a source without an address
_LONGEST_ITEM: Final = 4 * 1024
_FEWEST_WORDS: Final = 4  # of a sentence; "Published 2026-11-20." is none

_BEGINS: Final = re.compile("https?://", re.IGNORECASE)
_ADDRESS: Final = r"https?://[^\s<>\"\\^`{}|、。，．！？：；「」『』（）【】〔〕〈〉《》［］“”…]{1,1000}"
_BRACKET: Final = re.compile(r"[()\[\]]")
_TOUCHING: Final = re.compile(r"[(\[]|[^\x00-\x7f]")
_MARK: Final = re.compile(
    r"([ \t\u3000>]*)(?:[-*+](?=[ \t])|[•・‣◦●○■□◆◇①-⑳|]|[0-9０-９]{1,3}[.)．）](?![0-9０-９])|\[\^?[0-9A-Za-z]{1,4}\])"
)
_DRAWN: Final = re.compile("<(/?)(?:details|summary|div|ul|ol|p|hr)[^<>]{0,80}>|[-=*_]{3,99}|")  # or blank

_NEVER_LISTED: Final = re.compile(r"[ \t>]*(?:#|`{3}|~{3})")
_NEVER_HEADER: Final = re.compile(r"[ \t>]*(?:[-*+][ \t]+[^*]|[0-9|`])")
_NO_LETTERS: Final = re.compile(r"<[^<>]*>|[\W\d_]+")
_HEADER: Final = re.compile(  # its letters
    "sources?|sourcesused|keysources|references?|citations?|bibliography|workscited|quellen?|fuentes?|références?"
    "|referencias?|fonti|fontes|bronnen|источники|来源|來源|参考资料|參考資料|출처|出典|出典一覧|出所|情報源|主な情報源"
    "|参考|参考文献|参考資料|参考情報|参考リンク|参考サイト|引用|引用元|引用文献|参照|参照元|参照先|ソース",
    re.IGNORECASE,
)
_AMONG_OTHERS: Final = re.compile(
    r"\b(?:sources|references|citations)\b|出典|出所|情報源|参考|引用|参照|ソース", re.IGNORECASE
)
_TITLE: Final = re.compile(
    rf"{_ADDRESS}|\[[^\[\]]*\]|\*[^*]+\*|\"[^\"]*\"|“[^“”]*”|「[^「」]*」|『[^『』]*』", re.IGNORECASE
)
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
    top, left, blank = len(lines), _MOST_HEADERS, False
    kept: list[str] = []
    dates: dict[str, str] = {}
    for at in range(top - 1, -1, -1):
        line = lines[at]
        # With a source on its line, and right below another line, it says where that is from.
        if left and may_head(line) and not (at and lines[at - 1].strip() and _BEGINS.search(line)):
            left -= 1
            if (block := _read(line, lines[at + 1 : top], citations, newest)) is not None:
                top, kept, dates = at, [*block[0], *kept], block[1] | dates
                continue
        if not may_list(line) and (blank or top < len(lines) or _NEVER_LISTED.match(line)):
            break
        blank = blank or not line.strip()
    while top and (drawn := _drawn(lines[top - 1])) and not drawn[1]:
        top -= 1
    body = (text[:begin] + "\n".join(lines[:top])).rstrip()
    found = tuple(replace(each, published_at=dates[key]) if key in dates else each for key, each in citations.items())
    return "\n\n".join(filter(None, (body, "\n".join(kept).strip("\n")))), found


# Where the block is


def may_head(line: str) -> bool:
    """Tell whether a line may be the header of a block, perhaps with a source behind its colon."""
    if _NEVER_HEADER.match(line):
        return False
    if _HEADER.fullmatch(_label(line)):
        return True
    return (
        len(line) <= LONGEST_HEADER and bool(_AMONG_OTHERS.search(line)) and not (_stops(line) or _BEGINS.search(line))
    )


def may_list(line: str) -> bool:
    """Tell whether a line may be one of a block."""
    if _NEVER_LISTED.match(line):
        return False
    return bool(_MARK.match(line) or _BEGINS.search(line)) or (len(line) <= _LONGEST_NAME and not _stops(line))


def _label(line: str) -> str:
    """Return the letters in front of the colon of a line."""
    return _NO_LETTERS.sub("", line[:LONGEST_HEADER].replace("：", ":").partition(":")[0])


def _drawn(line: str) -> re.Match[str] | None:
    return _DRAWN.fullmatch(line.lstrip(" \t\u3000>").rstrip())


def _stops(line: str) -> bool:
    return line.rstrip(" \t*_").endswith((*".。!?！？…",))


def _says_more(line: str) -> bool:
    """Tell whether a line has a sentence in it, beside titles and addresses."""
    *sentences, _ = _SENTENCE_ENDS.split(_TITLE.sub(" ", line))
    return any(len(_WORD.findall(each)) >= _FEWEST_WORDS for each in sentences)


def _read(
    header: str, lines: Sequence[str], known: Collection[str], newest: date
) -> tuple[list[str], dict[str, str]] | None:
    """Return what stays of the lines behind a header, and the dates of the sources; None if they are no block."""
    listed, kept = _parted(lines)
    alone = bool(_HEADER.fullmatch(_label(header)))
    source = header.replace("：", ":").partition(":")[2] if alone else ""
    inline = bool(_NO_LETTERS.sub("", source))
    found = [list(_marks(item[:_LONGEST_ITEM], known, newest)) for item in _items([source, *listed])]
    pages = [mark for marks in found for mark in marks if isinstance(mark, str)]
    dated = any(isinstance(mark, WrittenDate) for marks in found for mark in marks)
    if inline:
        is_block = bool(pages) and not _says_more(source)
    elif alone:
        is_block = bool(pages) or dated or not (listed or kept)
    else:  # a line about sources is a header only above dated ones that are all cited
        is_block = bool(pages) and all(pages) and dated and not kept
    if not is_block or not all(map(str.strip, kept)):
        return None
    return kept, {page: iso for marks in reversed(found) for page, iso in _beside(marks)}


def _parted(lines: Sequence[str]) -> tuple[list[str], list[str]]:
    """Part the lines behind a header: those that name sources and say no more, and what stays of the text."""
    listed: list[str] = []
    kept: list[str] = []
    marked, below = False, True  # an item with a mark; or directly below the header, or a source
    for at, line in enumerate(lines):
        mark, address, more = _MARK.match(line), _BEGINS.search(line), _says_more(line)
        if _drawn(line):
            below = not listed
        elif mark and (more or not (address or not _stops(line))):
            kept.append(line)
        elif not more and (mark or address or (below and may_list(line) and not (marked and line[:1].strip()))):
            listed.append(line)
            below = True
        else:
            return listed, [*kept, *lines[at:]]
        marked = marked or bool(mark)
    return listed, kept


# Which dates are in it


def _items(lines: Iterable[str]) -> Iterator[str]:
    """Yield the items of a list, each with all below it; lines without marks are one."""
    item: list[str] = []
    depth = -1
    for line in lines:
        mark = _MARK.match(line)
        if mark and (depth < 0 or len(mark[1]) <= depth):
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
