"""TLS and proxies as companies have them, by the usual environment variables."""

import os
from datetime import UTC, datetime
from pathlib import Path

import pytest
import trio
import trustme

from responses_mcp.errors import ConnectionFailed
from responses_mcp.responses_api.http.network import route_to
from responses_mcp.testing import open_fake_api
from tests.processes import WAIT
from tests.responses_api.http.network import (
    REMOTE,
    bare_environment,
    open_proxy,
    real_api,
    server_context,
    tls_front,
    trust,
)

__all__ = ["bare_environment"]
pytestmark = pytest.mark.usefixtures("bare_environment")
BODY = {"model": "gpt-5.2", "input": "hello"}


@pytest.fixture(scope="module")
def ca() -> trustme.CA:
    return trustme.CA()


# Certificates


async def test_a_companys_own_ca_works_when_ssl_cert_file_names_it(
    monkeypatch: pytest.MonkeyPatch, ca: trustme.CA, tmp_path: Path
) -> None:
    trust(monkeypatch, ca, tmp_path / "ca.pem")
    with trio.fail_after(WAIT):
        async with open_fake_api() as fake, tls_front(fake.base_url, ca) as url, real_api(url, api_key="k" * 20) as api:
            assert (await api.create(BODY, dict))["status"] == "completed"
            assert fake.requests[0].headers["authorization"] == "Bearer " + "k" * 20


async def test_a_certificate_that_is_not_trusted_is_told_with_the_cure_and_not_tried_again(ca: trustme.CA) -> None:
    with trio.fail_after(WAIT):
        async with (
            open_fake_api() as fake,
            tls_front(fake.base_url, ca) as url,
            real_api(url, api_key="k" * 20, max_retries=3) as api,
        ):
            with pytest.raises(ConnectionFailed, match="SSL_CERT_FILE") as caught:
                await api.create(BODY, dict)
            assert "CERTIFICATE_VERIFY_FAILED" in str(caught.value)
            assert " were made" not in str(caught.value)
            assert fake.requests == []


async def test_a_certificate_of_another_host_is_not_accepted(
    monkeypatch: pytest.MonkeyPatch, ca: trustme.CA, tmp_path: Path
) -> None:
    trust(monkeypatch, ca, tmp_path / "ca.pem")
    with trio.fail_after(WAIT):
        async with open_fake_api() as fake, tls_front(fake.base_url, ca, "127.0.0.1") as url, real_api(url) as api:
            with pytest.raises(ConnectionFailed, match=r"not valid for '127\.0\.0\.1'\); write the host") as caught:
                await api.create(BODY, dict)
    assert "SSL_CERT_FILE" not in str(caught.value)


async def test_a_certificate_whose_time_is_over_is_told_as_that(
    monkeypatch: pytest.MonkeyPatch, ca: trustme.CA, tmp_path: Path
) -> None:
    trust(monkeypatch, ca, tmp_path / "ca.pem")
    over = datetime(2020, 1, 1, tzinfo=UTC)
    with trio.fail_after(WAIT):
        async with open_fake_api() as fake, tls_front(fake.base_url, ca, until=over) as url, real_api(url) as api:
            with pytest.raises(ConnectionFailed, match=r"certificate has expired\); set the clock of this machine"):
                await api.create(BODY, dict)


async def test_a_server_that_does_not_speak_tls_is_told_as_such() -> None:
    with trio.fail_after(WAIT):
        async with open_fake_api() as fake, real_api(fake.base_url.replace("http:", "https:")) as api:
            with pytest.raises(
                ConnectionFailed,
                match=r"No TLS connection to 127\.0\.0\.1 \(WRONG_VERSION_NUMBER\); there is no TLS at that port: write http:// in openai\.base_url",
            ):
                await api.create(BODY, dict)


@pytest.mark.parametrize("content", [None, "", "no certificate"])
async def test_a_certificate_file_that_cannot_be_used_is_told_with_the_variable(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: str | None
) -> None:
    if content is not None:
        (tmp_path / "ca.pem").write_text(content, encoding="utf-8")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    monkeypatch.setenv("SSL_CERT_DIR", "/etc/ssl/certs")  # not read beside a file, so not at fault
    with trio.fail_after(WAIT):
        async with real_api("https://127.0.0.1:9/v1") as api:
            said = r"CA certificates cannot be read.*; correct it, or unset it: SSL_CERT_FILE is .*ca\.pem\."
            with pytest.raises(ConnectionFailed, match=said) as caught:
                await api.create(BODY, dict)
            assert "SSL_CERT_DIR" not in str(caught.value)


async def test_plain_http_needs_no_certificates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere/ca.pem")
    with trio.fail_after(WAIT):
        async with open_fake_api() as fake, real_api(fake.base_url) as api:
            assert (await api.create(BODY, dict))["status"] == "completed"


async def test_a_proxy_over_tls_needs_them_for_plain_http_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere/ca.pem")
    monkeypatch.setenv("HTTP_PROXY", "https://127.0.0.1:9")
    with trio.fail_after(WAIT):
        async with real_api("http://gateway.example/v1", api_key="k" * 20) as api:
            with pytest.raises(ConnectionFailed, match="CA certificates cannot be read"):
                await api.create(BODY, dict)


# Which proxy


@pytest.mark.parametrize(("environ", "url", "proxy"), [
    ({}, "https://api.openai.com/v1", None),
    ({"HTTPS_PROXY": "http://p:8080"}, "https://api.openai.com/v1", "http://p:8080"),
    ({"https_proxy": "http://p:8080"}, "https://api.openai.com/v1", "http://p:8080"),
    ({"HTTPS_PROXY": "p:8080"}, "https://api.openai.com/v1", "http://p:8080"),
    ({"HTTPS_PROXY": ""}, "https://api.openai.com/v1", None),
    ({"HTTP_PROXY": "http://p:8080"}, "https://api.openai.com/v1", None),
    ({"HTTP_PROXY": "http://p:8080"}, "http://gateway.example/v1", "http://p:8080"),
    ({"ALL_PROXY": "https://p"}, "https://api.openai.com/v1", "https://p"),
    ({"ALL_PROXY": "http://a", "HTTPS_PROXY": "http://p"}, "https://api.openai.com/v1", "http://p"),
    ({"HTTPS_PROXY": "http://p", "NO_PROXY": "openai.com"}, "https://api.openai.com/v1", None),
    ({"HTTPS_PROXY": "http://p", "NO_PROXY": ".openai.com"}, "https://api.openai.com/v1", None),
    ({"HTTPS_PROXY": "http://p", "no_proxy": "x.jp, api.openai.com"}, "https://api.openai.com/v1", None),
    ({"HTTPS_PROXY": "http://p", "NO_PROXY": "*"}, "https://api.openai.com/v1", None),
    ({"HTTPS_PROXY": "http://p", "NO_PROXY": "notopenai.com"}, "https://api.openai.com/v1", "http://p"),
    ({"HTTP_PROXY": "http://p", "NO_PROXY": "localhost,127.0.0.1"}, "http://127.0.0.1:8080/v1", None),
    ({"HTTP_PROXY": "http://p", "NO_PROXY": "127.0.0.1:8080"}, "http://127.0.0.1:8080/v1", None),
    ({"HTTP_PROXY": "http://p", "NO_PROXY": "gateway.example:8081"}, "http://gateway.example:8080/v1", "http://p"),
    ({"HTTP_PROXY": "http://p", "NO_PROXY": "gateway.example:8080"}, "http://gateway.example:8080/v1", None),
    ({"HTTP_PROXY": "http://p"}, "http://127.0.0.1:8080/v1", None),
    ({"ALL_PROXY": "http://p"}, "http://localhost:8080/v1", None),
    ({"HTTPS_PROXY": "http://p"}, "https://[::1]/v1", None),
    ({"HTTPS_PROXY": "http://p"}, "https://127.9.9.9/v1", None),
    ({"HTTP_PROXY": "http://p", "NO_PROXY": "::1"}, "http://[::1]:8080/v1", None),
])  # fmt: skip
def test_the_environment_names_the_proxy(
    monkeypatch: pytest.MonkeyPatch, environ: dict[str, str], url: str, proxy: str | None
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    found = route_to(url).proxy
    named = found and str(found)
    assert named == proxy


# What errors name


async def test_a_proxy_that_cannot_be_reached_is_named_with_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("https_proxy", "HTTPS_PROXY", "ALL_PROXY"):
        with monkeypatch.context() as patch, trio.fail_after(WAIT):
            patch.setenv(variable, "http://user:canary-0123@127.0.0.1:9")
            async with real_api("https://api.invalid/v1", api_key="k" * 20) as api:
                with pytest.raises(ConnectionFailed) as caught:
                    await api.create(BODY, dict)
        text = str(caught.value)
        assert text.startswith("The proxy cannot be reached at 127.0.0.1:9 (")
        known = variable.upper() if os.name == "nt" else variable
        assert text.endswith(f"; correct {known}, which names the proxy, or name the API's host in NO_PROXY.")
        assert "canary" not in text


async def test_a_host_that_cannot_be_reached_is_named() -> None:
    with trio.fail_after(WAIT):
        async with real_api("http://127.0.0.1:9/v1") as api:
            with pytest.raises(
                ConnectionFailed, match=r"at 127\.0\.0\.1:9 \(.*refused.*\); start the server there, .*OPENAI_BASE_URL"
            ):
                await api.create(BODY, dict)


async def test_certificates_that_do_not_fit_are_told_with_the_file_in_which_they_were_looked_for(
    monkeypatch: pytest.MonkeyPatch, ca: trustme.CA, tmp_path: Path
) -> None:
    trust(monkeypatch, trustme.CA(), tmp_path / "other.pem")
    with trio.fail_after(WAIT):
        async with open_fake_api() as fake, tls_front(fake.base_url, ca) as url, real_api(url) as api:
            with pytest.raises(ConnectionFailed) as caught:
                await api.create(BODY, dict)
    assert "No TLS connection to localhost (CERTIFICATE_VERIFY_FAILED" in str(caught.value)
    assert f"SSL_CERT_FILE is {tmp_path / 'other.pem'}, where the CA that signed it is missing" in str(caught.value)


# Through a proxy


async def test_plain_http_goes_through_the_proxy_as_an_absolute_url(monkeypatch: pytest.MonkeyPatch) -> None:
    with trio.fail_after(WAIT):
        async with open_fake_api() as fake, open_proxy() as proxy:
            monkeypatch.setenv("HTTP_PROXY", f"http://user:pass@127.0.0.1:{proxy.port}")
            url = fake.base_url.replace("127.0.0.1", REMOTE)
            async with real_api(url, api_key="k" * 20) as api:
                assert (await api.create(BODY, dict))["status"] == "completed"
            assert proxy.lines == [f"POST {url}/responses HTTP/1.1"]
            assert "proxy-authorization: basic dxnlcjpwyxnz" in proxy.heads[0].lower()


@pytest.mark.parametrize("over_tls", [False, True])
async def test_https_goes_through_a_tunnel_which_sees_neither_key_nor_question(
    monkeypatch: pytest.MonkeyPatch, ca: trustme.CA, tmp_path: Path, over_tls: bool
) -> None:
    trust(monkeypatch, ca, tmp_path / "ca.pem")
    tls = server_context(ca, "localhost") if over_tls else None
    with trio.fail_after(WAIT):
        async with open_fake_api() as fake, tls_front(fake.base_url, ca, REMOTE) as url, open_proxy(tls=tls) as proxy:
            monkeypatch.setenv("HTTPS_PROXY", f"http{'s' * over_tls}://localhost:{proxy.port}")
            async with real_api(url, api_key="k" * 20) as api:
                for _ in range(2):
                    assert (await api.create(BODY, dict))["status"] == "completed"
            assert proxy.lines == [f"CONNECT {url.removeprefix('https://').removesuffix('/v1')} HTTP/1.1"]
            assert "kkkk" not in proxy.heads[0]
            assert fake.requests[0].headers["authorization"] == "Bearer " + "k" * 20


@pytest.mark.parametrize(("refusal", "retryable"), [
    (b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n", False),
    (b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n", False),
    (b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n", True),
    (b"", True),
])  # fmt: skip
async def test_a_proxy_that_refuses_is_told_and_asked_again_only_after_an_outage(
    monkeypatch: pytest.MonkeyPatch, refusal: bytes, retryable: bool
) -> None:
    with trio.fail_after(WAIT):
        async with open_proxy(refusal) as proxy:
            monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy.port}")
            async with real_api("https://api.invalid/v1", api_key="k" * 20) as api:
                with pytest.raises(ConnectionFailed, match=rf"{refusal[9:12].decode()} .*HTTPS_PROXY") as caught:
                    await api.create(BODY, dict)
            assert (caught.value.retryable, caught.value.maybe_paid) == (retryable, False)
            assert ("put the right USER:PASSWORD@ before its host in HTTPS_PROXY" in str(caught.value)) == (
                b" 407 " in refusal
            )


@pytest.mark.parametrize("value", [
    "socks5://user:canary-0123@127.0.0.1:1080", "'http://user:canary-0123@127.0.0.1:1080'", '"127.0.0.1:1080"',
    "http://user:canary#0123@127.0.0.1:1080", "http://user:1#canary@127.0.0.1:1080", "http://127.0.0.1:canary",
    "http://ca nary:1080", "http://:1080",
])  # fmt: skip
async def test_a_proxy_that_cannot_be_used_is_told_with_how_one_is_written(
    monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    told = r"is not an http or https URL without quotation marks; write it as http://HOST:PORT"
    monkeypatch.setenv("HTTPS_PROXY", value)
    with trio.fail_after(WAIT):
        async with real_api("https://api.invalid/v1", api_key="k" * 20) as api:
            for _ in range(2):
                with pytest.raises(ConnectionFailed, match=rf"The proxy cannot be used: HTTPS_PROXY {told}") as caught:
                    await api.create(BODY, dict)
                assert "canary" not in str(caught.value)
