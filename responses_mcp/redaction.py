"""Secrets out of text, before the text is cut, logged or sent anywhere."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from urllib.parse import quote

MASK = "[redacted]"
_SHORTEST = 4  # characters; masking anything shorter would make the text unreadable and hide nothing worth hiding

# What looks like a credential is masked even when it is not ours: a gateway's error may quote somebody else's.
_LOOKS_SECRET = re.compile(
    r"(?P<userinfo>(?<=://)[^/@\s\"']+(?=@))|(?P<bearer>(?<=Bearer )[^\s\"']{8,})|(?P<key>\bsk-[A-Za-z0-9_-]{16,})"
)


class Redactor:
    """Replaces the given secrets, in the forms in which they travel, and whatever else looks like a credential."""

    def __init__(self, secrets: Iterable[str | None] = ()) -> None:
        forms: set[str] = set()
        for secret in secrets:
            stripped = (secret or "").strip()
            if secret and len(stripped) >= _SHORTEST:
                forms |= {secret, stripped, quote(stripped, safe=""), json.dumps(stripped)[1:-1]}
        longest_first = sorted(forms, key=len, reverse=True)
        self._known = re.compile("|".join(re.escape(form) for form in longest_first)) if forms else None

    def __call__(self, text: str) -> str:
        """Return `text` without the secrets."""
        if self._known is not None:
            text = self._known.sub(MASK, text)
        return _LOOKS_SECRET.sub(MASK, text)
