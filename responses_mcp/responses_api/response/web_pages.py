"""Pages of the web as a search names them: whether two URLs mean one page, and what they say of themselves, made fit.

Clients write `[title](address)`, put snippets into fences and comments, and let a model read it. What pairs up stays as
it is, so an ordinary title is not changed: `Array[int] (PEP 585)` closes nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection
from functools import lru_cache
from urllib.parse import quote, urlsplit

from responses_mcp.redaction import Redact
from responses_mcp.sanitization import sanitized

_LONGEST_URL = 4096
_LONGEST_HOST = 253  # of DNS; the idna codec takes time in proportion to the square
_DOTS = ".\u3002\uff0e\uff61"  # between the parts of a name, in any script
_PORTS = {"http": 80, "https": 443}
_HIGHEST_PORT = 65535
_PARTS = re.compile(
    r"(https?)://([^\s/?#@:<>\"\\^`{}|\[\]]+|\[[0-9a-f:.]+\])(?::([0-9]{0,5}))?"
    r"((?:/[^\s?#<>\"\\^`{}|]*)?)(?:\?([^\s#<>\"\\^`{}|]*))?(?:#[^\s<>\"\\^`{}|]*)?",
    re.IGNORECASE,
)
_NEVER_IN_NAMES = re.compile("[/?#@:]")  # the idna codec makes "a/c" of "\u2100"
_PLAIN = re.compile(r"[A-Za-z0-9._~/:?@!$&'*+,;=-]*")
_TRACKING = re.compile(
    r"utm_[a-z_]+|gclid|gbraid|wbraid|dclid|fbclid|msclkid|yclid|twclid|igshid|mc_[ce]id|srsltid|_ga|_gl", re.IGNORECASE
)
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")

MARKER = re.compile("\ue200[^\ue201\n]*\ue201?|[\ue200-\ue20f]")
"""The model's private citation marks: U+E200 kind U+E202 reference U+E201. One that never closes ends with its line."""
_URL = re.compile(r"https?://[^\s<>\"]+")
_UTM = r"utm_source=(?:openai|chatgpt\.com)"
_UTM_BEFORE_MORE = re.compile(rf"(?<=[?&]){_UTM}&")
# The value must end here: at a word character of a URL, or at a point that goes on, it is another value.
_UTM_AT_THE_END = re.compile(rf"[?&]{_UTM}(?![A-Za-z0-9_%+~-]|\.[A-Za-z0-9])")

_ADDRESS = r"\((?:[^()\s]++|\([^()\s]*+\))+\)"
# Links in parentheses are how models cite: they name a page that the result names already.
_CITED = re.compile(rf" ?\((?:\[[^\[\]]*\]{_ADDRESS}[,;\s]*)+\)")
_LINK = re.compile(rf"\[([^\[\]]*)\]{_ADDRESS}")

_FENCE = re.compile(r"`{3}`*+|~{3}~*+")
_COMMENT = re.compile(r"<!--|--!?>")
_TICKS = re.compile(r"`++")
_BRACKET = re.compile(r"[\[\]]")
_PARENTHESIS = re.compile(r"[()]")
_BEGINS = re.compile("https?://", re.IGNORECASE)
_BREAKS_OUT = re.compile(r"[\s<>\"\\^`{|}]")
_IN_MARKDOWN = re.compile(r"[\s<>\"\\^`{|}()\[\]]")  # of an address
_IN_NAMES = re.compile(r"[\[\]`~<>\\]|[^\S ]|  |\A | \Z")  # changed in a text of one line


def without_markers(text: str) -> str:
    """Drop the private marks that leak into some answers."""
    return MARKER.sub("", text)


def without_tracking(text: str) -> str:
    """Drop `utm_source=openai` and `utm_source=chatgpt.com` from every URL in `text`, keeping the rest of the query."""
    if "utm_source=" not in text:
        return text
    return _URL.sub(lambda url: _UTM_AT_THE_END.sub("", _UTM_BEFORE_MORE.sub("", url[0])), text)


@lru_cache(maxsize=64)  # an answer cites the pages that its search has named
def page_key(url: str) -> str | None:
    """Return what tells the page of a URL from every other page; None for what is no http(s) URL of a host.

    Equal for URLs that differ in scheme, case or spelling of the host, default port, fragment, tracking parameters, a
    slash at the end, or in which harmless characters are escaped. It has a question mark in it.
    """
    parts = _PARTS.fullmatch(url) if len(url) <= _LONGEST_URL and url.isprintable() else None
    if parts is None:
        return None
    scheme, host, port, path, query = parts.groups("")
    name = _dns_name(host.lower().rstrip(_DOTS)) if len(host) <= _LONGEST_HOST else ""
    if not name or int(port or 0) > _HIGHEST_PORT:
        return None
    if port and int(port) != _PORTS[scheme.lower()]:
        name = f"{name}:{int(port)}"
    pairs = (_escaped(pair) for pair in query.split("&") if not _TRACKING.fullmatch(pair.partition("=")[0]))
    return f"{name}{_escaped(path).rstrip('/')}?{'&'.join(filter(None, pairs))}"


def is_within(url: str, domains: Collection[str]) -> bool:
    """Tell whether a URL's host is one of `domains`, which are as DNS has them, or below one."""
    if not domains:
        return False
    try:
        host = urlsplit(url[:_LONGEST_URL]).hostname or ""
    except ValueError:
        return False
    name = _dns_name(host.rstrip(_DOTS)) if len(host) <= _LONGEST_HOST else host
    return any(name == domain or name.endswith(f".{domain}") for domain in domains)


def host_of(url: str) -> str:
    """Return the host of a URL that has a `page_key`."""
    return urlsplit(url).hostname or ""


def _dns_name(host: str) -> str:
    try:
        name = host if host.isascii() else host.encode("idna").decode("ascii")
    except UnicodeError:
        return host
    return "" if _NEVER_IN_NAMES.search(name) else name


def _escaped(part: str) -> str:
    """Return a path or query in one spelling: what must be escaped is, and in capitals; what need not be is not."""
    if _PLAIN.fullmatch(part):
        return part
    return quote(_ESCAPE.sub(lambda found: quote(bytes.fromhex(found[1]), safe=""), part), safe="%/:?#@!$&'*+,;=~")


def shown(text: str, longest: int, redact: Redact) -> str:
    """Return text on one line as a reader should see it, at most `longest` characters of it, without secrets.

    Without citations, links and their marks, control characters and invisible ones. HTML stays as it is: what is no
    page needs no escapes.
    """
    text = " ".join(without_markers(sanitized(text[: 4 * longest + 4000])).split())
    # Now, because what stood between the parts of a secret is gone.
    text = redact(closing_nothing(_LINK.sub(r"\1", _CITED.sub("", text))))
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"


def closing_nothing(text: str) -> str:
    """Return a text of one line without what would end a Markdown link, a fence, code or an HTML comment around it."""
    if not _IN_NAMES.search(text):
        return text
    # Marks go before what they could have kept apart is looked at; blanks, which come last, bring nothing together.
    text = _changed(text, unpaired(text, _BRACKET), "")
    text = _FENCE.sub(lambda fence: fence[0][0], text)
    runs = Counter(_TICKS.findall(text))
    text = _TICKS.sub(lambda run: "" if runs[run[0]] % 2 else run[0], text)
    if ")" in text:
        text = text.replace("](", "] (")
    return " ".join(_COMMENT.sub(" ", text).split()).rstrip("\\ ")


def address(url: str) -> str | None:
    """Return a URL such that it ends where it ends, in Markdown too; None for one that is not of http or https.

    Blanks and quotation marks are escaped, and brackets that do not pair up.
    """
    if not _BEGINS.match(url):
        return None
    if not _IN_MARKDOWN.search(url):
        return url
    url = _BREAKS_OUT.sub(lambda found: quote(found[0], safe=""), url)
    return _changed(url, unpaired(url, _PARENTHESIS) | unpaired(url, _BRACKET), "%{:02X}")


def unpaired(text: str, brackets: re.Pattern[str]) -> set[int]:
    """Return where brackets of one kind, an opening and a closing one, stand that have no other."""
    lost: set[int] = set()
    opened: list[int] = []
    for bracket in brackets.finditer(text):
        if bracket[0] in "([":
            opened.append(bracket.start())
        elif opened:
            opened.pop()
        else:
            lost.add(bracket.start())
    return lost | set(opened)


def _changed(text: str, places: set[int], form: str) -> str:
    """Return a text with characters in another form, which gets their codes."""
    return "".join(form.format(ord(each)) if at in places else each for at, each in enumerate(text)) if places else text
