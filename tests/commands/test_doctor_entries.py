"""`openai-responses-mcp doctor` reads the entries of clients: what they start, what gets there, how long they wait."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from responses_mcp.commands.clients.entries import document_of
from responses_mcp.commands.clients.known import CLIENTS, Machine
from responses_mcp.commands.install import run
from tests.commands.test_doctor import KEY, SMALLEST, Doctor, bare_environment, examine, surroundings, write

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
    path.write_text(document_of("", CLIENTS[client], name).changed(entry), encoding="utf-8")
    return path


def small_server(tmp_path: Path, before: str = "") -> str:
    """Return the path of a server that clients can be told to start."""
    script = tmp_path / "bin/openai-responses-mcp"
    script.parent.mkdir(exist_ok=True)
    script.write_text(f"#!/bin/sh\n{before}\n{SMALLEST}", encoding="utf-8")
    script.chmod(0o755)
    return str(script)


posix_only = pytest.mark.skipif(sys.platform == "win32", reason="a shell script is the server")


@posix_only
async def test_a_time_limit_is_judged_and_told_by_what_the_entry_says(examine: Doctor, tmp_path: Path) -> None:
    program, long = small_server(tmp_path), {"env": {"OPENAI_API_TIMEOUT": "600000"}}
    report = await examine("--offline")
    report.line("ok", "clients", "no client has an entry for this server")
    report.line("ok", "time-outs")
    codex = put("codex", tmp_path, {"command": program, "env_vars": ["OPENAI_API_KEY"], "tool_timeout_sec": 330})
    assert not [line for line in (await examine("--offline")).lines if line.startswith("warn time-outs")]
    put("codex", tmp_path, {"command": program, "env_vars": ["OPENAI_API_KEY"], "tool_timeout_sec": 330, **long})
    put("claude-code", tmp_path, {"command": program, "timeout": 100_000})
    report = await examine("--offline")
    told = f"a call may take 600 s (request.timeout_ms), and Codex waits 330 s (entry openai-responses in {codex})."
    report.line("warn", "time-outs", told, 'Fix: run "openai-responses-mcp install codex --write" again')
    report.line("warn", "time-outs", "a call may take 300 s (request.timeout_ms), and Claude Code waits 100 s")
    put("codex", tmp_path, {"command": "openai-responses-mcp", "tool_timeout_sec": 10**400})
    put("gemini", tmp_path, {"command": "openai-responses-mcp", "env": {"OPENAI_API_TIMEOUT": f"{10**400}"}})
    report = await examine("--offline")
    assert not [line for line in report.lines if "Codex waits" in line or "Gemini CLI waits" in line]


@posix_only
async def test_an_entry_whose_command_is_gone_is_told_and_fails_the_client_that_was_asked_for(
    examine: Doctor, tmp_path: Path
) -> None:
    cursor = put(
        "cursor", tmp_path, {"command": small_server(tmp_path), "env": {"OPENAI_API_KEY": "${env:OPENAI_API_KEY}"}}
    )
    gemini = put("gemini", tmp_path, {"command": "/gone/openai-responses-mcp"}, "mine")
    report = await examine("--offline")
    report.line(
        "ok", "clients", f"Cursor starts {tmp_path}/bin/openai-responses-mcp (entry openai-responses in {cursor}"
    )
    gone = ("Gemini CLI cannot start /gone/openai-responses-mcp: no such program", f"(entry mine in {gemini}).")
    report.line("warn", "clients", *gone, 'Fix: run "openai-responses-mcp install gemini --name mine --write" again')
    assert report.code == 0
    report = await examine("--offline", "--client", "gemini")
    report.line("FAIL", "clients", *gone)
    assert (report.code, [line for line in report.lines if "Cursor" in line]) == (1, [])
    put("opencode", tmp_path, {"command": ["/opt/bin/openai-response-mcp", "--stdio"]})
    report = await examine("--offline", "--client", "opencode")
    report.line("FAIL", "clients", "OpenCode cannot start /opt/bin/openai-response-mcp: no such program")
    report = await examine("--offline", "--client", "codex")
    report.line("warn", "clients", "Codex has no entry for this server", 'Fix: run "openai-responses-mcp install codex')


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
    report.line("warn", "clients", "does not pass ", "MODEL_ANSWER on (entry")
    report.line("warn", "manuals", "server.toolsets lacks manuals, so no client sees them")
    assert "shell" not in "".join(line for line in report.lines if "does not pass" not in line)


@posix_only
@pytest.mark.parametrize(
    ("client", "entry", "seen"),
    [
        ("codex", {"env_vars": ["OPENAI_API_KEY"], "env": {"MODEL_ANSWER": "m"}}, f"{KEY}, m, "),
        ("codex", {"env_vars": ["ELSE", "OPENAI_API_KEY"]}, f"{KEY}, , x"),
        (
            "gemini",
            {"env": {"OPENAI_API_KEY": "${OPENAI_API_KEY}", "MODEL_ANSWER": "${NO_SUCH:-a}-$ELSE"}},
            f"{KEY}, a-x, ",
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
    examine: Doctor, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, *, client: str, entry: dict[str, Any], seen: str
) -> None:
    record, project = tmp_path / "seen", tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)  # nothing of it is run: the server starts in the user's home
    says = f'(printf "%s" "$OPENAI_API_KEY, $MODEL_ANSWER, $ELSE"; printf " %s" "$*"; echo; pwd -P) > {record}'
    config = write(tmp_path / "c.yaml", "model_profiles: {answer_quick: {model: model-of-the-file}}\n")
    folder = (CLIENTS[client].reference or str(tmp_path)).replace("NAME", "FOLDER")  # which the client fills in
    program = small_server(tmp_path, says).replace(str(tmp_path), folder)
    arguments = ["--stdio", "--config", config.replace(str(tmp_path), folder)]
    joined = CLIENTS[client].arguments is None
    starts = {CLIENTS[client].command: [program, *arguments] if joined else program}
    starts |= {} if joined else {"args": arguments}
    put(client, tmp_path, {**starts, **entry})
    report = await examine("--offline", "--client", client, start=None, ELSE="x", FOLDER=str(tmp_path))
    report.line("ok", "models", "model-of-the-file")
    report.line("ok", "start", "lists the tools answer.")
    report.line("ok", "clients")
    said, where = record.read_text(encoding="utf-8").splitlines()
    assert (said, where.endswith(f"/{tmp_path.name}")) == (f"{seen} --stdio --config {config}", True)


async def test_a_key_that_a_client_s_entry_has_is_not_told_to_be_missing(examine: Doctor, tmp_path: Path) -> None:
    entry = {"command": sys.executable, "args": ["-m", "responses_mcp"]}
    put("claude-desktop", tmp_path, {**entry, "env": {"OPENAI_API_KEY": KEY}})
    report = await examine("--offline", OPENAI_API_KEY=None)
    fix = 'Fix: Claude Desktop has one in its entry: run "openai-responses-mcp doctor --client claude-desktop"'
    report.line("warn", "key", "OPENAI_API_KEY is not set in this shell", fix)
    assert report.code == 0
    put("claude-desktop", tmp_path, {**entry, "env": {"OPENAI_API_KEY": "YOUR_KEY"}})
    report = await examine("--offline")
    report.line("FAIL", "key", "OPENAI_API_KEY is not set")


KEY_UNSET = ("FAIL", "key", "OPENAI_API_KEY is not set")
NO_KEY = ("FAIL", "key", "holds an unexpanded placeholder", "restart the client.", "If it is set there, run ")


@posix_only
@pytest.mark.parametrize(
    ("client", "entry", "line"),
    [
        ("codex", {}, (*KEY_UNSET, "If it is set there, run")),
        ("gemini", {}, (*KEY_UNSET, "If it is set there, run")),
        ("claude-code", {"env": {"OPENAI_API_KEY": "$OPENAI_API_KEY"}}, (*NO_KEY, "install claude-code --write")),
        ("gemini", {"env": {"OPENAI_API_KEY": "${env:OPENAI_API_KEY}"}}, (*NO_KEY, "install gemini --write")),
        ("claude-desktop", {}, (*KEY_UNSET, 'Fix: add "OPENAI_API_KEY" with its value to "env" of that entry')),
        ("zed", {}, (*KEY_UNSET, 'Fix: add "OPENAI_API_KEY" with its value to "env" of that entry, and restart Zed')),
    ],
)
async def test_a_key_and_settings_that_do_not_get_to_the_server_are_told_with_the_cure(
    examine: Doctor, tmp_path: Path, client: str, entry: dict[str, Any], line: tuple[str, ...]
) -> None:
    title = CLIENTS[client].title
    put(client, tmp_path, {"command": small_server(tmp_path), **entry})
    report = await examine("--offline", "--client", client, start=None, MODEL_ANSWER="m")
    report.line(*line)
    lost = "OPENAI_API_KEY" if client == "claude-code" else "OPENAI_API_KEY, MODEL_ANSWER"  # which passes all on
    report.line("warn", "clients", f"{title} does not pass {lost} on (entry ", "Fix: ")
    report = await examine("--offline", OPENAI_BASE_URL="http://127.0.0.1:9/v1", MODEL_ANSWER="")
    assert not [each for each in report.lines if "does not pass OPENAI_API_KEY" in each]
    config = "openai: {api_key_env: MY_KEY, headers_env: {api-key: AZ_KEY}}"
    if client in {"codex", "zed"}:
        report = await examine("--offline", config=config, AZ_KEY="of-the-gateway", MY_KEY=KEY, OPENAI_BASE_URL="")
        report.line("warn", "clients", f"{title} does not pass MY_KEY, AZ_KEY on")


@pytest.mark.parametrize(
    ("client", "text", "status", "told"),
    [
        ("cursor", "{", "FAIL", ("it is not valid JSON (line 1", "Fix: correct that file.")),
        ("cursor", '{"a": NaN}', "FAIL", ("it holds a number that is not valid JSON", "Fix: correct that file.")),
        ("gemini", "null", "FAIL", ("it holds something other than one JSON object", "Fix: correct that file.")),
        (
            "codex",
            "a = {\n b = 1,\n}\n",
            "warn",
            ("it is not valid TOML 1.0 (", "look at it yourself if Codex reads it."),
        ),
    ],
)
async def test_a_file_of_a_client_that_cannot_be_read_is_told(  # noqa: PLR0917
    examine: Doctor, tmp_path: Path, client: str, text: str, status: str, told: tuple[str, str]
) -> None:
    path = put(client, tmp_path, {})
    path.write_text(text, encoding="utf-8")
    for options, status_then in (([], "warn"), (["--client", client], status)):
        report = await examine("--offline", *options)
        report.line(status_then, "clients", f"{path} of {CLIENTS[client].title} was not read: ", *told)
        assert report.code == (status_then == "FAIL")


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
    report.line("ok", "clients", f"Claude Code starts {evil} (entry x in ")
    report.line("ok", "start", "answer_quick")
    assert sorted(os.listdir(tmp_path)) == ["bin", "cloned", "home"]


@posix_only
async def test_a_server_that_is_no_client_s_is_not_taken_for_that_of_its_entry(examine: Doctor, tmp_path: Path) -> None:
    put("gemini", tmp_path, {"command": "/gone/openai-responses-mcp"})
    report = await examine("--offline", "--client", "gemini", start=None)
    report.line("FAIL", "clients", "/gone/openai-responses-mcp: no such program")
    report.line("ok", "start", "a server with the settings of this shell answered")
    put("gemini", tmp_path, {"command": small_server(tmp_path), "env": {"OPENAI_API_KEY": "$OPENAI_API_KEY"}})
    report = await examine("--offline", "--client", "gemini", start=None)
    report.line("ok", "start", "the server answered")


@posix_only
@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"env": {"OPENAI_API_TIMEOUT": 600000}}, "Codex cannot use the entry: command, arguments and"),
        ({"args": ["--stdoi", "--toolsets=answer"]}, "without --stdio, so it does not serve"),
        ({"args": ["ask", "--", "--stdio"]}, "without --stdio, so it does not serve"),
        ({"args": ["OPENAI_API_KEY=0123456789abcdef"]}, "without --stdio, so it does not serve"),
        ({"args": "--stdio"}, "Codex cannot use the entry: command, arguments and"),
        ({"env": ["OPENAI_API_TIMEOUT=600000"]}, "Codex cannot use the entry: command, arguments and"),
        ({"command": 5}, "Codex cannot use the entry: command, arguments and"),
    ],
)
async def test_what_is_wrong_in_an_entry_is_told_with_the_command_that_puts_it_right(
    examine: Doctor, tmp_path: Path, said: dict[str, Any], told: str
) -> None:
    started = tmp_path / "started"
    put("codex", tmp_path, {"command": small_server(tmp_path, f"touch {started}"), **said})
    report = await examine("--offline", "--client", "codex", start=None)
    report.line("FAIL", "clients", told, "install codex --write")
    assert "0123456789abcdef" not in str(report.lines)
    assert not started.exists()


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


@posix_only
async def test_what_a_client_asks_its_user_for_or_fills_in_itself_is_no_failure(
    examine: Doctor, tmp_path: Path
) -> None:
    entry = {"command": small_server(tmp_path), "args": ["--stdio"], "env": {"OPENAI_API_KEY": "${input:key}"}}
    put("vscode", tmp_path, entry)
    report = await examine("--offline", "--client", "vscode", start=None, OPENAI_API_KEY=None)
    report.line("warn", "key", "VS Code asks for OPENAI_API_KEY")
    report.line("ok", "start", "lists the tools answer.")
    assert report.code == 0
    put("vscode", tmp_path, {**entry, "command": "${workspaceFolder}/bin/openai-responses-mcp"})
    report = await examine("--offline", "--client", "vscode", start=None, OPENAI_API_KEY=KEY)
    report.line("warn", "clients", "the path depends on where VS Code runs", "write an absolute path in the entry")
    assert report.code == 0


@pytest.mark.parametrize(
    "file", ["work/.claude/settings.local.json", "work/.claude/settings.json", ".claude/settings.json"]
)
async def test_a_server_of_a_project_that_was_declined_in_claude_code_is_named_with_the_cure(
    examine: Doctor, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, file: str
) -> None:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    install = ["claude-code", "--scope", "project"]
    assert run([*install, "--write"]) == 0
    assert "declined" not in "".join(capsys.readouterr())
    (tmp_path / file).parent.mkdir()
    write(tmp_path / file, '{"disabledMcpjsonServers": ["other", "openai-responses"]}')
    told = (
        f"Claude Code does not start this server, because it was declined (disabledMcpjsonServers in {tmp_path / file})"
    )
    cure = 'run "claude mcp reset-project-choices" in this folder'
    for arguments in (["--list"], install, [*install, "--write"]):
        assert run(arguments) == 0
        said = " ".join(capsys.readouterr())
        assert told in said
        assert cure in said
    for options, status in (([], "warn"), (["--client", "claude-code"], "FAIL")):
        (await examine("--offline", *options)).line(status, "clients", told, f"Fix: {cure}")
    write(tmp_path / file, '{"disabledMcpjsonServers": ["other"]')
    (await examine("--offline")).line("ok", "clients", "Claude Code starts ")
