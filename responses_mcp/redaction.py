"""Secrets out of text, before the text is cut, logged or sent anywhere."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Iterator
from urllib.parse import quote, quote_plus

MASK = "[redacted]"
_SHORTEST = 4  # characters; masking anything shorter would make the text unreadable and hide nothing worth hiding
_SHORTEST_WORD = 8  # of a value of several words; "Bearer" and its like are no secrets

# What looks like a credential is masked even when it is not ours: a gateway's error may quote somebody else's.
_LOOKS_SECRET = re.compile(
    r"(?<=://)[^/@\s\"']+(?=@)"  # user:password of a URL
    r"|(?<=\bbearer )[^\s\"']{8,}"
    r"|\bsk-[a-z0-9_-]{16,}",
    re.IGNORECASE,
)


class Redactor:
    """Replaces the given secrets, in the forms in which they travel, and whatever else looks like a credential."""

    def __init__(self, secrets: str | Iterable[str | None] = ()) -> None:
        if isinstance(secrets, str):  # else its letters would be taken for secrets, and nothing masked
            secrets = [secrets]
        forms = {form for secret in secrets if secret for part in _parts(secret) for form in _forms(part)}
        longest_first = sorted(forms, key=len, reverse=True)
        self._known = re.compile("|".join(re.escape(form) for form in longest_first)) if forms else None

    def __call__(self, text: str) -> str:
        """Return `text` without the secrets."""
        if self._known is not None:
            text = self._known.sub(MASK, text)
        return _LOOKS_SECRET.sub(MASK, text)


def _parts(secret: str) -> Iterator[str]:
    """Yield the secret without blanks around it, and the words of a value like "Bearer abc", which holds "abc"."""
    stripped = secret.strip()
    if len(stripped) >= _SHORTEST:
        yield stripped
    words = stripped.split()
    if len(words) > 1:
        yield from (word for word in words if len(word) >= _SHORTEST_WORD)


def _forms(secret: str) -> Iterator[str]:
    """Yield the secret as such, and as JSON, Python, URLs and HTML write it."""
    yield secret
    escaped = json.dumps(secret)[1:-1]
    yield escaped
    yield escaped.replace("/", "\\/")
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    yield repr(secret)[1:-1]
    as_bytes = secret.encode("utf-8", "replace")
    yield quote(as_bytes)
    yield quote_plus(as_bytes)
    yield html.escape(secret)
    yield html.escape(secret, quote=False)
    yield html.escape(secret).replace("&quot;", "&#34;").replace("&#x27;", "&#39;")
