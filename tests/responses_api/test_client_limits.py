"""Many requests at once over real sockets, and the end of each by a cancel (design 2, 3.4)."""

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from responses_mcp.errors import ConnectionFailed
from responses_mcp.responses_api.client import open_connections
from responses_mcp.responses_api.connections import connection_limit
from responses_mcp.testing import Drip, Hang, Json, RecordedRequest, Reset, Truncated, bodies, open_fake_api
from tests.processes import WAIT
from tests.responses_api.network import ask, bare_environment, cancel_when_asked, connections, gone, post
from tests.responses_api.stub import Reply

__all__ = ["bare_environment"]
pytestmark = pytest.mark.usefixtures("bare_environment")


# The limit


async def test_above_the_limit_requests_wait_and_are_served_in_order() -> None:
    with trio.fail_after(WAIT):
        async with open_fake_api() as fake, connections(fake, limit=1) as over:
            release = trio.Event()

            async def held(request: RecordedRequest) -> Json:
                await release.wait()
                return Json(bodies.echo(request.json))

            fake.default = held
            async with trio.open_nursery() as nursery:
                for number in range(12):
                    nursery.start_soon(ask, over, fake, str(number))
                    await wait_all_tasks_blocked()
                await fake.wait_requests(1)
                release.set()
            assert [request.json["input"] for request in fake.requests] == [str(number) for number in range(12)]
            assert fake.connections == 1


@pytest.mark.parametrize("limit", [1, 3, 8])
async def test_no_more_than_the_limit_are_under_way_at_once(limit: int) -> None:
    under_way = most = 0
    full = trio.Event()

    async def counted(request: RecordedRequest) -> Json:
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        if under_way == limit:
            full.set()
        await full.wait()
        await wait_all_tasks_blocked(0.005)  # whoever may come on top has come by then
        under_way -= 1
        return Json(bodies.echo(request.json))

    with trio.fail_after(WAIT):
        async with open_fake_api(counted) as fake, connections(fake, limit=limit) as over:
            async with trio.open_nursery() as nursery:
                for _ in range(limit * 3):
                    nursery.start_soon(ask, over, fake)
            assert fake.connections == limit
    assert most == limit


async def test_a_waiting_request_can_be_cancelled_and_never_reaches_the_server() -> None:
    with trio.fail_after(WAIT):
        async with open_fake_api(Hang()) as fake, connections(fake, limit=1) as over, trio.open_nursery() as nursery:
            nursery.start_soon(ask, over, fake, "first")
            await fake.wait_requests(1)
            waiting = [trio.CancelScope() for _ in range(3)]

            async def ask_in(scope: trio.CancelScope, query: str) -> None:
                with scope:
                    await ask(over, fake, query)

            for number, scope in enumerate(waiting):
                nursery.start_soon(ask_in, scope, str(number))
                await wait_all_tasks_blocked()
            waiting[0].cancel()
            waiting[1].cancel()
            await wait_all_tasks_blocked()
            assert [scope.cancelled_caught for scope in waiting] == [True, True, False]
            assert len(fake.requests) == 1
            nursery.cancel_scope.cancel()
        assert [request.json["input"] for request in fake.requests] == ["first"]


async def test_a_request_that_fails_or_is_cancelled_gives_its_place_to_the_next() -> None:
    with trio.fail_after(WAIT):
        async with open_fake_api(Reset(), Hang(), Truncated()) as fake, connections(fake, limit=1) as over:
            with pytest.raises(ConnectionFailed):
                await ask(over, fake)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(ask, over, fake)
                await cancel_when_asked(nursery.cancel_scope, fake, 2)
            with pytest.raises(ConnectionFailed):
                await ask(over, fake)
            assert (await ask(over, fake)).status == 200


async def test_five_hundred_requests_at_once_get_five_hundred_answers_each_its_own() -> None:
    answers: dict[int, str] = {}
    with trio.fail_after(2 * WAIT):
        async with open_fake_api() as fake, connections(fake) as over:

            async def ask_numbered(number: int) -> None:
                reply = await ask(over, fake, f"question {number};")
                answers[number] = reply.body.decode()

            async with trio.open_nursery() as nursery:
                for number in range(500):
                    nursery.start_soon(ask_numbered, number)
    assert len(answers) == 500
    assert all(f"question {number};" in text for number, text in answers.items())


# Cancelling


@pytest.mark.parametrize("reply", [Hang(), Hang("headers"), Hang("half_body"), Drip(interval=100)], ids=repr)
async def test_a_cancel_closes_the_socket_at_every_stage_of_the_reply(reply: Hang) -> None:
    with trio.fail_after(WAIT):
        async with open_fake_api(reply) as fake, connections(fake) as over:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(ask, over, fake)
                await cancel_when_asked(nursery.cancel_scope, fake)
            await fake.wait_hang_ups(1)
            await gone(fake)
            assert (await ask(over, fake)).status == 200


async def test_a_cancel_while_the_request_is_being_sent_closes_the_socket() -> None:
    received, cancelled, ended = trio.Event(), trio.Event(), trio.Event()
    size = 0

    async def read_a_little(stream: trio.SocketStream) -> None:
        nonlocal size
        while piece := await stream.receive_some(10_000):
            size += len(piece)
            received.set()
            await cancelled.wait()
        ended.set()

    with trio.fail_after(WAIT):
        async with trio.open_nursery() as nursery:
            listeners = await nursery.start(trio.serve_tcp, read_a_little, 0)
            url = f"http://127.0.0.1:{listeners[0].socket.getsockname()[1]}/v1/responses"
            over = await open_connections(url, limit=1)
            with trio.CancelScope() as scope:
                async with trio.open_nursery() as asking:
                    asking.start_soon(post, over, url, b"x" * 50_000_000)
                    await received.wait()
                    scope.cancel()
            cancelled.set()
            await ended.wait()
            assert size < 50_000_000
            nursery.cancel_scope.cancel()


async def test_cancelling_one_request_leaves_the_others_alone() -> None:
    with trio.fail_after(WAIT):
        async with open_fake_api() as fake, connections(fake) as over:
            release = trio.Event()

            async def held(request: RecordedRequest) -> Json:
                await release.wait()
                return Json(bodies.echo(request.json))

            fake.default = held
            replies: list[Reply] = []

            async def keep(query: str) -> None:
                replies.append(await ask(over, fake, query))

            async with trio.open_nursery() as nursery:
                for number in range(5):
                    nursery.start_soon(keep, f"kept {number}")
                await fake.wait_requests(5)
                async with trio.open_nursery() as doomed:
                    doomed.start_soon(ask, over, fake, "cancelled")
                    await cancel_when_asked(doomed.cancel_scope, fake, 6)
                await fake.wait_hang_ups(1)
                release.set()
            assert len(replies) == 5
            assert [request.json["input"] for request in fake.requests if request.hung_up] == ["cancelled"]


# The limit of the machine


@pytest.mark.parametrize(("soft", "limit"), [(1_048_576, 512), (-1, 512), (1024, 512), (256, 144), (64, 1), (0, 1)])
def test_connections_leave_file_descriptors_for_everything_else(
    monkeypatch: pytest.MonkeyPatch, soft: int, limit: int
) -> None:
    resource = pytest.importorskip("resource")
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, soft))
    assert connection_limit(512) == limit
