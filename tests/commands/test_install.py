"""`openai-responses-mcp install` as a person uses it: what is shown, and what becomes of a client's file."""

import errno
import json
import os
import re
import stat
import tomllib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

import pytest
import yaml

from responses_mcp.commands.clients.entries import document_of
from responses_mcp.commands.clients.files import ClientFile, Unmergeable
from responses_mcp.commands.clients.known import CLIENTS, Machine
from responses_mcp.commands.install import run
from tests.processes import ROOT

KEY = "sk-test-0123456789abcdef"
every_client = pytest.mark.parametrize("client", sorted(name for name in CLIENTS if CLIENTS[name].dialect is not None))
posix_only = pytest.mark.skipif(os.name == "nt", reason="permissions and links as POSIX has them")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    (tmp_path / "project").mkdir()
    command = ("/opt/x/bin/openai-responses-mcp",)
    return Machine(system="linux", home=tmp_path, folder=tmp_path / "project", environ={}, command=command)


class Done(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        return self.out + self.err


Install = Callable[..., Done]


@pytest.fixture
def install(machine: Machine, capsys: pytest.CaptureFixture[str]) -> Install:
    usual = machine

    def running(*argv: str, command: str | None = None, machine: Machine = usual, **environ: str) -> Done:
        here = replace(machine, environ=environ, command=(command,) if command else machine.command)
        return Done(run(argv, machine=here), *capsys.readouterr())

    return running


def entry_in(client: str, text: str, name: str = "openai-responses") -> dict[str, Any]:
    read: dict[str | None, Callable[[str], Any]] = {"toml": tomllib.loads, None: yaml.safe_load}
    root = read.get(CLIENTS[client].dialect, json.loads)(text)
    entry = root[CLIENTS[client].container][name]
    assert isinstance(entry, dict)
    return entry


def file_of(client: str, machine: Machine) -> Path:
    return Path(CLIENTS[client].user_file(machine))


def put(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


def put_entry(client: str, machine: Machine, entry: object) -> Path:
    return put(file_of(client, machine), json.dumps({CLIENTS[client].container: {"openai-responses": entry}}))


# The entry


@every_client
def test_a_missing_file_is_made_of_what_is_shown_and_a_second_run_changes_nothing(
    client: str, install: Install, machine: Machine, tmp_path: Path
) -> None:
    path = file_of(client, machine)
    shown = install(client, OPENAI_API_KEY=KEY)
    entry = entry_in(client, shown.out)
    assert CLIENTS[client].words_in(entry) == ["/opt/x/bin/openai-responses-mcp", "--stdio"]
    assert f"This is for {path}." in shown.err
    assert not path.exists()
    done = install(client, "--write", OPENAI_API_KEY=KEY)
    assert (done.code, done.out) == (0, f"openai-responses was added in {path}.\n")
    assert CLIENTS[client].check.format(program="/opt/x/bin/openai-responses-mcp") in done.err
    assert path.read_bytes() == shown.out.encode()
    assert {*os.listdir(path.parent)} - {"project"} == {path.name}
    before = path.stat()
    again = install(client, "--write", OPENAI_API_KEY=KEY)
    assert again.out == f"openai-responses is already in {path}; nothing was changed.\n"
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert "is already in" in install(client).err
    assert KEY not in shown.text + done.text + again.text
    assert [file for file in tmp_path.rglob("*") if file.is_file() and KEY.encode() in file.read_bytes()] == []


@every_client
def test_the_file_of_a_project_is_in_the_working_directory(client: str, install: Install, machine: Machine) -> None:
    name = CLIENTS[client].project_file
    done = install(client, "--scope", "project", "--write")
    if name is None:
        title = CLIENTS[client].title
        assert done == (2, "", f"openai-responses-mcp: {title} has no file for a project; leave --scope out.\n")
    else:
        assert entry_in(client, (Path(machine.folder) / name).read_text(encoding="utf-8"))
        assert "The file contains paths of this machine" in done.err


@pytest.mark.parametrize("client", sorted(CLIENTS))
def test_the_page_of_a_client_shows_the_entry_that_is_written(client: str, install: Install) -> None:
    file = f"{client}.md" if (ROOT / f"docs/clients/{client}.md").exists() else "editors.md"
    more = ["--trust"] if client == "gemini" else []
    done = install(client, *more, command="/absolute/path/to/openai-responses-mcp", OPENAI_API_KEY=KEY)
    assert f"\n{done.out}```\n" in (ROOT / "docs/clients" / file).read_text(encoding="utf-8")
    assert f"](clients/{file})" in (ROOT / "docs/README.md").read_text(encoding="utf-8")
    command = " ".join(["install", client, *more, *(["--write"] if CLIENTS[client].dialect else [])])
    row = rf"\]\({re.escape(file)}(?:#[\w-]+)?\) \| `{command}`"
    assert re.search(row, (ROOT / "docs/clients/README.md").read_text(encoding="utf-8"))


def test_options_for_the_server_go_into_the_entry(install: Install, tmp_path: Path) -> None:
    (tmp_path / "manuals").mkdir()
    put(tmp_path / "project/my.yaml", "openai:\n  api_key_env: GATEWAY_KEY\nrequest:\n  timeout_ms: 70000\n")
    config, manuals = str(tmp_path / "project/my.yaml"), str(tmp_path / "manuals")
    options = ["--toolsets", "answer,manuals", "--manuals", manuals, "--config", config]
    entry = entry_in("claude-code", install("claude-code", "--name", "mine", *options).out, "mine")
    assert entry["args"] == ["--stdio", "--config", config, "--toolsets", "answer,manuals"]
    assert entry["env"] == {"GATEWAY_KEY": "${GATEWAY_KEY}", "MANUALS_ROOT": manuals}
    assert entry["timeout"] == 100_000
    for toolsets, offered in (("answer,search", "answer,search,manuals"), ("manuals", "manuals")):
        done = install("cursor", "--manuals", manuals, "--toolsets", toolsets)
        assert entry_in("cursor", done.out)["args"][-2:] == ["--toolsets", offered]
        assert "not offered" not in done.err


SET_HERE = {
    "OPENAI_BASE_URL": "https://gateway.example/v1",
    "MODEL_QUICK": "gpt-5.4-mini",
    "HTTPS_PROXY": "http://ann:hunter22@proxy.example:3128",
    "SSL_CERT_FILE": str(Path("/etc/company.pem").absolute()),
    "OPENAI_API_KEY": KEY,
    "DEBUG": "1",
    "EDITOR": "vi",
    "MODEL_DETAILED": "",
}
NAMES = ["OPENAI_BASE_URL", "MODEL_QUICK", "HTTPS_PROXY", "SSL_CERT_FILE"]


@pytest.mark.parametrize(
    ("client", "env"),
    [
        ("claude-code", {"OPENAI_API_KEY": "${OPENAI_API_KEY}"}),  # passes all of its own on
        ("cursor", {name: f"${{env:{name}}}" for name in ["OPENAI_API_KEY", *NAMES]}),
        ("vscode", {name: f"${{env:{name}}}" for name in ["OPENAI_API_KEY", *NAMES]}),
        ("gemini", {name: f"${name}" for name in ["OPENAI_API_KEY", *NAMES]}),
        ("windsurf", {name: f"${{env:{name}}}" for name in ["OPENAI_API_KEY", *NAMES]}),
        ("zed", {name: SET_HERE[name] for name in NAMES if name != "HTTPS_PROXY"}),
        ("opencode", {"OPENAI_API_KEY": "{env:OPENAI_API_KEY}"}),
        ("codex", None),
        ("goose", None),
        (
            "claude-desktop",
            {
                **{name: SET_HERE[name] for name in NAMES if name != "HTTPS_PROXY"},
                "OPENAI_API_TIMEOUT": "55000",
                "ANSWER_EFFORT": "low",
            },
        ),
    ],
)
def test_what_is_set_here_is_passed_on_by_name_where_the_client_can(
    client: str, env: dict[str, str] | None, install: Install
) -> None:
    done = install(client, **SET_HERE)
    assert "hunter22" not in done.text
    entry = entry_in(client, done.out)
    assert entry.get(CLIENTS[client].variables) == env
    if client == "codex":
        assert entry["env_vars"] == ["OPENAI_API_KEY", *NAMES]
    if client == "goose":  # passes all of its own on, and looks the key up in its keyring, too
        assert entry["env_keys"] == ["OPENAI_API_KEY"]
    left_out = "does not pass OPENAI_API_KEY, HTTPS_PROXY on (entry "
    assert (left_out in done.err) is (client in {"claude-desktop", "zed"})


@pytest.mark.parametrize("client", ["claude-desktop", "zed"])
def test_a_path_that_is_written_into_an_entry_is_written_from_the_root(
    client: str, install: Install, machine: Machine, tmp_path: Path
) -> None:
    folder = tmp_path / "project"
    here = replace(machine, system="windows" if os.name == "nt" else "linux")  # which says what is between folders
    paths = {"SSL_CERT_FILE": "corp-ca.pem", "MANUALS_ROOT": "man", "RESEARCH_STATE_DIR": "./st"}
    others = {"MANUALS_INDEX_DIR": "~/index", "MODEL_ANSWER": "gpt-5"}
    (folder / "man").mkdir()
    assert install(client, "--write", machine=here, **paths, **others).code == 0
    env = entry_in(client, file_of(client, here).read_text(encoding="utf-8"))["env"]
    assert env.items() >= {**{name: str(folder / path) for name, path in paths.items()}, **others}.items()


def test_only_gemini_is_told_to_trust_and_says_so_until_it_is(install: Install, machine: Machine) -> None:
    assert "To trust this server, add --trust" in install("gemini").err
    trusted = install("gemini", "--trust", "--write")
    assert entry_in("gemini", file_of("gemini", machine).read_text(encoding="utf-8"))["trust"] is True
    assert "--trust" not in trusted.err + install("gemini").err
    assert "'gemini mcp list', in a folder that Gemini trusts, starts the server and pings it." in trusted.err


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["codex", "--manuals", "gone"], "--manuals: there is no folder {}/project/gone; pass the folder that has"),
        (["codex", "--toolsets", "manuals"], "manuals.root"),
        (["codex", "--toolsets", "nonsense"], "nonsense"),
        (["cursor", "--trust"], "Cursor has no setting for trust; leave --trust out."),
        (["cursor", "--name", "a b"], "--name: a new entry needs 1 to 40 letters"),
        (["cursor", "--name", "__proto__"], "--name: a new entry needs 1 to 40 letters"),
        (["cursor", "--file", "gone/mcp.json"], "--file: there is no folder {}/project/gone; correct the path."),
    ],
)
def test_what_cannot_be_meant_is_refused_and_nothing_is_written(
    argv: list[str], words: str, install: Install, machine: Machine, tmp_path: Path
) -> None:
    done = install(*argv, "--write")
    assert (done.code, done.out) == (2, "")
    assert words.format(tmp_path).replace("/", os.sep) in done.err
    assert sorted(os.listdir(tmp_path)) == ["project"]


# What is there already


EXISTING = {
    "json": '\ufeff{\r\n   "numStartups" : 3,\r\n   "mcpServers":{\r\n      "b" : {"command":"y"}\r\n   },\r\n\r\n   "z": 1.50\r\n}\r\n\r\n',
    "json with comments": '{\n\t// theme\n\t"theme": "GitHub",\n\t"mcpServers": {\n\t\t"b": {"command": "y"} // mine\n\t}\n}',
    "jsonc": '// servers\n{\n    "a": [1,], /* , */\n    "mcpServers": {\n        "b": {"command": "y",}, // mine\n    },\n}',
    "toml": 'model = "gpt-5"  # best\n\n[mcp_servers.b]\ncommand = \'y\'\n\n  [mcp_servers.b.env]\n  A = "1"\n# end',
}


@every_client
def test_all_else_in_a_file_stays_byte_for_byte_and_a_copy_is_kept(
    client: str, install: Install, machine: Machine
) -> None:
    known = CLIENTS[client]
    text = EXISTING[str(known.dialect)].replace('"mcpServers"', f'"{known.container}"')
    path = put(file_of(client, machine), text)
    done = install(client, "--write")
    before, after = text.encode(), path.read_bytes()
    begin = next((at for at, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), len(before))
    assert after.endswith(before[begin:])
    added = after[begin : len(after) - len(before) + begin]
    assert b"openai-responses" in added
    assert (b"\n" in added.replace(b"\r\n", b"")) is ("\r\n" not in text)
    kept = path.with_name(f"{path.name}.bak")
    assert kept.read_bytes() == before
    assert f"Backup: {kept}" in done.out


PROGRAM = "/opt/x/bin/openai-responses-mcp"
ASKED = {"OPENAI_API_KEY": "${input:key}", "OPENAI_BASE_URL": "${input:url}"}


@pytest.mark.parametrize(
    ("client", "entry", "stays", "told"),
    [
        ("claude-code", {"env": {"A": 600000}}, {"env": {"A": "600000", "OPENAI_API_KEY": "${OPENAI_API_KEY}"}}, ""),
        # A client waits longer than the server may take by what the entry says.
        ("codex", {"env": {"OPENAI_API_TIMEOUT": 600000}}, {"tool_timeout_sec": 630}, ""),
        ("gemini", {"env": {"OPENAI_API_TIMEOUT": "600000"}}, {"timeout": 630_000}, ""),
        ("opencode", {"command": [PROGRAM], "enabled": False}, {"enabled": False}, "OpenCode has this server turned"),
        ("codex", {"enabled": False}, {"enabled": False}, "Codex has this server turned off (entry openai-responses"),
        ("codex", {"env": {"A": 1}, "tools": {"x": {"y": "z"}}}, {"env": {"A": "1"}, "tools": {"x": {"y": "z"}}}, ""),
        ("codex", {"env_vars": ["MY_CA", {"name": "K"}]}, {"env_vars": ["MY_CA", {"name": "K"}, "OPENAI_API_KEY"]}, ""),
        ("vscode", {"env": ASKED}, {"env": ASKED}, ""),
    ],
)
def test_what_its_owner_added_to_an_entry_stays(  # noqa: PLR0917
    client: str, entry: dict[str, Any], stays: dict[str, Any], told: str, install: Install, machine: Machine
) -> None:
    text = document_of("", CLIENTS[client], "openai-responses").changed({"command": PROGRAM, **entry})
    path = put(file_of(client, machine), text)
    for environ in ({}, {"OPENAI_API_KEY": KEY}):
        shown, done = install(client, **environ), install(client, "--write", **environ)
        assert told in shown.err
        assert told in done.err
        after = entry_in(client, path.read_text(encoding="utf-8"))
        assert all(after[name] == kept for name, kept in stays.items()), after
        put(path, text)


def test_a_wrong_setting_in_an_entry_is_told_with_its_place(install: Install, machine: Machine) -> None:
    path = put_entry("cursor", machine, {"command": PROGRAM, "env": {"OPENAI_API_TIMEOUT": "soon"}})
    done = install("cursor", "--write")
    told = f"Variables of openai-responses in {path} count as well; correct them there.\n"
    assert (done.code, done.out, done.err.endswith(told)) == (2, "", True)


@pytest.mark.parametrize("client", ["claude-code", "gemini"])
def test_a_key_in_an_entry_stays_and_is_told(client: str, install: Install, machine: Machine) -> None:
    path = put_entry(client, machine, {"command": "old", "env": {"OPENAI_API_KEY": "sk-of-the-owner"}})
    for arguments, environ in (([], {}), (["--write"], {}), (["--write"], {"OPENAI_API_KEY": KEY})):
        done = install(client, *arguments, **environ)
        assert entry_in(client, path.read_text(encoding="utf-8"))["env"] == {"OPENAI_API_KEY": "sk-of-the-owner"}
        assert "The entry holds the key itself. To keep it out of the file, delete it there" in done.err
        assert "is not set here" not in done.err
        assert "sk-of-the-owner" not in done.text


@pytest.mark.parametrize(
    ("client", "reference"),
    [
        ("claude-code", "${OPENAI_API_KEY:-sk-of-the-owner}"),
        ("claude-code", "${MY_KEY}"),
        ("gemini", "${MY_KEY}"),
        ("cursor", "${env:MY_KEY}"),
        ("opencode", "{env:MY_KEY}"),
    ],
)
def test_a_reference_of_another_form_or_name_that_a_client_fills_in_stays(
    client: str, reference: str, install: Install, machine: Machine
) -> None:
    variables = CLIENTS[client].variables
    command: Any = ["old"] if client == "opencode" else "old"
    path = put_entry(client, machine, {"command": command, variables: {"OPENAI_API_KEY": reference}})
    for environ in ({"MY_KEY": KEY}, {"MY_KEY": KEY, "OPENAI_API_KEY": "sk-another-0123456789abcdef"}):
        done = install(client, "--write", **environ)
        assert entry_in(client, path.read_text(encoding="utf-8"))[variables] == {"OPENAI_API_KEY": reference}
        assert "OPENAI_API_KEY" not in done.err
    put_entry(client, machine, {"command": command, variables: {"OPENAI_API_KEY": reference.replace("MY", "NO")}})
    if "MY" in reference:
        assert "OPENAI_API_KEY is not set here" in install(client, "--write").err
        assert entry_in(client, path.read_text("utf-8"))[variables] == {
            "OPENAI_API_KEY": (CLIENTS[client].reference or "").replace("NAME", "OPENAI_API_KEY")
        }


@pytest.mark.parametrize("value", ["${OPENAI_API_KEY}", "%OPENAI_API_KEY%", " "])
def test_a_variable_that_a_client_passes_on_by_name_is_not_left_as_a_placeholder_that_would_win(
    value: str, install: Install, machine: Machine
) -> None:
    client, variables, names = "codex", "env", "env_vars"
    install(client, "--write")
    path = file_of(client, machine)
    given = {"OPENAI_API_KEY": value, "MODEL_ANSWER": "${MODEL_ANSWER}", "HTTPS_PROXY": "", "MINE": "$MINE"}
    entry = {**entry_in(client, path.read_text(encoding="utf-8")), variables: given}
    put(path, document_of("", CLIENTS[client], "openai-responses").changed(entry))
    passed = {"MODEL_ANSWER": "gpt-5", "HTTPS_PROXY": "http://x.example"}
    install(client, "--write", OPENAI_API_KEY=KEY, **passed)
    entry = entry_in(client, path.read_text(encoding="utf-8"))
    assert entry[variables] == {"MINE": "$MINE"}  # which is not of this server
    assert {"OPENAI_API_KEY", *passed} == {*entry[names]}


@pytest.mark.parametrize(
    "old",
    [
        {"url": "https://mcp.example/sse?key=hidden-key", "auth": {"token": "hidden-key"}},
        {"command": "KEY=hidden-key npx", "args": ["--key=hidden-key", ["hidden-key"]], "bearer_token": "hidden-key"},
        {"command": ["npx", "hidden-key"], "args": "hidden-key", "env": ["KEY=hidden-key"]},
        {"command": "npx", "args": ["--a", "hidden-key of ours"], "env": {"KEY": {"value": "hidden-key"}}},
        ["hidden-key"],
    ],
)
def test_a_key_anywhere_in_an_entry_is_not_shown(old: object, install: Install, machine: Machine) -> None:
    put_entry("cursor", machine, old)
    for more in (["--list"], ["cursor"], ["cursor", "--write"], ["cursor", "--remove"]):
        assert "hidden-key" not in install(*more, OPENAI_API_KEY="hidden-key of ours").text


@pytest.mark.parametrize(
    ("client", "text"),
    [
        ("codex", '# first\n[mcp_servers.openai-responses]\ncommand = "old"  # why\n\n# last\n[z]\na = 1\n'),
        ("gemini", '{ // first\n"mcpServers": {"openai-responses": {\n// why\n"command": "old"\n} // last\n} }'),
    ],
)
@pytest.mark.parametrize("way", ["--write", "--remove"])
def test_comments_go_with_an_entry_and_all_others_stay(
    client: str, text: str, way: str, install: Install, machine: Machine
) -> None:
    path = put(file_of(client, machine), text)
    assert f"Backup: {path}.bak" in install(client, way).out
    after = path.read_text(encoding="utf-8")
    assert ("first" in after, "why" in after) == (True, False)


def test_a_file_of_opencode_with_comments_comes_first_because_it_wins(install: Install, machine: Machine) -> None:
    plain = put(file_of("opencode", machine), "{}")
    commented = put(plain.with_name("opencode.jsonc"), "{ // mine\n}")
    assert file_of("opencode", machine) == commented
    assert install("opencode", "--write").out.splitlines()[0] == f"openai-responses was added in {commented}."
    assert (plain.read_text(encoding="utf-8"), "// mine" in commented.read_text(encoding="utf-8")) == ("{}", True)


@every_client
def test_what_an_entry_says_to_this_server_is_kept_unless_it_is_given_anew(
    client: str, install: Install, machine: Machine, tmp_path: Path
) -> None:
    for name in ("manuals", "others"):
        (tmp_path / name).mkdir()
    config = put(tmp_path / "c.yaml", "{}")
    given = ["--toolsets", "answer,search", "--config", str(config), "--manuals", str(tmp_path / "manuals")]
    install(client, "--write", *given)
    first = file_of(client, machine).read_text("utf-8")
    said = install(client, "--write")
    assert "nothing was changed" in said.out
    assert file_of(client, machine).read_text("utf-8") == first

    said = install(client, "--write", "--toolsets", "answer,research", "--manuals", str(tmp_path / "others"))
    words = CLIENTS[client].words_in(entry_in(client, file_of(client, machine).read_text("utf-8")))
    assert words[1:] == ["--stdio", "--config", str(config), "--toolsets", "answer,research,manuals"]
    assert f"Backup: {file_of(client, machine)}.bak" in said.out


@pytest.mark.parametrize("client", ["claude-desktop", "zed"])
def test_a_client_whose_file_will_hold_the_key_is_told_so_until_it_does(
    client: str, install: Install, machine: Machine
) -> None:
    told = f"{CLIENTS[client].title} does not pass OPENAI_API_KEY on"
    assert told in install(client, "--write").err
    path = file_of(client, machine)
    if os.name != "nt":
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    entry = entry_in(client, path.read_text("utf-8"))
    put_entry(client, machine, {**entry, "env": {**entry.get("env", {}), "OPENAI_API_KEY": KEY}})
    done = install(client, "--write", "--toolsets", "answer,search")
    assert told not in done.err
    assert KEY not in done.text
    assert KEY in path.read_text("utf-8")


# Removing and listing


@every_client
def test_what_was_added_can_be_removed_and_all_else_stays_byte_for_byte(
    client: str, install: Install, machine: Machine
) -> None:
    known = CLIENTS[client]
    text = EXISTING[str(known.dialect)].replace('"mcpServers"', f'"{known.container}"')
    text += "\n" * (known.dialect == "toml")
    path = put(file_of(client, machine), text)
    install(client, "--write")
    with_it = path.read_bytes()
    done = install("--remove", client)
    kept = f"{path}.bak2"
    assert (done.code, done.out) == (
        0,
        f"openai-responses was removed from {path}.\nBackup: {kept}\n",
    )
    assert path.read_bytes() == text.encode()
    assert Path(kept).read_bytes() == with_it
    assert install("--remove", client).out == f"openai-responses is not in {path}; nothing was changed.\n"
    assert sorted(each.name for each in path.parent.glob("*.bak*")) == [f"{path.name}.bak", f"{path.name}.bak2"]


def test_the_list_says_which_clients_have_an_entry_and_whether_its_command_is_there(
    install: Install, machine: Machine, tmp_path: Path
) -> None:
    put(tmp_path / "bin/openai-responses-mcp", "#!/bin/sh\n").chmod(0o755)
    install("codex", "--write", command=str(tmp_path / "bin/openai-responses-mcp"))
    install("claude-code", "--write", "--scope", "project", "--name", "mine", command="/gone/openai-responses-mcp")
    put(
        file_of("cursor", machine),
        '{"mcpServers": {"other": {"command": "npx", "args": ["x"]}, "far": {"url": "https://x"}, "odd": 1}}',
    )
    put(file_of("gemini", machine), "{")
    done = install("--list")
    assert (done.code, done.err) == (0, "")
    program = tmp_path / "bin/openai-responses-mcp"
    again = "openai-responses-mcp install claude-code --scope project --name mine"
    assert done.out == (
        "claude-code     Claude Code cannot start /gone/openai-responses-mcp: no such program (entry mine in "
        f'{machine.folder / ".mcp.json"}); run "{again} --write" again, or "{again} --remove"\n'
        f"codex           Codex starts {program} (entry openai-responses in {file_of('codex', machine)})\n"
        f"gemini          {file_of('gemini', machine)} of Gemini CLI was not read: it is not valid JSON "
        "(line 1, column 2: Expecting property name enclosed in double quotes); correct that file\n"
        "no entry        claude-desktop, cursor, vscode, windsurf, zed, opencode\n"
        "not read        goose\n"
    )
    assert install("--list", "codex").out == "".join(done.out.splitlines(keepends=True)[1:2])


def test_the_example_with_three_profiles_is_written_once_and_never_over_a_file(
    install: Install, machine: Machine
) -> None:
    path = Path(machine.home) / ".config/openai-responses-mcp/config.yaml"
    example = (ROOT / "config/config.yaml.example").read_text(encoding="utf-8")
    assert f"{path} does not exist." in install("cursor", "--profiles").err
    assert not path.exists()
    assert f"{path} was written" in install("cursor", "--write", "--profiles").out
    assert path.read_text(encoding="utf-8") == example
    put(path, "{}")
    again = install("cursor", "--write", "--profiles")
    assert (again.code, path.read_text(encoding="utf-8")) == (0, "{}")
    assert f"{path} exists and was not changed" in again.err


def test_goose_whose_file_is_not_changed_gets_a_block_and_a_link(install: Install, machine: Machine) -> None:
    (Path(machine.folder) / "m").mkdir()
    done = install("goose", "--name", "mine", "--manuals", "m", "--toolsets", "answer,manuals", OPENAI_API_KEY=KEY)
    entry = entry_in("goose", done.out, "mine")
    arguments = ["--stdio", "--toolsets", "answer,manuals"]
    assert (entry["cmd"], entry["args"]) == ("/opt/x/bin/openai-responses-mcp", arguments)
    assert (entry["envs"], entry["env_keys"]) == ({"MANUALS_ROOT": str(machine.folder / "m")}, ["OPENAI_API_KEY"])
    assert f"Put this into {file_of('goose', machine)}" in done.err
    link = parse_qs(urlsplit(done.err.partition("needs uv: ")[2].split("\n")[0]).query)
    assert (link["cmd"], link["name"], link["timeout"]) == (["uvx"], ["mine"], ["330"])
    assert link["arg"][2:] == ["openai-responses-mcp", *arguments]
    assert [each.partition("=")[0] for each in link["env"]] == ["OPENAI_API_KEY", "MANUALS_ROOT"]
    assert KEY not in done.text
    path = put(file_of("goose", machine), "extensions: {}\n")
    for way, shown in (("--write", True), ("--remove", False)):
        done = install("goose", way)
        assert (done.code, "openai-responses:" in done.out) == (1, shown)
        assert f"{path} was left alone: it is YAML, which this program does not change." in done.err
    assert path.read_text("utf-8") == "extensions: {}\n"


# Files that are left alone, and how one is replaced


@every_client
def test_a_file_that_cannot_be_read_is_left_alone_with_the_line_of_the_fault(
    client: str, install: Install, machine: Machine
) -> None:
    path = put(file_of(client, machine), '{\n  "a": \n')
    assert "line" in install(client).err
    done = install(client, "--write")
    assert done.code == 1
    fault = r"it is not valid (JSON|TOML 1\.0) \(.*line \d.*\)"
    assert re.search(rf"{re.escape(str(path))} was left alone: {fault}", done.err)
    removed = install(client, "--remove")
    assert (removed.code, removed.out) == (1, "")
    assert path.read_text(encoding="utf-8") == '{\n  "a": \n'
    assert not path.with_name(f"{path.name}.bak").exists()


def folder(path: Path) -> None:
    path.mkdir()


def read_only(path: Path) -> None:
    path.touch(0o444)


def far_too_long(path: Path) -> None:
    path.touch()
    os.truncate(path, 2**30)


def loop(path: Path) -> None:
    path.symlink_to(path.name)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: path.write_bytes(b'{"a": "\xff"}'), "it is not UTF-8 (at byte 7)"),
        (lambda path: path.write_bytes('{"a": 1}'.encode("utf-16")), "it is not UTF-8 (at byte 0)"),
        (folder, "it is not a regular file"),
        (read_only, "it is read-only"),
        (far_too_long, "it has more than 64 MiB"),
        pytest.param(loop, "it cannot be read (too many levels of symbolic links)", marks=posix_only),
    ],
)
def test_what_is_no_file_to_be_changed_is_left_alone(
    make: Callable[[Path], object], words: str, install: Install, machine: Machine
) -> None:
    path = file_of("claude-code", machine)
    make(path)
    done = install("claude-code", "--write")
    assert done.code == 1
    assert entry_in("claude-code", done.out)  # which can be put there by hand
    assert f"{path} was left alone: " in done.err
    assert words in done.err
    assert sorted(os.listdir(path.parent)) == [".claude.json", "project"]


@posix_only
def test_the_mode_of_a_file_stays_and_a_link_stays_a_link(install: Install, machine: Machine) -> None:
    path, real = file_of("claude-code", machine), Path(machine.home) / "dotfiles/claude.json"
    path.symlink_to("dotfiles/claude.json")
    assert install("claude-code", "--write").code == 0  # a link to nothing is filled
    put(real, "{}").chmod(0o660)
    assert install("claude-code", "--write").code == 0
    assert path.is_symlink()
    assert [stat.S_IMODE(each.stat().st_mode) for each in real.parent.iterdir()] == [0o660, 0o660]
    assert entry_in("claude-code", real.read_text(encoding="utf-8"))
    assert sorted(os.listdir(real.parent)) == ["claude.json", "claude.json.bak"]


def test_a_file_that_changed_meanwhile_is_left_alone(tmp_path: Path) -> None:
    path = put(tmp_path / "a.json", "1")
    file = ClientFile(path)
    put(path, "2")
    with pytest.raises(Unmergeable, match="another program changed it meanwhile"):
        file.replace("3")
    assert os.listdir(tmp_path) == ["a.json"]
    assert path.read_text(encoding="utf-8") == "2"


@pytest.mark.parametrize("good", [0, 1])
def test_a_full_disk_leaves_the_file_and_nothing_beside_it(
    good: int, install: Install, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = put(file_of("cursor", machine), "{}")
    left = [None] * good

    def full(_: int) -> None:
        if not left:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        left.pop()

    monkeypatch.setattr(os, "fsync", full)
    done = install("cursor", "--write")
    assert done.code == 1
    assert os.strerror(errno.ENOSPC).lower() in done.err
    assert [(each.name, each.read_text(encoding="utf-8")) for each in path.parent.iterdir()] == [("mcp.json", "{}")]


def test_an_entry_for_a_command_that_may_vanish_is_told_so(install: Install, machine: Machine) -> None:
    command = str(Path(machine.home) / "uv" / "archive-v0" / "x" / "bin" / "openai-responses-mcp")
    told = f"{command} is in a folder that may be emptied at any time; install it permanently"
    assert told in install("codex", command=command).err
