"""The `Sources:` block of an answer: one header, at the end, and every citation with its date (spec 3.2).

Models write such blocks in many forms, leave sources or dates out, and go on behind them. What they wrote is kept.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import deque
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date

from responses_mcp.responses_api.response.citations import Citation
from responses_mcp.responses_api.response.dates import dates_in
from responses_mcp.responses_api.response.source_lines import ADDRESS, MARKER, Wanted, dates_beside, our_line
from responses_mcp.responses_api.response.web_pages import names_only, page_key

_LOOKED_THROUGH = 128 * 1024  # characters at the end of an answer in which blocks are looked for
_MOST_HEADERS = 200  # of them, from the end
_MOST_OTHERS = 10  # headers in other words, from the end
_LONGEST_NAME = 200  # characters of a line that is a source without an address
_ENGLISH = (
    "(?i:(?:key |main |primary |web |list of |)(?:sources?|references?|citations?|bibliography|works cited)"
    "(?: used| cited| consulted|(?: and | & | / )(?:dates|links|references|citations)|))"
)
_JAPANESE = (
    "(?:主な|参考にした|参照した|使用した|)(?:参考文献|参考資料|参考情報|参考リンク|参考サイト|参考ページ|参考URL|参考元|"
    "参考記事|参考|出典元|出典|出所|情報源|情報元|引用文献|引用元|引用|参照元|参照先|参照|ソース)(?:一覧|リスト|リンク|URL|)"
)
_WORD = f"(?:{_ENGLISH}|{_JAPANESE})"
# What may stand before the word on a header's line, the word, a remark in parentheses, a colon; and what follows.
_HEADER = re.compile(
    r"^[ \t\u3000>]{0,9}"
    r"(?:#{1,6}[ \t]{0,4}[*_]{0,3}(?:[0-9]{1,2}[.)．、][ \t]?|)|[*_]{1,3}(?:[0-9]{1,2}[.)．、][ \t]?|)|)"
    r"(?:[【〔\[＜<■□●○◆◇▼▶※📚🔗📖📎🌐📰🔍ℹ\ufe0f]{1,3}[ \t]{0,2}[*_]{0,3}|)"
    rf"{_WORD}(?: ?[/／・] ?{_WORD}|)[ \t*_】〕\]＞>]{{0,9}}(?:[（(][^()（）\n]{{0,60}}[)）]|)[ \t*_]{{0,9}}"
    r"([:：]?)[ \t*_]{0,9}(.*)$",
    re.MULTILINE,
)
# What every header has, and more; sooner looked for than headers line by line.
_ABOUT = re.compile(
    r"(?i:[srcbw](?:ource|eference|itation|ibliography|orks cited))|[出情参引ソ](?:典|所|報[源元]|考|用|照|ース)"
)
# A line about sources in any other words.
_OTHER_HEADER = re.compile(
    r"^[^\n]{0,80}(?:(?i:\b(?:sources|references|citations|(?:source|reference) (?:links?|list|urls?))\b)"
    r"|出典|出所|情報源|参考|引用|参照|(?<!リ)ソース)[^\n]{0,80}$",
    re.MULTILINE,
)
_TAG = re.compile(r"[ \t]*<[^<>\n]{1,80}>[ \t\r]*")
_UNDERLINE = re.compile(r"\n[ \t]{0,3}(?:-{2,99}|={2,99})[ \t]{0,9}(?=\n|\Z)")
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$", re.MULTILINE)
_HEADING = re.compile(r"[ \t>]*+(?:#|\*\*.*\*\*[:：]?$|.*[:：]$)")
_LEAD = re.compile(r"[ \t>]*+(?:\*\*[^*]*\*\*|[^#|].*[:：])[ \t\r]*", re.DOTALL)
_SENTENCE = re.compile(r"[^\W\d_][.。!?！？…][*_\"'”」）)]*$")
_STOPS = tuple(".。!?！？…")
_ENDS_SENTENCE = (*_STOPS, ":", "：")


@dataclass(frozen=True, slots=True)
class _Block:
    """A header with its lines, and where both stand in the text."""

    start: int
    end: int
    header: str
    body: str
    own_line: bool = True  # whether the header has a line of its own
    grouped: bool = False  # whether words lead to its first sources, and so to others


def with_sources(text: str, citations: Sequence[Citation], today: str) -> tuple[str, tuple[Citation, ...]]:
    """Return `text` with one `Sources:` block at its end that has all citations with dates, and these with its dates.

    A block of the model that is finished stays as it is. What one lacks is added to it, and it is moved to the end.
    Where the block tells no date, that of the citation is kept. With no source known, the search itself is named.
    """
    newest = date.fromisoformat(today)
    named = {citation.url for citation in citations if page_key(citation.url) is None}
    blocks = _blocks(text, named, newest)
    body = _joined(blocks)
    dates = dates_beside(body, _wanted(citations), newest)
    dated: list[Citation] = []
    lines: list[str] = []
    for source, citation in enumerate(citations):
        written = dates.get(source)
        dated.append(replace(citation, published_at=written.iso) if written is not None else citation)
        if written is None or not written.is_iso:
            lines.append(our_line(citation.url, dated[-1].published_at))
    if not citations and not _has_date(body, newest):
        lines.append(our_line("web_search", today))
    if len(blocks) == 1 and blocks[0].own_line and not text[blocks[0].end :].strip():
        whole = text[: blocks[0].end].rstrip() if lines else text
        return "\n".join([whole, *_spaced(body, lines)]), tuple(dated)
    head = _remainder(text, blocks)
    header = blocks[-1].header if blocks else "Sources:"
    block = "\n".join([header, *([body] if body.strip() else []), *_spaced(body, lines)])
    return (f"{head}\n\n{block}" if head else block), tuple(dated)


def without_domains(text: str, domains: Collection[str], today: str) -> str:
    """Return `text` without the lines of its blocks that name pages of `domains` alone, and no block that is empty."""
    if not domains:
        return text
    for block in reversed(_blocks(text, set(), date.fromisoformat(today))):
        lines = text[block.start : block.end].splitlines(keepends=True)
        kept = [line for line in lines if not names_only(line, domains)]
        if len(kept) < len(lines):
            some = any(line.strip() for line in kept[1:])
            text = text[: block.start] + ("".join(kept) if some else "") + text[block.end :]
    return text.rstrip()


def end_block(text: str, names: Collection[str] = ()) -> int:
    """Return where the block at the end of a text begins, or the end of the text."""
    blocks = _blocks(text, names, date.max)
    return blocks[-1].start if blocks and not text[blocks[-1].end :].strip() else len(text)


def _wanted(citations: Sequence[Citation]) -> Wanted:
    pages: dict[str, int] = {}
    names: dict[str, int] = {}
    for source, citation in enumerate(citations):
        key = page_key(citation.url)
        if key is not None:
            pages.setdefault(key, source)
        else:
            names.setdefault(citation.url, source)
    return Wanted(pages, names, {citation.url: source for source, citation in enumerate(citations)})


def _spaced(body: str, lines: list[str]) -> list[str]:
    """Return our lines, behind an empty one where they would be taken for a part of a table or of HTML."""
    last = body.rstrip().rpartition("\n")[2]
    taken = last.lstrip(" \t>").startswith("|") or _TAG.fullmatch(last)
    return ["", *lines] if lines and taken else lines


def _joined(blocks: list[_Block]) -> str:
    # Words between sources belong to a block that begins with such words only.
    bodies = [block.body.rstrip() for block in sorted(blocks, key=lambda block: not block.grouped)]
    if len(bodies) < 2:
        return "".join(bodies)
    return "\n".join(dict.fromkeys(filter(None, (_from_line(body) for body in bodies))))


def _remainder(text: str, blocks: list[_Block]) -> str:
    pieces: list[str] = []
    at = 0
    for block in blocks:
        pieces.append(text[at : block.start])
        at = block.end
    pieces.append(text[at:])
    kept = (_from_line(piece) if number else piece for number, piece in enumerate(pieces))
    return "\n\n".join(filter(None, (piece.rstrip() for piece in kept)))


def _from_line(text: str) -> str:
    """Return `text` from its first line that is not blank."""
    blank = len(text) - len(text.lstrip())
    return text[text.rfind("\n", 0, blank) + 1 :]


def _has_date(body: str, newest: date) -> bool:
    return any(written.is_iso for written in dates_in(ADDRESS.sub(" ", body), newest))


# Where the blocks are


def _blocks(text: str, names: Collection[str], newest: date) -> list[_Block]:
    first = max(0, len(text) - _LOOKED_THROUGH)
    if not _ABOUT.search(text, first):
        return []
    found = deque(_HEADER.finditer(text, first), _MOST_HEADERS)
    others = deque((line for line in _OTHER_HEADER.finditer(text, first) if not ADDRESS.search(line[0])), _MOST_OTHERS)
    if not found and not others:
        return []
    code = list(_code(text))
    starts = [start for start, _ in code]

    def is_code(at: int) -> bool:
        fence = bisect_right(starts, at) - 1
        return fence >= 0 and at < code[fence][1]

    blocks: list[_Block] = []
    behind, in_line = 0, 0
    for header in found:
        if header.start() < behind or is_code(header.start()):
            continue
        if _is_own_line(header):
            block = _block(text, header, names, newest)
        elif _has_source(header, names):
            in_line += 1
            block = _block_in_line(text, header, names) if in_line == 1 else None
        else:
            block = None
        if block is not None:
            blocks.append(block)
            behind = block.end
    for header in others:
        if header.start() >= behind and not is_code(header.start()):
            block = _block_of_other_words(text, header, names, newest)
            if block is not None:
                return [*blocks, block]
    return blocks


def _block(text: str, header: re.Match[str], names: Collection[str], newest: date) -> _Block | None:
    """Return the block of a header line, or None if it heads something else."""
    underline = _UNDERLINE.match(text, header.end())
    begin = underline.end() if underline else header.end()
    end, grouped = _end_of_lines(text, begin, names, may_repeat=True)
    body = text[begin + 1 : end]
    follows = _next_line(text, end)
    another = follows is None or _is_header(text, follows[0], names)
    if not header[1] and not another and follows is not None:
        if not body:
            return None
        told = ADDRESS.search(body) or _has_date(body, newest) or any(name in body for name in names)
        if not told and _HEADING.match(text, *follows):
            return None
    return _Block(header.start(), end, text[header.start() : begin], body, grouped=grouped)


def _block_in_line(text: str, header: re.Match[str], names: Collection[str]) -> _Block | None:
    """Return the block of a header with a source on its line, if it ends the text; elsewhere it is a passage's own."""
    end, _ = _end_of_lines(text, header.end(), names, may_group=False)
    if _next_line(text, end) is not None:
        return None
    body = f"- {header[2].rstrip()}{text[header.end() : end]}"
    return _Block(header.start(), end, text[header.start() : header.start(2)].rstrip(), body, own_line=False)


def _block_of_other_words(text: str, header: re.Match[str], names: Collection[str], newest: date) -> _Block | None:
    """Return the block of a line that is a header by what follows: sources with dates, up to the end of the text."""
    if _is_sentence(header[0]) or header[0].rstrip(" \t\r*_").endswith(_STOPS):
        return None
    end, grouped = _end_of_lines(text, header.end(), names)
    body = text[header.end() + 1 : end]
    if _next_line(text, end) is not None or not ADDRESS.search(body) or not _has_date(body, newest):
        return None
    return _Block(header.start(), end, header[0], body, grouped=grouped)


def _end_of_lines(
    text: str, begin: int, names: Collection[str], *, may_group: bool = True, may_repeat: bool = False
) -> tuple[int, bool]:
    """Return where the sources end that are listed behind `begin`, the end of a line, and whether in groups.

    The first of them `may_repeat` a header's word before each source (出典：…); elsewhere such a line is a header.
    """
    end, at = begin, begin
    grouped = False
    while at < len(text):
        start = at + 1
        at = text.find("\n", start)
        at = len(text) if at < 0 else at
        line = text[start:at]
        if _is_blank(line):
            continue
        may_repeat = may_repeat and _repeats(text, start, line)
        if may_repeat:
            end = at
            continue
        if _is_header(text, start, names) or _FENCE.match(text, start):
            break
        if may_group and (grouped or end == begin) and _leads(text, start, at, names):
            grouped = True
        elif not _is_source(line, below=start == end + 1):
            break
        end = at
    return end, grouped


def _repeats(text: str, start: int, line: str) -> bool:
    """Whether a line has a header's word, a colon and a source with its address."""
    header = _HEADER.match(text, start)
    return header is not None and bool(header[1] and ADDRESS.search(header[2])) and not _is_sentence(line)


def _leads(text: str, start: int, end: int, names: Collection[str]) -> bool:
    """Whether a line that names no source leads to one: it ends in a colon, or is in bold."""
    line = text[start:end]
    if len(line) > _LONGEST_NAME or MARKER.match(line) or not _LEAD.fullmatch(line) or ADDRESS.search(line):
        return False
    follows = _next_line(text, end)
    if follows is None:
        return False
    next_line = text[slice(*follows)]
    return (
        bool(ADDRESS.search(next_line))
        and _is_source(next_line, below=False)
        and not _is_header(text, follows[0], names)
    )


def _is_source(line: str, *, below: bool) -> bool:
    """Whether a line names a source; one without mark or address does only directly below the header or a source."""
    bare = line.lstrip(" \t\u3000>")
    if MARKER.match(line) or bare.startswith("|") or _TAG.fullmatch(line):
        return True
    if bare.startswith("#"):
        return False
    if ADDRESS.search(line):
        return not _is_sentence(line)
    return below and len(line) <= _LONGEST_NAME and not line.rstrip(" \t*_").endswith(_ENDS_SENTENCE)


def _is_sentence(line: str) -> bool:
    return bool(_SENTENCE.search(ADDRESS.sub(" ", line)))


def _is_header(text: str, at: int, names: Collection[str]) -> bool:
    found = _HEADER.match(text, at)
    return found is not None and (_is_own_line(found) or _has_source(found, names))


def _is_own_line(header: re.Match[str]) -> bool:
    return not header[2].strip()


def _has_source(header: re.Match[str], names: Collection[str]) -> bool:
    """Whether a source stands behind the colon; a sentence about one is prose."""
    line = header[2]
    named = ADDRESS.search(line) or any(name in line for name in names)
    return bool(header[1] and named) and not _is_sentence(line)


def _next_line(text: str, at: int) -> tuple[int, int] | None:
    """Return where the next line begins and ends that is not blank."""
    while at < len(text):
        start = at + 1
        at = text.find("\n", start)
        at = len(text) if at < 0 else at
        if not _is_blank(text[start:at]):
            return start, at
    return None


def _is_blank(line: str) -> bool:
    return not line.replace(">", "").strip()


def fences(text: str) -> Iterator[tuple[re.Match[str], int | None]]:
    """Yield what opens each fence of code and where it ends, in order; the last one may end nowhere."""
    opening: re.Match[str] | None = None
    for fence in _FENCE.finditer(text):
        if opening is None:
            opening = fence
        elif fence[1].startswith(opening[1]) and not fence[2].strip():
            yield opening, fence.end()
            opening = None
    if opening is not None:
        yield opening, None


def _code(text: str) -> Iterator[tuple[int, int]]:
    """Yield where fenced code begins and ends. A fence that nothing closes fences nothing."""
    return ((opening.start(), end) for opening, end in fences(text) if end is not None)
