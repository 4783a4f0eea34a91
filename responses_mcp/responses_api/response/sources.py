"""The `Sources:` block of an answer: the server writes it, from the citations (spec 3.2).

A model often ends its answer in a block of its own: a header, and nothing but sources behind it. That block is cut off
and read for dates; prose is never changed. `split` reads lines from the end of the text and stops at the first line
that is neither a source nor a header, so it is linear, and a block it has cut off cannot come back.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date
from itertools import pairwise
from typing import Final

from responses_mcp.responses_api.response.citations import Citation
from responses_mcp.responses_api.response.dates import WrittenDate, dates_in
from responses_mcp.responses_api.response.web_pages import page_key

LONGEST_HEADER: Final = 80  # characters
_LOOKED_THROUGH: Final = 128 * 1024  # characters at the end of an answer in which a block is looked for
_MOST_TRIED: Final = 10  # lines that could be a header, and are none
_LONGEST_NAME: Final = 200  # characters of a line that names a source without an address
_READ_FOR_DATES: Final = 32 * 1024  # characters of a block
_LONGEST_ENTRY: Final = 4 * 1024  # characters of one of its items
_MOST_ENDS: Final = 3  # places in an address where it may end
_BEHIND: Final = ".,;:!?'*_~&(["  # what ends a sentence or emphasis, and no address

_ADDRESS: Final = re.compile(
    r"https?://[^\s<>\"\\^`{}|、。，．！？：；「」『』（）【】〔〕〈〉《》［］“”…]+", re.IGNORECASE
)
_MARKER: Final = re.compile(
    r"[ \t\u3000>]*(?:[-*+](?![^ \t\r])|[•・‣◦●○■□◆◇①-⑳]|[0-9０-９]{1,3}[.)．）](?![0-9０-９])|\[\^?[0-9A-Za-z]{1,4}\])"
)
_NO_WORDS: Final = re.compile(r"[ \t>]*(?:<[^<>\n]{1,80}>|-{2,99}|={2,99})[ \t\r]*")  # a tag, a line drawn
_FENCE: Final = re.compile(r"[ \t>]*(?:`{3}|~{3})")
_LEAD: Final = re.compile(r"[ \t>]*+(?:\*\*[^*]*\*\*|.*[:：])[ \t\r]*")
_SENTENCE: Final = re.compile(r"[^\W\d_][.。!?！？…][*_\"'”」）)]*$")
_STOPS: Final = tuple(".。!?！？…")

# Headers. Every word of a line is one of these, and one at least names sources; or the line has such a word among
# others, which is a header only above dated addresses that are all cited.
_NAMES_SOURCES: Final = re.compile(
    r"sources?|references?|citations?|bibliography|works"
    r"|quellen?|quellenangaben|fuentes?|références?|referencias?|referências?|fonti|fontes|bronnen|источники"
    r"|来源|來源|参考资料|參考資料|출처|참고자료"
    r"|(?:主な|参考にした|参照した|使用した)?(?:参考(?:文献|資料|情報|リンク|サイト|ページ|url|元|記事)?|出典元?|出所|情報[源元]|引用(?:文献|元)?|参照[元先]?|ソース)"
    r"(?:一覧|リスト|リンク|url)?",
)
_AROUND: Final = ("key", "main", "primary", "web", "list", "of", "used", "cited", "consulted", "and", "dates", "links")
_AMONG_OTHERS: Final = re.compile(
    r"\b(?:sources|references|citations|source links?)\b|出典|出所|情報源|参考|引用|参照|(?<!リ)ソース", re.IGNORECASE
)
_REMARK: Final = re.compile(r"(?<=[^\s#*>])[ \t]*[（(][^()（）\n]*[)）]")
_NUMBER: Final = re.compile(r"\A([ \t>]*#{1,6}[ \t]*[*_]*)[0-9]{1,2}[.)．、]")
_NO_HEADER: Final = re.compile(r"[ \t>]*(?:[-*+][ \t]|[0-9]|[|`<])")
_NO_LETTERS: Final = re.compile(r"[\W_]+")


def written(citations: Iterable[Citation], accessed: str) -> str:
    """Return the block for these citations; the search itself is named where there are none."""
    lines = [f"- {citation.url} ({citation.published_at})" for citation in citations]
    return "\n".join(["Sources:", *(lines or [f"- web_search ({accessed})"])])


def split(text: str, citations: Sequence[Citation]) -> tuple[str, str]:
    """Return the prose of an answer, and the block of sources that ends it, "" if there is none."""
    begin = text.find("\n", len(text) - _LOOKED_THROUGH) + 1 if len(text) > _LOOKED_THROUGH else 0
    lines = text[begin:].split("\n")
    headers = [at := len(lines)]
    left = _MOST_TRIED
    while at and not _FENCE.match(lines[at - 1]):
        at -= 1
        if left and may_head(lines[at]):
            if _is_block(lines[at], lines[at + 1 : headers[-1]], citations):
                headers.append(at)
                continue
            left -= 1
        if not may_list(lines[at]):
            break
    passages = {_label(line) for line in lines[: headers[-1]]} - {""}  # each has a source of its own
    while len(headers) > 1 and _label(lines[headers[-1]]) in passages:
        headers.pop()
    end = headers[-1]
    if end < len(lines) and lines[end].lstrip().startswith("<"):  # of HTML, such as <summary> within <details>
        while end and _NO_WORDS.fullmatch(lines[end - 1] or "--"):
            end -= 1
    begin += sum(map(len, lines[:end])) + end
    return text[:begin].rstrip(), text[begin:]


def dated(citations: Iterable[Citation], text: str, newest: date) -> tuple[Citation, ...]:
    """Return the citations with the dates that stand beside their addresses or names in `text`.

    Of several dates beside one, the first that is not one of access is taken. Dates after `newest` are none.
    """
    citations = tuple(citations)
    if not text:
        return citations
    keys, names = _keys(citations)
    named = "|".join([_ADDRESS.pattern, *(rf"(?<![\w-]){re.escape(name)}(?![A-Za-z0-9_-])" for name in names)])
    mention = re.compile(named, re.IGNORECASE)
    found: dict[str, str] = {}
    for entry in _entries(text[:_READ_FOR_DATES], newest):
        for key, written in _beside(entry[:_LONGEST_ENTRY], mention, keys, newest):
            found.setdefault(key, written.iso)
    return tuple(
        replace(each, published_at=found.get(page_key(each.url) or each.url, each.published_at)) for each in citations
    )


# Where the block is


def may_head(line: str) -> bool:
    """Tell whether a line may be the header of a block, perhaps with a source behind its colon."""
    head = line[:LONGEST_HEADER]
    if _heads_alone(head.partition("：")[0].partition(":")[0]):
        return True
    return len(line) <= LONGEST_HEADER and bool(_AMONG_OTHERS.search(line)) and not _ADDRESS.search(line)


def may_list(line: str) -> bool:
    """Tell whether a line may be one of a block."""
    return _is_source(line, below=True, grouped=True)


def _heads_alone(line: str) -> bool:
    if len(line) > LONGEST_HEADER or _NO_HEADER.match(line):
        return False
    bare = _REMARK.sub("", _NUMBER.sub(r"\1", line)).lower()
    named = False
    for word in filter(None, _NO_LETTERS.split(bare)):  # of most lines, the first word is none
        if _NAMES_SOURCES.fullmatch(word):
            named = True
        elif word not in _AROUND:
            return False
    return named


def _is_block(header: str, lines: Sequence[str], citations: Iterable[Citation]) -> bool:
    if not _only_sources(lines):
        return False
    keys, names = _keys(citations)
    body = "\n".join(lines)
    if _heads_alone(header):
        # Without a colon it may be a heading of the text: the sources are to be seen then.
        named = _ADDRESS.search(body) or any(name in body for name in names)
        return bool(named or _has_date(body) or re.search("[:：]", header) or not body.strip())
    label, _, rest = header.replace("：", ":").partition(":")
    if _heads_alone(label):
        source = _ADDRESS.search(rest) or any(name in rest for name in names)
        return bool(source) and not _is_sentence(rest)
    addresses = [_key(found[0], keys)[0] for found in _ADDRESS.finditer(body)]
    ends = _is_sentence(header) or header.rstrip(" \t\r*_").endswith(_STOPS)
    return bool(addresses) and None not in addresses and _has_date(body) and not ends


def _label(line: str) -> str:
    """Return what stands in front of the colon of a line that has a source behind it, and else ""."""
    label, _, rest = line.replace("：", ":").partition(":")
    return label if _ADDRESS.search(rest) else ""


def _only_sources(lines: Sequence[str]) -> bool:
    first = next(filter(str.strip, lines), "")
    grouped = _leads(first)  # words lead to the first sources, and so perhaps to others
    above: str | None = ""  # the line above, if it is not blank
    for line in lines:
        if not line.strip(" \t\r>"):
            above = None
            continue
        below = above is not None and (not _MARKER.match(above) or line[:1] in " \t\u3000>")
        if not _is_source(line, below=below, grouped=grouped):
            return False
        above = line
    return True


def _is_source(line: str, *, below: bool, grouped: bool) -> bool:
    """Tell whether a line names a source; one without mark or address does only directly `below` a line that does."""
    bare = line.strip(" \t\r\u3000>")
    if not bare or bare.startswith("|") or _NO_WORDS.fullmatch(line):
        return True
    if bare.startswith("#") or _FENCE.match(line):
        return False
    address = _ADDRESS.search(line)
    if address or _MARKER.match(line):
        return not _is_sentence(line) or bool(address and _MARKER.match(line))
    if _leads(line):
        return grouped
    return below and len(line) <= _LONGEST_NAME and not bare.rstrip("*_").endswith(_STOPS)


def _leads(line: str) -> bool:
    return not _MARKER.match(line) and not _ADDRESS.search(line) and bool(_LEAD.fullmatch(line))


def _is_sentence(line: str) -> bool:
    return bool(_SENTENCE.search(_ADDRESS.sub(" ", line).rstrip()))


def _has_date(text: str) -> bool:
    return any(dates_in(_ADDRESS.sub(" ", text), date.max))


# Which dates are in it


def _entries(block: str, newest: date) -> Iterator[str]:
    """Yield what says one thing: an item of a list with all below it, a row of a table, or lines around an address."""
    entry: list[str] = []
    indent, has_address, has_date = -1, False, False
    for line in block.split("\n"):
        depth = len(line) - len(line.lstrip(" \t\u3000>"))
        row, marker, address = line[depth : depth + 1] == "|", _MARKER.match(line), bool(_ADDRESS.search(line))
        if marker or row:
            begins = row or indent < 0 or depth <= indent
        else:
            begins = depth == len(line) or (indent < 0 and has_address and (address or has_date))
        if begins:
            yield "\n".join(entry)
            entry, has_address, has_date = [], False, False
            indent = depth if marker else -1
        entry.append(line)
        has_address = has_address or address
        has_date = has_date or (indent < 0 and any(dates_in(line, newest)))
    yield "\n".join(entry)


def _beside(
    entry: str, mention: re.Pattern[str], keys: Collection[str], newest: date
) -> Iterator[tuple[str, WrittenDate]]:
    places: list[tuple[int, str | None]] = []
    plain = entry
    for found in mention.finditer(entry):
        key, length = (found[0], len(found[0])) if found[0] in keys else _key(found[0], keys)
        places.append((found.start(), key))
        # A date within an address says when a page appeared on a site, not when it was published.
        plain = plain[: found.start()] + " " * length + plain[found.start() + length :]
    dates = list(dates_in(plain, newest))
    if not places or not dates:
        return
    starts = [start for start, _ in places]
    if len({key for _, key in places}) == 1:
        dates.sort(key=lambda each: each.start < starts[0])  # those behind the address first
        bounds = [0, len(entry)]
    elif dates[0].start < starts[0] and dates[-1].start < starts[-1]:
        bounds = [0, *starts]
    else:
        bounds = [*starts, len(entry)]
    for (_, key), (start, end) in zip(places, pairwise(bounds), strict=False):
        near = [each for each in dates if start <= each.start < end]
        if key is not None and near:
            yield key, min(near, key=lambda each: each.is_access)


def _keys(citations: Iterable[Citation]) -> tuple[set[str], list[str]]:
    """Return the keys of citations, and which of them are names, of sources without an address."""
    pages = [(citation.url, page_key(citation.url)) for citation in citations]
    return {page or name for name, page in pages}, [name for name, page in pages if page is None]


def _key(address: str, keys: Collection[str]) -> tuple[str | None, int]:
    """Return the key of the page that an address means, if it is one of `keys`, and the length of the address.

    An address ends sooner where words or a bracket touch it: at a bracket that it did not open in any case.
    """
    depth = 0
    ends: list[int] = []  # where it may end as well
    for at, character in enumerate(address):
        depth += (character in "([") - (character in ")]")
        if depth < 0:
            address = address[:at]
            break
        if len(ends) < _MOST_ENDS and (not character.isascii() or character in "(["):
            ends.append(at)
    for end in (len(address), *reversed(ends)):
        for candidate in dict.fromkeys((address[:end], address[:end].rstrip(_BEHIND))):
            key = page_key(candidate)
            if key is not None and key in keys:
                return key, len(candidate)
    return None, len(address)
