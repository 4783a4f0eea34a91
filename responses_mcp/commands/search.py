"""`openai-responses-mcp search`: what the tool `chatgpt_o3_search` does, for people and scripts."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import Final

from responses_mcp.asking import SearchResults, Watcher, open_answers
from responses_mcp.commands.asking import (
    COMMAND_LINE,
    Watch,
    call,
    question,
    tell_masked,
    tell_usage,
    with_usage,
)
from responses_mcp.commands.parser import Parser, whole_number
from responses_mcp.commands.terminal import (
    configured,
    for_reading,
    parser_of,
    remark,
    run_command,
    say,
    say_json,
    say_text,
)
from responses_mcp.responses_api.request.arguments import ANY_LANGUAGE, MOST_RESULTS, TIMEFRAMES, USUAL_LIMIT

_INDENT: Final = " " * 5
_EXAMPLES: Final = """\
examples:
  openai-responses-mcp search "structured concurrency" --limit 5
  openai-responses-mcp search "Tokyo events" --language ja --timeframe past_week
"""


def build_parser() -> Parser:
    """Return the parser of this command."""
    parser = parser_of(
        "search",
        usage='%(prog)s "QUERY" [options]',
        description="Search the web, and list the pages that fit best, each with what it says.",
        epilog=_EXAMPLES,
    )
    parser.add_argument("query", metavar="QUERY", nargs="*", help="what to look for; - is what stdin says")
    parser.add_argument(
        "--limit",
        metavar="N",
        type=whole_number(1, MOST_RESULTS),
        default=USUAL_LIMIT,
        help=f"pages to list, 1 to {MOST_RESULTS} (default {USUAL_LIMIT})",
    )
    parser.add_argument("--language", metavar="TAG", default=ANY_LANGUAGE, help="of the pages, such as ja or en")
    parser.add_argument(
        "--timeframe", metavar="WHEN", choices=TIMEFRAMES, help=f"age of the pages: {', '.join(TIMEFRAMES)}"
    )
    parser.add_argument("--json", action="store_true", help="write one JSON document: what the tool returns, and usage")
    parser.add_argument("--debug", action="store_true", help="log everything but secrets to stderr")
    parser.add_argument("--config", metavar="PATH", help="YAML file to read instead of the default one")
    return parser


def run(argv: Sequence[str]) -> int:
    """Run the command and return the exit code."""
    options = build_parser().parse_words(argv)
    return run_command(lambda: _search(options), as_json=options.json)


def _search(options: argparse.Namespace) -> None:
    settings = configured(os.environ, options.config, debug=options.debug or None)
    query = question(options.query)

    async def ask(watch: Watch) -> SearchResults:
        async with open_answers(settings) as asker:
            return await asker.search(
                query,
                limit=options.limit,
                language=options.language,
                timeframe=options.timeframe,
                watcher=Watcher(watch.tell, client=COMMAND_LINE),
            )

    found = call(settings, ask)
    if options.json:
        say_json(with_usage(found.as_json(), found.usage, found.masked))
    else:
        _say_found(found)
    tell_masked(found.masked)
    tell_usage(found.usage)


def _say_found(found: SearchResults) -> None:
    for rank, page in enumerate(found.results, 1):
        say(f"{rank:3}. {page.title}")
        say(f"{_INDENT}{page.url}" + (f"  {page.published_date}" if page.published_date else ""))
        if page.snippet:
            say_text(for_reading(page.snippet, _INDENT))
    if not found.results:
        say("Nothing found.")
    elif found.total_count > len(found.results):
        say(f"These are {len(found.results)} of {found.total_count} pages; list more with --limit.")
    if found.dropped:
        links = "1 link" if found.dropped == 1 else f"{found.dropped} links"
        remark(f"{links} that the search itself had not found {'was' if found.dropped == 1 else 'were'} left out.")
