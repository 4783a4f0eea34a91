"""The README and the pages under docs: what they name exists, what they show is what happens."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from datetime import date
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
import trio

import responses_mcp
from responses_mcp import cli
from responses_mcp.asking import Asker
from responses_mcp.settings import OpenAISettings, RequestSettings, ServerSettings, Settings
from responses_mcp.settings.model import Profile
from responses_mcp.settings.schema import SETTINGS
from responses_mcp.testing import Error, open_fake_api
from responses_mcp.testing.client import McpClient, connected_client
from responses_mcp.toolsets.answer import AnswerToolset
from responses_mcp.usage.models import AS_OF, PriceList, Usage
from tests import help_texts
from tests.processes import CALL, HANDSHAKE, posix, run

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
PAGES = [README, *sorted((ROOT / "docs").rglob("*.md"))]
TRANSPORTS = ROOT / "docs/reference/transports.md"
NAMES = [page.relative_to(ROOT).as_posix() for page in PAGES]

SET_UP = [
    "python3 -m venv .venv && .venv/bin/pip install . && .venv/bin/openai-responses-mcp demo",
    "python3 -m venv .venv-dev && .venv-dev/bin/pip install nox && .venv-dev/bin/nox -s tests",
]
COSTS = (
    r"For (\S+), ([\d,]+) tokens read, ([\d,]+) written and (\d+) searches, at the prices of (\S+), "
    r"that is about (\d+) cents\."
)
# Read by clients, by httpx and by Python's TLS, and none of ours.
VARIABLES_OF_OTHERS = {
    "NO_COLOR",
    *("MCP_TIMEOUT", "MCP_TOOL_TIMEOUT"),
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR"),
}
WAIT = 30.0  # seconds; a bound for a stuck machine, not an expectation

every_page = pytest.mark.parametrize("name", NAMES)


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reach the fake API directly, wherever the tests run."""
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "127.0.0.1")


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def blocks(text: str, language: str = r"\w*") -> list[str]:
    """Return what stands in the fenced blocks of a language, by default of any."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def between(text: str, mark: str) -> str:
    """Return the one fenced block between `<!-- mark: begin -->` and `<!-- mark: end -->`."""
    found = re.search(rf"<!-- {mark}: begin -->\n```text\n(.*?)```\n<!-- {mark}: end -->", text, re.DOTALL)
    assert found is not None, f"the marks of {mark} are missing"
    return found[1]


def section(text: str, title: str) -> str:
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert found is not None, f"there is no section {title}"
    return found[1]


def rows(table: str) -> list[list[str]]:
    """Return the cells of a Markdown table, without its head."""
    lines = [line for line in table.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def words_in_code(text: str) -> Iterator[str]:
    """Yield what stands between backticks outside of fenced blocks."""
    yield from re.findall(r"`([^`\n]+)`", without_blocks(text))


def without_blocks(text: str) -> str:
    """Return the text without what stands in fenced blocks."""
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def anchor(heading: str) -> str:
    """Return the fragment that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


@every_page
def test_every_relative_link_leads_to_a_file_and_a_heading(name: str) -> None:
    page = ROOT / name
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", without_blocks(text_of(name))):
        if "://" in target:
            continue
        file, _, fragment = target.partition("#")
        there = (page.parent / unquote(file)).resolve() if file else page
        headings = re.findall(r"^#+ (.*)$", there.read_text(encoding="utf-8"), re.MULTILINE) if there.is_file() else []
        if not there.exists() or (fragment and fragment not in map(anchor, headings)):
            broken.append(target)
    assert broken == []


def test_the_index_names_every_page() -> None:
    index = text_of("docs/README.md")
    others = [page for page in PAGES if page != ROOT / "docs/README.md"]
    missing = [
        page.name for page in others if f"]({os.path.relpath(page, ROOT / 'docs')})".replace(os.sep, "/") not in index
    ]
    assert missing == []


@pytest.mark.rule("spec 12")
@every_page
def test_every_path_of_the_repository_that_a_page_names_exists(name: str) -> None:
    pattern = r"(?<![\w/.-])(?:responses_mcp|tests|config|docs|\.github|\.ci)/[\w./-]*"
    paths = {path.rstrip(".") for path in re.findall(pattern, text_of(name))}
    # The wheel alone has this folder; test_distribution looks into it.
    paths = {path for path in paths if not path.startswith("responses_mcp/examples/")}
    here = {path for path in paths if (ROOT / path).exists()}
    not_shipped = {
        path for path in paths if path.startswith((".ci", ".github", "tests/lab")) and not (ROOT / ".git").exists()
    }
    assert sorted(paths - here - not_shipped) == []


@every_page
def test_every_module_and_member_that_a_page_names_exists(name: str) -> None:
    missing = []
    for dotted in re.findall(r"(?<![\w./])(?:responses_mcp|tests)(?:\.\w+)+", text_of(name)):
        if ".lab." in dotted and not (ROOT / "tests/lab").exists():
            continue  # an unpacked sdist is without
        module, member = dotted, ""
        while find_spec_or_none(module) is None:
            module, _, last = module.rpartition(".")
            member = f"{last}.{member}".rstrip(".")
        found: Any = import_module(module) if member else None
        for part in filter(None, member.split(".")):
            found = getattr(found, part, None)
        if member and found is None:
            missing.append(dotted)
    assert missing == []


def find_spec_or_none(module: str) -> object:
    try:
        return find_spec(module)
    except ModuleNotFoundError:  # its parent is a module, not a package
        return None


def test_every_method_that_the_architecture_names_exists() -> None:
    sources = "\n".join(file.read_text(encoding="utf-8") for file in sorted((ROOT / "responses_mcp").rglob("*.py")))
    named = {word for word in words_in_code(text_of("docs/architecture.md")) if re.fullmatch(r"_?[A-Z]\w+\.\w+", word)}
    ours = {word for word in named if not word.startswith("Trio")}
    missing = []
    for word in sorted(ours):
        owner, method = word.split(".")
        body = re.search(rf"^class {owner}\b.*?(?=^(?:class|def|async def|@)|\Z)", sources, re.MULTILINE | re.DOTALL)
        if body is None or not re.search(rf"def {method}\(", body[0]):
            missing.append(word)
    assert named
    assert missing == []


def test_the_readme_gives_exactly_two_commands_to_set_up_each_in_a_block_of_its_own() -> None:
    assert blocks(section(text_of("README.md"), "Set up a checkout"), "sh") == [f"{command}\n" for command in SET_UP]


def test_the_demo_prints_what_the_page_shows() -> None:
    def without_figures(line: str) -> str:
        return re.sub(r"[0-9]+", "0", line.strip())

    command = [sys.executable, "-m", "responses_mcp", "demo"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, encoding="utf-8", timeout=60, check=True)
    printed = [without_figures(line) for line in done.stdout.splitlines()]
    shown = [without_figures(line) for line in between(text_of("docs/reference/commands.md"), "demo").splitlines()]
    shown = [line for line in shown if line != "…"]
    places = [printed.index(line) for line in shown if line in printed]
    assert [line for line in shown if line not in printed] == []
    assert places == sorted(places)


@pytest.mark.parametrize("page", list(help_texts.pages()), ids=lambda page: page.stem)
def test_the_help_of_commands_in_the_pages_is_what_they_print(page: Path) -> None:
    # `python -m tests.help_texts` brings the pages up to date.
    text = page.read_text(encoding="utf-8")
    assert help_texts.with_help(text) == text


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_each_command_has_a_section_with_its_help(name: str) -> None:
    assert f"<!-- help: {name} -->" in section(text_of("docs/reference/commands.md"), f"`{name}`")


@pytest.mark.parametrize("name", ["begin", *cli.COMMANDS])
def test_each_help_fits_a_screen_and_has_an_example(name: str) -> None:
    lines = help_texts.help_of(name).splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    assert all(line.isascii() for line in lines)
    command = "" if name == "begin" else f" {name}"
    assert re.search(rf"^(  |examples?: )(?:.* \| )?openai-responses-mcp{command}\b", "\n".join(lines), re.MULTILINE)
    assert any(line.startswith(("example:", "examples:")) for line in lines)


@pytest.mark.parametrize(("name", "title"), [("docs/tools.md", "Answers"), ("docs/spec.md", "3. Tools")])
def test_the_tables_of_tools_are_those_that_are_listed(name: str, title: str) -> None:
    tools = AnswerToolset(lambda: Asker(Settings())).tools
    found = [row for row in rows(section(text_of(name), title)) if row[0].startswith("`answer")]
    found = [row for row in found if "`query`" in "".join(row)]
    assert [row[0] for row in found] == [f"`{tool.name}`" for tool in tools]
    for row, tool in zip(found, tools, strict=True):
        arguments = ", ".join(f"`{argument}`" for argument in tool.input_schema["properties"])
        assert arguments in row
        assert name == "docs/tools.md" or tool.description in row


@every_page
def test_every_environment_variable_that_a_page_names_is_read_by_somebody(name: str) -> None:
    ours = {setting.env for setting in SETTINGS} | {"OPENAI_API_KEY"}
    given_as_examples = {"AZURE_OPENAI_KEY", "YOUR_KEY"}
    of_codex = {"ALL_TOOLS"}  # in its JavaScript
    known = ours | VARIABLES_OF_OTHERS | given_as_examples | of_codex
    pattern = r"\b(?:OPENAI|MCP|SEARCH|MODEL|ANSWER|MAX|HTTPS?|ALL|NO|SSL|AZURE|YOUR)_[A-Z_]+\b|\bDEBUG(?==)"
    assert sorted({found for found in re.findall(pattern, text_of(name)) if found not in known}) == []


@pytest.mark.rule("spec 16")
@every_page
def test_no_page_claims_a_version_other_than_that_of_the_package(name: str) -> None:
    without_links = re.sub(r"https?://\S+", "", text_of(name))
    versions = set(re.findall(r"(?<![\d.])v?(\d+\.\d+\.\d+)(?![\d.]|/\d)", without_links)) - {"127.0.0.1"}
    assert versions <= {responses_mcp.__version__}


def test_the_sections_of_the_specification_are_numbered_like_those_that_it_implements() -> None:
    numbers = [int(number) for number in re.findall(r"^## (\d+)\. ", text_of("docs/spec.md"), re.MULTILINE)]
    assert numbers == [*range(14), 15, 16, 17]


@pytest.mark.rule("spec 11", "spec 16")
def test_the_changelog_starts_with_unreleased_and_its_releases_fall_in_date() -> None:
    first, *releases = re.findall(r"^## (.*)$", text_of("docs/changelog.md"), re.MULTILINE)
    assert first == "Unreleased"
    matches = [re.fullmatch(r"v\d+\.\d+\.\d+ — (\d{4}-\d{2}-\d{2})", release) for release in releases]
    dates = [date.fromisoformat(match[1]) for match in matches if match]
    assert len(dates) == len(releases)
    assert dates == sorted(dates, reverse=True)


@pytest.mark.rule("spec 17")
def test_the_pages_name_every_session_of_nox_and_no_other() -> None:
    sessions = set(re.findall(r"^@nox\.session.*\ndef (\w+)\(", text_of("noxfile.py"), re.MULTILINE))
    verified = {
        row[0].strip("`").removeprefix("nox -s ") for row in rows(section(text_of("docs/verification.md"), "Sessions"))
    }
    assert verified == sessions


@every_page
def test_every_example_in_json_and_toml_can_be_read(name: str) -> None:
    import tomllib

    for example in blocks(text_of(name), "json"):
        json.loads(example)
    for example in blocks(text_of(name), "toml"):
        tomllib.loads(example)


async def test_the_exchange_in_the_page_on_transports_is_what_happens() -> None:
    sent: list[dict[str, Any]] = []
    expected: list[dict[str, Any]] = []
    for line in between(TRANSPORTS.read_text(encoding="utf-8"), "exchange").splitlines():
        (sent if line[0] == "→" else expected).append(json.loads(line[2:]))
    with trio.fail_after(WAIT):
        async with open_fake_api() as api, connected_client(settings_for(api.base_url), initialize=False) as client:
            heard = []
            for message in sent:
                await client.send(message)
                if "id" in message:
                    heard.append(await client.response(message["id"]))
    assert heard == expected


def settings_for(base_url: str, *, debug: bool = False) -> Settings:
    return Settings(
        openai=OpenAISettings(base_url=base_url, api_key="test-key-0123456789"),
        request=RequestSettings(max_retries=0),
        server=ServerSettings(debug=debug),
    )


async def first_error(client: McpClient) -> Any:
    with trio.fail_after(WAIT):
        return (await client.call("answer", {"query": "Why?"}))["error"]


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("README.md", COSTS),
        ("docs/costs.md", COSTS),
        (
            "README.ja.md",
            r"([a-z0-9.-]+) で ([\d,]+) トークンを読み、([\d,]+) トークンを書き、(\d+) 回検索すると、(\S+) の価格で 約 (\d+) セント",
        ),
    ],
)
def test_what_a_question_costs_is_computed_from_the_table_of_prices(page: str, said: str) -> None:
    found = re.findall(said, " ".join(text_of(page).split()))
    assert found
    for model, read, wrote, searches, day, cents in found:
        taken, given, searched = (int(count.replace(",", "")) for count in (read, wrote, searches))
        assert (model, day) == (Profile().model, AS_OF)
        cost = PriceList({}).cost(model, Usage(input_tokens=taken, output_tokens=given, web_searches=searched))
        assert f"{cost:.2f}" == f"{int(cents) / 100:.2f}"


async def test_the_error_with_details_in_the_page_on_transports_is_what_debugging_gives() -> None:
    [shown] = [block for block in blocks(TRANSPORTS.read_text(encoding="utf-8"), "json") if '"status"' in block]
    async with open_fake_api(Error(500)) as api, connected_client(settings_for(api.base_url, debug=True)) as client:
        assert await first_error(client) == json.loads(shown)


@posix  # where the folders of Windows are is tested with the settings
def test_all_that_is_left_on_disk_is_named_on_the_page_about_installing(tmp_path: Path) -> None:
    (tmp_path / ".cursor").mkdir()
    (tmp_path / ".cursor/mcp.json").write_text("{}", encoding="utf-8")
    (tmp_path / "manuals/guide").mkdir(parents=True)
    (tmp_path / "manuals/guide/a.md").write_text("# Door", encoding="utf-8")
    before = set(tmp_path.rglob("*"))
    folder = str(tmp_path / "manuals")
    for arguments in (["install", "cursor", "--write"], ["manuals", "index"], ["manuals", "find", "door"]):
        assert run(tmp_path, *arguments, MANUALS_ROOT=folder).returncode == 0
    assert run(tmp_path, "--stdio", stdin=HANDSHAKE + CALL, DEBUG=str(tmp_path / "debug.log")).returncode == 0
    listing = HANDSHAKE + CALL.replace(b'"answer"', b'"research_list"')
    key = "sk-test-0123456789"
    assert run(tmp_path, "--stdio", MCP_TOOLSETS="research", OPENAI_API_KEY=key, stdin=listing).returncode == 0
    left = {file.relative_to(tmp_path).as_posix() for file in set(tmp_path.rglob("*")) - before if file.is_file()}
    named = rows(section(text_of("docs/reference/installation.md"), "What is left on disk"))
    assert [row[0].split("`")[1] for row in named if "`" in row[0]] == [
        "HASH-VERSION.sqlite3",
        "research.sqlite3",
        "usage.sqlite3",
        "NAME.bak",
        "config.yaml",
    ]
    [runs] = [name for name in left if name.endswith("research.sqlite3")]
    [index] = [name for name in left - {runs} if name.endswith(".sqlite3")]
    assert re.fullmatch(r"(\.local/state|Library/Application Support)/openai-responses-mcp/research\.sqlite3", runs)
    assert re.fullmatch(r"(\.cache|Library/Caches)/openai-responses-mcp/[0-9a-f]{24}-\d+\.sqlite3", index)
    assert left == {runs, index, ".cursor/mcp.json.bak", "debug.log"}
