"""The official Python SDK as the client, 1.30 and 2.3: `nox -s interop`."""

import asyncio
import json
import sys
from importlib.metadata import version

import pytest

mcp = pytest.importorskip("mcp", reason="the official SDK is installed by `nox -s interop` only")
from mcp import ClientSession, StdioServerParameters, stdio_client  # noqa: E402

SDK = tuple(int(part) for part in version("mcp").split(".")[:2])
TOOLS = ["answer", "answer_detailed", "answer_quick"]
WAIT = 30


def parameters(env: dict[str, str]) -> StdioServerParameters:
    return StdioServerParameters(command=sys.executable, args=["-m", "responses_mcp", "--stdio"], env=env)


def structured(result) -> dict:
    return result.structuredContent if hasattr(result, "structuredContent") else result.structured_content


def is_error(result) -> bool:
    return result.isError if hasattr(result, "isError") else result.is_error


def check(name: str, query: str, result) -> None:
    assert not is_error(result)
    answer = structured(result)
    assert set(answer) == {"answer", "used_search", "citations", "model"}
    assert query in answer["answer"]
    assert json.loads(result.content[0].text) == answer, name


async def with_session(env: dict[str, str], use) -> None:
    async with (
        asyncio.timeout(WAIT),
        stdio_client(parameters(env)) as (read, write),
        ClientSession(read, write) as session,
    ):
        await session.initialize()
        await use(session)


def test_the_session_lists_and_calls_all_three_tools(server_env: dict[str, str]) -> None:
    async def use(session: ClientSession) -> None:
        assert [tool.name for tool in (await session.list_tools()).tools] == TOOLS
        for name in TOOLS:
            query = f"{name}: 東京の天気は？"
            check(name, query, await session.call_tool(name, {"query": query}))
        await session.send_ping()

    asyncio.run(with_session(server_env, use))


def test_five_calls_at_once_are_not_mixed_up(server_env: dict[str, str]) -> None:
    async def use(session: ClientSession) -> None:
        queries = [f"question {number}." for number in range(5)]
        results = await asyncio.gather(*(session.call_tool("answer", {"query": query}) for query in queries))
        for query, result in zip(queries, results, strict=True):
            check("answer", query, result)

    asyncio.run(with_session(server_env, use))


def test_a_failing_tool_raises_the_contract_s_error(server_env: dict[str, str]) -> None:
    async def use(session: ClientSession) -> None:
        with pytest.raises(Exception, match="answer failed") as caught:
            await session.call_tool("answer", {"query": ""})
        error = getattr(caught.value, "error", caught.value)
        assert error.code == -32001
        assert "query is empty" in error.data["message"]

    asyncio.run(with_session(server_env, use))


@pytest.mark.skipif(SDK < (2, 0), reason="SDK 1 has no Client")
@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_high_level_client_of_sdk_2_lists_and_calls(server_env: dict[str, str], mode: str) -> None:
    async def use() -> None:
        async with asyncio.timeout(WAIT), mcp.Client(parameters(server_env), mode=mode) as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == TOOLS
            check("answer", "Why?", await client.call_tool("answer", {"query": "Why?"}))

    asyncio.run(use())
