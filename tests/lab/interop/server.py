"""The server as the clients start it, and what every client must get from it."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.lab.interop.wire import Recorded, recorded

HINTS = {"recency_days", "max_results", "domains"}
ARGUMENTS = {"answer": {"query", *HINTS}, "answer_detailed": {"query", *HINTS}, "answer_quick": {"query"}}
ANSWER = {"answer", "used_search", "citations", "model"}
EMPTY_QUERY = "query is empty"


@dataclass(frozen=True)
class Server:
    """A command that starts the server behind a tap, which records into `folder`."""

    command: str
    arguments: list[str]
    env: dict[str, str]
    folder: Path

    def recorded(self) -> list[Recorded]:
        return recorded(self.folder)

    def check(self) -> int:
        """Fail if a message did not fit its schema or a server did not end well; return the number of messages."""
        processes = self.recorded()
        assert processes, "the client did not start the server"
        # None: the client killed the tap before the server was done, so nobody saw how it ended.
        assert {process.exit_code for process in processes} <= {0, None}
        return sum(process.check() for process in processes)


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


def check_progress(values: list[float], messages: list[str | None], server: Recorded) -> None:
    """Fail unless progress came, with words, rose, and is all that the server wrote: none was late or lost."""
    assert values, "the answer came without any progress before it"
    assert values == sorted(set(values))
    assert all(messages)
    assert values == [message["params"]["progress"] for message in server.progress()]


def check_revision(processes: list[Recorded], *, modern: bool, probes: bool) -> None:
    """Fail unless the client spoke to the server in the revision that it was told to use, and probed for it if it should."""
    methods = [method for process in processes for method in process.methods()]
    assert ("initialize" in methods) is not modern
    assert ("server/discover" in methods) is probes
