"""What `ask` and `search` share: a question from words or stdin, one call with its phases shown, and how it ends."""

from __future__ import annotations

import locale
import logging
import os
import stat
import sys
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from threading import Timer
from typing import Final, TypeVar

import trio

from responses_mcp.commands.terminal import (
    FAILED,
    WRONG,
    StatusLine,
    Stop,
    counted,
    on_terminal,
    remark,
)
from responses_mcp.errors import BadArgument, ConfigError, KeyUnusable, ResponsesMcpError, program
from responses_mcp.json_types import JsonObject
from responses_mcp.logs import configure
from responses_mcp.secrets import Redactor, told
from responses_mcp.settings.model import ServerSettings, Settings
from responses_mcp.usage.limits import dollars
from responses_mcp.usage.models import Usage

COMMAND_LINE: Final = "command line"
"""What stands for the client in the ledger."""

T = TypeVar("T")

# What an error may tell beside its message.
_DETAILS: Final = ("status", "code", "param", "request_id", "retry_after")
_STDIN: Final = "-"
_MOST_STDIN: Final = 2**20  # bytes; about 250,000 tokens
_REMARK_AFTER: Final = 3.0  # seconds, after which somebody may wonder what is waited for


def question(words: Sequence[str]) -> str:
    """Return what is asked: the words, and stdin where `-` is one of them or where there is no word, not even "".

    Nobody else's input is taken: a loop may read its questions from the same stdin. Raises Stop if there is nothing.
    """
    said = " ".join(word for word in words if word != _STDIN).strip()
    asked_for = _STDIN in words or (not words and not _is_terminal())
    given = _read_stdin() if asked_for else ""
    if said and not asked_for and on_terminal(sys.stderr) and _is_pipe():
        # No advice: in a loop that reads its questions there, all further ones would go along with this one.
        remark("stdin was not read; the question is what the words say.")
    text = "\n\n".join(filter(None, (said, given)))
    if not text:
        raise Stop("There is nothing to ask; give it in quotation marks, or on stdin.", code=WRONG)
    return text


def call(settings: Settings, ask: Callable[[Watch], Awaitable[T]]) -> T:
    """Run one call with its phases shown on stderr, and return its result; `ask` gets what to tell phases to.

    Raises Stop for what goes wrong on purpose, and KeyboardInterrupt after Ctrl-C, when the socket is closed.
    """
    redact = Redactor(settings.openai.secrets)
    server = settings.server
    try:
        with debug_log(server, redact), StatusLine(on=not server.debug or server.debug_file is not None) as status:
            return trio.run(_watched, ask, status)
    except ResponsesMcpError as error:
        details = {name: getattr(error, name, None) for name in _DETAILS}
        told = {"type": type(error).__name__, **{name: value for name, value in details.items() if value is not None}}
        if isinstance(error, KeyUnusable):
            raise Stop(_for_a_shell(error), code=WRONG, details=told) from error
        if isinstance(error, ConfigError):
            raise Stop(*error.problems, code=WRONG, details=told) from error
        code = WRONG if isinstance(error, BadArgument) else FAILED
        raise Stop(redact(str(error)), code=code, details=told) from error


@contextmanager
def debug_log(server: ServerSettings, redact: Redactor) -> Generator[None]:
    """Log what the settings want to be logged, as the server does."""
    if not server.debug:
        yield
        return
    log = logging.getLogger("responses_mcp")
    level, propagate = log.level, log.propagate
    closing = configure(debug=True, debug_file=server.debug_file, redact=redact)
    try:
        yield
    finally:
        closing.close()
        log.setLevel(level)
        log.propagate = propagate


class Watch:
    """What a call may tell while it runs: its phase, and that its answer is being written."""

    def __init__(self, status: StatusLine) -> None:
        self._status = status
        self._began = trio.current_time()
        self._phase = ""

    def tell(self, phase: str) -> None:
        """Show a phase."""
        self._phase = phase
        self.show()

    def show(self) -> None:
        """Show the phase, and since how many seconds the call runs."""
        self._status.show(f"{trio.current_time() - self._began:3.0f} s  {self._phase}")

    def end(self) -> None:
        """Show nothing more: something better is to be seen."""
        self._status.end()


async def _watched(ask: Callable[[Watch], Awaitable[T]], status: StatusLine) -> T:
    watch = Watch(status)

    async def tick() -> None:
        while True:
            await trio.sleep(1)
            watch.show()

    trio.lowlevel.spawn_system_task(tick)  # not in a nursery, which would wrap the errors of the call
    return await ask(watch)


def tell_usage(usage: Usage | None) -> None:
    """Write a line about what a call used to stderr, if that is a terminal."""
    if usage is None or not usage.counted or not on_terminal(sys.stderr):
        return
    said = [f"{usage.input_tokens:,} tokens in ({usage.cached_tokens:,} cached), {usage.output_tokens:,} out"]
    if usage.web_searches:
        said.append(counted(usage.web_searches, "search", "es"))
    if usage.cost_usd is not None:
        said.append(f"about {dollars(usage.cost_usd)}")
    remark(", ".join(said))


def tell_masked(masked: Mapping[str, int]) -> None:
    """Say which secrets in a question were not sent."""
    if masked:
        remark(f"Not sent, but masked in the question: {told(masked)}.")


def with_usage(document: JsonObject, usage: Usage | None, masked: Mapping[str, int]) -> JsonObject:
    """Return the document of `--json`: what the tool returns, what it used, and which secrets were masked."""
    shown = document if usage is None else {**document, "usage": usage.as_json()}
    return {**shown, "masked": dict(masked)} if masked else shown


def _for_a_shell(error: KeyUnusable) -> str:
    """Return what is wrong with a key, with a cure for those who have no MCP client before them."""
    remedy = error.remedy or f"Set it in this shell: `{error.command}`."
    return f"{error.cause} {remedy} '{program()} doctor' checks it."


# Stdin


def _is_terminal() -> bool:
    return sys.stdin is None or sys.stdin.isatty()


def _is_pipe() -> bool:
    try:
        return stat.S_ISFIFO(os.fstat(sys.stdin.fileno()).st_mode)
    except (AttributeError, OSError, ValueError):  # closed, or replaced by something that is no file
        return False


def _read_stdin() -> str:
    if sys.stdin is None:
        raise Stop("stdin is closed.")
    waiting = Timer(
        _REMARK_AFTER, remark, ["waiting for the end of stdin; add '< /dev/null' if there is nothing to come."]
    )
    waiting.daemon = True
    if sys.stdin.isatty():
        ending = "Ctrl-Z and Enter" if sys.platform == "win32" else "Ctrl-D on a line of its own"
        remark(f"type or paste the text here, and end it with {ending}.")
    else:
        waiting.start()
    try:
        data = sys.stdin.buffer.read(_MOST_STDIN + 1)
    except OSError as error:
        raise Stop(f"stdin cannot be read ({error.strerror}).") from error
    finally:
        waiting.cancel()
    if len(data) > _MOST_STDIN:
        raise Stop("stdin has more than 1 MiB; pass the part that matters.")
    if b"\0" in data:
        raise Stop("stdin is not text; pass text in UTF-8.")
    try:
        return data.decode("utf-8-sig").rstrip()
    except UnicodeDecodeError:
        try:
            return data.decode(locale.getencoding()).rstrip()  # what programs of Windows write
        except UnicodeDecodeError:
            raise Stop("stdin is not text in UTF-8; save it as UTF-8 first.", code=WRONG) from None
