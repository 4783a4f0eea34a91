"""Which connection the pool uses next, and when it closes one: no sockets, and virtual time."""

import trio
import trio.testing

from responses_mcp.responses_api.http.connections import Reader, Request
from responses_mcp.responses_api.http.network import IDLE_SECONDS, KEPT_IDLE, ConnectionPool, HttpConnection, Route
from tests.responses_api.stub import Reply

REQUEST = Request("POST", "http://127.0.0.1:9/", {})


class Connection(HttpConnection):
    """Takes a second for an exchange; `quiet` as long as nothing came behind the reply."""

    def __init__(self, made: "list[Connection]") -> None:
        super().__init__(Route(), trio.CapacityLimiter(1))
        made.append(self)
        self.exchanges = 0
        self.quiet = True
        self.is_open = True

    async def exchange(self, request: Request, reader: Reader) -> bool:
        assert self.is_open
        await trio.sleep(1)
        self.exchanges += 1
        return True

    async def is_quiet(self) -> bool:
        await trio.lowlevel.checkpoint()
        return self.quiet

    def close(self) -> None:
        self.is_open = False


def pool_of(limit: int) -> tuple[ConnectionPool, list[Connection]]:
    made: list[Connection] = []
    return ConnectionPool(lambda: Connection(made), limit=limit), made


async def burst(pool: ConnectionPool, size: int) -> None:
    async with trio.open_nursery() as nursery:
        for _ in range(size):
            nursery.start_soon(pool.send, REQUEST, Reply())


async def test_a_cancel_that_comes_with_the_free_place_costs_no_connection(
    autojump_clock: trio.testing.MockClock,
) -> None:
    pool, made = pool_of(1)
    await pool.send(REQUEST, Reply())
    scope = trio.CancelScope()

    async def ask() -> None:
        with scope:
            await pool.send(REQUEST, Reply())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(pool.send, REQUEST, Reply())
        await trio.testing.wait_all_tasks_blocked()
        nursery.start_soon(ask)
        await trio.sleep(1)  # the place is given to the one that waits, which does not know of it yet
        scope.cancel()
    assert (len(made), made[0].exchanges, made[0].is_open) == (1, 2, True)
    await pool.send(REQUEST, Reply())  # for which the place is free again


async def test_a_few_idle_connections_are_kept_and_used_for_a_while(autojump_clock: trio.testing.MockClock) -> None:
    pool, made = pool_of(100)
    await burst(pool, 50)
    assert sum(connection.is_open for connection in made) == KEPT_IDLE
    await trio.sleep(IDLE_SECONDS - 10)
    await burst(pool, 2)  # the two are used again, and their time begins anew
    await trio.sleep(11)
    await burst(pool, 1)
    assert (len(made), sum(connection.is_open for connection in made)) == (50, 2)
    await trio.sleep(IDLE_SECONDS)
    await burst(pool, 1)
    assert [connection.is_open for connection in made] == [False] * 50 + [True]


async def test_a_connection_on_which_something_came_is_never_used_again(autojump_clock: trio.testing.MockClock) -> None:
    pool, made = pool_of(4)
    await burst(pool, 3)
    for connection in made:
        connection.quiet = False
    await pool.send(REQUEST, Reply())
    await pool.send(REQUEST, Reply())
    assert [(connection.exchanges, connection.is_open) for connection in made] == [(1, False)] * 3 + [(2, True)]
