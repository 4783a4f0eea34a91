"""What the package offers by its own name, without a price at the start, and what it tells programs of asyncio."""

import asyncio
import importlib
import re
import subprocess
import sys
import types
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any

import pytest
import trio.testing

import responses_mcp
from responses_mcp.asking import Asker
from responses_mcp.errors import NotUnderTrio, ResponsesMcpError
from responses_mcp.manuals.service import Manuals
from responses_mcp.settings import ManualsSettings, Settings
from responses_mcp.testing import open_fake_api
from responses_mcp.testing.client import connected_client
from tests.processes import ROOT

OFFERED = {
    "load_settings": "responses_mcp.settings.load",
    "open_answers": "responses_mcp.asking",
    "open_manuals": "responses_mcp.manuals.service",
    "open_research": "responses_mcp.research.runs",
    "serve": "responses_mcp.serving",
}


@pytest.mark.parametrize(("name", "home"), OFFERED.items())
def test_the_package_offers_its_ways_in_by_its_own_name(name: str, home: str) -> None:
    offered = getattr(responses_mcp, name)
    assert isinstance(offered, types.FunctionType)
    assert (offered.__module__, offered.__name__) == (home, name)
    assert name in dir(responses_mcp)


def test_its_help_and_a_star_name_all_that_it_offers() -> None:
    offered: dict[str, object] = {}
    exec("from responses_mcp import *", offered)  # where else may a star stand
    assert OFFERED.keys() <= offered.keys()
    assert {"Any", "import_module"} & offered.keys() == set()
    assert [name for name in OFFERED if f"{name}: " not in str(responses_mcp.__doc__)] == []


def test_to_import_the_package_imports_nothing_else_of_it() -> None:
    script = "import sys; before = set(sys.modules); import responses_mcp; print(*set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["responses_mcp"]


OPENERS: list[Callable[[], AbstractAsyncContextManager[Any]]] = [
    lambda: responses_mcp.open_answers(Settings()),
    lambda: responses_mcp.open_manuals(ManualsSettings(root="/nowhere")),
    lambda: responses_mcp.open_research(Settings()),
    lambda: connected_client(Settings()),
]


def test_under_asyncio_each_says_how_it_is_done() -> None:
    async def use(opener: Callable[[], AbstractAsyncContextManager[Any]]) -> None:
        async with opener():
            raise AssertionError

    ours, theirs = trio.testing.memory_stream_pair()
    calls: list[Callable[[], Coroutine[Any, Any, object]]] = [
        *(partial(use, opener) for opener in OPENERS),
        lambda: Asker(Settings()).answer("q"),
        lambda: Asker(Settings()).search("q"),
        lambda: Asker(Settings()).aclose(),
        lambda: responses_mcp.serve(ours, theirs, settings=Settings()),
    ]
    for call in calls:
        with pytest.raises(NotUnderTrio, match=r"called under asyncio\. Run it with `trio.run`.*start_guest") as caught:
            asyncio.run(call())
        assert isinstance(caught.value, ResponsesMcpError)
    with pytest.raises(RuntimeError, match="works under Trio"):
        asyncio.run(use(open_fake_api))


async def test_under_trio_they_open_and_close_and_let_others_have_their_turn() -> None:
    for opener in OPENERS:
        with trio.testing.assert_checkpoints():
            async with opener() as opened:
                assert opened is not None


@pytest.mark.parametrize("closing", [Asker, lambda settings: Manuals(settings.manuals)])
async def test_to_close_is_a_checkpoint_however_often(closing: Callable[[Settings], Any]) -> None:
    opened = closing(Settings())
    for _ in range(2):
        with trio.testing.assert_checkpoints():
            await opened.aclose()


def test_what_the_page_says_that_a_host_imports_is_there() -> None:
    page = (ROOT / "docs/embedding.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| [^|]+ \| ([^|]* from `responses_mcp.*) \|$", page, re.MULTILINE)
    assert len(rows) > 6
    for part in (each for row in rows for each in row.split(", `open_fake") if " from " in each):
        names, module = (
            re.findall(r"`([^`]+)`", part.partition(" from ")[0]),
            part.partition(" from `")[2].partition("`")[0],
        )
        assert [name for name in names if not hasattr(importlib.import_module(module), name)] == []
