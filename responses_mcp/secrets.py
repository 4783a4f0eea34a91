"""Secrets: what they look like, how they are taken out of texts, and what stands where one was never filled in.

`FORMS` is the one table of credentials that issuers give out. A `Redactor` takes them, and this server's own secrets,
out of logs and errors. `OutgoingText` masks them in questions before these leave, also examples of documentation.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, cached_property, partial
from typing import Final, Literal, NamedTuple, TypeAlias

from responses_mcp.errors import BadArgument

Redact: TypeAlias = Callable[[str], str]

MASK: Final = "[redacted]"
_OURS: Final = "secret of this server"
_masked_as = "[masked: {}]".format
_SHORTEST: Final = 4  # characters; masking anything shorter would make a text unreadable and hide nothing
_SHORTEST_WORD: Final = 8  # of a value of several words; "Bearer" and its like are no secrets
_SHORTEST_ASKED: Final = 16  # of our own in a question; a key such as `lm-studio` is a word of many questions
# What servers that want no key have people write in its place: a word of many answers, and known to everybody.
_NO_KEYS: Final = frozenset({"ollama", "lm-studio", "none", "null", "empty", "no-key", "not-needed"})

# Characters that nobody sees, and those that some scripts and emoji need. `sanitization` takes both out of replies.
UNSEEN: Final = (
    r"\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u17b4\u17b5\u202a-\u202e\u2060-\u206f\u3164\ufdd0-\ufdef\ufeff\uffa0\ufff0-\ufffc"
    r"\ufffe\uffff"
)
UNSEEN_AT_TIMES: Final = (
    r"\u061c\u200e\u200f\u034f\u115f\u1160\u180b-\u180f\u200b-\u200d\ufe00-\ufe0f\U000e0000-\U000e0fff"
)
_ENTITIES: Final = {"&": "amp", "<": "lt", ">": "gt", '"': "quot", "'": "apos"}
_UNFILLED: Final = (  # a text, because a start has no time for patterns
    r"(?si)\$(?:env:)?[a-z_]\w*|\$\(.*|\{env:.*|%[a-z_]\w*(?:\([0-9x]*\))?%|<.*>"
    r"|[\w-]*(?:\.{3}|…|\*{3})[\w.*…-]*|(?:sk-)?(?:proj-)?(?:x{4,}|todo|(?:your|insert|paste)[-_ ].*)"
)


def is_unfilled(text: str) -> bool:
    """Tell whether a value is what a person, a client or a shell should have replaced by the real one.

    `$NAME`, `$env:NAME`, `${…}` anywhere, `{env:NAME}`, `%NAME%`, `$(…)`, `<key>`, `sk-...`, `xxxx`, `your-key`.
    """
    return "${" in text or re.fullmatch(_UNFILLED, text) is not None


class Form(NamedTuple):
    """One kind of credential: how it starts, and what follows. Group 1 of `rest`, if there is one, is the secret.

    A word stands alone: within a longer one, as in a picture in base64, chance makes everything. A text without `sign`
    has none: to compile `rest` may take longer than to load the settings.
    """

    kind: str
    starts: tuple[str, ...]
    rest: str
    is_word: bool = True
    sign: str = ""


@cache
def _pattern(start: str, rest: str, is_word: bool) -> re.Pattern[str]:
    """Compile a form at its first use. `re` finds what begins with plain letters thirty times as fast as all else."""
    start = re.escape(start)
    return re.compile(f"{start}(?<![A-Za-z0-9+_-]{start})(?:{rest})(?![A-Za-z0-9_-])" if is_word else start + rest)


_EAST_ASIAN: Final = "\u2e80-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff00-\uffef"  # follow an address without a blank
_PORT: Final = r":(?:80|443|[0-9]{4,5})"
_HOST: Final = r"(?:localhost|(?:[\w-]{1,63}\.){1,8}[\w-]{1,63}|\[[0-9A-Fa-f:.]{2,45}\])"

FORMS: Final = (
    Form("private key", ("-----BEGIN ",),
        r"(?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----(?:(?:[^-]|-(?!----))*+"
        r"-----END (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----|(?:(?:\s|\\[nr])*+[A-Za-z0-9+/=]{16,}+)++)",
        is_word=False),
    Form("AWS access key", ("AKIA", "ASIA"), "[A-Z0-9]{16}"),
    Form("AWS secret key", ("ecret", "ECRET"),
        r"(?:(?:(?<=(?i:awssecret))|(?<=(?i:aws_secret)))_?|[ _-]?(?i:access)[ _-]?)(?i:key)"
        r"[\"'\]\\]{0,3}(?:\s{0,5}[:=>]|\s)\s{0,5}[\"'\\]{0,2}([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
        is_word=False),
    Form("GitHub token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
        "[A-Za-z0-9]{36,251}|[A-Za-z0-9]{22}_[A-Za-z0-9]{59}"),
    Form("GitLab token", ("gl",), "(?:pat|dt|rt|cbt|ptt|soat|oas|ft|imt|agent)-[A-Za-z0-9_-]{20,300}"
        r"(?:\.[0-9a-z]{2}\.[0-9a-z]{9})?"),
    Form("Slack token", ("xox",), r"[a-z](?:\.xox[a-z])?-(?:[0-9]{1,16}-){1,4}[A-Za-z0-9-]{16,400}"),
    Form("Slack token", ("xapp-",), "[0-9]-A[A-Z0-9]{8,14}-[0-9]{8,16}-[a-f0-9]{32,128}"),
    Form("Slack webhook", ("//hooks.slack.com/services/",), "(T[A-Z0-9]{8,12}/B[A-Z0-9]{8,12}/[A-Za-z0-9]{20,48})"),
    Form("Google key", ("AIza",), "[A-Za-z0-9_-]{35}"),
    Form("Google secret", ("GOCSPX-",), "[A-Za-z0-9_-]{28}"),
    Form("Google token", ("ya29.",), "[A-Za-z0-9_-]{60,2000}"),
    Form("Stripe key", ("sk_", "rk_"), "(?:live|test)_[A-Za-z0-9]{24,247}"),
    Form("Stripe key", ("whsec_",), "[A-Za-z0-9]{32,128}"),
    Form("Anthropic key", ("sk-ant-",), "[A-Za-z0-9_-]{40,300}"),
    Form("OpenRouter key", ("sk-or-v1-",), "[a-f0-9]{64}"),
    Form("Groq key", ("gsk_",), "[A-Za-z0-9]{40,64}"),
    Form("xAI key", ("xai-",), "[A-Za-z0-9]{60,100}"),
    Form("OpenAI key", ("sk-",), "(?:proj|svcacct|admin|None)-[A-Za-z0-9_-]{40,300}|[A-Za-z0-9]{40,64}"),
    Form("JWT", ("eyJ",), r"[A-Za-z0-9_-]{8,4000}\.eyJ[A-Za-z0-9_-]{8,16000}\.[A-Za-z0-9_-]{22,2000}"),
    # With each @ in it, which not everybody escapes. Not a host and its port, and not the digest of an image.
    Form("password in a URL", ("://",),
        r"(?=[^\s/\"'\\]{1,401}@)"
        rf"(?!{_HOST}{_PORT}[?#,;|`<>()\[\]{{}}{_EAST_ASIAN}]|[\w.-]{{1,100}}{_PORT}(?:[?|`<>{_EAST_ASIAN}]"
        rf"|[,;]\w{{1,60}}=|,[\w.-]{{1,253}}:[0-9]|[)\]}}]{{1,9}}[,;.]))"
        rf"(?:\$\{{[^\s/\"'\\{{}}]{{0,100}}\}}|[^\s:/?#|\"'\\、。「」，]{{0,100}}+):(?=[^\s/\"'\\]{{1,300}}@)(?!%[a-z]@|{{}}@)"
        rf"([^\s/\"'\\@{_EAST_ASIAN}]{{0,200}}(?:@[!#$%^&*A-Za-z0-9_+=~.-]{{0,100}}){{0,9}})"
        r"(?=@(?!sha[0-9]{3}:)(?:[\w\[<{$%(*.…\"'`\s]|\Z))",
        is_word=False, sign="@"),
)  # fmt: skip

FORMS_IN_LOGS: Final = (  # where a word too many that is masked does no harm
    *FORMS,
    Form("user and password of a URL", ("://",), r"([^/@\s\"']++)@", is_word=False, sign="@"),
    Form("bearer token", ("earer ", "EARER "),
        r"(?<=\b(?i:bearer ))([^\s\"']{8,}+(?:(?<=(?i:bearer)) [^\s\"']{8,}+)*+)", is_word=False),
    Form("key", ("sk-", "SK-", "Sk-", "sK-"), r"(?<=\b(?i:sk-))[A-Za-z0-9_-]{16,}", is_word=False),
)  # fmt: skip


class Outgoing(NamedTuple):
    """A text that may leave, and how many secrets of each kind were masked in it."""

    text: str
    masked: Mapping[str, int]


def _hidden(mask: str, found: re.Match[str]) -> str:
    start, end = (at - found.start() for at in found.span(found.lastindex or 0))
    return found[0][:start] + mask + found[0][end:]


class Redactor:
    """Replaces the given secrets, in the forms in which they travel, and whatever else looks like a credential."""

    def __init__(self, secrets: str | Iterable[str | None] | None = ()) -> None:
        given = [secrets] if isinstance(secrets, str) else secrets or ()
        self._parts = {part for secret in given if secret for part in _parts(secret) if part.lower() not in _NO_KEYS}

    def __call__(self, text: str) -> str:
        """Return `text` without the secrets, and without what looks like one, perhaps somebody else's."""
        return self.masked(text, FORMS_IN_LOGS, lambda _: MASK).text

    def known(self, text: str) -> str:
        """Return `text` without the given secrets only: an answer may explain what keys look like."""
        return self.masked(text, (), lambda _: MASK).text

    def masked(self, text: str, forms: tuple[Form, ...], mask: Callable[[str], str]) -> Outgoing:
        """Return `text` with `mask(kind)` for each of the given secrets, and for each credential of these forms."""
        patterns = [(_OURS, each) for each in self._known]
        patterns += (
            (form.kind, _pattern(start, form.rest, form.is_word))
            for form in forms
            for start in form.starts
            if form.sign in text and start[-1] in text and start in text  # one character takes a tenth of the time
        )
        counts = Counter[str]()
        for kind, pattern in patterns:
            text, times = pattern.subn(partial(_hidden, mask(kind)), text)
            counts[kind] += times
        return Outgoing(text, dict(+counts))

    @cached_property
    def _known(self) -> list[re.Pattern[str]]:
        # One by one: a pattern that begins with plain letters is found thirty times as fast as one of two that do.
        parts = sorted(self._parts, key=len, reverse=True)
        return [re.compile(f"{re.escape(part)}|{''.join(map(_spelled, part))}") for part in parts]


def _parts(secret: str) -> Iterator[str]:
    """Yield the secret without blanks around it, and the words of a value like "Bearer abc", which holds "abc"."""
    if len(stripped := secret.strip()) >= _SHORTEST:
        yield stripped
    yield from (word for word in secret.split() if len(word) >= _SHORTEST_WORD)


def _spelled(character: str) -> str:
    """Return a pattern of a character as such, and as JSON, Python, HTML and URLs write it, also one within another."""
    if character.isascii() and (character.isalnum() or character in "-._~"):
        return re.escape(character)  # nobody escapes these, and most keys begin with some
    plain = r"\\{1,2}+" if character == "\\" else rf"\\?{re.escape(character)}"
    octets = "".join(f"%(?:25)?(?i:{octet:02x})" for octet in character.encode("utf-8", "replace"))
    name, number = _ENTITIES.get(character, "#"), ord(character)
    entity = f"&(?:{name}|#0{{0,7}}{number}|#[xX]0{{0,7}}(?i:{number:x}));"
    escapes = "|".join(re.escape(written(character)[1:-1]) for written in (json.dumps, repr))
    return f"(?:{plain}|{octets}|{entity}|{escapes}{'|[+]' if character == ' ' else ''})"


class OutgoingText:
    """Looks for secrets in texts that are to be sent.

    `mode` is `privacy.outgoing_secrets`: mask them, refuse the question, or allow all. `secrets` are this server's own.
    """

    def __init__(self, mode: Literal["mask", "refuse", "allow"], secrets: Iterable[str | None] = ()) -> None:
        self._mode = mode
        words = [word for secret in secrets if secret for word in secret.split() if len(word) >= _SHORTEST_ASKED]
        self._known = Redactor(words)

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
        """Return a text with its secrets masked, unless they are allowed, also those that unseen characters split."""
        if self._mode == "allow":
            return Outgoing(text, {})
        texts = dict.fromkeys((text, text if text.isascii() else re.sub(f"[{UNSEEN}{UNSEEN_AT_TIMES}]++", "", text)))
        sent = (self._known.masked(each, FORMS, _masked_as) for each in texts)
        return max(sent, key=lambda each: sum(each.masked.values()))


def told(masked: Mapping[str, int]) -> str:
    """Return kinds and counts in words: `2 x GitHub token, JWT`."""
    return ", ".join(f"{times} x {kind}" if times > 1 else kind for kind, times in masked.items())
