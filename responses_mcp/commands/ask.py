"""`openai-responses-mcp ask`: what the `answer*` tools do, for people and scripts."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Sequence
from typing import Final

from responses_mcp.answers import open_answers
from responses_mcp.commands.asking import Tell, call, for_reading, question
from responses_mcp.commands.terminal import configured, parser_of, run_command, say_json, say_text
from responses_mcp.responses_api.response.parser import Answer

_EXAMPLES: Final = """\
examples:
  openai-responses-mcp ask "What is new in Python 3.13?" --domains python.org
  git diff | openai-responses-mcp ask --quick "Does this use a retired API?"
"""


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of this command."""
    parser = parser_of(
        "ask",
        usage='%(prog)s "QUESTION" [options]',
        description="Answer a question, with a search of the web when needed, and name the sources.\n"
        "Piped text goes along with the question, or is the question if there is none.",
        epilog=_EXAMPLES,
    )
    parser.add_argument("question", metavar="QUESTION", nargs="*", help="what to ask; - is what stdin says")
    profile = parser.add_mutually_exclusive_group()
    for name, summary in (("detailed", "thorough, for comparisons and research"), ("quick", "fast and short")):
        profile.add_argument(
            f"--{name}", dest="profile", action="store_const", const=f"answer_{name}", default="answer", help=summary
        )
    parser.add_argument("--domains", metavar="A,B", action="append", help="sites to prefer")
    parser.add_argument("--recency-days", metavar="N", type=_whole(0, 36_500), help="prefer pages of the last N days")
    parser.add_argument("--max-results", metavar="N", type=_whole(1, 100), help="how many pages to look at")
    parser.add_argument("--json", action="store_true", help="write one JSON document, as the tools return it")
    parser.add_argument("--config", metavar="PATH", help="YAML file to read instead of the default one")
    return parser


def run(argv: Sequence[str]) -> int:
    """Run the command and return the exit code."""
    options = build_parser().parse_intermixed_args(argv)
    return run_command(lambda: _ask(options))


def _ask(options: argparse.Namespace) -> None:
    settings = configured(os.environ, options.config)
    query = question(options.question, with_context=True)
    domains = None if options.domains is None else " ".join(options.domains).replace(",", " ").split()

    async def ask(tell: Tell) -> Answer:
        async with open_answers(settings) as answers:
            return await answers.answer(
                query,
                profile=options.profile,
                recency_days=options.recency_days,
                max_results=options.max_results,
                domains=domains,
                on_phase=tell,
            )

    answer = call(settings, ask)
    if options.json:
        say_json(answer.as_json())
    else:
        say_text(for_reading(answer.text))


def _whole(least: int, most: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        number = int(text) if text.isdecimal() else -1
        if not least <= number <= most:
            raise argparse.ArgumentTypeError(f"must be a whole number from {least} to {most}, got {text!r}")
        return number

    return read
