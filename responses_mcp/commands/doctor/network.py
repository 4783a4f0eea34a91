"""The way to the API, step by step: proxy and certificates, name, connection, TLS, HTTP, key."""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Mapping
from contextlib import aclosing
from datetime import date
from typing import Final, NamedTuple, cast
from urllib.parse import urlsplit

import trio

from responses_mcp import __version__
from responses_mcp.commands.clients.files import reason_of
from responses_mcp.commands.doctor.model_ends import announced_end
from responses_mcp.commands.findings import Finding, Tell, fail, fail_by, ok, warn, with_cure
from responses_mcp.commands.terminal import counted
from responses_mcp.errors import AuthenticationFailed, ConnectionFailed, RateLimited, UpstreamError, causes, program
from responses_mcp.responses_api.http import open_connections
from responses_mcp.responses_api.http.connections import Request, encoded
from responses_mcp.responses_api.http.network import PORTS, pool_for, port_of, route_to, tls_cure, tls_error
from responses_mcp.responses_api.request.credentials import credential_headers
from responses_mcp.responses_api.response.reply import ReplyBudget, ReplyReader
from responses_mcp.secrets import Redactor
from responses_mcp.settings.model import OpenAISettings, RequestSettings

_STEP: Final = 5.0  # seconds for a name or a connection
_REPLY: Final = 12.0  # seconds for the list of models
_ALL: Final = 20.0  # seconds
_NO_LIST: Final = (404, 405, 501)
_TRUST: Final = "let SSL_CERT_FILE name a PEM file that has the CA certificate of your company or gateway"


class Way(NamedTuple):
    """Where a connection goes first: to the server itself, or to the proxy that `variable` names."""

    host: str
    port: int
    variable: str | None = None

    def __str__(self) -> str:
        """Return host and port, and where they come from."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}" if self.variable is None else f"the proxy {host}:{self.port} ({self.variable})"


def check_surroundings(url: str, *, trust_env: bool) -> tuple[list[Finding], Way | None]:
    """Say by which proxy and with which certificates `url` is reached; no way where one of these cannot be used."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    way, told = Way(host, parts.port or PORTS[parts.scheme]), "none is used"
    try:
        route = route_to(url) if trust_env else None
    except ConnectionFailed as error:
        return [fail("proxy", *with_cure(error.message))], None
    if route is not None and route.proxy is not None:
        way = Way(route.proxy.raw_host.decode("ascii"), port_of(route.proxy), route.proxy_from)
        told = f"{host} is reached through {way}"
    named = [f"{name} ({os.environ[name]})" for name in ("SSL_CERT_FILE", "SSL_CERT_DIR") if os.environ.get(name)]
    whose = named[0] if named and trust_env else "the package certifi"
    try:
        pool_for(url, 1, trust_env=trust_env)
    except ConnectionFailed as error:
        cure = "correct SSL_CERT_FILE or SSL_CERT_DIR, or unset it"
        found = f"{error.message.partition(';')[0].rstrip('.')}, those of {whose}"
        return [ok("proxy", told), fail("certificates", found, cure)], None
    return [ok("proxy", told), ok("certificates", f"those of {whose}, and no other, are trusted")], way


async def ask_for_models(
    openai: OpenAISettings, way: Way, tell: Tell, *, trust_env: bool, reply_within: float = _REPLY, within: float = _ALL
) -> Mapping[str, date | None] | None:
    """Go the way to the API and return the models that it lists, None if it did not; takes at most `within` seconds."""
    with trio.move_on_after(within):
        for step in (_name, _connection):
            finding = await step(way)
            tell(finding)
            if finding.status == "FAIL":
                return None
        return await _list_of_models(openai, way, tell, trust_env=trust_env, reply_within=reply_within)
    tell(fail("network", f"the checks took longer than {within:g} s", "try again, or ask who runs this network"))
    return None


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
        return f"correct {way.variable}, unset it, or name the API's host in NO_PROXY"
    address = "correct host and port in openai.base_url (OPENAI_BASE_URL)"
    return f"{address}, check the network, and set HTTPS_PROXY if a proxy is needed"


async def _list_of_models(
    openai: OpenAISettings, way: Way, tell: Tell, *, trust_env: bool, reply_within: float
) -> Mapping[str, date | None] | None:
    try:
        headers = credential_headers(openai)
    except AuthenticationFailed:  # the key has a line of its own; the rest of the way can be tried without it
        headers = {}
    reply = ReplyReader(
        most_bytes=RequestSettings().max_reply_bytes, budget=ReplyBudget(), redact=Redactor(openai.secrets)
    )
    url = f"{openai.base_url}/models"
    wanted = {"accept": "application/json", "user-agent": f"openai-responses-mcp/{__version__}", **headers}
    whose = f"check the scheme, host and port of openai.base_url{f', and {way.variable}' if way.variable else ''}"
    try:
        async with aclosing(await open_connections(url, limit=1, trust_env=trust_env)) as connections:
            with trio.move_on_after(reply_within) as waiting:
                await connections.send(Request("GET", url, encoded(wanted)), reply)
    except UpstreamError as error:
        tell(_broken(error, whose))
        return None
    if waiting.cancelled_caught:
        tell(fail("http", f"no answer to GET {url} within {reply_within:g} s", whose))
        return None
    if url.startswith("https:"):
        tell(ok("tls", f"the certificate of {urlsplit(url).hostname} is trusted"))
    try:
        listed = reply.json_object().get("data")
    except UpstreamError as error:
        tell(_refused(error, f"GET {url}", with_credentials=bool(headers)))
        return None
    if not isinstance(listed, list):
        tell(warn("http", f"GET {url}: a list of models in another form than OpenAI's", "check openai.base_url"))
        return None
    entries = [cast("dict[str, object]", each) for each in cast("list[object]", listed) if isinstance(each, dict)]
    models = {str(each["id"]): announced_end(each) for each in entries if "id" in each}
    accepted = "; the key is accepted" if headers else ""
    tell(ok("http", f"GET {url}: 200, with {counted(len(models), 'model')}{accepted}"))
    return models


def _broken(error: UpstreamError, whose: str) -> Finding:
    """Judge a connection that did not come about or broke; `whose` says what to check."""
    tls = tls_error(error)
    if isinstance(tls, ssl.SSLCertVerificationError):
        said = tls.verify_message.rstrip(".")
        return fail("tls", f"the certificate is not trusted: {said}", tls_cure(tls) or _TRUST)
    if tls is not None:
        return fail("tls", f"no TLS connection ({tls.reason or type(tls).__name__})", whose)
    found, fix = with_cure(error.message)
    is_own = "proxy" in found.lower() or not isinstance(error, ConnectionFailed)
    return fail("http", found, fix if is_own else whose)


def _refused(error: UpstreamError, path: str, *, with_credentials: bool) -> Finding:
    """Judge an error of the API."""
    found, fix = with_cure(error.message)
    if error.status in {401, 403} and not with_credentials:
        return ok("http", f"{path}: {error.status}; the API answers and needs a key")
    if error.status in {401, 403}:  # what the API says of a key quotes parts of it
        found = found.partition(":")[0]
        if "scope" in error.message:
            return warn("http", f"{path}: {found}", f'let the key read models, or try it with "{program()} ask"')
    if error.status in _NO_LIST:
        fix = f'correct the path in openai.base_url, which often ends in /v1, or try it with "{program()} ask"'
        return warn("http", f"{path}: {error.status}, so no list of models is at this address", fix)
    judged = warn if isinstance(error, RateLimited) else fail
    return judged("http", f"{path}: {found}", fix)


def _reason(error: OSError) -> str:
    """Return the system's word for a failure; Trio puts those of several addresses into a group."""
    failures = [each for each in causes(error) if isinstance(each, OSError) and each.errno]
    return ", ".join(sorted({reason_of(each).rpartition(": ")[2] for each in failures})) or type(error).__name__
