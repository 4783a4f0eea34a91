"""`openai-responses-mcp ask`: what the `answer*` tools do, for people and scripts."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Final

from responses_mcp.asking import Watcher, open_answers
from responses_mcp.commands.asking import COMMAND_LINE, Watch, add_options, run_question
from responses_mcp.commands.parser import Parser, parser_of, whole_number
from responses_mcp.commands.terminal import on_terminal, run_command, say_text, show_now
from responses_mcp.responses_api.response.parser import Answer
from responses_mcp.settings.model import Settings

_EXAMPLES: Final = """\
examples:
  openai-responses-mcp ask "What is new in Python 3.13?" --domains python.org
  git diff | openai-responses-mcp ask --quick "Does this use a retired API?" -
"""


def build_parser() -> Parser:
    """Return the parser of this command."""
    parser = parser_of(
        "ask",
        usage='%(prog)s "QUESTION" [options]',
        description="Answer a question, with a search of the web when needed, and name the sources.",
        epilog=_EXAMPLES,
    )
    parser.add_argument("question", metavar="QUESTION", nargs="*", help="what to ask; - adds the text on stdin")
    profile = parser.add_mutually_exclusive_group()
    for name, summary in (("detailed", "thorough, for comparisons and research"), ("quick", "fast and short")):
        profile.add_argument(
            f"--{name}", dest="profile", action="store_const", const=f"answer_{name}", default="answer", help=summary
        )
    profile.add_argument("--profile", metavar="NAME", help="the profile of that name, such as answer_quick")
    parser.add_argument("--domains", metavar="A,B", action="append", help="sites to prefer")
    parser.add_argument(
        "--recency-days", metavar="N", type=whole_number(0, 36_500), help="prefer pages of the last N days"
    )
    parser.add_argument("--max-results", metavar="N", type=whole_number(1, 100), help="how many pages to look at")
    add_options(parser)
    return parser


def run(argv: Sequence[str]) -> int:
    """Run the command and return the exit code."""
    options = build_parser().parse_words(argv)
    return run_command(lambda: _ask(options), as_json=options.json)


def _ask(options: argparse.Namespace) -> None:
    given = options.domains
    domains: Sequence[str] | None = None if given is None else ",".join(given).strip(" ,") or []
    written = WrittenAnswer() if on_terminal(sys.stdout) and not options.json else None

    async def ask(settings: Settings, query: str, watch: Watch) -> Answer:
        def show(text: str) -> None:
            watch.end()
            if written is not None:
                written.take(text)

        async with open_answers(settings) as asker:
            return await asker.answer(
                query,
                profile=options.profile,
                recency_days=options.recency_days,
                max_results=options.max_results,
                domains=domains,
                watcher=Watcher(watch.tell, None if written is None else show, client=COMMAND_LINE),
            )

    def show_whole(answer: Answer) -> None:
        if written is not None:
            written.end(answer.text)
        else:
            say_text(f"{answer.text}\n")

    run_question(options, options.question, ask, show_whole)


class WrittenAnswer:
    """Shows an answer while it is written: `take` its pieces, an empty one at its beginning, then `end` it."""

    def __init__(self) -> None:
        self._shown = ""

    def take(self, piece: str) -> None:
        """Show the next piece of the text."""
        if not piece and self._shown:
            say_text("\n\n--- the answer broke off; starting again: ---\n\n")
            self._shown = ""
        self._show(piece if self._shown else piece.lstrip())

    def end(self, text: str) -> None:
        """Show what is missing of the whole `text`; all of it, below a line, if it is not what was shown."""
        bare = self._shown.rstrip()
        if not text.startswith(bare):
            self._show(f"\n\n--- the answer in its final form: ---\n\n{text}")
        elif text.startswith(self._shown):
            self._show(text[len(self._shown) :])
        else:  # with fewer blank lines
            rest = text[len(bare) :]
            for _ in range(self._shown.count("\n", len(bare))):
                rest = rest.removeprefix("\n")
            self._show(rest)
        if not self._shown.endswith("\n"):
            self._show("\n")

    def _show(self, text: str) -> None:
        self._shown += text
        say_text(text)
        show_now()
