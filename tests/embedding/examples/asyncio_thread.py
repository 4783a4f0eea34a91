import asyncio
import os

import trio

from responses_mcp import load_settings, open_answers


async def ask(query: str) -> str:
    """Run under Trio, in a thread of its own."""
    async with open_answers(load_settings(os.environ).settings) as answers:
        return (await answers.answer(query)).text


async def main() -> None:
    """Run under asyncio."""
    print(await asyncio.to_thread(trio.run, ask, "Which Python release is current?"))


if __name__ == "__main__":
    asyncio.run(main())
