"""The official TypeScript clients, 1.32 and 2.4, run by the scripts in js (`nox -s lab -- interop`)."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from tests.lab.interop.node import Node
from tests.lab.interop.server import EMPTY_QUERY, Server, check_answer, check_progress, check_revision, check_tools

Note = Callable[[str, object], None]


@dataclass(frozen=True)
class TypeScriptClient:
    name: str
    command: list[str]
    modern: bool
    probes: bool


CLIENTS = [
    TypeScriptClient("TypeScript sdk 1.32", ["client_1.mjs"], False, False),
    TypeScriptClient("TypeScript client 2.4, default", ["client_2.mjs", "default"], False, False),
    TypeScriptClient("TypeScript client 2.4, auto", ["client_2.mjs", "auto"], True, True),
    TypeScriptClient("TypeScript client 2.4, 2026-07-28", ["client_2.mjs", "2026-07-28"], True, True),
]


@dataclass(frozen=True)
class Ran:
    """A client that has done all its checks in one connection, and what it said of each."""

    client: TypeScriptClient
    server: Server
    lines: dict[str, dict[str, Any]]

    def line(self, check: str) -> dict[str, Any]:
        line = self.lines[check]
        assert "failed" not in line, line["failed"]
        return line


@pytest.fixture(scope="module", params=CLIENTS, ids=lambda client: client.name)
def run(request: pytest.FixtureRequest, node: Node, make_server: Callable[[], Server]) -> Ran:
    client: TypeScriptClient = request.param
    server = make_server()
    start = {"command": server.command, "args": server.arguments, "env": server.env}
    return Ran(client, server, node.conduct(*client.command, INTEROP_SERVER=json.dumps(start)))


@pytest.fixture
def ran(run: Ran, record_property: Note) -> Ran:
    record_property("client", run.client.name)
    return run


@pytest.mark.check("connect")
def test_it_connects_in_its_revision_and_leaves_without_force(ran: Ran, record_property: Note) -> None:
    ran.line("connect")
    ran.line("close")
    processes = ran.server.recorded()
    check_revision(processes, modern=ran.client.modern, probes=ran.client.probes)
    assert (processes[-1].exit_code, processes[-1].signals) == (0, [])
    if len(processes) > 1:
        record_property("note", f"{len(processes)} processes")
        assert [process.methods() for process in processes[:-1]] == [["server/discover"]]


@pytest.mark.check("list")
def test_it_lists_the_three_tools_with_their_schemas(ran: Ran) -> None:
    check_tools(ran.line("list")["tools"])


@pytest.mark.check("call")
def test_it_calls_each_tool_and_gets_the_same_as_object_and_as_text(ran: Ran) -> None:
    answers = ran.line("call")["answers"]
    assert len(answers) == 3
    for name, answer in answers.items():
        assert not answer["isError"]
        check_answer(f"{name}: 東京の天気は？", answer["structured"], answer["text"])


@pytest.mark.check("progress")
def test_it_hears_rising_progress_before_the_answer(ran: Ran, record_property: Note) -> None:
    line = ran.line("progress")
    check_answer("Tell me slowly.", line["answer"]["structured"], line["answer"]["text"])
    values, messages = [each["progress"] for each in line["heard"]], [each.get("message") for each in line["heard"]]
    check_progress(values, messages, ran.server.recorded()[-1])
    record_property("note", f"{len(values)} messages")


@pytest.mark.check("cancel")
def test_a_call_given_up_hangs_up_upstream_and_the_connection_lives(ran: Ran) -> None:
    assert "no longer wanted" in ran.line("cancel")["error"]


@pytest.mark.check("time limit")
def test_a_call_over_the_client_s_time_limit_hangs_up_upstream_and_the_connection_lives(ran: Ran) -> None:
    assert "timed out" in ran.line("time limit")["error"]
    (cancels,) = [process.methods().count("notifications/cancelled") for process in ran.server.recorded()[-1:]]
    assert cancels == 2  # the one of the test above, and this


@pytest.mark.check("tool error")
def test_the_user_of_a_failing_call_learns_that_it_failed(ran: Ran, record_property: Note) -> None:
    line = ran.line("tool error")
    if ran.client.modern:
        assert line["result"]["isError"] is True
        assert "structuredContent" not in line["result"]
        text = line["result"]["content"][0]["text"]
        assert EMPTY_QUERY in text
        record_property("shown", f"result with isError: {text}")
    else:
        assert "answer failed" in line["error"]
        assert EMPTY_QUERY in line["data"]["message"]
        record_property("shown", line["error"])
        record_property("hidden", f"error.data: {line['data']['message']}")


@pytest.mark.check("five at once")
def test_five_calls_at_once_are_not_mixed_up(ran: Ran) -> None:
    answers = ran.line("five at once")["answers"]
    assert len(answers) == 5
    for query, answer in answers.items():
        check_answer(query, answer["structured"], answer["text"])


@pytest.mark.check("schema")
def test_every_message_fits_its_schema(ran: Ran, record_property: Note) -> None:
    record_property("messages", ran.server.check())
