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
from itertools import islice
from math import inf
from typing import Final, Literal

from responses_mcp.json_types import JsonObject
from responses_mcp.responses_api.response.dates import DATE, calendar_date
from responses_mcp.responses_api.response.web_pages import page_key

LONGEST_HEADER: Final = 80  # characters
_MOST_LINES: Final = 1_000  # at the end of an answer, in which its block is looked for
_MOST_ENDS: Final = 5  # of an address
_FEWEST_WORDS: Final = 3  # of a sentence; "JMA, published 2026-11-20." is none

_IS_URL: Final = re.compile("https?://", re.IGNORECASE)
_ADDRESS: Final = r"https?://[^\s<>\"\\^`{}|、。，．！？：；「」『』（）【】〔〕〈〉《》［］“”…]{1,1000}"
_TOUCHING: Final = re.compile(r"[()\[\]]|[^\x00-\x7f]")
_NAMES_ONE: Final = re.compile("https?://|[0-9]{4} ?[-/.年]", re.IGNORECASE)  # an address, or a date
_DRAWN: Final = re.compile(r"[ \t\u3000>]*(?:<(/?)(?:details|summary|div|ul|ol|p|hr)[^<>]{0,80}>|[-=*_][-=*_ ]{2,99}|)")
_ITEM: Final = re.compile(  # a mark in front, or a line that belongs to one
    r"[ \t\u3000>]*(?:[-*+][ \t]|[•・‣◦●○■□◆◇①-⑳|]|[0-9０-９]{1,3}[.)．）](?![0-9０-９])|\[\^?\w{1,4}\])|[ \t\u3000]"
)
_NEVER_HEADER: Final = re.compile(r"[ \t>]*(?:[-*+][ \t]+[^*]|[0-9|`])")
_FOR_SOURCES: Final = re.compile(
    r"(?<![^\W_])(?:sources?|r[eé]f[eé]ren(?:ces?|cias|zen)|citations?|bibliography|works cited|fuentes|fonti|источники"
    r"|(?:internet|online|web)?quellen?(?:angaben?|verzeichnis|nachweise?)?|(?:einzel)?nachweise?|belege"
    r"|literatur(?:angaben|verzeichnis)?)(?![^\W_])"
    r"|(?:主な|主要|資料|资料|信息){0,3}(?:出典|出所|出处|出處|情報源|参考|參考|引用|参照|(?<!リ)ソース|来源|來源|출처)"
    r"(?:文献|文獻|資料|资料|情報|リンク|サイト|にした|した|链接|連結|网站|網站|网址|来源|來源|元|先|一覧){0,3}",
    re.IGNORECASE,
)
_BESIDE_IT: Final = re.compile(  # what a header may have beside such a word and still be one of no other words
    r"<[^<>]*>|[(（][^()（）]*[)）]|[\W\d_]|(?<![^\W_])(?:key|main|web|other|further|list|of|and|used|cited|consulted|dates?"
    r"|links?|urls?|und|weitere)(?![^\W_])",
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


def choose_citations(cited: Iterable[Citation], consulted: Iterable[Citation], *, limit: int) -> dict[str, Citation]:
    """Pick at most `limit` citations: cited URLs in order of appearance, else consulted URLs; then named sources.

    `cited` are the answer's annotations. When the cut would drop every named source, the last of several places goes to
    the first of them, so that where the facts came from stays visible. Keys are those of pages, and names.
    """
    limit = max(1, limit)
    consulted = list(consulted)
    pages = _merged(cited) or _merged((each for each in consulted if _IS_URL.match(each.url)), most=limit)
    names = _merged(each for each in consulted if not _IS_URL.match(each.url))
    kept = [*pages.items(), *names.items()][:limit]
    if names and len(pages) >= limit > 1:
        kept[-1] = next(iter(names.items()))
    return dict(kept)


def _merged(mentions: Iterable[Citation], *, most: int | None = None) -> dict[str, Citation]:
    """Join mentions of one page: the first form of its URL, and the first title and date that say anything.

    With `most`, what comes after so many different pages is not looked at.
    """
    merged: dict[str, Citation] = {}
    for mention in mentions:
        page = page_key(mention.url) or mention.url
        first = merged.get(page, mention)
        merged[page] = Citation(first.url, first.title or mention.title, first.published_at or mention.published_at)
        if len(merged) == most:
            break
    return merged


def written(citations: Iterable[Citation], accessed: str) -> str:
    """Return the block for these citations; the search itself is named where there are none."""
    lines = [f"- {citation.url} ({citation.published_at})" for citation in citations]
    return "\n".join(["Sources:", *(lines or [f"- web_search ({accessed})"])])


def without_block(text: str, citations: Mapping[str, Citation], today: date) -> tuple[str, tuple[Citation, ...]]:
    """Return an answer without the model's own block, and the citations, each with its date.

    That is the one that the block has, else the citation's own, else `today`. Days that have not come are none.
    """
    lines = text.rstrip().rsplit("\n", _MOST_LINES)
    top = len(lines)  # of the block
    listed: list[str] = []  # the lines of sources below this one, from the last to the first
    stays: list[str] = []  # the others: items that say more, and the paragraph behind them
    parted = False  # a blank line has something behind it
    behind: list[str] = []  # what stays of a block
    dates: dict[str, str] = {}
    for at in reversed(range(max(top - _MOST_LINES, 0), top)):
        line, header = lines[at], header_of(lines[at])
        # With a source on its line, and right below another line, a header says where that is from.
        if header and not (header[1] and at and kind_of(lines[at - 1]) != "blank"):
            found = _dates(header, listed[::-1], stays, citations, today)
            if found is not None:
                top, behind, stays, listed, dates = at, behind + stays, [], [], found | dates
                continue
        kind = kind_of(line)
        if kind == "source":
            listed.append(line)
        elif kind == "blank":
            parted = parted or bool(listed or stays)
        elif kind == "code" or top < len(lines) or (kind == "text" and parted):
            break
        elif kind == "item":
            stays = [line, *stays]
        else:
            stays, listed = lines[at:], []
    while top and (drawn := _DRAWN.fullmatch(lines[top - 1].rstrip())) and not drawn[1]:
        top -= 1
    parts = ("\n".join(each).rstrip() for each in (lines[:top], behind))
    accessed = today.isoformat()
    dated = (
        replace(each, published_at=dates.get(key) or each.published_at or accessed) for key, each in citations.items()
    )
    return "\n\n".join(filter(None, parts)), tuple(dated)


# Where the block is


def header_of(line: str) -> tuple[bool, str] | None:
    """Return whether a header has no words but those for sources, and what is behind its colon; None if it is none."""
    label, _, source = line.replace("：", ":").partition(":")
    if len(label) > LONGEST_HEADER or source.startswith("//") or _NEVER_HEADER.match(line):
        return None
    others, words = _FOR_SOURCES.subn("", label)
    is_alone = not _BESIDE_IT.sub("", others)
    if not words or _says_more(source) or (_stops(label) and not is_alone):
        return None
    return is_alone, source if _BESIDE_IT.sub("", source) else ""


def kind_of(line: str) -> Literal["blank", "code", "source", "item", "text"]:
    """Return what a line below a header is; an "item" and "text" say more than their source, or have none."""
    if _DRAWN.fullmatch(line.rstrip()):
        return "blank"
    if line.lstrip(" \t>").startswith(("```", "~~~")):
        return "code"
    is_item = _ITEM.match(line)
    if (_NAMES_ONE.search(line) or (is_item and not _stops(line))) and not _says_more(line):
        return "source"
    return "item" if is_item else "text"


def _stops(line: str) -> bool:
    return line.rstrip(" \t*_").endswith((*".。!?！？…",))


def _says_more(line: str) -> bool:
    """Tell whether a line has a sentence in it, beside titles and addresses."""
    *sentences, _ = _SENTENCE_ENDS.split(_TITLE.sub(" ", line))
    return any(len(_WORD.findall(each)) >= _FEWEST_WORDS for each in sentences)


# Which dates are in it


def _dates(
    header: tuple[bool, str], listed: list[str], stays: list[str], known: Collection[str], today: date
) -> dict[str, str] | None:
    """Return the dates of sources in the lines below a header, those that only name some first; None if no block."""
    is_alone, source = header
    pages, dates = _read([source, *listed], known, today)
    if is_alone:
        is_block = bool(pages) or bool(dates and not source) or not (source or listed or stays)
    else:  # a line about sources is a header only above dated ones that are all cited
        is_block = bool(pages) and all(pages) and bool(dates) and not stays
    return _read(stays, known, today)[1] | dates if is_block else None


def _read(lines: list[str], known: Collection[str], today: date) -> tuple[list[str], dict[str, str]]:
    """Return the sources that lines mention, "" for one that is not `known`, and the first date beside each.

    Within an item, which a line is with the deeper ones below it, dates stand behind their sources; or in front of them
    where it begins with a date and ends with a source.
    """
    names = (rf"(?<![\w-]){re.escape(name)}(?![A-Za-z0-9_-])" for name in known if "?" not in name)
    mention = re.compile("|".join([_ADDRESS, DATE, *names]), re.IGNORECASE)
    items: list[list[str | date]] = []
    depth = inf
    for line in filter(None, lines):
        indent = len(line) - len(line.lstrip(" \t\u3000>"))
        if indent <= depth:
            depth = indent
            items.append([])
        items[-1] += _marks(line, mention, known, today)
    dates: dict[str, str] = {}
    for item in items:
        if item and isinstance(item[0], date) and isinstance(item[-1], str):
            item.reverse()
        page = ""
        for mark in item:
            if isinstance(mark, str):
                page = mark
            else:
                dates.setdefault(page, mark.isoformat())
    return [mark for item in items for mark in item if isinstance(mark, str)], dates


def _marks(line: str, mention: re.Pattern[str], known: Collection[str], today: date) -> Iterator[str | date]:
    """Yield the sources that a line mentions, and its dates, but for those within an address: they may say anything."""
    at = 0
    while found := mention.search(line, at):
        at = found.end()
        if found.lastindex is None:
            page, length = _page(found[0], known)
            at = found.start() + length
            yield page
        elif day := calendar_date(found, today):
            yield day


def _page(address: str, known: Collection[str]) -> tuple[str, int]:
    """Return which of the `known` sources an address is, and its length; it ends sooner where words touch it."""
    ends = [found.start() for found in islice(_TOUCHING.finditer(address), _MOST_ENDS)]
    for end in (len(address), *reversed(ends)):
        candidate = address[:end].rstrip(".,;:!?'*_~&")
        page = page_key(candidate) or candidate
        if page in known:
            return page, len(candidate)
    return "", min(ends, default=len(address))
