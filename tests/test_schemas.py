"""What holds messages against the official schemas must itself let the good ones through, and no others."""

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

pytest.importorskip("mcp_types", reason="the official schemas come with mcp-types")
from responses_mcp.testing.client import McpClient
from tests.schemas import LEGACY, MODERN, Conversation, Misfit, check_message, checked_clients

EXAMPLES = (Path(__file__).parent / "protocol" / "wire_examples.txt").read_text(encoding="utf-8").splitlines()
# revision, whether it fits, the message
WRITTEN = [
    (revision, not name.startswith("!"), json.loads(text))
    for revision, name, text in (line[2:].split(" ", 2) for line in EXAMPLES if line.startswith("< "))
]
GOOD = [(revision, message) for revision, fits, message in WRITTEN if fits]

SERVER = {"io.modelcontextprotocol/serverInfo": {"name": "s", "version": "1"}}
MODERN_RESULT = {"resultType": "complete", "_meta": SERVER}
TEXT = [{"type": "text", "text": "x"}]


def result(**members: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "result": members}


def error(code: Any = -32603, **more: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": "m", **more}}


def progress(**params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": "t", **params}}


def test_there_are_good_and_bad_examples_of_both_revisions() -> None:
    assert len(GOOD) > 20
    assert {revision for revision, _ in GOOD} == {LEGACY, MODERN}
    assert len(GOOD) < len(WRITTEN)


@pytest.mark.parametrize(("revision", "message"), GOOD)
def test_the_good_lines_of_the_examples_fit(revision: str, message: dict[str, Any]) -> None:
    check_message(message, revision)


@pytest.mark.parametrize(
    ("revision", "message"), [(revision, message) for revision, fits, message in WRITTEN if not fits]
)
def test_the_lines_marked_as_misfits_do_not_fit(revision: str, message: dict[str, Any]) -> None:
    with pytest.raises(Misfit):
        check_message(message, revision)


@pytest.mark.parametrize(
    ("revision", "message"),
    [
        pytest.param(LEGACY, result(content=TEXT, resultType="complete"), id="a modern member in a legacy result"),
        pytest.param(LEGACY, result(_meta={}, pong=True), id="a member in the answer to ping"),
        pytest.param(LEGACY, result(content=[{"type": "poem", "text": "x"}]), id="content of an unknown type"),
        pytest.param(LEGACY, result(content=TEXT, isError="true"), id="isError as a text that could be converted"),
        pytest.param(LEGACY, result(contents=TEXT), id="a misspelt member"),
        pytest.param(LEGACY, result(tools=[{"name": "a"}]), id="a tool without a schema"),
        pytest.param(MODERN, result(content=TEXT, isError=False, _meta=SERVER), id="no resultType"),
        pytest.param(MODERN, result(tools=[], **MODERN_RESULT), id="a list without what caches need"),
        pytest.param(MODERN, result(), id="the answer to ping in the revision that has none"),
        pytest.param(MODERN, error(-32050), id="a reserved error code"),
        pytest.param(MODERN, error(-32022), id="an unsupported version without saying which"),
        pytest.param(LEGACY, {"jsonrpc": "2.0", "error": error()["error"]}, id="an error without an id"),
        pytest.param(LEGACY, {"id": 1, "result": {}}, id="a response without jsonrpc"),
        pytest.param(LEGACY, {"jsonrpc": "2.0", "id": True, "result": {}}, id="a response to true"),
        pytest.param(LEGACY, {**result(), "error": error()["error"]}, id="a result and an error"),
        pytest.param(LEGACY, progress(progress="1"), id="progress as a text"),
        pytest.param(LEGACY, {"jsonrpc": "2.0", "method": "notifications/answers"}, id="an unknown notification"),
        pytest.param(LEGACY, {"jsonrpc": "2.0", "id": 1, "method": "roots/list"}, id="a question to the client"),
    ],
)
def test_what_only_nearly_fits_is_refused(revision: str, message: dict[str, Any]) -> None:
    with pytest.raises(Misfit):
        check_message(message, revision)


def test_tools_may_put_what_they_like_into_schemas_and_structured_content() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string", "minLength": 1}}, "additionalProperties": False}
    tool = {"name": "a", "inputSchema": schema, "outputSchema": schema}
    check_message(result(tools=[tool]), LEGACY)
    check_message(result(tools=[tool], ttlMs=0, cacheScope="private", **MODERN_RESULT), MODERN)
    check_message(result(content=TEXT, structuredContent={"deep": {"er": [1, None]}}), LEGACY)


def test_an_answer_is_held_against_the_revision_and_method_of_its_request() -> None:
    talk = Conversation()
    talk.sent({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    meta = {"io.modelcontextprotocol/protocolVersion": MODERN, "progressToken": 7}
    talk.sent({"jsonrpc": "2.0", "id": "1", "method": "tools/call", "params": {"_meta": meta}})
    call = result(content=TEXT, isError=False, **MODERN_RESULT)
    talk.check({**call, "id": "1"})
    talk.check(progress(progressToken=7, progress=1))
    talk.check(result(tools=[]))
    for wrong in (call, {**result(tools=[]), "id": "1"}, result()):
        with pytest.raises(Misfit):
            talk.check(wrong)


def test_errors_that_answer_what_could_not_be_read_are_exempt() -> None:
    Conversation().check({"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "Parse error"}})


@pytest.mark.parametrize(("answer", "fits"), [({}, True), ({"pong": True}, False)])
async def test_what_a_client_of_ours_hears_is_checked_at_the_end_of_the_block(
    answer: dict[str, Any], *, fits: bool
) -> None:
    with nullcontext() if fits else pytest.raises(Misfit), checked_clients():
        client = await pinged(answer)
        heard = list(client.heard)
    assert [message["result"] for message in heard] == [answer]
    client.heard.clear()  # or the block around every test finds it, too


async def pinged(answer: dict[str, Any]) -> McpClient:
    """Return a client that has got this answer to its ping."""
    ours, theirs = trio.testing.memory_stream_pair()
    client = McpClient(ours, ours)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(client.listen)
        await client.request("ping", id=1)
        await theirs.send_all(json.dumps({"jsonrpc": "2.0", "id": 1, "result": answer}).encode() + b"\n")
        with trio.fail_after(30):
            await client.response(1)
        nursery.cancel_scope.cancel()
    return client
