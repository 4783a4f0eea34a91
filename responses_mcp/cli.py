"""The command line: serve, show the configuration, or run one of the commands for people (spec 5.5)."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from typing import NoReturn

from responses_mcp import __version__
from responses_mcp.errors import exhausted, program
from responses_mcp.logs import configure
from responses_mcp.secrets import Redactor
from responses_mcp.settings import LoadedSettings, load_settings, show_config
from responses_mcp.settings.address import drop_unfilled

log = logging.getLogger(__name__)

# A command is a module with `run(argv) -> exit code`, imported when it is asked for.
COMMANDS = {
    "ask": "responses_mcp.commands.ask",
    "search": "responses_mcp.commands.search",
    "demo": "responses_mcp.commands.demo",
    "install": "responses_mcp.commands.install",
    "manuals": "responses_mcp.commands.manuals",
    "research": "responses_mcp.commands.research",
    "doctor": "responses_mcp.commands.doctor",
    "usage": "responses_mcp.commands.usage",
}

_WAITING = """\
openai-responses-mcp: waiting for an MCP client, but stdin is a terminal; Ctrl-C ends this.
To set up a client: {program} install claude-code (or codex, gemini and others).
To ask a question: {program} ask 'What is new in Python?'"""

_EPILOG = """\
commands:
  ask         answer a question, with sources; text may be piped in
  search      list the pages on the web that fit a query
  research    research a question for minutes, in a run that goes on by itself
  doctor      check key, configuration, network and start-up; names each fix
  install     show or write the entry for a client, such as claude-code or codex
  demo        show a whole exchange against a built-in fake API; needs no key
  manuals     index, search and read a folder of manuals; needs no key
  usage       show what calls used and cost, if there is a ledger

example: openai-responses-mcp ask "What is new in Python 3.13?"
"""


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the top level."""
    parser = argparse.ArgumentParser(
        prog="openai-responses-mcp",
        description="MCP server for search-backed answers from OpenAI's Responses API.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="%(prog)s [--stdio] [--show-config] [options] | COMMAND",
        allow_abbrev=False,
        add_help=False,
    )
    parser.add_argument("-h", "--help", action="help", help=argparse.SUPPRESS)  # everyone knows it, and room is short
    parser.add_argument("--stdio", action="store_true", help="serve MCP on stdin and stdout")
    parser.add_argument("--show-config", action="store_true", help="print the effective configuration to stderr")
    parser.add_argument("--config", metavar="PATH", help="YAML file to read instead of the default one")
    parser.add_argument(
        "--debug",
        metavar="PATH",
        nargs="?",
        const=True,
        help="log everything but secrets to stderr, and to PATH if given",
    )
    parser.add_argument("--toolsets", metavar="NAMES", help="comma-separated: answer, manuals, search, research")
    parser.add_argument("-V", "--version", action="version", version=__version__)
    return parser


def run(argv: Sequence[str]) -> int:
    """Run the command line `argv`, without the program's name, and return the exit code.

    0 is success, 1 a failure while running, 2 a wrong command line or configuration.
    """
    argv = command_first(argv)
    if argv and argv[0] == "help":
        argv = [*argv[1:2], "--help"]
    if argv and argv[0] in COMMANDS:
        command: Callable[[Sequence[str]], int] = import_module(COMMANDS[argv[0]]).run
        return command(argv[1:])
    parser = build_parser()
    if not argv:
        parser.print_help()
        return 0
    options, unknown = parser.parse_known_args(argv)
    if unknown:
        known = list(parser._option_string_actions)  # noqa: SLF001  # it has no other name
        _refuse(parser, _not_known(unknown, known, argv))
    if not options.stdio and not options.show_config:
        _refuse(parser, f"nothing to do; add --stdio to serve, or a command: {', '.join(COMMANDS)}")
    loaded = load_settings(os.environ, config_path=options.config, debug=options.debug, toolsets=options.toolsets)
    if options.stdio:
        return _serve(loaded, show=options.show_config or loaded.settings.server.show_config_on_start)
    _tell(configuration_shown(loaded))
    return 2 if loaded.problems else 0


def command_first(argv: Sequence[str]) -> list[str]:
    """Return the command line with `--config FILE` behind a command that it stands before."""
    option, rest = list(argv[:2]), list(argv[2:])
    if option and option[0].startswith("--config="):
        option, rest = list(argv[:1]), list(argv[1:])
    if option and option[0].partition("=")[0] == "--config" and rest and rest[0] in COMMANDS:
        return [*rest, *option]
    return list(argv)


def _refuse(parser: argparse.ArgumentParser, message: str) -> NoReturn:
    """Exit with 2, as the commands do."""
    from responses_mcp.commands.parser import Parser  # noqa: PLC0415  # for mistakes alone

    Parser(prog=parser.prog, usage=parser.usage).error(message)


def _not_known(words: Sequence[str], options: Sequence[str], argv: Sequence[str]) -> str:
    """Return what is wrong with words that are neither a command nor options, without a key that may be in them."""
    from responses_mcp.commands.parser import keys_out_of, no_command, no_option  # noqa: PLC0415  # for mistakes alone

    redact, word = keys_out_of(argv), words[0]
    if command := next((each for each in words if each in COMMANDS and argv[0].startswith("-")), None):
        return f"put {command} first and its options after it: {program()} {command} …"
    if any(redact(each) != each for each in words):
        return "an argument looks like a secret and is not shown; put a key into OPENAI_API_KEY"
    return redact(no_option(word, options) if word.startswith("-") else no_command(word, COMMANDS))


def configuration_shown(loaded: LoadedSettings) -> str:
    """Return the document of `--show-config`, with what the requests of each profile hold."""
    from responses_mcp.responses_api.request.payload import effort_and_verbosity  # noqa: PLC0415  # few starts show it

    sent = {name: effort_and_verbosity(profile) for name, profile in loaded.settings.model_profiles.items()}
    return show_config(loaded, __version__, sent=sent)


def _tell(text: str) -> None:
    """Write to stderr, where there is one that takes it."""
    if sys.__stderr__ is None:
        return  # closed at the start: the number may belong to something else by now
    # Not through sys.stderr, which keeps what it could not write and fails over it once more at the end.
    with suppress(OSError), open(os.dup(2), "wb") as stderr:  # noqa: PTH123
        stderr.write(text.encode() + b"\n")


def _serve(loaded: LoadedSettings, *, show: bool) -> int:
    parent = os.getppid()  # before it can be gone
    settings = loaded.settings
    unfilled = drop_unfilled(os.environ)
    if sys.__stdin__ is not None and sys.__stderr__ is not None and os.isatty(0) and os.isatty(2):
        _tell(_WAITING.format(program=program()))
    closing = configure(
        debug=settings.server.debug,
        debug_file=settings.server.debug_file,
        redact=Redactor(settings.openai.secrets),
        shown=configuration_shown(loaded) if show else None,
    )
    for text in (*loaded.problems, *loaded.warnings):
        log.warning("%s", text)
    for name in unfilled:
        log.warning("%s still holds a placeholder, so it is ignored", name)
    from responses_mcp.configured import configured_conversation  # noqa: PLC0415  # not for --help
    from responses_mcp.runtime.descriptors import claimed_stdio, needs_threads  # noqa: PLC0415
    from responses_mcp.runtime.prologue import prologue_on_descriptors  # noqa: PLC0415

    try:
        with claimed_stdio() as (wire_in, wire_out):
            conversation = configured_conversation(settings)
            if not (needs_threads(wire_in) or needs_threads(wire_out)):
                prologue_on_descriptors(conversation, wire_in, wire_out)
            import trio  # noqa: PLC0415  # after the first answers

            from responses_mcp.serving import serve_descriptors  # noqa: PLC0415

            trio.run(serve_descriptors, wire_in, wire_out, conversation, settings.server, parent)
    except Exception as error:  # told in a line, since clients do not show tracebacks
        if shortage := exhausted(error):
            log.error("%s", shortage)  # noqa: TRY400
        elif isinstance(error, OSError):
            log.error("stdin or stdout cannot be used (%s); start this from an MCP client.", error.strerror)  # noqa: TRY400
        else:  # a group from Trio: only a bug gets this far
            name = type(error).__name__
            log.error("the server ended with %s; this is a bug, please report it with a --debug log", name)  # noqa: TRY400
        log.debug("traceback", exc_info=error)
        return 1
    finally:
        closing.close()
    return 0
