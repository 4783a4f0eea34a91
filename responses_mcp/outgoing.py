"""What leaves: secrets that somebody left in a question are masked, or the question is refused, before it is sent."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from responses_mcp.credential_patterns import Credential, credentials_in
from responses_mcp.errors import BadArgument
from responses_mcp.placeholders import is_made_up, is_placeholder
from responses_mcp.redaction import Redactor
from responses_mcp.settings.model import Settings

_OURS: Final = "secret of this server"
_FEWEST: Final = 10  # different characters in a line that nobody typed
_BASE64_LINE: Final = re.compile(r"[A-Za-z0-9+/=]{40}")
_JOHN_DOE: Final = ".eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9l"  # the subject of every example of jwt.io
_PUBLISHED: Final = frozenset({"sk_test_4eC39HqLyjWDarjtT1zdp7dc", "sk_test_BQokikJOvBiI2HlWgH4olfQ2"})  # by Stripe
_SHORTEST: Final = 16  # characters; a key such as `lm-studio` is a word of many questions


class Outgoing(NamedTuple):
    """A text that may leave, and how many secrets of each kind were masked in it."""

    text: str
    masked: Mapping[str, int]


class OutgoingText:
    """Looks for secrets in texts that are to be sent, and does with them what `privacy.outgoing_secrets` says."""

    def __init__(self, settings: Settings) -> None:
        self._mode = settings.privacy.outgoing_secrets
        values = [settings.openai.api_key, *settings.openai.headers.values()]
        long_ones = [each for value in values if value for each in value.split() if len(each) >= _SHORTEST]
        self._known = Redactor(long_ones)

    def question(self, text: str) -> Outgoing:
        """Return a question as it may be sent; one without secrets is the same object. Raises `BadArgument`."""
        found = self.masked(text)
        if found.masked and self._mode == "refuse":
            raise BadArgument(
                f"The question has what looks like a secret ({told(found.masked)}), so it was not sent; take it out, "
                "or set privacy.outgoing_secrets (PRIVACY_OUTGOING_SECRETS) to mask or allow."
            )
        return found

    def masked(self, text: str) -> Outgoing:
        """Return a text with its secrets masked, unless they are allowed."""
        if self._mode == "allow":
            return Outgoing(text, {})
        counts: dict[str, int] = defaultdict(int)
        text, times = self._known.masked(text, _mask(_OURS))
        if times:
            counts[_OURS] = times
        for credential in credentials_in(text):
            if credential.certain:
                text = _without(credential, text, counts)
        return Outgoing(text, dict(counts))


def told(masked: Mapping[str, int]) -> str:
    """Return kinds and counts in words: `2 x GitHub token, JWT`."""
    return ", ".join(f"{times} x {kind}" if times > 1 else kind for kind, times in masked.items())


def added(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Return the counts of several texts together."""
    counts: dict[str, int] = defaultdict(int)
    for part in parts:
        for kind, times in part.items():
            counts[kind] += times
    return dict(counts)


def _without(credential: Credential, text: str, counts: dict[str, int]) -> str:
    def mask(found: re.Match[str]) -> str:
        group = 1 if found.re.groups else 0
        if _is_example(credential.kind, found[group], found[0]):
            return found[0]
        counts[credential.kind] += 1
        start = found.start()
        return found[0][: found.start(group) - start] + _mask(credential.kind) + found[0][found.end(group) - start :]

    return credential.pattern.sub(mask, text)


def _mask(kind: str) -> str:
    return f"[masked: {kind}]"


def _is_example(kind: str, secret: str, around: str) -> bool:
    """Tell whether what looks like a credential is one that documentation shows; `around` is all that matched."""
    if kind == "password in a URL":
        return is_placeholder(secret, user=around[: -len(secret) - 1])
    if kind == "private key":
        body = secret.partition("KEY")[2]
        return not (line := _BASE64_LINE.search(body)) or len(set(line[0])) < _FEWEST
    if kind == "JWT":
        return _JOHN_DOE in secret or is_made_up(secret.rpartition(".")[2])
    return secret in _PUBLISHED or is_made_up(secret)
