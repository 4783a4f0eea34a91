"""The commands and samples of the README and of the pages: each runs here, or says why it does not.

A line before a block says so: `<!-- not run: REASON -->`, or `<!-- held by: tests/FILE.py::TEST -->`.
"""

import json
import os
import re
import shlex
import shutil
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jsonschema  # type: ignore[import-untyped]
import pytest
import trio
import yaml

from responses_mcp.asking import Asker
from responses_mcp.commands.clients.known import CLIENTS
from responses_mcp.protocol.framing import MessageReader, Payload
from responses_mcp.settings import ServerSettings, Settings, load_settings
from responses_mcp.settings.schema import SETTINGS
from responses_mcp.testing import open_fake_api
from responses_mcp.testing.client import connected_client
from responses_mcp.toolsets.answer import AnswerToolset
from responses_mcp.toolsets.research_definitions import definitions
from responses_mcp.toolsets.search import SearchToolset
from tests.processes import ROOT, WAIT, environment, posix, run

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
COMMANDS = {"openai-responses-mcp": "-m responses_mcp", "python": ""}
MANUAL = "# Tokens\n\nA token opens the door.\n\n## Lifetime\n\nA token is valid for 3600 seconds.\n"


class Block(NamedTuple):
    page: str
    line: int
    mark: str
    language: str
    text: str


def of_page(page: Path) -> list[Block]:
    text, name = page.read_text(encoding="utf-8"), page.relative_to(ROOT).as_posix()
    fences = re.finditer(r"^(?:<!-- ([^\n]*) -->\n)?```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [Block(name, text[: found.start(3)].count("\n"), found[1] or "", found[2], found[3]) for found in fences]


BLOCKS = [block for page in PAGES for block in of_page(page)]


def every(language: str) -> pytest.MarkDecorator:
    """Give a test each block of a language that says nothing else of itself."""
    chosen = [block for block in BLOCKS if block.language == language and not block.mark]
    return pytest.mark.parametrize("block", chosen, ids=[f"{block.page}:{block.line}" for block in chosen])


def test_every_block_runs_in_a_test_or_says_why_it_does_not() -> None:
    run_here = {"sh", "json", "toml", "yaml", "python"}
    unknown = [block[:4] for block in BLOCKS if block.language not in run_here and not block.mark]
    assert unknown == []
    for block in BLOCKS:
        kind, _, told = block.mark.partition(": ")
        if kind == "held by":
            file, _, name = told.partition("::")
            assert re.search(rf"^(?:async )?def {name}\(", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE), (
                told
            )
        elif block.mark:
            # A name with `begin`, or help and the command, are compared by test_docs and others that know the name.
            assert (kind == "not run" and len(told.split()) > 1) or kind == "help" or told == "begin", block[:4]


# Commands


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Return a checkout of links, in which the server is installed, of a user who has manuals."""
    folder = tmp_path / "checkout"
    bin_ = folder / ".venv/bin"
    bin_.mkdir(parents=True)
    for name in ("config", "docs", "responses_mcp", "tests", "README.md", "noxfile.py"):
        (folder / name).symlink_to(ROOT / name)
    for name, arguments in COMMANDS.items():
        (bin_ / name).write_text(
            f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(ROOT))} exec {shlex.quote(sys.executable)} {arguments} "$@"\n',
            encoding="utf-8",
        )
        (bin_ / name).chmod(0o755)
    for name in ("handbooks", "manuals"):
        (tmp_path / name / "guide/auth").mkdir(parents=True)
        (tmp_path / name / "guide/auth/tokens.md").write_text(MANUAL, encoding="utf-8")
    return folder


@posix
@every("sh")
async def test_the_commands_of_the_pages_run(block: Block, checkout: Path, tmp_path: Path) -> None:
    if missing := [name for name in ("git", "jq") if f"{name} " in block.text and shutil.which(name) is None]:
        pytest.skip(f"{missing[0]} is not installed")
    with trio.fail_after(WAIT):
        async with open_fake_api() as api:
            env = environment(tmp_path, api.base_url)
            env["PATH"] = os.pathsep.join([str(checkout / ".venv/bin"), env["PATH"]])
            done = await trio.run_process(
                ["sh", "-ec", block.text], cwd=checkout, env=env, capture_stdout=True, capture_stderr=True, check=False
            )
    said = (done.stdout + done.stderr).decode()
    assert done.returncode == 0, said
    assert "not found" not in said
    assert "Traceback" not in said


@pytest.mark.parametrize("block", [block for block in BLOCKS if block.language == "sh"], ids=lambda block: block[0])
def test_every_session_that_a_command_names_is_there(block: Block) -> None:
    sessions = set(
        re.findall(r"^@nox\.session.*\ndef (\w+)\(", (ROOT / "noxfile.py").read_text(encoding="utf-8"), re.MULTILINE)
    )
    named = re.findall(r"\bnox -s (\w+)", block.text)
    assert set(named) <= sessions
    modules = re.findall(r"python -m (tests[\w.]*)", block.text)
    files = [ROOT / module.replace(".", "/") for module in modules]
    assert [
        file for file in files if not file.with_suffix(".py").exists() and not (file / "__main__.py").exists()
    ] == []


def block_with(page: str, words: str) -> str:
    [found] = [block.text for block in BLOCKS if block.page == page and words in block.text]
    return found


@posix
def test_a_search_on_the_command_line_shows_what_the_page_shows(checkout: Path, tmp_path: Path) -> None:
    shown = block_with("docs/manuals.md", "Read it: openai-responses-mcp manuals read")
    root = str(tmp_path / "manuals")
    done = run(tmp_path, "manuals", "find", "How long is a token valid?", MANUALS_ROOT=root)
    assert done.stdout == shown


def test_the_problem_on_the_page_is_told_in_these_words(tmp_path: Path) -> None:
    shown = block_with("docs/reference/transports.md", "openai-responses-mcp: request.max_retries")
    assert run(tmp_path, "--stdio", OPENAI_MAX_RETRIES="many").stderr == shown


def test_the_frame_and_the_line_of_the_page_are_one_message_each() -> None:
    page = "docs/reference/transports.md"
    frame, line = (
        block_with(page, words).replace("\n", "").replace("\\r", "\r").replace("\\n", "\n").encode()
        for words in ("Content-Length: 41", 'ping"}\\n')
    )
    read = [MessageReader().feed(data) for data in (frame, line)]
    assert [[type(item) for item in items] for items in read] == [[Payload], [Payload]]


# Entries of clients


def check_entry(shown: Mapping[str, Any], home: Path) -> None:
    """Check that an entry serves with settings that are well, where the client fills in what it refers to."""
    [(container, entries)] = shown.items()
    [entry] = entries.values()
    client = next(client for client in CLIENTS.values() if client.container == container)
    program, *arguments = client.words_in(entry)
    assert program.endswith("/openai-responses-mcp")
    assert arguments == ["--stdio"]
    given = entry.get(client.variables, {})
    env = {name: re.sub(r"\$?\{\S+\}", "sk-sample-0123456789", value) for name, value in given.items()}
    assert env.keys() <= {setting.env for setting in SETTINGS} | {"OPENAI_API_KEY"}
    check_settings(env, home)


def check_settings(environ: Mapping[str, str], home: Path) -> None:
    loaded = load_settings(environ, home=home)
    assert (list(loaded.problems), list(loaded.warnings)) == ([], [])


@every("toml")
def test_an_entry_in_toml_serves(block: Block, tmp_path: Path) -> None:
    check_entry(tomllib.loads(block.text), tmp_path)


# Samples in JSON and YAML


@every("json")
async def test_a_sample_in_json_is_what_it_shows(block: Block, tmp_path: Path) -> None:
    shown = json.loads(block.text)
    tools = AnswerToolset(lambda: Asker(Settings())).tools
    if "run_id" in shown:
        jsonschema.validate(shown, definitions()[0].output_schema)
    elif {client.container for client in CLIENTS.values()} & shown.keys():
        check_entry(shown, tmp_path)
    elif "citations" in shown:
        jsonschema.validate(shown, tools[0].output_schema)
    elif "query" in shown:
        jsonschema.validate(shown, tools[0].input_schema)
    elif "results" in shown:
        [search] = SearchToolset(lambda: Asker(Settings())).tools
        jsonschema.validate(shown, search.output_schema)
    elif "env" in shown:
        check_settings(shown["env"], tmp_path)
    elif "isError" in shown:
        with trio.fail_after(WAIT):
            async with connected_client(Settings(server=ServerSettings(tool_errors="result"))) as client:
                assert (await client.call("answer", {"query": ""}))["result"] == shown
    else:
        pytest.fail("nothing knows what this is; test it, or mark it")


@every("yaml")
def test_a_sample_in_yaml_can_be_a_configuration(block: Block, tmp_path: Path) -> None:
    if "extensions:" in block.text:
        check_entry(yaml.safe_load(block.text), tmp_path)
        return
    config = tmp_path / ".config/openai-responses-mcp/config.yaml"
    for folder in (config.parent / "manuals", tmp_path / "handbooks"):
        folder.mkdir(parents=True)
    (config.parent / "policy.md").write_text("mine", encoding="utf-8")
    config.write_text(block.text, encoding="utf-8")
    check_settings({"AZURE_OPENAI_KEY": "q7" * 4}, tmp_path)
