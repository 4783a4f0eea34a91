"""The model's instructions: the built-in policy, a file, or both (contract 4)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from responses_mcp.settings.files import Unread, read_text
from responses_mcp.settings.findings import Raw

if TYPE_CHECKING:
    from pathlib import Path

    from responses_mcp.settings.findings import Findings, Part

LIMIT: Final = 256 * 1024
"""Bytes that a policy file may have."""


def instructions_from(path: Path, merge: str, where: tuple[Part, ...], findings: Findings) -> str | None:
    """Return the text for the model, or None after adding a problem: a policy file never falls back silently.

    `replace` takes the file as it is; `prepend` and `append` put one blank line between it and the built-in text.
    """
    text = read_text(path, LIMIT)
    if not isinstance(text, Unread) and not text.strip():
        text = Unread("an empty file")
    if isinstance(text, Unread):
        findings.problem(
            f"policy.system.path: expected a text file in UTF-8 of at most {LIMIT // 1024} KiB, got {text.reason} at ",
            Raw(str(path), quoted=False, limit=300),
            " (from ",
            *where,
            "); cure the file or set policy.system.source to builtin.",
        )
        return None
    if merge == "replace":
        return text
    from responses_mcp.settings.system_policy import SYSTEM_POLICY  # noqa: PLC0415 - text that few starts need

    own = text.strip("\r\n")
    return f"{own}\n\n{SYSTEM_POLICY}" if merge == "prepend" else f"{SYSTEM_POLICY}\n\n{own}"
