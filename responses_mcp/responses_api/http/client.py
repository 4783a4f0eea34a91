"""HTTP with httpx: the only module that imports it, itself imported on the first call.

httpx gives URLs, proxies and certificates, and its core each connection, over the sockets of `network`. httpx's client
and transports above that would add redirects, cookies, authentication and a pool, none of which is wanted, to the price
of every call. The SSL context, which is slow to build, is shared by all of a run of Trio, also with a proxy that is
reached over TLS.
"""

from __future__ import annotations

import logging
import os
import ssl
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from functools import lru_cache, partial
from pathlib import Path
from typing import Protocol, cast
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpcore
import httpx
import trio

from responses_mcp.errors import ConnectionFailed, exhausted
from responses_mcp.responses_api.http.network import Network, Route
from responses_mcp.responses_api.http.pool import ConnectionPool, Reader, Request
from responses_mcp.settings.address import is_loopback

log = logging.getLogger(__name__)

CHUNKS_AT_ONCE = 64  # of a reply between two looks at other tasks; one read may hold thousands that are not joined
LAST_BYTES = 0.25  # seconds for a reply to end when its reader has enough, so that its connection can be kept
CLOSE_GRACE = 1.0  # seconds for httpcore to tidy up behind a reply

_BROKEN = httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException  # a connection that was there

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
    return str(cast(object, error.filename)) == file


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
        return HttpConnection(partial(_open, tls, None if proxy is None else httpx.Proxy(proxy), network), network)
    except (ValueError, httpx.InvalidURL) as error:
        raise ConnectionFailed(f"The proxy cannot be used; check {named}.") from error


async def _open(tls: ssl.SSLContext, proxy: httpx.Proxy | None, network: Network, origin: httpcore.Origin) -> Transport:
    """Return httpcore's connection to a server. One through a proxy is opened by its first request."""
    if proxy is None:
        host = origin.host.decode("ascii")
        stream = await network.connect_tcp(host, origin.port)
        if origin.scheme == b"https":
            tls.set_alpn_protocols(["http/1.1"])
            stream = await stream.start_tls(tls, host)
        return httpcore.AsyncHTTP11Connection(origin, stream)
    pool = httpcore.AsyncHTTPProxy(
        httpcore.URL(
            scheme=proxy.url.raw_scheme, host=proxy.url.raw_host, port=proxy.url.port, target=proxy.url.raw_path
        ),
        proxy_auth=proxy.raw_auth,
        proxy_headers=proxy.headers.raw,
        ssl_context=tls,
        # Without a context, one would be built for each connection to the proxy, which holds up everything else.
        proxy_ssl_context=tls if proxy.url.scheme == "https" else None,
        network_backend=network,
    )
    return pool.create_connection(origin)


class Transport(Protocol):
    """What sends a request and gives its reply: a connection of httpcore."""

    async def handle_async_request(self, request: httpcore.Request) -> httpcore.Response:
        """Send a request and return the reply, whose body is still to be read."""
        ...


class HttpConnection:
    """One connection: httpcore's over a network of ours. `open_transport` makes it for the first request."""

    def __init__(self, open_transport: Callable[[httpcore.Origin], Awaitable[Transport]], network: Network) -> None:
        self._open_transport = open_transport
        self._transport: Transport | None = None
        self._network = network

    async def exchange(self, request: Request, reader: Reader) -> bool:
        """Send a request and give its reply to `reader`; tell whether another may follow on the same connection.

        Raises `ConnectionFailed`, retryable only if the request cannot have reached the server, and what `reader`
        raises.
        """
        try:
            sent = _as_httpcore(request)
            if self._transport is None:
                self._transport = await self._open_transport(sent.url.origin)
            response = await self._transport.handle_async_request(sent)
            return await self._read(response, reader)
        except (*_BROKEN, httpcore.ProxyError, httpcore.UnsupportedProtocol, httpx.InvalidURL, UnicodeError) as error:
            raise _connection_failed(error, self._network.route) from error

    async def _read(self, response: httpcore.Response, reader: Reader) -> bool:
        """Give the reply to `reader` and return whether it was read to its end, and nothing has come behind it."""
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers}
        chunks = aiter(cast(httpx.AsyncByteStream, response.stream))
        whole = False
        try:
            reader.begin(response.status, headers)
            self._network.begin_body(chunked="transfer-encoding" in headers)
            whole = await _feed(chunks, reader)
        finally:
            if not whole:
                self._network.close()
                await _end(chunks, response)  # noqa: ASYNC102  # shielded, and bounded, within
        at_end = _is_at_end(response) and not await self._network.has_more()
        await response.aclose()  # which closes the connection unless h11 has both sides at their end
        return at_end and self._network.is_open

    @property
    def is_idle(self) -> bool:
        """Tell whether the connection is open, and nothing has come on it since its last reply, not even its end."""
        return self._network.is_idle

    def close(self) -> None:
        """Close the socket, at once."""
        self._network.close()


def _connection_failed(error: Exception, route: Route) -> ConnectionFailed:
    """Return what an error of httpx means, with a cure; `network` has raised its own for what comes before HTTP."""
    if isinstance(error, httpcore.ProxyError):
        cure = f"check {route.proxy_from}, which names it, and NO_PROXY for hosts to reach directly."
        if str(error).startswith("407"):
            written = "with %2F, %3F and %23 for /, ? and #"
            cure = f"put the right USER:PASSWORD@ before its host in {route.proxy_from}, {written}."
        # The request itself was not sent yet, so an outage of the proxy is worth another try; a 4xx of it is not.
        return ConnectionFailed(f"The proxy did not connect ({error}); {cure}", retryable=str(error).startswith("5"))
    if isinstance(error, _BROKEN):
        why = "what came is no HTTP, or was cut off" if isinstance(error, httpcore.ProtocolError) else "it was closed"
        return ConnectionFailed(
            f"The connection broke before the answer was complete ({why}); ask again.", maybe_paid=True
        )
    return ConnectionFailed("The address in openai.base_url, or that of the proxy, cannot be used; correct it.")


async def _feed(chunks: AsyncIterator[bytes], reader: Reader) -> bool:
    """Give `reader` the body, and return whether it was read to its end."""
    count = 0
    async for chunk in chunks:
        if reader.feed(chunk):
            return await _feed_rest(chunks, reader)
        count += 1
        if count % CHUNKS_AT_ONCE == 0:
            await trio.lowlevel.checkpoint()
    return True


async def _feed_rest(chunks: AsyncIterator[bytes], reader: Reader) -> bool:
    """Give `reader`, which has enough, what is left of the body, and return whether that ended soon."""
    count = 0
    with trio.move_on_after(LAST_BYTES), suppress(*_BROKEN):
        async for chunk in chunks:
            reader.feed(chunk)
            count += 1
            if count % CHUNKS_AT_ONCE == 0:
                await trio.lowlevel.checkpoint()
        return True
    return False


async def _end(chunks: AsyncIterator[bytes], response: httpcore.Response) -> None:
    """Let httpcore's generators end before they are dropped, which without a socket needs no waiting."""
    with trio.move_on_after(CLOSE_GRACE, shield=True), suppress(*_BROKEN):
        async for _ in chunks:
            await trio.lowlevel.checkpoint()
        await response.aclose()


def _is_at_end(response: httpcore.Response) -> bool:
    """Tell whether h11, which httpcore hides, has no byte behind the reply; False where it cannot be asked.

    This is the only place that looks there.
    """
    state = getattr(getattr(response.stream, "_connection", None), "_h11_state", None)
    return getattr(state, "trailing_data", None) == (b"", False)


class _Body:
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
def _parsed(url: str) -> tuple[httpcore.URL, bytes]:
    """Return a URL and what names its host in a request. Raises what `exchange` takes for an unusable one."""
    parsed = httpx.URL(url)
    if parsed.scheme not in ("http", "https"):
        raise httpcore.UnsupportedProtocol(f"{parsed.scheme} is no kind of HTTP")
    if not parsed.host:  # which is decoded here, and may turn out to be no name
        raise httpx.InvalidURL("no host")
    as_bytes = httpcore.URL(scheme=parsed.raw_scheme, host=parsed.raw_host, port=parsed.port, target=parsed.raw_path)
    return as_bytes, parsed.netloc


def _as_httpcore(request: Request) -> httpcore.Request:
    url, host = _parsed(request.url)
    headers = [(b"host", host), (b"accept-encoding", b"identity")]
    headers += [(name.encode("ascii"), value.encode("ascii")) for name, value in request.headers.items()]
    if request.method == "POST":
        headers.append((b"content-length", b"%d" % len(request.body)))
    return httpcore.Request(request.method, url, headers=headers, content=_Body(request.body, request.on_send))
