"""What a check says: a status, what was found and, where it is not well, the fix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple, TypeAlias

from responses_mcp.errors import exhausted

Status: TypeAlias = Literal["ok", "warn", "FAIL", "skip"]


class Finding(NamedTuple):
    """One line. `fix` is a sentence without its full stop; no secret is in any of it."""

    check: str
    status: Status
    found: str
    fix: str | None = None


Tell: TypeAlias = Callable[[Finding], None]
"""Takes a finding as soon as there is one."""


def ok(check: str, found: str) -> Finding:
    """Return that a check found nothing wrong."""
    return Finding(check, "ok", found)


def warn(check: str, found: str, fix: str) -> Finding:
    """Return what works here, but may fail with some clients, or later."""
    return Finding(check, "warn", found, fix)


def fail(check: str, found: str, fix: str) -> Finding:
    """Return what keeps the server from answering."""
    return Finding(check, "FAIL", found, fix)


def fail_by(error: Exception, check: str, found: str, fix: str) -> Finding:
    """Return a failure of the system; if it has run out of something, that is named instead."""
    shortage = exhausted(error)
    return fail(check, *with_cure(shortage)) if shortage else fail(check, found, fix)


def skip(check: str, why: str) -> Finding:
    """Return that a check was not made."""
    return Finding(check, "skip", why)


def with_cure(message: str) -> tuple[str, str]:
    """Return what an error's message says happened, and its last part, which says what to do."""
    text = message.rstrip(".")
    at = max(text.rfind(mark) for mark in (". ", "; ", ": "))
    return (text[:at], text[at + 2].lower() + text[at + 3 :]) if at > 0 else (text, "see the message")


def of_sentence(check: str, status: Status, sentence: str) -> Finding:
    """Return a problem or warning of the configuration, which is worded "what (from where); fix."."""
    what, _, fix = sentence.partition("); ")
    return Finding(check, status, f"{what})", fix.rstrip(".")) if fix else Finding(check, status, sentence)
