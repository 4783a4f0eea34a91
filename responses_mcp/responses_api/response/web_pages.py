"""Pages of the web as a search names them: which page a URL means, and addresses and titles that are fit for Markdown.

What pairs up stays as it is, so an ordinary title is not changed: `Array[int] (PEP 585)` closes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from contextlib import suppress
from functools import lru_cache
from urllib.parse import quote

from responses_mcp.sanitization import sanitized
from responses_mcp.secrets import Redact

_LONGEST_HOST = 253  # of DNS; the idna codec takes time in proportion to the square
_HOST = r"\[[0-9a-f:.]+\]|(?!\.)[^\x00-,/:-@\[-^`{-\x7f\s]+"
_PAGE = re.compile(rf"(?i)https?://({_HOST})(?::([0-9]*))?([/?][^#]*)?(?:#|\Z)")  # host, port, path with query
_TRACKING = re.compile(r"(?i)(?:utm_[a-z_]+|[a-z]{1,2}clid|msclkid|[gw]braid|igshid|mc_[ce]id|srsltid|_g[al])(?![^=])")
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")

# The model's private citation marks: U+E200 kind U+E202 reference U+E201. One that never closes ends with its line.
_MARKER = re.compile("\ue200[^\ue201\n]*\ue201?|[\ue200-\ue20f]")
_URL = re.compile(r"https?://[^\s<>\"]+")
_UTM = r"utm_source=(?:openai|chatgpt\.com)"
# Once, or twice, and what is behind it: at a word character of a URL, or at a point that goes on, it is another value.
_TRACKED = re.compile(rf"([?&]){_UTM}(?:&{_UTM}|)(?:(&)|(?![A-Za-z0-9_%+~-]|\.[A-Za-z0-9]))")

LINK = r"\[([^\[\]]*)\]\((?:[^()\s]++|\([^()\s]*+\))+\)"
"""A pattern of a Markdown link; its group is what a reader sees."""
_LINK = re.compile(LINK)
# Links in parentheses are how models cite: they name a page that the result names already.
_CITED = re.compile(rf" ?\((?:{LINK}[,;\s]*)+\)")

# At most one pair in another counts as paired.
_PAIRED_PARENTHESES = re.compile(r"(?:[^()]++|\((?:[^()]++|\([^()]*\))*\))*")
_PAIRED_BRACKETS = re.compile(r"(?:[^\[\]]++|\[(?:[^\[\]]++|\[[^\[\]]*\])*\])*")
_PAIRED_TICKS = re.compile(r"(?:[^`]++|`[^`]+`(?!`)|``[^`]+``(?!`))*")
_FENCE_OR_COMMENT = re.compile(r"~{3,}|<!--|--!?>")
_CLOSES = re.compile(r"[\[\]`~<>]")
_BREAKS_OUT = re.compile(r"[\s<>\"\\^`{|}]")
_IN_MARKDOWN = re.compile(r"[\s<>\"\\^`{|}()\[\]]")  # of an address


def without_markers(text: str) -> str:
    """Drop the private marks that leak into some answers."""
    return _MARKER.sub("", text)


def without_tracking(text: str) -> str:
    """Drop `utm_source=openai` and `utm_source=chatgpt.com` from every URL in `text`, keeping the rest of the query."""
    if "utm_source=" not in text:
        return text
    return _URL.sub(lambda url: _TRACKED.sub(lambda found: found[1] if found[2] else "", url[0]), text)


def without_marks(text: str, redact: Redact) -> str:
    """Return the text of an answer without marks, tracking and secrets, which are whole where a mark stood inside."""
    return redact(without_tracking(without_markers(text)))


@lru_cache(maxsize=256)  # an answer cites the pages that its search has named
def page_key(url: str) -> str | None:
    """Return what tells the page of a URL from every other page; None for what is no http(s) URL of a host.

    Equal for URLs that differ in scheme, case or spelling of the host, default port, fragment, tracking parameters, a
    slash at the end, or in which harmless characters are escaped. It begins with the host and has a question mark.
    """
    parts = _PAGE.match(url)
    if parts is None:
        return None
    host = parts[1][:_LONGEST_HOST].lower().rstrip(".")
    if not host.isascii():
        with suppress(UnicodeError):  # a character that is newer than the codec
            host = host.encode("idna").decode("ascii")
    port = "" if parts[2] in {None, "", "80", "443"} else f":{parts[2]}"
    rest = _ESCAPE.sub(lambda found: quote(bytes.fromhex(found[1]), safe=""), parts[3] or "")
    path, _, query = quote(rest, safe="%/:?#@!$&'*+,;=~", errors="replace").partition("?")
    pairs = (pair for pair in query.split("&") if pair and not _TRACKING.match(pair))
    return f"{host}{port}{path.rstrip('/')}?{'&'.join(pairs)}"


def host_of(url: str) -> str:
    """Return the host of a page as its key has it, "" for what is no page."""
    found = re.match(r"\[[^\]]*\]|[^:/?]*", page_key(url) or "")
    return str(found[0]) if found else ""


def is_within(url: str, domains: Collection[str]) -> bool:
    """Tell whether a URL's host is one of `domains`, which are as DNS has them, or below one."""
    if not domains:
        return False
    name = host_of(url)
    return any(f".{name}".endswith(f".{domain}") for domain in domains)


def address(url: str) -> str | None:
    """Return a URL without tracking, such that it ends where it ends, in Markdown too; None for what is no page.

    Blanks and quotation marks are escaped, and all brackets where one has no partner. What has a key is a page.
    """
    if not _PAGE.match(url):
        return None
    if _IN_MARKDOWN.search(url):
        paired = _PAIRED_PARENTHESES.fullmatch(url) and _PAIRED_BRACKETS.fullmatch(url)
        url = (_BREAKS_OUT if paired else _IN_MARKDOWN).sub(lambda found: quote(found[0], safe=""), url)
    return without_tracking(url) if "utm_source=" in url else url


def shown(text: str, longest: int, redact: Redact) -> str:
    """Return text on one line as a reader should see it, at most `longest` characters of it, without secrets.

    Without citations, links and their marks, control characters and invisible ones. HTML stays as it is: what is no
    page needs no escapes.
    """
    text = _LINK.sub(r"\1", _CITED.sub("", without_markers(sanitized(text[: 4 * longest + 4000]))))
    text = redact(closing_nothing(text))  # now, because what stood between the parts of a secret is gone
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"


def closing_nothing(text: str) -> str:
    """Return a text on one line without what would end a Markdown link, a fence, code or an HTML comment around it."""
    if _CLOSES.search(text):
        # Marks go before what they could have kept apart is looked at; blanks, which come last, bring nothing together.
        text = text if _PAIRED_BRACKETS.fullmatch(text) else re.sub(r"[\[\]]", "", text)
        text = text if _PAIRED_TICKS.fullmatch(text) else text.replace("`", "")
        text = _FENCE_OR_COMMENT.sub(" ", text).replace("](", "] (")
    return " ".join(text.split()).rstrip("\\ ")
