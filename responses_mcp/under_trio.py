"""Opening what works under Trio alone, with an error for hosts of another event loop that says how it can be done."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final, Protocol, TypeVar

import trio

from responses_mcp.errors import NotUnderTrio


class Closeable(Protocol):
    """What is closed when it is not needed any more."""

    async def aclose(self) -> None:
        """Release everything."""


T = TypeVar("T", bound=Closeable)

_CURE: Final = (
    "Run it with `trio.run`. An asyncio program can do that in another thread, `await asyncio.to_thread(trio.run, f)`, "
    "or run Trio beside itself in the same one, with `trio.lowlevel.start_guest_run` (docs/embedding.md, 'Inside "
    "asyncio')."
)


def require_trio() -> None:
    """Raise `NotUnderTrio`, which says what to do, unless the caller is a task of Trio."""
    try:
        trio.lowlevel.current_task()
    except RuntimeError:
        running = getattr(sys.modules.get("asyncio"), "_get_running_loop", None)
        is_asyncio = running is not None and running() is not None
        where = "was called under asyncio" if is_asyncio else "no Trio is running here"
        raise NotUnderTrio(f"This works under Trio, and {where}. {_CURE}") from None


@asynccontextmanager
async def opened(resource: T) -> AsyncGenerator[T]:
    """Give out a resource, and close it at the end of the block. Raises `NotUnderTrio` at its beginning."""
    require_trio()
    await trio.lowlevel.checkpoint()
    try:
        yield resource
    finally:
        await resource.aclose()


@asynccontextmanager
async def alone() -> AsyncGenerator[trio.Nursery]:
    """Open a nursery; what its block raises cancels the tasks, and comes out as it is, in no group."""
    raised: list[BaseException] = []
    try:
        async with trio.open_nursery() as nursery:
            try:
                yield nursery
            except trio.Cancelled:
                raise
            except BaseException as error:  # noqa: BLE001
                raised.append(error)
                nursery.cancel_scope.cancel(reason="the block has failed")
    finally:  # also beside what the nursery raises: a cancel from without, or a bug
        if raised:
            raise raised.pop()
