"""What is published: wheel, sdist, metadata, lock file, registry entry, container, and the command that others run.

Builds both distributions from the checkout, or checks those in the folder that the environment names in DISTRIBUTIONS.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email.message import Message
from email.parser import BytesParser
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

import responses_mcp
from responses_mcp.settings.schema import SETTINGS

pytestmark = [pytest.mark.rule("spec 15", "spec 16", "spec 17")]

ROOT = Path(__file__).parent.parent
VERSION = responses_mcp.__version__
DIST_INFO = f"openai_responses_mcp-{VERSION}.dist-info"
EXAMPLES = {
    "config/config.yaml.example": "responses_mcp/examples/config.yaml.example",
    "config/policy.md.example": "responses_mcp/examples/policy.md.example",
}
REPOSITORY = "https://github.com/uchimanajet7/openai-responses-mcp"
UV = shutil.which("uv", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))
DURATIONS = ("README.md", "docs/contributing.md")
TEST_COMMAND = "python3 -m venv .venv-dev && .venv-dev/bin/pip install nox && .venv-dev/bin/nox -s tests"


@pytest.fixture(scope="session")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    given = os.environ.get("DISTRIBUTIONS")
    if given:
        return Path(given)
    folder = tmp_path_factory.mktemp("dist")
    # Without an isolated environment: nothing is downloaded.
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(folder)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    return folder


@pytest.fixture(scope="session")
def wheel(distributions: Path) -> dict[str, bytes]:
    """Return the files of the wheel, by name."""
    with zipfile.ZipFile(distributions / f"openai_responses_mcp-{VERSION}-py3-none-any.whl") as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture(scope="session")
def sdist(distributions: Path) -> dict[str, bytes]:
    """Return the files of the sdist, by their name below its folder."""
    folder = f"openai_responses_mcp-{VERSION}"
    files: dict[str, bytes] = {}
    with tarfile.open(distributions / f"{folder}.tar.gz") as archive:
        for member in archive:
            content = archive.extractfile(member)
            assert content is not None, f"{member.name} is no plain file"
            files[member.name.removeprefix(f"{folder}/")] = content.read()
    return files


@pytest.fixture(scope="session")
def metadata(wheel: dict[str, bytes]) -> Message:
    return BytesParser().parsebytes(wheel[f"{DIST_INFO}/METADATA"])


def source_files() -> set[str]:
    files = (ROOT / "responses_mcp").rglob("*")
    return {file.relative_to(ROOT).as_posix() for file in files if file.is_file() and "__pycache__" not in file.parts}


def test_the_wheel_holds_the_package_and_the_examples_as_they_are_here_the_licence_and_nothing_else(
    wheel: dict[str, bytes],
) -> None:
    pairs = {name: name for name in source_files()} | EXAMPLES
    assert {name for name in wheel if not name.startswith(f"{DIST_INFO}/")} == set(pairs.values())
    assert [source for source, name in pairs.items() if wheel[name] != (ROOT / source).read_bytes()] == []
    assert wheel[f"{DIST_INFO}/licenses/LICENSE"] == (ROOT / "LICENSE").read_bytes()
    assert "responses_mcp/py.typed" in wheel


def test_installing_the_wheel_gives_the_one_command(wheel: dict[str, bytes]) -> None:
    lines = wheel[f"{DIST_INFO}/entry_points.txt"].decode().splitlines()
    assert [line for line in lines if line] == [
        "[console_scripts]",
        "openai-responses-mcp = responses_mcp.__main__:main",
    ]


def test_the_metadata_names_the_distribution_as_agreed(metadata: Message) -> None:
    assert metadata["Name"] == "openai-responses-mcp"
    assert metadata["Version"] == VERSION
    assert re.fullmatch(r"\d+\.\d+\.\d+", VERSION)
    assert metadata["Summary"] == "Lightweight MCP server (Responses API core). OpenAI integration + web_search."
    assert metadata["License-Expression"] == "MIT"
    assert metadata["License-File"] == "LICENSE"
    assert metadata["Requires-Python"] == ">=3.11"
    assert "mcp" in metadata["Keywords"].split(",")


def test_the_metadata_links_to_the_repository(metadata: Message) -> None:
    links = dict(link.split(", ", 1) for link in metadata.get_all("Project-URL", []))
    assert links == {
        "Homepage": f"{REPOSITORY}#readme",
        "Repository": REPOSITORY,
        "Issues": f"{REPOSITORY}/issues",
        "Changelog": f"{REPOSITORY}/blob/main/docs/changelog.md",
    }


def test_installing_brings_three_packages_and_extras_for_pdf_and_word_vectors(metadata: Message) -> None:
    requirements = metadata.get_all("Requires-Dist", [])
    always = [requirement for requirement in requirements if ";" not in requirement]
    assert sorted(re.split(r"[^\w-]", requirement)[0] for requirement in always) == ["httpx", "pyyaml", "trio"]
    assert metadata.get_all("Provides-Extra") == ["documents", "semantic"]
    documents, semantic = sorted(set(requirements) - set(always))
    assert re.fullmatch(r"pypdfium2>=[\d.]+ ?; ?extra == ['\"]documents['\"]", documents)
    assert re.fullmatch(r"wordllama>=[\d.]+ ?; ?extra == ['\"]semantic['\"]", semantic)


def test_the_readme_is_the_description_on_pypi(metadata: Message) -> None:
    assert metadata["Description-Content-Type"] == "text/markdown"
    payload = metadata.get_payload(decode=True)
    assert isinstance(payload, bytes)
    assert "\n".join(payload.decode().splitlines()).strip() == (ROOT / "README.md").read_text(encoding="utf-8").strip()


def test_the_sdist_holds_what_it_takes_to_build_and_test_and_nothing_else(sdist: dict[str, bytes]) -> None:
    assert sdist.keys() >= {*EXAMPLES, *source_files(), "tests/conftest.py"}
    folders = {"responses_mcp", "config", "docs", "tests"}
    files = {"README.md", "LICENSE", "pyproject.toml", "noxfile.py", "PKG-INFO"}
    assert {name.partition("/")[0] for name in sdist} - {".gitignore"} == folders | files
    assert [name for name in sdist if name.endswith(".pyc") or {"__pycache__", "lab"} & {*name.split("/")}] == []


def test_the_command_for_the_tests_is_the_one_that_is_run_on_every_change() -> None:
    # An unpacked sdist has no .ci, and this holds for each of the two that is there.
    texts = {
        name: (ROOT / name).read_text(encoding="utf-8") for name in ("README.md", ".ci/run") if (ROOT / name).exists()
    }
    assert [name for name, text in texts.items() if TEST_COMMAND not in text] == []


def test_the_pages_name_one_duration_of_the_tests_which_their_session_says_too() -> None:
    said = {name: re.findall(r"about \d+ minutes on two cores", of_the_checkout(name)) for name in DURATIONS}
    assert [len(each) for each in said.values()] == [1, 1]
    assert len({each[0] for each in said.values()}) == 1


@pytest.fixture(scope="session")
def lock() -> dict[str, Any]:
    file = ROOT / "uv.lock"
    if not file.exists() and not (ROOT / ".git").exists():
        pytest.skip("the lock file is for developers: an sdist has none")
    return tomllib.loads(file.read_text(encoding="utf-8"))


def test_the_lock_file_takes_everything_from_the_public_index(lock: dict[str, Any]) -> None:
    others = [package for package in lock["package"] if package["name"] != "openai-responses-mcp"]
    assert {tuple(package["source"].items()) for package in others} == {(("registry", "https://pypi.org/simple"),)}
    files = [file for package in others for file in [*package.get("wheels", []), package.get("sdist")] if file]
    assert {urlsplit(file["url"])[:2] for file in files} == {("https", "files.pythonhosted.org")}
    assert all(file["hash"].startswith("sha256:") for file in files)


@pytest.mark.skipif(UV is None, reason="uv is not installed; it is in the group `test`")
def test_the_lock_file_fits_every_dependency_and_group_of_the_project(tmp_path: Path) -> None:
    of_the_checkout("uv.lock")
    # With nothing in its cache and no network it can only compare. After a change: `uv lock`.
    command = [str(UV), "lock", "--check", "--offline", "--cache-dir", str(tmp_path), "--python", sys.executable]
    checked = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert checked.returncode == 0, checked.stderr


def of_the_checkout(name: str) -> str:
    if not (ROOT / name).exists() and not (ROOT / ".git").exists():
        pytest.skip("an sdist has only what the package is built from")
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.fixture(scope="session")
def entry() -> dict[str, Any]:
    """Return the entry of the MCP registry."""
    found: dict[str, Any] = json.loads(of_the_checkout("server.json"))
    return found


def test_the_registry_entry_is_about_this_version_on_pypi(entry: dict[str, Any]) -> None:
    [package] = entry["packages"]
    assert (entry["version"], package["version"]) == (VERSION, VERSION)
    assert (package["registryType"], package["identifier"]) == ("pypi", "openai-responses-mcp")
    assert entry["repository"] == {"url": REPOSITORY, "source": "github"}


def test_the_readme_proves_to_the_registry_whose_package_this_is(metadata: Message, entry: dict[str, Any]) -> None:
    payload = metadata.get_payload(decode=True)
    assert isinstance(payload, bytes)
    assert f"<!-- mcp-name: {entry['name']} -->" in payload.decode().splitlines()
    owner = urlsplit(REPOSITORY).path.split("/")[1]
    assert entry["name"] == f"io.github.{owner}/openai-responses-mcp"


def test_the_registry_entry_keeps_the_limits_of_its_schema(entry: dict[str, Any]) -> None:
    assert re.fullmatch(
        r"https://static\.modelcontextprotocol\.io/schemas/[\d-]{10}/server\.schema\.json", entry["$schema"]
    )
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", entry["name"])
    assert 1 <= len(entry["description"]) <= 100
    assert 1 <= len(entry["title"]) <= 100


def test_the_registry_entry_starts_the_server_and_calls_the_key_a_secret(entry: dict[str, Any]) -> None:
    [package] = entry["packages"]
    assert package["transport"] == {"type": "stdio"}
    assert [argument["value"] for argument in package["packageArguments"]] == ["--stdio"]
    key, *others = package["environmentVariables"]
    assert (key["name"], key["isRequired"], key["isSecret"]) == ("OPENAI_API_KEY", True, True)
    assert not [variable for variable in others if "value" in variable or variable.get("isRequired")]


def test_the_registry_entry_says_of_a_setting_what_the_schema_says(entry: dict[str, Any]) -> None:
    settings = {setting.env: setting for setting in SETTINGS}
    values = {
        line.split("|")[4].strip(" `"): line.split("|")[3].strip(" `")
        for line in (ROOT / "docs/reference/config-reference.md").read_text(encoding="utf-8").splitlines()
        if line.startswith("| `")
    }
    [package] = entry["packages"]
    for variable in package["environmentVariables"]:
        if variable["name"] != "OPENAI_API_KEY":
            setting = settings[variable["name"]]
            assert variable.get("choices", []) == list(getattr(setting.form, "choices", ()))
            assert variable.get("default", "not set") == values[variable["name"]]


def test_the_page_says_what_it_means_that_the_registry_starts_it_with_uvx(entry: dict[str, Any]) -> None:
    [package] = entry["packages"]
    page = of_the_checkout("docs/reference/installation.md")
    assert f"The entry in the MCP registry uses {package['runtimeHint']}" in " ".join(page.split())


def instructions(containerfile: str) -> list[tuple[str, str]]:
    lines = [line for line in containerfile.splitlines() if line and not line.startswith("#")]
    return [(line.partition(" ")[0], line.partition(" ")[2]) for line in lines]


def test_the_container_serves_without_rights_on_a_base_that_is_named_by_its_tag(entry: dict[str, Any]) -> None:
    steps = instructions(of_the_checkout("Dockerfile"))
    bases = [value.removesuffix(" AS build") for name, value in steps if name == "FROM"]
    assert len(set(bases)) == 1  # what is built for one Python runs on that Python
    assert re.fullmatch(r"docker\.io/library/python:3\.\d+-slim-\w+", bases[0])
    assert steps[-1] == ("ENTRYPOINT", '["openai-responses-mcp", "--stdio"]')
    last_stage = dict(steps[[name for name, _ in steps].index("FROM", 1) :])
    assert int(last_stage["USER"]) > 0
    assert last_stage["LABEL"] == f'io.modelcontextprotocol.server.name="{entry["name"]}"'


def test_the_container_is_built_from_files_that_are_there_and_from_no_others() -> None:
    steps = instructions(of_the_checkout("Dockerfile"))
    copied = [
        source for name, value in steps if name == "COPY" and "--from" not in value for source in value.split()[:-1]
    ]
    assert [source for source in copied if not (ROOT / source).exists()] == []
    assert set(copied) == {"pyproject.toml", "uv.lock", "README.md", "LICENSE", "config", "responses_mcp"}
