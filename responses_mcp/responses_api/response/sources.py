"""The `Sources:` block of an answer: the server writes it, from the citations (spec 3.2).

A model often ends its answer in a block of its own: a header, and lines of sources. It is cut off and read for dates; a
block with anything else in it, or behind it, stays. While the text is written, `WrittenText` holds back what may be
that block.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import date
from itertools import islice
from typing import Final

from responses_mcp.json_types import JsonObject
from responses_mcp.responses_api.response.web_pages import page_key, without_marks
from responses_mcp.sanitization import sanitized
from responses_mcp.secrets import Redact

_LONGEST_HEADER: Final = 80  # characters
_MOST_LINES: Final = 200  # at the end of an answer, in which its block is looked for
_LONGEST_LINE: Final = 2_000  # characters of a source
_MOST_ENDS: Final = 5  # of an address
_FEWEST_WORDS: Final = 3  # of a sentence beside a source; "JMA, published 2026-11-20." is none

_ADDRESS: Final = r"(?i:https?://)[^\s<>\"\\^`{|}、。，．！？：；「」『』（）【】〔〕〈〉《》［］“”…]{1,1000}"
_TOUCHING: Final = re.compile(r"[()\[\]]|[^\x00-\x7f]")
_DRAWN: Final = re.compile(r"[ \t\u3000>]*(?:<(/?)(?:details|summary|div|ul|ol|p|hr)[^<>]{0,80}>|[-=*_][-=*_ ]{2,99}|)")
_MARKED: Final = re.compile(r"[ \t\u3000>]*(?:[-*+][ \t]|[•・|]|[0-9]{1,3}[.)](?![0-9])|\[\^?\w{1,4}\])|[ \t\u3000]")
_DATED_OR_LINKED: Final = re.compile("https?://|[0-9]{4} ?[-/.年]", re.IGNORECASE)
_NEVER_HEADER: Final = re.compile(r"[ \t>]*(?:[-*+][ \t]+[^*]|[0-9|`])")
_FOR_SOURCES: Final = re.compile(  # lower-case; without a flag, a search skips to their first letters
    r"sources?|references?|refs?\b|citations?|bibliography|works cited|quellen?|fuentes?|referencias?|fontes?|fonti"
    r"|références|bronnen|источники|출처|참고|出典|出所|情報源|参考|參考|引用|参照|ソース|来源|來源"
)
_BESIDE_IT: Final = re.compile(  # what else a header may have
    r"<[^<>]*>|[(（][^()（）]*[)）]|[\W\d_]|主な|文献|資料|资料|情報|リンク|链接|サイト|した|元|先|一覧|자료"
    r"|(?<![a-z])(?:key|main|primary|official|further|reading|web|list|of|and|used|in|this|answer|the|with|cited"
    r"|consulted|consultadas|accessed|dates?|links?|urls?)(?![a-z])"
)
_TITLE: Final = re.compile(  # of a source; or words in front of a date
    rf"{_ADDRESS}|\[[^\[\]]*\]|\*[^*]+\*|\"[^\"]*\"|「[^「」]*」|published|accessed|updated|retrieved", re.IGNORECASE
)
_SENTENCE_ENDS: Final = re.compile(r"[.!?](?=[\s)\"'”*_]|\Z)|[。！？…]")
_WORD: Final = re.compile(r"[\u3041-\u309f]|[\u30a0-\u30ff\u3400-\u9fff]{2}|[^\W\d_\u3041-\u30ff\u3400-\u9fff]+")
_INDENTED: Final = re.compile(r"[ \t\u3000]")
_FIRST: Final = date(1900, 1, 1)
_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAY: Final = r"([0-9]{1,2})(?:st|nd|rd|th|)"
_DATE: Final = re.compile(
    r"(?<![0-9])([0-9]{4}) ?[-/.年] ?([0-9]{1,2}) ?[-/.月] ?([0-9]{1,2})(?![0-9])"
    rf"|(?<![0-9A-Za-z])(?:{_DAY} |)({'|'.join(_MONTHS)})[a-z]{{0,6}}\.?(?: {_DAY}|),? ([0-9]{{4}})(?![0-9])",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Citation:
    """One source: its URL, or the API's name for a source without one (such as `oai-weather`), with its kind as title.

    `published_at` is "" where nothing tells it yet.
    """

    url: str
    title: str | None = None
    published_at: str = ""

    @property
    def is_page(self) -> bool:
        """Tell whether the source has a URL."""
        return page_key(self.url) is not None

    def as_json(self) -> JsonObject:
        """Return the object of the output contract; an unknown title is left out."""
        return {"url": self.url, **({"title": self.title} if self.title else {}), "published_at": self.published_at}


def choose_citations(cited: Iterable[Citation], consulted: Iterable[Citation], *, limit: int) -> dict[str, Citation]:
    """Pick at most `limit` citations: cited URLs in order of appearance, else consulted URLs; then named sources.

    `cited` are the answer's annotations. When the cut would drop every named source, the last of several places goes to
    the first of them. Keys are those of pages, and names. Mentions of one page are joined: the first form of its URL,
    and the first title and date that say anything.
    """
    merged: dict[tuple[int, str], Citation] = {}
    for rank, mentions in enumerate((cited, consulted)):
        for each in mentions:
            key = page_key(each.url)
            place = (rank, key) if key is not None else (2, each.url)
            first = merged.get(place, each)
            merged[place] = Citation(first.url, first.title or each.title, first.published_at or each.published_at)
    of_rank = [[(place[1], each) for place, each in merged.items() if place[0] == rank] for rank in range(3)]
    pages, names, limit = of_rank[0] or of_rank[1], of_rank[2], max(1, limit)
    kept = [*pages, *names][:limit]
    if names and len(pages) >= limit > 1:
        kept[-1] = names[0]
    return dict(kept)


def written(citations: Iterable[Citation], accessed: str) -> str:
    """Return the block for these citations; the search itself is named where there are none."""
    lines = [f"- {citation.url} ({citation.published_at})" for citation in citations]
    return "\n".join(["Sources:", *(lines or [f"- web_search ({accessed})"])])


def without_block(text: str, citations: Mapping[str, Citation], today: date) -> tuple[str, tuple[Citation, ...]]:
    """Return an answer without blocks of the model's own, and the citations with the block's dates, or `today`."""
    lines = text.rstrip().rsplit("\n", _MOST_LINES)
    dates: dict[str, str] = {}
    while (top := _block(lines)) is not None:
        block = [_header(lines[top]) or "", *lines[top + 1 :]]
        told = _dates(block, citations, today)
        if told is None and not all(map(_is_drawn, block)):
            break
        dates = {**(told or {}), **dates}
        del lines[top:]
    while lines and (drawn := _DRAWN.fullmatch(lines[-1].rstrip())) and not drawn[1]:
        lines.pop()
    accessed = today.isoformat()
    dated = (
        replace(each, published_at=dates.get(key) or each.published_at or accessed) for key, each in citations.items()
    )
    return "\n".join(lines).rstrip(), tuple(dated)


class WrittenText:
    """Takes the text, cut anywhere, and tells `on_text` its whole lines; "" says that it begins, maybe once more.

    From what may be the header of the last block nothing is told.
    """

    def __init__(self, on_text: Callable[[str], None], redact: Redact) -> None:
        self._on_text = on_text
        self._redact = redact
        self._line: list[str] = []  # which waits for its end
        self._is_held = False  # a header has come

    def take(self, delta: str) -> None:
        """Take the next piece from the API; an empty one says that an answer begins."""
        if not delta:
            self._line, self._is_held = [], False
            self._on_text("")
        if self._is_held:
            return
        self._line.append(delta)
        if "\n" not in delta:
            return
        text, _, rest = "".join(self._line).rpartition("\n")
        self._line = [rest]
        lines = without_marks(sanitized(text.removesuffix("\r")), self._redact).split("\n")
        header = next((at for at, line in enumerate(lines) if _header(line) is not None), len(lines))
        self._is_held = header < len(lines)
        if header:
            self._on_text("\n".join([*lines[:header], ""]))


# Where the block is


def _block(lines: list[str]) -> int | None:
    """Return where the header of the last block stands; None if anything but sources is behind the last header."""
    for at in reversed(range(len(lines) > _MOST_LINES, len(lines))):
        if len(lines[at]) > _LONGEST_LINE:
            return None
        if (source := _header(lines[at])) is not None:
            # With a source on its line, and right below another line, a header says where that is from.
            if not source or not at or _is_drawn(lines[at - 1]):
                return at
        elif not _is_drawn(lines[at]) and not _is_source(lines[at]):
            return None
    return None


def _header(line: str) -> str | None:
    """Return the source on the line of a header, "" for a header alone; None if the line is no header."""
    label, _, source = line.replace("：", ":").partition(":")
    if len(label) > _LONGEST_HEADER or _NEVER_HEADER.match(line):
        return None
    others, words = _FOR_SOURCES.subn("", label.lower())
    if not words or _BESIDE_IT.sub("", others) or _has_sentence(source, _FEWEST_WORDS):
        return None
    return source if _WORD.search(source) else ""


def _is_source(line: str) -> bool:
    """Tell whether a line with words is a source of a list, without a sentence about it; a fence is none."""
    if line.lstrip(" \t>").startswith(("```", "~~~")):
        return False
    names_one = _DATED_OR_LINKED.search(line) is not None
    return (names_one or _MARKED.match(line) is not None) and not _has_sentence(line, _FEWEST_WORDS if names_one else 1)


def _is_drawn(line: str) -> bool:
    """Tell whether a line is blank, a rule, or a tag of HTML around a list."""
    return _DRAWN.fullmatch(line.rstrip()) is not None


def _has_sentence(line: str, fewest: int) -> bool:
    """Tell whether a line has a sentence of so many words, beside titles and addresses."""
    *sentences, _ = _SENTENCE_ENDS.split(_TITLE.sub(" ", line))
    return any(len(_WORD.findall(each)) >= fewest for each in sentences)


# Which dates are in it


def _dates(lines: list[str], known: Collection[str], today: date) -> dict[str, str] | None:
    """Return the date of each `known` source; None if no line has any source, or a date.

    The sources of a line have its dates in turn, where there is one for each; the last of them has that of an indented
    line below.
    """
    names = (rf"(?<![\w-]){re.escape(name)}(?![A-Za-z0-9_-])" for name in known if "?" not in name)
    mention = re.compile("|".join([_ADDRESS, *names]))
    dates: dict[str, str] = {}
    is_block, above = False, ""
    for line in filter(str.strip, lines):
        pages, words, at = dict[str, None](), list[str](), 0
        while found := mention.search(line, at):
            page, length = (found[0], len(found[0])) if found[0] in known else _page(found[0], known)
            pages[page] = None
            words.append(line[at : found.start()])
            at = found.start() + length
        dated = _DATE.finditer(" ".join([*words, line[at:]]))
        days = [day for found in dated if (day := _calendar_date(found, today))]
        is_block = is_block or bool(pages or days)
        if not pages:
            pages = {above if _INDENTED.match(line) else "": None}
        above = next(reversed(pages))
        if len(days) >= len(pages):
            dates = {**dict(zip(pages, days, strict=False)), **dates}
    return dates if is_block else None


def _page(address: str, known: Collection[str]) -> tuple[str, int]:
    """Return which of the `known` sources an address is, and its length; it ends sooner where words touch it."""
    ends = [found.start() for found in islice(_TOUCHING.finditer(address), _MOST_ENDS)]
    for end in (len(address), *reversed(ends)):
        candidate = address[:end].rstrip(".,;:!?'*_~&")
        page = page_key(candidate) or candidate
        if page in known:
            return page, len(candidate)
    return "", min(ends, default=len(address))


def read_date(value: object, newest: date) -> str | None:
    """Return the calendar date with which a value begins as YYYY-MM-DD, if it is not after `newest`."""
    found = _DATE.match(value.lstrip()) if isinstance(value, str) else None
    return _calendar_date(found, newest) if found else None


def _calendar_date(found: re.Match[str], newest: date) -> str | None:
    """Return the day that a match means; None if no calendar has it, or it is after `newest`."""
    year, month, day, before, name, behind, of = found.groups()
    if name:
        year, month, day = of, str(_MONTHS.index(name.lower()) + 1), before or behind or "0"
    try:
        meant = date(int(year), int(month), int(day))
    except ValueError:
        return None
    return meant.isoformat() if _FIRST <= meant <= newest else None
