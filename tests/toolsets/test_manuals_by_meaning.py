"""Searches by meaning as a client sees them: a note when there is none, no key anywhere, and cancels that are felt."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing

from responses_mcp.settings.model import EmbeddingsSettings, ManualsSettings, OpenAISettings, RequestSettings, Settings
from responses_mcp.testing import Error, FakeApi, Hang, open_fake_api
from tests.toolsets.manuals_harness import REVISIONS, WAIT, Desk, desk, fill

KEY = "sk-canary-0123456789abcdef"
FIND = {"query": "token", "manual_id": "other", "required_terms": ["token"]}

every_revision = pytest.mark.parametrize("revision", REVISIONS)


@asynccontextmanager
async def asked(tmp_path: Path, revision: str = "legacy", **embeddings: Any) -> AsyncGenerator[tuple[Desk, FakeApi]]:
    """Serve two small manuals to a client that has listed them; the fake API makes the vectors."""
    async with open_fake_api() as api:
        settings = Settings(
            openai=OpenAISettings(base_url=api.base_url, api_key=KEY),
            request=RequestSettings(trust_env=False, max_retries=0),
            manuals=ManualsSettings(
                root=str(fill(tmp_path / "root")),
                index_dir=str(tmp_path / "index"),
                embeddings=EmbeddingsSettings(**{"provider": "api", **embeddings}),
            ),
        )
        async with desk(settings, revision) as client:
            await client.call("manual_ls")
            yield client, api
            assert KEY not in json.dumps(client.client.heard)


@every_revision
async def test_an_endpoint_that_fails_leaves_a_result_with_a_note(tmp_path: Path, revision: str) -> None:
    async with asked(tmp_path, revision) as (client, api):
        api.script(Error(401, f"The key {KEY} is wrong."))
        found = await client.call("manual_find", **FIND, inline_hits={"limit": 2})
        assert found["note"].startswith("Ranked by words. The embeddings endpoint failed: The API refused the key (401")
        assert len(found["inline_hits"]["items"]) == 2


async def test_a_search_that_finds_nothing_says_that_it_went_by_words(tmp_path: Path) -> None:
    async with asked(tmp_path) as (client, api):
        api.script(Error(401, "Wrong key."), Error(401, "Wrong key."))
        found = await client.call("manual_search", query="zxqv flurb")
        assert found["results"] == []
        assert found["note"].startswith("Nothing matches; try other words. The embeddings endpoint failed: ")
        found = await client.call("manual_search", query="token")
        assert found["note"].startswith("The embeddings endpoint failed: The API refused the key (401")


async def test_a_server_that_is_not_there_is_named_by_the_setting_of_embeddings(tmp_path: Path) -> None:
    async with asked(tmp_path, base_url="http://127.0.0.1:1/v1") as (client, _):
        note = (await client.call("manual_find", **FIND))["note"]
        assert "Check manuals.embeddings.base_url, manuals.embeddings.model and the network." in note
        assert "openai.base_url" not in note


async def test_without_a_provider_nothing_is_sent(tmp_path: Path) -> None:
    async with asked(tmp_path, provider="none") as (client, api):
        assert "note" not in await client.call("manual_find", **FIND)
        assert api.connections == 0


async def test_the_answer_tools_and_the_search_share_a_connection(tmp_path: Path) -> None:
    async with asked(tmp_path) as (client, api):
        await client.call("manual_find", **FIND)
        with trio.fail_after(WAIT):
            await client.client.call("answer", {"query": "hello"})
        assert {request.target for request in api.requests} == {"/v1/embeddings", "/v1/responses"}
        assert api.connections == 1


async def test_a_cancel_closes_the_socket_of_the_question(tmp_path: Path) -> None:
    async with asked(tmp_path) as (client, api):
        api.script(Hang())
        with trio.fail_after(WAIT):
            number = await client.client.start_call("manual_find", FIND)
            await api.wait_requests(1)
            await client.client.cancel(number)
            await api.wait_hang_ups(1)
        assert not [message for message in client.client.heard if message.get("id") == number]


async def test_closing_the_server_closes_the_connections(tmp_path: Path) -> None:
    async with asked(tmp_path) as (client, api):
        await client.call("manual_find", **FIND)
        assert api.open_connections == 1
        with trio.fail_after(WAIT):
            await client.client.end_input()
            await client.client.wait_end()
            await trio.testing.wait_all_tasks_blocked(0.05)
        assert api.open_connections == 0
