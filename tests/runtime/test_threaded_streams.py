"""The streams for terminals and Windows, which read and write in threads that may be left behind."""

import os
import threading

import pytest
import trio
import trio.testing

from responses_mcp.runtime.stdio import ThreadedReceiveStream, ThreadedSendStream

WAIT = 30.0


async def test_what_is_written_is_read_in_order_and_the_end_is_seen() -> None:
    read_end, write_end = os.pipe()
    receive, send = ThreadedReceiveStream(read_end), ThreadedSendStream(write_end)
    data = os.urandom(300_000)
    received = bytearray()
    with trio.fail_after(WAIT):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(send.send_all, data)
            while len(received) < len(data):
                received += await receive.receive_some()
        os.close(write_end)
        assert await receive.receive_some() == b""
    assert received == data
    os.close(read_end)


async def test_a_reader_that_is_gone_breaks_the_stream() -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    with trio.fail_after(WAIT), pytest.raises(trio.BrokenResourceError):
        await ThreadedSendStream(write_end).send_all(b"x")
    os.close(write_end)


async def test_a_closed_stream_says_so() -> None:
    read_end, write_end = os.pipe()
    receive, send = ThreadedReceiveStream(read_end), ThreadedSendStream(write_end)
    await receive.aclose()
    await send.aclose()
    with pytest.raises(trio.ClosedResourceError):
        await receive.receive_some()
    with pytest.raises(trio.ClosedResourceError):
        await send.send_all(b"x")
    os.close(read_end)
    os.close(write_end)


async def test_a_cancelled_read_leaves_its_thread_and_returns_at_once() -> None:
    read_end, write_end = os.pipe()
    receive = ThreadedReceiveStream(read_end)
    with trio.fail_after(WAIT), trio.move_on_after(0):
        await receive.receive_some()
    os.write(write_end, b"late")  # lets the thread go
    os.close(write_end)


async def test_threads_that_others_left_behind_do_not_stop_the_wire() -> None:
    release = threading.Event()
    limiter = trio.to_thread.current_default_thread_limiter()
    async with trio.open_nursery() as nursery:
        for _ in range(int(limiter.total_tokens)):
            nursery.start_soon(lambda: trio.to_thread.run_sync(release.wait, WAIT, abandon_on_cancel=True))
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert limiter.available_tokens == 0
    read_end, write_end = os.pipe()
    try:
        with trio.fail_after(WAIT / 2):
            await ThreadedSendStream(write_end).send_all(b"through")
            assert await ThreadedReceiveStream(read_end).receive_some() == b"through"
    finally:
        release.set()
        os.close(read_end)
        os.close(write_end)
