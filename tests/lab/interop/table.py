"""Prints what the clients did, client by check: `python -m tests.lab.interop.table FOLDER`, which has reports of pytest."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

CHECKS = ["connect", "list", "call", "progress", "cancel", "time limit", "tool error", "five at once", "task", "schema"]

Row = dict[str, Any]


def read(folder: Path) -> dict[str, list[Row]]:
    """Return the rows of each client."""
    clients: dict[str, list[Row]] = {}
    for file in sorted(folder.glob("*.xml")):
        for test in ElementTree.parse(file).iter("testcase"):
            row: Row = {each.attrib["name"]: each.attrib["value"] for each in test.iter("property")}
            row["failed"] = any(test.find(kind) is not None for kind in ("failure", "error"))
            if "check" in row and test.find("skipped") is None:
                clients.setdefault(row.get("client", f"? ({file.stem})"), []).append(row)
    return clients


def cell(check: str, rows: list[Row]) -> str:
    """Return what stands in the column of a check."""
    found = [row for row in rows if row["check"] == check]
    if check == "schema":
        # The Inspector has a server for each check, and its messages are held against the schema at the end of it.
        return f"ok, {sum(int(row.get('messages', 0)) for row in rows)} messages" if _passed(rows) else "see left"
    if not found:
        return "-"
    notes = "; ".join(row["note"] for row in found if row.get("note"))
    return ("ok" if _passed(found) else "**FAILED**") + (f" ({notes})" if notes else "")


def _passed(rows: list[Row]) -> bool:
    return not any(row["failed"] for row in rows)


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


if __name__ == "__main__":
    found = read(Path(sys.argv[1]))
    print(*lines(found), sep="\n")
    sys.exit(0 if found and all(map(_passed, found.values())) else 1)
