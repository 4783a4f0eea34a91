"""Whose entry it is: ours by its name, or by a command of which a word is this program; never one of others."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_mcp.commands.clients.entries import Entry, find_entries, starting_words
from responses_mcp.commands.clients.known import CLIENTS, Machine

NAME = "openai-responses-mcp"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (f"{NAME} --stdio", 1),
        (f"/opt/x/bin/{NAME}", 1),
        (f"C:\\x\\{NAME}.exe --stdio", 1),
        (f"uvx {NAME} --stdio", 2),
        (f"uvx --python 3.12 {NAME}==1.0 --stdio", 4),
        (f"uvx --from git+https://x.example/{NAME} {NAME} --stdio", 4),
        (f"uvx git+https://x.example/{NAME}.git@v1 --stdio", 2),
        (f"/home/me/.local/bin/uvx --from /src/{NAME} {NAME}[words]", 4),
        (f"uv run --directory /src/{NAME} {NAME} --stdio", 5),
        (f"uv tool run {NAME}", 4),
        (f"pipx run --spec . {NAME}", 5),
        (f"cmd /c {NAME}.cmd", 3),
        (f"env A=1 B=/x/{NAME} /opt/{NAME}", 4),
        ("python3 -m responses_mcp --stdio", 3),
        ("C:\\py\\python.exe -I -m responses_mcp", 4),
        (f"npx -y {NAME}@latest", 3),
        (f"node /src/{NAME}/dist/index.js", 2),
        # Servers of others that are told of a folder, a project or an address of this name.
        (f"uvx mcp-server-git --repository /home/me/{NAME}", None),
        (f"uvx mcp-server-git --repository=/home/me/{NAME}", None),
        (f"uvx --directory /home/me/{NAME} other-server", None),
        (f"uv --directory=/src/{NAME} run server.py --stdio", None),
        (f"npx -y mcp-remote https://gitmcp.io/uchimanajet7/{NAME}", None),
        (f"npx -y @modelcontextprotocol/server-filesystem ~/{NAME}", None),
        (f"npx --prefix /x/{NAME} other-server", None),
        (f"npx -y @somebody/{NAME}", None),
        (f"docker run -i --name {NAME} mcp/git", None),
        (f"uvx basic-memory mcp --project {NAME}", None),
        (f"env A=/x/{NAME} other", None),
        (f"sudo -u {NAME} other", None),
        (f"/opt/{NAME}/bin/other-server", None),
        (f"my-{NAME} --stdio", None),
        ("python3 -m other --with responses_mcp", None),
        ("", None),
    ],
)
def test_a_word_is_the_program_or_the_entry_is_that_of_others(line: str, words: int | None) -> None:
    assert starting_words(line.split()) == words


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(system="linux", home=tmp_path, folder=tmp_path, environ={}, command=(f"/opt/x/{NAME}",))


def entries_of(machine: Machine, servers: object) -> list[Entry]:
    (machine_file := Path(CLIENTS["cursor"].user_file(machine))).parent.mkdir(exist_ok=True)
    machine_file.write_text(json.dumps({"mcpServers": servers}), encoding="utf-8")
    return [each for each in find_entries(machine) if each.scope == "user"]


def test_an_entry_of_our_name_is_ours_unless_it_names_a_server_to_connect_to(machine: Machine) -> None:
    for said, ours in (({"command": "mistyped"}, 1), ({}, 1), ({"url": "https://x.example"}, 0)):
        assert len(entries_of(machine, {"openai-responses": said, "other": {"command": "x"}, "odd": 1})) == ours


known = ["uvx", "npx", "-y", "--from", "run", "--", "-m", "/c", "env", "A=1", "python3", "git+https://x/", "--name"]
others = st.lists(st.sampled_from([*known, f"/x/{NAME}/", "--stdio", f"https://x/{NAME}"]) | st.text(max_size=8))


@given(others, st.sampled_from(["mcp-server-git", "other", "@x/y", "server.py", "https://x.example/y"]))
def test_behind_the_program_of_somebody_else_no_word_makes_an_entry_ours(words: list[str], program: str) -> None:
    assert starting_words([program, *words, NAME]) is None
