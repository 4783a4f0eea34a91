"""What credentials look like: one table, by which logs are redacted and questions are masked before they leave.

A row that is `certain` describes what its issuer gives out and nothing else looks like; the others are good enough for
a log, where a word too many that is masked does no harm. Examples of documentation look like the real thing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Final


@dataclass(frozen=True, eq=False)
class Credential:
    """One kind. A text without any of `marks` has none of it; group 1 of `pattern`, if there is one, is the secret."""

    kind: str
    marks: tuple[str, ...]
    expression: str
    certain: bool = True

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Return the expression compiled: at first use, because a start has no time for twenty of them."""
        return re.compile(self.expression)


def _alone(pattern: str) -> str:
    """Return a pattern of what is not within a longer word: chance makes everything in a picture in base64."""
    return rf"(?<![A-Za-z0-9+_-])(?:{pattern})(?![A-Za-z0-9_-])"


# Behind the name of a host: a number, or what templates have in its place.
_PORT: Final = r"(?:80|443|[0-9]{4,5}|\$[A-Z_]{2,60}|\$?\{[\w.]{0,60}\}|<[\w.-]{1,60}>|%[sd])"
# These follow an address without a blank.
_EAST_ASIAN: Final = "[\u2e80-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff00-\uffef]"

CREDENTIALS: Final = (
    Credential(
        "private key",
        ("PRIVATE KEY",),
        (
            r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----(?:(?:[^-]|-(?!----))*+"
            r"-----END (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----|(?:(?:\s|\\[nr])*+[A-Za-z0-9+/=]{16,}+)*+)"
        ),
    ),
    Credential(
        "AWS access key",
        ("AKIA", "ASIA"),
        _alone(r"A[KS]IA[A-Z2-7]{16}"),
    ),
    Credential(
        "AWS secret key",
        ("ecret",),
        r"(?i:aws_?secret_?(?:access_?)?key)[\"']?\s{0,5}[:=]\s{0,5}[\"']?([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
    ),
    Credential(
        "GitHub token",
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
        _alone(r"gh[pousr]_[A-Za-z0-9]{36,251}"),
    ),
    Credential("GitHub token", ("github_pat_",), _alone(r"github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}")),
    Credential(
        "GitLab token",
        ("gl",),
        _alone(r"gl(?:pat|dt|rt|cbt|ptt|soat|oas|ft|imt|agent)-[A-Za-z0-9_-]{20,300}"),
    ),
    Credential("Slack token", ("xox",), _alone(r"xox[abeoprs]-(?:[0-9]{8,16}-){1,3}[A-Za-z0-9-]{16,200}")),
    Credential("Slack token", ("xapp-",), _alone(r"xapp-[0-9]-A[A-Z0-9]{8,14}-[0-9]{8,16}-[a-f0-9]{32,128}")),
    Credential(
        "Slack webhook",
        ("hooks.slack.com",),
        _alone(r"https://hooks\.slack\.com/services/(T[A-Z0-9]{8,12}/B[A-Z0-9]{8,12}/[A-Za-z0-9]{20,48})"),
    ),
    Credential("Google key", ("AIza",), _alone(r"AIza[A-Za-z0-9_-]{35}")),
    Credential("Google secret", ("GOCSPX-",), _alone(r"GOCSPX-[A-Za-z0-9_-]{28}")),
    Credential("Google token", ("ya29.",), _alone(r"ya29\.[A-Za-z0-9_-]{60,2000}")),
    Credential(
        "Stripe key",
        ("k_live_", "k_test_"),
        _alone(r"[sr]k_(?:live|test)_[A-Za-z0-9]{24,247}"),
    ),
    Credential("Stripe key", ("whsec_",), _alone(r"whsec_[A-Za-z0-9]{32,128}")),
    Credential("Anthropic key", ("sk-ant-",), _alone(r"sk-ant-[A-Za-z0-9_-]{40,300}")),
    Credential(
        "OpenAI key",
        ("sk-",),
        _alone(r"sk-(?:(?:proj|svcacct|admin|None)-[A-Za-z0-9_-]{40,300}|[A-Za-z0-9]{40,64})"),
    ),
    Credential(
        "JWT",
        ("eyJ",),
        _alone(r"eyJ[A-Za-z0-9_-]{8,4000}\.eyJ[A-Za-z0-9_-]{8,16000}\.[A-Za-z0-9_-]{22,2000}"),
    ),
    Credential(
        "password in a URL",
        ("://",),
        (  # with each @ in it, which not everybody escapes; that of an image stands before its digest
            rf"(?<=://)(?!(?:localhost|(?:[A-Za-z0-9_-]{{1,63}}\.){{1,8}}[A-Za-z0-9_-]{{1,63}}|\[[0-9A-Fa-f:.]{{2,45}}\])"
            rf":{_PORT}(?:[?#,;|`<>()\[\]{{}}]|{_EAST_ASIAN}))"  # a host and its port, and what is said behind it
            rf"(?:\$\{{[^\s/\"'\\{{}}]{{0,100}}\}}|[^\s:/?#|\"'\\、。「」，]){{0,100}}+:"
            rf"(?:(?<=//:)|(?!{_PORT}(?:[?|`<>]|{_EAST_ASIAN}|[,;]\w{{1,60}}=|,[\w.-]{{1,253}}:[0-9]|[)\]}}]{{1,9}}[,;.])))"
            rf"(?=(?:(?!{_EAST_ASIAN})[^\s/\"'\\]){{6,300}}@)"
            rf"((?:(?!{_EAST_ASIAN})[^\s/\"'\\@]){{0,200}}(?:@[!#$%^&*A-Za-z0-9_+=~.-]{{0,100}}){{0,9}})"
            r"(?=@(?!sha[0-9]{3}:)[\w\[<{$%(*./…])"
        ),
    ),
    Credential("user and password of a URL", ("://",), r"(?<=://)[^/@\s\"']+(?=@)", certain=False),
    Credential(
        "bearer token",
        ("earer", "EARER"),
        r"(?i:(?<=\bbearer ))[^\s\"']{8,}",
        certain=False,
    ),
    Credential(
        "key",
        ("sk-", "SK-", "Sk-", "sK-"),
        r"(?i:\bsk-[a-z0-9_-]{16,})",
        certain=False,
    ),
)

_BY_MARK: Final = tuple((mark, credential) for credential in CREDENTIALS for mark in credential.marks)


def credentials_in(text: str) -> Iterable[Credential]:
    """Return the kinds of which a text may have some, in the order of the table."""
    return dict.fromkeys([credential for mark, credential in _BY_MARK if mark in text])
