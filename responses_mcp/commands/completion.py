"""`openai-responses-mcp completion SHELL`: a script by which bash, zsh or fish completes our commands and options.

What is completed comes from the parsers of the commands, so there is no table to keep. shtab, which does the same,
leaves typed words unquoted in bash and knows no choices of hidden arguments; argcomplete would start Python at each
Tab.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from io import TextIOWrapper
from typing import Any, Final, NamedTuple, TextIO, cast

from responses_mcp import cli
from responses_mcp.answers import TOOLS
from responses_mcp.commands.parser import Parser
from responses_mcp.commands.terminal import NAME, parser_of, run_command, say_text
from responses_mcp.settings.setting import TOOLSETS

SHELLS: Final = ("bash", "zsh", "fish")

_EPILOG: Final = """\
examples:
  openai-responses-mcp completion bash > ~/.openai-responses-mcp.bash
  echo '. ~/.openai-responses-mcp.bash' >> ~/.bashrc
  openai-responses-mcp completion zsh > ~/.openai-responses-mcp.zsh
  echo 'autoload -Uz compinit && compinit' >> ~/.zshrc
  echo '. ~/.openai-responses-mcp.zsh' >> ~/.zshrc
  mkdir -p ~/.config/fish/completions
  openai-responses-mcp completion fish > \\
    ~/.config/fish/completions/openai-responses-mcp.fish
"""
# Of options that may have other values too, those that everybody has.
_VALUES: Final = {"--profile": TOOLS, "--toolsets": TOOLSETS}
_FILES: Final = frozenset({"PATH", "FILE"})
_FOLDERS: Final = frozenset({"DIR"})


class Option(NamedTuple):
    """An option, with the words that its value may be, or whether it is the name of a file or a folder."""

    names: Sequence[str]
    words: Sequence[str]
    file: bool
    folder: bool
    takes_value: bool


class Context(NamedTuple):
    """What may come behind some words, which are a command and perhaps one of its own; none at the beginning."""

    words: tuple[str, ...]
    options: Sequence[Option]
    following: Sequence[str]


def build_parser() -> Parser:
    """Return the parser of this command."""
    parser = parser_of(
        "completion",
        description="Write a script to stdout by which a shell completes commands, options and\ntheir values.",
        epilog=_EPILOG,
    )
    parser.add_argument("shell", metavar="SHELL", choices=SHELLS, help=", ".join(SHELLS))
    return parser


def run(argv: Sequence[str]) -> int:
    """Run the command and return the exit code."""
    shell = build_parser().parse_options(argv).shell
    return run_command(lambda: _write(shell))


def _write(shell: str) -> None:
    stdout: TextIO = sys.stdout
    if isinstance(stdout, TextIOWrapper):
        stdout.reconfigure(newline="\n")  # a shell takes CR for a part of the word, also on Windows
    say_text(script(shell))


def script(shell: str) -> str:
    """Return the script for one of `SHELLS`."""
    every = list(contexts())
    return {"bash": _bash, "zsh": _zsh, "fish": _fish}[shell](every)


def contexts() -> Iterator[Context]:
    """Yield what may come where."""
    yield _context((), cli.build_parser(), list(cli.COMMANDS))
    for name, location in cli.COMMANDS.items():
        module = import_module(location)
        build = getattr(module, "build_parser", None)
        if build is not None:
            further: dict[str, argparse.ArgumentParser] = getattr(module, "further_parsers", dict)()
            for word, parser in further.items():
                yield from _of_parser((name, word), parser)
            yield from _of_parser((name,), build(), further)


def _of_parser(
    words: tuple[str, ...], parser: argparse.ArgumentParser, further: Iterable[str] = ()
) -> Iterator[Context]:
    following = list(further)
    for action in parser._actions:  # noqa: SLF001  # argparse has no other name for them
        choices = cast("object", action.choices)
        if isinstance(choices, Mapping):
            for name, sub in cast("Mapping[str, object]", choices).items():
                following.append(name)
                if isinstance(sub, argparse.ArgumentParser):
                    yield from _of_parser((*words, name), sub)
        elif not action.option_strings and action.choices:
            following += map(str, action.choices)
    yield _context(words, parser, following)


def _context(words: tuple[str, ...], parser: argparse.ArgumentParser, following: Sequence[str]) -> Context:
    options = [_option(each) for each in parser._actions if each.option_strings]  # noqa: SLF001
    return Context(words, options, following)


def _option(action: argparse.Action) -> Option:
    metavar: Any = action.metavar
    words = [str(each) for each in action.choices or ()]
    for name in action.option_strings:
        words += _VALUES.get(name, ())
    return Option(action.option_strings, words, metavar in _FILES, metavar in _FOLDERS, action.nargs != 0)


def _cases(every: Sequence[Context], value: Mapping[str, str], following: str) -> Iterator[str]:
    """Yield the lines of a `case` in sh: of an option that takes a value first, then of where one is."""
    for context in every:
        where = " ".join(context.words)
        for option in context.options:
            if option.takes_value and (option.words or option.file or option.folder):
                kind = "file" if option.file else "folder" if option.folder else "words"
                patterns = "|".join(f'"{where}:{name}"' for name in option.names)
                yield f"    {patterns}) {value[kind].format(' '.join(option.words))} ;;"
    for context in every:
        words = [*context.following, *(name for option in context.options for name in option.names)]
        yield f'    "{" ".join(context.words)}:"*) {following.format(" ".join(words))} ;;'


def _subcommands(every: Sequence[Context]) -> str:
    return " | ".join(f'"{" ".join(each.words)}"' for each in every if len(each.words) > 1)


def _bash(every: Sequence[Context]) -> str:
    value = {
        "file": "compopt -o default 2>/dev/null; return",
        "folder": "compopt -o dirnames 2>/dev/null; return",
        "words": 'words="{}"',
    }
    return f"""\
# bash completion for {NAME}; written by `{NAME} completion bash`
_openai_responses_mcp() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" before="" where="" words=""
  COMPREPLY=()
  if ((COMP_CWORD > 1)); then
    before="${{COMP_WORDS[COMP_CWORD-1]}}" where="${{COMP_WORDS[1]}}"
  fi
  case "$where" in -*) where="" ;; esac
  if ((COMP_CWORD > 2)); then
    case "$where ${{COMP_WORDS[2]}}" in {_subcommands(every)}) where="$where ${{COMP_WORDS[2]}}" ;; esac
  fi
  case "$where:$before" in
{chr(10).join(_cases(every, value, 'words="{}"'))}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}}
complete -F _openai_responses_mcp {NAME}
"""


def _zsh(every: Sequence[Context]) -> str:
    value = {"file": "_files; return", "folder": "_files -/; return", "words": "compadd -- {}; return"}
    return f"""\
#compdef {NAME}
# zsh completion for {NAME}; written by `{NAME} completion zsh`
_openai_responses_mcp() {{
  local before="" where=""
  if ((CURRENT > 2)); then
    before="${{words[CURRENT-1]}}" where="${{words[2]}}"
  fi
  case "$where" in -*) where="" ;; esac
  if ((CURRENT > 3)); then
    case "$where ${{words[3]}}" in {_subcommands(every)}) where="$where ${{words[3]}}" ;; esac
  fi
  case "$where:$before" in
{chr(10).join(_cases(every, value, "compadd -- {}"))}
  esac
}}
if [ "$funcstack[1]" = "_{NAME}" ]; then
  _openai_responses_mcp "$@"
else
  compdef _openai_responses_mcp {NAME}
fi
"""


def _fish(every: Sequence[Context]) -> str:
    lines = [f"# fish completion for {NAME}; written by `{NAME} completion fish`", f"complete -c {NAME} -f"]
    for context in every:
        seen = [f"__fish_seen_subcommand_from {word}" for word in context.words]
        condition = "; and ".join(seen) or "__fish_use_subcommand"
        start = f"complete -c {NAME} -n '{condition}'"
        if context.following:
            lines.append(f"{start} -a '{' '.join(context.following)}'")
        for option in context.options:
            names = " ".join(f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}" for name in option.names)
            kind = "" if not option.takes_value else " -r -F" if option.file else " -x"
            if option.folder:
                kind += " -a '(__fish_complete_directories)'"
            if option.words:
                kind += f" -a '{' '.join(option.words)}'"
            lines.append(f"{start} {names}{kind}")
    return "\n".join(lines) + "\n"
