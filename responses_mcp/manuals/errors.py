"""What a `manual_*` tool answers when it cannot do what was asked."""

from __future__ import annotations

from typing import Any, Literal

from responses_mcp.errors import ResponsesMcpError

ErrorCode = Literal[
    "invalid_parameter",
    "invalid_path",
    "out_of_scope",
    "needs_narrow_scope",
    "not_found",
    "forbidden",
    "invalid_scope",
    "conflict",
]


class ManualsError(ResponsesMcpError):
    """A request about manuals was refused or could not be met.

    `message` is one sentence with the cause and the cure, without absolute paths; `details` are for programs.
    """

    def __init__(self, code: ErrorCode, message: str, **details: Any) -> None:
        super().__init__(message)
        self.code: ErrorCode = code
        self.message = message
        self.details = details

    def as_json(self) -> dict[str, Any]:
        """Return `{code, message, details?}`."""
        shown: dict[str, Any] = {"code": self.code, "message": self.message}
        return {**shown, "details": self.details} if self.details else shown
