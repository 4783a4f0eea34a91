import os

import trio

from responses_mcp.asking import open_answers
from responses_mcp.settings import load_settings


async def main() -> None:
    async with open_answers(load_settings(os.environ).settings) as asker:
        found = await asker.search("structured concurrency", limit=5, language="en", timeframe="past_year")
    for page in found.results:
        print(page.title, page.url, page.published_date)


if __name__ == "__main__":
    trio.run(main)
