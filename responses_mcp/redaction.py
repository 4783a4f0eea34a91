"""Redaction: secrets are taken out of text before it is cut, logged or sent anywhere."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Iterable, Iterator

from responses_mcp.credential_patterns import credentials_in

Redact = Callable[[str], str]

MASK = "[redacted]"
_LONGEST_SECRET = 4 * 1024  # characters at the end of a text that is cut there, which may be half of one
_SHORTEST = 4  # characters; masking anything shorter would make the text unreadable and hide nothing worth hiding
_SHORTEST_WORD = 8  # of a value of several words; "Bearer" and its like are no secrets


def redacted_beginning(text: str, most: int, redact: Redact, *, cut: bool = False) -> str:
    """Return the first `most` characters without secrets, nor the half of one where a text is, or was, cut."""
    shown = redact(text[:most])
    return shown[:-_LONGEST_SECRET] if cut or len(text) > most else shown


class Redactor:
    """Replaces the given secrets, in the forms in which they travel, and whatever else looks like a credential."""

    def __init__(self, secrets: str | Iterable[str | None] | None = ()) -> None:
        if isinstance(secrets, str):  # else its letters would be taken for secrets, and nothing masked
            secrets = [secrets]
        longest_first = sorted(
            {part for secret in secrets or () if secret for part in _parts(secret)}, key=len, reverse=True
        )
        # One by one: a pattern that begins with plain letters is found thirty times as fast as one of two that do.
        self._known = [re.compile("|".join(_forms(part))) for part in longest_first]

    def __call__(self, text: str) -> str:
        """Return `text` without the secrets, and without what looks like one."""
        text = self.known(text)
        # Masked even when it is not ours: a gateway's error may quote somebody else's.
        for credential in credentials_in(text):
            text = credential.pattern.sub(MASK, text)
        return text

    def known(self, text: str) -> str:
        """Return `text` without the given secrets only: an answer may explain what keys look like."""
        return self.masked(text, MASK)[0]

    def masked(self, text: str, mask: str) -> tuple[str, int]:
        """Return `text` with `mask` for each of the given secrets, and how many there were."""
        times = 0
        for secret in self._known:
            text, found = secret.subn(mask, text)
            times += found
        return text, times


def _parts(secret: str) -> Iterator[str]:
    """Yield the secret without blanks around it, and the words of a value like "Bearer abc", which holds "abc"."""
    stripped = secret.strip()
    if len(stripped) >= _SHORTEST:
        yield stripped
    words = stripped.split()
    if len(words) > 1:
        yield from (word for word in words if len(word) >= _SHORTEST_WORD)


def _forms(secret: str) -> Iterator[str]:
    """Yield patterns of the secret as JSON, Python and HTML write it, and last of it as such or within a URL."""
    escaped, entities = json.dumps(secret)[1:-1], html.escape(secret)
    forms = {
        escaped,
        escaped.replace("/", "\\/"),
        json.dumps(secret, ensure_ascii=False)[1:-1],
        repr(secret)[1:-1],
        entities,
        html.escape(secret, quote=False),
        entities.replace("&quot;", "&#34;").replace("&#x27;", "&#39;"),
    }
    yield from map(re.escape, sorted(forms - {secret}, key=len, reverse=True))
    yield "".join(map(_in_url, secret))


def _in_url(character: str) -> str:
    """Return a pattern of a character as such and with percent escapes, which a URL within a URL has twice."""
    if character.isascii() and (character.isalnum() or character in "-._~"):
        return re.escape(character)  # nobody escapes these, and most keys begin with some
    octets = (f"%(?:25)?(?i:{octet:02x})" for octet in character.encode("utf-8", "replace"))
    return f"(?:{re.escape(character)}|{''.join(octets)}{'|[+]' if character == ' ' else ''})"
