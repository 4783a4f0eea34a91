"""Secrets: what they look like, how they are taken out of texts, and what stands where one was never filled in.

`FORMS` is the one table of credentials that issuers give out. A `Redactor` takes them, and this server's own secrets,
out of logs and errors. `OutgoingText` masks them in questions before these leave. Examples of documentation look like
the real thing and are masked, too: a model answers a question about `[masked: AWS access key]` as well.
"""

from __future__ import annotations

import html
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal, NamedTuple, TypeAlias

from responses_mcp.errors import BadArgument

Redact: TypeAlias = Callable[[str], str]

MASK: Final = "[redacted]"
_OURS: Final = "secret of this server"
_LONGEST_SECRET: Final = 4 * 1024  # characters at the end of a text that is cut there, which may be half of one
_SHORTEST: Final = 4  # characters; masking anything shorter would make a text unreadable and hide nothing
_SHORTEST_WORD: Final = 8  # of a value of several words; "Bearer" and its like are no secrets
_SHORTEST_ASKED: Final = 16  # of our own in a question; a key such as `lm-studio` is a word of many questions

_UNFILLED: Final = re.compile(
    r"\$(?:env:)?[a-z_]\w*|\$\(.*|\{env:.*|%[a-z_]\w*(?:\([0-9x]*\))?%|<.*>"
    r"|[\w-]*(?:\.{3}|…|\*{3})[\w.*…-]*|(?:sk-)?(?:proj-)?(?:x{4,}|todo|(?:your|insert|paste)[-_ ].*)",
    re.DOTALL | re.IGNORECASE,
)


def is_unfilled(text: str) -> bool:
    """Tell whether a value is what a person, a client or a shell should have replaced by the real one.

    `$NAME`, `$env:NAME`, `${…}` anywhere, `{env:NAME}`, `%NAME%`, `$(…)`, `<key>`, `sk-...`, `xxxx`, `your-key`.
    """
    return "${" in text or _UNFILLED.fullmatch(text) is not None


@dataclass(frozen=True, eq=False)
class Form:
    """One kind of credential. A text without any of `marks` has none of it; group 1, if there is one, is the secret."""

    kind: str
    marks: tuple[str, ...]
    expression: str

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Return the expression compiled: at first use, because a start has no time for twenty of them."""
        return re.compile(self.expression)


def _alone(pattern: str) -> str:
    """Return a pattern of what is not within a longer word: chance makes everything in a picture in base64."""
    return rf"(?<![A-Za-z0-9+_-])(?:{pattern})(?![A-Za-z0-9_-])"


_EAST_ASIAN: Final = "\u2e80-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff00-\uffef"  # follow an address without a blank
_PORT: Final = r":(?:80|443|[0-9]{4,5})"
_HOST: Final = r"(?:localhost|(?:[\w-]{1,63}\.){1,8}[\w-]{1,63}|\[[0-9A-Fa-f:.]{2,45}\])"

FORMS: Final = (
    Form(
        "private key",
        ("PRIVATE KEY",),
        r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----(?:(?:[^-]|-(?!----))*+"
        r"-----END (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----|(?:(?:\s|\\[nr])*+[A-Za-z0-9+/=]{16,}+)++)",
    ),
    Form("AWS access key", ("AKIA", "ASIA"), _alone(r"A[KS]IA[A-Z0-9]{16}")),
    Form(
        "AWS secret key",
        ("ecret",),
        r"(?i:aws_?secret_?(?:access_?)?key)[\"']?\s{0,5}[:=]\s{0,5}[\"']?([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
    ),
    Form(
        "GitHub token",
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
        _alone(r"gh[pousr]_[A-Za-z0-9]{36,251}|github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}"),
    ),
    Form("GitLab token", ("gl",), _alone(r"gl(?:pat|dt|rt|cbt|ptt|soat|oas|ft|imt|agent)-[A-Za-z0-9_-]{20,300}")),
    Form(
        "Slack token",
        ("xox", "xapp-"),
        _alone(
            r"xox[abeoprs]-(?:[0-9]{8,16}-){1,3}[A-Za-z0-9-]{16,200}"
            r"|xapp-[0-9]-A[A-Z0-9]{8,14}-[0-9]{8,16}-[a-f0-9]{32,128}"
        ),
    ),
    Form(
        "Slack webhook",
        ("hooks.slack.com",),
        _alone(r"https://hooks\.slack\.com/services/(T[A-Z0-9]{8,12}/B[A-Z0-9]{8,12}/[A-Za-z0-9]{20,48})"),
    ),
    Form("Google key", ("AIza",), _alone(r"AIza[A-Za-z0-9_-]{35}")),
    Form("Google secret", ("GOCSPX-",), _alone(r"GOCSPX-[A-Za-z0-9_-]{28}")),
    Form("Google token", ("ya29.",), _alone(r"ya29\.[A-Za-z0-9_-]{60,2000}")),
    Form(
        "Stripe key",
        ("k_live_", "k_test_", "whsec_"),
        _alone(r"[sr]k_(?:live|test)_[A-Za-z0-9]{24,247}|whsec_[A-Za-z0-9]{32,128}"),
    ),
    Form("Anthropic key", ("sk-ant-",), _alone(r"sk-ant-[A-Za-z0-9_-]{40,300}")),
    Form(
        "OpenAI key",
        ("sk-",),
        _alone(r"sk-(?:(?:proj|svcacct|admin|None)-[A-Za-z0-9_-]{40,300}|[A-Za-z0-9]{40,64})"),
    ),
    Form("JWT", ("eyJ",), _alone(r"eyJ[A-Za-z0-9_-]{8,4000}\.eyJ[A-Za-z0-9_-]{8,16000}\.[A-Za-z0-9_-]{22,2000}")),
    Form(
        "password in a URL",
        ("://",),  # with each @ in it, which not everybody escapes; behind another is the digest of an image
        rf"(?<=://)(?!{_HOST}{_PORT}[?#,;|`<>()\[\]{{}}{_EAST_ASIAN}]|[\w.-]{{1,100}}{_PORT}(?:[?|`<>{_EAST_ASIAN}]"
        rf"|[,;]\w{{1,60}}=|,[\w.-]{{1,253}}:[0-9]|[)\]}}]{{1,9}}[,;.]))"  # a host and its port, and what follows
        rf"(?:\$\{{[^\s/\"'\\{{}}]{{0,100}}\}}|[^\s:/?#|\"'\\、。「」，]{{0,100}}+):(?=[^\s/\"'\\]{{3,300}}@)"
        rf"([^\s/\"'\\@{_EAST_ASIAN}]{{0,200}}(?:@[!#$%^&*A-Za-z0-9_+=~.-]{{0,100}}){{0,9}})"
        r"(?=@(?!sha[0-9]{3}:)[\w\[<{$%(*.…])",
    ),
)

FORMS_IN_LOGS: Final = (
    *FORMS,
    Form("user and password of a URL", ("://",), r"(?<=://)[^/@\s\"']+(?=@)"),
    Form("bearer token", ("earer", "EARER"), r"(?i:(?<=\bbearer ))[^\s\"']{8,}"),
    Form("key", ("sk-", "SK-", "Sk-", "sK-"), r"(?i:\bsk-[a-z0-9_-]{16,})"),
)
"""Those of `FORMS`, and what is good enough for a log, where a word too many that is masked does no harm."""


def _forms_in(text: str, forms: tuple[Form, ...]) -> list[Form]:
    return [form for form in forms if any(mark in text for mark in form.marks)]


class Redactor:
    """Replaces the given secrets, in the forms in which they travel, and whatever else looks like a credential."""

    def __init__(self, secrets: str | Iterable[str | None] | None = ()) -> None:
        if isinstance(secrets, str):  # else its letters would be taken for secrets, and nothing masked
            secrets = [secrets]
        parts = {part for secret in secrets or () if secret for part in _parts(secret)}
        # One by one: a pattern that begins with plain letters is found thirty times as fast as one of two that do.
        self._known = [re.compile("|".join(_spellings(part))) for part in sorted(parts, key=len, reverse=True)]

    def __call__(self, text: str) -> str:
        """Return `text` without the secrets, and without what looks like one, perhaps somebody else's."""
        text = self.known(text)
        for form in _forms_in(text, FORMS_IN_LOGS):
            text = form.pattern.sub(MASK, text)
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


def redacted_beginning(text: str, most: int, redact: Redact, *, cut: bool = False) -> str:
    """Return the first `most` characters without secrets, nor the half of one where a text is, or was, cut."""
    shown = redact(text[:most])
    return shown[:-_LONGEST_SECRET] if cut or len(text) > most else shown


def _parts(secret: str) -> Iterator[str]:
    """Yield the secret without blanks around it, and the words of a value like "Bearer abc", which holds "abc"."""
    words = secret.split()
    if len(stripped := secret.strip()) >= _SHORTEST:
        yield stripped
    yield from (word for word in words if len(words) > 1 and len(word) >= _SHORTEST_WORD)


def _spellings(secret: str) -> Iterator[str]:
    """Yield patterns of the secret as JSON, Python and HTML write it, and last of it as such or within a URL."""
    escaped, entities = json.dumps(secret)[1:-1], html.escape(secret)
    spelled = {
        escaped,
        escaped.replace("/", "\\/"),
        json.dumps(secret, ensure_ascii=False)[1:-1],
        repr(secret)[1:-1],
        entities,
        html.escape(secret, quote=False),
        entities.replace("&quot;", "&#34;").replace("&#x27;", "&#39;"),
    }
    yield from map(re.escape, sorted(spelled - {secret}, key=len, reverse=True))
    yield "".join(map(_in_url, secret))


def _in_url(character: str) -> str:
    """Return a pattern of a character as such and with percent escapes, which a URL within a URL has twice."""
    if character.isascii() and (character.isalnum() or character in "-._~"):
        return re.escape(character)  # nobody escapes these, and most keys begin with some
    octets = (f"%(?:25)?(?i:{octet:02x})" for octet in character.encode("utf-8", "replace"))
    return f"(?:{re.escape(character)}|{''.join(octets)}{'|[+]' if character == ' ' else ''})"


class Outgoing(NamedTuple):
    """A text that may leave, and how many secrets of each kind were masked in it."""

    text: str
    masked: Mapping[str, int]


class OutgoingText:
    """Looks for secrets in texts that are to be sent.

    `mode` is `privacy.outgoing_secrets`: mask them, refuse the question, or allow all. `secrets` are this server's own.
    """

    def __init__(self, mode: Literal["mask", "refuse", "allow"], secrets: Iterable[str | None] = ()) -> None:
        self._mode = mode
        words = (word for secret in secrets if secret for word in secret.split())
        self._known = Redactor(word for word in words if len(word) >= _SHORTEST_ASKED)

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
        text, times = self._known.masked(text, _mask(_OURS))
        counts = Counter({_OURS: times})
        for form in _forms_in(text, FORMS):

            def masked(found: re.Match[str], kind: str = form.kind) -> str:
                start, end = (at - found.start() for at in found.span(found.lastindex or 0))
                return found[0][:start] + _mask(kind) + found[0][end:]

            text, times = form.pattern.subn(masked, text)
            counts[form.kind] += times
        return Outgoing(text, +counts)


def told(masked: Mapping[str, int]) -> str:
    """Return kinds and counts in words: `2 x GitHub token, JWT`."""
    return ", ".join(f"{times} x {kind}" if times > 1 else kind for kind, times in masked.items())


def _mask(kind: str) -> str:
    return f"[masked: {kind}]"
