"""How commands begin, write and end: results go to stdout, remarks and progress to stderr.

On a terminal lines are wrapped, and text from outside cannot control it. A character that an encoding lacks is written
as an escape. A reader who has seen enough (`| head`) is no failure.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import re
import shutil
import sys
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from io import TextIOWrapper
from pathlib import Path
from typing import Any, Final, Self, TextIO

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
_MARK: Final = re.compile(r" *(?:(?:[0-9]+\.|[-|*]) +)?")  # of a list
_COMMAND: Final = rf"(?:(?<=: )|\()(?>['\"][^'\"]{{1,300}}?{NAME}|[^ ]*?{NAME})[^ ]*+ [-a-z][^;)]*"
_QUOTED: Final = r"""[(\[]*(?:"[^"]{1,300}"|'[^']{1,300}'|`[^`]{1,300}`)"""
_JAPANESE: Final = "\u2e80-\u9fff\uac00-\ud7a3\uff00-\uffef"
# A character between which and the next one a line may end, with the signs that belong to it; or a word.
_WIDE: Final = re.compile(f" *(?:[（「『【]*[{_JAPANESE}][、。，．：；？！）」』】ー]*|[^{_JAPANESE}]+)")


class Stop(Exception):  # not always an error
    """Ends a command: the sentences go to stderr, and `code` is the exit code.

    `details` are JSON members for programs, beside the message.
    """

    def __init__(self, *sentences: str, code: int = FAILED, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(*sentences)
        self.sentences = sentences
        self.code = code
        self.details = details or {}


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


def say(
    line: str = "", *, hanging: int | None = None, most: int | None = None, bold: re.Pattern[str] | None = None
) -> None:
    """Write a line of the result, with control characters replaced.

    On a terminal it is continued at the column `hanging`, takes `most` lines, and what `bold` finds is in bold.
    """
    line = sanitized(_CONTROL.sub("\ufffd", line))
    if on_terminal(sys.stdout):
        line = "\n".join(wrapped(line, hanging, most))
        has_styles = os.environ.get("TERM") != "dumb" and (os.name != "nt" or "WT_SESSION" in os.environ)
        if bold is not None and has_styles and not os.environ.get("NO_COLOR"):
            line = bold.sub("\x1b[1m\\g<0>\x1b[0m", line)
    write(f"{line}\n")


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
    line = _CONTROL.sub(" ", sentence)
    _to_stderr(begin + ("\n".join(wrapped(line)) if on_terminal(sys.stderr) else line) + "\n")


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


def wrapped(text: str, hanging: int | None = None, most: int | None = None) -> list[str]:
    """Return the lines in which a text fits a terminal, `most` of them, the last one with a mark if there are more.

    Further lines begin at the column `hanging`, or below the text of the first. Words, URLs, paths and commands are not
    broken, even if they are longer than a line; but with `most` no line is.
    """
    width = shutil.get_terminal_size().columns
    mark = _MARK.match(text)
    indent = min(len(mark[0]) if mark and hanging is None else hanging or 0, width // 3)
    lines = [""]
    for piece in _pieces(text):
        if columns(lines[-1]) > indent and columns(lines[-1] + piece) > width:
            lines.append(" " * indent)
            piece = piece.lstrip(" ")  # noqa: PLW2901
        lines[-1] += piece
    shown = [cut(line, width) for line in lines[:most]] if most else lines
    if len(shown) < len(lines):
        shown[-1] = f"{cut(shown[-1], width - 1)}…"
    return shown


def _pieces(text: str) -> Iterator[str]:
    """Yield what of a text stays on one line, each with the blanks before it."""
    known = (each for each in (*os.environ.values(), *sys.argv) if " " in each and Path(each).is_absolute())
    whole = re.compile(f" *(?:(?:{'|'.join((_COMMAND, _QUOTED, *map(re.escape, known)))}|[^ ])[^ ]*)")
    for word in whole.findall(text):
        yield from [word] if word.isascii() or re.search(r"[/\\]", word) else _WIDE.findall(word)


def cut(text: str, most: int) -> str:
    """Return as much of a text as fits into so many columns."""
    wide = 0
    for at, each in enumerate(text):
        wide += columns(each)
        if wide > most:
            return text[:at]
    return text


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
        most = shutil.get_terminal_size().columns - 1  # a full line would make some terminals scroll
        text = cut(sanitized(_CONTROL.sub(" ", text[:most])), most)
        wide = columns(text)
        # Blanks, because not every terminal knows how to erase a line.
        _to_stderr("\r" + text + " " * max(self._shown - wide, 0))
        self._shown = max(self._shown, wide)
