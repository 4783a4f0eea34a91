"""How the pool lets go of connections, with transports that are slow to close: no sockets, and virtual time."""

import ssl

import httpx
import trio
import trio.testing

from responses_mcp.responses_api.client import CLOSE_GRACE, HttpConnections


class SlowToClose(httpx.AsyncHTTPTransport):
    """Needs a minute to close unless it is cancelled; it is closed either way."""

    gone = False

    async def aclose(self) -> None:
        try:
            await trio.sleep(60)
        finally:
            self.gone = True


class Pool(HttpConnections):
    """A pool that counts the transports it makes."""

    made = 0

    def _new_transport(self) -> httpx.AsyncHTTPTransport:
        self.made += 1
        return SlowToClose()


async def test_one_connection_that_is_slow_to_close_does_not_leave_the_others_open(
    autojump_clock: trio.testing.MockClock,
) -> None:
    pool = Pool(ssl.create_default_context(), None, limit=3)
    transports = [SlowToClose() for _ in range(3)]
    pool._idle.extend(transports)
    await pool.aclose()
    assert [transport.gone for transport in transports] == [True, True, True]
    assert trio.current_time() == CLOSE_GRACE


async def test_a_cancel_that_comes_with_the_free_place_costs_no_connection() -> None:
    pool = Pool(ssl.create_default_context(), None, limit=1)
    kept = SlowToClose()
    pool._idle.append(kept)
    scope = trio.CancelScope()

    async def ask() -> None:
        with scope:
            await pool.post("http://127.0.0.1:9/", {}, b"")

    async with trio.open_nursery() as nursery:
        async with pool._slots:
            nursery.start_soon(ask)
            await trio.testing.wait_all_tasks_blocked()
        scope.cancel()  # the place has been given to the one that waits, which does not know of it yet
    assert pool._idle == [kept]
    assert not kept.gone
    assert pool.made == 0
    assert pool._slots.borrowed_tokens == 0
