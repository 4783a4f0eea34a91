"""The connections to the API: their sockets, TLS, the way through a proxy, HTTP over them, and which are kept.

It is imported on the first call: httpx reads URLs, and h11, which comes with it, speaks HTTP. A cancel closes the
connection at once wherever it comes, also within a TLS handshake.
"""

from __future__ import annotations

import base64
import logging
import math
import os
import re
import socket
import ssl
import sys
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import nullcontext, suppress
from functools import lru_cache, partial
from http import HTTPStatus
from typing import Final, NamedTuple, cast
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import certifi
import h11
import httpx
import trio

from responses_mcp.errors import ConnectionFailed, causes, exhausted
from responses_mcp.responses_api.http.connections import Reader, Request
from responses_mcp.settings.address import is_loopback

log = logging.getLogger(__name__)

CONNECT_TIMEOUT: Final = 10.0  # seconds for a TCP connection with its look-up, and again for each TLS handshake
_WINSOCK: Final = 10_000  # from here on, numbers of errors are those of sockets on Windows
READ_BYTES: Final = 64 * 1024  # at once
BULK_BYTES: Final = 16 * 1024  # in one read, above which it waits for its turn: what is done with it takes a while
LAST_BYTES: Final = 0.25  # seconds for a reply to end when its reader has enough, so that its connection can be kept
KEPT_IDLE: Final = 16  # connections kept open for the next call; more are left over only by a burst
IDLE_SECONDS: Final = 90.0  # that they are kept for: servers and routers forget them after 60 to 350
READS_AT_ONCE: Final = 4  # of much, between two looks at other tasks

_CHUNK = re.compile(rb"([1-9A-Fa-f][0-9A-Fa-f]{0,7})\r\n")
_PROXY_URL = re.compile(r"https?://([^/?#\s]*@)?[^/?#@\s'\"`]+(/[^@\s]*)?")
_CLOSED = trio.BrokenResourceError, trio.ClosedResourceError
_BROKEN = (*_CLOSED, h11.ProtocolError)
_AT_END: Final = h11.DONE, h11.DONE, (b"", False)  # both sides, and nothing came behind
_LONGEST_HEAD: Final = 100 * 1024  # bytes
_new_http: Final = partial(h11.Connection, h11.CLIENT, max_incomplete_event_size=_LONGEST_HEAD)
PORTS: Final = {"http": 80, "https": 443}
_UNUSABLE: Final = "The address in openai.base_url, or that of the proxy, cannot be used; correct it."

# Held by a thread that loads certificates. A process should take it before it ends: OpenSSL must not be taken down
# under such a thread, which cannot be stopped and may have been left behind.
certificates = threading.Lock()

_warn_once = lru_cache(maxsize=8)(log.warning)


@lru_cache(maxsize=8)
def url_of(text: str) -> httpx.URL:
    """Take a URL apart. Raises `ConnectionFailed` for one that cannot be used."""
    with suppress(httpx.InvalidURL, UnicodeError):
        url = httpx.URL(text)
        if url.scheme in PORTS and url.host:  # which is decoded, and may be no name
            return url
    raise ConnectionFailed(_UNUSABLE)


def port_of(url: httpx.URL) -> int:
    """Return the port that a URL of http or https names, or means."""
    return url.port or PORTS[url.scheme]


class HttpConnection:
    """One connection, opened by its first request. All share `turns`, in which much is handed on."""

    def __init__(self, route: Route, turns: trio.CapacityLimiter) -> None:
        self._route = route
        self._turns = turns
        self._http = _new_http()
        self._socket: trio.SocketStream | None = None
        self._stream: trio.abc.Stream | None = None  # the same, or the TLS over it
        self._received: bytes = b""  # and not handed on
        self._hand_on: Callable[[bytes], bytes] = bytes  # takes what came, and returns what h11 is given of it now
        self._chunk_left = 0  # bytes to come of a chunk that has begun, its line end included

    async def exchange(self, request: Request, reader: Reader) -> bool:
        """Send a request and give its reply to `reader`; tell whether another may follow. Raises as the pool does."""
        to, body = url_of(request.url), request.body
        stream = self._stream or await self._open(to)
        headers = [(b"host", to.netloc), (b"accept-encoding", b"identity"), *request.headers.items()]
        if request.method == "POST":
            headers.append((b"content-length", b"%d" % len(body)))
        target = to.raw_path
        if self._route.proxy is not None and to.scheme == "http":
            headers += self._route.proxy_headers
            target = b"http://%b%b" % (to.netloc, target)
        await request.watcher.before_sending()
        try:
            await self._send(stream, h11.Request(method=request.method, target=target, headers=headers), body)
            await self._read(stream, reader)
        except _BROKEN as error:
            why = "the answer is not HTTP, or was cut" if isinstance(error, h11.ProtocolError) else "it was closed"
            said = f"The connection broke before the answer was complete ({why}); ask again."
            raise ConnectionFailed(said, maybe_paid=True) from error
        except trio.Cancelled:
            self.close()
            # Other tasks run now, so that of many cancelled calls all sockets close before anything else is done.
            await trio.lowlevel.cancel_shielded_checkpoint()
            raise
        http = self._http
        if self._received or (http.our_state, http.their_state, http.trailing_data) != _AT_END:
            return False
        http.start_next_cycle()
        return True

    async def is_quiet(self) -> bool:
        """Tell whether it is open, and nothing has come behind the last reply, not even the end."""
        if self._stream is None or self._socket is None or self._socket.socket.is_readable():
            return False
        if self._stream is self._socket:
            return True
        # TLS may have read more than it has given out. The deadline comes behind the beginning of its scope: otherwise
        # Trio would cancel before the first look.
        with trio.CancelScope() as waiting, suppress(*_CLOSED):
            waiting.deadline = trio.current_time()
            await self._stream.receive_some(1)
        return waiting.cancelled_caught

    def close(self) -> None:
        """Close the socket now, also under TLS without a goodbye; nothing happens if there is none."""
        if self._socket is not None:
            self._socket.socket.close()
        self._socket, self._stream, self._received = None, None, b""

    # To the server

    async def _open(self, to: httpx.URL) -> trio.abc.Stream:
        """Connect to the server, or to its proxy, and through that if TLS is wanted."""
        proxy = self._route.proxy
        hops = [to] if proxy is None else [proxy] if to.scheme == "http" else [proxy, to]
        what = host = ""
        stream: trio.abc.Stream | None = None
        try:
            for hop in hops:
                host = hop.raw_host.decode("ascii")
                if stream is None:
                    what = f"The {'API' if proxy is None else 'proxy'} cannot be reached at {host}:{port_of(hop)}"
                    with trio.fail_after(CONNECT_TIMEOUT):
                        stream = self._stream = self._socket = await trio.open_tcp_stream(host, port_of(hop))
                    # A router may drop an idle connection: so that is noticed before the next request is sent.
                    self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
                else:
                    await self._open_tunnel(stream, hop)
                if hop.scheme == "https":
                    what = f"No TLS connection to {host}"
                    stream = await self._put_tls(stream, host)
        except UnicodeError as error:
            raise ConnectionFailed(_UNUSABLE) from error
        except (trio.TooSlowError, trio.BrokenResourceError, OSError, RuntimeError) as error:
            raise _not_connected(what, error, host, self._route) from error  # RuntimeError: no thread for the look-up
        return cast("trio.abc.Stream", stream)

    async def _put_tls(self, over: trio.abc.Stream, host: str) -> trio.abc.Stream:
        """Put TLS over the connection, and over the TLS of a proxy."""
        if self._route.tls is None or self._received:
            raise trio.BrokenResourceError("bytes before the TLS handshake")
        tls = self._stream = trio.SSLStream(over, self._route.tls, server_hostname=host, https_compatible=True)
        with trio.fail_after(CONNECT_TIMEOUT):
            await tls.do_handshake()
        return tls

    async def _open_tunnel(self, stream: trio.abc.Stream, to: httpx.URL) -> None:
        target = (b"[%b]:%d" if b":" in to.raw_host else b"%b:%d") % (to.raw_host, port_of(to))
        headers = [(b"host", target), *self._route.proxy_headers]
        status, said = 503, "it closed the connection"
        with suppress(*_BROKEN):
            await self._send(stream, h11.Request(method="CONNECT", target=target, headers=headers))
            head = await self._head(stream)
            status, said = head.status_code, f"{head.status_code} {head.reason.decode('ascii', 'ignore')}"
        self._http = _new_http()
        if 200 <= status < 300:
            return
        cure = self._route.cure("")
        if status == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED:
            written = "with %2F, %3F and %23 for /, ? and #"
            cure = f"put the right USER:PASSWORD@ before its host in {self._route.proxy_from}, {written}."
        # The request itself was not sent yet, so an outage of the proxy is worth another try; a 4xx of it is not.
        raise ConnectionFailed(f"The proxy did not connect ({said}); {cure}", retryable=status >= 500)

    # A request and its reply

    async def _send(self, stream: trio.abc.Stream, request: h11.Request, body: bytes = b"") -> None:
        events = [request, h11.Data(data=body), h11.EndOfMessage()] if body else [request, h11.EndOfMessage()]
        data = b"".join(filter(None, map(self._http.send, events)))
        # Where a server answers and closes before it has the whole request, its answer is there to be read.
        with suppress(*_CLOSED):
            await stream.send_all(data)

    async def _head(self, stream: trio.abc.Stream) -> h11.Response:
        self._hand_on = self._head_of
        while True:
            head = await self._event(stream)
            if isinstance(head, h11.Response):
                return head
            await trio.lowlevel.checkpoint()  # many replies of the status 1xx may have come at once

    async def _read(self, stream: trio.abc.Stream, reader: Reader) -> None:
        """Give the reply to `reader`, up to its end or to where the reader has enough and no more comes shortly."""
        head = await self._head(stream)
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers}
        reader.begin(head.status_code, headers)
        self._hand_on = self._joined if "transfer-encoding" in headers else bytes
        self._chunk_left = 0
        last_at = math.inf  # when no more is waited for
        try:
            while isinstance(event := await self._event(stream, last_at), h11.Data):
                if reader.feed(bytes(event.data)):
                    last_at = min(last_at, trio.current_time() + LAST_BYTES)
        except (*_BROKEN, trio.TooSlowError):
            if last_at == math.inf:
                raise

    async def _event(self, stream: trio.abc.Stream, last_at: float = math.inf) -> object:
        """Return what h11 makes next of what comes. Raises `TooSlowError` if that has to be waited for to `last_at`."""
        while (event := self._http.next_event()) is h11.NEED_DATA:
            data, self._received = self._received, b""
            if not data:
                # A scope costs a hundredth of a call, and mostly the end comes with what is enough.
                with nullcontext() if last_at == math.inf else trio.fail_at(last_at):
                    data = bytes(await stream.receive_some(READ_BYTES))
                if len(data) > BULK_BYTES:
                    async with self._turns:  # which is got in a step of its own
                        pass
            self._http.receive_data(self._hand_on(data))
        return event

    def _head_of(self, data: bytes) -> bytes:
        head, end, self._received = data.partition(b"\r\n\r\n")
        return head + end

    def _joined(self, data: bytes) -> bytes:
        """Return the next bytes of the body, with whole chunks as one: h11 takes 10 µs for each; the rest is h11's."""
        at = start = min(self._chunk_left, len(data))
        self._chunk_left -= start
        pieces: list[bytes] = []
        while size := _CHUNK.match(data, at):
            begin = size.end()
            end = begin + int(size[1], 16)
            if data[end : end + 2] != b"\r\n":  # it goes on, or is none
                self._chunk_left = max(0, end + 2 - len(data))
                break
            pieces.append(data[begin:end])
            at = end + 2
        if at < len(data) and not self._chunk_left:
            self._hand_on = bytes
        if len(pieces) < 2:
            return data
        whole = b"".join(pieces)
        return b"%b%x\r\n%b\r\n%b" % (data[:start], len(whole), whole, data[at:])


class ConnectionPool:
    """Connections to one server, at most `limit` at once; more requests wait in order and can be cancelled there."""

    def __init__(self, new_connection: Callable[[], HttpConnection], *, limit: int) -> None:
        self._new_connection = new_connection
        self._slots = trio.CapacityLimiter(limit)
        self._idle: deque[tuple[HttpConnection, float]] = deque()  # a stack, with the time since when
        self._closed = False

    async def send(self, request: Request, reader: Reader) -> None:
        """Send one request and give its reply, whatever its status, to `reader`; cancelling closes the socket.

        Raises `UpstreamError`, retryable only if the request cannot have reached the server, and what `reader` raises.
        """
        try:
            self._slots.acquire_nowait()  # which is no step, and lets nobody overtake
        except trio.WouldBlock:
            await self._slots.acquire()
        try:
            await request.watcher.wait_for_room()
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


# The way, and why there is none

_TLS_CURES: Final = {
    re.compile(r"expired|not yet valid"): "set the clock of this machine; if it is right, the server needs a new "
    "certificate",
    re.compile(r"Hostname|IP address"): "write the host in openai.base_url (OPENAI_BASE_URL), or that of an https "
    "proxy, as the certificate has it",
    re.compile(r"WRONG_VERSION_NUMBER"): "there is no TLS at that port: write http:// in openai.base_url "
    "(OPENAI_BASE_URL), or in the proxy's address, or correct the port",
}


class Route(NamedTuple):
    """The way to the API, and what names its proxy and certificates. `tls` is None where none is wanted."""

    proxy_from: str | None = None
    proxy: httpx.URL | None = None
    proxy_headers: Sequence[tuple[bytes, bytes]] = ()
    certificates: str | None = None
    tls: ssl.SSLContext | None = None

    def cure(self, host: str) -> str:
        """Return what to do where no connection to `host` comes about."""
        if self.proxy_from is not None:
            return f"correct {self.proxy_from}, which names the proxy, or name the API's host in NO_PROXY."
        if is_loopback(host):
            return "start the server there, or correct openai.base_url (OPENAI_BASE_URL)."
        return "check the network, openai.base_url (OPENAI_BASE_URL), and HTTPS_PROXY if you need a proxy."


def pool_for(url: str, limit: int, *, trust_env: bool) -> ConnectionPool:
    """Return the pool of connections to the server of `url`. Raises as `open_connections` does."""
    route = route_to(url) if trust_env else Route()
    file, folder = (os.environ.get(name) or None if trust_env else None for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"))
    named = f"SSL_CERT_FILE is {file}" if file else f"SSL_CERT_DIR is {folder}" if folder else None
    if not url.lower().startswith("http://") or (route.proxy is not None and route.proxy.scheme == "https"):
        try:
            with certificates:
                tls = _context(file, folder)
        except OSError as error:  # ssl.SSLError is one
            why = exhausted(error) or (f"correct it, or unset it: {named}." if named else "install certifi anew.")
            reason = error.strerror or type(error).__name__
            raise ConnectionFailed(f"The CA certificates cannot be read ({reason}); {why}") from error
        route = route._replace(certificates=named, tls=tls)
    return ConnectionPool(partial(HttpConnection, route, trio.CapacityLimiter(READS_AT_ONCE)), limit=limit)


def route_to(url: str) -> Route:
    """Return the way to `url`; this machine is reached without a proxy, which would look for the server on its own.

    Raises `ConnectionFailed` for a proxy that cannot be used.
    """
    parts = urlsplit(url)
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    host = parts.hostname or ""
    if not proxy or is_loopback(host) or proxy_bypass(host) or (parts.port and proxy_bypass(f"{host}:{parts.port}")):
        return Route()
    names = [f"{parts.scheme}_proxy", f"{parts.scheme}_proxy".upper(), "all_proxy", "ALL_PROXY"]
    if os.name == "nt":  # where both spellings are one
        names = names[1::2]
    named_by = next((name for name in names if os.environ.get(name)), "the configuration of this system")
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    if _PROXY_URL.fullmatch(proxy):
        with suppress(httpx.InvalidURL, ConnectionFailed):
            through = httpx.Proxy(proxy)
            pair = b":".join(through.raw_auth or ())
            headers = [(b"proxy-authorization", b"Basic " + base64.b64encode(pair))] if pair else []
            return Route(named_by, url_of(str(through.url)), headers)
    raise ConnectionFailed(  # which shows nothing of the URL
        f"The proxy cannot be used: {named_by} is not an http or https URL without quotation marks; write it "
        "as http://HOST:PORT or http://USER:PASSWORD@HOST:PORT, with %2F, %3F and %23 for /, ? and #, or unset it."
    )


@lru_cache(maxsize=4)
def _context(file: str | None, folder: str | None) -> ssl.SSLContext:
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


def tls_error(error: BaseException) -> ssl.SSLError | None:
    """Return the TLS failure at the bottom of a failed connection, None if there is none."""
    return next((each for each in causes(error) if isinstance(each, ssl.SSLError)), None)


def tls_cure(error: ssl.SSLError) -> str | None:
    """Return what to do about a TLS failure; None where it is not known who signed a certificate, or what failed."""
    return next((cure for said, cure in _TLS_CURES.items() if said.search(str(error))), None)


def _not_connected(what: str, error: Exception, host: str, route: Route) -> ConnectionFailed:
    """Return an error that says `what` happened on the way to `host`, and why, with the cure."""
    tls, cure = tls_error(error), route.cure(host)
    if isinstance(error, trio.TooSlowError):
        why = f"no answer within {CONNECT_TIMEOUT:g} s"
    elif tls is not None:
        why = tls.reason or type(tls).__name__
        if isinstance(tls, ssl.SSLCertVerificationError):
            why += f": {tls.verify_message.rstrip('.')}"
            cure = "behind a company proxy, set SSL_CERT_FILE to the company's CA certificates."
            if route.certificates is not None:
                cure = f"{route.certificates}, where the CA that signed it is missing: add it."
        cure = f"{known}." if (known := tls_cure(tls)) else cure
    elif isinstance(error, trio.BrokenResourceError):
        why = "the connection was closed"
    elif (shortage := exhausted(error)) is not None:
        return ConnectionFailed(f"No connection to the API: {shortage}", retryable=True)
    else:
        reasons = [each for each in causes(error) if isinstance(each, OSError) and each.strerror]
        why = _words(reasons[-1]) if reasons else str(error) or type(error).__name__
    return ConnectionFailed(f"{what} ({why}); {cure}", retryable=not isinstance(tls, ssl.SSLCertVerificationError))


def _words(error: OSError) -> str:
    """Return what the system says of an error."""
    number = error.errno or 0
    if sys.platform == "win32" and number >= _WINSOCK:  # Trio has no words for them
        import ctypes  # noqa: PLC0415  # for this alone

        return ctypes.FormatError(number).strip().rstrip(".")
    return (error.strerror or type(error).__name__).rpartition(": ")[2]
