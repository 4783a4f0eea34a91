"""What credentials look like: one table, by which logs are redacted and questions are masked before they leave.

A row that is `certain` describes what its issuer gives out and nothing else looks like; the others are good enough for
a log, where a word too many that is masked does no harm. Examples of documentation look like the real thing.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple


class Credential(NamedTuple):
    """One kind. A text without any of `marks` has none of it; group 1 of `pattern`, if there is one, is the secret."""

    kind: str
    marks: tuple[str, ...]
    pattern: re.Pattern[str]
    certain: bool = True


def _alone(pattern: str) -> str:
    """Return a pattern of what is not within a longer word: chance makes everything in a picture in base64."""
    return rf"(?<![A-Za-z0-9+_-])(?:{pattern})(?![A-Za-z0-9_-])"


CREDENTIALS: Final = (
    Credential(
        "private key",
        ("PRIVATE KEY",),
        re.compile(
            r"-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----(?:(?:[^-]|-(?!----))*+"
            r"-----END (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----|(?:(?:\s|\\[nr])*+[A-Za-z0-9+/=]{16,}+)*+)"
        ),
    ),
    Credential(
        "AWS access key",
        (
            "AKIA",
            "ASIA",
        ),
        re.compile(_alone(r"A[KS]IA[A-Z2-7]{16}")),
    ),
    Credential(
        "AWS secret key",
        ("ecret",),
        re.compile(
            r"(?i:aws_?secret_?(?:access_?)?key)[\"']?\s{0,5}[:=]\s{0,5}[\"']?([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])"
        ),
    ),
    Credential(
        "GitHub token",
        (
            "ghp_",
            "gho_",
            "ghu_",
            "ghs_",
            "ghr_",
        ),
        re.compile(_alone(r"gh[pousr]_[A-Za-z0-9]{36,251}")),
    ),
    Credential("GitHub token", ("github_pat_",), re.compile(_alone(r"github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}"))),
    Credential(
        "GitLab token",
        ("gl",),
        re.compile(_alone(r"gl(?:pat|dt|rt|cbt|ptt|soat|oas|ft|imt|agent)-[A-Za-z0-9_-]{20,300}")),
    ),
    Credential("Slack token", ("xox",), re.compile(_alone(r"xox[abeoprs]-(?:[0-9]{8,16}-){1,3}[A-Za-z0-9-]{16,200}"))),
    Credential(
        "Slack token", ("xapp-",), re.compile(_alone(r"xapp-[0-9]-A[A-Z0-9]{8,14}-[0-9]{8,16}-[a-f0-9]{32,128}"))
    ),
    Credential(
        "Slack webhook",
        ("hooks.slack.com",),
        re.compile(_alone(r"https://hooks\.slack\.com/services/(T[A-Z0-9]{8,12}/B[A-Z0-9]{8,12}/[A-Za-z0-9]{20,48})")),
    ),
    Credential("Google key", ("AIza",), re.compile(_alone(r"AIza[A-Za-z0-9_-]{35}"))),
    Credential("Google secret", ("GOCSPX-",), re.compile(_alone(r"GOCSPX-[A-Za-z0-9_-]{28}"))),
    Credential("Google token", ("ya29.",), re.compile(_alone(r"ya29\.[A-Za-z0-9_-]{60,2000}"))),
    Credential(
        "Stripe key",
        (
            "k_live_",
            "k_test_",
        ),
        re.compile(_alone(r"[sr]k_(?:live|test)_[A-Za-z0-9]{24,247}")),
    ),
    Credential("Stripe key", ("whsec_",), re.compile(_alone(r"whsec_[A-Za-z0-9]{32,128}"))),
    Credential("Anthropic key", ("sk-ant-",), re.compile(_alone(r"sk-ant-[A-Za-z0-9_-]{40,300}"))),
    Credential(
        "OpenAI key",
        ("sk-",),
        re.compile(_alone(r"sk-(?:(?:proj|svcacct|admin|None)-[A-Za-z0-9_-]{40,300}|[A-Za-z0-9]{40,64})")),
    ),
    Credential(
        "JWT",
        ("eyJ",),
        re.compile(_alone(r"eyJ[A-Za-z0-9_-]{8,4000}\.eyJ[A-Za-z0-9_-]{8,16000}\.[A-Za-z0-9_-]{22,2000}")),
    ),
    Credential(
        "password in a URL",
        ("://",),
        re.compile(r"(?<=://)[^\s:/@\"'<>\\]{0,100}:([^\s/@\"'<>\\]{6,200})(?=@[\w\[])"),
    ),
    Credential("user and password of a URL", ("://",), re.compile(r"(?<=://)[^/@\s\"']+(?=@)"), certain=False),
    Credential(
        "bearer token",
        (
            "earer",
            "EARER",
        ),
        re.compile(r"(?i:(?<=\bbearer ))[^\s\"']{8,}"),
        certain=False,
    ),
    Credential(
        "key",
        (
            "sk-",
            "SK-",
            "Sk-",
            "sK-",
        ),
        re.compile(r"(?i:\bsk-[a-z0-9_-]{16,})"),
        certain=False,
    ),
)

_EXAMPLE: Final = re.compile(
    r"(?i)example|your|xxxx|placeholder|dummy|sample|redacted|masked|changeme|insert|replace|fake|\*{3}|\.{3}|…|"
    r"abcdef|012345|123456|654321|fedcba|qwerty|deadbeef|t00000000|test_?key|not_?a_?real"
)
_PLACEHOLDER: Final = re.compile(
    r"(?i)pass|pwd|passwd|secret|token|changeme|example|your|xxx|\*\*|[$%{}<>\[\]]|…|\.\.\.|^[0-9]{1,5}$"
)
_FEWEST: Final = 10  # different characters in what nobody typed
_BASE64_LINE: Final = re.compile(r"[A-Za-z0-9+/=]{40}")
_JOHN_DOE: Final = ".eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9l"  # the subject of every example of jwt.io
_PUBLISHED: Final = frozenset({"sk_test_4eC39HqLyjWDarjtT1zdp7dc", "sk_test_BQokikJOvBiI2HlWgH4olfQ2"})  # by Stripe


def is_example(kind: str, secret: str, around: str) -> bool:
    """Tell whether what looks like a credential is one that documentation shows; `around` is all that matched."""
    if kind == "password in a URL":
        return bool(_PLACEHOLDER.search(secret)) or secret == around.partition(":")[0]
    if kind == "private key":
        body = secret.partition("KEY")[2]
        return not (line := _BASE64_LINE.search(body)) or len(set(line[0])) < _FEWEST
    if kind == "JWT":
        return _JOHN_DOE in secret or bool(_EXAMPLE.search(secret.rpartition(".")[2]))
    return secret in _PUBLISHED or bool(_EXAMPLE.search(secret)) or len(set(secret)) < _FEWEST
