import os

import trio

from responses_mcp.settings import load_settings
from responses_mcp.websearch import open_search


async def main() -> None:
    async with open_search(load_settings(os.environ).settings) as search:
        found = await search.search("structured concurrency", limit=5, language="en", timeframe="past_year")
    for page in found.results:
        print(page.title, page.url, page.published_date)


if __name__ == "__main__":
    trio.run(main)
