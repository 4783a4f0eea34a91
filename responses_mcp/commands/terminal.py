"""How commands write for people: results to stdout, remarks and progress to stderr; and how commands begin and end.

On a terminal every line is wrapped by `Wrapping`; into a pipe or a file nothing is. What the encoding of stdout lacks
is written as ?, and a remark at the end says so. A reader who has seen enough (`| head`) is no failure.
"""

from __future__ import annotations

import argparse
import codecs
import errno
import json
import logging
import os
import re
import sys
import unicodedata
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from io import TextIOWrapper
from typing import Any, Final, Self, TextIO

from responses_mcp.commands.parser import Parser
from responses_mcp.errors import PROGRAM, program
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
_BAR: Final = 24  # columns
_TOLD: Final = "replaced and told"  # a way of Python's encoders to go on with what they lack
_USUAL_WIDTH: Final = 80
_WIDEST: Final = 100  # columns; longer lines are hard to read
_NARROWEST: Final = 20
_LONGEST_COMMAND: Final = 500  # characters
_BLANK: Final = re.compile(r"[ \t]+")
_END_OF_COMMAND: Final = re.compile(r"[.;,](?=[ \t]|\Z)")
_BEFORE_COMMAND: Final = (": ", "run ")
_COMMANDS: Final = (PROGRAM, "claude ", "codex ", "gemini ", "pip ", "pipx ", "uv ")
_NOT_FIRST: Final = frozenset("、。，．：；？！）］｝」』】〉》・ー…々ぁぃぅぇぉっゃゅょァィゥェォッャュョ.,:;?!)]}%")
_NOT_LAST: Final = frozenset("（［｛「『【〈《([{\"'")
_PATHS: Final[set[str]] = set()  # with blanks in them
_MARK: Final = re.compile(r"\s*(?:(?:[-*+•>]|[0-9]{1,3}[.)])\s+)?")  # of a list or a quotation


class Stop(Exception):  # not always an error
    """Ends a command: the sentences go to stderr, and `code` is the exit code.

    `details` are what programs may want to know of it, JSON; nothing more is to be said to them if it is `told`.
    """

    def __init__(
        self, *sentences: str, code: int = FAILED, details: Mapping[str, Any] | None = None, told: bool = False
    ) -> None:
        super().__init__(*sentences)
        self.sentences = sentences
        self.code = code
        self.details = details or {}
        self.told = told


def parser_of(command: str, *, description: str, epilog: str, usage: str | None = None, width: int = 20) -> Parser:
    """Return the parser of a command; help texts begin at column `width` at most."""
    return Parser(
        prog=f"{NAME} {command}",
        usage=usage,
        description=description,
        epilog=epilog,
        formatter_class=partial(argparse.RawDescriptionHelpFormatter, max_help_position=width),
    )


def run_command(work: Callable[[], None], *, as_json: bool = False) -> int:
    """Do the work of a command and return the exit code; warnings that are logged meanwhile go to stderr.

    With `as_json`, what stops it is a JSON document on stdout, too: `{"error": {"message": …}}`.
    """
    with _warnings_told(), _losses_told():
        try:
            write("")  # a stdout that is closed is told before anything is paid for, or changed
            (_told_as_json if as_json else _out_of_groups)(work)
            _flush()
        except Stop as stop:
            for sentence in stop.sentences:
                remark(sentence) if stop.code == OK else complain(sentence)
            return stop.code
        except KeyboardInterrupt:
            complain("interrupted.", begin="\r" if on_terminal(sys.stderr) else "")  # over what it shows of Ctrl-C
            return INTERRUPTED
    return OK


def _told_as_json(work: Callable[[], None]) -> None:
    try:
        _out_of_groups(work)
    except Stop as stop:
        if stop.code != OK and not stop.told:
            say_json({"error": {"message": " ".join(stop.sentences), **stop.details}})
        raise


def _out_of_groups(work: Callable[[], None]) -> None:
    """Do the work; Stop and KeyboardInterrupt are taken out of the groups that nurseries put them into."""
    try:
        work()
    except BaseExceptionGroup as group:
        end: BaseException | None = group.subgroup((Stop, KeyboardInterrupt))
        if end is None:
            raise
        while isinstance(end, BaseExceptionGroup):
            end = end.exceptions[0]
        raise end from None


def configured(
    environ: Mapping[str, str], config_path: str | None, *, silent: tuple[str, ...] = (), **more: Any
) -> Settings:
    """Load the settings and write warnings to stderr, but those about settings named in `silent`.

    `more` goes to `load_settings`. Raises Stop for problems.
    """
    loaded = load_settings(environ, config_path=config_path, **more)
    keep_whole(loaded.config_file)
    keep_whole(loaded.settings.manuals.root)
    for name in drop_unfilled(os.environ):
        remark(f"{name} still holds a placeholder, so it is ignored.")
    for warning in loaded.warnings:
        if not warning.startswith(silent):
            remark(warning)
    if loaded.settings.problems:
        raise Stop(*loaded.settings.problems, code=WRONG)
    return loaded.settings


def say(
    line: str = "", *, hanging: int | None = None, style: Callable[[str], str] | None = None, most: int | None = None
) -> None:
    """Write a line of the result, with control characters replaced.

    On a terminal it is continued at the column `hanging` and ends after `most` lines, and `style` adds colours or bold
    type to what is shown.
    """
    line = _seen(_CONTROL.sub("\ufffd", line))
    if on_terminal(sys.stdout):
        lines = wrapped(line, sys.stdout, hanging).split("\n")
        if most is not None and len(lines) > most:
            lines[most - 1] = _cut(lines[most - 1], width_of_lines(sys.stdout) - 1) + "…"
        line = "\n".join(lines[:most])
        if style is not None and _takes_style():
            line = style(line)
    write(f"{line}\n")


def say_text(text: str) -> None:
    """Write text from the API or a file, as it is; on a terminal, with control characters replaced."""
    write(_seen(_CONTROL_IN_TEXT.sub("\ufffd", text)) if on_terminal(sys.stdout) else text)


def say_json(document: Any) -> None:
    """Write a document as the only output of a command."""
    from responses_mcp.sanitization import sanitized_json  # noqa: PLC0415  # a prompt of a shell should not wait for it

    document = sanitized_json(document)
    text = json.dumps(document, ensure_ascii=False, indent=2)
    if sys.stdout is not None and not _can_write(text, sys.stdout):
        text = json.dumps(document, indent=2)
    write(text + "\n")


def _seen(text: str) -> str:
    """Return a text without what nobody would see of it."""
    if text.isascii():
        return text
    from responses_mcp.sanitization import sanitized  # noqa: PLC0415  # a prompt of a shell should not wait for it

    return sanitized(text)


def show_now() -> None:
    """Let a reader see what was written so far."""
    _flush()


def write(text: str) -> None:
    """Write to stdout as it is."""
    if sys.stdout is None:  # closed at the start
        raise Stop("stdout is closed.")
    try:
        sys.stdout.write(text)
    except OSError as error:
        raise _unwritten(error) from error


def remark(sentence: str, *, begin: str = "") -> None:
    """Write a sentence to stderr, after `begin`; a stderr that is closed or fails is ignored."""
    line = _CONTROL.sub(" ", sentence)
    _to_stderr(f"{begin}{wrapped(line, sys.stderr) if on_terminal(sys.stderr) else line}\n")


def complain(sentence: str, *, begin: str = "") -> None:
    """Write an error to stderr, with the program's name before it."""
    remark(f"{NAME}: {sentence}", begin=begin)


def counted(number: int, thing: str, ending: str = "s") -> str:
    """Return how many there are, in words; `ending` makes more than one of a thing."""
    return f"{number:,} {thing}" + ("" if number == 1 else ending)


def columns(text: str) -> int:
    """Return how wide a terminal shows a text: most characters of Japanese take two columns."""
    return sum(0 if unicodedata.combining(each) else 1 + (unicodedata.east_asian_width(each) in "WF") for each in text)


class Wrapping:
    """Breaks one line of text, given in pieces, so that it fits a width.

    Further lines begin below the text of the first, or at the column `hanging`. A URL, a path or a command stays in one
    piece, so that it can be copied.
    """

    def __init__(self, head: str, width: int, hanging: int | None = None) -> None:
        mark = _MARK.match(head)
        indent = columns(mark[0] if mark else "") if hanging is None else hanging
        self._hanging = indent if indent < width - _NARROWEST else 0
        self._width = width
        self._column = 0

    def take(self, text: str) -> str:
        """Return the next of the text, with the line breaks that it needs."""
        lines: list[str] = []
        for piece in _pieces(text):
            wide = columns(piece)
            if self._column > self._hanging and self._column + wide > self._width and piece.strip():
                piece = piece.lstrip(" \t")  # noqa: PLW2901
                wide = columns(piece)
                self._column = max(min(self._hanging, self._width - wide), 0)  # a long command may be whole so
                lines.append(f"\n{' ' * self._column}")
            lines.append(piece)
            self._column += wide
        return "".join(lines)


def keep_whole(path: object) -> None:
    """Let no line break at a blank of this path."""
    if " " in str(path):
        _PATHS.add(str(path))


def wrapped(line: str, stream: TextIO, hanging: int | None = None) -> str:
    """Return a line as it is to be shown on the terminal that a stream leads to."""
    return Wrapping(line, width_of_lines(stream), hanging).take(line)


def for_reading(text: str, indent: str = "") -> str:
    """Return a text as lines; on a terminal long ones are broken, but code and tables stay."""
    on_screen, in_code = on_terminal(sys.stdout), False
    lines: list[str] = []
    for line in text.split("\n"):
        in_code ^= line.lstrip().startswith("```")
        stays = not on_screen or in_code or line.lstrip().startswith("|")
        lines.append(f"{indent}{line}\n" if stays else f"{wrapped(indent + line, sys.stdout)}\n")
    return "".join(lines)


def width_of_lines(stream: TextIO) -> int:
    """Return how many columns a line of text should take at most."""
    return max(min(_width(stream), _WIDEST), _NARROWEST)


def _pieces(text: str) -> Iterator[str]:
    """Yield what stays on one line, each with the blanks before it."""
    at = 0
    ours = program()
    while at < len(text):
        blank = _BLANK.match(text, at)
        begin, at = at, blank.end() if blank else at
        end, is_whole = _end_of_piece(text, at, ours)
        if is_whole or text[at:end].isascii():
            yield text[begin:end]
        else:
            yield from _broken(text[begin:at], text[at:end])
        at = end


def _end_of_piece(text: str, at: int, ours: str) -> tuple[int, bool]:
    """Return where the word or the command that begins at a place ends, and whether it may not be broken."""
    at += text.startswith("(", at)
    quote = text[at : at + 1] if text[at : at + 1] in {'"', "'", "`"} else ""
    last = max((at + len(path) for path in _PATHS if text.startswith(path, at + len(quote))), default=-1)
    if last < 0 and (quote == "`" or text.startswith((ours, *_COMMANDS), at + len(quote))):
        if quote:
            last = text.find(quote, at + 1, at + _LONGEST_COMMAND)
        elif text[max(at - 4, 0) : at].endswith(_BEFORE_COMMAND):
            end = _END_OF_COMMAND.search(text, at, at + _LONGEST_COMMAND)
            last = end.start() if end else len(text) if len(text) - at < _LONGEST_COMMAND else -1
    blank = _BLANK.search(text, at if last < 0 else last)
    end_of_word = blank.start() if blank else len(text)
    if last >= 0:
        return end_of_word, True
    word = text[at:end_of_word]
    # Japanese prose has no blanks and may have a slash in it.
    return end_of_word, ("/" in word or "\\" in word) and not ("、" in word or "。" in word)


def _broken(blanks: str, word: str) -> Iterator[str]:
    """Yield the pieces of a word: Japanese may be broken between any characters but before and after some signs."""
    piece, before = blanks, ""
    for each in word:
        is_wide = before and not (each.isascii() and before.isascii()) and columns(before + each) > 2
        if is_wide and each not in _NOT_FIRST and before not in _NOT_LAST:
            yield piece
            piece = ""
        piece += each
        before = each
    yield piece


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
        # A full line would make some terminals scroll.
        text = _cut(_seen(_CONTROL.sub(" ", text)), _width(sys.stderr) - 1)
        wide = columns(text)
        # Blanks, because not every terminal knows how to erase a line.
        _to_stderr("\r" + text + " " * max(self._shown - wide, 0))
        self._shown = max(self._shown, wide)

    def show_progress(self, name: str, done: int, all_of_it: int, *, of: str = "files") -> None:
        """Show a bar."""
        full, empty = ("█", "░") if _can_write("█░", sys.stderr) else ("#", "-")
        filled = _BAR * done // max(all_of_it, 1)
        self.show(f"{full * filled}{empty * (_BAR - filled)} {done:,} of {all_of_it:,} {of} of {name}")


def _cut(text: str, most: int) -> str:
    for at, each in enumerate(text):
        most -= columns(each)
        if most < 0:
            return text[:at]
    return text


def _width(stream: TextIO) -> int:
    try:
        return int(os.environ.get("COLUMNS", "")) or _USUAL_WIDTH
    except ValueError:
        pass
    try:
        return os.get_terminal_size(stream.fileno()).columns or _USUAL_WIDTH
    except (OSError, ValueError):
        return _USUAL_WIDTH


def on_terminal(stream: TextIO | None) -> bool:
    """Tell whether a stream leads to a terminal."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:  # closed
        return False


def _takes_style() -> bool:
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return os.name != "nt" or "WT_SESSION" in os.environ  # the old console of Windows would show the codes


def _can_write(text: str, stream: TextIO) -> bool:
    try:
        text.encode(stream.encoding or "ascii")
    except (UnicodeError, LookupError):
        return False
    return True


def _flush() -> None:
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        raise _unwritten(error) from error


def _unwritten(error: OSError) -> Stop:
    """Return the Stop for a stdout that fails; a closed pipe is no failure."""
    _discard(sys.stdout)
    if error.errno in _GONE:
        return Stop(code=OK)
    return Stop(f"stdout cannot be written to ({error.strerror or type(error).__name__}).")


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


@contextmanager
def _losses_told() -> Generator[None]:
    """Let stdout and stderr take any text; if what is written to stdout lost characters by that, say so at the end."""
    lost = False

    def question_mark(error: UnicodeError) -> tuple[str | bytes, int]:
        nonlocal lost
        lost = True
        return codecs.replace_errors(error)

    codecs.register_error(_TOLD, question_mark)
    stdout = sys.stdout
    for stream in (stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors=_TOLD if stream is stdout else "backslashreplace")
    yield
    if lost:
        counts = "PYTHONIOENCODING=utf-8" if os.environ.get("PYTHONIOENCODING") else "PYTHONUTF8=1"
        cure = "" if codecs.lookup(stdout.encoding).name == "utf-8" else f"; set {counts} to have UTF-8"
        remark(f"some characters cannot be written in {stdout.encoding} and are shown as ?{cure}.")


class _Remarks(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        remark(record.getMessage())


@contextmanager
def _warnings_told() -> Generator[None]:
    ours, handler = logging.getLogger("responses_mcp"), _Remarks(logging.WARNING)
    ours.addHandler(handler)
    try:
        yield
    finally:
        ours.removeHandler(handler)
