"""The server as the clients start it, and what every client must get from it."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

HINTS = {"recency_days", "max_results", "domains"}
ARGUMENTS = {"answer": {"query", *HINTS}, "answer_detailed": {"query", *HINTS}, "answer_quick": {"query"}}
ANSWER = {"answer", "used_search", "citations", "model"}
EMPTY_QUERY = "query is empty"


@dataclass
class Recorded:
    """One server process: the messages of both sides in the order in which each was passed on, and its end."""

    asked: list[dict[str, Any]] = field(default_factory=list)
    written: list[dict[str, Any]] = field(default_factory=list)
    signals: list[str] = field(default_factory=list)
    exit_code: int | None = None

    def methods(self) -> list[str]:
        return [message["method"] for message in self.asked if "method" in message]

    def progress(self, query: str) -> list[dict[str, Any]]:
        """Return what was told of the progress of a call."""
        calls = [message["params"] for message in self.asked if query in json.dumps(message, ensure_ascii=False)]
        told = [message["params"] for message in self.written if message.get("method") == "notifications/progress"]
        return [each for each in told if each["progressToken"] == calls[0]["_meta"]["progressToken"]]

    def check(self) -> int:
        """Hold all that the server wrote against the schema of its revision; return how many messages that were."""
        from tests.schemas import Conversation  # needs mcp-types, which only the sessions with clients install

        conversation = Conversation()
        for message in self.asked:
            conversation.sent(message)
        for message in self.written:
            conversation.check(message)
        return len(self.written)


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


@dataclass(frozen=True)
class Server:
    """A command that starts the server behind a tap, which records into `folder`."""

    command: str
    arguments: list[str]
    env: dict[str, str]
    folder: Path

    def recorded(self) -> list[Recorded]:
        """Return the server processes, in the order of their start."""
        files = sorted(self.folder.glob("*.jsonl"), key=lambda file: int(file.name.partition("-")[0]))
        return [_read(file) for file in files]

    def check(self) -> int:
        """Fail if a message did not fit its schema or a server did not end well; return the number of messages."""
        processes = self.recorded()
        assert processes, "the client did not start the server"
        # None: the client killed the tap before the server was done, so nobody saw how it ended.
        assert {process.exit_code for process in processes} <= {0, None}
        return sum(process.check() for process in processes)


Line = dict[str, Any]  # what a client says of a check, as JSON


@dataclass(frozen=True)
class Client:
    """A way to use a client. `run` lets it do all checks in one connection, and returns its line for each.

    `cancels`: it tells the server when it gives up on a call.
    """

    name: str
    run: Callable[[Server, pytest.FixtureRequest], dict[str, Line]]
    modern: bool
    probes: bool
    cancels: bool = True


def check_tools(tools: list[dict[str, Any]]) -> None:
    """Fail unless the client was shown the three tools, in order, with all that belongs to each."""
    assert [tool["name"] for tool in tools] == list(ARGUMENTS)
    for tool in tools:
        assert tool["title"]
        assert tool["description"]
        assert tool["inputSchema"]["type"] == "object"
        assert set(tool["inputSchema"]["properties"]) == ARGUMENTS[tool["name"]]
        assert tool["inputSchema"]["required"] == ["query"]
        assert set(tool["outputSchema"]["required"]) == ANSWER
        assert tool["annotations"]["readOnlyHint"] is True
        assert tool["annotations"]["openWorldHint"] is True


def check_answer(query: str, structured: Any, text: str) -> None:
    """Fail unless the client got the answer to `query`, once as an object and once, the same, as text."""
    assert set(structured) == ANSWER
    assert query in structured["answer"]
    assert structured["citations"]
    assert json.loads(text) == structured


def check_revision(processes: list[Recorded], *, modern: bool, probes: bool) -> None:
    """Fail unless the client spoke to the server in the revision that it was told to use, and probed for it if it should."""
    methods = [method for process in processes for method in process.methods()]
    assert ("initialize" in methods) is not modern
    assert ("server/discover" in methods) is probes
