"""The Python clients that are installed: the official SDK, 1.30 or 2.3, or FastMCP (`nox -s lab -- interop`)."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tests.lab.interop.fake import Fake
from tests.lab.interop.python_clients import FASTMCP, SDK, Connection, PythonClient, clients
from tests.lab.interop.server import EMPTY_QUERY, Server, check_answer, check_progress, check_revision, check_tools

if not SDK:
    pytest.skip("the Python clients are installed by `nox -s lab -- interop`", allow_module_level=True)

# The SDK says so of the legacy revision, too, where ping stays.
pytestmark = pytest.mark.filterwarnings("ignore:ping is removed as of 2026-07-28")
WAIT = 30.0  # seconds; a bound for a stuck machine, not an expectation
CLIENTS = clients()
Note = Callable[[str, object], None]
Use = Callable[[Connection], Awaitable[None]]


@pytest.fixture(params=CLIENTS, ids=lambda client: client.name)
def client(request: pytest.FixtureRequest, record_property: Note) -> PythonClient:
    chosen: PythonClient = request.param
    record_property("client", chosen.name)
    return chosen


def connected(client: PythonClient, server: Server, use: Use) -> None:
    async def run() -> None:
        async with asyncio.timeout(WAIT), client.open(server) as connection:
            await use(connection)

    asyncio.run(run())


@pytest.mark.check("connect")
def test_it_connects_in_its_revision_and_leaves_without_force(client: PythonClient, server: Server) -> None:
    async def use(connection: Connection) -> None:
        await connection.still_serves()

    connected(client, server, use)
    processes = server.recorded()
    check_revision(processes, modern=client.modern, probes=client.probes)
    assert [(process.exit_code, process.signals) for process in processes] == [(0, [])]


@pytest.mark.check("list")
def test_it_lists_the_three_tools_with_their_schemas(client: PythonClient, server: Server) -> None:
    async def use(connection: Connection) -> None:
        check_tools(await connection.tools())

    connected(client, server, use)


@pytest.mark.check("call")
def test_it_calls_each_tool_and_gets_the_same_as_object_and_as_text(client: PythonClient, server: Server) -> None:
    async def use(connection: Connection) -> None:
        for tool in ("answer", "answer_detailed", "answer_quick"):
            query = f"{tool}: 東京の天気は？"
            answered = await connection.call(query, tool=tool)
            assert not answered.is_error
            check_answer(query, answered.structured, answered.text)

    connected(client, server, use)


@pytest.mark.check("progress")
def test_it_hears_rising_progress_before_the_answer(
    client: PythonClient, server: Server, record_property: Note
) -> None:
    values: list[float] = []
    messages: list[str | None] = []

    def heard(value: float, total: float | None, message: str | None) -> Awaitable[None]:
        values.append(value)
        messages.append(message)
        return asyncio.sleep(0)  # the clients await what they get

    async def use(connection: Connection) -> None:
        answered = await connection.call("Tell me slowly.", progress=heard)
        check_answer("Tell me slowly.", answered.structured, answered.text)
        record_property("note", f"{len(values)} messages")

    connected(client, server, use)
    (process,) = server.recorded()
    check_progress(values, messages, process)


@pytest.mark.check("cancel")
def test_a_call_given_up_hangs_up_upstream_and_the_connection_lives(
    client: PythonClient, server: Server, fake: Fake, record_property: Note
) -> None:
    query = f"{client.name}: never answered."

    async def use(connection: Connection) -> None:
        call = asyncio.create_task(connection.call(query))
        await asyncio.to_thread(fake.wait_request, query)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        if client.cancels:
            await asyncio.to_thread(fake.wait_hang_up, query)
        await connection.still_serves()

    connected(client, server, use)
    fake.wait_hang_up(query)
    (process,) = server.recorded()
    assert ("notifications/cancelled" in process.methods()) is client.cancels
    if not client.cancels:
        record_property("note", "sends no cancel; hang-up when it closes")


@pytest.mark.check("time limit")
def test_a_call_over_the_client_s_time_limit_hangs_up_upstream_and_the_connection_lives(
    client: PythonClient, server: Server, fake: Fake, record_property: Note
) -> None:
    query = f"{client.name}: never in time."

    async def use(connection: Connection) -> None:
        await connection.call("The first call takes longest.")
        with pytest.raises(Exception, match=r"(?i)timed? ?out"):
            await connection.call(query, limit=2)
        if client.cancels:
            await asyncio.to_thread(fake.wait_hang_up, query)
        await connection.still_serves()

    connected(client, server, use)
    fake.wait_hang_up(query)
    if not client.cancels:
        record_property("note", "sends no cancel; hang-up when it closes")


@pytest.mark.check("tool error")
def test_the_user_of_a_failing_call_learns_that_it_failed(
    client: PythonClient, server: Server, record_property: Note
) -> None:
    async def use(connection: Connection) -> None:
        try:
            answered = await connection.call("")
        except Exception as error:  # noqa: BLE001  # each client has its own
            shown = f"{type(error).__name__}: {error}"
            data = getattr(getattr(error, "error", error), "data", None) or {}
            record_property("hidden", f"error.data: {data['message']}" if data else "")
            assert EMPTY_QUERY in (shown if client.modern else data["message"])
        else:
            assert answered.is_error
            assert answered.structured is None
            shown = f"result with isError: {answered.text}"
        record_property("shown", shown)
        # The contract's error in the legacy revision; in the modern one FastMCP makes an exception of the result, too.
        assert ("answer failed" in shown) is not client.modern
        assert FASTMCP or shown.startswith("result") is client.modern
        if client.modern:
            assert EMPTY_QUERY in shown
        await connection.still_serves()

    connected(client, server, use)


@pytest.mark.check("five at once")
def test_five_calls_at_once_are_not_mixed_up(client: PythonClient, server: Server) -> None:
    async def use(connection: Connection) -> None:
        queries = [f"question {number}." for number in range(5)]
        for query, answered in zip(queries, await asyncio.gather(*map(connection.call, queries)), strict=True):
            check_answer(query, answered.structured, answered.text)

    connected(client, server, use)
