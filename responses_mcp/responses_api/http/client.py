"""HTTP with httpx: the only module that imports it, itself imported on the first call.

httpx reads URLs, and its core speaks HTTP over the sockets of `network`. httpx's client and transports above that would
add redirects, cookies, authentication and a pool, none of which is wanted, to the price of every call.
"""

from __future__ import annotations

import base64
import logging
import os
import re
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

_BROKEN = httpcore.NetworkError, httpcore.ProtocolError  # a connection that was there
_UNUSABLE: Final = "The address in openai.base_url, or that of the proxy, cannot be used; correct it."

# Held by a thread that loads certificates. A process should take it before it ends: OpenSSL must not be taken down
# under such a thread, which cannot be stopped and may have been left behind.
certificates = threading.Lock()

_warn_once = lru_cache(maxsize=8)(log.warning)


async def open_connections(url: str, *, limit: int, trust_env: bool = True) -> ConnectionPool:
    """Prepare for requests to the server of `url`; nothing is connected yet.

    With `trust_env`, certificates and proxy are those that the usual environment variables name. Raises
    `ConnectionFailed` for a proxy or certificates that cannot be used.
    """
    # In threads: reading the certificate store takes tens of milliseconds, and pings are answered meanwhile.
    proxy = await trio.to_thread.run_sync(proxy_for, url, abandon_on_cancel=True) if trust_env else None
    route = Route() if proxy is None else route_through(proxy)
    file, folder = (os.environ.get(name) or None if trust_env else None for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"))
    named = f"SSL_CERT_FILE is {file}" if file else f"SSL_CERT_DIR is {folder}" if folder else None
    tls = None
    if not url.lower().startswith("http://") or (route.proxy is not None and route.proxy.scheme == b"https"):
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
    """Return a context as `ssl.create_default_context` does, which fails where SSLKEYLOGFILE cannot be written."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if sys.version_info >= (3, 13):
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN | ssl.VERIFY_X509_STRICT
    context.set_alpn_protocols(["http/1.1"])
    context.load_verify_locations(file or (None if folder else certifi.where()), None if file else folder)
    if keys := os.environ.get("SSLKEYLOGFILE"):
        try:
            context.keylog_filename = keys
        except OSError as error:
            why = f"which cannot be written ({error.strerror or type(error).__name__})"
            _warn_once(f"SSLKEYLOGFILE is {keys}, {why}: TLS keys are not logged; correct or unset it.")
    return context


# Proxies

_NO_PROXY_URL: Final = "is no URL that can be used; write it as http://HOST:PORT, or unset it"
_PROXY_FAULTS: Final = {
    re.compile(r"(http://)?['\"`]"): "has quotation marks around it; remove them",
    re.compile(r"[^:]*://[^/?#]*[/?#].*@"): "has a password with a slash, ? or # in it; write these characters as %2F, "
    "%3F and %23",
    re.compile(r"(?!https?://)([^:]*)"): r"names a proxy of the kind \1, which cannot be used; name an http or https "
    "proxy, or unset it",
    re.compile(r".*\s"): _NO_PROXY_URL,
}


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


def route_through(proxy: Proxy) -> Route:
    """Return the way through a proxy. Raises `ConnectionFailed`, which shows nothing of its URL but its kind."""
    found = ((pattern.match(proxy.url), fault) for pattern, fault in _PROXY_FAULTS.items())
    fault = next((match.expand(fault) for match, fault in found if match), None)
    if fault is None:
        try:
            through = httpx.Proxy(proxy.url)
            where, _ = _address(str(through.url))
        except (httpx.InvalidURL, ConnectionFailed):
            fault = _NO_PROXY_URL
        else:
            auth = through.raw_auth and b"Basic " + base64.b64encode(b"%b:%b" % through.raw_auth)
            return Route(proxy.named_by, proxy=where, proxy_headers=[(b"proxy-authorization", auth)] if auth else [])
    raise ConnectionFailed(f"The proxy cannot be used: {proxy.named_by} {fault}.")


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
        http = self._http
        if http is None:
            http = self._http = await self._open(url)
        await request.on_send()
        try:
            response = await http.handle_async_request(self._as_httpcore(request, url, host))
            await self._read(response, reader)
        except _BROKEN as error:
            is_closed = not isinstance(error, httpcore.ProtocolError)
            why = "it was closed" if is_closed else "what came is no HTTP, or was cut off"
            said = f"The connection broke before the answer was complete ({why}); ask again."
            raise ConnectionFailed(said, maybe_paid=True) from error
        is_at_end = self._h11_is_empty()
        await response.aclose()
        return is_at_end and http.is_idle()

    async def _open(self, url: httpcore.URL) -> httpcore.AsyncHTTP11Connection:
        """Connect to the server, or to its proxy, and through that if TLS is wanted."""
        proxy = self._route.proxy
        hops = [url] if proxy is None else [proxy] if url.scheme == b"http" else [proxy, url]
        what = host = ""
        try:
            for hop in hops:
                host = hop.host.decode("ascii")
                if hop is hops[0]:
                    port = hop.origin.port
                    what = f"The {'API' if proxy is None else 'proxy'} cannot be reached at {host}:{port}"
                    await self.connect(host, port)
                else:
                    await self._open_tunnel(hops[0], hop.origin)
                if hop.scheme == b"https":
                    what = f"No TLS connection to {host}"
                    await self.put_tls(self._route.tls, host)
        except UnicodeError as error:
            raise ConnectionFailed(_UNUSABLE) from error
        except (trio.TooSlowError, trio.BrokenResourceError, OSError, RuntimeError) as error:
            raise not_connected(what, error, host, self._route) from error  # RuntimeError: no thread for the look-up
        return httpcore.AsyncHTTP11Connection(hops[-1].origin, self)

    async def _open_tunnel(self, proxy: httpcore.URL, origin: httpcore.Origin) -> None:
        target = (b"[%b]:%d" if b":" in origin.host else b"%b:%d") % (origin.host, origin.port)
        headers = [(b"host", target), *self._route.proxy_headers]
        request = httpcore.Request("CONNECT", proxy, headers=headers, extensions={"target": target})
        status, said = 503, "it closed the connection"
        with suppress(*_BROKEN):
            response: Any = await httpcore.AsyncHTTP11Connection(proxy.origin, self).handle_async_request(request)
            status = response.status
            said = f"{status} {response.extensions['reason_phrase'].decode('ascii', 'ignore')}"
        if 200 <= status < 300:
            return
        cure = self._route.cure("")
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
        extensions = {}
        if (proxy := self._route.proxy) is not None and url.scheme == b"http":
            headers += self._route.proxy_headers
            url, extensions = proxy, {"target": bytes(url)}
        made = httpcore.Request(request.method, url, content=request.body, extensions=extensions)
        made.headers = headers  # given to it, each would be looked at
        return made

    async def _read(self, response: httpcore.Response, reader: Reader) -> None:
        """Give the reply to `reader`, up to its end or to where the reader has enough and no more comes shortly."""
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers}
        reader.begin(response.status, headers)
        self.begin_body(chunked="transfer-encoding" in headers and self._h11_is_empty())
        chunks = aiter(cast("AsyncIterator[bytes]", response.stream))
        try:
            async for chunk in chunks:
                if reader.feed(chunk):
                    break
            else:
                return
            with trio.move_on_after(LAST_BYTES), suppress(*_BROKEN):
                async for chunk in chunks:
                    reader.feed(chunk)
        except BaseException:
            # httpcore's generators must end before they are dropped. Without a socket they do so without a wait.
            self.close()
            with suppress(*_BROKEN):
                async for _ in chunks:
                    pass
            raise

    def _h11_is_empty(self) -> bool:
        """Tell whether h11, which httpcore hides, holds no byte that it has not read; False where it cannot be asked.

        This is the only place that looks there.
        """
        return getattr(getattr(self._http, "_h11_state", None), "trailing_data", None) == (b"", False)


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
            while not await self._is_sent(request, reader):
                pass
        finally:
            self._slots.release()

    async def _is_sent(self, request: Request, reader: Reader) -> bool:
        """Send a request over the connection that was used last, if that is still quiet, or over a new one."""
        now = trio.current_time()
        while self._idle and self._idle[0][1] + IDLE_SECONDS <= now:
            self._idle.popleft()[0].close()
        is_new, keep = not self._idle, False
        connection = self._new_connection() if is_new else self._idle.pop()[0]
        try:
            if is_usable := is_new or await connection.is_quiet():
                keep = await connection.exchange(request, reader)
            return is_usable
        finally:
            # One is kept for each request that waits, and a few.
            is_wanted = len(self._idle) < KEPT_IDLE or self._slots.statistics().tasks_waiting > 0
            if keep and is_wanted and not self._closed:
                self._idle.append((connection, trio.current_time()))
            else:
                connection.close()

    async def aclose(self) -> None:
        """Close the idle connections; those in use are closed when their requests end, by a cancel at the latest."""
        self._closed = True
        while self._idle:
            self._idle.pop()[0].close()
        await trio.lowlevel.checkpoint()
