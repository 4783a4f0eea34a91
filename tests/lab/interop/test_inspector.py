"""The MCP Inspector on the command line, in each of its revisions (`nox -s lab -- interop`).

Each command is a connection of its own. It has no time limit for a call.
"""

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.lab.interop.node import Node
from tests.lab.interop.server import EMPTY_QUERY, Server, check_answer, check_revision, check_tools

Note = Callable[[str, object], None]
WAIT = 60  # seconds; a bound for a stuck machine, not an expectation


@dataclass(frozen=True)
class Inspector:
    revision: str
    node: Node
    server: Server
    config: Path

    @property
    def modern(self) -> bool:
        return self.revision != "legacy"

    def started(self, method: str, *options: str) -> subprocess.Popen[str]:
        program = self.node.program("@modelcontextprotocol/inspector", "mcp-inspector")
        chosen = ["--config", str(self.config), "--server", "answers", "--protocol-era", self.revision]
        shown = ["--quiet", "--format", "json", "--method", method]
        # Without a choice it looks for a keychain, and says at length where else it keeps secrets.
        return self.node.started(program, "--cli", *chosen, *shown, *options, MCP_INSPECTOR_SECRET_STORE="memory")

    def run(self, method: str, *options: str) -> tuple[int, Any]:
        """Return the exit code, and the result or None."""
        with self.started(method, *options) as process:
            text, _ = process.communicate(timeout=WAIT)
        return process.returncode, json.loads(text)["result"] if text else None

    def call(self, query: str, *options: str) -> tuple[int, Any]:
        return self.run("tools/call", *asking(query), *options)


def asking(query: str) -> list[str]:
    return ["--tool-name", "answer", "--tool-args-json", json.dumps({"query": query})]


@pytest.fixture(params=["legacy", "auto", "modern"])
def inspector(request: pytest.FixtureRequest, node: Node, server: Server, record_property: Note) -> Inspector:
    record_property("client", f"MCP Inspector 2.12 --cli, {request.param}")
    entry = {"type": "stdio", "command": server.command, "args": server.arguments, "env": server.env}
    config = server.folder / "inspector.json"
    config.write_text(json.dumps({"mcpServers": {"answers": entry}}), encoding="utf-8")
    return Inspector(request.param, node, server, config)


@pytest.mark.check("connect")
def test_it_connects_in_its_revision_and_leaves_without_force(inspector: Inspector) -> None:
    code, _ = inspector.run("tools/list")
    assert code == 0
    processes = inspector.server.recorded()
    check_revision(processes, modern=inspector.modern, probes=inspector.modern)
    assert [(process.exit_code, process.signals) for process in processes] == [(0, [])]


@pytest.mark.check("list")
def test_it_lists_the_three_tools_with_their_schemas(inspector: Inspector) -> None:
    code, result = inspector.run("tools/list", "--strict")
    assert code == 0, "the Inspector objects to a schema"
    check_tools(result["tools"])


@pytest.mark.check("call")
def test_it_calls_a_tool_and_gets_the_same_as_object_and_as_text(inspector: Inspector) -> None:
    query = "東京の天気は？"
    code, result = inspector.call(query)
    assert code == 0
    check_answer(query, result["structuredContent"], result["content"][0]["text"])


@pytest.mark.check("progress")
def test_progress_that_it_does_not_show_does_no_harm(inspector: Inspector, record_property: Note) -> None:
    code, result = inspector.call("Tell me slowly.", "--tool-metadata", "progressToken=mine")
    assert code == 0
    check_answer("Tell me slowly.", result["structuredContent"], result["content"][0]["text"])
    (process,) = inspector.server.recorded()
    sent = process.progress("Tell me slowly.")
    assert {each["progressToken"] for each in sent} == {"mine"}
    record_property("note", f"{len(sent)} sent, none shown")


@pytest.mark.check("cancel")
@pytest.mark.skipif(sys.platform == "win32", reason="Windows cannot send the Ctrl-C of one process alone")
def test_ctrl_c_hangs_up_upstream_and_leaves_no_server_behind(inspector: Inspector, record_property: Note) -> None:
    query = f"Inspector, {inspector.revision}: never answered."
    with inspector.started("tools/call", *asking(query)) as process:
        inspector.node.fake.wait_request(query)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=WAIT)
    inspector.node.fake.wait_hang_up(query)
    (server,) = inspector.server.recorded()
    record_property("note", f"Ctrl-C: {', '.join(server.signals) or 'end of input'}")


@pytest.mark.check("tool error")
def test_the_user_of_a_failing_call_learns_that_it_failed(inspector: Inspector, record_property: Note) -> None:
    code, result = inspector.call("")
    (server,) = inspector.server.recorded()
    if inspector.modern:
        (content,) = result["content"]
        assert EMPTY_QUERY in content["text"]
        record_property("shown", f"result with isError, exit code {code}: {content['text']}")
        assert code == 5
    else:
        assert (code, result) == (1, None)
        message = server.written[-1]["error"]
        assert EMPTY_QUERY in message["data"]["message"]
        record_property("shown", f"exit code 1, on stderr: {message['message']}")
        record_property("hidden", f"nowhere: {message['data']['message']}")


@pytest.mark.check("five at once")
def test_five_calls_at_once_are_all_answered(inspector: Inspector) -> None:
    code, result = inspector.call("Why?", "--load", "--load-concurrency", "5", "--load-requests", "5")
    assert code == 0
    assert (result["ok"], result["toolErrors"], result["errors"]) == (5, 0, 0)
