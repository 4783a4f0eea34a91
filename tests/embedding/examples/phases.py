import math
import os

import trio

from responses_mcp.answers import open_answers
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
                result = await answers.answer("What is new in Trio?", on_phase=tell.send_nowait)
            except ResponsesMcpError as error:  # which the nursery would wrap in a group
                print(error)
            else:
                print(result.text)


if __name__ == "__main__":
    trio.run(main)
