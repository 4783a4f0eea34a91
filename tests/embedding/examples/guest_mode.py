import asyncio
import os
import socket
from contextlib import AsyncExitStack

import trio
from outcome import Outcome

from responses_mcp.serving import serve
from responses_mcp.settings import load_settings

HELLO = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}\n'
CALL = b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"answer","arguments":{"query":"Why?"}}}\n'


async def serve_on(theirs: socket.socket) -> None:
    """Run under Trio, in the thread of asyncio."""
    stream = trio.SocketStream(trio.socket.from_stdlib_socket(theirs))
    await serve(stream, stream, settings=load_settings(os.environ).settings)


async def leave(writer: asyncio.StreamWriter, ended: asyncio.Future[Outcome[None]]) -> None:
    """End the guest, after Ctrl-C, too: asyncio must not end before it."""
    writer.close()  # the end of the server's input, and so of the guest; a call in flight has ten seconds
    await writer.wait_closed()
    (await ended).unwrap()


async def main() -> None:
    """Run under asyncio."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[Outcome[None]] = loop.create_future()
    ours, theirs = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=ours)
    trio.lowlevel.start_guest_run(
        serve_on,
        theirs,
        run_sync_soon_threadsafe=loop.call_soon_threadsafe,
        done_callback=ended.set_result,
        host_uses_signal_set_wakeup_fd=True,
    )
    async with AsyncExitStack() as leaving:  # without an await before it, at which Ctrl-C would leave the guest behind
        leaving.push_async_callback(leave, writer, ended)
        writer.writelines([HELLO, CALL])
        print((await reader.readline()).decode(), (await reader.readline()).decode())


if __name__ == "__main__":
    asyncio.run(main())
