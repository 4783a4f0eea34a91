"""`openai-responses-mcp install` as a person uses it: what is shown, and what becomes of a client's file."""

import errno
import json
import os
import re
import stat
import subprocess
import tomllib
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from typing import Any, Literal

import pytest

from responses_mcp.commands.client_files import ClientFile
from responses_mcp.commands.clients import CLIENTS, Machine, Server
from responses_mcp.commands.install import build_parser, run
from responses_mcp.commands.text_edits import Unmergeable
from responses_mcp.settings.schema import SETTINGS
from tests.processes import COMMAND, ROOT, WAIT, environment

KEY = "sk-test-0123456789abcdef"
EVERY = sorted(CLIENTS)
every_client = pytest.mark.parametrize("client", EVERY)
posix_only = pytest.mark.skipif(os.name == "nt", reason="permissions and links as POSIX has them")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return machine_at(tmp_path)


def machine_at(home: Path, **environ: str) -> Machine:
    (home / "project").mkdir(exist_ok=True)
    return Machine(
        system="linux",
        home=home,
        folder=home / "project",
        environ=environ,
        command=("/opt/x/bin/openai-responses-mcp",),
        has_content=lambda path: Path(path).exists(),
    )


def elsewhere(system: Literal["linux", "mac", "windows"], *older: str, **environ: str) -> Machine:
    """Return a machine of a system, where only the files `older` exist."""
    kind: type[PurePath] = PureWindowsPath if system == "windows" else PurePosixPath
    home = {"linux": "/home/ann", "mac": "/Users/ann", "windows": "C:\\Users\\ann"}[system]
    return Machine(
        system=system,
        home=kind(home),
        folder=kind(home, "project"),
        environ=environ,
        command=("x",),
        has_content=lambda path: str(path) in older,
    )


def read(client: str, text: str) -> dict[str, Any]:
    return tomllib.loads(text) if CLIENTS[client].dialect == "toml" else json.loads(text)


def entry_in(client: str, text: str, name: str = "openai-responses") -> dict[str, Any]:
    entry = read(client, text)[CLIENTS[client].container][name]
    assert isinstance(entry, dict)
    return entry


def file_of(client: str, machine: Machine) -> Path:
    return Path(CLIENTS[client].user_file(machine))


def put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


# Where the files are


@pytest.mark.parametrize(
    ("client", "machine", "path"),
    [
        ("claude-code", elsewhere("linux"), "/home/ann/.claude.json"),
        ("claude-code", elsewhere("windows"), "C:\\Users\\ann\\.claude.json"),
        ("claude-code", elsewhere("linux", CLAUDE_CONFIG_DIR="/c"), "/c/.claude.json"),
        ("claude-code", elsewhere("linux", CLAUDE_CONFIG_DIR=""), "/home/ann/.claude.json"),
        ("claude-code", elsewhere("mac", "/Users/ann/.claude/.config.json"), "/Users/ann/.claude/.config.json"),
        ("claude-code", elsewhere("linux", "/c/.config.json", CLAUDE_CONFIG_DIR="/c"), "/c/.config.json"),
        (
            "claude-desktop",
            elsewhere("mac"),
            "/Users/ann/Library/Application Support/Claude/claude_desktop_config.json",
        ),
        (
            "claude-desktop",
            elsewhere("windows", APPDATA="D:\\Roaming"),
            "D:\\Roaming\\Claude\\claude_desktop_config.json",
        ),
        ("claude-desktop", elsewhere("linux"), "/home/ann/.config/Claude/claude_desktop_config.json"),
        ("cursor", elsewhere("mac"), "/Users/ann/.cursor/mcp.json"),
        ("cursor", elsewhere("windows"), "C:\\Users\\ann\\.cursor\\mcp.json"),
        ("vscode", elsewhere("linux"), "/home/ann/.config/Code/User/mcp.json"),
        ("vscode", elsewhere("linux", XDG_CONFIG_HOME="/x"), "/x/Code/User/mcp.json"),
        ("vscode", elsewhere("mac", XDG_CONFIG_HOME="/x"), "/Users/ann/Library/Application Support/Code/User/mcp.json"),
        ("vscode", elsewhere("windows"), "C:\\Users\\ann\\AppData\\Roaming\\Code\\User\\mcp.json"),
        ("codex", elsewhere("linux"), "/home/ann/.codex/config.toml"),
        ("codex", elsewhere("windows", CODEX_HOME="D:\\codex"), "D:\\codex\\config.toml"),
        ("codex", elsewhere("linux", CODEX_HOME="here"), "/home/ann/project/here/config.toml"),
        ("gemini", elsewhere("linux"), "/home/ann/.gemini/settings.json"),
        ("gemini", elsewhere("linux", GEMINI_CLI_HOME="/g"), "/g/.gemini/settings.json"),
    ],
)
def test_the_file_is_where_the_client_looks_for_it(client: str, machine: Machine, path: str) -> None:
    assert str(CLIENTS[client].user_file(machine)) == path


# What is shown


@every_client
def test_the_snippet_is_shown_and_nothing_is_written(
    client: str, machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([client], machine=machine) == 0
    shown = capsys.readouterr()
    entry = entry_in(client, shown.out)
    assert [entry["command"], *entry["args"]] == ["/opt/x/bin/openai-responses-mcp", "--stdio"]
    assert entry["env"]["MCP_TOOL_ERRORS"] == "result"
    assert f"This is for {file_of(client, machine)}." in shown.err
    assert not file_of(client, machine).exists()


@pytest.mark.parametrize(
    ("client", "reference"),
    [("claude-code", "${OPENAI_API_KEY}"), ("cursor", "${env:OPENAI_API_KEY}"), ("vscode", "${env:OPENAI_API_KEY}"), ("gemini", "$OPENAI_API_KEY")],
)  # fmt: skip
def test_the_key_is_passed_on_by_name(client: str, reference: str) -> None:
    assert CLIENTS[client].entry(Server(command=("x",)))["env"]["OPENAI_API_KEY"] == reference


def test_codex_gets_the_names_of_what_it_does_not_pass_on() -> None:
    entry = CLIENTS["codex"].entry(Server(command=("x",), secrets=("MY_KEY", "MY_HEADER")))
    assert entry["env_vars"] == ["MY_KEY", "MY_HEADER", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE"]
    assert entry["required"] is True


def test_claude_desktop_gets_no_key_and_its_user_is_told(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    assert run(["claude-desktop"], machine=machine) == 0
    shown = capsys.readouterr()
    assert "OPENAI_API_KEY" not in shown.out
    assert 'add "OPENAI_API_KEY" with its value to "env"' in shown.err


@every_client
@pytest.mark.parametrize("more", [[], ["--write"]])
def test_the_value_of_the_key_is_written_nowhere(
    client: str, more: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    machine = machine_at(tmp_path, OPENAI_API_KEY=KEY)
    assert run([client, *more], machine=machine) == 0
    assert run([client, *more], machine=machine) == 0
    shown = capsys.readouterr()
    assert KEY not in shown.out + shown.err
    assert [file for file in tmp_path.rglob("*") if file.is_file() and KEY.encode() in file.read_bytes()] == []


@pytest.mark.parametrize(
    ("client", "server", "limits"),
    [
        ("claude-code", Server(command=("x",)), {"timeout": 330_000}),
        ("claude-code", Server(command=("x",), answer_ms=60_001), {"timeout": 91_000}),
        ("gemini", Server(command=("x",), answer_ms=1_000, search_ms=90_000), {"timeout": 120_000}),
        ("codex", Server(command=("x",), answer_ms=600_000), {"tool_timeout_sec": 630, "startup_timeout_sec": 30}),
        ("vscode", Server(command=("x",)), {"type": "stdio"}),
    ],
)
def test_the_client_waits_a_little_longer_than_the_server(client: str, server: Server, limits: dict[str, Any]) -> None:
    entry = CLIENTS[client].entry(server)
    assert {key: entry[key] for key in limits} == limits


@pytest.mark.parametrize(
    ("server", "env"),
    [
        (Server(command=("x",)), {"OPENAI_API_TIMEOUT": "55000", "ANSWER_EFFORT": "low"}),
        (Server(command=("x",), answer_ms=50_000), {}),
        (Server(command=("x",), answer_ms=50_000, search_ms=90_000), {"SEARCH_MAX_ATTEMPTS": "1"}),
    ],
)
def test_the_server_gives_up_before_the_fixed_limit_of_claude_desktop(server: Server, env: dict[str, str]) -> None:
    assert CLIENTS["claude-desktop"].entry(server)["env"] == {"MCP_TOOL_ERRORS": "result", **env}


def test_every_variable_in_an_entry_is_a_setting_of_the_server() -> None:
    server = Server(command=("x",), secrets=(), search_ms=90_000)
    names = {name for client in CLIENTS.values() for name in client.entry(server)["env"]}
    assert names <= {setting.env for setting in SETTINGS}


def test_options_for_the_server_go_into_the_entry(
    machine: Machine, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "manuals").mkdir()
    put(tmp_path / "project/my.yaml", "openai:\n  api_key_env: GATEWAY_KEY\nrequest:\n  timeout_ms: 70000\n")
    config = str(tmp_path / "project/my.yaml")
    options = ["--toolsets", "answer,manuals", "--manuals-root", str(tmp_path / "manuals"), "--config", config]
    assert run(["claude-code", "--name", "mine", *options], machine=machine) == 0
    entry = entry_in("claude-code", capsys.readouterr().out, "mine")
    assert entry["args"] == ["--stdio", "--config", config, "--toolsets", "answer,manuals"]
    assert entry["env"]["MANUALS_ROOT"] == str(tmp_path / "manuals")
    assert entry["env"]["GATEWAY_KEY"] == "${GATEWAY_KEY}"
    assert "OPENAI_API_KEY" not in entry["env"]
    assert entry["timeout"] == 100_000


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["emacs"], "invalid choice: 'emacs'"),
        (["cursor", "--name", "a b"], "must be 1 to 40 letters"),
        (["cursor", "--name", ""], "must be 1 to 40 letters"),
        (["cursor", "--name", "__proto__"], "must be 1 to 40 letters"),
        ([], "CLIENT"),
    ],
)
def test_a_wrong_command_line_ends_with_2(
    argv: list[str], words: str, machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        run(argv, machine=machine)
    assert ended.value.code == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["claude-desktop", "--scope", "project"], "Claude Desktop has no file for a project"),
        (["cursor", "--toolsets", "manuals"], "manuals.root"),
        (["cursor", "--toolsets", "nonsense"], "nonsense"),
    ],
)
def test_what_the_server_would_refuse_is_refused_at_once(
    argv: list[str], words: str, machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*argv, "--write"], machine=machine) == 2
    shown = capsys.readouterr()
    assert words in shown.err
    assert shown.out == ""


def test_the_help_fits_a_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = build_parser().format_help().splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80


# What is written


@every_client
def test_a_missing_file_is_made_with_its_folders(
    client: str, machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([client, "--write"], machine=machine) == 0
    path = file_of(client, machine)
    assert entry_in(client, path.read_text(encoding="utf-8"))["args"] == ["--stdio"]
    assert {*os.listdir(path.parent)} - {"project"} == {path.name}
    shown = capsys.readouterr()
    assert shown.out == f"openai-responses was added in {path}.\n"
    assert CLIENTS[client].next_step in shown.err


@every_client
def test_what_is_shown_is_what_is_written(
    client: str, machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:  # fmt: skip
    assert run([client], machine=machine) == 0
    shown = capsys.readouterr().out
    assert run([client, "--write"], machine=machine) == 0
    assert file_of(client, machine).read_bytes() == shown.encode()


@every_client
def test_a_second_run_leaves_the_file_untouched(
    client: str, machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([client, "--write"], machine=machine) == 0
    before = file_of(client, machine).stat()
    capsys.readouterr()
    assert run([client, "--write"], machine=machine) == 0
    after = file_of(client, machine).stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert capsys.readouterr().out == (
        f"openai-responses is in {file_of(client, machine)} already; nothing was changed.\n"
    )
    assert run([client], machine=machine) == 0
    assert "has this entry already" in capsys.readouterr().err


EXISTING = {
    "json": '\ufeff{\r\n   "numStartups" : 3,\r\n   "mcpServers":{\r\n      "b" : {"command":"y"}\r\n   },\r\n\r\n   "z": 1.50\r\n}\r\n\r\n',
    "json with comments": '{\n\t// theme\n\t"theme": "GitHub",\n\t"mcpServers": {\n\t\t"b": {"command": "y"} // mine\n\t}\n}',
    "jsonc": '// servers\n{\n    "a": [1,], /* , */\n    "mcpServers": {\n        "b": {"command": "y",}, // mine\n    },\n}',
    "toml": 'model = "gpt-5"  # best\n\n[mcp_servers.b]\ncommand = \'y\'\n\n  [mcp_servers.b.env]\n  A = "1"\n# end',
}


@every_client
def test_all_else_in_a_file_stays_byte_for_byte_and_a_copy_is_kept(
    client: str, machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    known = CLIENTS[client]
    text = EXISTING[known.dialect].replace('"mcpServers"', f'"{known.container}"')
    path = put(file_of(client, machine), text)
    assert run([client, "--write"], machine=machine) == 0
    after = path.read_bytes()
    added = rest_of(after, text.encode())
    assert b"openai-responses" in added
    assert (b"\n" in added.replace(b"\r\n", b"")) is ("\r\n" not in text)
    kept = path.with_name(f"{path.name}.bak")
    assert kept.read_bytes() == text.encode()
    assert f"The file as it was: {kept}" in capsys.readouterr().out


def same_at_the_start(one: bytes, other: bytes) -> int:
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def rest_of(whole: bytes, part: bytes) -> bytes:
    """Return what `whole` has more than `part`, all of which it holds in the same order: at most two pieces."""
    begin = same_at_the_start(whole, part)
    end = same_at_the_start(whole[begin:][::-1], part[begin:][::-1])
    middle, gone = whole[begin : len(whole) - end], part[begin : len(part) - end]
    assert gone in middle, f"{gone!r} was changed"
    return middle


@every_client
def test_another_entry_of_the_name_is_changed_and_the_difference_shown(
    client: str, machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([client, "--write"], machine=machine) == 0
    path = file_of(client, machine)
    put(path, path.read_text(encoding="utf-8").replace("/opt/x/bin", "/old/bin"))
    capsys.readouterr()
    assert run([client], machine=machine) == 0
    told = capsys.readouterr().err
    assert "With --write, this command changes it:" in told
    assert '- command: "/old/bin/openai-responses-mcp"' in told
    assert run([client, "--write"], machine=machine) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[:3] == [
        '  - command: "/old/bin/openai-responses-mcp"',
        '  + command: "/opt/x/bin/openai-responses-mcp"',
        f"openai-responses was changed in {path}.",
    ]


# A line of an entry that is ours, with a comment in it, behind it or around it.
COMMENTED = {
    "toml": ('command = "old"  # why: hidden-key', '# why: hidden-key\ncommand = "old#"', 'command = "old" # a\n# b\n'),
    "json": (
        '/* why: hidden-key */ "command": "old",',
        '// why: hidden-key\n"command": "old//",',
        '"command": "old", // a',
    ),
}
PLAIN = {"toml": 'command = "# old"', "json": '"command": "// /* old */",'}


def commented(client: str, line: str) -> str:
    """Return a file with an entry of that line, and comments around it."""
    container = CLIENTS[client].container
    if CLIENTS[client].dialect == "toml":
        return f"# first\n[{container}.openai-responses]\n{line}\nargs = []\n\n# last\n[z]\na = 1 # z\n"
    return f'{{ // first\n"{container}": {{ // entries\n"openai-responses": {{\n{line}\n"args": []\n}} // last\n}} }}'


@pytest.mark.parametrize("number", range(3))
@pytest.mark.parametrize("client", [client for client in EVERY if CLIENTS[client].dialect != "json"])
def test_comments_inside_an_entry_are_told_to_be_in_the_copy_only(
    client: str, number: int, machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    kind = "toml" if CLIENTS[client].dialect == "toml" else "json"
    path = put(file_of(client, machine), commented(client, COMMENTED[kind][number]))
    assert run([client], machine=machine) == 0
    assert "comments inside it would be left out" in capsys.readouterr().err
    assert run([client, "--write"], machine=machine) == 0
    kept = f"{path}.bak"
    shown = capsys.readouterr().out
    assert f"The comments that were inside it are only in the file as it was: {kept}" in shown
    assert shown.count(kept) == 1
    assert "hidden-key" not in shown
    after = path.read_text(encoding="utf-8")
    assert "hidden-key" not in after
    assert "first" in after
    assert "last" in after


@pytest.mark.parametrize("client", [client for client in EVERY if CLIENTS[client].dialect != "json"])
def test_an_entry_without_comments_loses_none(
    client: str, machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    line = PLAIN["toml" if CLIENTS[client].dialect == "toml" else "json"]
    for text in (commented(client, line), commented(client, line).replace("openai-responses", "other")):
        put(file_of(client, machine), text)
        assert run([client], machine=machine) == 0
        assert run([client, "--write"], machine=machine) == 0
        shown = capsys.readouterr()
        assert "comments inside" not in shown.out + shown.err
        assert "The comments" not in shown.out + shown.err
        assert f"The file as it was: {file_of(client, machine)}.bak" in shown.out


def test_what_its_owner_added_to_an_entry_stays(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    old = {"command": "old", "trust": True, "env": {"MODEL_ANSWER": "gpt-5", "OPENAI_API_KEY": "sk-of-the-owner"}}
    for client in ("claude-desktop", "gemini"):
        path = put(file_of(client, machine), json.dumps({"mcpServers": {"openai-responses": old}}))
        assert run([client, "--write"], machine=machine) == 0
        entry = entry_in(client, path.read_text(encoding="utf-8"))
        assert entry["trust"] is True
        assert entry["env"]["MODEL_ANSWER"] == "gpt-5"
        key = "sk-of-the-owner" if client == "claude-desktop" else "$OPENAI_API_KEY"
        assert entry["env"]["OPENAI_API_KEY"] == key
    shown = capsys.readouterr()
    assert "sk-of-the-owner" not in shown.out + shown.err
    assert "- env.OPENAI_API_KEY: (not shown)" in shown.out


def test_a_key_among_the_arguments_is_not_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    machine = machine_at(tmp_path, OPENAI_API_KEY="a key of ours")
    old = {"command": "x", "args": ["--a", "a key of ours", "--b", "sk-of-somebody-else-0123456789"]}
    for more in ([], ["--write"]):
        put(file_of("cursor", machine), json.dumps({"mcpServers": {"openai-responses": old}}))
        assert run(["cursor", *more], machine=machine) == 0
    shown = capsys.readouterr()
    assert "a key of ours" not in shown.out + shown.err
    assert "sk-of-somebody-else" not in shown.out + shown.err
    assert '- args: ["--a", (not shown), "--b", (not shown)]' in shown.out


@pytest.mark.parametrize(
    "old",
    [
        {"url": "https://mcp.example/sse?key=hidden-key"},
        {"auth": {"token": "hidden-key"}, "bearer_token": "hidden-key"},
        {"command": "KEY=hidden-key npx", "args": ["--key=hidden-key", ["hidden-key"]]},
        {"command": ["npx", "hidden-key"], "args": "hidden-key", "env": ["KEY=hidden-key"]},
        {"command": "npx", "env": {"KEY": {"value": "hidden-key"}}},
        "hidden-key",
        ["hidden-key"],
    ],
)
def test_a_key_anywhere_in_an_entry_of_somebody_else_is_not_shown(
    old: object, machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    for more in ([], ["--write"]):
        put(file_of("cursor", machine), json.dumps({"mcpServers": {"openai-responses": old}}))
        assert run(["cursor", *more], machine=machine) == 0
        shown = capsys.readouterr()
        assert "hidden-key" not in shown.out + shown.err
        assert '+ args: ["--stdio"]' in shown.out + shown.err


def test_variables_that_its_owner_named_for_codex_stay(machine: Machine) -> None:
    path = put(
        file_of("codex", machine),
        "[mcp_servers.openai-responses]\ncommand = 'old'\nenv_vars = ['MY_CA', 'NO_PROXY']\n"
        "[mcp_servers.openai-responses.tools.answer]\napproval_mode = 'approve'\n",
    )
    assert run(["codex", "--write"], machine=machine) == 0
    entry = entry_in("codex", path.read_text(encoding="utf-8"))
    assert entry["env_vars"] == ["OPENAI_API_KEY", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE", "MY_CA"]
    assert entry["tools"] == {"answer": {"approval_mode": "approve"}}


def test_an_entry_for_a_remote_server_is_replaced_as_a_whole(machine: Machine) -> None:
    old = {"type": "http", "url": "https://mcp.example", "headers": {"a": "b"}}
    path = put(file_of("cursor", machine), json.dumps({"mcpServers": {"openai-responses": old}}))
    assert run(["cursor", "--write"], machine=machine) == 0
    assert set(entry_in("cursor", path.read_text(encoding="utf-8"))) == {"command", "args", "env"}


@every_client
def test_a_file_that_cannot_be_read_is_left_alone(
    client: str, machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    path = put(file_of(client, machine), '{\n  "a": \n')
    assert run([client], machine=machine) == 0
    assert "line" in capsys.readouterr().err
    assert run([client, "--write"], machine=machine) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert re.search(rf"{re.escape(str(path))} was left alone: it is not valid (JSON|TOML) \(.*line \d", shown.err)
    assert path.read_text(encoding="utf-8") == '{\n  "a": \n'
    assert not path.with_name(f"{path.name}.bak").exists()


@pytest.mark.parametrize(
    ("content", "words"),
    [(b'{"a": "\xff"}', "it is not UTF-8 (at byte 7)"), ('{"a": 1}'.encode("utf-16"), "it is not UTF-8 (at byte 0)")],
)
def test_a_file_in_another_encoding_is_left_alone(
    content: bytes, words: str, machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    path = file_of("claude-code", machine)
    path.write_bytes(content)
    assert run(["claude-code", "--write"], machine=machine) == 1
    assert words in capsys.readouterr().err
    assert path.read_bytes() == content


def test_a_folder_in_place_of_the_file_is_left_alone(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    file_of("claude-code", machine).mkdir()
    assert run(["claude-code", "--write"], machine=machine) == 1
    assert "it is not a regular file" in capsys.readouterr().err


def test_a_file_where_a_folder_should_be_is_named(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    put(Path(machine.home) / ".cursor", "")
    assert run(["cursor", "--write"], machine=machine) == 1
    assert "cannot be read or written" in capsys.readouterr().err


@every_client
def test_the_file_of_a_project_is_in_the_working_directory(
    client: str, machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    expected = 2 if CLIENTS[client].project_file is None else 0
    assert run([client, "--scope", "project", "--write"], machine=machine) == expected
    if expected == 0:
        path = Path(machine.folder) / str(CLIENTS[client].project_file)
        assert entry_in(client, path.read_text(encoding="utf-8"))
        assert "The path in it is that of this machine." in capsys.readouterr().err


@pytest.mark.parametrize("given", ["~/other.json", "../other.json"])
def test_another_file_can_be_named(given: str, machine: Machine) -> None:
    assert run(["cursor", "--file", given, "--write"], machine=machine) == 0
    assert entry_in("cursor", (Path(machine.home) / "other.json").read_text(encoding="utf-8"))


@posix_only
def test_the_mode_of_a_file_stays_and_a_link_stays_a_link(machine: Machine) -> None:
    path = file_of("claude-code", machine)
    real = put(Path(machine.home) / "dotfiles/claude.json", "{}")
    real.chmod(0o660)
    path.symlink_to("dotfiles/claude.json")
    assert run(["claude-code", "--write"], machine=machine) == 0
    assert path.is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o660
    assert stat.S_IMODE(real.with_name("claude.json.bak").stat().st_mode) | 0o660 == 0o660
    assert entry_in("claude-code", real.read_text(encoding="utf-8"))
    assert sorted(os.listdir(real.parent)) == ["claude.json", "claude.json.bak"]


@posix_only
def test_a_link_to_nothing_is_filled_and_a_link_to_itself_is_refused(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    path = file_of("claude-code", machine)
    path.symlink_to("later/claude.json")
    assert run(["claude-code", "--write"], machine=machine) == 0
    assert (Path(machine.home) / "later/claude.json").is_file()
    path.unlink()
    path.symlink_to(path.name)
    assert run(["claude-code", "--write"], machine=machine) == 1
    assert "a symbolic link that leads to itself" in capsys.readouterr().err


def test_an_older_copy_is_not_overwritten(tmp_path: Path) -> None:
    path = put(tmp_path / "a.json", "1")
    kept = [ClientFile(path).replace(text) for text in "234"]
    assert [file.name for file in kept if file] == ["a.json.bak", "a.json.bak2", "a.json.bak3"]
    assert [file.read_text(encoding="utf-8") for file in kept if file] == ["1", "2", "3"]
    assert sorted(os.listdir(tmp_path)) == ["a.json", "a.json.bak", "a.json.bak2", "a.json.bak3"]


def test_a_file_that_changed_meanwhile_is_left_alone(tmp_path: Path) -> None:
    path = put(tmp_path / "a.json", "1")
    file = ClientFile(path)
    put(path, "2")
    with pytest.raises(Unmergeable, match="changed meanwhile"):
        file.replace("3")
    assert os.listdir(tmp_path) == ["a.json"]
    assert path.read_text(encoding="utf-8") == "2"


def test_a_file_that_is_changed_while_the_copy_is_written_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(tmp_path / "a.json", "1")
    file, sync = ClientFile(path), os.fsync

    def slow(number: int) -> None:
        sync(number)
        path.write_text("2", encoding="utf-8")

    monkeypatch.setattr(os, "fsync", slow)
    with pytest.raises(Unmergeable, match="changed meanwhile"):
        file.replace("3")
    assert [(each.name, each.read_text(encoding="utf-8")) for each in tmp_path.iterdir()] == [("a.json", "2")]


@pytest.mark.parametrize("good", [0, 1])
def test_a_full_disk_leaves_the_file_and_nothing_beside_it(
    good: int, machine: Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = put(file_of("cursor", machine), "{}")
    left = [None] * good

    def full(_: int) -> None:
        if not left:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        left.pop()

    monkeypatch.setattr(os, "fsync", full)
    assert run(["cursor", "--write"], machine=machine) == 1
    assert os.strerror(errno.ENOSPC).lower() in capsys.readouterr().err
    assert [(each.name, each.read_text(encoding="utf-8")) for each in path.parent.iterdir()] == [("mcp.json", "{}")]


def test_an_interruption_just_before_the_file_is_replaced_leaves_no_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    path = put(tmp_path / "a.json", "1")
    file = ClientFile(path)
    monkeypatch.setattr(Path, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        file.replace("2")
    assert [(each.name, each.read_text(encoding="utf-8")) for each in tmp_path.iterdir()] == [("a.json", "1")]


def test_a_read_only_file_and_one_that_is_far_too_long_are_left_alone(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    path = put(file_of("cursor", machine), "{}")
    path.chmod(0o444)
    assert run(["cursor", "--write"], machine=machine) == 1
    assert f"{path} was left alone: it is read-only" in capsys.readouterr().err
    path.chmod(0o644)
    os.truncate(path, 2**30)
    assert run(["cursor", "--write"], machine=machine) == 1
    assert "it has more than 64 MiB" in capsys.readouterr().err
    assert os.listdir(path.parent) == [path.name]


@posix_only
def test_root_leaves_a_file_to_its_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = put(tmp_path / "a.json", "1")
    path.chmod(0o640)
    given: dict[str, tuple[int, int]] = {}
    monkeypatch.setattr(os, "chown", lambda file, *to: given.update({Path(file).name: to}))
    ClientFile(path).replace("2")
    owner = (path.stat().st_uid, path.stat().st_gid)
    assert given == {"a.json.new": owner, "a.json.bak": owner}
    assert [stat.S_IMODE(each.stat().st_mode) for each in tmp_path.iterdir()] == [0o640, 0o640]


def test_windows_paths_are_escaped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = "C:\\new\\Scripts\\openai-responses-mcp.exe"
    machine = Machine(
        system="windows",
        home=tmp_path,
        folder=tmp_path,
        environ={},
        command=(script,),
        has_content=lambda _: False,
    )
    for client in EVERY:
        assert run([client], machine=machine) == 0
        assert entry_in(client, capsys.readouterr().out)["command"] == script


def test_the_command_line_knows_the_command(tmp_path: Path) -> None:
    command = [*COMMAND, "install", "codex", "--write"]
    done = subprocess.run(
        command, cwd=ROOT, env=environment(tmp_path), capture_output=True, text=True, timeout=3 * WAIT, check=True
    )
    assert done.stdout == f"openai-responses was added in {tmp_path / '.codex/config.toml'}.\n"
    assert "OPENAI_API_KEY is not set here; set it where Codex is started." in done.stderr


def test_an_entry_that_codex_has_written_in_its_own_way_is_the_same(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["codex", "--write"], machine=machine) == 0
    path = file_of("codex", machine)
    text = path.read_text(encoding="utf-8").replace("= 30\n", "= 30.0\n").replace("= 330\n", "= 330.0\n")
    text = text.replace('env = { MCP_TOOL_ERRORS = "result" }\n', "")
    text += '\n[mcp_servers.openai-responses.env]\nMCP_TOOL_ERRORS = "result"\n'
    put(path, text)
    assert run(["codex", "--write"], machine=machine) == 0
    assert "nothing was changed" in capsys.readouterr().out
    put(path, text.replace('"--stdio"', '"--debug"'))
    assert run(["codex", "--write"], machine=machine) == 0
    assert capsys.readouterr().out.splitlines()[:-2] == ['  - args: ["--debug"]', '  + args: ["--stdio"]']
