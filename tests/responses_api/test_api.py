"""One call of the API, from a body to a Response: what is sent, when it connects, its stream, its log, its secrets."""

import json
import logging
from dataclasses import replace
from pathlib import Path
from traceback import walk_tb
from types import MappingProxyType
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from responses_mcp.asking import Watcher
from responses_mcp.errors import ConnectionFailed, DeadlineExceeded, UpstreamError
from responses_mcp.responses_api.api import ResponsesApi
from responses_mcp.settings.model import OpenAISettings, RequestSettings
from responses_mcp.testing import Error, Garbage, Json, Raw, Reply, Sse, as_stream, bodies, open_fake_api
from tests.debug_lines import configured
from tests.processes import WAIT
from tests.responses_api.http.network import bare_environment, gone, real_api
from tests.responses_api.stub import KEY, Play, ok, refused, stub_api
from tests.testing import samples

__all__ = ["bare_environment"]
pytestmark = pytest.mark.usefixtures("bare_environment")
BODY = {"model": "gpt-5.2", "input": "hello"}
STREAMED = {"stream": True, "stream_options": {"include_obfuscation": False}}
CANARY = "canary-key-without-a-known-look"  # what looks like a key is masked whoever it belongs to


# What is sent


async def test_a_request_carries_the_body_and_the_key() -> None:
    api, stub = stub_api(ok({"id": "resp_1"}))
    assert await api.create({"model": "gpt-5.2", "input": "日本語"}, dict) == {"id": "resp_1"}
    (sent,) = stub.sent
    assert sent.url == "https://api.openai.com/v1/responses"
    assert json.loads(sent.body) == {"model": "gpt-5.2", "input": "日本語", **STREAMED}
    assert "日本語".encode() in sent.body
    agent = sent.headers["user-agent"]
    assert agent.startswith("openai-responses-mcp/")
    assert dict(sent.headers) == {
        "content-type": "application/json",
        "accept": "text/event-stream, application/json",
        "user-agent": agent,
        "authorization": f"Bearer {KEY}",
    }


async def test_another_endpoint_gets_the_body_as_it_is_and_its_object_is_the_answer() -> None:
    api, stub = stub_api(ok({"data": [1], "status": "failed"}))
    assert await api.post("/embeddings", {"input": ["a"]}, lambda found: found["data"]) == [1]
    assert (stub.sent[0].url, json.loads(stub.sent[0].body)) == (
        "https://api.openai.com/v1/embeddings",
        {"input": ["a"]},
    )


@pytest.mark.parametrize("base_url", ["https://gateway.example/openai/v1", "https://gateway.example/openai/v1/"])
async def test_the_path_of_the_base_url_is_kept(base_url: str) -> None:
    api, stub = stub_api(openai=OpenAISettings(api_key=KEY, base_url=base_url))
    await api.create({}, dict)
    assert stub.sent[0].url == "https://gateway.example/openai/v1/responses"


async def test_lone_surrogates_anywhere_in_the_body_are_replaced() -> None:
    api, stub = stub_api()
    await api.create({"model": "m\udcff", "instructions": "i\ud800", "tools": [{"k\ud800": "🐍"}]}, dict)
    assert json.loads(stub.sent[0].body) == {
        "model": "m\ufffd",
        "instructions": "i\ufffd",
        "tools": [{"k\ufffd": "🐍"}],
        **STREAMED,
    }


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


# When it connects


async def test_connections_are_opened_by_the_first_call_and_once(autojump_clock: MockClock) -> None:
    api, stub = stub_api()
    assert (stub.connected, stub.closed) == ([], 0)
    async with trio.open_nursery() as nursery:
        for _ in range(20):
            nursery.start_soon(api.create, {}, dict)
    assert len(stub.connected) == 1
    assert len(stub.sent) == 20
    await api.aclose()
    assert stub.closed == 1


async def test_what_connects_only_after_the_close_keeps_no_connection_open(autojump_clock: MockClock) -> None:
    api, stub = stub_api()
    await api.aclose()
    assert (stub.connected, stub.closed) == ([], 0)
    await api.create({}, dict)
    assert (len(stub.connected), stub.closed) == (1, 1)


async def test_a_failure_to_connect_is_told_and_the_next_call_tries_again() -> None:
    _, stub = stub_api()
    outcomes = [ConnectionFailed("No certificates.")]

    async def failing_once(url: str, limit: int) -> Any:
        if outcomes:
            raise outcomes.pop()
        return await stub.connect(url, limit)

    api = ResponsesApi(OpenAISettings(api_key=KEY), RequestSettings(), connect=failing_once)
    with pytest.raises(ConnectionFailed, match="No certificates"):
        await api.create({}, dict)
    assert await api.create({}, dict)


async def test_waiting_for_the_connections_counts_towards_the_deadline(autojump_clock: MockClock) -> None:
    async def never(url: str, limit: int) -> Any:
        await trio.sleep_forever()

    api = ResponsesApi(OpenAISettings(api_key=KEY), RequestSettings(timeout_ms=2_000), connect=never)
    with pytest.raises(DeadlineExceeded):
        await api.create({}, dict)


# Its stream


async def test_a_call_is_streamed_and_whoever_watches_is_told_its_phases() -> None:
    body = bodies.searched()
    phases: list[str] = []
    with trio.fail_after(WAIT):
        async with open_fake_api(*[as_stream(body)] * 3) as fake, real_api(fake.base_url) as api:
            assert await api.create(BODY, dict, watcher=Watcher(phases.append)) == body
            assert phases == ["thinking", "searching", "searched: python 3.14 release date", "writing"]
            for _ in range(2):
                assert await api.create(BODY, dict) == body
            assert all(request.json == {**BODY, **STREAMED} for request in fake.requests)
            assert (len(fake.requests), fake.connections) == (3, 1), "a connection whose stream has ended is used again"


async def test_a_stream_that_goes_on_after_its_last_event_is_left_and_its_connection_closed() -> None:
    body = bodies.unsearched()
    with trio.fail_after(WAIT):
        endless = replace(as_stream(body), ending="hang")
        async with open_fake_api(endless, as_stream(body)) as fake, real_api(fake.base_url) as api:
            assert await api.create(BODY, dict) == body
            await gone(fake)
            assert await api.create(BODY, dict) == body


async def test_a_connection_that_breaks_right_after_the_last_event_costs_nothing() -> None:
    body = bodies.unsearched()
    with trio.fail_after(WAIT):
        async with open_fake_api(replace(as_stream(body), ending="cut")) as fake, real_api(fake.base_url) as api:
            assert await api.create(BODY, dict) == body
            assert len(fake.requests) == 1


async def test_large_replies_are_read_one_at_a_time_and_other_tasks_run_in_between() -> None:
    api, _ = stub_api(ok(samples.big(100_000)))
    await api.create({}, dict)  # so that from here on all calls take the same steps
    happened: list[str] = []

    async def tick() -> None:
        while happened.count("read") < 5:
            happened.append("tick")
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(tick)
        for _ in range(5):
            nursery.start_soon(api.create, {}, lambda _: happened.append("read"))
    assert "read, read" not in ", ".join(happened)


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
        Sse([f"data: {json.dumps({'type': 'error', 'code': text, 'message': 'x' * 250 + text, 'param': text})}\n\n"]),
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
    assert "canary" not in (tmp_path / "debug.log").read_text(encoding="utf-8")


# The debug log


async def test_each_attempt_is_a_line_of_the_form_that_the_contract_gives(capfd: pytest.CaptureFixture[str]) -> None:
    limited = Error(429, "Slow down", "requests", "rate_limit_exceeded", retry_after_ms="1")
    with trio.fail_after(WAIT), configured():
        async with open_fake_api(limited) as fake, real_api(fake.base_url, max_retries=1) as api:
            response = await api.create(BODY, dict)
    error = {"message": "Slow down", "type": "requests", "param": None, "code": "rate_limit_exceeded"}
    body = json.dumps({"error": error}, separators=(",", ":"))
    lines = [line.partition(" DEBUG ")[2] for line in capfd.readouterr().err.splitlines()]
    assert lines == [
        "openai(client): error attempt=1 status=429 name=RateLimited code=rate_limit_exceeded "
        'msg="The API limits the rate of requests (429 rate_limit_exceeded): Slow down. Wait a while and ask again. '
        'It asks to wait 0.001 s." '
        f'body="{body}"',
        f"openai(client): ok status=200 model={response['model']} id={response['id']}",
    ]


@pytest.mark.parametrize("play", [refused(500), refused(429), ConnectionFailed("It was reset.", maybe_paid=True)])
async def test_whoever_reports_an_error_with_local_variables_does_not_report_the_key(
    autojump_clock: MockClock, play: Play
) -> None:
    api, _ = stub_api(play, max_retries=0)
    with pytest.raises(UpstreamError) as caught:
        await api.create({"model": "gpt-5.2", "input": "why?"}, lambda response: response)
    assert KEY not in locals_of(caught.value)


async def test_a_key_that_cannot_be_sent_is_in_no_local_variable_of_its_error() -> None:
    api = ResponsesApi(OpenAISettings(api_key=f"{KEY} \n and more"), RequestSettings())
    with pytest.raises(UpstreamError) as caught:
        await api.create({"model": "gpt-5.2", "input": "why?"}, lambda response: response)
    assert KEY not in locals_of(caught.value)


def locals_of(error: BaseException) -> str:
    """Return the local variables of our frames, as tools that report errors write them: tuples and dicts whole."""
    frames = [frame for frame, _ in walk_tb(error.__traceback__) if "responses_mcp" in frame.f_code.co_filename]
    assert frames
    return repr(
        [
            value
            for frame in frames
            for value in frame.f_locals.values()
            if not type(value).__module__.startswith("tests.")
        ]
    )
