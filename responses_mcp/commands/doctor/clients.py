"""How long MCP clients wait, and where they can be told to wait longer.

From what their users report: anthropics/claude-code#16837, #22542, #84136; openai/codex#31641, #38689;
kky42/codex-as-mcp#5; modelcontextprotocol/typescript-sdk#2250. Looked up on 2026-11-21.
"""

from __future__ import annotations

from typing import Final, NamedTuple

_SHORTER: Final = "set request.timeout_ms (OPENAI_API_TIMEOUT) to 55000, or let it use answer_quick with a low effort"


class Client(NamedTuple):
    """Seconds that a client waits for the first answer of a server and for a call; None where it hardly matters."""

    title: str
    start: float
    call: float | None
    start_cure: str
    call_cure: str


CLIENTS: Final = {
    "codex": Client(
        "Codex",
        start=1,  # for the first turn, unless the server is required
        call=60,
        start_cure="for Codex set required = true and startup_timeout_sec = 30 in the server's entry",
        call_cure="for Codex set tool_timeout_sec = 600 in the server's entry",
    ),
    "claude-code": Client(
        "Claude Code",
        start=30,
        call=None,
        start_cure="for Claude Code set MCP_TIMEOUT=60000",
        call_cure="",
    ),
    "claude-desktop": Client(
        "Claude Desktop",
        start=60,
        call=60,
        start_cure="Claude Desktop cannot be told to wait longer",
        call_cure=f"for Claude Desktop, which cannot be told to wait longer, {_SHORTER}",
    ),
    "typescript-sdk": Client(
        "many clients made with the TypeScript SDK",
        start=60,
        call=60,
        start_cure="for other clients raise their own time-out",
        call_cure="for other clients raise their own time-out",
    ),
}
