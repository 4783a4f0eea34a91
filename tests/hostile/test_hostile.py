"""Nothing that arrives on stdin can hurt: right answer, live server, unharmed call, steady memory."""

import sys
from pathlib import Path

import pytest
import trio

from responses_mcp.testing import open_fake_api
from tests.hostile.attack import Gate, attack, resident_mib
from tests.hostile.corpus import CASES
from tests.processes import environment, server_process


def test_each_case_has_a_name_of_its_own() -> None:
    assert len({(case.group, case.name) for case in CASES}) == len(CASES)


async def test_hostile_input_gets_what_it_is_owed_and_does_no_harm(tmp_path: Path) -> None:
    # One case of each kind; `nox -s lab -- hostile` sends all.
    async with open_fake_api() as api, server_process(environment(tmp_path, api.base_url)) as server:
        gate = Gate(api)
        cases = {case.group: case for case in reversed(CASES)}
        problems = {case.name: await attack(server.client, gate, case) for case in cases.values()}
        assert {name: problem for name, problem in problems.items() if problem} == {}
    assert server.stderr == b""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads resident memory from /proc")
async def test_memory_is_back_where_it_was_after_the_biggest_messages(tmp_path: Path) -> None:
    big = [case for case in CASES if len(case.data) > 10_000_000]
    async with open_fake_api() as api, server_process(environment(tmp_path, api.base_url)) as server:
        gate = Gate(api)
        await attack(server.client, gate, CASES[0])
        with trio.fail_after(60):
            before = resident_mib(server.process.pid)
            for case in [*big, *big]:
                assert await attack(server.client, gate, case) is None
            after = resident_mib(server.process.pid)
    assert len(big) >= 3
    assert after - before < 16
