"""`openai-responses-mcp doctor` reads the entries of clients: what they start, what gets there, how long they wait."""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from responses_mcp.commands import install
from responses_mcp.commands.clients.entries import document_of
from responses_mcp.commands.clients.known import CLIENT_LIMITS, CLIENTS, Machine
from tests.commands.test_doctor import KEY, SMALLEST, Doctor, bare_environment, examine, surroundings

__all__ = ["bare_environment", "examine", "surroundings"]
pytestmark = pytest.mark.usefixtures("surroundings")


def put(client: str, tmp_path: Path, entry: dict[str, Any], name: str = "openai-responses") -> Path:
    """Write the file of a client in the user's home with one entry."""
    machine = Machine(
        system="windows" if sys.platform == "win32" else "linux",
        home=tmp_path,
        folder=tmp_path,
        environ={},
        command=("x",),
    )
    path = Path(CLIENTS[client].user_file(machine))
    path.parent.mkdir(parents=True, exist_ok=True)
    change = document_of("", CLIENTS[client], name).changed(entry)
    path.write_text(change.text, encoding="utf-8")
    return path


def small_server(tmp_path: Path, before: str = "") -> str:
    """Return the path of a server that clients can be told to start."""
    script = tmp_path / "bin/openai-responses-mcp"
    script.parent.mkdir(exist_ok=True)
    script.write_text(f"#!/bin/sh\n{before}\n{SMALLEST}", encoding="utf-8")
    script.chmod(0o755)
    return str(script)


posix_only = pytest.mark.skipif(sys.platform == "win32", reason="a shell script is the server")


async def test_without_entries_nobody_s_time_limit_is_told_and_with_one_what_it_says_counts(
    examine: Doctor, tmp_path: Path
) -> None:
    report = await examine("--offline")
    report.line("ok", "clients", "none has an entry for this server")
    report.line("ok", "time-outs")
    put("codex", tmp_path, {"command": "openai-responses-mcp", "tool_timeout_sec": 100})
    report = await examine("--offline")
    assert "Claude" not in report.line(
        "warn", "time-outs", "Codex (100 s)", "Fix: for Codex set tool_timeout_sec = 330"
    )
    put("codex", tmp_path, {"command": "openai-responses-mcp", "env": {"OPENAI_API_TIMEOUT": "50000"}})
    report = await examine("--offline")
    report.line("ok", "time-outs")


async def test_a_time_limit_is_judged_and_told_by_what_the_entry_says(examine: Doctor, tmp_path: Path) -> None:
    long = {"env": {"OPENAI_API_TIMEOUT": "600000"}}
    put("codex", tmp_path, {"command": "openai-responses-mcp", "tool_timeout_sec": 330, **long})
    put("claude-code", tmp_path, {"command": "openai-responses-mcp", "timeout": 330_000, **long})
    report = await examine("--offline")
    told = "a call may take 600 s (request.timeout_ms), longer than some wait: Claude Code (330 s), Codex (330 s)."
    report.line("warn", "time-outs", told, "for Codex set tool_timeout_sec = 630")
    put("claude-code", tmp_path, {"command": "openai-responses-mcp", "timeout": 100_000})
    report = await examine("--offline")
    told = "longer than some wait: Claude Code (100 s); a call may take 600 s"
    report.line("warn", "time-outs", "a call may take 300 s", told, "longer than some wait: Codex (330 s)")


@posix_only
async def test_an_entry_whose_command_is_gone_is_told_and_fails_the_client_that_was_asked_for(
    examine: Doctor, tmp_path: Path
) -> None:
    cursor = put(
        "cursor", tmp_path, {"command": small_server(tmp_path), "env": {"OPENAI_API_KEY": "${env:OPENAI_API_KEY}"}}
    )
    gemini = put("gemini", tmp_path, {"command": "/gone/openai-responses-mcp"}, "mine")
    report = await examine("--offline")
    report.line("ok", "clients", f"Cursor starts {tmp_path}/bin/openai-responses-mcp, by openai-responses in {cursor}.")
    gone = ("Gemini CLI is told to start /gone/openai-responses-mcp, which is not there", f"by mine in {gemini}.")
    report.line("warn", "clients", *gone, 'Fix: run "openai-responses-mcp install gemini --name mine --write" again')
    assert report.code == 0
    report = await examine("--offline", "--client", "gemini")
    report.line("FAIL", "clients", *gone)
    assert (report.code, [line for line in report.lines if "Cursor" in line]) == (1, [])
    put("opencode", tmp_path, {"command": ["/opt/bin/openai-response-mcp", "--stdio"]})
    report = await examine("--offline", "--client", "opencode")
    report.line("FAIL", "clients", "OpenCode is told to start /opt/bin/openai-response-mcp, which is not there")
    report = await examine("--offline", "--client", "codex")
    report.line("warn", "clients", "Codex has no entry for this server", 'Fix: run "openai-responses-mcp install codex')


@posix_only
async def test_the_cure_of_an_entry_is_about_that_entry_and_leaves_a_good_one_alone(
    examine: Doctor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    put("claude-code", tmp_path, {"command": small_server(tmp_path), "args": ["--stdio"]})
    gone = {"mcpServers": {"old": {"command": "/gone/openai-responses-mcp"}}}
    (tmp_path / "project/.mcp.json").write_text(json.dumps(gone), encoding="utf-8")
    report = await examine("--offline", "--client", "claude-code")
    command = "openai-responses-mcp install claude-code --scope project --name old"
    report.line("FAIL", "clients", f'Fix: run "{command} --write" again, or "{command} --remove"')
    report.line("ok", "clients", f"Claude Code starts {tmp_path}/bin/openai-responses-mcp, by openai-responses in ")


@posix_only
@pytest.mark.parametrize(
    ("file", "cure"),
    [
        ("project/.claude/settings.local.json", 'run "claude mcp reset-project-choices" here'),
        ("project/.claude/settings.json", "take it out of "),
        (".claude/settings.json", "take it out of "),
    ],
)
async def test_a_server_that_was_declined_in_the_dialog_of_claude_code_is_named_with_the_cure(
    examine: Doctor,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    file: str,
    cure: str,
) -> None:
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    entry = {"mcpServers": {"openai-responses": {"command": small_server(tmp_path), "args": ["--stdio"]}}}
    (tmp_path / "project/.mcp.json").write_text(json.dumps(entry), encoding="utf-8")
    report = await examine("--offline", "--client", "claude-code")
    report.line("ok", "clients")
    refusal = tmp_path / file
    refusal.parent.mkdir(parents=True)
    for settings in ({"enableAllProjectMcpServers": True}, {}):  # which a refusal wins over
        refused = {**settings, "disabledMcpjsonServers": ["openai-responses"]}
        refusal.write_text(json.dumps(refused), encoding="utf-8")
        report = await examine("--offline", "--client", "claude-code")
        told = f"Claude Code was told not to use it (disabledMcpjsonServers in {refusal})"
        report.line("FAIL", "clients", told, f"Fix: {cure}", 'choose "Use this MCP server"')
    for arguments in (["--list"], ["claude-code", "--scope", "project", "--write"]):
        assert install.run(arguments) == 0
        shown = "".join(capsys.readouterr())
        assert told in shown
        assert cure in shown
    refusal.write_text('{"enabledMcpjsonServers": ["openai-responses"]}', encoding="utf-8")
    (await examine("--offline", "--client", "claude-code")).line("ok", "clients")


@posix_only
async def test_an_entry_that_claude_code_keeps_for_this_project_alone_is_judged_in_place_of_the_one_it_hides(
    examine: Doctor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    good = {"command": small_server(tmp_path), "args": ["--stdio"]}
    path = put("claude-code", tmp_path, good)
    content = json.loads(path.read_text(encoding="utf-8"))
    gone = {"type": "stdio", "command": "/gone/openai-responses-mcp", "args": [], "env": {}}
    removal = "claude mcp remove openai-responses -s local"
    for entry in (gone, good):
        content["projects"] = {str(project): {"mcpServers": {"openai-responses": entry}}}
        path.write_text(json.dumps(content), encoding="utf-8")
        report = await examine("--offline", "--client", "claude-code", start=None)
        hidden = f"does not go by openai-responses in {path}: the one of that name for this project alone comes first"
        report.line("warn", "clients", hidden, f'Fix: to have this one, run "{removal}"')
        where = f"by openai-responses in {path}, for this project alone."
        if entry is gone:
            anew = f'Fix: run "{removal}", then "openai-responses-mcp install claude-code --write"'
            report.line("FAIL", "clients", "/gone/openai-responses-mcp, which is not there, ", where, anew)
        else:
            report.line("ok", "clients", f"Claude Code starts {tmp_path}/bin/openai-responses-mcp, ", where)
            report.line("ok", "start", "the server answered")


@posix_only
async def test_for_one_client_everything_is_judged_by_what_its_entry_says(examine: Doctor, tmp_path: Path) -> None:
    (tmp_path / "hb" / "pump").mkdir(parents=True)
    (tmp_path / "hb" / "pump" / "a.md").write_text("# a\n", encoding="utf-8")
    config = tmp_path / "entry.yaml"
    config.write_text("model_profiles: {answer: {model: model-of-the-file}}\n", encoding="utf-8")
    arguments = ["--stdio", "--toolsets", "answer", f"--config={config}"]
    env = {
        "OPENAI_BASE_URL": "https://entry.example/v1",
        "MANUALS_ROOT": str(tmp_path / "hb"),
        "MODEL_QUICK": "quick-1",
    }
    put(
        "claude-desktop",
        tmp_path,
        {"command": small_server(tmp_path), "args": arguments, "env": {**env, "OPENAI_API_KEY": "sk-of-the-entry"}},
    )
    report = await examine(
        "--offline",
        "--client",
        "claude-desktop",
        start=None,
        OPENAI_BASE_URL="https://shell.example/v1",
        MODEL_ANSWER="model-of-the-shell",
    )
    report.line("ok", "config", str(config))
    report.line("ok", "base_url", "https://entry.example/v1")
    report.line("ok", "models", "model-of-the-file")
    report.line("ok", "models", "quick-1")
    report.line("warn", "clients", "does not pass on", "MODEL_ANSWER")
    report.line("warn", "manuals", "the list of toolsets lacks them")
    other = await examine("--offline", "--client", "claude-desktop", "--config", "other.yaml", start=None)
    other.line("warn", "config", "other.yaml is not what the entry names")
    assert len([line for line in report.lines if "manuals:" in line]) == 2
    assert "shell" not in "".join(line for line in report.lines if "does not pass" not in line)


@posix_only
@pytest.mark.parametrize(
    ("client", "entry", "seen"),
    [
        ("codex", {"env_vars": ["OPENAI_API_KEY"], "env": {"MODEL_ANSWER": "m"}}, f"{KEY}, m, "),
        ("codex", {"env_vars": ["ELSE", {"name": "OPENAI_API_KEY", "source": "local"}]}, f"{KEY}, , x"),
        ("gemini", {"env": {"OPENAI_API_KEY": "$OPENAI_API_KEY", "MODEL_ANSWER": "$NO_SUCH"}}, f"{KEY}, , x"),
        (
            "gemini",
            {"env": {"OPENAI_API_KEY": "${OPENAI_API_KEY}", "MODEL_ANSWER": "${NO_SUCH:-a}-$ELSE"}},
            f"{KEY}, a-x, x",
        ),
        (
            "claude-code",
            {"env": {"OPENAI_API_KEY": "${OPENAI_API_KEY:-}", "MODEL_ANSWER": "${NO_SUCH:-a}", "ELSE": "${NO_SUCH}"}},
            f"{KEY}, a, ${{NO_SUCH}}",
        ),
        (
            "cursor",
            {"env": {"OPENAI_API_KEY": "${env:OPENAI_API_KEY}", "ELSE": "${env:NO_SUCH}"}},
            f"{KEY}, , ${{env:NO_SUCH}}",
        ),
        ("claude-code", {}, f"{KEY}, , x"),
        ("opencode", {"environment": {"MODEL_ANSWER": "m"}}, f"{KEY}, m, x"),
        ("claude-desktop", {"env": {"OPENAI_API_KEY": "canary of Desktop"}}, "canary of Desktop, , "),
    ],
)
async def test_for_one_client_the_server_is_started_by_its_entry_with_what_it_passes_on(
    examine: Doctor, tmp_path: Path, client: str, entry: dict[str, Any], seen: str
) -> None:
    record = tmp_path / "seen"
    says = f'printf "%s" "$OPENAI_API_KEY, $MODEL_ANSWER, $ELSE" > {record}; printf " %s" "$*" >> {record}'
    program, arguments = small_server(tmp_path, says), ["--stdio", "--debug"]
    joined = CLIENTS[client].members.arguments is None
    starts = {CLIENTS[client].members.command: [program, *arguments] if joined else program}
    starts |= {} if joined else {"args": arguments}
    put(client, tmp_path, {**starts, **entry})
    report = await examine("--offline", "--client", client, start=None, ELSE="x")
    report.line("ok", "start", "lists the tools answer.")
    report.line("ok", "clients")
    assert record.read_text(encoding="utf-8") == f"{seen} --stdio --debug"


@posix_only
@pytest.mark.parametrize(
    ("client", "reference"),
    [
        ("claude-code", "${FOLDER}"),
        ("claude-code", "${NO_SUCH:-%s}"),
        ("gemini", "$FOLDER"),
        ("cursor", "${env:FOLDER}"),
        ("opencode", "{env:FOLDER}"),
    ],
)
async def test_a_command_and_its_arguments_are_filled_in_as_the_client_does_it(
    examine: Doctor, tmp_path: Path, client: str, reference: str
) -> None:
    program, config = small_server(tmp_path), tmp_path / "c.yaml"
    config.write_text("model_profiles: {answer: {model: model-of-the-file}}\n", encoding="utf-8")
    folder = reference.replace("%s", str(tmp_path))
    words = [f"{folder}/bin/openai-responses-mcp", "--stdio", "--config", f"{folder}/c.yaml"]
    joined = CLIENTS[client].members.arguments is None
    key = {
        CLIENTS[client].members.variables: {
            "OPENAI_API_KEY": (CLIENTS[client].reference or "").replace("NAME", "OPENAI_API_KEY")
        }
    }
    put(client, tmp_path, {"command": words if joined else words[0], **({} if joined else {"args": words[1:]}), **key})
    report = await examine("--offline", "--client", client, start=None, FOLDER=str(tmp_path))
    report.line("ok", "clients", f"starts {program}, by ")
    report.line("ok", "models", "model-of-the-file")
    report.line("ok", "start", "lists the tools answer.")


@posix_only
@pytest.mark.parametrize(
    ("client", "entry", "file", "told"),
    [
        ("vscode", {"env": {"OPENAI_API_KEY": "${input:key}"}}, None, "VS Code asks for it"),
        ("vscode", {"envFile": "${workspaceFolder}/.env"}, None, "VS Code may have it from ${workspaceFolder}/.env"),
        (
            "claude-code",
            {},
            (".claude/settings.json", '{"env": {"OPENAI_API_KEY": "x"}}'),
            "Claude Code may have it from",
        ),
        (
            "claude-code",
            {"env": {"OPENAI_API_KEY": "${OPENAI_API_KEY}"}},
            (".claude/settings.local.json", '{"env": {"OPENAI_API_KEY": "x"}}'),
            "Claude Code may have it from",
        ),
        ("codex", {"env_vars": ["OPENAI_API_KEY"]}, (".codex/.env", "OPENAI_API_KEY=x\n"), "Codex may have it from"),
    ],
)
async def test_a_key_that_the_client_may_have_from_elsewhere_is_no_failure(  # noqa: PLR0917
    examine: Doctor,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    client: str,
    entry: dict[str, Any],
    file: tuple[str, str] | None,
    told: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    command = CLIENTS[client].members.command
    put(client, tmp_path, {command: small_server(tmp_path), "args": ["--stdio"], **entry})
    if file is not None:
        (tmp_path / file[0]).parent.mkdir(exist_ok=True)
        (tmp_path / file[0]).write_text(file[1], encoding="utf-8")
    report = await examine("--offline", "--client", client, start=None, OPENAI_API_KEY=None)
    report.line("warn", "key", f"OPENAI_API_KEY is not set in this shell; {told}", "which is not looked at")
    report.line("ok", "start", "lists the tools answer.")
    assert report.code == 0
    report = await examine("--offline", "--client", client, start=None, OPENAI_API_KEY=KEY)
    assert not any("does not pass" in line for line in report.lines)


@posix_only
async def test_what_a_client_asks_its_user_for_or_where_a_workspace_is_is_not_known_here(
    examine: Doctor, tmp_path: Path
) -> None:
    small_server(tmp_path)
    env = {"OPENAI_API_KEY": "${env:OPENAI_API_KEY}", "OPENAI_BASE_URL": "${input:url}"}
    put("vscode", tmp_path, {"command": "${userHome}/bin/openai-responses-mcp", "args": ["--stdio"], "env": env})
    report = await examine("--client", "vscode", start=None)
    report.line("warn", "base_url", "placeholder left unfilled")
    report.line("skip", "network", "the address is not known")
    report.line("ok", "clients", f"VS Code starts {tmp_path}/bin/openai-responses-mcp")
    report.line("ok", "start", "lists the tools answer.")
    assert report.code == 0
    put(
        "vscode",
        tmp_path,
        {"command": "${workspaceFolder}/bin/openai-responses-mcp", "env": {**env, "OPENAI_BASE_URL": ""}},
    )
    report = await examine("--offline", "--client", "vscode", start=None)
    report.line("ok", "start", "a server with the settings of this shell, and not that of an entry,")
    assert report.code == 0


@posix_only
@pytest.mark.parametrize(
    "said",
    [
        {"args": ["--stdio", "--config", "${workspaceFolder}/responses.yaml"]},
        {"args": ["--stdio"], "env": {"MANUALS_ROOT": "${workspaceFolder:handbooks}/manuals"}},
    ],
    ids=["configuration", "manuals"],
)
async def test_what_lies_in_a_workspace_of_vs_code_is_not_looked_for_in_another_place(
    examine: Doctor, tmp_path: Path, said: dict[str, Any]
) -> None:
    env = {"OPENAI_API_KEY": "${env:OPENAI_API_KEY}", **said.get("env", {})}
    put("vscode", tmp_path, {"command": small_server(tmp_path), **said, "env": env})
    for client in (["--client", "vscode"], []):
        report = await examine("--offline", *client, start=None)
        assert (report.code, report.failed) == (0, [])


async def test_a_key_that_a_client_s_entry_has_is_not_told_to_be_missing(examine: Doctor, tmp_path: Path) -> None:
    entry = {"command": sys.executable, "args": ["-m", "responses_mcp"]}
    put("claude-desktop", tmp_path, {**entry, "env": {"OPENAI_API_KEY": KEY}})
    report = await examine("--offline", OPENAI_API_KEY=None)
    told = "OPENAI_API_KEY is not set in this shell; Claude Desktop has it in its entry"
    report.line(
        "warn", "key", told, 'Fix: to judge that one, run "openai-responses-mcp doctor --client claude-desktop"'
    )
    assert report.code == 0
    put("claude-desktop", tmp_path, {**entry, "env": {"OPENAI_API_KEY": "YOUR_KEY"}})
    report = await examine("--offline")
    report.line("FAIL", "key", "OPENAI_API_KEY is not set")


@posix_only
async def test_an_entry_is_started_in_the_home_folder_so_that_no_file_of_a_project_is_run(
    examine: Doctor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    put("codex", tmp_path, {"command": small_server(tmp_path, f"pwd -P > {tmp_path}/seen"), "args": ["--stdio"]})
    report = await examine("--offline", "--client", "codex", start=None)
    report.line("ok", "start", "lists the tools answer.")
    assert (tmp_path / "seen").read_text(encoding="utf-8").strip().endswith(f"/{tmp_path.name}")


@posix_only
@pytest.mark.parametrize("client", ["codex", "gemini"])
async def test_an_entry_is_started_in_the_folder_that_it_names(examine: Doctor, tmp_path: Path, client: str) -> None:
    small_server(tmp_path, f"pwd -P > {tmp_path}/seen")
    relative = {"command": "./openai-responses-mcp", "args": ["--stdio"]}
    path = put(client, tmp_path, {**relative, "cwd": str(tmp_path / "bin")})
    report = await examine("--offline", "--client", client, start=None)
    report.line("ok", "start", "lists the tools answer.")
    assert (tmp_path / "seen").read_text(encoding="utf-8").strip().endswith(f"/{tmp_path.name}/bin")
    path.unlink()
    absolute = {**relative, "command": f"{tmp_path}/bin/openai-responses-mcp"}
    put(client, tmp_path, {**absolute, "cwd": f"{tmp_path}/gone"})
    report = await examine("--offline", "--client", client, start=None)
    report.line("FAIL", "start", f"its entry starts it in {tmp_path}/gone, which is not a folder", "Fix: correct cwd")
    put(client, tmp_path, {**absolute, "cwd": "within-the-project"})  # from where the client was started
    report = await examine("--offline", "--client", client, start=None)
    report.line("ok", "start", "lists the tools answer.")


@pytest.mark.parametrize(
    ("client", "entry"),
    [
        ("codex", {}),
        ("gemini", {}),
        ("cursor", {"env": {"OPENAI_API_KEY": "${OPENAI_API_KEY}"}}),
        ("claude-desktop", {}),
    ],
)
async def test_a_client_that_does_not_pass_the_key_on_is_told(
    examine: Doctor, tmp_path: Path, client: str, entry: dict[str, Any]
) -> None:
    put(client, tmp_path, {"command": sys.executable, "args": ["-m", "responses_mcp"], **entry})
    report = await examine("--offline")
    report.line("warn", "clients", f"{CLIENTS[client].title} does not pass OPENAI_API_KEY on", "Fix: ")
    report = await examine("--offline", OPENAI_BASE_URL="http://127.0.0.1:9/v1")
    report.line("ok", "clients")


@pytest.mark.parametrize(
    ("client", "fix"),
    [
        ("codex", 'run "openai-responses-mcp install codex --write" again'),
        ("zed", 'add "env": {"AZ_KEY": "ITS VALUE"} to that entry'),
    ],
)
async def test_a_header_s_variable_is_judged_like_the_key_and_does_not_hide_it(
    examine: Doctor, tmp_path: Path, client: str, fix: str
) -> None:
    yaml = tmp_path / ".config/openai-responses-mcp/config.yaml"
    yaml.parent.mkdir(parents=True)
    yaml.write_text("openai: {api_key_env: MY_KEY, headers_env: {api-key: AZ_KEY}}", encoding="utf-8")
    put(client, tmp_path, {"command": sys.executable, "args": ["-m", "responses_mcp"]})
    title = CLIENTS[client].title
    report = await examine("--offline", AZ_KEY="of-the-gateway", OPENAI_API_KEY="")
    report.line("warn", "clients", f"{title} does not pass AZ_KEY on", f"Fix: {fix}")
    report = await examine("--offline", AZ_KEY="of-the-gateway", MY_KEY=KEY)
    report.line("warn", "clients", f"{title} does not pass MY_KEY, AZ_KEY on")
    members = CLIENTS[client].members
    has = {"env_vars": ["AZ_KEY"]} if members.names else {"env": {"AZ_KEY": "of-the-gateway"}}
    put(client, tmp_path, {"command": sys.executable, "args": ["-m", "responses_mcp"], **has})
    report = await examine("--offline", AZ_KEY="of-the-gateway", MY_KEY=KEY)
    report.line("warn", "clients", f"{title} does not pass MY_KEY on")
    report = await examine("--offline", AZ_KEY="of-the-gateway", MY_KEY="")
    report.line("ok", "clients")


async def test_a_proxy_with_a_password_is_told_to_be_added_by_hand_where_install_leaves_it_out(
    examine: Doctor, tmp_path: Path
) -> None:
    command = {"command": sys.executable, "args": ["-m", "responses_mcp"]}
    put("zed", tmp_path, {**command, "env": {"OPENAI_API_KEY": KEY}})
    proxy = {"HTTPS_PROXY": "http://user:secret-of-it@127.0.0.1:9", "MODEL_ANSWER": "gpt-5"}
    report = await examine("--offline", **proxy)
    report.line("warn", "clients", "Zed does not pass on HTTPS_PROXY, set", 'Fix: add "HTTPS_PROXY" with its value to')
    report.line("warn", "clients", "Zed does not pass on MODEL_ANSWER, set", 'Fix: run "openai-responses-mcp install')
    put("codex", tmp_path, {**command, "env_vars": ["OPENAI_API_KEY", "MODEL_ANSWER"]})
    report = await examine("--offline", **proxy)
    report.line("warn", "clients", "Codex does not pass on HTTPS_PROXY, set", 'Fix: run "openai-responses-mcp install')


async def test_a_file_of_codex_that_only_codex_reads_is_no_failure(examine: Doctor, tmp_path: Path) -> None:
    path = put("codex", tmp_path, {"command": sys.executable})
    path.write_text("a = {\n b = 1,\n}\n" + path.read_text(encoding="utf-8"), encoding="utf-8")
    report = await examine("--offline", "--client", "codex")
    fix = "Fix: correct that file, or look at its entry yourself if Codex reads it."
    report.line("warn", "clients", f"{path} of Codex was not read: it is not valid TOML 1.0 (", fix)
    report.line("ok", "time-outs")


async def test_time_limits_that_no_number_can_hold_are_no_limits(examine: Doctor, tmp_path: Path) -> None:
    endless = 10**400
    put("codex", tmp_path, {"command": "openai-responses-mcp", "tool_timeout_sec": endless})
    put("gemini", tmp_path, {"command": "openai-responses-mcp", "env": {"OPENAI_API_TIMEOUT": f"{endless}"}})
    report = await examine("--offline")
    report.line("ok", "time-outs")


@posix_only
async def test_nothing_is_started_because_a_file_of_the_working_directory_says_so(
    examine: Doctor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, home = tmp_path / "cloned", tmp_path / "home"
    folder.mkdir()
    home.mkdir()
    monkeypatch.chdir(folder)
    evil = small_server(tmp_path, f"touch {tmp_path}/started")
    (folder / ".mcp.json").write_text(
        json.dumps({"mcpServers": {"x": {"command": evil, "env": {"OPENAI_API_KEY": "${OPENAI_API_KEY}"}}}}),
        encoding="utf-8",
    )
    report = await examine("--offline", "--client", "claude-code", start=None, HOME=str(home))
    report.line("ok", "clients", f"Claude Code starts {evil}, by x in ")
    report.line("ok", "start", "answer_quick")
    assert sorted(os.listdir(tmp_path)) == ["bin", "cloned", "home"]


@pytest.mark.parametrize("judged", [(), ("--client", "claude-code")])
async def test_the_plugin_of_claude_code_is_told_and_an_entry_beside_it_is_one_too_many(
    examine: Doctor, judged: Sequence[str], tmp_path: Path
) -> None:
    plugin = "openai-responses@openai-responses-mcp"
    settings = tmp_path / ".claude/settings.json"
    settings.parent.mkdir()
    settings.write_text(json.dumps({"enabledPlugins": {plugin: True}}), encoding="utf-8")
    report = await examine("--offline", *judged)
    report.line("ok", "clients", f"Claude Code has the plugin {plugin}, turned on in {settings}")
    assert not any("install" in line for line in report.lines if "clients:" in line)
    put("claude-code", tmp_path, {"command": sys.executable, "args": ["-m", "responses_mcp"]})
    report = await examine("--offline", *judged)
    entry = f"openai-responses in {tmp_path / '.claude.json'}"
    both = f"Claude Code has the plugin {plugin} beside {entry}, so tools appear twice"
    report.line("ok", "clients", "Claude Code starts ")
    report.line("warn", "clients", both, f"Fix: to have one of them, run claude plugin disable {plugin}")
    other = await examine("--offline", "--client", "codex")
    other.line("warn", "clients", "Codex has no entry for this server")
    assert not any("has the plugin" in line for line in other.lines)


async def test_a_file_of_a_client_that_cannot_be_read_is_told(examine: Doctor, tmp_path: Path) -> None:
    path = put("cursor", tmp_path, {})
    path.write_text("{", encoding="utf-8")
    report = await examine("--offline")
    broken = (f"{path} of Cursor was not read: it is not valid JSON (line 1", "is still open). Fix: correct that file.")
    report.line("warn", "clients", *broken)
    assert report.code == 0
    report = await examine("--offline", "--client", "cursor")
    report.line("FAIL", "clients", *broken)
    assert report.code == 1


@pytest.mark.parametrize(
    ("client", "of_another"), [("claude-code", "$OPENAI_API_KEY"), ("gemini", "${env:OPENAI_API_KEY}")]
)
@posix_only
async def test_the_placeholder_of_another_client_is_told_with_the_command_that_writes_the_right_one(
    client: str, of_another: str, examine: Doctor, tmp_path: Path
) -> None:
    put(client, tmp_path, {"command": small_server(tmp_path), "env": {"OPENAI_API_KEY": of_another}})
    report = await examine("--offline", "--client", client, start=None)
    again = f'If it is set there, run "openai-responses-mcp install {client} --write" again.'
    report.line("FAIL", "key", "holds an unexpanded placeholder", "restart the client.", again)


async def test_every_client_that_install_knows_can_be_judged_for() -> None:
    assert CLIENTS.keys() <= CLIENT_LIMITS.keys()


@posix_only
async def test_the_folder_of_manuals_that_an_entry_names_is_looked_at(examine: Doctor, tmp_path: Path) -> None:
    manuals = tmp_path / "hb/pump"
    entry = {"command": small_server(tmp_path), "env": {"MANUALS_ROOT": str(manuals)}}
    put("claude-code", tmp_path, entry)
    report = await examine("--offline", "--client", "claude-code")
    report.line("warn", "manuals", f"Claude Code is told that manuals are in {manuals}, which is not a folder")
    manuals.mkdir(parents=True)
    (manuals / "care.md").write_text("# Care\n", encoding="utf-8")
    report = await examine("--offline", "--client", "claude-code")
    report.line("ok", "manuals", f"for Claude Code, {manuals} has 1 manual")
    put("claude-code", tmp_path, {**entry, "env": {"MANUALS_ROOT": str(manuals.parent)}})
    report = await examine("--offline", "--client", "claude-code")
    report.line("ok", "manuals", f"for Claude Code, {manuals.parent} has 1 manual")


@posix_only
@pytest.mark.parametrize(
    ("arguments", "variables"),
    [(["--toolsets", "answer,search"], {}), (["--toolsets=answer"], {}), ([], {"MCP_TOOLSETS": "answer"})],
)
async def test_manuals_that_no_toolset_of_an_entry_shows_are_told(
    examine: Doctor, arguments: Sequence[str], variables: Mapping[str, str], tmp_path: Path
) -> None:
    (tmp_path / "hb/pump").mkdir(parents=True)
    variables = {"MANUALS_ROOT": str(tmp_path / "hb"), **variables}
    entry = {"command": small_server(tmp_path), "args": arguments, "env": variables}
    put("claude-code", tmp_path, entry)
    report = await examine("--offline", "--client", "claude-code")
    report.line("warn", "manuals", f"does not offer those in {tmp_path / 'hb'}", "Fix: add manuals to that list")
    put("claude-code", tmp_path, {**entry, "args": ["--toolsets", "answer,manuals"]})
    report = await examine("--offline", "--client", "claude-code")
    assert not any("does not offer" in line for line in report.lines)


@posix_only
async def test_the_way_to_the_api_is_judged_with_the_variables_that_the_entry_gives_and_not_with_the_shell_s(
    examine: Doctor, tmp_path: Path
) -> None:
    given = {
        "OPENAI_API_KEY": KEY,
        "HTTPS_PROXY": "http://me:hunter22@proxy.invalid:3128",
        "SSL_CERT_FILE": "/of/the/entry",
    }
    put("codex", tmp_path, {"command": small_server(tmp_path), "env": given})
    report = await examine("--offline", "--client", "codex", start=None, HTTPS_PROXY="http://shell.invalid:9")
    report.line("ok", "proxy", "api.openai.com is reached through the proxy proxy.invalid:3128 (HTTPS_PROXY)")
    report.line("FAIL", "certificates", "SSL_CERT_FILE names /of/the/entry")
    assert "hunter22" not in str(report.lines)
    put("codex", tmp_path, {"command": small_server(tmp_path), "env": {"OPENAI_API_KEY": KEY}})
    report = await examine("--offline", "--client", "codex", start=None, HTTPS_PROXY="http://shell.invalid:9")
    report.line("ok", "proxy", "none is set")
    report = await examine("--offline", HTTPS_PROXY="http://shell.invalid:9")
    report.line("ok", "proxy", "reached through the proxy shell.invalid:9")


@posix_only
async def test_a_proxy_and_a_certificate_left_as_placeholders_are_told_and_nothing_fails_for_them(
    examine: Doctor, tmp_path: Path
) -> None:
    left = {"SSL_CERT_FILE": "${env:SSL_CERT_FILE}", "HTTPS_PROXY": "${env:HTTPS_PROXY}"}
    put(
        "cursor",
        tmp_path,
        {"command": small_server(tmp_path), "env": {"OPENAI_API_KEY": "sk-canary-0123456789", **left}},
    )
    for named, environ in ((["--client", "cursor"], {}), ([], {"SSL_CERT_FILE": "$X", "HTTPS_PROXY": "$Y"})):
        report = await examine("--offline", *named, start=None, **environ)
        report.line("warn", "certificates", "SSL_CERT_FILE still holds a placeholder, so it is ignored", "Fix: set it")
        report.line("warn", "proxy", "HTTPS_PROXY still holds a placeholder, so it is ignored", "Fix: set it where")
        report.line("ok", "certificates", "certifi")
        assert report.code == 0, report


@posix_only
@pytest.mark.parametrize("client", ["claude-desktop", "zed"])
async def test_a_client_whose_file_holds_the_key_is_told_to_put_it_there(
    examine: Doctor, tmp_path: Path, client: str
) -> None:
    put(client, tmp_path, {"command": small_server(tmp_path), "args": ["--stdio"]})
    report = await examine("--offline", "--client", client, start=None)
    fix = 'Fix: add "env": {"OPENAI_API_KEY": "ITS VALUE"} to that entry, and restart '
    report.line("FAIL", "key", "OPENAI_API_KEY is not set", fix + CLIENTS[client].title)
    put(client, tmp_path, {"command": small_server(tmp_path), "args": ["--stdio"], "env": {"MODEL_ANSWER": "gpt-5"}})
    report = await examine("--offline", "--client", client, start=None)
    report.line("FAIL", "key", 'Fix: add "OPENAI_API_KEY" with its value to "env" of that entry')


@posix_only
async def test_a_server_that_is_no_client_s_is_not_taken_for_that_of_its_entry(examine: Doctor, tmp_path: Path) -> None:
    put("gemini", tmp_path, {"command": "/gone/openai-responses-mcp"})
    report = await examine("--offline", "--client", "gemini", start=None)
    report.line("FAIL", "clients", "/gone/openai-responses-mcp, which is not there")
    report.line("ok", "start", "a server with the settings of this shell, and not that of an entry, answered")
    put("gemini", tmp_path, {"command": small_server(tmp_path), "env": {"OPENAI_API_KEY": "$OPENAI_API_KEY"}})
    report = await examine("--offline", "--client", "gemini", start=None)
    report.line("ok", "start", "the server answered")


@posix_only
@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"env": {"OPENAI_API_TIMEOUT": 600000}}, "cannot use it: its OPENAI_API_TIMEOUT is no text"),
        ({"args": ["--stdoi", "--toolsets=answer"]}, "gives it --stdoi, which is none of its options"),
        ({"args": ["ask", "--stdio"]}, "gives it ask, which is none of its options"),
        ({"args": "--stdio"}, "Codex cannot use it: its args is no list of texts"),
        ({"env": ["OPENAI_API_TIMEOUT=600000"]}, "Codex cannot use it: its env is no table of variables"),
        ({"args": ["OPENAI_API_KEY=0123456789abcdef"]}, "gives it OPENAI_API_KEY=(not shown), which is none of its"),
        ({"command": 5}, "cannot use it: its command is no text"),
        ({"command": ""}, "cannot use it: it has no command"),
    ],
)
async def test_what_is_wrong_in_an_entry_is_told_with_the_command_that_puts_it_right(
    examine: Doctor, tmp_path: Path, said: dict[str, Any], told: str
) -> None:
    started = tmp_path / "started"
    put("codex", tmp_path, {"command": small_server(tmp_path, f"touch {started}"), **said})
    report = await examine("--offline", "--client", "codex", start=None)
    report.line("FAIL", "clients", told, "install codex --write")
    assert not started.exists()


async def test_a_number_that_is_too_long_to_be_written_ends_nothing(examine: Doctor, tmp_path: Path) -> None:
    path = put("codex", tmp_path, {"command": "openai-responses-mcp"}, "mine")
    path.write_text(f"{path.read_text('utf-8')}env = {{A = 0x{'f' * 4000}}}\n", encoding="utf-8")
    report = await examine("--offline")
    assert any("by mine in " in line for line in report.lines)


@pytest.mark.parametrize(("client", "text"), [("cursor", "[]"), ("cursor", '{"a": NaN}'), ("gemini", "null")])
async def test_a_file_that_holds_something_else_fails(examine: Doctor, tmp_path: Path, client: str, text: str) -> None:
    put(client, tmp_path, {}).write_text(text, encoding="utf-8")
    report = await examine("--offline", "--client", client)
    report.line("FAIL", "clients", "was not read: it holds ", "Fix: correct that file")


@posix_only
async def test_a_program_of_our_name_that_leads_to_javascript_is_the_older_one(examine: Doctor, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    built = tmp_path / "lib/node_modules/openai-responses-mcp/dist/index.js"
    built.parent.mkdir(parents=True)
    built.write_text(f"#!/bin/sh\ntouch {ran}\n", encoding="utf-8")
    built.chmod(0o700)
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin/openai-responses-mcp"
    program.symlink_to(built)
    put("codex", tmp_path, {"command": str(program), "args": ["--stdio"], "env_vars": ["OPENAI_API_KEY"]}, "old")
    report = await examine("--offline", "--client", "codex")
    report.line("warn", "clients", "Codex starts the older program of this name, which runs on Node, by old in ")
    assert not ran.exists()


@posix_only
async def test_an_entry_whose_command_fails_is_told_with_the_command_that_puts_it_right(
    examine: Doctor, tmp_path: Path
) -> None:
    (tmp_path / "uvx").write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    (tmp_path / "uvx").chmod(0o700)
    put("codex", tmp_path, {"command": str(tmp_path / "uvx"), "args": ["-q", "openai-responses-mcp"]})
    report = await examine("--offline", "--client", "codex", start=None)
    report.line("FAIL", "start", "ended with code 1", "install codex --write")


@posix_only
@pytest.mark.parametrize(
    ("words", "starts"),
    [
        (["sh", "-c", "exec openai-responses-mcp ask hi"], False),
        (["docker", "run", "-i", "ghcr.io/x/openai-responses-mcp:1"], False),
        (["docker", "run", "--name", "openai-responses-mcp", "-i", "image", "--stdio"], True),
        (["sh", "-c", "exec openai-responses-mcp --stdio"], True),
        (["nix", "run", "github:uchimanajet7/openai-responses-mcp", "--", "--stdio"], True),
    ],
)
async def test_an_entry_that_is_ours_by_its_name_alone_is_started_only_where_it_says_stdio(
    examine: Doctor, tmp_path: Path, words: list[str], *, starts: bool
) -> None:
    started = tmp_path / "started"
    (tmp_path / words[0]).symlink_to(small_server(tmp_path, f"touch {started}"))
    put("codex", tmp_path, {"command": str(tmp_path / words[0]), "args": words[1:], "env_vars": ["OPENAI_API_KEY"]})
    report = await examine("--offline", "--client", "codex", start=None)
    report.line("ok", "clients")
    assert started.exists() is starts
