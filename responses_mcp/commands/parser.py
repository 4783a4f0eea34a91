"""The parser of a command: argparse's, which says of a wrong option or value which one may have been meant."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Collection, Sequence
from difflib import get_close_matches
from functools import partial
from typing import Any, Final, NoReturn

from responses_mcp.commands.terminal import NAME, on_terminal, wrapped
from responses_mcp.secrets import Redactor

_OF_SECRET: Final = re.compile(r"(?i)(?:key|token|secret|password|passwd)$")
_SHORTEST_SECRET: Final = 8  # characters; one that is shorter may be a word of any message


class Parser(argparse.ArgumentParser):
    """A parser without abbreviations, whose messages show no secret."""

    def __init__(self, **given: Any) -> None:
        super().__init__(allow_abbrev=False, **given)

    def error(self, message: str) -> NoReturn:
        """Exit with 2."""
        super().error(keys_out_of(message.split())(message))

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        """End the program; the message goes to stderr."""
        if message is not None and on_terminal(sys.stderr):
            message = "\n".join(wrapped(message.rstrip())) + "\n"
        super().exit(status, message)

    def add_common_options(self, document: str = "") -> None:
        """Add `--json`, which writes `document`, and `--config`."""
        told = "write one JSON document"
        self.add_argument("--json", action="store_true", help=f"{told}, {document}" if document else told)
        self.add_argument("--config", metavar="PATH", help="YAML file to read instead of the default one")

    def parse_options(self, argv: Sequence[str]) -> argparse.Namespace:
        """Return the options; exits with 2 for a wrong command line."""
        options: argparse.Namespace
        options, unknown = self.parse_known_args(argv)
        self.refuse(unknown)
        return options

    def parse_words(self, argv: Sequence[str]) -> argparse.Namespace:
        """Return the options of a command that ends in any number of words, which may stand between its options.

        All that follows `--` is words. Exits with 2 for a wrong command line.
        """
        end = argv.index("--") if "--" in argv else len(argv)
        options, unknown = self.parse_known_intermixed_args(argv[:end])
        self.refuse(unknown)
        words = next(each.dest for each in self._actions if not each.option_strings)
        setattr(options, words, [*getattr(options, words), *argv[end + 1 :]])
        return options

    def refuse(self, unknown: Sequence[str]) -> None:
        """Exit with 2 if there are words that are no arguments of this command."""
        option = next((word for word in unknown if word.startswith("-")), None)
        if option is not None:
            takes_words = any(each.nargs in {"*", "+"} for each in self._actions)
            cure = "; put -- before words that begin with -" if takes_words else ""
            self.error(no_option(option, self._option_string_actions, cure))
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")


def parser_of(command: str, *, description: str, epilog: str, usage: str | None = None) -> Parser:
    """Return the parser of a command."""
    return Parser(
        prog=f"{NAME} {command}",
        usage=usage,
        description=description,
        epilog=epilog,
        formatter_class=partial(argparse.RawDescriptionHelpFormatter, max_help_position=20),
    )


def keys_out_of(words: Sequence[str]) -> Redactor:
    """Return what takes keys out of a message about a command line: one that is set here, or follows `-k` at once."""
    redact = Redactor()
    behind = [word[2:].rstrip(";") for word in words if re.match("-[A-Za-z]", word) and redact(word[2:]) != word[2:]]
    values = (value for name, value in os.environ.items() if _OF_SECRET.search(name))
    return Redactor([*behind, *(value for value in values if len(value) >= _SHORTEST_SECRET)])


def no_command(word: str, commands: Collection[str]) -> str:
    """Return what is wrong with a word that is none of the commands, and which of them may have been meant."""
    near = get_close_matches(word, commands, 1)
    cure = f"did you mean {near[0]}?" if near else f"there are {', '.join(commands)}"
    return f"there is no command {word or repr(word)}; {cure}"


def no_option(word: str, options: Collection[str], cure: str = "") -> str:
    """Return what is wrong with a word that is none of the options, and which may have been meant; else `cure`."""
    name = word.partition("=")[0]  # what follows may be a key, and so may what is glued to a short option
    name = name if name.startswith("--") else name[:2]
    if re.search(r"(?i)(?:[-_]|api|openai)key$", name):
        return f"there is no option {name}; the key goes into OPENAI_API_KEY"
    near = get_close_matches(name.lower(), options, 1, 0.7)
    return f"there is no option {name}" + (f"; did you mean {near[0]}?" if near else cure)


def not_blank(text: str) -> str:
    """Return an argument that says something: an empty one is mostly a variable that is not set."""
    if not text.strip():
        raise argparse.ArgumentTypeError("is empty; is a variable in it not set?")
    return text


def whole_number(least: int, most: int) -> Callable[[str], int]:
    """Return the type of an argument that is a whole number."""

    def read(text: str) -> int:
        number = int(text) if text.isascii() and text.isdecimal() and len(text) <= len(str(most)) else -1
        if not least <= number <= most:
            raise argparse.ArgumentTypeError(f"must be a whole number from {least} to {most}, got {text!r}")
        return number

    return read
