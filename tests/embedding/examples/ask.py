import os

import trio

from responses_mcp.asking import open_answers
from responses_mcp.settings import load_settings


async def main() -> None:
    async with open_answers(load_settings(os.environ).settings) as answers:
        result = await answers.answer("Which Python release is current?", recency_days=30, profile="answer_quick")
    print(result.text)
    for citation in result.citations:
        print(citation.published_at, citation.url, citation.title)


if __name__ == "__main__":
    trio.run(main)
