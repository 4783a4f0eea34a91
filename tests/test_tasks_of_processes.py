"""Tasks over real processes: they outlive their server, also when it is killed, and any other one cancels them."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from responses_mcp.testing import FakeApi, open_fake_api
from responses_mcp.testing.client import McpClient
from tests.processes import WAIT, ServerProcess, environment, server_process

BACKGROUND = "model_profiles: {answer: {background: true}}\nrequest: {task_after_ms: 200}\n"


@asynccontextmanager
async def server(home: Path, api: FakeApi) -> AsyncGenerator[ServerProcess]:
    """Start a server without tools of research: its runs are answers in the background."""
    (home / "config.yaml").write_text(BACKGROUND, encoding="utf-8")
    async with server_process(environment(home, api.base_url), "--config", str(home / "config.yaml")) as running:
        yield running


def asked(api: FakeApi) -> list[str]:
    """Return the addresses of the requests that do more than look."""
    return [each.target for each in api.requests if each.method == "POST"]


async def begin(client: McpClient) -> str:
    call = {"name": "answer", "arguments": {"query": "why?"}}
    task = (await client.ask_with_tasks("tools/call", call))["result"]
    assert task["resultType"] == "task"
    task_id = str(task["taskId"])
    while task["statusMessage"].startswith(("beginning", "asking")):  # noqa: ASYNC110  # the API has not named it yet
        await trio.sleep(0.1)
        task = (await client.ask_with_tasks("tasks/get", {"taskId": task_id}))["result"]
    return task_id


async def ended(client: McpClient, task_id: str) -> Any:
    while (task := (await client.ask_with_tasks("tasks/get", {"taskId": task_id}))["result"])["status"] == "working":  # noqa: ASYNC110  # it is polled
        await trio.sleep(0.2)
    return task


async def test_a_task_outlives_its_server_and_the_next_one_has_its_result(tmp_path: Path) -> None:
    async with open_fake_api() as api:
        api.stored.interval = 0.3
        with trio.fail_after(4 * WAIT):
            async with server(tmp_path, api) as first:
                task_id = await begin(first.client)
            async with server(tmp_path, api) as second:
                task = await ended(second.client, task_id)
        assert task["status"] == "completed"
        assert set(task["result"]["structuredContent"]) == {"answer", "used_search", "citations", "model"}
        assert asked(api) == ["/v1/responses"]


async def test_tasks_of_a_killed_server_end_at_another_and_are_cancelled_by_it(tmp_path: Path) -> None:
    async with open_fake_api() as api:
        api.stored.interval = 0.4
        with trio.fail_after(4 * WAIT):
            async with server(tmp_path, api) as first:
                one = await begin(first.client)
                api.stored.interval = 2.0
                other = await begin(first.client)
                first.process.kill()
            async with server(tmp_path, api) as second:
                assert "result" in await second.client.ask_with_tasks("tasks/cancel", {"taskId": other})
                assert (await ended(second.client, one))["status"] == "completed"
                assert (await ended(second.client, other))["status"] == "cancelled"
        sent = [each.rpartition("/")[2] for each in asked(api)]
        assert sent[:3] == ["responses", "responses", "cancel"]
        assert set(sent[3:]) <= {"cancel"}  # a look before the end asks for it again
