"""The server as a client starts it: a child process, a handshake, the list of tools, and the end of input."""

from __future__ import annotations

import errno
import json
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Final, cast

import trio

from responses_mcp.commands.clients.known import ClientLimits
from responses_mcp.commands.doctor.findings import Finding, fail, ok, warn
from responses_mcp.errors import program

_ANSWERS: Final = 30.0  # seconds for the handshake and the list; hardly a client waits longer
_ENDS: Final = 5.0  # seconds for the process to exit at the end of its input
_LONGEST_LINE: Final = 4 * 1024 * 1024  # bytes
_SHOWN: Final = 120  # characters of a line that the server wrote
_LAST_WORDS: Final = 64 * 1024  # bytes of stderr, for the last line
_CLIENT: Final = {"name": "openai-responses-mcp doctor", "version": "1"}
_HELLO: Final = {"protocolVersion": "2025-06-18", "capabilities": dict[str, str](), "clientInfo": _CLIENT}
_MESSAGES: Final = (
    {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": _HELLO},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": dict[str, str]()},
)


@dataclass(slots=True)
class Handshake:
    """What a server did. `seconds` is how long the answer to `initialize` took from the start of the process.

    `noise` is the first line on stdout that was no message, `last_words` the last line on stderr, both shortened;
    `exit_code` is None for a process that had to be killed.
    """

    seconds: float | None = None
    tools: list[str] | None = None
    noise: str | None = None
    exit_code: int | None = None
    last_words: str = ""


async def shake_hands(
    command: Sequence[str],
    redact: Callable[[str], str],
    *,
    environ: Mapping[str, str] | None = None,
    folder: Path | None = None,
    answers: float = _ANSWERS,
    ends: float = _ENDS,
) -> Handshake:
    """Start a server, shake hands, end its input; takes at most `answers` + `ends` seconds.

    `environ` is its environment and `folder` where it starts, None for those of this process. `redact` takes secrets
    out of a line that the server wrote. Raises OSError for a command that cannot be started.
    """
    with tempfile.TemporaryFile() as stderr:
        began = trio.current_time()
        try:
            process = await trio.lowlevel.open_process(
                list(command),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr.fileno(),
                env=environ,
                cwd=folder,
            )
        except ValueError as error:  # such as a NUL: a client's file may hold what no system takes
            raise OSError(errno.EINVAL, str(error)) from error
        try:
            if process.stdin is None or process.stdout is None:
                raise RuntimeError("a process opened with pipes has none")
            listener = _Listener(process.stdout, began)
            result = listener.heard
            with trio.move_on_after(answers):
                with suppress(trio.BrokenResourceError):  # it has ended, which reading will show
                    await process.stdin.send_all(b"".join(json.dumps(each).encode() + b"\n" for each in _MESSAGES))
                await listener.listen(until_tools=True)
            with trio.move_on_after(ends):
                await process.stdin.aclose()
                await listener.listen()
                result.exit_code = await process.wait()
        finally:
            with trio.CancelScope(shield=True, deadline=trio.current_time() + 1):
                await _end(process)
        result.noise = None if result.noise is None else redact(result.noise)[:_SHOWN]
        result.last_words = redact(_last_line(stderr))[:_SHOWN]
    return result


async def _end(process: trio.Process) -> None:
    if process.returncode is None:
        process.kill()
        await process.wait()
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            await trio.aclose_forcefully(stream)


def _last_line(file: IO[bytes]) -> str:
    file.seek(max(0, file.seek(0, 2) - _LAST_WORDS))
    return file.read().decode("utf-8", "replace").strip().rpartition("\n")[2]


@dataclass(slots=True)
class _Listener:
    """Takes in what a server writes to stdout; lines that are no messages are noise, of which the first one is kept."""

    stdout: trio.abc.ReceiveStream
    began: float
    heard: Handshake = field(default_factory=Handshake)
    _listed: bool = False
    _rest: bytes = b""

    async def listen(self, *, until_tools: bool = False) -> None:
        """Take in lines until stdout ends or, if that is wanted, `tools/list` is answered."""
        while not (until_tools and self._listed):
            data = await self.stdout.receive_some()
            *lines, self._rest = (self._rest + data).split(b"\n")
            if self._rest and (not data or len(self._rest) > _LONGEST_LINE):
                lines.append(self._rest)
                self._rest = b""
            for line in lines:
                self._take(line)
            if not data:
                return

    def _take(self, line: bytes) -> None:
        try:
            message: Any = json.loads(line)
        except (ValueError, RecursionError):
            message = None
        answer = cast("dict[str, Any]", message) if isinstance(message, dict) else {}
        if answer.get("jsonrpc") != "2.0":
            self.heard.noise = self.heard.noise or line.decode("utf-8", "replace").strip()
        elif answer.get("id") == 0:
            self.heard.seconds = trio.current_time() - self.began
        elif answer.get("id") == 1:
            self._listed = True
            self.heard.tools = _names(answer)


def _names(answer: dict[str, Any]) -> list[str] | None:
    try:
        return [str(tool["name"]) for tool in answer["result"]["tools"]]
    except (KeyError, TypeError):
        return None


def check_handshake(
    handshake: Handshake, clients: Sequence[ClientLimits], whose: str = "the server", renewal: str | None = None
) -> Iterator[Finding]:
    """Compare what a server did with what clients expect.

    `whose` says in words which server that was, and `renewal` how the entry is written anew that started it.
    """
    yield _start(handshake, clients, whose, renewal or f'run "{program()} --stdio" in a terminal and read what it says')
    if handshake.noise is not None:
        yield fail(
            "stdout",
            f"a line that is not a message: {handshake.noise}",
            "find what prints there (a sitecustomize, a .pth file, a wrapper script) and let it print to stderr; "
            "some clients drop a server for it",
        )
    elif handshake.seconds is not None:
        yield ok("stdout", "nothing but messages")
    if handshake.seconds is not None:
        yield _exit(handshake.exit_code)


def _start(handshake: Handshake, clients: Sequence[ClientLimits], whose: str, look: str) -> Finding:
    seconds, tools = handshake.seconds, handshake.tools
    said = handshake.last_words or "nothing"
    if seconds is None and handshake.exit_code is not None:
        found = f"{whose} ended with code {handshake.exit_code} before it answered; its last output: {said}"
        return fail("start", found, look)
    if seconds is None:
        return fail("start", f"{whose} did not answer initialize within {_ANSWERS:g} s; it said: {said}", look)
    found = f"{whose} answered initialize after {seconds:.2f} s"
    if tools is None:
        return fail("start", f"{found}, but not tools/list; it said: {said}", look)
    found += f" and lists the tools {', '.join(tools)}"
    hasty = [client for client in clients if client.start is not None and client.start <= seconds]
    if not hasty:
        return ok("start", found)
    waits = ", ".join(f"{client.title} (about {client.start:g} s)" for client in hasty)
    fixes = [*(client.start_cure for client in hasty), "give the client the installed executable, not uvx or a wrapper"]
    return warn("start", f"{found}; too late for {waits}, where the tools are then missing", "; ".join(fixes))


def _exit(code: int | None) -> Finding:
    report = "run it with --debug PATH, and report this with the log"
    if code is None:
        return fail("exit", f"the server still ran {_ENDS:g} s after the end of its input", report)
    if code:
        return fail("exit", f"the server ended with code {code} at the end of its input", report)
    return ok("exit", "the server ends with code 0 at the end of its input")
