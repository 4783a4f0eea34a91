"""`openai-responses-mcp ask`: what the `answer*` tools do, for people and scripts."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from responses_mcp.asking import TOOLS, Watcher, open_answers
from responses_mcp.commands.asking import (
    COMMAND_LINE,
    Watch,
    call,
    question,
    tell_masked,
    tell_usage,
    with_usage,
)
from responses_mcp.commands.parser import Parser, whole_number, without_blanks
from responses_mcp.commands.terminal import (
    configured,
    for_reading,
    on_terminal,
    parser_of,
    run_command,
    say_json,
    say_text,
)
from responses_mcp.commands.written_answer import WrittenAnswer
from responses_mcp.responses_api.response.parser import Answer
from responses_mcp.settings.model import EFFORTS, Profile, Settings

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
    parser.add_argument("question", metavar="QUESTION", nargs="*", help="what to ask; - adds what stdin says")
    profile = parser.add_mutually_exclusive_group()
    for name, summary in (("detailed", "thorough, for comparisons and research"), ("quick", "fast and short")):
        profile.add_argument(
            f"--{name}", dest="profile", action="store_const", const=f"answer_{name}", default="answer", help=summary
        )
    profile.add_argument("--profile", metavar="NAME", help="the profile of that name, such as answer_quick")
    parser.add_argument("--model", metavar="ID", type=without_blanks, help="another model than the profile's")
    parser.add_argument("--effort", metavar="LEVEL", choices=EFFORTS, help="reasoning effort, such as low or high")
    parser.add_argument("--domains", metavar="A,B", action="append", help="sites to prefer")
    parser.add_argument(
        "--recency-days", metavar="N", type=whole_number(0, 36_500), help="prefer pages of the last N days"
    )
    parser.add_argument("--max-results", metavar="N", type=whole_number(1, 100), help="how many pages to look at")
    parser.add_argument("--json", action="store_true", help="write one JSON document: what the tool returns, and usage")
    parser.add_argument("--debug", action="store_true", help="log everything but secrets to stderr")
    parser.add_argument("--config", metavar="PATH", help="YAML file to read instead of the default one")
    return parser


def run(argv: Sequence[str]) -> int:
    """Run the command and return the exit code."""
    options = build_parser().parse_words(argv)
    return run_command(lambda: _ask(options), as_json=options.json)


def _ask(options: argparse.Namespace) -> None:
    settings = configured(os.environ, options.config, debug=options.debug or None)
    models = ", ".join(dict.fromkeys(profile.model for profile in settings.model_profiles.values()))
    option = f"--model (configured: {models})"
    named = None if options.model is None else {option: Profile(model=options.model)}
    settings = _with_model(settings, options.profile, options.model, options.effort)
    query = question(options.question)
    given = options.domains
    domains: Sequence[str] | None = None if given is None else ",".join(given).strip(" ,") or []
    written = WrittenAnswer() if on_terminal(sys.stdout) and not options.json else None

    async def ask(watch: Watch) -> Answer:
        def show(text: str) -> None:
            watch.end()
            if written is not None:
                written.take(text)

        async with open_answers(settings, named=named) as asker:
            return await asker.answer(
                query,
                profile=options.profile,
                recency_days=options.recency_days,
                max_results=options.max_results,
                domains=domains,
                watcher=Watcher(watch.tell, None if written is None else show, client=COMMAND_LINE),
            )

    answer = call(settings, ask)
    if written is not None:
        written.end(answer.text)
    elif options.json:
        say_json(with_usage(answer.as_json(), answer.usage, answer.masked))
    else:
        say_text(for_reading(answer.text))
    tell_masked(answer.masked)
    tell_usage(answer.usage)


def _with_model(settings: Settings, name: str, model: str | None, effort: str | None) -> Settings:
    """Return the settings with another model or effort in the profile of that name."""
    profiles = settings.model_profiles
    profile = profiles.get(name) or (profiles.get(TOOLS[0]) if name in TOOLS else None)
    if profile is None or (model is None and effort is None):
        return settings
    changed = replace(profile, model=model or profile.model, reasoning_effort=effort or profile.reasoning_effort)
    return replace(settings, model_profiles=MappingProxyType({**profiles, name: changed}))
