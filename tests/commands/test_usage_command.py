"""What a person sees of usage and cost: the line after an answer, `--json`, the ledger's table, and a limit."""

import json
import os
import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest

from responses_mcp.testing import FakeApi, as_stream, bodies
from responses_mcp.usage.ledger import FILE
from tests.commands.online import Command, Terminal, api, command, output
from tests.testing import samples

__all__ = ["api", "command"]


@pytest.fixture
def state(api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("USAGE_LEDGER", "1")
    monkeypatch.setenv("RESEARCH_STATE_DIR", str(tmp_path / "state"))
    return tmp_path / "state"


@pytest.fixture
def ledger(api: FakeApi, state: Path) -> Path:
    api.script(as_stream(bodies.searched()), as_stream(bodies.unsearched()), as_stream(bodies.unsearched()))
    return state


@pytest.mark.parametrize("name", ["ask", "search"])
async def test_a_line_on_a_terminal_tells_what_it_took(
    api: FakeApi, command: Command, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    api.script(as_stream(bodies.searched()))
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    assert (await command(name, "Why?"))[0] == 0
    last = shown.text.rstrip("\n").rpartition("\n")[2].rpartition("\r")[2]
    assert last.startswith("8,512 tokens in (0 cached), 733 out, ")
    assert ", about $0.0" in last


async def test_the_table_has_a_line_for_each_and_one_for_all(ledger: Path, command: Command) -> None:
    for arguments in (["ask", "Why?"], ["ask", "--quick", "Why?"], ["ask", "Why?"]):
        output(await command(*arguments))
    lines = output(await command("usage", "--by", "tool")).splitlines()
    assert [line.split()[:4] for line in lines] == [
        ["tool", "calls", "input", "cached"],
        ["answer", "2", "17,024", "0"],
        ["answer_quick", "1", "8,512", "0"],
        ["all", "3", "25,536", "0"],
    ]
    assert len(set(map(len, lines))) == 1
    found = json.loads(output(await command("usage", "--by", "client", "--days", "2", "--json")))
    assert (found["days"], found["by"]) == (2, "client")
    [row] = found["rows"]
    assert (row["client"], row["calls"], row["output_tokens"]) == ("command line", 3, 3 * 733)
    assert row["cost_usd"] > 0
    assert (ledger / FILE).exists()


@pytest.mark.parametrize("named", [True, False])
async def test_a_ledger_that_only_the_entry_of_a_client_asks_for_is_shown(
    ledger: Path, command: Command, monkeypatch: pytest.MonkeyPatch, *, named: bool
) -> None:
    if not named:
        if sys.platform != "linux":
            pytest.skip("the folder is in the home there")
        monkeypatch.delenv("RESEARCH_STATE_DIR")
        monkeypatch.setenv("XDG_STATE_HOME", str(ledger))
    output(await command("ask", "Why?"))
    monkeypatch.delenv("USAGE_LEDGER")
    [row] = json.loads(output(await command("usage", "--json")))["rows"]
    assert row["calls"] == 1


async def test_calls_without_a_price_are_counted_below_the_table(
    ledger: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODEL_ANSWER", "llama-9")
    output(await command("ask", "Why?"))
    shown = output(await command("usage", "--by", "model")).splitlines()
    assert shown[1].split()[-1] == "unknown"
    assert shown[-1] == "The price of 1 call is not known; add it under `prices`."
    assert "$0.00" not in "".join(shown)
    monkeypatch.setenv("MODEL_ANSWER", "gpt-5.2")
    output(await command("ask", "Why?"))
    assert output(await command("usage")).splitlines()[1].endswith(" + unknown")
    found = json.loads(output(await command("usage", "--by", "model", "--json")))["rows"]
    assert {row["model"]: (row["cost_usd"] is None, row["calls_without_price"]) for row in found} == {
        "llama-9": (True, 1),
        "gpt-5.2": (False, 0),
    }


async def test_what_ended_without_a_known_cost_counts_as_a_guess_and_is_shown_as_one(
    api: FakeApi, state: Path, command: Command
) -> None:
    api.script(as_stream(samples.null_usage()), as_stream(samples.null_usage()))
    for _ in range(2):
        output(await command("ask", "Why?"))
    shown = output(await command("usage"))
    assert shown.splitlines()[1].split()[-1] == "$0.56"
    assert "$0.56 of the cost is an estimate, for 2 calls that still run or ended without a known cost." in shown
    [row] = json.loads(output(await command("usage", "--json")))["rows"]
    assert (row["cost_usd"], row["guessed_usd"], row["calls_unsettled"]) == (0.555, 0.555, 2)


async def test_a_ledger_that_is_empty_or_newer_or_broken_is_told_in_a_line(ledger: Path, command: Command) -> None:
    assert output(await command("usage")) == "No call was recorded in the last 30 days.\n"
    output(await command("ask", "Why?"))
    with closing(sqlite3.connect(ledger / FILE)) as database:
        database.execute("PRAGMA user_version = 99")
    code, _, err = await command("usage")
    assert (code, "of a newer version" in err) == (1, True)
    assert (await command("ask", "Why?"))[0] == 0
    assert not [name for name in os.listdir(ledger) if "broken" in name]
    (ledger / FILE).write_bytes(b"no database, and long enough to be looked at" * 100)
    code, out, err = await command("usage")
    assert (code, out, err.count("\n"), f"The ledger in {ledger} cannot be read" in err) == (1, "", 1, True)


async def test_without_a_ledger_the_cure_is_named(api: FakeApi, command: Command) -> None:
    code, out, err = await command("usage")
    assert (code, out) == (2, "")
    assert "Set usage.ledger to true (USAGE_LEDGER=1), for the server as well; later calls are recorded." in err


async def test_a_limit_ends_the_command_with_its_sentence_before_anything_is_sent(
    api: FakeApi, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LIMITS_SESSION_COST_USD", "0")
    code, out, err = await command("ask", "Why?")
    assert (code, out, err.count("\n")) == (1, "", 1)
    assert "limits.session_cost_usd" in err
    assert api.requests == []
