"""An interactive Claude Code and tasks of MCP (`nox -s lab -- interop node`): the agent works while a run goes on.

Only the terminal declares tasks: `claude -p` does not.
"""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lab.interop.claude_code import Blocks, Model, Terminal, calls, running_claude, running_model, says, told_last
from tests.lab.interop.fake import Fake, running_fake
from tests.lab.interop.node import Node
from tests.lab.interop.server import Server

pytest.importorskip("pty", reason="Claude Code is driven in a pseudo-terminal")

ASK = "research the sky"
STOP = "stop the task"


def script(conversation: list[dict[str, Any]]) -> Blocks:
    """Begin a task when asked to, stop it when asked to, and say how many questions there have been."""
    last, said = told_last(conversation), json.dumps(conversation)
    if STOP in last and '"TaskStop", "input"' not in said:
        return calls("TaskStop", task_id=said.partition("as task ")[2].partition(" ")[0])
    if "tool_result" in last:
        return says("It goes on.")
    return calls("mcp__web__research", query="why is the sky blue?") if ASK in last else says("Very well.")


@pytest.fixture
def api() -> Iterator[Fake]:
    """Give out an API that keeps responses; one takes about 10 seconds."""
    with running_fake(interval=0.5) as fake:
        yield fake


@pytest.fixture
def model() -> Iterator[Model]:
    with running_model(script) as running:
        yield running


@pytest.fixture
def server(api: Fake, make_server: Callable[[Fake], Server]) -> Server:
    made = make_server(api)
    made.env["MCP_TOOLSETS"] = "answer,research"
    return made


@pytest.fixture
def terminal(node: Node, model: Model, server: Server, tmp_path: Path) -> Iterator[Terminal]:
    entry = {"command": server.command, "args": server.arguments, "env": server.env}
    program = node.program("@anthropic-ai/claude-code", "claude")
    with running_claude(program, model, entry, tmp_path, "research") as running:
        connected(server)
        running.type(ASK)
        yield running


def connected(server: Server) -> None:
    """Wait until the client has listed the tools."""
    end = time.monotonic() + 60
    while not any("tools/list" in process.methods() for process in server.recorded()):
        assert time.monotonic() < end, "the client did not ask for the tools"
        time.sleep(0.1)
    time.sleep(2)  # and until it has taken them in


@pytest.mark.check("task")
def test_the_agent_goes_on_working_and_hears_of_the_end_of_its_task(
    terminal: Terminal, model: Model, server: Server, record_property: Callable[[str, object], None]
) -> None:
    record_property("client", "Claude Code 2.1.330, interactive")
    model.wait("keeps running on the server")
    terminal.wait("1 MCP task")
    terminal.type("meanwhile")
    model.wait("meanwhile")
    told = model.wait("<task-notification>")
    notification = told_last(model.asked[-1][1])
    assert "The answer to: why is the sky blue?" in notification
    (process,) = server.recorded()
    looks = [each for each in process.asked if each.get("method") == "tasks/get"]
    results = [each["result"] for each in process.written if "taskId" in each.get("result", {})]
    assert [each["resultType"] for each in results] == ["task"] + ["complete"] * len(looks)
    assert [each["status"] for each in results] == ["working"] * len(looks) + ["completed"]
    record_property("note", f"{len(looks)} looks; the model was asked {told - model.asked[0][0]:.0f} s after the first")
    record_property("messages", server.check())


@pytest.mark.check("task")
def test_a_task_that_the_agent_stops_is_cancelled_at_the_api(
    terminal: Terminal, model: Model, server: Server, api: Fake
) -> None:
    model.wait("keeps running on the server")
    terminal.wait("1 MCP task")
    terminal.type(STOP)
    api.wait_cancel()
    (process,) = server.recorded()
    assert "tasks/cancel" in process.methods()
    server.check()
