"""HTTP with httpx: the only module that imports it, itself imported on the first call.

Each connection is a transport of its own with a pool of one over the sockets of `network`. The SSL context, which is
slow to build, is shared by all of a run of Trio, also with a proxy that is reached over TLS. httpx's client above the
transports would add redirects, cookies and authentication, none of which is wanted, to the price of every call.
"""

from __future__ import annotations

import logging
import os
import ssl
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import cast
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpcore
import httpx
import trio

from responses_mcp.errors import ConnectionFailed, exhausted
from responses_mcp.responses_api.http.network import Network, Route
from responses_mcp.responses_api.http.pool import ConnectionPool, MakeRoom, Reader, Request
from responses_mcp.settings.address import is_loopback

log = logging.getLogger(__name__)

CHUNKS_AT_ONCE = 64  # of a reply between two looks at other tasks; one read from the socket may hold thousands
LAST_BYTES = 0.25  # seconds for a reply to end when its reader has enough, so that its connection can be kept
CLOSE_GRACE = 1.0  # seconds for httpx to tidy up behind a reply

# Held by a thread that loads certificates. A process should take it before it ends: OpenSSL must not be taken down
# under such a thread, which cannot be stopped and may have been left behind.
certificates = threading.Lock()

# The file of certificates (None for certifi's), what it was like when it was read, and what was made of it. Of one run
# each: httpcore sets something in a context for each connection, which OpenSSL bears in one thread only.
_contexts = trio.lowlevel.RunVar[dict[str | None, tuple[tuple[int, ...], ssl.SSLContext]]]("contexts")


async def open_connections(url: str, *, limit: int, trust_env: bool = True) -> ConnectionPool:
    """Prepare for requests to the server of `url`; nothing is connected yet.

    With `trust_env`, certificates and proxy are those that the usual environment variables name. Raises
    `ConnectionFailed` for certificate files that cannot be used.
    """
    _contexts.set(contexts := _contexts.get({}))
    try:
        # In threads: reading the certificate store takes tens of milliseconds, and pings are answered meanwhile.
        proxy = await trio.to_thread.run_sync(proxy_for, url, abandon_on_cancel=True) if trust_env else None
        is_plain = all(each.lower().startswith("http://") for each in (url, proxy) if each is not None)
        make_tls: Callable[[], ssl.SSLContext] = _no_tls if is_plain else partial(_tls, contexts, trust_env=trust_env)
        tls = await trio.to_thread.run_sync(make_tls, abandon_on_cancel=True)
    except OSError as error:  # ssl.SSLError is one
        named = _certificates() or "SSL_CERT_FILE and SSL_CERT_DIR are not set"
        why = exhausted(error) or f"correct it, or unset it: {named}."
        reason = error.strerror or type(error).__name__
        raise ConnectionFailed(f"The CA certificates cannot be read ({reason}); {why}") from error
    certificates_from = _certificates() if trust_env else None
    route = Route(None if proxy is None else _proxy_variable(urlsplit(url).scheme), certificates_from)
    return ConnectionPool(partial(connection, tls, proxy, route), limit=limit)


def _no_tls() -> ssl.SSLContext:
    """Return a context for where it is not used: it trusts no certificate."""
    with certificates:
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def _tls(contexts: dict[str | None, tuple[tuple[int, ...], ssl.SSLContext]], *, trust_env: bool) -> ssl.SSLContext:
    """Return a context with the certificates that are trusted now; a file is read again when it has changed."""
    file = (os.environ.get("SSL_CERT_FILE") or None) if trust_env else None
    with certificates:
        if trust_env and file is None and os.environ.get("SSL_CERT_DIR"):
            # Takes no time: a folder is looked into when a server is met.
            return _context(trust_env=True)
        like = Path(file).stat() if file is not None else None
        stamp = () if like is None else (like.st_ino, like.st_size, like.st_mtime_ns)
        if file not in contexts or contexts[file][0] != stamp:
            contexts[file] = stamp, _context(trust_env=trust_env)
        return contexts[file][1]


def _context(*, trust_env: bool) -> ssl.SSLContext:
    """Return a new context. The keys of its connections go where SSLKEYLOGFILE says, if that can be written."""
    keys = os.environ.get("SSLKEYLOGFILE")
    if not keys:
        return httpx.create_ssl_context(trust_env=trust_env)
    try:
        with Path(keys).open("ab"):
            return httpx.create_ssl_context(trust_env=trust_env)
    except OSError as error:
        if not _is_about(error, keys):
            raise
        _warn_of_keys(keys, error.strerror or type(error).__name__)
    # The standard library reads the variable itself, and has no other way not to.
    del os.environ["SSLKEYLOGFILE"]
    try:
        return httpx.create_ssl_context(trust_env=trust_env)
    finally:
        os.environ["SSLKEYLOGFILE"] = keys


def _is_about(error: OSError, file: str) -> bool:
    return error.filename is not None and os.fspath(error.filename) == file


@lru_cache(maxsize=8)
def _warn_of_keys(file: str, reason: str) -> None:
    log.warning(
        "SSLKEYLOGFILE is %s, which cannot be written (%s): TLS keys are not logged; correct or unset it.", file, reason
    )


def _certificates() -> str | None:
    """Return what the environment says about certificates, None if it says nothing; a file leaves a folder unread."""
    named = (f"{name} is {os.environ[name]}" for name in ("SSL_CERT_FILE", "SSL_CERT_DIR") if os.environ.get(name))
    return next(named, None)


def _proxy_variable(scheme: str) -> str:
    """Return the name of the variable that names the proxy for a scheme, or what else does."""
    for name in (f"{scheme}_proxy", "all_proxy"):
        for variable in (name, name.upper()) if os.name != "nt" else (name.upper(),):  # there both are one
            if os.environ.get(variable):
                return variable
    return "the configuration of this system"


def proxy_for(url: str) -> str | None:
    """Return the proxy through which `url` is reached, by HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY.

    This machine is reached without one: a proxy would look for the server on its own.
    """
    parts = urlsplit(url)
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    host = parts.hostname or ""
    if not proxy or is_loopback(host) or proxy_bypass(host) or (parts.port and proxy_bypass(f"{host}:{parts.port}")):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def proxy_fault(proxy: str) -> tuple[str, str] | None:
    """Return what is wrong with the URL of a proxy, and the cure, None if nothing is; no more of it than its kind."""
    as_url = "write it as http://HOST:PORT, or unset it"
    if proxy.removeprefix("http://")[:1] in {"'", '"', "`"}:
        return "has quotation marks around it", "remove them"
    try:
        parts = urlsplit(proxy)
        if "@" in proxy.partition("://")[2].removeprefix(parts.netloc):  # what follows is a part of the password
            return "has a password with a slash, ? or # in it", "write these characters as %2F, %3F and %23"
        _ = parts.port
    except ValueError:
        return "is no URL that can be read", as_url
    if parts.scheme not in {"http", "https"}:
        kind = f"names a proxy of the kind {parts.scheme}, which cannot be used"
        return kind, "name an http or https proxy, or unset it"
    if not parts.hostname or any(character.isspace() for character in proxy):
        return "has no usable host", as_url
    return None


def connection(tls: ssl.SSLContext, proxy: str | None, route: Route | None = None) -> HttpConnection:
    """Return a connection that goes through the proxy whose URL is `proxy`, if there is one."""
    network = Network(route)
    named = route.proxy_from if route is not None and route.proxy_from else "what names it"
    if proxy is not None and (fault := proxy_fault(proxy)) is not None:
        raise ConnectionFailed(f"The proxy cannot be used: {named} {'; '.join(fault)}.")
    try:
        transport = _Transport(tls, None if proxy is None else httpx.Proxy(proxy), network)
    except (ValueError, httpx.InvalidURL) as error:
        raise ConnectionFailed(f"The proxy cannot be used; check {named}.") from error
    return HttpConnection(transport, network)


class HttpConnection:
    """One connection: httpx's transport over a network of ours."""

    def __init__(self, transport: httpx.AsyncBaseTransport, network: Network) -> None:
        self._transport = transport
        self._network = network

    async def exchange(self, request: Request, reader: Reader, make_room: MakeRoom) -> bool:
        """Send a request and give its reply to `reader`; tell whether another may follow on the same connection.

        Raises `ConnectionFailed`, retryable only if the request cannot have reached the server, and what `reader`
        raises.
        """
        try:
            response = await self._transport.handle_async_request(_as_httpx(request))
            return await self._read(response, reader, make_room) and self._network.is_open
        except (httpx.TransportError, httpx.InvalidURL, UnicodeError) as error:
            raise _connection_failed(error, self._network.route) from error

    async def _read(self, response: httpx.Response, reader: Reader, make_room: MakeRoom) -> bool:
        """Give the reply to `reader` and return whether it was read to its end."""
        headers = dict(response.headers.items())  # of httpx's headers each look-up goes through all of them
        reader.begin(response.status_code, headers)
        self._network.begin_body(_body_length(response.status_code, headers))
        chunks = aiter(cast(httpx.AsyncByteStream, response.stream))
        whole = False
        try:
            whole = await _feed(chunks, reader, make_room)
        finally:
            if not whole:
                self._network.close()
            # httpx's generators must end before they are dropped, which without a socket needs no waiting.
            with trio.move_on_after(CLOSE_GRACE, shield=True), suppress(httpx.TransportError):
                async for _ in chunks:
                    await trio.lowlevel.checkpoint()
                await response.aclose()
        return whole

    async def is_silent(self) -> bool:
        """Tell whether nothing has come since the last reply, not even the end of the connection."""
        return await self._network.is_silent()

    def close(self) -> None:
        """Close the socket, at once."""
        self._network.close()


def _connection_failed(error: Exception, route: Route) -> ConnectionFailed:
    """Return what an error of httpx means, with a cure; `network` has raised its own for what comes before HTTP."""
    if isinstance(error, httpx.ProxyError):
        cure = f"check {route.proxy_from}, which names it, and NO_PROXY for hosts to reach directly."
        if str(error).startswith("407"):
            written = "with %2F, %3F and %23 for /, ? and #"
            cure = f"put the right USER:PASSWORD@ before its host in {route.proxy_from}, {written}."
        # The request itself was not sent yet, so an outage of the proxy is worth another try; a 4xx of it is not.
        return ConnectionFailed(f"The proxy did not connect ({error}); {cure}", retryable=str(error).startswith("5"))
    if isinstance(error, httpx.TransportError) and not isinstance(error, httpx.UnsupportedProtocol):
        why = "what came is no HTTP, or was cut off" if isinstance(error, httpx.ProtocolError) else "it was closed"
        return ConnectionFailed(
            f"The connection broke before the answer was complete ({why}); ask again.", maybe_paid=True
        )
    return ConnectionFailed("The address in openai.base_url, or that of the proxy, cannot be used; correct it.")


async def _feed(chunks: AsyncIterator[bytes], reader: Reader, make_room: MakeRoom) -> bool:
    """Give `reader` the body, and return whether it was read to its end."""
    await make_room()
    count, enough = 0, False
    with trio.CancelScope() as reading:
        try:
            async for chunk in chunks:
                count += 1
                if count % CHUNKS_AT_ONCE == 0:
                    await trio.lowlevel.checkpoint()
                had_enough, enough = enough, reader.feed(chunk)
                if not enough:
                    await make_room()
                elif not had_enough:
                    reading.deadline = trio.current_time() + LAST_BYTES
        except httpx.TransportError:
            if not enough:
                raise
            return False
    return not reading.cancelled_caught


class _Transport(httpx.AsyncHTTPTransport):
    """httpx's transport, over sockets of ours: its own constructor takes no backend."""

    def __init__(self, tls: ssl.SSLContext, proxy: httpx.Proxy | None, network: Network) -> None:
        # For its checks of the proxy's URL; `open_connections` has read environment and certificates, once for all.
        super().__init__(verify=tls, proxy=proxy, trust_env=False)
        if proxy is None:
            self._pool = httpcore.AsyncConnectionPool(tls, max_connections=1, network_backend=network)
            return
        self._pool = httpcore.AsyncHTTPProxy(
            httpcore.URL(
                scheme=proxy.url.raw_scheme,
                host=proxy.url.raw_host,
                port=proxy.url.port,
                target=proxy.url.raw_path,
            ),
            proxy_auth=proxy.raw_auth,
            proxy_headers=proxy.headers.raw,
            ssl_context=tls,
            # Without a context, one would be built for each connection to the proxy, which holds up everything else.
            proxy_ssl_context=tls if proxy.url.scheme == "https" else None,
            max_connections=1,
            network_backend=network,
        )


class _Body(httpx.AsyncByteStream):
    """A request body for one use. httpx's own is an async generator, which a cancel leaves unfinished."""

    def __init__(self, data: bytes, on_send: Callable[[], Awaitable[None]]) -> None:
        self._pieces = [data]
        self._on_send = on_send

    def __aiter__(self) -> _Body:
        return self

    async def __anext__(self) -> bytes:
        if not self._pieces:
            raise StopAsyncIteration
        await self._on_send()
        return self._pieces.pop()


@lru_cache(maxsize=8)
def _parsed(url: str) -> tuple[httpx.URL, str]:
    """Return a URL and what names its host in a request. Raises UnicodeError or InvalidURL if it cannot be used."""
    parsed = httpx.URL(url)
    if not parsed.host:  # which is decoded here, and may turn out to be no name
        raise httpx.InvalidURL("no host")
    return parsed, parsed.netloc.decode("ascii")


def _as_httpx(request: Request) -> httpx.Request:
    url, host = _parsed(request.url)
    headers = {"host": host, "accept-encoding": "identity", **request.headers}
    if request.method == "POST":
        headers["content-length"] = str(len(request.body))
    return httpx.Request(request.method, url, headers=headers, stream=_Body(request.body, request.on_send))


def _body_length(status: int, headers: Mapping[str, str]) -> int | None:
    """Return the length of a reply's body if its head tells; h11 has checked the head."""
    if status in (204, 304):
        return 0
    length = headers.get("content-length")
    return int(length) if length is not None and "transfer-encoding" not in headers else None
