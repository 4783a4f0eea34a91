"""The whole way from a body to a Response over real sockets, with everything that a server can do to it."""

import json
import logging
import re
from pathlib import Path
from types import MappingProxyType

import pytest
import trio
from trio.testing import MockClock

from responses_mcp.errors import (
    AuthenticationFailed,
    ConnectionFailed,
    DeadlineExceeded,
    QuotaExhausted,
    RateLimited,
    RequestRefused,
    ServiceFailed,
    UnusableReply,
    UpstreamError,
)
from responses_mcp.responses_api import api as api_module
from responses_mcp.responses_api.api import ResponsesApi
from responses_mcp.settings.model import OpenAISettings, RequestSettings
from responses_mcp.testing import (
    Drip,
    Error,
    Garbage,
    Hang,
    Html,
    Json,
    Raw,
    Reply,
    Reset,
    Truncated,
    bodies,
    open_fake_api,
)
from tests.debug_lines import configured
from tests.processes import WAIT
from tests.responses_api.network import bare_environment, jump_when_asked, real_api

__all__ = ["bare_environment"]
pytestmark = pytest.mark.usefixtures("bare_environment")
BODY = {"model": "gpt-5.2", "input": "hello"}
CANARY = "canary-key-without-a-known-look"  # what looks like a key is masked whoever it belongs to


@pytest.fixture(autouse=True)
def _quick_backoff(monkeypatch: pytest.MonkeyPatch) -> None:
    """How long waits are is tested in virtual time; here they are only waited for."""
    monkeypatch.setattr(api_module, "backoff", lambda *_: 0.001)


@pytest.mark.parametrize(
    ("replies", "error", "requests"),
    [
        ([Error(503)] * 4, ServiceFailed, 4),
        ([Error(429)] * 4, RateLimited, 4),
        ([Html(502)] * 4, ServiceFailed, 4),
        ([Json(bodies.failed())] * 4, ServiceFailed, 4),
        ([Error(400)], RequestRefused, 1),
        ([Error(401)], AuthenticationFailed, 1),
        ([Error(403)], RequestRefused, 1),
        ([Error(404)], RequestRefused, 1),
        ([Error(422)], RequestRefused, 1),
        ([Error(429, code="insufficient_quota")], QuotaExhausted, 1),
        ([Error(503, headers={"x-should-retry": "false"})], ServiceFailed, 1),
        ([Error(429, retry_after="61")], RateLimited, 1),
        ([Raw(b"", 302, {"location": "https://elsewhere.example/"})], RequestRefused, 1),
        ([Raw(b"[1, 2]")], UnusableReply, 1),
        ([Raw(b"{no")], UnusableReply, 1),
        ([Raw(b"")], UnusableReply, 1),
        ([Raw(b"<html>login</html>", content_type="text/html")], UnusableReply, 1),
        ([Json(bodies.cancelled())], UnusableReply, 1),
        ([Reset()], ConnectionFailed, 1),
        ([Reset("headers")], ConnectionFailed, 1),
        ([Reset("half_body")], ConnectionFailed, 1),
        ([Truncated()], ConnectionFailed, 1),
        ([Garbage()], ConnectionFailed, 1),
    ],
    ids=lambda value: re.sub(r"\W+", " ", repr(value))[:60] if isinstance(value, list) else "",
)
async def test_exactly_as_many_requests_are_made_as_a_failure_is_worth(
    replies: list[Reply], error: type[UpstreamError], requests: int
) -> None:
    with trio.fail_after(WAIT):
        async with open_fake_api(*replies) as fake, real_api(fake.base_url, max_retries=3) as api:
            with pytest.raises(UpstreamError) as caught:
                await api.create(BODY, dict)
            assert (type(caught.value), len(fake.requests)) == (error, requests)
            if caught.value.status is not None:
                assert caught.value.request_id == fake.requests[-1].request_id
                assert fake.requests[-1].request_id in str(caught.value)


@pytest.mark.parametrize(
    "misdeed", [Error(500), Error(429, retry_after_ms="1"), Html(503), Json(bodies.rate_limited())]
)
async def test_an_answer_after_a_failure_is_the_answer(misdeed: Reply) -> None:
    with trio.fail_after(WAIT):
        async with open_fake_api(misdeed) as fake, real_api(fake.base_url, max_retries=1) as api:
            assert (await api.create(BODY, dict))["status"] == "completed"
            first, second = fake.requests
            assert first.body == second.body


async def test_a_connection_that_is_refused_at_first_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    attempts = 0
    open_tcp_stream = trio.open_tcp_stream

    async def refusing_twice(*args: object, **options: object) -> trio.SocketStream:
        nonlocal attempts
        attempts += 1
        if attempts <= 2:
            raise ConnectionRefusedError(111, "Connection refused")
        return await open_tcp_stream(*args, **options)  # type: ignore[arg-type]

    with trio.fail_after(WAIT):
        async with open_fake_api() as fake, real_api(fake.base_url, max_retries=3) as api:
            monkeypatch.setattr(trio, "open_tcp_stream", refusing_twice)
            assert (await api.create(BODY, dict))["status"] == "completed"
            assert (attempts, len(fake.requests)) == (3, 1)


@pytest.mark.parametrize("reply", [Hang(), Hang("headers"), Hang("half_body"), Drip(interval=100)], ids=repr)
async def test_the_deadline_closes_the_socket_whatever_the_server_is_doing(mock_clock: MockClock, reply: Reply) -> None:
    mock_clock.rate = 1
    with trio.fail_after(60 + WAIT):
        async with open_fake_api(reply) as fake, real_api(fake.base_url, timeout_ms=60_000, max_retries=3) as api:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(jump_when_asked, mock_clock, fake)
                with pytest.raises(DeadlineExceeded, match=r"No answer within 60 s"):
                    await api.create(BODY, dict)
            await fake.wait_hang_ups(1)
            assert len(fake.requests) == 1


async def test_a_server_on_this_machine_gets_no_authorization_header_without_a_key() -> None:
    with trio.fail_after(WAIT):
        async with open_fake_api() as fake, real_api(fake.base_url) as api:
            await api.create(BODY, dict)
            assert "authorization" not in fake.requests[0].headers


async def test_each_header_is_sent_once_and_extra_ones_win() -> None:
    headers = MappingProxyType({"api-key": "azure-key", "User-Agent": "mine", "AUTHORIZATION": "Custom x"})
    with trio.fail_after(WAIT):
        async with open_fake_api() as fake:
            api = ResponsesApi(
                OpenAISettings(base_url=fake.base_url, api_key=CANARY, headers=headers), RequestSettings()
            )
            await api.create(BODY, dict)
            await api.aclose()
            sent = fake.requests[0].headers
            assert (sent["api-key"], sent["user-agent"], sent["authorization"]) == ("azure-key", "mine", "Custom x")
            assert sent["content-type"] == "application/json"
            assert sent["content-length"] == str(len(fake.requests[0].body))
            assert "transfer-encoding" not in sent


# Secrets


def echoing(text: str) -> list[Reply]:
    """Return every way in which a server could give a secret back."""
    return [
        Error(401, f"Incorrect API key provided: {text}."),
        Error(401, "x" * 280 + text),
        Error(400, text, text, text, headers={"x-request-id": text}),
        Raw(text.encode(), 500, content_type="text/plain"),
        Raw(b" " * (64 * 1024 - 5) + text.encode(), 500),
        Raw(text.encode()),
        Json({"error": text}, 403),
        Json({"detail": [text]}, 422),
        Error(400, "no", "t" * 50 + text, "c" * 50 + text, "p" * 50 + text),
        Json(bodies.failed(text, f"{text} {'y' * 300}")),
        Json(bodies.response([], status=text)),
        Json(bodies.response([{"type": text}])),
        Json({**bodies.unsearched(), "id": text, "model": text}),
        Garbage(text.encode() + b"\r\n\r\n"),
        Garbage(b"HTTP/1.1 200 OK\r\n" + text.encode() + b"\r\n\r\n"),
    ]


@pytest.mark.parametrize("number", range(len(echoing(""))))
async def test_no_secret_reaches_an_error_or_the_log_whatever_the_server_gives_back(
    number: int, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    token = "canary-header-token/98765"
    openai = OpenAISettings(api_key=CANARY, headers=MappingProxyType({"x-extra": f"Custom {token}"}))
    found = ""
    for secret in (CANARY, token):
        with trio.fail_after(WAIT):
            async with open_fake_api(echoing(secret)[number]) as fake:
                settings = OpenAISettings(base_url=fake.base_url, api_key=openai.api_key, headers=openai.headers)
                api = ResponsesApi(settings, RequestSettings(max_retries=0))
                with configured(debug_file=tmp_path / "debug.log", redact=api.redact):
                    try:
                        await api.create(BODY, dict)
                    except UpstreamError as error:
                        found += f"{error!r}\n{error}\n{error.__dict__}\n{error.args}\n"
                        logging.getLogger("responses_mcp.test").debug("failed", exc_info=error)
                    await api.aclose()
                found += repr(api) + repr(settings) + repr(fake.requests[0].index)
    err = capfd.readouterr().err
    assert "openai(client)" in err
    assert "canary" not in found
    assert "canary" not in err
    assert "canary" not in (tmp_path / "debug.log").read_text()


# The debug log


async def test_each_attempt_is_a_line_of_the_form_that_the_contract_gives(capfd: pytest.CaptureFixture[str]) -> None:
    with trio.fail_after(WAIT), configured():
        async with open_fake_api(Error(429, "Slow down", "requests", "rate_limit_exceeded")) as fake:
            async with real_api(fake.base_url, max_retries=1) as api:
                response = await api.create(BODY, dict)
            body = json.dumps(
                {"error": {"message": "Slow down", "type": "requests", "param": None, "code": "rate_limit_exceeded"}},
                separators=(",", ":"),
            )
    lines = [line.partition(" DEBUG ")[2] for line in capfd.readouterr().err.splitlines()]
    assert lines == [
        "openai(client): error attempt=1 status=429 name=RateLimited code=rate_limit_exceeded "
        'msg="The API limits the rate of requests (429 rate_limit_exceeded): Slow down. Wait a while and ask again." '
        f'body="{body}"',
        f"openai(client): ok status=200 model={response['model']} id={response['id']}",
    ]


async def test_without_debug_no_attempt_leaves_a_line(capfd: pytest.CaptureFixture[str]) -> None:
    with trio.fail_after(WAIT), configured(debug=False):
        async with open_fake_api(Error(429), Error(400)) as fake, real_api(fake.base_url, max_retries=1) as api:
            with pytest.raises(RequestRefused):
                await api.create(BODY, dict)
    assert capfd.readouterr().err == ""
