"""What a host opens belongs to one run of Trio: another one that is under way is refused in words, and never hangs."""

import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import trio

from responses_mcp.asking import Asker
from responses_mcp.errors import NotUnderTrio, UpstreamError
from responses_mcp.manuals.requests import FindRequest, HitsRequest, LsRequest
from responses_mcp.manuals.service import Manuals, open_manuals
from responses_mcp.settings.model import ManualsSettings, OpenAISettings, RequestSettings, SearchSettings, Settings
from tests.research.upstream import researching, slow

Use = Callable[[], Awaitable[Any]]

SECONDS = 20.0


async def used(use: Use) -> None:
    with suppress(UpstreamError):  # nobody is there to be asked, which is all right here
        await use()


@pytest.mark.parametrize("kind", ["answers", "search", "manuals", "hits"])
def test_a_second_run_of_trio_is_refused_while_the_first_goes_on_and_served_after_it(kind: str, tmp_path: Path) -> None:
    settings = Settings(
        openai=OpenAISettings(base_url="http://127.0.0.1:9/v1", api_key="sk-none"),
        request=RequestSettings(max_retries=0),
        search=SearchSettings(max_attempts=1),
    )
    answers, search = Asker(settings), Asker(settings)
    manuals = Manuals(ManualsSettings(root=str(tmp_path), in_memory=True))
    use: Use = {
        "answers": lambda: answers.answer("why?"),
        "search": lambda: search.search("why?"),
        "manuals": lambda: manuals.ls(LsRequest("manuals")),
        "hits": lambda: manuals.hits_with_passages(HitsRequest(found[0], "unscanned")),
    }[kind]
    refused: list[NotUnderTrio] = []
    found: list[str] = []

    def second() -> None:
        try:
            trio.run(used, use)
        except NotUnderTrio as error:
            refused.append(error)

    async def first() -> None:
        with trio.fail_after(SECONDS):
            if kind == "hits":
                (tmp_path / "shop").mkdir()
                found.append((await manuals.find(FindRequest("why", "shop", required_terms=("why",))))["trace_id"])
            await used(use)
            await trio.to_thread.run_sync(second)

    trio.run(first)
    assert [str(error).partition(";")[0] for error in refused] == [
        "This is in use by another run of Trio, in another thread"
    ]
    later = threading.Thread(target=second)
    later.start()
    later.join(SECONDS)
    assert not later.is_alive()
    assert len(refused) == 1
    trio.run(manuals.aclose)


def test_research_belongs_to_the_run_that_opened_it_also_before_its_first_use(tmp_path: Path) -> None:
    refused: list[str] = []

    async def first() -> None:
        async with researching(slow(), tmp_path) as research:

            def second() -> None:
                try:
                    trio.run(research.list)
                except NotUnderTrio as error:
                    refused.append(str(error))

            await trio.to_thread.run_sync(second)

    trio.run(first)
    assert "in use by another run of Trio" in refused[0]


def test_a_second_run_of_trio_that_waits_for_the_id_of_a_run_is_refused_and_the_run_goes_on(tmp_path: Path) -> None:
    refused: list[str] = []

    async def first() -> None:
        with trio.fail_after(SECONDS):
            async with researching(slow(0.01), tmp_path) as research:
                run = await research.start("why?")

                def second() -> None:
                    try:
                        trio.run(research.wait_for_id, run, 10)
                    except NotUnderTrio as error:
                        refused.append(str(error))

                await trio.to_thread.run_sync(second)
                assert (await research.result(run, wait_seconds=10)).status == "completed"

    trio.run(first)
    assert "in use by another run of Trio" in refused[0]


def test_manuals_that_another_run_uses_first_belong_to_the_run_that_opened_them(tmp_path: Path) -> None:
    (tmp_path / "manuals" / "shop").mkdir(parents=True)
    refused: list[str] = []

    async def first() -> None:
        async with open_manuals(ManualsSettings(root=str(tmp_path / "manuals"), in_memory=True)) as manuals:

            def second() -> None:
                try:
                    trio.run(manuals.index, "shop")
                except NotUnderTrio as error:
                    refused.append(str(error))

            await trio.to_thread.run_sync(second)

    trio.run(first)
    assert "in use by another run of Trio" in refused[0]
