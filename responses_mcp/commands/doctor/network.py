"""The way to the API, step by step: name, connection, TLS, HTTP, key."""

from __future__ import annotations

import os
import re
import socket
import ssl
from collections.abc import Mapping
from contextlib import aclosing
from typing import Final, cast
from urllib.parse import urlsplit

import trio

from responses_mcp import __version__
from responses_mcp.commands.doctor.findings import Finding, Tell, fail, fail_by, ok, warn, with_cure
from responses_mcp.commands.doctor.model_ends import Announced
from responses_mcp.commands.doctor.network_settings import CA_VARIABLES_OF_OTHERS, Way, spelled
from responses_mcp.errors import AuthenticationFailed, ConnectionFailed, RateLimited, UpstreamError, program
from responses_mcp.responses_api.http import open_connections
from responses_mcp.responses_api.http.connections import Request, encoded
from responses_mcp.responses_api.http.network import tls_cure, tls_error
from responses_mcp.responses_api.request.credentials import credential_headers
from responses_mcp.responses_api.response.reply import ReplyBudget, ReplyReader
from responses_mcp.secrets import Redactor
from responses_mcp.settings.model import OpenAISettings, RequestSettings

_STEP: Final = 5.0  # seconds for a name or a connection
_REPLY: Final = 12.0  # seconds for the list of models
_ALL: Final = 20.0  # seconds
_MEANINGS: Final = {
    401: (
        "the API refuses the key",
        "put a key that is valid there into {key}; keys can be revoked, and belong to one provider",
    ),
    403: (
        "the API does not let this key in",
        "check the key's project and its permissions, and whether the provider serves your region",
    ),
}
"""What a status means, and the fix."""
_NOTHING: Final = 404
_NO_LIST: Final = (_NOTHING, 405, 501)
_VERSION: Final = re.compile(r"/v\d+\Z")


async def ask_for_models(
    openai: OpenAISettings, way: Way, tell: Tell, *, trust_env: bool, reply_within: float = _REPLY, within: float = _ALL
) -> Mapping[str, Announced] | None:
    """Go the way to the API and return the models that it lists, None if it did not; takes at most `within` seconds."""
    with trio.move_on_after(within):
        return await _steps(openai, way, tell, trust_env=trust_env, reply_within=reply_within)
    tell(fail("network", f"all of it took longer than {within:g} s", "try again, or ask who runs this network"))
    return None


async def _steps(
    openai: OpenAISettings, way: Way, tell: Tell, *, trust_env: bool, reply_within: float
) -> Mapping[str, Announced] | None:
    for step in (_name, _connection):
        finding = await step(way)
        tell(finding)
        if finding.status == "FAIL":
            return None
    try:
        headers = credential_headers(openai)
    except AuthenticationFailed:  # the key has a line of its own; the rest of the way can be tried without it
        headers = {}
    redact = Redactor(openai.secrets)
    reply = ReplyReader(most_bytes=RequestSettings().max_reply_bytes, budget=ReplyBudget(), redact=redact)
    url = f"{openai.base_url}/models"
    wanted = {"accept": "application/json", "user-agent": f"openai-responses-mcp/{__version__}", **headers}
    try:
        async with aclosing(await open_connections(url, limit=1, trust_env=trust_env)) as connections:
            with trio.move_on_after(reply_within) as waiting:
                await connections.send(Request("GET", url, encoded(wanted)), reply)
    except ConnectionFailed as error:
        tell(_broken(error, way))
        return None
    except UpstreamError as error:
        tell(fail("http", *with_cure(error.message)))
        return None
    if waiting.cancelled_caught:
        tell(fail("http", f"no answer to GET {url} within {reply_within:g} s", _who(way)))
        return None
    if openai.base_url.startswith("https:"):
        tell(ok("tls", f"the certificate of {urlsplit(openai.base_url).hostname} is trusted"))
    finding, models = _read(reply, openai, with_credentials=bool(headers))
    tell(finding)
    return models


async def find_server(way: Way, check: str, fix: str) -> Finding:
    """Look whether a server that is not needed for answers can be reached."""
    found = await _name(way)
    if found.status == "ok":
        found = await _connection(way)
    if found.status == "ok":
        return found._replace(check=check)
    return warn(check, found.found, fix)


async def _name(way: Way) -> Finding:
    name = f"the name {way.host}" if way.variable is None else f"the name of {way}"
    with trio.move_on_after(_STEP):
        try:
            found = await trio.socket.getaddrinfo(way.host, way.port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            why = getattr(error, "strerror", None) or type(error).__name__
            return fail_by(error, "dns", f"{name} cannot be resolved ({why})", _correct(way))
        return ok("dns", f"{way.host} has the address {', '.join(dict.fromkeys(str(each[4][0]) for each in found))}")
    return fail("dns", f"{name} was not resolved within {_STEP:g} s", "check the DNS settings of this network")


async def _connection(way: Way) -> Finding:
    with trio.move_on_after(_STEP):
        try:
            stream = await trio.open_tcp_stream(way.host, way.port)
        except OSError as error:
            return fail_by(error, "tcp", f"{way} cannot be reached ({_reason(error)})", _correct(way))
        await trio.aclose_forcefully(stream)
        return ok("tcp", f"{way} accepts connections")
    return fail("tcp", f"{way} did not answer within {_STEP:g} s", _correct(way))


def _correct(way: Way) -> str:
    if way.variable is not None:
        return f"correct {way.variable}, unset it, or name the API's host in {spelled('NO_PROXY')}"
    return (
        "correct host and port in openai.base_url (OPENAI_BASE_URL), check the network, and set HTTPS_PROXY if a proxy "
        "is needed"
    )


def _who(way: Way) -> str:
    return "check the scheme, host and port of openai.base_url" + (
        "" if way.variable is None else f", and {way.variable}"
    )


def _broken(error: ConnectionFailed, way: Way) -> Finding:
    tls = tls_error(error)
    if isinstance(tls, ssl.SSLCertVerificationError):
        said = tls.verify_message.rstrip(".")
        return fail("tls", f"the certificate is not trusted: {said}", tls_cure(tls) or _trust())
    if tls is not None:
        return fail("tls", f"no TLS connection ({tls.reason or type(tls).__name__})", _who(way))
    found, fix = with_cure(error.message)
    return fail("http", found, fix if "proxy" in found.lower() else _who(way))


def _trust() -> str:
    """Return how to have the one trusted who signed a certificate; verification stays on."""
    if os.environ.get("SSL_CERT_FILE"):
        return "add the CA certificate of your company or gateway to the file that SSL_CERT_FILE names"
    other = next((name for name in CA_VARIABLES_OF_OTHERS if os.environ.get(name)), None)
    fix = "set SSL_CERT_FILE to a PEM file with the CA certificate of your company or gateway"
    return f"{fix}, for instance to that of {other}" if other else fix


def _read(
    reply: ReplyReader, openai: OpenAISettings, *, with_credentials: bool
) -> tuple[Finding, Mapping[str, Announced] | None]:
    """Judge the reply to GET /models, and return the models that it lists."""
    path = f"GET {openai.base_url}/models"
    try:
        body = reply.json_object()
    except UpstreamError as error:
        return _refused(error, path, openai, with_credentials=with_credentials), None
    listed = body.get("data")
    if not isinstance(listed, list):
        return warn("http", f"{path}: a list of models in another form than OpenAI's", "check openai.base_url"), None
    entries = [cast("dict[str, object]", each) for each in cast("list[object]", listed) if isinstance(each, dict)]
    models = {str(each["id"]): Announced.of(each) for each in entries if "id" in each}
    accepted = ", and the key is accepted" if with_credentials else ""
    return ok(
        "http", f"{path}: 200{accepted}; {len(models)} {'model is' if len(models) == 1 else 'models are'} listed"
    ), models


def _refused(error: UpstreamError, path: str, openai: OpenAISettings, *, with_credentials: bool) -> Finding:
    """Judge an error of the API. What it says of a refused key is not shown: it quotes parts of it."""
    code = f"{error.status}{f' {error.code}' if error.code else ''}"
    if error.status in {401, 403} and not with_credentials:
        return ok("http", f"{path}: {code}; the API is there and wants a key")
    if error.status in {401, 403} and "scope" in error.message:
        fix = f'give the key the permission to read models, or try it with "{program()} ask"'
        return warn("http", f"{path}: {code}; the key may not list models", fix)
    if error.status in _MEANINGS:
        meaning, fix = _MEANINGS[error.status]
        return fail("http", f"{path}: {code}; {meaning}", fix.format(key=openai.api_key_env))
    if error.status in _NO_LIST and _VERSION.search(openai.base_url) and openai.base_url != OpenAISettings().base_url:
        fix = f'correct the path in openai.base_url, or try it with "{program()} ask": a gateway may have no such list'
        return warn("http", f"{path}: {code}; nothing is there", fix)
    if error.status == _NOTHING:
        fix = "correct the path in openai.base_url, which often ends in /v1"
        return fail("http", f"{path}: {code}; nothing is there", fix)
    if isinstance(error, RateLimited):
        return warn("http", f"{path}: {code}; the API limits the rate of requests", "wait a while")
    found, fix = with_cure(error.message)
    return fail("http", f"{path}: {found}", fix)


# Windows says them in sentences, in its own language.
_SAID: Final[dict[type, str]] = {
    ConnectionRefusedError: "connection refused",
    ConnectionResetError: "connection reset by peer",
    TimeoutError: "connection timed out",
}


def _reason(error: BaseException | None) -> str:
    """Return the system's word for a failure; Trio puts those of several addresses into a group."""
    reasons: dict[str, None] = {}
    pending = [error]
    while pending:
        each = pending.pop()
        if isinstance(each, BaseExceptionGroup):
            pending += cast("list[BaseException]", [*each.exceptions])
        elif isinstance(each, OSError) and each.strerror and each.errno:
            reasons[_SAID.get(type(each)) or each.strerror.lower()] = None
        elif each is not None:
            pending.append(each.__cause__)
    return ", ".join(reasons) or type(error).__name__
