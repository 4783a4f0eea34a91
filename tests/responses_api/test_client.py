"""Connections over real sockets: how many, in which order, and that each is let go of (design 3.4)."""

import gc
import gzip
import json

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from responses_mcp.errors import ConnectionFailed, UnusableReply
from responses_mcp.responses_api import client as client_module
from responses_mcp.responses_api.client import KEPT_IDLE, HttpConnections
from responses_mcp.testing import Closed, Garbage, Json, Raw, RecordedRequest, Reset, Truncated, bodies, open_fake_api
from tests.processes import WAIT
from tests.responses_api.network import ask, bare_environment, closed_port, connections, gone, no_names

__all__ = ["bare_environment", "closed_port", "no_names"]
pytestmark = pytest.mark.usefixtures("bare_environment")


async def test_a_reply_is_read_whole_whatever_its_status() -> None:
    with trio.fail_after(WAIT):
        async with open_fake_api(Json({"a": 1}, 418, {"X-Odd": "Yes"})) as fake, connections(fake) as over:
            reply = await ask(over, fake)
            assert (reply.status, json.loads(reply.body), reply.headers["x-odd"]) == (418, {"a": 1}, "Yes")


async def test_a_reply_of_a_few_megabytes_and_a_request_of_one_come_through() -> None:
    with trio.fail_after(WAIT):
        async with open_fake_api(Json(bodies.big(4_000_000))) as fake, connections(fake) as over:
            reply = await ask(over, fake, "日本" * 200_000)
            assert len(reply.body) > 4_000_000
            assert fake.requests[0].json["input"] == "日本" * 200_000


@pytest.mark.parametrize("coding", ["gzip", "GZIP", "x-gzip"])
async def test_a_compressed_reply_is_unpacked(coding: str) -> None:
    data = gzip.compress(json.dumps(bodies.unsearched()).encode())
    with trio.fail_after(WAIT):
        async with (
            open_fake_api(Raw(data, headers={"content-encoding": coding})) as fake,
            connections(fake) as over,
        ):
            assert json.loads((await ask(over, fake)).body)["status"] == "completed"
            assert fake.requests[0].headers["accept-encoding"] == "gzip"


@pytest.mark.parametrize(
    ("coding", "data"),
    [("gzip", b"{}"), ("gzip", b""), ("gzip", gzip.compress(b"{}", mtime=0)[:-4]), ("br", b"{}"), ("zstd", b"")],
)
async def test_a_reply_that_is_compressed_in_any_other_way_is_unusable(coding: str, data: bytes) -> None:
    with trio.fail_after(WAIT):
        async with open_fake_api(Raw(data, headers={"content-encoding": coding})) as fake, connections(fake) as over:
            with pytest.raises(UnusableReply, match="compressed in a broken or unknown way"):
                await ask(over, fake)
            assert (await ask(over, fake)).status == 200


@pytest.mark.parametrize("packed", [False, True])
async def test_a_reply_above_the_bound_is_given_up_and_its_connection_closed(
    monkeypatch: pytest.MonkeyPatch, packed: bool
) -> None:
    monkeypatch.setattr(client_module, "MAX_REPLY_BYTES", 100_000)
    data = b"x" * 200_000
    reply = Raw(gzip.compress(data), headers={"content-encoding": "gzip"}) if packed else Raw(data)
    with trio.fail_after(WAIT):
        async with open_fake_api(Raw(b"x" * 100_000), reply) as fake, connections(fake) as over:
            assert len((await ask(over, fake)).body) == 100_000
            with pytest.raises(UnusableReply, match="longer than 100000 bytes"):
                await ask(over, fake)
            await gone(fake)


async def test_a_redirect_is_a_reply_like_any_other_and_not_followed() -> None:
    with trio.fail_after(WAIT):
        async with open_fake_api() as fake, connections(fake) as over:
            fake.script(Raw(b"", 307, {"location": f"{fake.base_url}/responses"}))
            assert (await ask(over, fake)).status == 307
            assert len(fake.requests) == 1


# Broken replies


@pytest.mark.parametrize(
    "misdeed",
    [Closed(), Reset(), Reset("headers"), Reset("half_body"), Truncated(), Garbage(), Garbage(b"HTTP/9.9 x\r\n\r\n"),
     Garbage(b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"), Garbage(b"HTTP/1.1 200 OK\r\nX: " + b"y" * 200_000)],
    ids=repr,
)  # fmt: skip
async def test_a_connection_that_breaks_after_the_request_is_not_retryable_and_the_next_request_is_fine(
    misdeed: Reset,
) -> None:
    with trio.fail_after(WAIT):
        async with open_fake_api(misdeed) as fake, connections(fake) as over:
            with pytest.raises(ConnectionFailed, match="ask again") as caught:
                await ask(over, fake)
            assert not caught.value.retryable
            assert (await ask(over, fake)).status == 200


async def test_a_refused_connection_is_retryable(closed_port: int) -> None:
    url = f"http://127.0.0.1:{closed_port}/v1"
    with trio.fail_after(WAIT):
        over = await HttpConnections.open(url, limit=1)
        with pytest.raises(ConnectionFailed, match="cannot be reached") as caught:
            await over.post(f"{url}/responses", {}, b"{}")
        assert caught.value.retryable


@pytest.mark.usefixtures("no_names")
async def test_a_name_that_does_not_resolve_is_told() -> None:
    with trio.fail_after(WAIT):
        over = await HttpConnections.open("http://name.invalid/v1", limit=1)
        with pytest.raises(ConnectionFailed, match=r"check the network, openai\.base_url"):
            await over.post("http://name.invalid/v1/responses", {}, b"{}")


async def test_a_connection_that_does_not_come_about_in_time_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "CONNECT_TIMEOUT", 0.01)

    async def never(*_: object, **__: object) -> None:
        await trio.sleep_forever()

    monkeypatch.setattr(trio, "open_tcp_stream", never)
    with trio.fail_after(WAIT):
        over = await HttpConnections.open("http://127.0.0.1:9/v1", limit=1)
        with pytest.raises(ConnectionFailed, match=r"No connection to the API within 0\.01 s") as caught:
            await over.post("http://127.0.0.1:9/v1/responses", {}, b"{}")
        assert caught.value.retryable


# Keeping and closing


async def test_an_idle_connection_is_used_again() -> None:
    with trio.fail_after(WAIT):
        async with open_fake_api() as fake, connections(fake) as over:
            for _ in range(5):
                await ask(over, fake)
            assert (len(fake.requests), fake.connections) == (5, 1)


async def test_a_connection_that_the_server_closed_meanwhile_is_replaced() -> None:
    with trio.fail_after(WAIT):
        async with open_fake_api(Json({}, headers={"connection": "close"})) as fake, connections(fake) as over:
            for _ in range(2):
                assert (await ask(over, fake)).status == 200
        async with open_fake_api() as fake, connections(fake) as over:
            await ask(over, fake)
            await HttpConnections.aclose(over)
            await gone(fake)
            assert (await ask(over, fake)).status == 200


async def test_after_a_burst_only_a_few_idle_connections_are_kept() -> None:
    count = KEPT_IDLE * 3
    with trio.fail_after(WAIT):
        async with open_fake_api() as fake, connections(fake) as over:
            release = trio.Event()

            async def together(request: RecordedRequest) -> Json:
                if len(fake.requests) == count:
                    release.set()
                await release.wait()
                return Json(bodies.echo(request.json))

            fake.default = together
            async with trio.open_nursery() as nursery:
                for _ in range(count):
                    nursery.start_soon(ask, over, fake)
            assert fake.connections == count
            await gone(fake, KEPT_IDLE)
            await wait_all_tasks_blocked(0.01)
            assert fake.open_connections == KEPT_IDLE
            await over.aclose()
            await gone(fake)


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
        await api.create({"model": "m"})
    assert not caught.value.retryable
    await api.aclose()


class _Waiting:
    """A listener that needs long for its first piece."""

    def __init__(self) -> None:
        self.busy = trio.Event()

    def begin(self, status: int, headers: object) -> bool:
        return True

    async def hear(self, chunk: bytes) -> bool:
        self.busy.set()
        await trio.sleep_forever()
        raise AssertionError


@pytest.mark.parametrize("size", [100, 300_000])
async def test_a_cancel_while_a_piece_of_the_body_is_worked_on_closes_the_connection(size: int) -> None:
    listener = _Waiting()
    with trio.fail_after(WAIT):
        async with open_fake_api(Raw(b"x" * size)) as fake, connections(fake) as over:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(over.post, f"{fake.base_url}/responses", {}, b"{}", listener)
                await listener.busy.wait()
                nursery.cancel_scope.cancel()
            await gone(fake)
            gc.collect()  # a generator of httpx that was left unfinished warns here


async def test_a_few_bytes_that_hold_megabytes_are_unpacked_with_turns_for_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client_module, "UNPACKED_AT_ONCE", 1_000)
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            await trio.lowlevel.checkpoint()
            turns += 1

    data = gzip.compress(b"x" * 2_000_000) + b"and what is no part of it" * 10_000
    with trio.fail_after(WAIT):
        async with (
            open_fake_api(Raw(data, headers={"content-encoding": "gzip"})) as fake,
            connections(fake) as over,
            trio.open_nursery() as nursery,
        ):
            nursery.start_soon(count_turns)
            assert (await ask(over, fake)).body == b"x" * 2_000_000
            nursery.cancel_scope.cancel()
    assert turns >= 2_000
