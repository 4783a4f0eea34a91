"""`openai-responses-mcp doctor`: each fault has a line that finds it and names its cure."""

import json
import re
import signal
import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import date
from pathlib import Path
from subprocess import DEVNULL
from typing import Any

import pytest
import trio
import trustme

from responses_mcp import cli
from responses_mcp.commands import doctor
from responses_mcp.commands.doctor.handshake import check_handshake, shake_hands
from responses_mcp.commands.doctor.model_ends import announced_end, check_models
from responses_mcp.commands.doctor.network import Way, ask_for_models
from responses_mcp.commands.findings import Finding
from responses_mcp.commands.terminal import columns
from responses_mcp.research.runs_file import Row, RunsFile
from responses_mcp.settings import OpenAISettings, Profile
from responses_mcp.settings.schema import SETTINGS
from responses_mcp.testing import Error, Hang, Json, Reply, open_fake_api
from tests.commands.online import Terminal
from tests.processes import COMMAND, environment
from tests.responses_api.http.network import (
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

HELLO = '{"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "x", "version": "1"}}'
LIST = '{"tools": [{"name": "answer", "inputSchema": {"type": "object"}}]}'
# A server that is quick to start; what it does besides is put in front.
SMALL = f"""\
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        result = {LIST} if message["method"] == "tools/list" else {HELLO}
        print(json.dumps({{"jsonrpc": "2.0", "id": message["id"], "result": result}}), flush=True)
"""
# The same for a shell, which starts in a tenth of the time.
SMALLEST = f"""\
read -r line; echo '{{"jsonrpc": "2.0", "id": 1, "result": {HELLO}}}'
read -r line; read -r line; echo '{{"jsonrpc": "2.0", "id": 2, "result": {LIST}}}'
read -r line || exit 0
"""


def server(before: str = "", after: str = "", small: str = SMALL) -> list[str]:
    return [sys.executable, "-I", "-S", "-c", f"{before}\n{small}\n{after}"]


SOUND = ["sh", "-c", SMALLEST] if sys.platform != "win32" else server()


@pytest.fixture
def surroundings(monkeypatch: pytest.MonkeyPatch, bare_environment: None) -> None:
    """Leave nothing in the environment that says something, but a key that is well formed."""
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for setting in SETTINGS:
        if setting.env:
            monkeypatch.delenv(setting.env, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


class Report:
    """What the command wrote, line by line."""

    def __init__(self, code: int, out: str, err: str) -> None:
        assert "canary" not in out + err
        assert "hunter22" not in out + err
        assert err == ""
        self.code = code
        self.shown = out.splitlines()
        self.lines: list[str] = []
        for line in self.shown:
            if line.startswith(" " * 19):
                self.lines[-1] += " " + line.lstrip()
            else:
                self.lines.append(line)

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
def examine(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Doctor:
    """Return a function that runs the command in a thread, because it has a run loop of its own.

    `reply` is what a fake API answers, at `base_url`; `config` is the text of a file; None unsets a variable.
    """

    async def run(
        *arguments: str,
        reply: Reply | None = None,
        start: list[str] | None = SOUND,
        config: str | None = None,
        terminal: bool = False,
        **environ: str | None,
    ) -> Report:
        shown = Terminal()
        if terminal:
            environ |= {"COLUMNS": "80", "NO_COLOR": "1"}
            monkeypatch.setattr(sys, "stdout", shown)
        if config is not None:
            arguments = (*arguments, "--config", write(tmp_path / "c.yaml", config))
        async with AsyncExitStack() as stack:
            if reply is not None:
                environ["OPENAI_BASE_URL"] = (await stack.enter_async_context(open_fake_api(reply))).base_url
            for name, value in environ.items():
                if value is None:
                    monkeypatch.delenv(name)
                else:
                    monkeypatch.setenv(name, value)
            with trio.fail_after(WAIT):
                code = await trio.to_thread.run_sync(
                    lambda: doctor.run(arguments, server=start), abandon_on_cancel=True
                )
        out, err = capsys.readouterr()
        return Report(code, shown.text if terminal else out, err)

    return run


def write(file: Path, text: str) -> str:
    file.write_text(text, encoding="utf-8")
    return str(file)


# All is well


async def test_where_all_is_well_nothing_fails_and_the_code_is_0(examine: Doctor) -> None:
    async with open_fake_api() as api:
        report = await examine("--client", "claude-code", OPENAI_BASE_URL=api.base_url)
    assert (report.code, report.failed) == (0, [])
    [request] = api.requests
    assert (request.method, request.target, request.body) == ("GET", "/v1/models", b"")
    assert request.headers["authorization"] == f"Bearer {KEY}"
    for check in ("python", "config", "key", "base_url", "proxy", "certificates", "dns", "tcp", "http", "time-outs"):
        report.line("ok", check)
    report.line("ok", "models", "gpt-5.2 (model_profiles.answer) is listed")
    report.line("ok", "start", "lists the tools answer.")
    report.line("ok", "stdout")
    report.line("ok", "exit", "code 0")


async def test_json_has_the_same_as_data_and_nothing_else_on_stdout(examine: Doctor) -> None:
    report = await examine("--offline", "--json", OPENAI_API_KEY=None)
    document: dict[str, Any] = json.loads("\n".join(report.lines))
    assert (report.code, document["ok"]) == (1, False)
    [key] = [each for each in document["checks"] if each["check"] == "key"]
    assert (key["status"], key["found"]) == ("FAIL", "OPENAI_API_KEY is not set")
    assert key["fix"].startswith("set it where your client is started")
    assert all(("fix" in each) == (each["status"] in ("warn", "FAIL")) for each in document["checks"])


async def test_the_real_server_shakes_hands_with_the_configuration_that_was_given(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "manuals/guide").mkdir(parents=True)
    write(tmp_path / "manuals/guide/a.md", "# A\n")
    config = write(tmp_path / "c.yaml", f"manuals:\n  root: {json.dumps(str(tmp_path / 'manuals'))}\n")
    with trio.fail_after(WAIT):
        code = await trio.to_thread.run_sync(lambda: cli.run(["doctor", "--offline", "--config", config]))
    report = Report(code, *capsys.readouterr())
    assert "answer_quick, manual_ls" in next(line for line in report.lines if " start:" in line)
    report.line("ok", "stdout")
    report.line("ok", "exit")
    report.line("ok", "config", config)
    report.line("ok", "manuals", "has 1 manual.")
    assert report.code == 0


# What can be judged without the network


@pytest.mark.parametrize(
    ("environ", "config", "line"),
    [
        ({"OPENAI_API_KEY": None}, None, ("FAIL", "key", "OPENAI_API_KEY is not set", "Fix: set it where your client")),
        ({"OPENAI_API_KEY": "  "}, None, ("FAIL", "key", "OPENAI_API_KEY is empty", "Fix: set it where your client")),
        ({"OPENAI_API_KEY": f" {KEY}\r\n"}, None, ("ok", "key", "is set and well formed")),
        ({"OPENAI_API_KEY": "YOUR_KEY"}, None, ("FAIL", "key", "is an example", "Fix: put a key of your")),
        ({"OPENAI_API_KEY": "${KEY}"}, None, ("FAIL", "key", "an unexpanded placeholder", "Fix: set it where your client")),
        ({"OPENAI_API_KEY": f'"{KEY}"'}, None, ("FAIL", "key", "has quotation marks around it", "Fix: remove them")),
        ({}, "request:\n  timeout_ms: [1\n", ("FAIL", "config", "valid YAML", "c.yaml line 3", "Fix: correct the file.")),
        ({}, "request: {timeout: 5}\n", ("warn", "config", "unknown key", "Fix: did you mean request.timeout_ms?")),
        (
            {"OPENAI_API_TIMEOUT": "soon"},
            None,
            ("FAIL", "config", 'timeout_ms: expected an integer from 1 to 86400000, got "soon" (from env OPENAI', "Fix:"),
        ),
        (
            {"OPENAI_BASE_URL": "http://gateway.example/v1"},
            "openai: {allow_http: true}",
            ("warn", "base_url", "not encrypted", "Fix: use https."),
        ),
        (
            {"OPENAI_BASE_URL": "https://api.openai.com/"},
            None,
            ("FAIL", "base_url", "https://api.openai.com (from", "Fix: write https://api.openai.com/v1."),
        ),
        ({"MANUALS_ROOT": "/nowhere"}, None, ("warn", "manuals", "no such folder", "Fix: create it or correct the path")),
        ({"MODEL_ANSWER": "o4-mini"}, None, ("FAIL", "models", "ended on 2026-10-23", "for instance gpt-6.1-terra")),
        (
            {"ALL_PROXY": "http://127.0.0.1:1", "SSL_CERT_FILE": "/nowhere"},
            "request: {trust_env: false}",
            ("ok", "certificates", "certifi"),
        ),
        ({"HTTPS_PROXY": "http://proxy.invalid:3128"}, None, ("ok", "proxy", "is reached through", "proxy.invalid:3128")),
    ],
)  # fmt: skip
async def test_what_is_wrong_here_is_told_offline_with_its_cure(
    examine: Doctor, environ: dict[str, str | None], config: str | None, line: tuple[str, ...]
) -> None:
    report = await examine("--offline", config=config, **environ)
    assert not report.line(*line).endswith("?.")
    assert report.code == (1 if line[0] == "FAIL" else 0)


@pytest.mark.parametrize(
    ("environ", "line"),
    [
        ({"MANUALS_ROOT": "manuals"}, ("warn", "key", "; the manuals work without a key", "Fix: set it where")),
        (
            {"MANUALS_ROOT": "none"},
            ("warn", "manuals", "has 0 manuals, and no file", "Fix: put manuals there"),
        ),
        (
            {"MCP_TOOLSETS": "answer,research", "RESEARCH_STATE_DIR": "file/state"},
            ("FAIL", "state", "cannot be written to", "RESEARCH_STATE_DIR"),
        ),
    ],
)
async def test_a_folder_that_is_of_no_use_is_told(
    examine: Doctor, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, environ: dict[str, str], line: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("manuals/guide", "none"):
        (tmp_path / folder).mkdir(parents=True)
    write(tmp_path / "manuals/guide/a.md", "# A\n")
    write(tmp_path / "file", "in the way")
    report = await examine("--offline", OPENAI_API_KEY=None if line[1] == "key" else KEY, **environ)
    report.line(*line)
    assert report.code == (line[0] == "FAIL")


async def test_extra_headers_are_named_and_their_values_are_not(examine: Doctor) -> None:
    config = "openai:\n  headers_env:\n    api-key: GATEWAY_KEY\n    x-more: NOT_SET\n"
    report = await examine("--offline", config=config, GATEWAY_KEY="hidden-0123456789")
    assert "hidden" not in report.line("ok", "headers", "api-key (from GATEWAY_KEY)")
    report.line("FAIL", "headers", "x-more", "Fix: set NOT_SET where the client is started and let")


@pytest.mark.rule("P16")
async def test_what_embeddings_send_and_where_is_told(
    examine: Doctor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {"MANUALS_ROOT": str(tmp_path), "MANUALS_EMBEDDINGS_PROVIDER": "api"}
    report = await examine("--offline", **given, MANUALS_EMBEDDINGS_BASE_URL="https://vectors.example/v1")
    report.line("ok", "embeddings", "each search are sent to https://vectors.example/v1/embeddings", "OPENAI_API_KEY")
    for there, line in (
        (None, ("warn", "embeddings", 'run `pipx install --force "openai-responses-mcp[semantic] @ git+https://')),
        (object(), ("ok", "embeddings", "on this machine; nothing is sent")),
    ):
        monkeypatch.setattr("responses_mcp.commands.doctor.configuration.find_spec", lambda _, there=there: there)
        report = await examine("--offline", **given | {"MANUALS_EMBEDDINGS_PROVIDER": "wordllama"})
        report.line(*line)


async def test_how_many_runs_go_on_at_the_api_is_told(examine: Doctor, tmp_path: Path) -> None:
    row = Row(id="run_1", account="a", digest="d", model="m", created=1e9, may_take=1.0)
    RunsFile(tmp_path).add(row, may_join=lambda _: False, most=None)
    report = await examine("--offline", MCP_TOOLSETS="answer,research", RESEARCH_STATE_DIR=str(tmp_path))
    report.line("ok", "state", "1 run going on at the API")


# Models


async def test_an_unknown_model_fails_with_names_that_are_near(examine: Doctor) -> None:
    report = await examine(reply=Json({"data": [{"id": "gpt-5.2"}, {"id": "gpt-5.4-mini"}]}), MODEL_QUICK="gpt-5.4-mni")
    report.line(
        "FAIL", "models", "gpt-5.4-mni (model_profiles.answer_quick) is not among the 2 models that", "gpt-5.4-mini"
    )
    report.line("FAIL", "models", "Fix: set MODEL_QUICK to another model")
    one = await examine(reply=Json({"data": [{"id": "gpt-5.2"}]}), MODEL_QUICK="gpt-5.4-mni")
    one.line("FAIL", "models", "is not among the 1 model that the API lists")
    one.line("ok", "http", "200, with 1 model; the key is accepted")
    report.line("ok", "models", "gpt-5.2")
    assert report.failed == ["models"]


@pytest.mark.parametrize(
    ("model", "today", "listed", "status", "found"),
    [
        ("o3", "2026-09-01", None, "ok", "no end is announced for the next 60 days"),
        ("o3", "2026-11-22", None, "warn", "ends on 2026-12-11"),
        ("o3", "2026-12-12", None, "FAIL", "ended on 2026-12-11"),
        ("o3", "2026-12-12", {"o3": None}, "warn", "still listed"),
        ("o3", "2026-12-12", {"gpt-5.5": None}, "FAIL", "it ended on"),
        ("openai/gpt-5-2025-08-07", "2026-12-12", None, "FAIL", "ended on 2026-12-11"),
        # The end that the API announces counts more than ours.
        ("gpt-6", "2030-01-01", {"gpt-6": "2030-01-31"}, "warn", "ends on 2030-01-31"),
        ("gpt-6", "2030-01-01", {"gpt-6": "2030-06-30"}, "ok", "is listed"),
        ("gpt-5.1", "2030-01-01", {"gpt-5.1": "soon"}, "warn", "ended on 2027-04-01"),
        ("gpt-5.1", "2030-01-01", {"gpt-5.1": ["x" * 10_000]}, "warn", "ended on 2027-04-01"),
    ],
)
def test_the_announced_end_of_a_model(
    model: str, today: str, listed: dict[str, object] | None, status: str, found: str
) -> None:
    ends = {name: announced_end({"id": name, "shutdown_date": day}) for name, day in (listed or {}).items()}
    [finding] = check_models(
        {"answer": Profile(model=model)}, None if listed is None else ends, date.fromisoformat(today)
    )
    assert finding.status == status
    assert found in finding.found
    assert (finding.fix is None) == (status == "ok")


def test_profiles_with_the_same_model_share_a_line_and_deployments_may_have_any_name() -> None:
    profiles = {name: Profile(model="ours") for name in ("answer", "answer_quick")}
    [finding] = check_models(profiles, {"gpt-5.2": None}, date(2026, 11, 22), all_listed=False)
    assert finding.status == "warn"
    assert "model_profiles.answer and model_profiles.answer_quick" in finding.found


# The way to the API


@pytest.mark.parametrize(
    ("config", "base_url", "failed"),
    [("openai:\n  base_url: [https://gateway.example/v1\n", None, "config"), (None, "http://gateway.example/v1", "base_url")],
)  # fmt: skip
async def test_nothing_is_sent_where_another_address_may_be_meant(
    examine: Doctor, config: str | None, base_url: str | None, failed: str
) -> None:
    async with open_fake_api() as api:
        report = await examine(config=config, OPENAI_BASE_URL=base_url or api.base_url)
    report.line("skip", "network", "the address may be wrong")
    assert (report.failed, api.connections) == ([failed], 0)


@pytest.mark.parametrize(
    ("environ", "line"),
    [
        (
            {"OPENAI_BASE_URL": "https://nowhere.invalid/v1"},
            ("dns", "the name nowhere.invalid cannot be resolved", "Fix: correct host and port in openai.base_url"),
        ),
        (
            {"ALL_PROXY": "http://nowhere.invalid:3128"},
            ("dns", "nowhere.invalid:3128 (ALL_PROXY) cannot be resolved", "Fix: correct ALL_PROXY"),
        ),
        (
            {"OPENAI_BASE_URL": "http://127.0.0.1:{port}/v1"},
            ("tcp", "127.0.0.1:{port} cannot be reached (connection refused)", "Fix: correct host and port"),
        ),
        (
            {"HTTPS_PROXY": "http://user:hunter22@127.0.0.1:{port}"},
            (
                "tcp",
                "(HTTPS_PROXY)",
                "connection refused",
                "Fix: correct HTTPS_PROXY, unset it, or name the API's host",
            ),
        ),
        *(
            (
                {"HTTPS_PROXY": value},
                ("proxy", "HTTPS_PROXY is not an http or https URL", "Fix: write it as http://HOST:PORT"),
            )
            for value in (
                "socks5://user:hunter22@127.0.0.1:1080",
                "http://:3128",
                "http://user:80#hunter22@127.0.0.1:9",
            )
        ),
        *(
            (
                {"SSL_CERT_FILE": f"{{folder}}/{name}"},
                ("certificates", "SSL_CERT_FILE", name, "Fix: correct SSL_CERT_FILE or"),
            )
            for name in ("missing.pem", "empty.pem", "none.pem")
        ),
    ],
)
async def test_a_way_that_leads_nowhere_is_told_with_its_first_wrong_step(
    examine: Doctor,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    closed_port: int,
    *,
    environ: dict[str, str],
    line: tuple[str, ...],
) -> None:
    if line[0] == "dns":
        request.getfixturevalue("no_names")
    write(tmp_path / "empty.pem", "")
    write(tmp_path / "none.pem", "no certificate")
    [(name, value)] = environ.items()
    report = await examine(**{name: value.format(port=closed_port, folder=tmp_path)})
    report.line("FAIL", *(each.format(port=closed_port) for each in line))
    assert report.failed == [line[0]]


async def test_a_proxy_that_refuses_is_told(examine: Doctor) -> None:
    async with open_proxy(b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n") as proxy:
        report = await examine(HTTPS_PROXY=f"http://127.0.0.1:{proxy.port}")
    report.line("ok", "tcp")
    report.line("FAIL", "http", "407", "Fix: put the right USER:PASSWORD@ before its host in HTTPS_PROXY")


async def test_https_where_http_is_spoken_is_told(examine: Doctor) -> None:
    async with open_fake_api() as api:
        report = await examine(OPENAI_BASE_URL=api.base_url.replace("http:", "https:"))
    report.line("FAIL", "tls", "no TLS connection", "Fix: check the scheme, host and port of openai.base_url")


async def test_an_untrusted_certificate_is_told_with_the_variable_that_cures_it(
    examine: Doctor, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ours, theirs = trustme.CA(), trustme.CA()
    async with open_fake_api() as api, tls_front(api.base_url, theirs) as url:
        report = await examine(OPENAI_BASE_URL=url)
        report.line("FAIL", "tls", "is not trusted", "Fix: let SSL_CERT_FILE name a PEM file that has the CA")
        assert (report.failed, api.requests) == (["tls"], [])
        trust(monkeypatch, ours, tmp_path / "ours.pem")
        report = await examine()
        report.line("FAIL", "tls", "is not trusted")
        trust(monkeypatch, theirs, tmp_path / "theirs.pem")
        report = await examine()
    report.line("ok", "tls", "localhost is trusted")
    assert report.code == 0


@pytest.mark.parametrize(
    ("reply_within", "within", "line"),
    [
        (0.1, WAIT, ("http", "no answer to GET {}/models within 0.1 s")),
        (WAIT, 0.1, ("network", "the checks took longer than 0.1 s")),
    ],
)
async def test_an_api_that_does_not_answer_is_told_within_a_bound(
    reply_within: float, within: float, line: tuple[str, str]
) -> None:
    found: list[Finding] = []
    async with open_fake_api(Hang()) as api:
        openai = OpenAISettings(base_url=api.base_url, api_key=KEY)
        way = Way("127.0.0.1", int(api.base_url.rpartition(":")[2].partition("/")[0]))
        with trio.fail_after(WAIT):
            await ask_for_models(openai, way, found.append, trust_env=True, reply_within=reply_within, within=within)
            await gone(api)
    last = found[-1]
    assert (last.check, last.status, last.found) == (line[0], "FAIL", line[1].format(api.base_url))
    assert last.fix


@pytest.mark.parametrize(
    ("reply", "status", "said"),
    [
        (Error(401, f"Incorrect API key provided: {KEY[:8]}***cdef", code="invalid_api_key"), "FAIL", ("The API refused the key (401", "put a valid key into OPENAI_API_KEY")),
        (Error(403, "Country not supported", code="unsupported_country"), "FAIL", ("(403 unsupported_country)", "check the key's organization")),
        (Error(403, "Missing scopes: api.model.read"), "warn", ("(403 model_not_found)", "let the key read models, or try it with")),
        (Error(404), "warn", ("404, so no list of models is at this", "correct the path in openai.base_url, which often")),
        (Error(429, "Slow down"), "warn", ("limits the rate", "wait a while")),
        (Error(429, "No money", code="insufficient_quota"), "FAIL", ("quota is used up", "check plan and billing")),
        (Error(500, "Boom"), "FAIL", ("The API failed (500): Boom", "try again later")),
        (Json({"data": "?"}), "warn", ("in another form", "check openai.base_url")),
    ],
    ids=["401", "403", "403 scope", "404", "429", "quota", "500", "other form"],
)  # fmt: skip
async def test_what_the_api_answers_is_told_with_its_meaning(
    examine: Doctor, reply: Reply, status: str, said: tuple[str, str]
) -> None:
    found, cure = said
    report = await examine(reply=reply)
    assert KEY[:8] not in report.line(status, "http", found, f"Fix: {cure}")


async def test_a_page_of_a_captive_portal_is_no_list_of_models(examine: Doctor) -> None:
    async def portal(stream: object) -> None:
        assert isinstance(stream, trio.SocketStream)
        await stream.receive_some()
        await stream.send_all(b"HTTP/1.1 200 OK\r\ncontent-length: 13\r\n\r\n<html></html>")

    async with listening(portal) as port:
        report = await examine(OPENAI_BASE_URL=f"http://127.0.0.1:{port}/v1")
    report.line("FAIL", "http", "not a JSON object", "Fix: check that openai.base_url is a Responses API")


async def test_without_a_usable_key_the_way_is_tried_without_one(
    examine: Doctor, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ca = trustme.CA()
    trust(monkeypatch, ca, tmp_path / "ca.pem")
    async with open_fake_api(Error(401)) as api, tls_front(api.base_url, ca) as url:
        report = await examine(OPENAI_API_KEY="'sk-quoted-0123456789abcdef'", OPENAI_BASE_URL=url)
    assert "authorization" not in api.requests[0].headers
    report.line("ok", "http", "needs a key")
    assert report.failed == ["key"]
    async with open_fake_api() as api:
        report = await examine(OPENAI_API_KEY=None, OPENAI_BASE_URL=api.base_url)
        assert (report.code, api.connections > 0) == (0, True)
        report.line("ok", "key", "not needed")
        asked = api.connections
        report = await examine("--offline", OPENAI_BASE_URL=api.base_url)
        assert (report.code, api.connections) == (0, asked)
    report.line("skip", "network", "--offline")
    report.line("ok", "models", "was not looked up")


# Start, and time-outs


@pytest.mark.parametrize(
    ("start", "lines"),
    [
        (
            server("import time\ntime.sleep(1.05)"),
            [("warn", "start", "Codex (about 1 s) may give up before that", "start the installed executable")],
        ),
        (
            server(f"print('Welcome! ' + '.' * 90 + ' {KEY}')"),
            [("FAIL", "stdout", "Welcome!", "Fix: find what prints to stdout")],
        ),
        (server(after="print('Bye!')"), [("FAIL", "stdout", "Bye!")]),
        (server("print(5)"), [("FAIL", "stdout", "a line that is not a message: 5")]),
        (
            server(f"import sys\nsys.exit('no module for {KEY}')"),
            [("FAIL", "start", "ended with code 1", "no module for [redacted]", "Fix: run")],
        ),
        (["/nowhere/python"], [("FAIL", "start", "cannot be started")]),
        (
            server(
                small=SMALL.replace('"result": result', '"error": {"code": -32603, "message": "no"}'),
                after="sys.exit(3)",
            ),
            [("FAIL", "start", "not tools/list"), ("FAIL", "exit", "code 3", "Fix: run it with --debug PATH")],
        ),
    ],
    ids=["slow", "noise", "noise at the end", "a number", "ends at once", "is not there", "no tools"],
)
async def test_a_server_that_does_not_what_clients_want_is_told(
    examine: Doctor, start: list[str], lines: list[tuple[str, ...]]
) -> None:
    report = await examine("--offline", start=start)
    for line in lines:
        report.line(*line)


@pytest.mark.parametrize("deaf", [True, False])
async def test_a_server_that_hangs_is_ended_within_a_bound(deaf: bool) -> None:
    hang = "import time\ntime.sleep(60)"
    with trio.fail_after(WAIT):
        result = await shake_hands(server(hang if deaf else "", hang), str, answers=0.3 if deaf else WAIT, ends=0.2)
    assert (result.seconds is None, result.exit_code) == (deaf, None)
    findings = list(check_handshake(result, []))
    assert findings[0].status == ("FAIL" if deaf else "ok")
    assert deaf or findings[-1].found.startswith("the server still ran")


# What it looks like


async def test_on_a_terminal_it_ends_with_what_is_wrong_and_counts_the_rest(examine: Doctor) -> None:
    everything = await examine("--offline", "--all", terminal=True, OPENAI_API_KEY="YOUR_KEY", MODEL_ANSWER="o3")
    assert all(line.startswith(" " * 19 + "Fix: ") for line in everything.shown if "Fix: " in line)
    well, wrong = ([line for line in everything.lines if line.startswith(mark)] for mark in ("ok ", "FAIL "))
    assert re.fullmatch(rf"{len(well)} ok, 1 skip, \d warn, {len(wrong)} FAIL", everything.lines[-1])
    report = await examine("--offline", terminal=True, OPENAI_API_KEY="YOUR_KEY", MODEL_ANSWER="o3")
    assert report.lines[-1] == f"{everything.lines[-1]} (--all shows all)"
    marks = [mark for line in report.shown[:-1] if (mark := line.partition(" ")[0]) in ("ok", "skip", "warn", "FAIL")]
    assert (marks, marks[-1]) == (sorted(marks, key=["skip", "warn", "FAIL"].index), "FAIL")
    assert "Fix: " in report.line("FAIL", "key")


async def test_lines_fit_a_terminal_with_names_in_japanese_too_but_for_what_is_copied(
    examine: Doctor, tmp_path: Path
) -> None:
    root = tmp_path / "手引き"
    (root / "就業規則").mkdir(parents=True)
    given = {"MANUALS_ROOT": str(root), "OPENAI_API_KEY": "YOUR_KEY", "MODEL_ANSWER": "o3"}
    report = await examine("--offline", "--all", terminal=True, **given)
    begun = [line for line in report.shown if columns(line) > 80 and not re.search("[\"'/\\\\]", line)]
    assert begun == []
    assert any(line.startswith(" " * 19 + "Fix: ") for line in report.shown)
    assert any(re.match(" {19}(?!Fix)", line) for line in report.shown)


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
