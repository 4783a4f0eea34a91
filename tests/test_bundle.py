"""The bundle (.mcpb) that Claude Desktop and others install: what is in it, what its manifest says, and that it starts.

The last needs uv and the network: `nox -s bundle` names the bundle that it has built in BUNDLE.
"""

import json
import os
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest
import trio

from responses_mcp import __version__
from responses_mcp.asking import Asker
from responses_mcp.settings import Settings, load_settings
from responses_mcp.settings.schema import SETTINGS
from responses_mcp.testing import Hang, open_fake_api
from responses_mcp.testing.client import McpClient
from responses_mcp.toolsets.answer import AnswerToolset
from tests import published
from tests.bundle import ROOT, pack
from tests.processes import program

KEY = "sk-bundle-0123456789"
INSTALLED_IN = 120.0  # seconds that uv is given to fetch and install; clients give one minute
ANSWERS_IN = 10.0

pytestmark = [
    pytest.mark.skipif(not (ROOT / "uv.lock").exists(), reason="bundles are packed in a checkout"),
]


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return pack(tmp_path_factory.mktemp("bundle"))


@pytest.fixture(scope="module")
def files(bundle: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(bundle) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture(scope="module")
def manifest(files: dict[str, bytes]) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(files["manifest.json"])
    return found


def test_what_is_published_beside_the_package_says_what_the_package_says() -> None:
    # `python -m tests.published` brings the files up to date.
    texts = {file: file.read_text(encoding="utf-8") for file in published.FILES}
    assert {file: published.with_facts(text) for file, text in texts.items()} == texts


def test_one_command_brings_another_version_into_all_that_is_published(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(published, "__version__", "1.2.3")
    entry, manifest, *plugins = (
        json.loads(published.with_facts(file.read_text(encoding="utf-8"))) for file in published.FILES
    )
    assert [entry["version"], entry["packages"][0]["version"], manifest["version"]] == ["1.2.3"] * 3
    assert [plugin["version"] for plugin in plugins] == ["1.2.3"] * 2


def test_packing_twice_gives_the_same_bytes(bundle: Path, tmp_path: Path) -> None:
    assert pack(tmp_path / "again").read_bytes() == bundle.read_bytes()


def test_the_bundle_holds_the_package_and_what_installing_it_needs(files: dict[str, bytes]) -> None:
    others = {name for name in files if not name.startswith("responses_mcp/")}
    assert others == {
        *("manifest.json", "pyproject.toml", "uv.lock", "README.md", "LICENSE"),
        *("config/config.yaml.example", "config/policy.md.example"),
    }
    assert {"responses_mcp/__main__.py", "responses_mcp/py.typed"} < files.keys()
    assert not [name for name in files if "__pycache__" in name or ".venv" in name]


def test_the_manifest_is_of_the_kind_that_uv_runs_and_of_the_version_of_the_package(
    manifest: dict[str, Any], files: dict[str, bytes]
) -> None:
    assert (manifest["manifest_version"], manifest["server"]["type"]) == ("0.4", "uv")
    assert (manifest["name"], manifest["version"]) == ("openai-responses-mcp", __version__)
    assert manifest["server"]["entry_point"] in files


def test_the_key_is_a_secret_of_the_client_and_reaches_the_server_in_its_environment_only(
    manifest: dict[str, Any],
) -> None:
    assert manifest["user_config"]["api_key"]["sensitive"] is True
    config = manifest["server"]["mcp_config"]
    assert config["env"]["OPENAI_API_KEY"] == "${user_config.api_key}"
    assert "user_config" not in " ".join(config["args"])


def test_what_the_user_need_not_fill_in_reaches_the_server_as_nothing(manifest: dict[str, Any], tmp_path: Path) -> None:
    optional = {name: each for name, each in manifest["user_config"].items() if not each["required"]}
    assert {name: (each["type"], each["default"]) for name, each in optional.items()} == {
        "manuals": ("directory", ""),
        "toolsets": ("string", ""),
    }
    env = manifest["server"]["mcp_config"]["env"]
    unfilled = {name: "" if "user_config" in text else text for name, text in env.items()}
    settings = load_settings(unfilled, home=tmp_path).settings
    assert (settings.toolsets, settings.manuals.root, settings.problems) == (("answer",), None, ())
    filled = load_settings(
        {"MANUALS_ROOT": str(Path("/m").absolute()), "MCP_TOOLSETS": "answer,manuals,search"}, home=tmp_path
    ).settings
    assert (env["MANUALS_ROOT"], env["MCP_TOOLSETS"]) == ("${user_config.manuals}", "${user_config.toolsets}")
    assert (filled.toolsets, filled.manuals.root) == (("answer", "manuals", "search"), str(Path("/m").absolute()))


def test_the_manifest_sets_only_variables_that_the_server_or_uv_reads(manifest: dict[str, Any]) -> None:
    known = {setting.env for setting in SETTINGS} | {"OPENAI_API_KEY", "UV_SYSTEM_CERTS"}
    assert manifest["server"]["mcp_config"]["env"].keys() <= known


def test_failed_tools_are_told_as_they_are_without_a_bundle(manifest: dict[str, Any]) -> None:
    assert "MCP_TOOL_ERRORS" not in manifest["server"]["mcp_config"]["env"]


def test_the_server_gives_up_before_the_client_that_bundles_are_for(manifest: dict[str, Any]) -> None:
    assert int(manifest["server"]["mcp_config"]["env"]["OPENAI_API_TIMEOUT"]) < 60_000


def test_the_manifest_names_the_tools_that_are_always_there_and_says_that_there_may_be_more(
    manifest: dict[str, Any],
) -> None:
    first = [
        (tool.name, tool.description.partition(". ")[0].rstrip("."))
        for tool in AnswerToolset(lambda: Asker(Settings())).tools
    ]
    assert [(tool["name"], tool["description"].rstrip(".")) for tool in manifest["tools"]] == first
    assert manifest["tools_generated"] is True


@pytest.mark.skipif("BUNDLE" not in os.environ, reason="needs uv and the network: nox -s bundle")
async def test_the_command_in_the_manifest_installs_and_serves_with_the_key_of_the_client(tmp_path: Path) -> None:
    folder, home = tmp_path / "extension", tmp_path / "home"
    home.mkdir()
    with zipfile.ZipFile(os.environ["BUNDLE"]) as archive:
        archive.extractall(folder)
    manifest = json.loads((folder / "manifest.json").read_bytes())
    config, config_of_user = manifest["server"]["mcp_config"], manifest["user_config"]

    def filled(text: str) -> str:
        text = text.replace("${__dirname}", str(folder)).replace("${user_config.api_key}", KEY)
        for name in ("manuals", "toolsets"):
            text = text.replace(f"${{user_config.{name}}}", config_of_user[name]["default"])
        assert not re.search(r"\$\{", text)
        return text

    # As little as desktop programs hand on; what uv must know of certificates is for the manifest to say.
    passed_on = {name: os.environ[name] for name in os.environ if name.startswith(("PATH", "HTTPS_PROXY", "UV_"))}
    async with open_fake_api(Hang()) as api:
        env = passed_on | {name: filled(value) for name, value in config["env"].items()}
        env |= {"HOME": str(home), "NO_PROXY": "127.0.0.1", "OPENAI_BASE_URL": api.base_url}
        command = [config["command"], *map(filled, config["args"])]
        running = program(command, grace=ANSWERS_IN, cwd=home, env=env)
        async with running as (process, stdin, stdout), trio.open_nursery() as nursery:
            client = McpClient(stdout, stdin)
            nursery.start_soon(client.listen)
            with trio.fail_after(INSTALLED_IN):
                hello = await client.initialize()
            with trio.fail_after(ANSWERS_IN):
                tools = await client.ask("tools/list")
                await client.start_call("answer", {"query": "Why?"})
                await api.wait_requests(1)
            process.terminate()
            nursery.cancel_scope.cancel()
    assert hello["result"]["serverInfo"]["version"] == __version__
    assert {"answer", "answer_detailed", "answer_quick"} <= {tool["name"] for tool in tools["result"]["tools"]}
    assert api.requests[0].headers["authorization"] == f"Bearer {KEY}"
