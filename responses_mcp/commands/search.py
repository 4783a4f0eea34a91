"""`openai-responses-mcp search`: what the tool `chatgpt_o3_search` does, for people and scripts."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Final

from responses_mcp.asking import SearchResults, Watcher, open_answers
from responses_mcp.commands.asking import COMMAND_LINE, Watch, add_options, run_question
from responses_mcp.commands.parser import Parser, parser_of, whole_number
from responses_mcp.commands.terminal import counted, remark, run_command, say
from responses_mcp.responses_api.request.arguments import ANY_LANGUAGE, MOST_RESULTS, TIMEFRAMES, USUAL_LIMIT
from responses_mcp.settings.model import Settings

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
        description="Search the web, and list the pages that fit best, each with a snippet.",
        epilog=_EXAMPLES,
    )
    parser.add_argument("query", metavar="QUERY", nargs="*", help="what to look for; - reads it from stdin")
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
    add_options(parser)
    return parser


def run(argv: Sequence[str]) -> int:
    """Run the command and return the exit code."""
    options = build_parser().parse_words(argv)
    return run_command(lambda: _search(options), as_json=options.json)


def _search(options: argparse.Namespace) -> None:
    async def ask(settings: Settings, query: str, watch: Watch) -> SearchResults:
        async with open_answers(settings) as asker:
            return await asker.search(
                query,
                limit=options.limit,
                language=options.language,
                timeframe=options.timeframe,
                watcher=Watcher(watch.tell, client=COMMAND_LINE),
            )

    run_question(options, options.query, ask, _show)


def _show(found: SearchResults) -> None:
    for rank, page in enumerate(found.results, 1):
        say(f"{rank:3}. {page.title}")
        say(f"{_INDENT}{page.url}" + (f"  {page.published_date}" if page.published_date else ""))
        for line in page.snippet.splitlines():
            say(f"{_INDENT}{line}")
    if not found.results:
        say("Nothing found.")
    elif found.total_count > len(found.results):
        say(f"Showing {len(found.results)} of {found.total_count} pages; list more with --limit.")
    if found.dropped:
        remark(f"Left out {counted(found.dropped, 'link')} that the web search had not found.")
