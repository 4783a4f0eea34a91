"""`openai-responses-mcp doctor`: each fault has a line that finds it and names its cure."""

import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from subprocess import DEVNULL
from typing import Any

import pytest
import trio
import trustme

from responses_mcp import cli
from responses_mcp.commands import doctor
from responses_mcp.commands.clients import CLIENTS, PATIENCE, Server
from responses_mcp.commands.doctor import network
from responses_mcp.commands.doctor.configuration import check_patience, check_program
from responses_mcp.commands.doctor.handshake import Handshake, judged, shake_hands
from responses_mcp.commands.doctor.model_ends import check_models
from responses_mcp.settings import Profile
from responses_mcp.settings.schema import SETTINGS
from responses_mcp.testing import Error, Hang, Json, Reply, open_fake_api
from tests.processes import COMMAND, environment
from tests.responses_api.network import (
    bare_environment,
    closed_port,
    gone,
    listening,
    no_names,
    open_proxy,
    tls_front,
    trust,
)

__all__ = ["bare_environment", "closed_port", "no_names"]
pytestmark = pytest.mark.usefixtures("surroundings")

KEY = "sk-canary-0123456789abcdef"
WAIT = 30.0  # seconds; a bound for a stuck machine, not an expectation

# A server that is quick to start; what it does besides is put in front.
SMALL = """\
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        result = {"tools": [{"name": "answer"}]} if message["method"] == "tools/list" else {}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


# The same for a shell, which starts in a tenth of the time.
SMALLEST = """\
read -r line; echo '{"jsonrpc": "2.0", "id": 0, "result": {}}'
read -r line; read -r line; echo '{"jsonrpc": "2.0", "id": 1, "result": {"tools": [{"name": "answer"}]}}'
read -r line || exit 0
"""


def server(before: str = "", after: str = "", small: str = SMALL) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", f"{before}\n{small}\n{after}"]


SOUND = ["sh", "-c", SMALLEST] if sys.platform != "win32" else server()


@pytest.fixture
def surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bare_environment: None) -> None:
    """Leave nothing in the environment that says something, but a key that is well formed."""
    for setting in SETTINGS:
        if setting.env:
            monkeypatch.delenv(setting.env, raising=False)
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


class Report:
    """What the command wrote, line by line."""

    def __init__(self, code: int, out: str, err: str) -> None:
        assert KEY not in out + err
        assert err == ""
        self.code = code
        self.lines = out.splitlines()

    def line(self, status: str, check: str, *more: str) -> str:
        """Return the one line of a check with that status in which all of `more` stands."""
        found = [each for each in self.lines if each.split()[:2] == [status, f"{check}:"]]
        found = [each for each in found if all(text in each for text in more)]
        assert len(found) == 1, "\n".join(self.lines)
        return found[0]

    @property
    def failed(self) -> list[str]:
        return [each.split()[1].rstrip(":") for each in self.lines if each.startswith("FAIL")]


Doctor = Callable[..., Awaitable[Report]]


@pytest.fixture
def examine(capsys: pytest.CaptureFixture[str]) -> Doctor:
    """Return a function that runs the command in a thread, because it has a run loop of its own."""

    async def run(*arguments: str, start: list[str] | None = None) -> Report:
        with trio.fail_after(WAIT):
            code = await trio.to_thread.run_sync(
                lambda: doctor.run(arguments, server=start or SOUND), abandon_on_cancel=True
            )
        shown = capsys.readouterr()
        return Report(code, shown.out, shown.err)

    return run


def write(file: Path, text: str) -> str:
    file.write_text(text, encoding="utf-8")
    return str(file)


# All is well


async def test_where_all_is_well_nothing_fails_and_the_code_is_0(
    examine: Doctor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PATIENCE, "codex", replace(PATIENCE["codex"], start=WAIT))  # the machine may be busy
    async with open_fake_api() as api:
        monkeypatch.setenv("OPENAI_BASE_URL", api.base_url)
        report = await examine()
    assert (report.code, report.failed) == (0, [])
    assert [(request.method, request.target) for request in api.requests] == [("GET", "/v1/models")]
    assert api.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert api.requests[0].body == b""
    for check in ("python", "config", "key", "base_url", "proxy", "certificates", "dns", "tcp", "http", "models"):
        report.line("ok", check)
    assert "gpt-5.2 (model_profiles.answer) is listed" in report.line("ok", "models")
    report.line("ok", "start", "lists the tools answer.")
    report.line("ok", "stdout")
    report.line("ok", "exit", "code 0")


async def test_offline_asks_nobody(examine: Doctor, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_fake_api() as api:
        monkeypatch.setenv("OPENAI_BASE_URL", api.base_url)
        report = await examine("--offline")
        monkeypatch.setattr(trio.socket, "socket", None)
        monkeypatch.setattr(trio.socket, "getaddrinfo", None)
        monkeypatch.setenv("HTTP_PROXY", "http://proxy.invalid:3128")
        monkeypatch.setenv("NO_PROXY", "")
        proxied = await examine("--offline")
    assert (report.code, proxied.code, api.connections) == (0, 0, 0)
    proxied.line("ok", "proxy", "proxy.invalid:3128")
    report.line("skip", "network", "--offline")
    assert "was not asked" in report.line("ok", "models")


async def test_json_has_the_same_as_data_and_nothing_else_on_stdout(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    with trio.fail_after(WAIT):
        code = await trio.to_thread.run_sync(lambda: doctor.run(["--offline", "--json"], server=SOUND))
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (code, document["ok"]) == (1, False)
    [key] = [each for each in document["checks"] if each["check"] == "key"]
    assert (key["status"], key["found"]) == ("FAIL", "OPENAI_API_KEY is not set")
    assert key["cure"].startswith("set it in the `env`")
    assert all(("cure" in each) == (each["status"] in ("warn", "FAIL")) for each in document["checks"])


async def test_the_real_server_shakes_hands_with_the_configuration_that_was_given(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "manuals/guide").mkdir(parents=True)
    config = write(tmp_path / "c.yaml", f"manuals:\n  root: {json.dumps(str(tmp_path / 'manuals'))}\n")
    with trio.fail_after(WAIT):
        code = await trio.to_thread.run_sync(lambda: cli.run(["doctor", "--offline", "--config", config]))
    report = Report(code, *capsys.readouterr())
    started = next(line for line in report.lines if " start:" in line)
    assert "answer_quick, manual_ls" in started
    report.line("ok", "stdout")
    report.line("ok", "exit")
    report.line("ok", "config", config)
    report.line("ok", "manuals", "has 1 manual.")
    report.line("ok", "index")
    assert report.code == 0


@pytest.mark.parametrize(("terminal", "no_color"), [(False, ""), (True, "1"), (True, "")])
async def test_colour_is_only_for_a_terminal_and_only_an_addition(
    examine: Doctor, monkeypatch: pytest.MonkeyPatch, terminal: bool, no_color: str
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setenv("TERM", "xterm")
    report = await examine("--offline")
    coloured = terminal and not no_color and sys.platform != "win32"
    assert any("\x1b" in line for line in report.lines) is coloured
    assert any("ok" in line and "python:" in line for line in report.lines)


@pytest.mark.skipif(sys.platform == "win32", reason="a script with a first line")
async def test_the_server_is_started_as_clients_start_it_whatever_is_in_the_working_directory(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    script = write(tmp_path / "openai-responses-mcp", f"#!{sys.executable} -I\n{SMALL}")
    os.chmod(script, 0o755)
    write(tmp_path / "json.py", "raise SystemExit(3)")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [script])
    monkeypatch.setitem(PATIENCE, "codex", replace(PATIENCE["codex"], start=WAIT))  # the machine may be busy
    with trio.fail_after(WAIT):
        code = await trio.to_thread.run_sync(lambda: doctor.run(["--offline"]))
    report = Report(code, *capsys.readouterr())
    report.line("ok", "start", "lists the tools answer.")


# Program


def test_an_executable_that_may_vanish_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    name = "openai-responses-mcp.exe" if sys.platform == "win32" else "openai-responses-mcp"
    for folder in ("lasting/bin", "uv/archive-v0/x/bin"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / name).touch()
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path / "tmp"))
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "uv/archive-v0/x/bin" / name)])
    found = list(check_program())[1]
    assert (found.status, "temporary" in found.found) == ("warn", True)
    assert "uv tool install" in str(found.cure)
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "lasting/bin" / name)])
    found = list(check_program())[1]
    assert (found.status, str(tmp_path / "lasting/bin" / name) in found.found) == ("ok", True)


# Key


@pytest.mark.parametrize(
    ("key", "found", "cure"),
    [
        (None, "OPENAI_API_KEY is not set", "set it in the `env` of this server's entry"),
        ("", "OPENAI_API_KEY is not set", "set it in the `env`"),
        ("  ", "OPENAI_API_KEY is empty", "set it in the `env`"),
        (KEY + "\n", "OPENAI_API_KEY has white space or a line break in it", "remove it"),
        (KEY + "\r\n", "OPENAI_API_KEY has white space or a line break in it", "remove it"),
        (f"{KEY} {KEY}", "OPENAI_API_KEY has white space", "remove it"),
        ("${OPENAI_API_KEY}", "OPENAI_API_KEY holds an unexpanded placeholder", "put the key itself into the `env`"),
        (f'"{KEY}"', "OPENAI_API_KEY has quotation marks around it", "remove them"),
        (f"{KEY}é", "OPENAI_API_KEY has characters that no API key has", "copy the key again"),
    ],
)
async def test_a_key_that_cannot_work_is_told_with_the_cure_and_never_shown(
    examine: Doctor, monkeypatch: pytest.MonkeyPatch, key: str | None, found: str, cure: str
) -> None:
    if key is None:
        monkeypatch.delenv("OPENAI_API_KEY")
    else:
        monkeypatch.setenv("OPENAI_API_KEY", key)
    report = await examine("--offline")
    line = report.line("FAIL", "key", found)
    assert f"Cure: {cure}" in line
    assert report.code == 1
    assert "canary" not in line


async def test_a_machine_of_ones_own_needs_no_key(examine: Doctor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    async with open_fake_api() as api:
        monkeypatch.setenv("OPENAI_BASE_URL", api.base_url)
        report = await examine()
    report.line("ok", "key", "need not be")
    assert report.code == 0


async def test_extra_headers_are_named_and_their_values_are_not(
    examine: Doctor, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GATEWAY_KEY", "hidden-0123456789")
    config = write(tmp_path / "c.yaml", "openai:\n  headers_env:\n    api-key: GATEWAY_KEY\n    x-more: NOT_SET\n")
    report = await examine("--offline", "--config", config)
    line = report.line("ok", "headers", "api-key (from GATEWAY_KEY)")
    assert "hidden" not in line
    report.line("FAIL", "headers", "x-more", "Cure: set NOT_SET where the server is started")


# Configuration


async def test_broken_yaml_is_told_with_its_place(examine: Doctor, tmp_path: Path) -> None:
    config = write(tmp_path / "c.yaml", "request:\n  timeout_ms: [1\n")
    report = await examine("--offline", "--config", config)
    report.line("FAIL", "config", "expected valid YAML", f"{config} line 3", "Cure: correct the file.")
    assert report.code == 1


async def test_nothing_is_sent_where_a_broken_file_may_name_another_address(
    examine: Doctor, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(network, "open_connections", None)
    config = write(tmp_path / "c.yaml", "openai:\n  base_url: [https://gateway.example/v1\n")
    report = await examine("--config", config)
    report.line("skip", "network")


async def test_a_wrong_value_is_told_with_its_source_and_what_is_allowed(
    examine: Doctor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_TIMEOUT", "soon")
    report = await examine("--offline")
    report.line(
        "FAIL", "config", "request.timeout_ms: expected an integer", '"soon"', "env OPENAI_API_TIMEOUT", "Cure:"
    )
    assert report.code == 1


async def test_warnings_of_the_configuration_fail_nothing(examine: Doctor, tmp_path: Path) -> None:
    config = write(tmp_path / "c.yaml", "request:\n  timeout: 5\n")
    report = await examine("--offline", "--config", config)
    report.line("warn", "config", "request.timeout: unknown key", "Cure: did you mean request.timeout_ms?")
    assert report.code == 0


async def test_an_http_address_is_told_and_nothing_is_sent_anywhere(
    examine: Doctor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://gateway.example/v1")
    monkeypatch.setattr(network, "open_connections", None)
    report = await examine()
    report.line("FAIL", "base_url", "http://gateway.example", "unencrypted", "Cure: use https")
    report.line("skip", "network")
    assert report.failed == ["base_url"]


async def test_an_http_address_that_is_allowed_is_a_warning(
    examine: Doctor, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    config = write(tmp_path / "c.yaml", "openai:\n  base_url: http://gateway.example/v1\n  allow_http: true\n")
    report = await examine("--offline", "--config", config)
    report.line("warn", "base_url", "not encrypted", "Cure: use https.")


async def test_a_folder_of_manuals_that_is_not_there_and_an_index_that_cannot_be_kept_are_told(
    examine: Doctor, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MANUALS_ROOT", str(tmp_path / "none"))
    report = await examine("--offline")
    report.line("warn", "manuals", "no such folder", "Cure: create it or correct the path.")
    (tmp_path / "none").mkdir()
    monkeypatch.setenv("MANUALS_INDEX_DIR", write(tmp_path / "file", "in the way"))
    report = await examine("--offline")
    report.line("warn", "manuals", "has no manuals", "Cure: make a folder in it for each manual")
    report.line("warn", "index", "cannot be written to", "Cure: make it a folder")


# Models


async def test_an_unknown_model_fails_with_names_that_are_near(
    examine: Doctor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MODEL_QUICK", "gpt-5.4-mni")
    async with open_fake_api() as api:
        monkeypatch.setenv("OPENAI_BASE_URL", api.base_url)
        report = await examine()
    report.line("FAIL", "models", "gpt-5.4-mni (model_profiles.answer_quick) is not among the 3 models", "gpt-5.4-mini")
    report.line("ok", "models", "gpt-5.2")
    assert report.failed == ["models"]


@pytest.mark.parametrize("arguments", [["--offline"], []])
async def test_a_retired_model_fails_with_what_to_take_instead_also_offline(
    examine: Doctor, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.setenv("MODEL_ANSWER", "o4-mini")
    async with open_fake_api() as api:
        monkeypatch.setenv("OPENAI_BASE_URL", api.base_url)
        report = await examine(*arguments)
    line = report.line("FAIL", "models", "ended on 2026-10-23")
    assert "Cure: set model_profiles.answer to" in line
    assert "gpt-5.4-mini" in line


@pytest.mark.parametrize(
    ("model", "today", "listed", "status", "found"),
    [
        ("o3", date(2026, 9, 1), None, "ok", "no near end"),
        ("o3", date(2026, 11, 22), None, "warn", "ends on 2026-12-11"),
        ("o3", date(2026, 12, 11), {"o3"}, "warn", "ends on 2026-12-11"),
        ("o3", date(2026, 12, 12), None, "FAIL", "ended on 2026-12-11"),
        ("o3", date(2026, 12, 12), {"o3"}, "warn", "still listed"),
        ("o3", date(2026, 12, 12), {"gpt-5.5"}, "FAIL", "it ended on"),
        ("openai/gpt-5-2025-08-07", date(2026, 12, 12), None, "FAIL", "ended on 2026-12-11"),
        ("gpt-5.4", date(2027, 12, 12), None, "ok", "no near end"),
        ("gpt-5.2", date(2026, 12, 12), {"gpt-5.2"}, "ok", "is listed"),
    ],
)
def test_the_announced_end_of_a_model(
    model: str, today: date, listed: set[str] | None, status: str, found: str
) -> None:
    [finding] = check_models({"answer": Profile(model=model)}, listed, today)
    assert finding.status == status
    assert found in finding.found
    assert (finding.cure is None) == (status == "ok")


def test_profiles_with_the_same_model_share_a_line_and_deployments_may_have_any_name() -> None:
    profiles = {name: Profile(model="ours") for name in ("answer", "answer_quick")}
    [finding] = check_models(profiles, {"gpt-5.2"}, date(2026, 11, 22), all_listed=False)
    assert finding.status == "warn"
    assert "model_profiles.answer and model_profiles.answer_quick" in finding.found


# Proxies and certificates


async def test_a_dead_proxy_is_told_with_its_variable_and_without_its_password(
    examine: Doctor, monkeypatch: pytest.MonkeyPatch, closed_port: int
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", f"http://user:hunter22@127.0.0.1:{closed_port}")
    report = await examine()
    line = report.line("FAIL", "tcp", "(HTTPS_PROXY)", "connection refused")
    assert "Cure: correct HTTPS_PROXY, unset it, or name the API's host in NO_PROXY" in line
    assert report.failed == ["tcp"]
    assert "hunter22" not in "\n".join(report.lines)


async def test_who_does_not_trust_the_environment_is_examined_without_its_proxy_and_certificates(
    examine: Doctor, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, closed_port: int
) -> None:
    monkeypatch.setenv("ALL_PROXY", f"http://127.0.0.1:{closed_port}")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))
    report = await examine("--offline", "--config", write(tmp_path / "config.yaml", "request: {trust_env: false}"))
    report.line("ok", "proxy", "none is used, because request.trust_env is false")
    report.line("ok", "certificates", "certifi", "request.trust_env is false")
    assert report.failed == []


async def test_a_proxy_whose_name_is_unknown_is_told_with_its_variable(
    examine: Doctor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALL_PROXY", "http://nowhere.invalid:3128")
    report = await examine()
    report.line("FAIL", "dns", "nowhere.invalid:3128 (ALL_PROXY) cannot be resolved", "Cure: correct ALL_PROXY")


async def test_a_proxy_that_refuses_is_told(examine: Doctor, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_proxy(b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n") as proxy:
        monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.port}")
        report = await examine()
    report.line("ok", "tcp")
    report.line("FAIL", "http", "407", "Cure: check HTTPS_PROXY")


@pytest.mark.parametrize(
    ("value", "found", "cure"),
    [
        ("socks5://user:hunter22@127.0.0.1:1080", "of the kind socks5", "name an http or https proxy"),
        ("http://user:hunter22@127.0.0.1:port", "no URL that can be read", "write it as http://HOST:PORT"),
        ("http://:3128", "no usable host", "write it as http://HOST:PORT"),
        ("http://hunter22/x@127.0.0.1:9", "a password with a slash", "write these characters as %2F"),
        ("http://user:80#hunter22@127.0.0.1:9", "a password with a slash", "write these characters as %2F"),
    ],
)
async def test_a_proxy_that_cannot_be_used_is_told_and_nothing_is_tried(
    examine: Doctor, monkeypatch: pytest.MonkeyPatch, value: str, found: str, cure: str
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", value)
    report = await examine()
    line = report.line("FAIL", "proxy", "HTTPS_PROXY", found, f"Cure: {cure}")
    assert "hunter22" not in line
    report.line("skip", "network")


async def test_a_proxy_that_is_not_for_this_host_and_exceptions_that_match_nothing_are_told(
    examine: Doctor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", "api.openai.com,*.example.com,10.0.0.0/8")
    report = await examine("--offline")
    report.line("ok", "proxy", "HTTPS_PROXY set, but not for https://api.openai.com")
    report.line("warn", "proxy", "*.example.com, 10.0.0.0/8", "Cure: list host names")
    monkeypatch.setenv("NO_PROXY", "*, [::1], a;b")
    report = await examine("--offline")
    report.line("warn", "proxy", "match nothing: *, [::1], a;b.")
    for everything in ("*", "localhost,, .openai.com"):
        monkeypatch.setenv("NO_PROXY", everything)
        report = await examine("--offline")
        report.line("ok", "proxy", "HTTPS_PROXY set, but not for https://api.openai.com")
        assert "match nothing" not in "\n".join(report.lines)


@pytest.mark.parametrize("other", [None, "REQUESTS_CA_BUNDLE"])
async def test_an_untrusted_ca_is_told_with_the_variable_that_cures_it(
    examine: Doctor, monkeypatch: pytest.MonkeyPatch, other: str | None
) -> None:
    if other:
        monkeypatch.setenv(other, "company.pem")
    async with open_fake_api() as api, tls_front(api.base_url, trustme.CA()) as url:
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        report = await examine()
    line = report.line("FAIL", "tls", "the certificate is not trusted", "Cure: set SSL_CERT_FILE to a PEM file")
    assert ("REQUESTS_CA_BUNDLE" in line) is (other is not None)
    assert report.failed == ["tls"]
    assert api.requests == []


async def test_a_ca_that_is_missing_in_the_file_that_is_set_is_told_as_such_and_one_that_is_there_is_trusted(
    examine: Doctor, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ours, theirs = trustme.CA(), trustme.CA()
    async with open_fake_api() as api, tls_front(api.base_url, theirs) as url:
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        trust(monkeypatch, ours, tmp_path / "ours.pem")
        report = await examine()
        report.line("FAIL", "tls", "Cure: add the CA certificate of your company or gateway to the file")
        trust(monkeypatch, theirs, tmp_path / "theirs.pem")
        report = await examine()
    report.line("ok", "tls", "localhost is trusted")
    assert report.code == 0


@pytest.mark.parametrize("content", [None, "", "no certificate"])
async def test_a_certificate_file_that_cannot_be_used_is_told(
    examine: Doctor, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: str | None
) -> None:
    if content is not None:
        write(tmp_path / "ca.pem", content)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    report = await examine()
    report.line("FAIL", "certificates", "SSL_CERT_FILE", "ca.pem", "Cure: let it name a file of CA certificates")
    report.line("skip", "network")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no such files")
async def test_a_certificate_file_that_would_never_end_is_not_read(
    examine: Doctor, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "ca.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    report = await examine()
    report.line("FAIL", "certificates", "it is a pipe")


async def test_a_certificate_folder_without_hashed_names_is_told(
    examine: Doctor, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SSL_CERT_DIR", str(tmp_path))
    report = await examine("--offline")
    report.line("FAIL", "certificates", "SSL_CERT_DIR", 'Cure: run "openssl rehash')
    write(tmp_path / "0123abcd.0", "")
    report = await examine("--offline")
    report.line("ok", "certificates", "SSL_CERT_DIR")


# The way to the API


@pytest.mark.usefixtures("no_names")
async def test_an_unreachable_host_is_told_by_its_name(examine: Doctor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "https://nowhere.invalid/v1")
    report = await examine()
    line = report.line("FAIL", "dns", "the name nowhere.invalid cannot be resolved")
    assert "Cure: correct host and port in openai.base_url" in line
    assert report.failed == ["dns"]


async def test_a_wrong_port_is_told(examine: Doctor, monkeypatch: pytest.MonkeyPatch, closed_port: int) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{closed_port}/v1")
    report = await examine()
    report.line(
        "FAIL", "tcp", f"127.0.0.1:{closed_port} cannot be reached (connection refused)", "Cure: correct host and port"
    )


async def test_https_where_http_is_spoken_is_told(examine: Doctor, monkeypatch: pytest.MonkeyPatch) -> None:
    async with open_fake_api() as api:
        monkeypatch.setenv("OPENAI_BASE_URL", api.base_url.replace("http:", "https:"))
        report = await examine()
    report.line("FAIL", "tls", "no TLS connection", "Cure: check the scheme, host and port of openai.base_url")


async def test_an_api_that_does_not_answer_is_told_within_a_bound(
    examine: Doctor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(network, "_REPLY", 0.1)
    async with open_fake_api(Hang()) as api:
        monkeypatch.setenv("OPENAI_BASE_URL", api.base_url)
        report = await examine()
        with trio.fail_after(WAIT):
            await gone(api)
    report.line("FAIL", "http", "no answer to GET", "within 0.1 s", "Cure: check")


async def test_all_steps_together_have_a_bound(examine: Doctor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "_ALL", 0.1)
    async with open_fake_api(Hang()) as api:
        monkeypatch.setenv("OPENAI_BASE_URL", api.base_url)
        report = await examine()
    report.line("FAIL", "network", "longer than 0.1 s", "Cure: try again")


@pytest.mark.parametrize(
    ("reply", "status", "said"),
    [
        (Error(401, f"Incorrect API key provided: {KEY[:8]}***cdef", code="invalid_api_key"), "FAIL", ("401 invalid_api_key; the API refuses the key", "put a key that is valid there into OPENAI_API_KEY")),
        (Error(403, "Country not supported", code="unsupported_country"), "FAIL", ("403 unsupported_country; the API does not let", "check the key's project")),
        (Error(403, "Missing scopes: api.model.read"), "warn", ("the key may not list models", "give the key the permission")),
        (Error(404), "FAIL", ("404 model_not_found; nothing is there", "correct the path in openai.base_url")),
        (Error(429, "Slow down"), "warn", ("limits the rate", "wait a while")),
        (Error(429, "No money", code="insufficient_quota"), "FAIL", ("quota is used up", "check plan and billing")),
        (Error(500, "Boom"), "FAIL", ("The API failed (500): Boom", "try again later")),
        (Json({"data": "?"}), "warn", ("in another form", "check openai.base_url")),
    ],
    ids=["401", "403", "403 scope", "404", "429", "quota", "500", "other form"],
)  # fmt: skip
async def test_what_the_api_answers_is_told_with_its_meaning(
    examine: Doctor, monkeypatch: pytest.MonkeyPatch, reply: Reply, status: str, said: tuple[str, str]
) -> None:
    found, cure = said
    async with open_fake_api(reply) as api:
        monkeypatch.setenv("OPENAI_BASE_URL", api.base_url)
        report = await examine()
    line = report.line(status, "http", found)
    assert f"Cure: {cure}" in line
    assert "canary" not in line.replace(KEY, "")
    assert KEY[:8] not in line


async def test_a_page_of_a_captive_portal_is_no_list_of_models(
    examine: Doctor, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def portal(stream: object) -> None:
        assert isinstance(stream, trio.SocketStream)
        await stream.receive_some()
        await stream.send_all(b"HTTP/1.1 200 OK\r\ncontent-length: 13\r\n\r\n<html></html>")

    async with listening(portal) as port:
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{port}/v1")
        report = await examine()
    report.line("FAIL", "http", "not a JSON object", "Cure: check that openai.base_url is a Responses API")


async def test_without_a_usable_key_the_way_is_tried_without_one(
    examine: Doctor, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ca = trustme.CA()
    trust(monkeypatch, ca, tmp_path / "ca.pem")
    monkeypatch.setenv("OPENAI_API_KEY", "${OPENAI_API_KEY}")
    async with open_fake_api(Error(401)) as api, tls_front(api.base_url, ca) as url:
        monkeypatch.setenv("OPENAI_BASE_URL", url)
        report = await examine()
    assert "authorization" not in api.requests[0].headers
    report.line("ok", "http", "wants a key")
    assert report.failed == ["key"]


# Start


async def test_a_slow_start_is_told_with_the_clients_that_do_not_wait_for_it(examine: Doctor) -> None:
    report = await examine("--offline", start=server("import time\ntime.sleep(1.05)"))
    line = report.line("warn", "start", "too late for Codex (about 1 s)")
    assert "Cure: for Codex set required = true and startup_timeout_sec = 30" in line
    assert report.code == 0


def test_the_slower_the_start_the_more_clients_are_lost() -> None:
    def lost(seconds: float) -> list[str]:
        [start, *_] = judged(Handshake(seconds=seconds, tools=["answer"], exit_code=0), list(PATIENCE.values()))
        return [client.title for client in PATIENCE.values() if client.title in start.found and start.status == "warn"]

    assert lost(0.9) == []
    assert lost(1.3) == ["Codex"]
    assert lost(31) == ["Codex", "Claude Code"]
    assert len(lost(60)) == 4


async def test_one_client_can_be_judged_for(examine: Doctor) -> None:
    report = await examine("--offline", "--client", "claude-code")
    report.line("ok", "time-outs")
    report = await examine("--offline", "--client", "claude-desktop")
    assert "Codex" not in report.line("warn", "time-outs", "Claude Desktop (60 s)")


async def test_output_that_is_no_message_is_told(examine: Doctor) -> None:
    report = await examine("--offline", start=server(f"print('Welcome! ' + '.' * 90 + ' {KEY}')"))
    report.line("FAIL", "stdout", "Welcome!", "Cure: find what prints there")
    assert "canary" not in "\n".join(report.lines)
    report = await examine("--offline", start=server(after="print('Bye!')"))
    report.line("FAIL", "stdout", "Bye!")


async def test_a_server_that_ends_at_once_is_told_with_its_last_words(examine: Doctor) -> None:
    report = await examine("--offline", start=server(f"import sys\nsys.exit('no module for {KEY}')"))
    report.line("FAIL", "start", "ended with code 1", "no module for [redacted]", "Cure: run")
    report = await examine("--offline", start=["/nowhere/python"])
    report.line("FAIL", "start", "cannot be started")


async def test_a_server_that_does_not_list_tools_or_fails_at_its_end_is_told(examine: Doctor) -> None:
    report = await examine("--offline", start=server(small=SMALL.replace('"tools":', '"no":'), after="sys.exit(3)"))
    report.line("FAIL", "start", "not tools/list")
    report.line("FAIL", "exit", "code 3", "Cure: run it with --debug PATH")


@pytest.mark.parametrize("deaf", [True, False])
async def test_a_server_that_hangs_is_ended_within_a_bound(deaf: bool) -> None:
    hang = "import time\ntime.sleep(60)"
    with trio.fail_after(WAIT):
        result = await shake_hands(server(hang if deaf else "", hang), str, answers=0.3 if deaf else WAIT, ends=0.2)
    assert (result.seconds is None, result.exit_code) == (deaf, None)
    findings = list(judged(result, []))
    assert findings[0].status == ("FAIL" if deaf else "ok")
    assert deaf or findings[-1].found.startswith("the server still ran")


# Time-outs


def test_a_call_that_may_take_longer_than_clients_wait_is_told_with_what_to_set() -> None:
    finding = check_patience(300_000, list(PATIENCE.values()))
    assert finding.status == "warn"
    assert "Codex (60 s)" in finding.found
    assert "tool_timeout_sec" in str(finding.cure)
    assert "OPENAI_API_TIMEOUT" in str(finding.cure)
    assert check_patience(55_000, list(PATIENCE.values())).status == "ok"


def test_install_writes_what_doctor_names() -> None:
    entry = CLIENTS["codex"].entry(Server(command=("x",), answer_ms=100_000))
    told = check_patience(100_000, [CLIENTS["codex"]])
    assert f"tool_timeout_sec = {entry['tool_timeout_sec']} in" in str(told.cure)
    [slow, *_] = judged(Handshake(seconds=2, tools=[], exit_code=0), [CLIENTS["codex"]])
    assert f"required = true and startup_timeout_sec = {entry['startup_timeout_sec']} in" in str(slow.cure)


# The command line


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT to send to one process")
async def test_ctrl_c_ends_it_with_130_and_closes_the_connection(tmp_path: Path) -> None:
    async with open_fake_api(Hang()) as api:
        process = await trio.lowlevel.open_process(
            [*COMMAND, "doctor"], env=environment(tmp_path, api.base_url, NO_PROXY="127.0.0.1"), stdout=DEVNULL
        )
        with trio.fail_after(WAIT):
            await api.wait_requests(1)
            process.send_signal(signal.SIGINT)
            assert await process.wait() == 130
            await api.wait_hang_ups(1)


def test_the_help_fits_a_screen_and_shows_an_example(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit, match="0"):
        cli.run(["doctor", "--help"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    assert "example:" in lines


def test_a_ctrl_c_that_comes_in_a_group_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    async def interrupted(*_: object) -> None:
        await trio.lowlevel.checkpoint()
        raise BaseExceptionGroup("of a nursery", [KeyboardInterrupt()])

    monkeypatch.setattr(doctor, "_check", interrupted)
    assert doctor.run([]) == 130


def test_a_wrong_command_line_is_2(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        doctor.run(["--client", "emacs"])
    assert "codex" in capsys.readouterr().err
