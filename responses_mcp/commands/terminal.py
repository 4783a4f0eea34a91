"""How commands begin, write and end: results go to stdout, remarks and progress to stderr.

Text from outside cannot control a terminal. A character that an encoding lacks is written as an escape.
Lines are not wrapped: a terminal does that, and a command or a URL can be copied whole. A reader who has seen enough
(`| head`) is no failure.
"""

from __future__ import annotations

import argparse
import errno
import json
import logging
import os
import re
import shutil
import sys
import unicodedata
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from io import TextIOWrapper
from typing import Any, Final, Self, TextIO

from responses_mcp.commands.parser import Parser
from responses_mcp.errors import PROGRAM
from responses_mcp.sanitization import sanitized, sanitized_json
from responses_mcp.settings import Settings, load_settings
from responses_mcp.settings.address import drop_unfilled

OK: Final = 0
FAILED: Final = 1
WRONG: Final = 2  # a wrong command line or configuration
INTERRUPTED: Final = 130

NAME: Final = PROGRAM

_GONE: Final = {errno.EPIPE, errno.EINVAL}  # a reader that left; the second is what Windows says
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_CONTROL_IN_TEXT: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class Stop(Exception):  # not always an error
    """Ends a command: the sentences go to stderr, and `code` is the exit code.

    `details` are JSON members for programs, beside the message.
    """

    def __init__(self, *sentences: str, code: int = FAILED, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(*sentences)
        self.sentences = sentences
        self.code = code
        self.details = details or {}


def parser_of(command: str, *, description: str, epilog: str, usage: str | None = None, width: int = 20) -> Parser:
    """Return the parser of a command; help texts begin at column `width` at most."""
    return Parser(
        prog=f"{NAME} {command}",
        usage=usage,
        description=description,
        epilog=epilog,
        formatter_class=partial(argparse.RawDescriptionHelpFormatter, max_help_position=width),
    )


def run_command(work: Callable[[], int | None], *, as_json: bool = False) -> int:
    """Do the work of a command and return the exit code, its own if it returns one; logged warnings go to stderr.

    With `as_json`, what stops it is a JSON document on stdout, too: `{"error": {"message": …}}`.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    log, handler = logging.getLogger("responses_mcp"), _Remarks(logging.WARNING)
    log.addHandler(handler)
    try:
        write("")  # a stdout that is closed is reported before anything is paid for, or changed
        code = _out_of_groups(work, as_json=as_json)
        show_now()
    except Stop as stop:
        for sentence in stop.sentences:
            remark(sentence) if stop.code == OK else complain(sentence)
        return stop.code
    except KeyboardInterrupt:
        complain("interrupted.", begin="\r" if on_terminal(sys.stderr) else "")  # over what it shows of Ctrl-C
        return INTERRUPTED
    finally:
        log.removeHandler(handler)
    return code or OK


def _out_of_groups(work: Callable[[], int | None], *, as_json: bool) -> int | None:
    """Do the work; Stop and KeyboardInterrupt are taken out of the groups that nurseries put them into."""
    try:
        return work()
    except (Stop, BaseExceptionGroup) as error:
        end: BaseException | None = error
        if isinstance(error, BaseExceptionGroup):
            end = error.subgroup((Stop, KeyboardInterrupt))
            while isinstance(end, BaseExceptionGroup):
                end = end.exceptions[0]
        if as_json and isinstance(end, Stop) and end.code != OK:
            say_json({"error": {"message": " ".join(end.sentences), **end.details}})
        if end is None or end is error:
            raise
        raise end from None


class _Remarks(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        remark(record.getMessage())


def configured(environ: Mapping[str, str], config_path: str | None, **more: Any) -> Settings:
    """Load the settings and write warnings to stderr; `more` goes to `load_settings`. Raises Stop for problems."""
    loaded = load_settings(environ, config_path=config_path, **more)
    for name in drop_unfilled(os.environ):
        remark(f"{name} still holds a placeholder, so it is ignored.")
    for warning in loaded.warnings:
        remark(warning)
    if loaded.settings.problems:
        raise Stop(*loaded.settings.problems, code=WRONG)
    return loaded.settings


def say(line: str = "") -> None:
    """Write a line of the result, with control characters replaced."""
    write(sanitized(_CONTROL.sub("\ufffd", line)) + "\n")


def say_text(text: str) -> None:
    """Write text from the API or a file, as it is; on a terminal, with control characters replaced."""
    write(sanitized(_CONTROL_IN_TEXT.sub("\ufffd", text)) if on_terminal(sys.stdout) else text)


def say_json(document: Any) -> None:
    """Write a document as the only output of a command, in ASCII where stdout is not in UTF-8."""
    is_utf8 = sys.stdout is not None and (sys.stdout.encoding or "").lower() in {"utf-8", "utf8"}
    write(json.dumps(sanitized_json(document), ensure_ascii=not is_utf8, indent=2) + "\n")


def write(text: str) -> None:
    """Write to stdout as it is."""
    if sys.stdout is None:  # closed at the start
        raise Stop("stdout is closed.")
    try:
        sys.stdout.write(text)
    except OSError as error:
        raise _unwritten(error) from error


def show_now() -> None:
    """Let a reader see what was written so far."""
    try:
        sys.stdout.flush()
    except OSError as error:
        raise _unwritten(error) from error


def _unwritten(error: OSError) -> Stop:
    """Return the Stop for a stdout that fails; a closed pipe is no failure."""
    _discard(sys.stdout)
    if error.errno in _GONE:
        return Stop(code=OK)
    return Stop(f"stdout cannot be written to ({error.strerror or type(error).__name__}).")


def remark(sentence: str, *, begin: str = "") -> None:
    """Write a sentence to stderr, after `begin`; a stderr that is closed or fails is ignored."""
    _to_stderr(f"{begin}{_CONTROL.sub(' ', sentence)}\n")


def complain(sentence: str, *, begin: str = "") -> None:
    """Write an error to stderr, with the program's name before it."""
    remark(f"{NAME}: {sentence}", begin=begin)


def _to_stderr(text: str) -> None:
    if sys.stderr is None:
        return
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except (OSError, ValueError):
        _discard(sys.stderr)


def _discard(stream: TextIO) -> None:
    """Redirect a failing stream to the null device, so that flushing it at exit does not fail again."""
    with suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def counted(number: int, thing: str, ending: str = "s") -> str:
    """Return how many there are, in words; `ending` makes more than one of a thing."""
    return f"{number:,} {thing}" + ("" if number == 1 else ending)


def columns(text: str) -> int:
    """Return how wide a terminal shows a text: most characters of Japanese take two columns."""
    return sum(0 if unicodedata.combining(each) else 1 + (unicodedata.east_asian_width(each) in "WF") for each in text)


def on_terminal(stream: TextIO | None) -> bool:
    """Tell whether a stream leads to a terminal."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed
        return False


class StatusLine:
    """A line on stderr that shows the current state and is overwritten; nothing where stderr is no terminal.

    Use it as a context manager: at the end the line is gone. With `on` False nothing is shown.
    """

    def __init__(self, *, on: bool = True) -> None:
        self._on = on and on_terminal(sys.stderr)
        self._shown = 0  # columns

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """Take the line away, and show none any more."""
        if self._shown:
            _to_stderr("\r" + " " * self._shown + "\r")
            self._shown = 0
        self._on = False

    def show(self, text: str) -> None:
        """Show a text in place of the one before."""
        if not self._on:
            return
        text = sanitized(_CONTROL.sub(" ", text[: shutil.get_terminal_size().columns - 1]))
        while columns(text) >= shutil.get_terminal_size().columns:  # a full line would make some terminals scroll
            text = text[:-1]
        wide = columns(text)
        # Blanks, because not every terminal knows how to erase a line.
        _to_stderr("\r" + text + " " * max(self._shown - wide, 0))
        self._shown = max(self._shown, wide)
