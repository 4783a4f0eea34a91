"""What the fake API notices of a peer that hangs up, whatever it is doing at that moment."""

from urllib.parse import urlsplit

import pytest
import trio

from responses_mcp.testing import Drip, Hang, Json, RecordedRequest, Reply, Sse, open_fake_api
from tests.processes import WAIT
from tests.testing import samples
from tests.testing.bare_client import connected, fake, post

NEVER = 3600.0

SLOW = {
    "hanging before the head": Hang("request"),
    "hanging after the head": Hang("headers"),
    "hanging amid the body": Hang("half_body"),
    "still in its latency": Json({}, latency=NEVER),
    "dripping": Drip(chunk_bytes=1, interval=NEVER),
    "amid a stream": Sse([{"type": "a"}, {"type": "b"}], interval=NEVER),
    "blocked by a peer that does not read": Json(samples.big(32 * 1024 * 1024)),
}


@pytest.mark.parametrize("way", ["close", "half-close", "reset"])
@pytest.mark.parametrize("case", SLOW)
async def test_a_hang_up_is_noticed_at_once_while_the_reply_is(case: str, way: str) -> None:
    async with fake(SLOW[case]) as api, connected(api) as client:
        await client.send(post())
        await api.wait_requests(1)
        if way == "half-close":
            await client.stream.send_eof()
        elif way == "reset":
            await client.reset()
        else:
            await client.stream.aclose()
        (request,) = api.requests
        await request.wait_hung_up()
        await api.wait_hang_ups(1)
        assert request.hung_up is not None
        assert request.hung_up >= request.arrived
        assert request.answered is None


@pytest.mark.parametrize("turns", [0, 5])
async def test_a_reply_and_a_hang_up_at_the_same_moment_are_never_both_recorded(turns: int) -> None:
    for _ in range(30):  # which of the fake's two tasks runs first is left to chance
        async with fake() as api, connected(api) as client:

            async def close_and_answer(request: RecordedRequest, peer: trio.SocketStream = client.stream) -> Reply:
                # After a few turns of the loop the fake already waits for the hang-up; before them it does not.
                for _ in range(turns):
                    await trio.lowlevel.checkpoint()
                peer.socket.close()
                return Json({})

            api.default = close_and_answer
            await client.send(post())
            await api.wait_requests(1)
            # What is sent on a later connection is served later, so the first one has come to its end by then.
            async with connected(api) as other:
                for _ in range(3):
                    await other.send(post(target="/"))
                    await other.receive()
            request = api.requests[0]
            assert (request.hung_up is None) is not (request.answered is None)


async def test_closing_after_the_reply_is_no_hang_up() -> None:
    async with fake() as api:
        async with connected(api) as client:
            await client.ask()
            await client.stream.send_eof()
            await client.rest()
        assert api.requests[0].hung_up is None
        with trio.move_on_after(0) as scope:
            await api.wait_hang_ups(1)
        assert scope.cancelled_caught


async def test_every_event_is_told_to_the_observer_once_and_in_order() -> None:
    told: list[tuple[str, int]] = []
    async with fake(Json({}), Hang(), observer=lambda event, request: told.append((event, request.index))) as api:
        async with connected(api) as client:
            await client.ask()
            await client.send(post())
            await api.wait_requests(2)
        await api.wait_hang_ups(1)
    assert told == [("request", 0), ("answered", 0), ("request", 1), ("hung_up", 1)]


@pytest.mark.parametrize("case", SLOW)
async def test_leaving_the_block_ends_every_reply_at_once(case: str) -> None:
    with trio.fail_after(WAIT):
        async with open_fake_api(SLOW[case]) as api:
            stream = await trio.open_tcp_stream("127.0.0.1", urlsplit(api.base_url).port or 0)
            await stream.send_all(post())
            await api.wait_requests(1)
        async with stream:
            assert api.open_connections == 0
            with pytest.raises(OSError, match="connect"):
                await trio.open_tcp_stream("127.0.0.1", urlsplit(api.base_url).port or 0)
        assert (api.requests[0].hung_up, api.requests[0].answered) == (None, None)
