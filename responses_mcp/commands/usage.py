"""`openai-responses-mcp usage`: what the ledger knows of calls and their cost, as a table."""

from __future__ import annotations

import argparse
import os
import sqlite3
from collections.abc import Sequence
from typing import Any, Final

from responses_mcp.commands.parser import Parser, parser_of, whole_number
from responses_mcp.commands.terminal import (
    WRONG,
    Stop,
    columns,
    configured,
    counted,
    run_command,
    say,
    say_json,
)
from responses_mcp.usage.ledger import BY, FILE, Row, read_ledger
from responses_mcp.usage.limits import dollars

_MOST_DAYS: Final = 400
_HEADS: Final = ("calls", "input", "cached", "output", "searches", "cost")
_EXAMPLES: Final = """\
examples:
  openai-responses-mcp usage
  openai-responses-mcp usage --days 7 --by model
"""


def build_parser() -> Parser:
    """Return the parser of this command."""
    parser = parser_of(
        "usage",
        description="Show what the calls of the last days used and cost, if they were recorded\n"
        "(usage.ledger). Costs are estimates; days are those of UTC.",
        epilog=_EXAMPLES,
    )
    days = f"days to look back, 1 to {_MOST_DAYS} (default 30)"
    parser.add_argument("--days", metavar="N", type=whole_number(1, _MOST_DAYS), default=30, help=days)
    parser.add_argument(
        "--by", metavar="WHAT", choices=BY, default="day", help=f"a line for each: {', '.join(BY)} (default day)"
    )
    parser.add_common_options()
    return parser


def run(argv: Sequence[str]) -> int:
    """Run the command and return the exit code."""
    options = build_parser().parse_options(argv)
    return run_command(lambda: _usage(options), as_json=options.json)


def _usage(options: argparse.Namespace) -> None:
    settings = configured(os.environ, options.config, toolsets="research")  # by which the folder is known
    folder = settings.research.state_dir
    # Without the setting here, a client's entry may have it.
    if folder is None or not (settings.usage.ledger or os.path.exists(os.path.join(folder, FILE))):  # noqa: PTH110, PTH118  # raises nothing
        raise Stop(
            "There is no ledger. Set usage.ledger to true (USAGE_LEDGER=1), for the server as well; "
            "later calls are recorded.",
            code=WRONG,
        )
    try:
        rows = read_ledger(folder, days=options.days, by=options.by)
    except (sqlite3.Error, OSError) as error:
        raise Stop(f"The ledger in {folder} cannot be read ({error}).") from error
    if options.json:
        shown = [_as_json(row, options.by) for row in rows or ()]
        say_json({"days": options.days, "by": options.by, "rows": shown})
    elif not rows:
        say(f"No call was recorded in the last {options.days} days.")
    else:
        _say_table(rows, options.by)


def _as_json(row: Row, by: str) -> dict[str, Any]:
    counts = ("calls", "input_tokens", "cached_tokens", "output_tokens", "searches")
    return {
        by: row.name or None,
        **{name: getattr(row, name) for name in counts},
        "cost_usd": None if row.unpriced == row.calls else round(row.usd, 6),
        "guessed_usd": round(row.guessed, 6),
        "calls_unsettled": row.unsettled,
        "calls_without_price": row.unpriced,
    }


def _say_table(rows: Sequence[Row], by: str) -> None:
    lines = [(by, *_HEADS), *((row.name or "(none)", *_cells(row)) for row in rows)]
    total = Row("all", *(sum(column) for column in list(zip(*rows, strict=True))[1:]))
    if len(rows) > 1:
        lines.append((total.name, *_cells(total)))
    wide = [max(map(columns, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        first = line[0] + " " * (wide[0] - columns(line[0]))
        say("  ".join([first, *(cell.rjust(width) for cell, width in zip(line[1:], wide[1:], strict=True))]))
    if total.unpriced:
        say(f"The price of {counted(total.unpriced, 'call')} is not known; add it under `prices`.")
    if total.guessed > 0:
        those = f"for {counted(total.unsettled, 'call')} that still run or ended without a known cost"
        say(f"{dollars(total.guessed)} of the cost is an estimate, {those}.")


def _cells(row: Row) -> tuple[str, ...]:
    counts = (row.calls, row.input_tokens, row.cached_tokens, row.output_tokens, row.searches)
    cost = dollars(row.usd) if not row.unpriced else f"{dollars(row.usd)} + unknown"
    return (*(f"{count:,}" for count in counts), "unknown" if row.unpriced == row.calls else cost)
