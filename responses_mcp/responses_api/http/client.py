"""HTTP with httpx: the only module that imports it, itself imported on the first call.

httpx reads URLs, and its core speaks HTTP over the sockets of `network`. httpx's client and transports above that would
add redirects, cookies, authentication and a pool, none of which is wanted, to the price of every call.
"""

from __future__ import annotations

import base64
import logging
import math
import os
import ssl
import sys
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from functools import lru_cache, partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final, NamedTuple, cast
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import certifi
import httpcore
import httpx
import trio

from responses_mcp.errors import ConnectionFailed, exhausted
from responses_mcp.responses_api.http.connections import Reader, Request
from responses_mcp.responses_api.http.network import Route, Socket, not_connected
from responses_mcp.settings.address import is_loopback

log = logging.getLogger(__name__)

KEPT_IDLE: Final = 16  # connections kept open for the next call; more are left over only by a burst
IDLE_SECONDS: Final = 90.0  # that they are kept for: servers and routers forget them after 60 to 350
LAST_BYTES: Final = 0.25  # seconds for a reply to end when its reader has enough, so that its connection can be kept
READS_AT_ONCE: Final = 4  # of much, between two looks at other tasks
CLOSE_GRACE: Final = 1.0  # seconds for httpcore to tidy up behind a reply

_BROKEN = httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException  # a connection that was there
_UNUSABLE: Final = "The address in openai.base_url, or that of the proxy, cannot be used; correct it."

# Held by a thread that loads certificates. A process should take it before it ends: OpenSSL must not be taken down
# under such a thread, which cannot be stopped and may have been left behind.
certificates = threading.Lock()

_warn_once = lru_cache(maxsize=8)(log.warning)


async def open_connections(url: str, *, limit: int, trust_env: bool = True) -> ConnectionPool:
    """Prepare for requests to the server of `url`; nothing is connected yet.

    With `trust_env`, certificates and proxy are those that the usual environment variables name. Raises
    `ConnectionFailed` for certificate files that cannot be used.
    """
    # In threads: reading the certificate store takes tens of milliseconds, and pings are answered meanwhile.
    proxy = await trio.to_thread.run_sync(proxy_for, url, abandon_on_cancel=True) if trust_env else None
    route = Route() if proxy is None else _through(proxy)
    file, folder = (os.environ.get(name) or None if trust_env else None for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"))
    named = f"SSL_CERT_FILE is {file}" if file else f"SSL_CERT_DIR is {folder}" if folder else None
    tls = None
    if any(each is not None and not each.lower().startswith("http://") for each in (url, proxy and proxy.url)):
        try:
            tls = await trio.to_thread.run_sync(_tls, file, folder, abandon_on_cancel=True)
        except OSError as error:  # ssl.SSLError is one
            why = exhausted(error) or (f"correct it, or unset it: {named}." if named else "install certifi anew.")
            reason = error.strerror or type(error).__name__
            raise ConnectionFailed(f"The CA certificates cannot be read ({reason}); {why}") from error
    route = route._replace(certificates=named, tls=tls)
    return ConnectionPool(partial(HttpConnection, route, trio.CapacityLimiter(READS_AT_ONCE)), limit=limit)


# Certificates


def _tls(file: str | None, folder: str | None) -> ssl.SSLContext:
    """Return a context with the certificates that are trusted now; a file is read again when it has changed."""
    with certificates:
        like = None if file is None else Path(file).stat()
        return _context(file, folder, like and (like.st_ino, like.st_size, like.st_mtime_ns))


@lru_cache(maxsize=4)
def _context(file: str | None, folder: str | None, _stamp: object) -> ssl.SSLContext:
    """Return a new context. The keys of its connections go where SSLKEYLOGFILE says, if that can be written.

    It is as `ssl.create_default_context` makes it, which fails where that file cannot be written.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if sys.version_info >= (3, 13):
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN | ssl.VERIFY_X509_STRICT
    context.set_alpn_protocols(["http/1.1"])
    context.load_verify_locations(file or (None if folder else certifi.where()), None if file else folder)
    keys = os.environ.get("SSLKEYLOGFILE")
    try:
        if keys:
            context.keylog_filename = keys
    except OSError as error:
        why = f"which cannot be written ({error.strerror or type(error).__name__})"
        _warn_once(f"SSLKEYLOGFILE is {keys}, {why}: TLS keys are not logged; correct or unset it.")
    return context


# Proxies


class Proxy(NamedTuple):
    """The URL of a proxy, and the variable that names it, or what else does."""

    url: str
    named_by: str


def proxy_for(url: str) -> Proxy | None:
    """Return the proxy through which `url` is reached, by HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY.

    This machine is reached without one: a proxy would look for the server on its own.
    """
    parts = urlsplit(url)
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    host = parts.hostname or ""
    if not proxy or is_loopback(host) or proxy_bypass(host) or (parts.port and proxy_bypass(f"{host}:{parts.port}")):
        return None
    names = [f"{parts.scheme}_proxy", f"{parts.scheme}_proxy".upper(), "all_proxy", "ALL_PROXY"]
    if os.name == "nt":  # where both spellings are one
        names = names[1::2]
    named_by = next((name for name in names if os.environ.get(name)), "the configuration of this system")
    return Proxy(proxy if "://" in proxy else f"http://{proxy}", named_by)


def proxy_fault(proxy: str) -> tuple[str, str] | None:
    """Return what is wrong with the URL of a proxy, and the cure, None if nothing is; no more of it than its kind."""
    as_url = "write it as http://HOST:PORT, or unset it"
    if proxy.removeprefix("http://")[:1] in {"'", '"', "`"}:
        return "has quotation marks around it", "remove them"
    try:
        parts = urlsplit(proxy)
        if "@" in proxy.partition("://")[2].removeprefix(parts.netloc):  # what follows is a part of the password
            return "has a password with a slash, ? or # in it", "write these characters as %2F, %3F and %23"
        if parts.scheme not in {"http", "https"}:
            kind = f"names a proxy of the kind {parts.scheme}, which cannot be used"
            return kind, "name an http or https proxy, or unset it"
        is_usable = httpx.URL(proxy).host and not any(character.isspace() for character in proxy)
    except (ValueError, httpx.InvalidURL):
        return "is no URL that can be read", as_url
    return None if is_usable else ("has no usable host", as_url)


def _through(proxy: Proxy) -> Route:
    """Return the way through a proxy. Raises `ConnectionFailed` for one that cannot be used."""
    if (fault := proxy_fault(proxy.url)) is not None:
        raise ConnectionFailed(f"The proxy cannot be used: {proxy.named_by} {'; '.join(fault)}.")
    through = httpx.Proxy(proxy.url)
    headers = []
    if through.raw_auth is not None:
        headers = [(b"proxy-authorization", b"Basic " + base64.b64encode(b"%b:%b" % through.raw_auth))]
    return Route(proxy.named_by, proxy=_address(str(through.url))[0].origin, proxy_headers=headers)


# Connections


@lru_cache(maxsize=8)
def _address(url: str) -> tuple[httpcore.URL, bytes]:
    """Return a URL, and what names its host in a request. Raises `ConnectionFailed` for one that cannot be used."""
    try:
        parsed = httpx.URL(url)
        is_usable = parsed.scheme in ("http", "https") and parsed.host  # which is decoded, and may be no name
    except (httpx.InvalidURL, UnicodeError) as error:
        raise ConnectionFailed(_UNUSABLE) from error
    if not is_usable:
        raise ConnectionFailed(_UNUSABLE)
    parts = {"scheme": parsed.raw_scheme, "host": parsed.raw_host, "target": parsed.raw_path}
    return httpcore.URL(**parts, port=parsed.port), parsed.netloc


class HttpConnection(Socket):
    """One connection, opened by its first request: a socket, and httpcore's HTTP over it."""

    def __init__(self, route: Route, turns: trio.CapacityLimiter) -> None:
        super().__init__(turns)
        self._route = route
        self._http: httpcore.AsyncHTTP11Connection | None = None

    async def exchange(self, request: Request, reader: Reader) -> bool:
        """Send a request and give its reply to `reader`; tell whether another may follow on the same connection.

        Raises `ConnectionFailed`, retryable only if the request cannot have reached the server, and what `reader`
        raises.
        """
        url, host = _address(request.url)
        if self._http is None:
            self._http = await self._open(url.origin)
        await request.on_send()
        try:
            response = await self._http.handle_async_request(self._as_httpcore(request, url, host))
            return await self._read(response, reader)
        except _BROKEN as error:
            is_closed = not isinstance(error, httpcore.ProtocolError)
            why = "it was closed" if is_closed else "what came is no HTTP, or was cut off"
            said = f"The connection broke before the answer was complete ({why}); ask again."
            raise ConnectionFailed(said, maybe_paid=True) from error

    async def _open(self, origin: httpcore.Origin) -> httpcore.AsyncHTTP11Connection:
        """Connect to the server, or to its proxy, and through that if TLS is wanted."""
        route, first = self._route, self._route.proxy or origin
        host = first.host.decode("ascii")
        place = f"{host}:{first.port}"
        try:
            await self.connect(host, first.port)
            if first.scheme == b"https":
                place = f"{host} (TLS)"
                await self.put_tls(route.tls, host)
            if first is not origin and origin.scheme == b"https":
                await self._open_tunnel(first, origin)
                first, host = origin, origin.host.decode("ascii")
                place = f"{host} (TLS)"
                await self.put_tls(route.tls, host)
        except UnicodeError as error:
            raise ConnectionFailed(_UNUSABLE) from error
        except (trio.TooSlowError, trio.BrokenResourceError, OSError, RuntimeError) as error:
            raise not_connected(error, host, place, route) from error  # RuntimeError: no thread for the look-up
        return httpcore.AsyncHTTP11Connection(first, self)

    async def _open_tunnel(self, proxy: httpcore.Origin, origin: httpcore.Origin) -> None:
        target = (b"[%b]:%d" if b":" in origin.host else b"%b:%d") % (origin.host, origin.port)
        url = httpcore.URL(scheme=proxy.scheme, host=proxy.host, port=proxy.port, target=target)
        request = httpcore.Request("CONNECT", url, headers=[(b"host", target), *self._route.proxy_headers])
        status, said = 503, "it closed the connection"
        with suppress(*_BROKEN):
            response: Any = await httpcore.AsyncHTTP11Connection(proxy, self).handle_async_request(request)
            status = response.status
            said = f"{status} {response.extensions['reason_phrase'].decode('ascii', 'ignore')}"
        if 200 <= status < 300:
            return
        cure = f"check {self._route.proxy_from}, which names it, and NO_PROXY for hosts to reach directly."
        if status == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED:
            written = "with %2F, %3F and %23 for /, ? and #"
            cure = f"put the right USER:PASSWORD@ before its host in {self._route.proxy_from}, {written}."
        # The request itself was not sent yet, so an outage of the proxy is worth another try; a 4xx of it is not.
        raise ConnectionFailed(f"The proxy did not connect ({said}); {cure}", retryable=status >= 500)

    def _as_httpcore(self, request: Request, url: httpcore.URL, host: bytes) -> httpcore.Request:
        headers = [(b"host", host), (b"accept-encoding", b"identity")]
        headers += [(name.encode("ascii"), value.encode("ascii")) for name, value in request.headers.items()]
        if request.method == "POST":
            headers.append((b"content-length", b"%d" % len(request.body)))
        if (proxy := self._route.proxy) is not None and url.scheme == b"http":
            headers += self._route.proxy_headers
            url = httpcore.URL(scheme=proxy.scheme, host=proxy.host, port=proxy.port, target=bytes(url))
        return httpcore.Request(request.method, url, headers=headers, content=request.body)

    async def _read(self, response: httpcore.Response, reader: Reader) -> bool:
        """Give the reply to `reader` and return whether it was read to its end, and the connection stays open."""
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers}
        chunks = aiter(cast("AsyncIterator[bytes]", response.stream))
        whole = False
        try:
            reader.begin(response.status, headers)
            self.begin_body(chunked="transfer-encoding" in headers and self._h11_is_empty())
            whole = await _feed(chunks, reader)
        finally:
            if not whole:
                self.close()
                # httpcore's generators must end before they are dropped. Without a socket they do so without a wait.
                with trio.move_on_after(CLOSE_GRACE, shield=True), suppress(*_BROKEN):
                    async for _ in chunks:
                        pass
                    await response.aclose()
        at_end = self._h11_is_empty()
        await response.aclose()  # which closes the connection unless h11 has both sides at their end
        return at_end and self.is_open

    def _h11_is_empty(self) -> bool:
        """Tell whether h11, which httpcore hides, holds no byte that it has not read; False where it cannot be asked.

        This is the only place that looks there.
        """
        return getattr(getattr(self._http, "_h11_state", None), "trailing_data", None) == (b"", False)


async def _feed(chunks: AsyncIterator[bytes], reader: Reader) -> bool:
    """Give `reader` the body, and return whether it was read to its end. One that has enough waits shortly."""
    with trio.CancelScope() as scope:
        try:
            async for chunk in chunks:
                if reader.feed(chunk) and scope.deadline == math.inf:
                    scope.deadline = trio.current_time() + LAST_BYTES
        except _BROKEN:
            if scope.deadline == math.inf:
                raise
            return False
        return True
    return False


class ConnectionPool:
    """Connections to one server, at most `limit` at once; more requests wait in order and can be cancelled there.

    httpx's own pool looks at every connection it has at each request and each release, so its cost grows with the
    square of the calls at once. Here free connections are kept on a stack.
    """

    def __init__(self, new_connection: Callable[[], HttpConnection], *, limit: int) -> None:
        self._new_connection = new_connection
        self._slots = trio.CapacityLimiter(limit)
        self._idle: deque[tuple[HttpConnection, float]] = deque()  # with the time since when, the longest idle first
        self._closed = False

    async def send(self, request: Request, reader: Reader) -> None:
        """Send one request and give its reply to `reader`, see `Connections`."""
        try:
            self._slots.acquire_nowait()  # which is no step, and lets nobody overtake
        except trio.WouldBlock:
            await self._slots.acquire()
        try:
            await request.make_room()
            # A cancel may have come since this place, or the room, was given: it must not cost a connection.
            await trio.lowlevel.checkpoint_if_cancelled()
            await self._exchange(request, reader)
        finally:
            self._slots.release()

    async def _exchange(self, request: Request, reader: Reader) -> None:
        """Send a request over the connection that was used last, if that is quiet, or over a new one."""
        while self._idle and self._idle[0][1] + IDLE_SECONDS <= trio.current_time():
            self._idle.popleft()[0].close()
        is_done = False
        while not is_done:
            is_new = not self._idle
            connection = self._new_connection() if is_new else self._idle.pop()[0]
            keep = False
            try:
                if is_done := is_new or await connection.is_quiet():
                    keep = await connection.exchange(request, reader)
            finally:
                if keep and not self._closed and self._has_use_for_more():
                    self._idle.append((connection, trio.current_time()))
                else:
                    connection.close()

    def _has_use_for_more(self) -> bool:
        """Tell whether another idle connection is wanted: one for each request that waits, and a few."""
        return len(self._idle) < KEPT_IDLE or self._slots.statistics().tasks_waiting > 0

    async def aclose(self) -> None:
        """Close the idle connections; those in use are closed when their requests end, by a cancel at the latest."""
        self._closed = True
        while self._idle:
            self._idle.pop()[0].close()
        await trio.lowlevel.checkpoint()
