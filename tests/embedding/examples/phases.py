import math
import os

import trio

from responses_mcp.asking import Watcher, open_answers
from responses_mcp.errors import ResponsesMcpError
from responses_mcp.settings import load_settings


async def show(phases: trio.MemoryReceiveChannel[str]) -> None:
    async for phase in phases:
        print(f"... {phase}")


async def main() -> None:
    tell, phases = trio.open_memory_channel[str](math.inf)
    async with open_answers(load_settings(os.environ).settings) as answers, trio.open_nursery() as nursery:
        nursery.start_soon(show, phases)
        with tell:  # closing it ends the loop in show
            try:
                said = (await answers.answer("What is new in Trio?", watcher=Watcher(tell.send_nowait))).text
            except ResponsesMcpError as error:  # which the nursery would wrap in a group
                said = str(error)
    print(said)  # here all phases have been shown


if __name__ == "__main__":
    trio.run(main)
