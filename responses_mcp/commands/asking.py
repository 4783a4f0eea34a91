"""What `ask` and `search` share: a question from words or stdin, one call with its phases shown, and how it ends."""

from __future__ import annotations

import locale
import os
import re
import shutil
import stat
import sys
import textwrap
from collections.abc import Awaitable, Callable, Iterator, Sequence
from threading import Timer
from typing import Final, TypeVar

import trio

from responses_mcp.commands.terminal import FAILED, NAME, WRONG, StatusLine, Stop, columns, remark
from responses_mcp.errors import BadArgument, ConfigError, KeyUnusable, UpstreamError
from responses_mcp.redaction import Redactor
from responses_mcp.settings.model import Settings

T = TypeVar("T")
Tell = Callable[[str], None]

_STDIN: Final = "-"
_MOST_STDIN: Final = 2**20  # bytes; about 250,000 tokens
_REMARK_AFTER: Final = 3.0  # seconds, after which somebody may wonder what is waited for
_WIDEST: Final = 100  # columns; longer lines are hard to read
_MARK: Final = re.compile(r"\s*(?:(?:[-*+•>]|[0-9]{1,3}[.)])\s+)?")  # of a list or a quotation


def question(words: Sequence[str], *, with_context: bool = False) -> str:
    """Return what is asked: the words, and stdin where `-` is one of them or where there are no words.

    `with_context` adds a pipe or file at stdin to words that do not ask for it. Raises Stop if there is nothing.
    """
    said = " ".join(word for word in words if word != _STDIN).strip()
    asked_for = _STDIN in words or (not said and not _is_terminal())
    given = _read_stdin() if asked_for or (with_context and said and _is_pipe_or_file()) else ""
    text = "\n\n".join(filter(None, (said, given)))
    if not text:
        raise Stop("There is nothing to ask; give it in quotation marks, or on stdin.", code=WRONG)
    return text


def call(settings: Settings, ask: Callable[[Tell], Awaitable[T]]) -> T:
    """Run one call with its phases shown on stderr, and return its result; `ask` gets the function to tell phases to.

    Raises Stop for what goes wrong on purpose, and KeyboardInterrupt after Ctrl-C, when the socket is closed.
    """
    redact = Redactor([settings.openai.api_key, *settings.openai.headers.values()])
    try:
        with StatusLine() as status:
            return trio.run(_watched, ask, status)
    except BadArgument as error:
        raise Stop(str(error), code=WRONG) from error
    except ConfigError as error:
        raise Stop(*error.problems, code=WRONG) from error
    except UpstreamError as error:
        if isinstance(error, KeyUnusable):
            raise Stop(_for_a_shell(error), code=WRONG) from error
        raise Stop(redact(str(error)), code=FAILED) from error


async def _watched(ask: Callable[[Tell], Awaitable[T]], status: StatusLine) -> T:
    phase, began = "", trio.current_time()

    def tell(text: str) -> None:
        nonlocal phase
        phase = text
        show()

    def show() -> None:
        status.show(f"{trio.current_time() - began:3.0f} s  {phase}")

    async def tick() -> None:
        while True:
            await trio.sleep(1)
            show()

    trio.lowlevel.spawn_system_task(tick)  # not in a nursery, which would wrap the errors of the call
    return await ask(tell)


def _for_a_shell(error: KeyUnusable) -> str:
    """Return what is wrong with a key, with a cure for those who have no MCP client before them."""
    return f"{error.cause} {error.remedy or f'Set it in this shell: {error.command}.'} '{NAME} doctor' checks it."


# Stdin


def _is_terminal() -> bool:
    return sys.stdin is None or sys.stdin.isatty()


def _is_pipe_or_file() -> bool:
    """Tell whether stdin was given on purpose: programs that start us often leave a socket there that never ends."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (AttributeError, OSError, ValueError):  # closed, or replaced by something that is no file
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISREG(mode)


def _read_stdin() -> str:
    if sys.stdin is None:
        raise Stop("stdin is closed.")
    waiting = Timer(
        _REMARK_AFTER, remark, ["waiting for the end of stdin; add '< /dev/null' if there is nothing to come."]
    )
    waiting.daemon = True
    if not sys.stdin.isatty():
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
        raise Stop("stdin is no text; pass text in UTF-8.")
    try:
        return data.decode("utf-8-sig").rstrip()
    except UnicodeDecodeError:
        return data.decode(locale.getencoding(), "replace").rstrip()  # what programs of Windows write


# Reading on a terminal


def for_reading(text: str, indent: str = "") -> str:
    """Return a text as lines; on a terminal long ones are broken between words, but code and tables stay."""
    lines = text.split("\n")
    if sys.stdout is not None and sys.stdout.isatty():
        lines = list(_broken(lines, min(shutil.get_terminal_size().columns, _WIDEST) - len(indent)))
    return "".join(f"{indent}{line}\n" for line in lines)


def _broken(lines: Sequence[str], width: int) -> Iterator[str]:
    in_code = False
    for line in lines:
        in_code ^= line.lstrip().startswith("```")
        # Words of Japanese have nothing between them: the terminal itself breaks such lines best.
        if in_code or len(line) <= width or line.lstrip().startswith("|") or columns(line) != len(line):
            yield line
        else:
            mark = _MARK.match(line)
            hanging = " " * (mark.end() if mark else 0)
            yield from textwrap.wrap(
                line,
                max(width, 20),
                subsequent_indent=hanging,
                break_long_words=False,
                break_on_hyphens=False,
                expand_tabs=False,
                replace_whitespace=False,
            )
