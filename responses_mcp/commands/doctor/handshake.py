"""The server as a client starts it: a child process, a handshake, the list of tools, and the end of input."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

import trio

from responses_mcp.commands.clients.known import Client
from responses_mcp.commands.findings import Finding, fail, ok, warn
from responses_mcp.errors import program
from responses_mcp.testing.client import NoMessage, started_client

_ANSWERS: Final = 30.0  # seconds for the handshake and the list; hardly a client waits longer
_ENDS: Final = 5.0  # seconds for the process to exit at the end of its input
_SHOWN: Final = 120  # characters of a line that the server wrote
_LAST_WORDS: Final = 64 * 1024  # bytes of stderr, for the last line


@dataclass(slots=True)
class Handshake:
    """What a server did. `seconds` is how long the answer to `initialize` took from the start of the process.

    `noise` is what was on stdout and no message, `last_words` the last line on stderr, both shortened; `exit_code` is
    None for a process that had to be killed.
    """

    seconds: float | None = None
    tools: list[str] | None = None
    noise: str | None = None
    exit_code: int | None = None
    last_words: str = ""


async def shake_hands(
    command: Sequence[str],
    redact: Callable[[str], str],
    started: tuple[Mapping[str, str], Path] | None = None,
    *,
    answers: float = _ANSWERS,
    ends: float = _ENDS,
) -> Handshake:
    """Start a server, shake hands, end its input; takes at most `answers` + `ends` seconds.

    `started` is its environment and the folder in which it starts, None for those of this process. `redact` takes
    secrets out of a line that the server wrote. Raises OSError for a command that cannot be started.
    """
    environ, folder = started or (None, None)
    result, began = Handshake(), trio.current_time()
    with tempfile.TemporaryFile() as stderr:
        try:
            async with started_client(command, stderr=stderr.fileno(), env=environ, cwd=folder) as (process, client):
                with trio.move_on_after(answers), suppress(EOFError, trio.BrokenResourceError):
                    await client.initialize()
                    result.seconds = trio.current_time() - began
                    result.tools = _names(await client.ask("tools/list"))
                with trio.move_on_after(ends):
                    await client.end_input()
                    await client.wait_end()
                    result.exit_code = await process.wait()
        except* NoMessage as errors:
            result.noise = redact(str(errors.exceptions[0]))[:_SHOWN]
        result.last_words = redact(_last_line(stderr))[:_SHOWN]
    return result


def _names(answer: dict[str, Any]) -> list[str] | None:
    try:
        return [str(tool["name"]) for tool in answer["result"]["tools"]]
    except (KeyError, TypeError):
        return None


def _last_line(file: IO[bytes]) -> str:
    file.seek(max(0, file.seek(0, 2) - _LAST_WORDS))
    return file.read().decode("utf-8", "replace").strip().rpartition("\n")[2]


def check_handshake(handshake: Handshake, clients: Sequence[Client], whose: str = "the server") -> Iterator[Finding]:
    """Compare what a server did with what clients expect; `whose` says in words which server that was."""
    if handshake.noise is not None:
        cure = "find what prints to stdout (a sitecustomize, a .pth file, a wrapper script) and let it print to stderr"
        yield fail("stdout", f"a line that is not a message: {handshake.noise}", cure)
        return
    yield _start(handshake, clients, whose)
    if handshake.seconds is not None:
        yield ok("stdout", "nothing but messages")
        code = handshake.exit_code
        still = f"the server still ran {_ENDS:g} s after" if code is None else f"the server ended with code {code} at"
        told = f"{still} the end of its input"
        report = "run it with --debug PATH, and report this with the log"
        yield ok("exit", told) if code == 0 else fail("exit", told, report)


def _start(handshake: Handshake, clients: Sequence[Client], whose: str) -> Finding:
    seconds, said = handshake.seconds, handshake.last_words or "nothing"
    look = f'run "{program()} --stdio" in a terminal and read what it says, or write the entry anew with install'
    if seconds is None and handshake.exit_code is not None:
        found = f"{whose} ended with code {handshake.exit_code} before it answered; its last output: {said}"
        return fail("start", found, look)
    if seconds is None:
        return fail("start", f"{whose} did not answer initialize within {_ANSWERS:g} s; it said: {said}", look)
    found = f"{whose} answered initialize after {seconds:.2f} s"
    if handshake.tools is None:
        return fail("start", f"{found}, but not tools/list; it said: {said}", look)
    found += f" and lists the tools {', '.join(handshake.tools)}"
    hasty = [f"{each.title} (about {each.start:g} s)" for each in clients if each.start and each.start <= seconds]
    if not hasty:
        return ok("start", found)
    fix = "start the installed executable, not uvx or a wrapper, or raise the client's limit for the start"
    return warn("start", f"{found}; {', '.join(hasty)} may give up before that and show no tools", fix)
