import os
from collections.abc import Sequence

import trio

from responses_mcp.asking import Answer, Asker, open_answers
from responses_mcp.errors import UpstreamError
from responses_mcp.settings import load_settings

PROFILES = ("answer_quick", "answer", "answer_detailed")


async def first_answer(answers: Asker, query: str, profiles: Sequence[str], patience: float) -> Answer | None:
    """Ask once for each profile and return what comes first, None when nothing comes within `patience` seconds."""
    won: list[Answer] = []

    async def ask(profile: str) -> None:
        with trio.move_on_after(patience):
            try:
                won.append(await answers.answer(query, profile=profile))
            except UpstreamError as error:
                print(f"{profile} failed: {error}")  # the others may still do better
            else:
                race.cancel_scope.cancel()  # hangs up on the others

    async with trio.open_nursery() as race:
        for profile in profiles:
            race.start_soon(ask, profile)
    return won[0] if won else None


async def main(patience: float = 60) -> None:
    async with open_answers(load_settings(os.environ).settings) as answers:
        won = await first_answer(answers, "What is new in httpx?", PROFILES, patience)
    print("Nobody answered." if won is None else f"{won.model}: {won.text}")


if __name__ == "__main__":
    trio.run(main)
