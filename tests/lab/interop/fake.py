"""A fake Responses API for clients that live in other event loops or languages: it runs in a thread of its own."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import trio

from responses_mcp import testing
from responses_mcp.testing import RecordedRequest, Reply

WAIT = 15.0  # seconds; a bound for a stuck machine, not an expectation


def asks(request: RecordedRequest, words: str) -> bool:
    """Return whether the query holds these words; the instructions beside it may hold any."""
    return isinstance(request.json, dict) and words in json.dumps(request.json.get("input"))


def reply(request: RecordedRequest) -> Reply:
    """Answer by echo, but slowly or never if the query says so."""
    if asks(request, "never"):
        return testing.Hang()
    if asks(request, "slowly") and request.json.get("stream") is True:
        return replace(testing.as_stream(testing.bodies.echo(request.json)), interval=0.05)
    return testing.answer_by_echo(request)


class Fake:
    """The fake as its users in other threads see it. All waits are bounded, and fail when they are too long."""

    def __init__(self, api: testing.FakeApi, token: trio.lowlevel.TrioToken) -> None:
        self.url = api.base_url
        self._api = api
        self._token = token

    def wait_request(self, query: str) -> None:
        """Return once `query` has been asked."""
        trio.from_thread.run(self._find, query, trio_token=self._token)

    def wait_hang_up(self, query: str) -> None:
        """Return once the peer that asked `query` has hung up without its answer."""
        trio.from_thread.run(self._find_hung_up, query, trio_token=self._token)

    def wait_cancel(self) -> None:
        """Return once a response has been cancelled."""
        trio.from_thread.run(self._find_cancel, trio_token=self._token)

    async def _find_cancel(self) -> None:
        with trio.fail_after(WAIT):
            while not any(request.target.endswith("/cancel") for request in self._api.requests):
                await self._api.wait_requests(len(self._api.requests) + 1)

    async def _find(self, query: str) -> RecordedRequest:
        with trio.fail_after(WAIT):
            while True:
                for request in self._api.requests:
                    if asks(request, query):
                        return request
                await self._api.wait_requests(len(self._api.requests) + 1)

    async def _find_hung_up(self, query: str) -> None:
        request = await self._find(query)
        with trio.fail_after(WAIT):
            await request.wait_hung_up()


@contextmanager
def running_fake(*, interval: float | None = None) -> Iterator[Fake]:
    """Serve a fake for as long as the block runs.

    With an `interval`, in seconds between two events, it keeps responses and knows background mode.
    """
    ready = threading.Event()
    made: list[Fake] = []
    leave = trio.Event()

    async def serve() -> None:
        async with testing.open_fake_api(*([reply] if interval is None else [])) as api:
            api.stored.interval = interval or 0.0
            made.append(Fake(api, trio.lowlevel.current_trio_token()))
            ready.set()
            await leave.wait()

    thread = threading.Thread(target=trio.run, args=(serve,), name="fake API", daemon=True)
    thread.start()
    assert ready.wait(WAIT), "the fake did not start"
    (fake,) = made
    try:
        yield fake
    finally:
        trio.from_thread.run_sync(leave.set, trio_token=fake._token)
        thread.join(WAIT)
        assert not thread.is_alive(), "the fake did not stop"
