"""The answer toolset over a stub of the API, called as the server calls it."""

import json
from typing import Any

import pytest

from responses_mcp.answers import Answers
from responses_mcp.protocol.jsonrpc import RpcError
from responses_mcp.settings.model import OpenAISettings, Settings
from responses_mcp.toolsets.answer import AnswerToolset
from responses_mcp.toolsets.base import CallContext, Tool, ToolError, ToolSuccess
from tests.responses_api.stub import KEY, Play, stub_api

TODAY = "2026-11-22"


class Harness:
    """The toolset over a stub, called as the server calls it."""

    def __init__(self, *script: Play, settings: Settings | None = None, debug: bool = False) -> None:
        settings = settings or Settings(openai=OpenAISettings(api_key=KEY))
        api, self.stub = stub_api(*script, openai=settings.openai, max_retries=0)
        answers = Answers(settings, api=api, today=lambda: TODAY)
        self.toolset = AnswerToolset(lambda: answers, debug=debug)
        self.tools: dict[str, Tool] = {tool.name: tool for tool in self.toolset.tools}

    async def call(self, arguments: dict[str, Any], tool: str = "answer") -> ToolSuccess:
        return await self.tools[tool].handler(CallContext(1), arguments)

    async def fail(self, arguments: dict[str, Any] | None = None, tool: str = "answer") -> dict[str, Any]:
        """Return the `data` of the error, after a look at what is the same in all of them."""
        with pytest.raises(ToolError) as caught:
            await self.call({"query": "q"} if arguments is None else arguments, tool)
        failure = caught.value.failure
        assert isinstance(failure.error, RpcError)
        assert (failure.error.code, failure.error.message) == (-32001, "answer failed")
        assert failure.error.data is not None
        assert failure.text.startswith(failure.error.data["message"])
        assert 0 < len(failure.error.data["message"]) <= 400
        return failure.error.data

    async def hints(self, arguments: dict[str, Any], tool: str = "answer") -> str:
        """Return the hints that are sent upstream."""
        await self.call({"query": "q", **arguments}, tool)
        text = str(json.loads(self.stub.sent[-1].body)["input"])
        return text.removeprefix(f"q\n\n[Hints] today={TODAY} (Asia/Tokyo), ")
