"""Opening what works under Trio alone, with an error for hosts of another event loop that says how it can be done."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from inspect import iscoroutinefunction
from typing import Final, Protocol, TypeVar, cast

import trio

from responses_mcp.errors import BadArgument, NotUnderTrio


class Closeable(Protocol):
    """What belongs to one run of Trio, and is closed when it is not needed any more."""

    def require_run(self) -> None:
        """Raise `NotUnderTrio` outside of Trio, and in another run than that of its first use."""

    async def aclose(self) -> None:
        """Release everything."""


T = TypeVar("T", bound=Closeable)

_CURE: Final = (
    "Run it with `trio.run`. An asyncio program can do that in another thread, `await asyncio.to_thread(trio.run, f)`, "
    "or run Trio beside itself in the same one, with `trio.lowlevel.start_guest_run` (docs/embedding.md, 'Inside "
    "asyncio')."
)

_IN_USE: Final = (
    "This is in use by another run of Trio, in another thread; open one for each run, or have the first one do it with "
    "`trio.from_thread.run`."
)


def require_trio() -> None:
    """Raise `NotUnderTrio`, which says what to do, unless the caller is a task of Trio."""
    try:
        trio.lowlevel.current_task()
    except RuntimeError:
        raise NotUnderTrio(f"This works under Trio, and {_where()}. {_CURE}") from None


def _where() -> str:
    asyncio = sys.modules.get("asyncio")
    running = getattr(asyncio, "_get_running_loop", None)
    return "was called under asyncio" if running is not None and running() is not None else "no Trio is running here"


def require_listeners(**listeners: object) -> None:
    """Refuse what cannot be told anything in Trio's thread, before something is paid for; None is nobody.

    Raises `BadArgument`.
    """
    for name, each in listeners.items():
        if each is not None and (not callable(each) or iscoroutinefunction(each)):
            raise BadArgument(f"{name} is not a plain function; pass one that is not `async`, or None.")


class OneRun:
    """Keeps what is shared between tasks to one run of Trio: what wakes its tasks wakes none of another run.

    It belongs to the run that uses it first, and when that is over, to the next.
    """

    def __init__(self) -> None:
        self._run: trio.lowlevel.TrioToken | None = None

    def require(self) -> None:
        """Raise `NotUnderTrio`, which says what to do, outside of Trio and in another run while the first goes on."""
        require_trio()
        run = trio.lowlevel.current_trio_token()
        if self._run is not run:
            if self._run is not None:
                with suppress(trio.RunFinishedError):
                    self._run.run_sync_soon(_nothing)
                    raise NotUnderTrio(_IN_USE)
            self._run = run


def _nothing() -> None:
    pass


@asynccontextmanager
async def opened(resource: T) -> AsyncGenerator[T]:
    """Give out a resource, and close it at the end of the block. Raises `NotUnderTrio` at its beginning.

    It belongs to this run of Trio, also where another one uses it first: here it is closed.
    """
    resource.require_run()
    await trio.lowlevel.checkpoint()
    try:
        yield resource
    finally:
        await resource.aclose()


@contextmanager
def interrupts_alone(failures: Sequence[BaseException]) -> Generator[None]:
    """Have Ctrl-C, which may strike in a task of ours, come out of our nursery as it is, and in no group.

    `failures` has what the block of a host in it has raised, which the nursery is not told. That and what tasks of
    ours have raised come out in one group; where Ctrl-C is among them, it comes out, with the group as its cause. Where
    there is only a cancel from without, it is left to be raised behind this.
    """
    try:
        yield
    except BaseException as error:  # noqa: ASYNC103  # a cancel alone is raised again behind this
        ours = _as_group(error).split(trio.Cancelled)[1]
        told = [each for each in failures if _as_group(each).split(trio.Cancelled)[1] is not None]
        together = None if ours is None else ours.derive([*ours.exceptions, *told])
        if together is None:
            if not failures:
                raise
        elif together.split(KeyboardInterrupt)[0] is not None:
            raise KeyboardInterrupt from together  # noqa: ASYNC104
        elif told:
            raise together from None  # noqa: ASYNC104
        else:
            raise


def _as_group(error: BaseException) -> BaseExceptionGroup[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        return cast("BaseExceptionGroup[BaseException]", error)
    return BaseExceptionGroup("of a nursery that makes no groups of one", [error])
