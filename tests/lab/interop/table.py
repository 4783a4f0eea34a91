"""Prints what the clients did, client by check: `python -m tests.lab.interop.table RESULTS...`.

RESULTS are files that pytest wrote where INTEROP_RESULTS told it to, or folders of them.
"""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

CHECKS = ["connect", "list", "call", "progress", "cancel", "time limit", "tool error", "five at once", "schema"]

Row = dict[str, Any]


def read(paths: Iterable[Path]) -> dict[str, list[Row]]:
    """Return the rows of each client."""
    clients: dict[str, list[Row]] = {}
    for path in paths:
        for file in sorted(path.glob("*.jsonl")) if path.is_dir() else [path]:
            for line in file.read_text(encoding="utf-8").splitlines():
                row = json.loads(line)
                clients.setdefault(row.get("client", f"? ({file.stem})"), []).append(row)
    return clients


def cell(check: str, rows: list[Row]) -> str:
    """Return what stands in the column of a check."""
    found = [row for row in rows if row["check"] == check]
    if check == "schema":
        # Most clients have a server for each check, and its messages are held against the schema at the end of it.
        return f"ok, {sum(row.get('messages', 0) for row in rows)} messages" if _passed(rows) else "see left"
    if not found:
        return "-"
    notes = "; ".join(row["note"] for row in found if row.get("note"))
    return ("ok" if _passed(found) else "**FAILED**") + (f" ({notes})" if notes else "")


def _passed(rows: list[Row]) -> bool:
    return all(row["outcome"] == "passed" for row in rows)


def lines(clients: dict[str, list[Row]]) -> Iterable[str]:
    """Yield two Markdown tables: what worked, and what a client's user sees of a failed call."""
    yield f"| client | {' | '.join(CHECKS)} |"
    yield "|---" * (len(CHECKS) + 1) + "|"
    for client, rows in clients.items():
        yield f"| {client} | {' | '.join(cell(check, rows) for check in CHECKS)} |"
    yield ""
    yield "| client | a call with an empty query shows | and keeps for who looks |"
    yield "|---|---|---|"
    for client, rows in clients.items():
        for row in rows:
            if "shown" in row:
                yield f"| {client} | {row['shown']} | {row.get('hidden', '')} |"


def main(*paths: str) -> int:
    if not paths:
        print(__doc__)
        return 2
    clients = read(map(Path, paths))
    print(*lines(clients), sep="\n")
    return 0 if clients and all(_passed(rows) for rows in clients.values()) else 1


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
