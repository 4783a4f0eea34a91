import asyncio
import os
import threading
from collections.abc import Callable
from contextlib import suppress

import trio

from responses_mcp import load_settings, open_answers


async def ask(query: str, take: Callable[[Callable[[], None]], None]) -> str | None:
    """Run under Trio, in a thread of its own; `take` gets what ends it from another thread."""
    token = trio.lowlevel.current_trio_token()
    with trio.CancelScope() as scope:
        take(lambda: token.run_sync_soon(scope.cancel))
        async with open_answers(load_settings(os.environ).settings) as answers:
            return (await answers.answer(query)).text
    return None


async def asked(query: str) -> str | None:
    """Run under asyncio. What cancels this, such as Ctrl-C, ends the question, too."""
    ends: list[Callable[[], None]] = []
    over = threading.Event()

    def take(end: Callable[[], None]) -> None:
        ends.append(end)
        if over.is_set():  # it was cancelled before Trio ran
            end()

    try:
        return await asyncio.to_thread(trio.run, ask, query, take)
    finally:
        over.set()
        for end in ends:
            with suppress(trio.RunFinishedError):
                end()


async def main() -> None:
    print(await asked("Which Python release is current?"))


if __name__ == "__main__":
    asyncio.run(main())
