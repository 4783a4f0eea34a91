"""Connections over real sockets: how many, in which order, and when each is closed."""

import gc
from collections import Counter

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from responses_mcp.errors import ConnectionFailed, UnusableReply
from responses_mcp.responses_api.http import network as network_module
from responses_mcp.responses_api.http import open_connections
from responses_mcp.responses_api.http.connections import Request, connection_limit
from responses_mcp.responses_api.http.network import BULK_BYTES, READ_BYTES, READS_AT_ONCE
from responses_mcp.testing import Json, Raw, RecordedRequest, bodies, open_fake_api
from tests.processes import WAIT
from tests.responses_api.http.network import ask, bare_environment, closed_port, connections, gone, no_names, post
from tests.responses_api.stub import Reply
from tests.testing import samples

__all__ = ["bare_environment", "closed_port", "no_names"]
pytestmark = pytest.mark.usefixtures("bare_environment")


async def test_a_reply_of_a_few_megabytes_and_a_request_of_one_come_through() -> None:
    with trio.fail_after(WAIT):
        async with open_fake_api(Json(samples.big(4_000_000))) as fake, connections(fake) as over:
            reply = await ask(over, fake, "日本" * 200_000)
            assert len(reply.body) > 4_000_000
            assert fake.requests[0].json["input"] == "日本" * 200_000


@pytest.mark.rule("P11", "spec 8")
async def test_a_redirect_is_a_reply_like_any_other_and_not_followed() -> None:
    with trio.fail_after(WAIT):
        async with open_fake_api() as fake, connections(fake) as over:
            elsewhere = f"{fake.base_url}/responses"
            fake.script(Raw(b"", 307, {"Location": elsewhere}))
            reply = await ask(over, fake)
            assert (reply.status, reply.headers["location"]) == (307, elsewhere)
            assert len(fake.requests) == 1


# Broken replies


@pytest.mark.usefixtures("no_names")
async def test_a_name_that_does_not_resolve_is_told() -> None:
    with trio.fail_after(WAIT):
        over = await open_connections("http://name.invalid/v1", limit=1)
        with pytest.raises(ConnectionFailed, match=r"check the network, openai\.base_url"):
            await post(over, "http://name.invalid/v1/responses")


async def test_a_connection_that_does_not_come_about_in_time_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network_module, "CONNECT_TIMEOUT", 0.01)

    async def never(*_: object, **__: object) -> None:
        await trio.sleep_forever()

    monkeypatch.setattr(trio, "open_tcp_stream", never)
    with trio.fail_after(WAIT):
        over = await open_connections("http://127.0.0.1:9/v1", limit=1)
        with pytest.raises(
            ConnectionFailed, match=r"cannot be reached at 127\.0\.0\.1:9 \(no answer within 0\.01 s\)"
        ) as caught:
            await post(over, "http://127.0.0.1:9/v1/responses")
        assert caught.value.retryable


# Keeping and closing


async def test_a_connection_that_the_server_closed_meanwhile_is_replaced() -> None:
    with trio.fail_after(WAIT):
        async with open_fake_api(Json({}, headers={"connection": "close"})) as fake, connections(fake) as over:
            for _ in range(2):
                assert (await ask(over, fake)).status == 200
        async with open_fake_api() as fake, connections(fake) as over:
            await ask(over, fake)
            await over.aclose()
            await gone(fake)
            assert (await ask(over, fake)).status == 200


async def test_closing_lets_requests_under_way_finish_and_keeps_none_of_their_connections() -> None:
    with trio.fail_after(WAIT):
        async with open_fake_api(Json({}, latency=0.05)) as fake, connections(fake) as over:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(ask, over, fake)
                await fake.wait_requests(1)
                await over.aclose()
            assert fake.requests[0].answered is not None
            await gone(fake)


async def test_closing_in_a_cancelled_scope_still_closes() -> None:
    with trio.fail_after(WAIT):
        async with open_fake_api() as fake, connections(fake) as over:
            await ask(over, fake)
            with trio.CancelScope() as scope:
                scope.cancel()
                await over.aclose()
            await gone(fake)


@pytest.mark.parametrize(
    "base_url",
    ["https://api..example.com/v1", "https://.example.com/v1", f"https://{'a' * 70}.example/v1", "https://xn--/v1"],
)
async def test_a_host_name_that_cannot_be_used_is_told_with_its_cure(base_url: str) -> None:
    from responses_mcp.errors import ConnectionFailed
    from responses_mcp.responses_api.api import ResponsesApi
    from responses_mcp.settings.model import OpenAISettings, RequestSettings

    api = ResponsesApi(OpenAISettings(base_url=base_url, api_key="sk-test-0123456789"), RequestSettings(max_retries=0))
    with trio.fail_after(WAIT), pytest.raises(ConnectionFailed, match=r"openai\.base_url") as caught:
        await api.create({"model": "m"}, dict)
    assert not caught.value.retryable
    await api.aclose()


class _Refusing(Reply):
    """Cannot use what it gets."""

    def feed(self, data: bytes) -> bool:
        raise UnusableReply("no use")


async def test_a_reader_that_gives_up_closes_the_connection_and_leaves_nothing_behind() -> None:
    with trio.fail_after(WAIT):
        async with open_fake_api(Raw(b"x" * 300_000)) as fake, connections(fake) as over:
            with pytest.raises(UnusableReply):
                await over.send(Request("POST", f"{fake.base_url}/responses", {}, b"{}"), _Refusing())
            await gone(fake)
            gc.collect()
            assert (await ask(over, fake)).status == 200


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


class _Rounds(trio.abc.Instrument):
    """Counts how often Trio has looked at all tasks."""

    number = 0

    def before_io_wait(self, timeout: float) -> None:
        self.number += 1


async def test_of_many_large_replies_a_few_pieces_are_read_between_two_looks_at_other_tasks() -> None:
    rounds, read = _Rounds(), Counter[int]()

    class Noting(Reply):
        def feed(self, data: bytes) -> bool:
            read[rounds.number] += len(data)
            return super().feed(data)

    async def ask_for_much() -> None:
        await over.send(Request("POST", f"{fake.base_url}/responses", {}, b"{}"), Noting())

    with trio.fail_after(2 * WAIT):
        async with open_fake_api() as fake, connections(fake) as over:
            fake.default = Raw(b"x" * 1_000_000)
            trio.lowlevel.add_instrument(rounds)
            async with trio.open_nursery() as nursery:
                for _ in range(30):
                    nursery.start_soon(ask_for_much)
            trio.lowlevel.remove_instrument(rounds)
    assert read.total() == 30_000_000
    assert max(read.values()) <= READS_AT_ONCE * READ_BYTES + 30 * BULK_BYTES


# The limit of the machine


@pytest.mark.parametrize(("soft", "limit"), [(1_048_576, 512), (-1, 512), (1024, 512), (256, 144), (64, 1), (0, 1)])
def test_connections_leave_file_descriptors_for_everything_else(
    monkeypatch: pytest.MonkeyPatch, soft: int, limit: int
) -> None:
    resource = pytest.importorskip("resource")
    monkeypatch.setattr(resource, "getrlimit", lambda _: (soft, soft))
    assert connection_limit(512) == limit
