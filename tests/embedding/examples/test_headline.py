import pytest
import trio

from responses_mcp.asking import Asker, open_answers
from responses_mcp.errors import UpstreamError
from responses_mcp.settings import OpenAISettings, RequestSettings, Settings
from responses_mcp.testing import Error, FakeApi, Hang, Json, bodies, open_fake_api
from responses_mcp.testing.client import connected_client


async def headline(answers: Asker, topic: str) -> str:
    """Stand for the host's own code."""
    with trio.move_on_after(60):
        try:
            return (await answers.answer(f"One line of news about {topic}, please.")).text.partition("\n")[0]
        except UpstreamError as error:
            return f"No news: {error}"
    return "No news in time."


def settings_for(api: FakeApi, *, retries: int = 0) -> Settings:
    return Settings(
        openai=OpenAISettings(base_url=api.base_url, api_key="test-key"),
        request=RequestSettings(max_retries=retries, trust_env=False),  # whatever proxy this machine has
    )


@pytest.mark.trio
async def test_a_rate_limit_is_waited_for() -> None:
    async with open_fake_api(Error(429, retry_after_ms="20"), Json(bodies.searched())) as api:
        async with open_answers(settings_for(api, retries=1)) as answers:
            assert not (await headline(answers, "Python")).startswith("No news")
        assert [request.json["model"] for request in api.requests] == ["gpt-5.2", "gpt-5.2"]


@pytest.mark.trio
async def test_a_failure_is_told() -> None:
    async with open_fake_api(Error(500)) as api, open_answers(settings_for(api)) as answers:
        assert "The API failed (500)" in await headline(answers, "Python")


@pytest.mark.trio
async def test_giving_up_hangs_up() -> None:
    async with open_fake_api(Hang()) as api, open_answers(settings_for(api)) as answers:
        with trio.fail_after(5):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(headline, answers, "Python")
                await api.wait_requests(1)
                nursery.cancel_scope.cancel()
            await api.requests[0].wait_hung_up()


@pytest.mark.trio
async def test_a_call_that_its_client_cancels_hangs_up() -> None:
    async with open_fake_api(Hang()) as api, connected_client(settings_for(api)) as client:
        call = await client.start_call("answer", {"query": "Tell me everything."})
        with trio.fail_after(5):
            await api.wait_requests(1)
            await client.cancel(call, "changed my mind")
            await api.requests[0].wait_hung_up()
