"""The `Sources:` block of an answer: the server writes it, from the citations (spec 3.2).

A model often ends its answer in a block of its own: a header, its sources, and perhaps one more paragraph. The header
and the sources are taken out and read for dates; what says more than that stays. Lines are read from the end of the
text up to the first that belongs to no block, so the work is linear, and a second pass changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date
from itertools import islice, pairwise
from typing import Final, Literal

from responses_mcp.json_types import JsonObject
from responses_mcp.responses_api.response.dates import WrittenDate, dates_in
from responses_mcp.responses_api.response.web_pages import page_key, without_tracking

LONGEST_HEADER: Final = 80  # characters
_LOOKED_THROUGH: Final = 64 * 1024  # characters at the end of an answer
_MOST_HEADERS: Final = 10
_LONGEST_ITEM: Final = 4 * 1024
_MOST_ENDS: Final = 5  # of an address
_FEWEST_WORDS: Final = 3  # of a sentence; "JMA, published 2026-11-20." is none

_IS_URL: Final = re.compile("https?://", re.IGNORECASE)
_ADDRESS: Final = r"https?://[^\s<>\"\\^`{}|、。，．！？：；「」『』（）【】〔〕〈〉《》［］“”…]{1,1000}"
_TOUCHING: Final = re.compile(r"[()\[\]]|[^\x00-\x7f]")
_NAMES_ONE: Final = re.compile("https?://|[0-9]{4} ?[-/.年]", re.IGNORECASE)  # an address, or a date
_DRAWN: Final = re.compile(r"[ \t\u3000>]*(?:<(/?)(?:details|summary|div|ul|ol|p|hr)[^<>]{0,80}>|[-=*_][-=*_ ]{2,99}|)")
_FENCE: Final = re.compile(r"[ \t>]*(?:`{3}|~{3})")
_MARK: Final = r"(?:[-*+](?=[ \t])|[•・‣◦●○■□◆◇①-⑳|]|[0-9０-９]{1,3}[.)．）](?![0-9０-９])|\[\^?\w{1,4}\])"
_MARKED: Final = re.compile(rf"^([ \t\u3000>]*){_MARK}", re.MULTILINE)
_ITEM: Final = re.compile(rf"[ \t\u3000>]*{_MARK}|[ \t\u3000]")  # or what belongs to one
_NEVER_HEADER: Final = re.compile(r"[ \t>]*(?:[-*+][ \t]+[^*]|[0-9|`])")
_NO_LETTERS: Final = re.compile(r"<[^<>]*>|[(（][^()（）]*[)）]|[\W\d_]+")
_WORD_FOR_SOURCES: Final = re.compile(
    r"(?<![^\W_])(?:sources?|references?|citations?|bibliography|works cited|quellen|fuentes|références|referencias"
    r"|fonti|источники)(?![^\W_])|参考资料|來源|来源|출처|(?:主な)?(?:出典|出所|情報源|参考|引用|参照|(?<!リ)ソース)"
    r"(?:文献|資料|情報|リンク|サイト|元|先|一覧)?",
    re.IGNORECASE,
)
_TITLE: Final = re.compile(  # of a source; or words in front of a date
    rf"{_ADDRESS}|\[[^\[\]]*\]|\*[^*]+\*|\"[^\"]*\"|「[^「」]*」|published|accessed|updated|retrieved", re.IGNORECASE
)
_SENTENCE_ENDS: Final = re.compile(r"[.!?](?=[\s)\"'”*_]|\Z)|[。！？…]")
_WORD: Final = re.compile(r"[\u3041-\u309f]|[\u30a0-\u30ff\u3400-\u9fff]{2}|[^\W\d_\u3041-\u30ff\u3400-\u9fff]+")


@dataclass(frozen=True, slots=True)
class Citation:
    """One source: its URL, or the API's name for a source without one (such as `oai-weather`), with its kind as title.

    `published_at` is "" where nothing tells it yet.
    """

    url: str
    title: str | None = None
    published_at: str = ""

    def as_json(self) -> JsonObject:
        """Return the object of the output contract; an unknown title is left out."""
        shown: JsonObject = {"url": self.url}
        if self.title:
            shown["title"] = self.title
        shown["published_at"] = self.published_at
        return shown


def choose_citations(
    cited: Iterable[Citation], consulted: Iterable[Citation], *, limit: int, date: str
) -> dict[str, Citation]:
    """Pick at most `limit` citations: cited URLs in order of appearance, else consulted URLs; then named sources.

    `cited` are the answer's annotations; `date` is that of what tells none. When the cut would drop every named
    source, the last of several places goes to the first of them, so that where the facts came from stays visible.
    Keys are those of pages, and names.
    """
    limit = max(1, limit)
    consulted = list(consulted)
    pages = _merged(cited) or _merged((each for each in consulted if _IS_URL.match(each.url)), most=limit)
    names = _merged(each for each in consulted if not _IS_URL.match(each.url))
    kept = [*pages, *names][:limit]
    if names and len(pages) >= limit > 1:
        kept[-1] = next(iter(names))
    found = {key: {**pages, **names}[key] for key in kept}
    return {key: each if each.published_at else replace(each, published_at=date) for key, each in found.items()}


def _merged(mentions: Iterable[Citation], *, most: int | None = None) -> dict[str, Citation]:
    """Join mentions of one page: the first form of its URL, and the first title and date that say anything.

    With `most`, what comes after so many different pages is not looked at.
    """
    merged: dict[str, Citation] = {}
    for mention in mentions:
        url = without_tracking(mention.url)
        page = page_key(url) or url
        first = merged.get(page, Citation(url))
        merged[page] = Citation(first.url, first.title or mention.title, first.published_at or mention.published_at)
        if len(merged) == most:
            break
    return merged


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
            found = _dates(line, listed[::-1], [*kept, *lines[behind:]], citations, newest)
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
    stays = "\n".join([*kept[::-1], *lines[behind:]]) if top < len(lines) else ""
    while top and (drawn := _DRAWN.fullmatch(lines[top - 1].rstrip())) and not drawn[1]:
        top -= 1
    body = (text[:begin] + "\n".join(lines[:top])).rstrip()
    cited = (replace(each, published_at=dates[key]) if key in dates else each for key, each in citations.items())
    return "\n\n".join(filter(None, (body, stays.rstrip()))), tuple(cited)


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
    if _says_more(line) or not (names_one or (item and not _stops(line))):
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


def _dates(
    header: str, listed: list[str], stays: list[str], known: Collection[str], newest: date
) -> dict[str, str] | None:
    """Return the dates of sources in the lines below a header, those that only name some first; None if no block."""
    alone, source = _header(header) or (False, "")
    block = "\n".join([source, *listed])
    marked = list(_MARKED.finditer(block))
    begins = [mark.start() for mark in marked if len(mark[1]) <= len(marked[0][1])]  # what is deeper belongs to it
    parts = pairwise([0, *begins, len(block)])
    names = (rf"(?<![\w-]){re.escape(name)}(?![A-Za-z0-9_-])" for name in known if "?" not in name)
    mention = re.compile("|".join([_ADDRESS, *names]), re.IGNORECASE)
    items = [list(_marks(block[start:end], mention, known, newest)) for start, end in parts]
    pages = [mark for marks in items for mark in marks if isinstance(mark, str)]
    dated = any(isinstance(mark, WrittenDate) for marks in items for mark in marks)
    if source:
        is_block = bool(pages) and not _says_more(source)
    elif alone:
        is_block = bool(pages) or dated or not (listed or stays)
    else:  # a line about sources is a header only above dated ones that are all cited
        is_block = bool(pages) and all(pages) and dated and not stays
    if not is_block:
        return None
    items += [list(_marks(line, mention, known, newest)) for line in stays]
    return {page: iso for marks in reversed(items) for page, iso in _beside(marks)}


def _marks(item: str, mention: re.Pattern[str], known: Collection[str], newest: date) -> Iterator[str | WrittenDate]:
    """Yield the sources that an item mentions, "" for one that is not `known`, and its dates, in order."""
    item = item[:_LONGEST_ITEM]
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
    ends = [found.start() for found in islice(_TOUCHING.finditer(address), _MOST_ENDS)]
    for end in (len(address), *reversed(ends)):
        candidate = address[:end].rstrip(".,;:!?'*_~&")
        page = page_key(candidate) or candidate
        if page in known:
            return page, len(candidate)
    return "", min(ends, default=len(address))


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
