"""What went over the wire between the clients and the server, as the tap has recorded it."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Recorded:
    """One server process: the messages of both sides in the order in which each was passed on, and its end."""

    asked: list[dict[str, Any]] = field(default_factory=list)
    written: list[dict[str, Any]] = field(default_factory=list)
    signals: list[str] = field(default_factory=list)
    exit_code: int | None = None

    def methods(self) -> list[str]:
        return [message["method"] for message in self.asked if "method" in message]

    def progress(self) -> list[dict[str, Any]]:
        return [message for message in self.written if message.get("method") == "notifications/progress"]

    def check(self) -> int:
        """Hold all that the server wrote against the schema of its revision; return how many messages that were."""
        from tests.schemas import Conversation  # needs mcp-types, which only the sessions with clients install

        conversation = Conversation()
        for message in self.asked:
            conversation.sent(message)
        for message in self.written:
            conversation.check(message)
        return len(self.written)


def recorded(folder: Path) -> list[Recorded]:
    """Return the server processes of a folder, in the order of their start."""
    files = sorted(folder.glob("*.jsonl"), key=lambda file: int(file.name.partition("-")[0]))
    return [_read(file) for file in files]


def _read(file: Path) -> Recorded:
    process = Recorded()
    for line in file.read_text(encoding="utf-8").splitlines():
        kind, what = json.loads(line)
        if kind == ">":
            process.asked.append(json.loads(what))
        elif kind == "<":
            process.written.append(json.loads(what))
        elif kind == "signal":
            process.signals.append(what)
        else:
            process.exit_code = what
    return process
