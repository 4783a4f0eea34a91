"""Habits of real clients, held without the clients: what Claude Code, Codex and Gemini CLI were seen to send.

docs/reference/real-clients.md tells where each of them comes from.
"""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
import trio

from responses_mcp.commands.clients.known import CLIENTS
from responses_mcp.settings.model import OpenAISettings, ServerSettings, Settings
from responses_mcp.testing import Error, Hang, open_fake_api
from responses_mcp.testing.client import McpClient, connected_client
from tests.both_ways import way
from tests.processes import WAIT, environment, server_process

__all__ = ["way"]

PROBE = "server-discover-probe-1"
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "claude-code", "title": "Claude Code", "version": "2.1.330"},
    "io.modelcontextprotocol/clientCapabilities": {"roots": {}, "elicitation": {"form": {}, "url": {}}},
}
CODEX = {
    "callId": "call_0",
    "itemId": "fc_0",
    "threadId": "t",
    "sessionId": "t",
    "windowId": "t:0",
    "x-codex-turn-metadata": {"turn_id": "u", "workspaces": {"/work": {"has_changes": False}}},
}


def pointing_at(base_url: str, **server: Any) -> Settings:
    return Settings(
        openai=OpenAISettings(base_url=base_url, api_key="sk-test-0123456789"), server=ServerSettings(**server)
    )


async def ask(client: McpClient, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
    with trio.fail_after(WAIT):
        return await client.ask(method, params)


async def call(client: McpClient, arguments: dict[str, Any], meta: dict[str, Any] | None = None) -> dict[str, Any]:
    params: dict[str, Any] = {"name": "answer", "arguments": arguments}
    return await ask(client, "tools/call", params if meta is None else {**params, "_meta": meta})


# Handshake and list


async def test_a_probe_and_the_handshake_that_follows_it_are_both_answered_when_they_come_together() -> None:
    """Claude Code sends `initialize` after 2.9 s without an answer to its probe: a slow starter finds both."""
    probe = {"jsonrpc": "2.0", "id": PROBE, "method": "server/discover", "params": {"_meta": ENVELOPE}}
    hello = {
        "jsonrpc": "2.0",
        "id": 0,
        "method": "initialize",
        "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}},
    }
    async with open_fake_api() as api, connected_client(pointing_at(api.base_url), initialize=False) as client:
        with trio.fail_after(WAIT):
            await client.send(probe, hello)
            await client.response(0)
            assert [message["id"] for message in client.heard] == [PROBE, 0]
            assert client.heard[1]["result"]["protocolVersion"] == "2025-06-18"
            await client.notify("notifications/initialized")
        assert "resultType" not in (await call(client, {"query": "q"}))["result"]


async def test_a_cancel_of_the_handshake_is_ignored() -> None:
    """Gemini cancels id 0, its `initialize`, when its time limit has passed; the answer may have crossed it."""
    async with connected_client(Settings(), initialize=False) as client:
        with trio.fail_after(WAIT):
            await client.request("initialize", {"protocolVersion": "2025-06-18"}, id=0)
            await client.cancel(0, "McpError: MCP error -32001: Request timed out")
            assert (await client.ask("ping"))["result"] == {}
    assert [message.get("id") for message in client.heard].count(0) <= 1


@pytest.mark.rule("P15", "spec 13")
async def test_a_throw_away_copy_leaves_no_mark_on_the_one_that_stays(tmp_path: Path) -> None:
    """The TypeScript client probes one process, ends it, and talks to another: both write the same debug file."""
    log = tmp_path / "debug.log"
    async with open_fake_api() as api:
        env = environment(tmp_path, api.base_url, DEBUG=str(log))
        async with server_process(env) as stays, server_process(env, initialize=False) as goes:
            with trio.fail_after(WAIT):
                await goes.client.request("server/discover", {"_meta": ENVELOPE}, id=PROBE)
                await goes.client.response(PROBE)
            goes.process.terminate()
            if sys.platform != "win32":
                assert await goes.ended() == 0
            assert "result" in await call(stays.client, {"query": "q"})
    written = log.read_text(encoding="utf-8")
    assert "recv method=initialize" in written
    assert "recv method=server/discover" in written


# Calls


@pytest.mark.parametrize(
    "meta",
    [
        {"claudecode/toolUseId": "toolu_01", "progressToken": 2},
        {**ENVELOPE, "claudecode/toolUseId": "toolu_01", "progressToken": 1},
        {**CODEX, "progressToken": 0},
        {"progressToken": "d768c133-da1d-4171-9e3e-55f6dc300675"},
    ],
    ids=["Claude Code", "Claude Code, 2026-07-28", "Codex", "Gemini"],
)
async def test_the_text_says_what_the_structured_content_says_with_the_answer_first(meta: dict[str, Any]) -> None:
    """Claude Code and Codex show the model one of the two, Gemini the other; both cut what is long."""
    async with open_fake_api() as api, connected_client(pointing_at(api.base_url)) as client:
        result = (await call(client, {"query": "東京は？"}, meta))["result"]
    (content,) = result["content"]
    assert content["type"] == "text"
    assert json.loads(content["text"]) == result["structuredContent"]
    assert next(iter(result["structuredContent"])) == "answer"
    assert content["text"].startswith('{"answer":')
    tokens = [m["params"]["progressToken"] for m in client.heard if m.get("method") == "notifications/progress"]
    assert tokens
    assert set(map(repr, tokens)) == {repr(meta["progressToken"])}


async def test_calls_sent_together_are_upstream_together() -> None:
    """All three clients sent parallel calls in one go."""
    async with open_fake_api(Hang(), Hang(), Hang()) as api, connected_client(pointing_at(api.base_url)) as client:
        with trio.fail_after(WAIT):
            ids = [await client.start_call("answer", {"query": f"never {n}"}) for n in range(3)]
            await api.wait_requests(3)
            assert not any(request.hung_up for request in api.requests)
            await client.cancel(ids[1], "AbortError: user-cancel")
            (cancelled,) = [request for request in api.requests if "never 1" in str(request.json)]
            await cancelled.wait_hung_up()
            assert (await client.ask("ping"))["result"] == {}
        assert [request.hung_up is None for request in api.requests].count(True) == 2
    assert not {message.get("id") for message in client.heard} & set(ids)


# Errors


@pytest.mark.rule("spec B")
@pytest.mark.parametrize(
    ("tool_errors", "name", "as_result"),
    [
        (None, "claude-code", True),
        (None, "gemini-cli-mcp-client", True),
        (None, "opencode", True),
        (None, "codex-mcp-client", False),
        (None, ["claude-code"], False),
        ("auto", "claude-code", True),
        ("error", "claude-code", False),
        ("result", "codex-mcp-client", True),
    ],
)
async def test_a_client_known_to_drop_the_data_of_errors_gets_a_result_that_says_why(
    tool_errors: str | None, name: object, as_result: bool
) -> None:
    server = {} if tool_errors is None else {"tool_errors": tool_errors}
    async with open_fake_api(Error(401)) as api, connected_client(pointing_at(api.base_url, **server)) as client:
        await ask(client, "initialize", {"clientInfo": {"name": name, "version": "1"}})
        answer = await call(client, {"query": "q"})
    assert ("result" in answer, "error" in answer) == (as_result, not as_result)
    told = answer["result"]["content"][0]["text"] if as_result else answer["error"]["data"]["message"]
    assert "key" in told


@pytest.mark.parametrize("info", [None, "claude-code", [], {}, {"name": None}])
async def test_a_client_that_does_not_say_who_it_is_gets_the_error_of_the_contract(info: object) -> None:
    async with connected_client(pointing_at("http://127.0.0.1:9")) as client:
        await ask(client, "initialize", {"clientInfo": {"name": "claude-code", "version": "1"}})
        await ask(client, "initialize", {"clientInfo": info})
        assert (await call(client, {}))["error"]["message"] == "answer failed"


# The cure for a key


async def cure(
    name: str | None, key: str | None, *, base_url: str | None = None, tool: str = "answer", modern: bool = False
) -> str:
    """Return what a client of that name is told by a call that has no usable key."""
    openai = OpenAISettings(api_key=key) if base_url is None else OpenAISettings(api_key=key, base_url=base_url)
    settings = Settings(openai=openai, server=ServerSettings(toolsets=("answer", "search"), tool_errors="result"))
    info = {"clientInfo": {"name": name, "version": "1"}} if name else {}
    params: dict[str, Any] = {"name": tool, "arguments": {"query": "q"}}
    async with connected_client(settings) as client:
        if modern:
            named = {f"io.modelcontextprotocol/{member}": value for member, value in info.items()}
            others = {member: value for member, value in ENVELOPE.items() if "clientInfo" not in member}
            params["_meta"] = {**others, **named}
        else:
            await ask(client, "initialize", info)
        answer = await ask(client, "tools/call", params)
    return str(answer["result"]["content"][0]["text"])


COMMANDS = {"claude-code": "claude-code", "codex-mcp-client": "codex", "gemini-cli-mcp-client": "gemini", "opencode": "opencode"}  # fmt: skip
IN_ITS_ENTRY = "Set it in the `env` of this server's entry in your MCP client's configuration"


@pytest.mark.parametrize("key", [None, "", "${OPENAI_API_KEY}"])
@pytest.mark.parametrize("tool", ["answer", "chatgpt_o3_search"])
@pytest.mark.parametrize("modern", [False, True])
async def test_a_client_without_a_key_is_told_where_its_own_user_sets_it(
    key: str | None, tool: str, *, modern: bool
) -> None:
    for name in (*COMMANDS, "another", None):
        text = await cure(name, key, tool=tool, modern=modern)
        if command := COMMANDS.get(name or ""):
            assert (
                f"OPENAI_API_KEY does not reach this server. Set it where {CLIENTS[command].title} is started" in text
            )
            again = f"this server's entry does not pass it on: run `openai-responses-mcp install {command} --write`"
            assert again in text
        else:
            assert IN_ITS_ENTRY in text
            assert ("holds an unexpanded placeholder." in text) is bool(key)
        assert len(text) <= 400
        assert ("the key itself" in text, "OpenAISettings" in text) == (False, False)


QUOTED = "has quotation marks around it. Remove them. Then restart"
CHANGE = "Put a valid key into OPENAI_API_KEY. Change it where {0} is started, or in this server's entry if the entry sets it, and restart {0}."


@pytest.mark.parametrize(
    ("name", "key", "told"),
    [
        ("another", '"sk-test-0123456789"', f"{QUOTED} the client."),
        (
            "claude-code",
            '"sk-test-0123456789"',
            f"{QUOTED} Claude Code. If it is right where Claude Code was started, this server's entry has another value: run",
        ),
        ("codex-mcp-client", "refused", CHANGE.format("Codex")),
        ("another", "refused", CHANGE.format("the client")),
    ],
)
async def test_a_key_that_is_there_and_cannot_work_is_told_with_where_its_user_changes_it(
    name: str, key: str, told: str
) -> None:
    async with open_fake_api(Error(401, code="invalid_api_key")) as api:
        text = await cure(name, key, base_url=api.base_url if key == "refused" else None)
    assert told in text
    assert "export" not in text


# End


@pytest.mark.skipif(sys.platform == "win32", reason="no signals to send")
async def test_sigterm_and_the_end_of_input_together_end_a_call_in_flight_quietly(tmp_path: Path) -> None:
    """Codex does both in the same moment, right after the cancel."""
    async with open_fake_api(Hang()) as api, server_process(environment(tmp_path, api.base_url)) as server:
        with trio.fail_after(WAIT):
            number = await server.client.start_call("answer", {"query": "q"})
            await api.wait_requests(1)
            await server.client.cancel(number, "MCP request cancelled by caller")
            server.process.terminate()
            await server.client.end_input()
            assert await server.ended() == 0
            await api.requests[0].wait_hung_up()
    assert server.stderr == b""
