"""What the commands share that ask the API: the question, one call with its phases shown, and how it ends."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext, suppress
from typing import Final, TypeVar

import trio

from responses_mcp.asking import SearchResults
from responses_mcp.commands.parser import Parser
from responses_mcp.commands.terminal import (
    FAILED,
    WRONG,
    StatusLine,
    Stop,
    configured,
    counted,
    on_terminal,
    remark,
    say_json,
)
from responses_mcp.errors import BadArgument, ConfigError, KeyUnusable, ResponsesMcpError, program
from responses_mcp.json_types import JsonObject
from responses_mcp.logs import configure
from responses_mcp.responses_api.response.parser import Answer
from responses_mcp.secrets import Redactor, told
from responses_mcp.settings.model import Settings
from responses_mcp.usage.limits import dollars

COMMAND_LINE: Final = "command line"
"""What stands for the client in the ledger."""

T = TypeVar("T")

# What an error may tell beside its message.
_DETAILS: Final = ("status", "code", "param", "request_id", "retry_after")
_STDIN: Final = "-"
_MOST_STDIN: Final = 2**20  # bytes; about 250,000 tokens


R = TypeVar("R", Answer, SearchResults)


def add_options(parser: Parser) -> None:
    """Add the options of every command that asks at once."""
    parser.add_common_options("what the tool returns, with usage")
    parser.add_argument("--debug", action="store_true", help="log everything but secrets to stderr")


def run_question(
    options: argparse.Namespace,
    words: Sequence[str],
    ask: Callable[[Settings, str, Watch], Awaitable[R]],
    show: Callable[[R], None],
) -> None:
    """Ask the question in `words`, and show the result, or with `--json` write it; `options` are of `add_options`."""
    settings = configured(os.environ, options.config, debug=options.debug or None)
    query = question(words)
    result = call(settings, lambda watch: ask(settings, query, watch))
    if options.json:
        document = result.as_json()
        if result.usage is not None:
            document = {**document, "usage": result.usage.as_json()}
        say_json({**document, "masked": dict(result.masked)} if result.masked else document)
    else:
        show(result)
    if result.masked:
        remark(f"Masked in the question before it was sent: {told(result.masked)}.")
    if result.usage is not None and result.usage.counted and on_terminal(sys.stderr):
        remark(used_in_words(result.usage.as_json()))


def question(words: Sequence[str]) -> str:
    """Return what is asked: the words, and stdin where `-` is one of them or where there is no word, not even "".

    Nobody else's input is taken: a loop may read its questions from the same stdin. Raises Stop if there is nothing.
    """
    said = " ".join(word for word in words if word != _STDIN).strip()
    given = _read_stdin() if _STDIN in words or not (words or on_terminal(sys.stdin)) else ""
    text = "\n\n".join(filter(None, (said, given)))
    if not text:
        raise Stop("There is nothing to ask; pass it in quotation marks or on stdin.", code=WRONG)
    return text


def _read_stdin() -> str:
    if sys.stdin is None:
        return ""
    try:
        data = sys.stdin.buffer.read(_MOST_STDIN + 1)
    except OSError as error:
        raise Stop(f"stdin cannot be read ({error.strerror}).") from error
    if len(data) > _MOST_STDIN:
        raise Stop("stdin has more than 1 MiB; pass the part that matters.")
    with suppress(UnicodeDecodeError):
        if b"\0" not in data:
            return data.decode("utf-8-sig").rstrip()
    raise Stop("stdin is not text in UTF-8; save it as UTF-8 first.", code=WRONG)


def call(settings: Settings, ask: Callable[[Watch], Awaitable[T]]) -> T:
    """Run one call with its phases shown on stderr, and return its result; `ask` gets what to tell phases to.

    Raises Stop for what goes wrong on purpose, and KeyboardInterrupt after Ctrl-C, when the socket is closed.
    """
    redact = Redactor(settings.openai.secrets)
    server = settings.server

    async def watched(watch: Watch) -> T:
        trio.lowlevel.spawn_system_task(watch.tick)  # not in a nursery, which would wrap the errors of the call
        return await ask(watch)

    try:
        logging = configure(debug=True, debug_file=server.debug_file, redact=redact) if server.debug else nullcontext()
        with logging, Watch(on=not server.debug or server.debug_file is not None) as watch:
            return trio.run(watched, watch)
    except ResponsesMcpError as error:
        details = {name: getattr(error, name, None) for name in _DETAILS}
        told = {"type": type(error).__name__, **{name: value for name, value in details.items() if value is not None}}
        if isinstance(error, KeyUnusable):
            remedy = error.remedy or f"Set it in this shell: `{error.command}`."
            raise Stop(f"{error.cause} {remedy} '{program()} doctor' checks it.", code=WRONG, details=told) from error
        if isinstance(error, ConfigError):
            raise Stop(*error.problems, code=WRONG, details=told) from error
        code = WRONG if isinstance(error, BadArgument) else FAILED
        raise Stop(redact(str(error)), code=code, details=told) from error


class Watch(StatusLine):
    """Shows the phase of a call, and since how many seconds it runs, until `end`."""

    def __init__(self, *, on: bool = True) -> None:
        super().__init__(on=on)
        self._began = time.monotonic()
        self._phase = ""

    def tell(self, phase: str) -> None:
        """Show a phase."""
        self._phase = phase
        self.show(f"{time.monotonic() - self._began:3.0f} s  {phase}")

    async def tick(self) -> None:
        """Show the seconds as they pass."""
        while True:
            await trio.sleep(1)
            self.tell(self._phase)


def used_in_words(usage: JsonObject) -> str:
    """Return what calls used and cost, given as `Usage.as_json` returns it."""
    said: list[str] = []
    if "input_tokens" in usage:
        cached = f"{usage['input_tokens']:,} tokens in ({usage['cached_tokens']:,} cached)"
        said += [cached, f"{usage['output_tokens']:,} out"]
    if usage.get("web_searches"):
        said.append(counted(usage["web_searches"], "search", "es"))
    if "cost_usd" in usage:
        said.append(f"about {dollars(usage['cost_usd'])}")
    return ", ".join(said)
