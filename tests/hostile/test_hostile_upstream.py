"""Nothing that an upstream sends can hurt: right end, no request too many, no key told, and a next answer that is right."""

from pathlib import Path

import pytest
import trio
import trustme

from responses_mcp.settings.model import OpenAISettings, RequestSettings, SearchSettings, Settings
from responses_mcp.testing.client import connected_client
from tests.hostile.trial import Asker, Stuck
from tests.hostile.upstream import MODES, Ledger, Upstream, open_upstream
from tests.hostile.upstream_modes import KEY, Mode
from tests.responses_api.http.network import bare_environment, trust

__all__ = ["bare_environment"]
AT_ONCE = 8


def test_each_mode_has_a_name_of_its_own() -> None:
    assert len({mode.name for mode in MODES}) == len(MODES)


@pytest.mark.usefixtures("bare_environment")
async def test_a_hostile_upstream_gets_the_end_that_it_deserves(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    # One mode of each kind; `nox -s lab -- hostile upstream` plays all.
    ca, ledger = trustme.CA(), Ledger()
    trust(monkeypatch, ca, tmp_path / "ca.pem")
    problems: list[str] = []
    turns = trio.CapacityLimiter(AT_ONCE)

    async def attack(mode: Mode, upstream: Upstream) -> None:
        async with turns, connected_client(settings(mode, upstream)) as client:
            try:
                outcome = await Asker(client, ledger).attempt(mode)
                problems.extend(f"{mode.name}: {each}" for each in outcome.problems)
            except Stuck as stuck:
                problems.append(f"{mode.name}: {stuck}")

    async with open_upstream(ca, ledger.note) as upstream, trio.open_nursery() as nursery:
        for mode in {mode.group: mode for mode in reversed(MODES)}.values():
            nursery.start_soon(attack, mode, upstream)
    assert not problems, "\n".join(problems)


def settings(mode: Mode, upstream: Upstream) -> Settings:
    return Settings(
        openai=OpenAISettings(base_url=upstream.base_url(mode), api_key=KEY),
        request=RequestSettings(timeout_ms=int(mode.seconds * 1000), max_retries=1),
        search=SearchSettings(strict_domains=mode.strict),
    )
