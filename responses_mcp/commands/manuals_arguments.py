"""The command line of `openai-responses-mcp manuals`."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import Final

from responses_mcp.commands.terminal import NAME

HITS: Final = 10
"""Hits shown of one manual."""

HITS_EACH: Final = 3
"""Hits shown of each of several manuals."""

_INDEX_EXAMPLE: Final = """\
example:
  openai-responses-mcp manuals index --root ~/manuals
"""
_FIND_EXAMPLE: Final = """\
examples:
  openai-responses-mcp manuals find "How long is a token valid?"
  openai-responses-mcp manuals find "rotate keys" --manual guide --require keys
"""
_READ_EXAMPLE: Final = """\
examples:
  openai-responses-mcp manuals read guide auth/tokens.md --line 57
  openai-responses-mcp manuals read guide errors.json
"""
_EXAMPLES: Final = """\
examples:
  openai-responses-mcp manuals index --root ~/manuals
  openai-responses-mcp manuals find "How long is a token valid?"
  openai-responses-mcp manuals read guide auth/tokens.md --line 57
"""


def parsed(argv: Sequence[str]) -> argparse.Namespace:
    """Return the options; `command` is None when there is none, and help has been printed.

    Exits with 2 for a wrong command line, with 0 for `--help`.
    """
    parser = _parser()
    options = parser.parse_args(argv)
    if options.command is None:
        parser.print_help()
    return options


def _parser() -> argparse.ArgumentParser:
    def formatted(prog: str) -> argparse.HelpFormatter:
        return argparse.RawDescriptionHelpFormatter(prog, max_help_position=20)

    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--root", metavar="DIR", help="folder of manuals, instead of the configured one")
    shared.add_argument("--config", metavar="PATH", help="YAML file to read instead of the default one")
    shared.add_argument("--json", action="store_true", help="write one JSON document, with all details")
    parser = argparse.ArgumentParser(
        prog=f"{NAME} manuals",
        description="Search and read a folder of manuals, as the manual_* tools do.",
        epilog=_EXAMPLES,
        formatter_class=formatted,
        allow_abbrev=False,
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", dest="command")

    def command(form: str, summary: str, more: str, example: str) -> argparse.ArgumentParser:
        name, _, arguments = form.partition(" ")
        return commands.add_parser(
            name,
            usage=f"%(prog)s {arguments} [options]",
            help=summary,
            description=f"{summary[0].upper()}{summary[1:]}. {more}",
            epilog=example,
            parents=[shared],
            formatter_class=formatted,
            allow_abbrev=False,
        )

    index = command(
        "index [MANUAL ...]",
        "bring the index of manuals up to date",
        "Searches do that too.\nCtrl-C keeps what is done; the next run goes on from there.",
        _INDEX_EXAMPLE,
    )
    index.add_argument("manual", metavar="MANUAL", nargs="*", type=_manual, help="which ones (default: all)")
    find = command(
        "find QUERY",
        "search manuals",
        "The sections that fit best come first.",
        _FIND_EXAMPLE,
    )
    find.add_argument("query", metavar="QUERY", help="what to look for: a question, or words")
    find.add_argument(
        "--manual", metavar="ID", action="append", type=_manual, help="search this one (default: each of them)"
    )
    find.add_argument(
        "--require",
        metavar="TERM",
        nargs="+",
        action="extend",
        help="one or two words that hits should have (default: the longest)",
    )
    find.add_argument(
        "--limit",
        metavar="N",
        type=_positive,
        help=f"hits to show (default {HITS}; {HITS_EACH} of each if there are several)",
    )
    find.add_argument(
        "--budget-ms", metavar="N", type=_positive, default=60_000, help="milliseconds for each (default 60000)"
    )
    read = command(
        "read MANUAL PATH",
        "show a section of a manual",
        "A JSON file is shown from the line on.",
        _READ_EXAMPLE,
    )
    read.add_argument("manual", metavar="MANUAL", type=_manual, help="which manual")
    read.add_argument("path", metavar="PATH", help="a file of it, as 'find' shows it")
    read.add_argument("--line", metavar="N", type=_positive, help="a line of the section (default: the first section)")
    read.add_argument("--all", action="store_true", help="the whole file, or all from the line on")
    return parser


def _positive(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be an integer of 1 or more, got {text!r}")
    return number


def _manual(text: str) -> str:
    """Return the name of a manual; a shell that completes it adds a slash."""
    return text.rstrip("/" + (os.sep if os.name == "nt" else "")) or text
