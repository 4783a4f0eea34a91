"""The parser of a command: like argparse's, but a mistake is told with what may have been meant."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast

if TYPE_CHECKING:
    from responses_mcp.secrets import Redactor

OF_SERVER: Final = ("--stdio", "--show-config", "--toolsets")
"""Options of the server alone, before any command."""
SERVER: Final = (*OF_SERVER, "--config", "--debug")
"""Options that an entry of a client may give to the server."""

# What word processors, web pages and input methods make of hyphens, and of a blank.
_DASHES: Final = "\u2010\u2011\u2013\u2014\u2015\u2212\u30fc\uff0d\uff70"
_BLANKS: Final = re.compile("[\u00a0\u3000]")
_OF_KEY: Final = re.compile(r"(?i)(?:^|[-_]|api|openai)key$")
OF_SECRET: Final = re.compile(r"(?i)(?:key|token|secret|password|passwd)$")
"""Finds the name of a variable or an option that holds a secret."""
SHORTEST_SECRET: Final = 8  # characters; one that is shorter may be a word of any message
_MISSING: Final = "the following arguments are required"  # as argparse says it


class Parser(argparse.ArgumentParser):
    """A parser that says of an unknown option or value which one is near; long options are not abbreviated."""

    def __init__(self, **given: Any) -> None:
        super().__init__(allow_abbrev=False, **given)
        self._given: Sequence[str] = ()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return the options, and the words that are none; all that was given is remembered, for `error`."""
        self._given = args or ()
        for word in self._before_end():
            if said := hidden_option(word, self._option_string_actions):
                self.error(said)
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """Exit with 2; an option that is not known is named before the words that are missing beside it."""
        unknown = [
            word
            for word in self._before_end()
            if word.startswith("-") and word != "-" and word.partition("=")[0] not in self._option_string_actions
        ]
        if unknown and message.startswith(_MISSING):
            self.refuse(unknown)
        argument, ignored, _ = message.partition(" ignored explicit argument")
        message = f"{argument} takes no value" if ignored else message
        super().error(keys_out_of(message.split())(message))

    def _before_end(self) -> Sequence[str]:
        given = [*self._given, "--"]
        return given[: given.index("--")]

    def parse_options(self, argv: Sequence[str]) -> argparse.Namespace:
        """Return the options; exits with 2 for a wrong command line."""
        options: argparse.Namespace
        options, unknown = self.parse_known_args(argv)
        if unknown:
            self.refuse(unknown, argv)
        return options

    def parse_words(self, argv: Sequence[str]) -> argparse.Namespace:
        """Return the options of a command that ends in any number of words, which may stand between its options.

        All that follows `--` is words. Exits with 2 for a wrong command line.
        """
        end = argv.index("--") if "--" in argv else len(argv)
        options, unknown = self.parse_known_intermixed_args(argv[:end])
        if unknown:
            self.refuse(unknown)
        words = next(each.dest for each in self._actions if not each.option_strings)
        setattr(options, words, [*getattr(options, words), *argv[end + 1 :]])
        return options

    def refuse(self, unknown: Sequence[str], argv: Sequence[str] = ()) -> NoReturn:
        """Exit with 2 for words of `argv` that are no arguments of this command."""
        option = next((word for word in unknown if word.startswith("-")), None)
        if option is None:
            cure = self._cure_of_word(unknown[0], argv)
            self.error(f"unrecognized arguments: {' '.join(unknown)}{f'; {cure}' if cure else ''}")
        takes_words = any(each.nargs in {"*", "+"} and each.type is None for each in self._actions)
        cure = "put -- before words that begin with -" if takes_words else None
        self.error(no_option(option, self._option_string_actions, cure))

    def _cure_of_word(self, word: str, argv: Sequence[str]) -> str | None:
        """Return what may have been meant by a word that is too many."""
        if word in argv and argv[argv.index(word) - 1].endswith(","):
            return "put no blanks behind commas"
        for action in self._actions:
            if word in (action.choices or ()):
                option = action.option_strings[0] if action.option_strings else None
                return f"did you mean {option} {word}?" if option else f"{action.metavar} is one at a time"
        return None

    def _match_argument(self, action: argparse.Action, arg_strings_pattern: str) -> int:
        try:
            return super()._match_argument(action, arg_strings_pattern)
        except argparse.ArgumentError as error:
            if action.nargs is None and action.help != argparse.SUPPRESS:
                error.message = f"{action.metavar} is missing: {action.help}"
            raise

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            choices = [*map(str, cast("Iterable[object]", action.choices or ()))]
            text = str(value).lower()
            within = [each for each in choices if text in each]
            if len(within) > 1 and text and text not in choices:
                error.message += f"; did you mean one of {', '.join(within)}?"
            elif f"--{text}" in self._option_string_actions:
                error.message += f"; did you mean --{text}?"
            elif near := get_close_matches(text, choices, 1):
                error.message += f"; did you mean {near[0]}?"
            raise


def keys_out_of(words: Sequence[str]) -> Redactor:
    """Return what takes keys out of a message about a command line: one that is set here, or follows `-k` at once."""
    from responses_mcp.secrets import Redactor  # noqa: PLC0415  # for mistakes alone

    redact = Redactor()
    behind = [word[2:].rstrip(";") for word in words if re.match("-[A-Za-z]", word) and redact(word[2:]) != word[2:]]
    values = (value for name, value in os.environ.items() if OF_SECRET.search(name))
    return Redactor([*behind, *(value for value in values if len(value) >= SHORTEST_SECRET)])


def no_command(word: str, commands: Collection[str]) -> str:
    """Return what is wrong with a word that is none of the commands, and which of them may have been meant."""
    near = get_close_matches(word, commands, 1)
    cure = f"did you mean {near[0]}?" if near else f"there are {', '.join(commands)}"
    return f"there is no command {word or repr(word)}; {cure}"


def _bare(option: str) -> str:
    return option.partition("=")[0].lstrip(f"-{_DASHES}").lower()


def hidden_option(word: str, options: Collection[str]) -> str | None:
    """Return what is wrong with a word that ends in an option, with other dashes or behind a blank of another kind."""
    last = _BLANKS.split(word)[-1]
    name = f"--{_bare(last)}"
    if name not in options:
        return None
    if last.startswith(tuple(_DASHES)):
        return no_option(last, options)
    if last.startswith("-") and last != word:
        return f"put an ordinary blank before {name}, or -- before a question that has it"
    return None


def no_option(word: str, options: Collection[str], cure: str | None = None) -> str:
    """Return what is wrong with a word that is none of the options, and which may have been meant; else `cure`."""
    if word in {"-V", "--version"}:
        return f"there is no option {word} of a command; did you mean openai-responses-mcp --version?"
    name = word.partition("=")[0]
    if name in OF_SERVER:
        return f"leave {name} out, which is for a server"
    named, key, glued = name.lower().partition("key")
    if key and len(glued) > SHORTEST_SECRET:  # the value of an option that is none
        name = name[: len(named) + len(key)]
    if _OF_KEY.search(name):
        return f"there is no option {name}; the key goes into OPENAI_API_KEY"
    longer = [each for each in options if each.startswith(f"-{word}" if len(word) == 2 else name)]
    bare = {each.lstrip("-"): each for each in options}
    near = longer or [bare[each] for each in get_close_matches(_bare(name), bare, 1)]
    if not near and name[:2] != "--" and name[0] == "-":
        name = name[:2]  # what is glued to a short option is its value
    meant = f"one of {', '.join(near)}" if len(near) > 1 else "".join(near)
    advice = f"did you mean {meant}?" if near else cure
    return f"there is no option {name}" + (f"; {advice}" if advice else "")  # its value may be a key


def without_blanks(text: str) -> str:
    """Return an argument that is one word: an id, not a sentence."""
    if not text or any(each.isspace() for each in text):
        raise argparse.ArgumentTypeError(f"must be text without blanks, got {text!r}")
    return text


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
