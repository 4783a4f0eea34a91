"""What a tool of a host returns reaches the client as the protocol wants it, or as an internal error."""

from collections.abc import Mapping
from typing import Any, cast

import pytest

from responses_mcp.settings.model import Settings
from responses_mcp.testing.client import connected_client
from responses_mcp.toolsets.base import CallContext, ToolError, ToolSuccess
from tests.one_tool import OneTool


def returning(outcome: ToolSuccess | Exception, *, output_schema: dict[str, Any] | None = None) -> OneTool:
    async def handler(_: CallContext, __: Mapping[str, Any]) -> ToolSuccess:
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    return OneTool(handler, output_schema=output_schema)


@pytest.mark.parametrize(
    ("outcome", "schema"),
    [
        (ToolSuccess(cast("str", {"a": 1})), None),
        (ToolSuccess(cast("str", None)), None),
        (ToolSuccess("done"), {"type": "object"}),
        (ToolSuccess("done", cast("dict[str, Any]", ["done"])), {"type": "object"}),
    ],
)
async def test_a_result_that_no_client_could_take_is_an_internal_error_and_a_bug_of_the_tool(
    outcome: ToolSuccess, schema: dict[str, Any] | None, caplog: pytest.LogCaptureFixture
) -> None:
    async with connected_client(Settings(), toolsets=[returning(outcome, output_schema=schema)]) as client:
        answer = await client.call("work")
    assert answer["error"] == {"code": -32603, "message": "Internal error"}
    assert "work returned what cannot be sent; this is a bug in the tool" in caplog.text


async def test_a_tool_may_say_in_a_text_what_it_could_not_do() -> None:
    async with connected_client(Settings(), toolsets=[returning(ToolError("There is no paper in it."))]) as client:
        answer = await client.call("work")
    assert answer["result"]["isError"] is True
    assert answer["result"]["content"] == [{"type": "text", "text": "There is no paper in it."}]
