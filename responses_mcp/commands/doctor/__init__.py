"""`openai-responses-mcp doctor`: what is wrong here, and what to do about it, one line a check."""

from responses_mcp.commands.doctor.command import run

__all__ = ["run"]
