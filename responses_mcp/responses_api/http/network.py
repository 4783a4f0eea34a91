"""One connection: its socket, its TLS, the way through a proxy, HTTP over them, and why it does not come about.

Only this module imports httpx, and it is imported on the first call. httpx reads URLs, and its core speaks HTTP. The
client and the transports above that would add redirects, cookies, authentication and a pool, none of which is wanted,
to the price of every call.

The stream below httpcore is ours, for three things that its own does not do. A cancel closes the connection at once
wherever it comes, also within a TLS handshake. A request goes out in one piece. And the chunks of a reply that came
together are joined before h11 takes each on its own.
"""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from functools import lru_cache
from http import HTTPStatus
from typing import Any, Final, NamedTuple, cast

import httpcore
import httpx
import trio

from responses_mcp.errors import ConnectionFailed, causes, exhausted
from responses_mcp.responses_api.http.connections import Reader, Request
from responses_mcp.settings.address import is_loopback
from responses_mcp.under_trio import interrupts_alone

CONNECT_TIMEOUT: Final = 10.0  # seconds for a TCP connection with its look-up, and again for each TLS handshake
READ_BYTES: Final = 64 * 1024  # at once
BULK_BYTES: Final = 8 * 1024  # in one read, above which it waits for its turn: what is done with it takes a while
LAST_BYTES: Final = 0.25  # seconds for a reply to end when its reader has enough, so that its connection can be kept

_CHUNK = re.compile(rb"([1-9A-Fa-f][0-9A-Fa-f]{0,7})\r\n")
_PROXY_URL = re.compile(r"https?://([^/?#\s]*@)?[^/?#@\s'\"`]+(/[^@\s]*)?")
_CLOSED = trio.BrokenResourceError, trio.ClosedResourceError
_BROKEN = httpcore.NetworkError, httpcore.ProtocolError  # a connection that was there
_UNUSABLE: Final = "The address in openai.base_url, or that of the proxy, cannot be used; correct it."


@lru_cache(maxsize=8)
def _address(url: str) -> tuple[httpcore.URL, bytes]:
    """Return a URL, and what names its host in a request. Raises `ConnectionFailed` for one that cannot be used."""
    with suppress(httpx.InvalidURL, UnicodeError):
        parsed = httpx.URL(url)
        if parsed.scheme in ("http", "https") and parsed.host:  # which is decoded, and may be no name
            parts = {"scheme": parsed.raw_scheme, "host": parsed.raw_host, "target": parsed.raw_path}
            return httpcore.URL(**parts, port=parsed.port), parsed.netloc
    raise ConnectionFailed(_UNUSABLE)


class HttpConnection(httpcore.AsyncNetworkStream):
    """One connection, opened by its first request: the stream below httpcore, and httpcore's HTTP over it.

    Of all that share `turns`, so many hand on much at once between two looks of Trio at other tasks.
    """

    def __init__(self, route: Route, turns: trio.CapacityLimiter) -> None:
        self._route = route
        self._turns = turns
        self._http: httpcore.AsyncHTTP11Connection | None = None
        self._socket: trio.SocketStream | None = None
        self._stream: trio.abc.Stream | None = None  # the same, or the TLS over it
        self._unsent: list[bytes] = []
        self._received: bytes = b""  # and not handed on
        self._hand_on: Callable[[bytes], bytes] = bytes  # takes what came, and returns what h11 is given of it now
        self._chunk_left = 0  # bytes to come of a chunk that has begun, its line end included

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
        await response.aclose()
        return http.is_idle() and self._h11_is_empty()

    async def is_quiet(self) -> bool:
        """Tell whether it is open, and nothing has come behind the last reply, not even the end."""
        if self._stream is None or self._socket is None or self._received or self._socket.socket.is_readable():
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

    async def _open(self, url: httpcore.URL) -> httpcore.AsyncHTTP11Connection:
        """Connect to the server, or to its proxy, and through that if TLS is wanted."""
        proxy = self._route.proxy
        hops = [url] if proxy is None else [proxy.url] if url.scheme == b"http" else [proxy.url, url]
        what = host = ""
        try:
            for hop in hops:
                host, port = hop.host.decode("ascii"), hop.origin.port
                if proxy is None or hop is proxy.url:
                    what = f"The {'API' if proxy is None else 'proxy'} cannot be reached at {host}:{port}"
                    with interrupts_alone(()), trio.fail_after(CONNECT_TIMEOUT):  # Trio connects from a nursery
                        self._stream = self._socket = await trio.open_tcp_stream(host, port)
                    # A router may drop an idle connection: so that is noticed before the next request is sent.
                    self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
                else:
                    await self._open_tunnel(proxy, hop.origin)
                if hop.scheme == b"https":
                    what = f"No TLS connection to {host}"
                    await self._put_tls(host)
        except UnicodeError as error:
            raise ConnectionFailed(_UNUSABLE) from error
        except (trio.TooSlowError, trio.BrokenResourceError, OSError, RuntimeError) as error:
            raise _not_connected(what, error, host, self._route) from error  # RuntimeError: no thread for the look-up
        return httpcore.AsyncHTTP11Connection(hops[-1].origin, self)

    async def _put_tls(self, host: str) -> None:
        """Put TLS over the connection, and over the TLS of a proxy."""
        if self._stream is None or self._route.tls is None or self._received:
            raise trio.BrokenResourceError("bytes before the TLS handshake")
        tls = trio.SSLStream(self._stream, self._route.tls, server_hostname=host, https_compatible=True)
        self._stream = tls
        with trio.fail_after(CONNECT_TIMEOUT):
            await tls.do_handshake()

    async def _open_tunnel(self, proxy: httpcore.Proxy, origin: httpcore.Origin) -> None:
        target = (b"[%b]:%d" if b":" in origin.host else b"%b:%d") % (origin.host, origin.port)
        headers = [(b"host", target), *proxy.headers]
        request = httpcore.Request("CONNECT", proxy.url, headers=headers, extensions={"target": target})
        status, said = 503, "it closed the connection"
        with suppress(*_BROKEN):
            response: Any = await httpcore.AsyncHTTP11Connection(proxy.url.origin, self).handle_async_request(request)
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

    # A request and its reply

    def _as_httpcore(self, request: Request, url: httpcore.URL, host: bytes) -> httpcore.Request:
        headers = [(b"host", host), (b"accept-encoding", b"identity")]
        headers += [(name.encode("ascii"), value.encode("ascii")) for name, value in request.headers.items()]
        if request.method == "POST":
            headers.append((b"content-length", b"%d" % len(request.body)))
        extensions = {}
        if (proxy := self._route.proxy) is not None and url.scheme == b"http":
            headers += proxy.headers
            url, extensions = proxy.url, {"target": bytes(url)}
        made = httpcore.Request(request.method, url, content=request.body, extensions=extensions)
        made.headers = headers  # given to it, each would be looked at
        return made

    async def _read(self, response: httpcore.Response, reader: Reader) -> None:
        """Give the reply to `reader`, up to its end or to where the reader has enough and no more comes shortly."""
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers}
        reader.begin(response.status, headers)
        self._hand_on = self._joined if "transfer-encoding" in headers and self._h11_is_empty() else bytes
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

    # What httpcore calls

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109, ARG002
        """Take bytes to send, which go out together when the reply is to be read."""
        self._unsent.append(buffer)

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109, ARG002
        """Return what came, of a head no more than up to its end; b"" at the end. `max_bytes` are no less."""
        data, self._received = self._received, b""
        if self._stream is None:
            raise httpcore.ReadError("the connection is closed")
        if self._unsent:
            request = b"".join(self._unsent)
            self._unsent.clear()
            self._hand_on = self._head_of
            # Where a server answers and closes before it has the whole request, its answer is there to be read.
            with suppress(*_CLOSED):
                await self._stream.send_all(request)
        if not data:
            try:
                data = bytes(await self._stream.receive_some(READ_BYTES))
            except _CLOSED as error:
                raise httpcore.ReadError(str(error)) from error
            if len(data) > BULK_BYTES:
                async with self._turns:  # which is got in a step of its own
                    pass
        return self._hand_on(data)

    async def aclose(self) -> None:
        """Close the connection at once."""
        self.close()
        # Other tasks run now, so that of many cancelled calls all sockets close before anything else is done.
        await trio.lowlevel.cancel_shielded_checkpoint()

    def _head_of(self, data: bytes) -> bytes:
        head, end, self._received = data.partition(b"\r\n\r\n")
        return head + end

    def _joined(self, data: bytes) -> bytes:
        """Return the next bytes of the body, with whole chunks as one: h11 takes 10 µs for each, whatever its size.

        Where it does not understand them, it leaves all that follows to h11, which judges them.
        """
        at = start = min(self._chunk_left, len(data))
        self._chunk_left -= start
        pieces: list[bytes] = []
        while size := _CHUNK.match(data, at):
            end = size.end() + int(size[1], 16)
            if data[end : end + 2] != b"\r\n":  # it goes on, or is none
                self._chunk_left = max(0, end + 2 - len(data))
                break
            pieces.append(data[size.end() : end])
            at = end + 2
        if at < len(data) and not self._chunk_left:
            self._hand_on = bytes
        if len(pieces) < 2:
            return data
        whole = b"".join(pieces)
        return b"%b%x\r\n%b\r\n%b" % (data[:start], len(whole), whole, data[at:])


# The way, and why there is none

_CERTIFICATE_CURES: Final = {
    re.compile(
        r"expired|not yet valid"
    ): "set the clock of this machine; if it is right, the server needs a new certificate",
    re.compile(r"Hostname|IP address"): "write the host in openai.base_url (OPENAI_BASE_URL), or that of an https "
    "proxy, as the certificate has it",
}


class Route(NamedTuple):
    """The way to the API: through which proxy, with which certificates, and what names these, for messages."""

    proxy_from: str | None = None
    certificates: str | None = None
    tls: ssl.SSLContext | None = None  # None where none is wanted
    proxy: httpcore.Proxy | None = None

    def cure(self, host: str) -> str:
        """Return what to do where no connection to `host` comes about."""
        if self.proxy_from is not None:
            return f"correct {self.proxy_from}, which names the proxy, or name the API's host in NO_PROXY."
        if is_loopback(host):
            return "start the server there, or correct openai.base_url (OPENAI_BASE_URL)."
        return "check the network, openai.base_url (OPENAI_BASE_URL), and HTTPS_PROXY if you need a proxy."


def route_through(proxy: str, named_by: str) -> Route:
    """Return the way through the proxy of a URL. Raises `ConnectionFailed`, which shows nothing of that."""
    if _PROXY_URL.fullmatch(proxy):
        with suppress(httpx.InvalidURL, ConnectionFailed):
            through = httpx.Proxy(proxy)
            return Route(named_by, proxy=httpcore.Proxy(_address(str(through.url))[0], auth=through.raw_auth))
    raise ConnectionFailed(
        f"The proxy cannot be used: {named_by} is no URL of an http or https proxy without quotation marks; write it "
        "as http://HOST:PORT or http://USER:PASSWORD@HOST:PORT, with %2F, %3F and %23 for /, ? and #, or unset it."
    )


def tls_error(error: BaseException) -> ssl.SSLError | None:
    """Return the TLS failure at the bottom of a failed connection, None if there is none."""
    return next((each for each in causes(error) if isinstance(each, ssl.SSLError)), None)


def certificate_cure(error: ssl.SSLCertVerificationError) -> str | None:
    """Return what to do about a certificate that is wrong in itself; None where it is not known who signed it."""
    return next((cure for said, cure in _CERTIFICATE_CURES.items() if said.search(error.verify_message)), None)


def _not_connected(what: str, error: Exception, host: str, route: Route) -> ConnectionFailed:
    """Return an error that says `what`, which happened on the way to `host`, and why, with the cure."""
    tls, cure = tls_error(error), route.cure(host)
    if isinstance(tls, ssl.SSLCertVerificationError):
        cure = "behind a company proxy, set SSL_CERT_FILE to the company's CA certificates"
        if route.certificates is not None:
            cure = f"{route.certificates}, where the CA that signed it is missing: add it"
        said = tls.verify_message.rstrip(".")
        what = f"The TLS certificate of {host} is not trusted (CERTIFICATE_VERIFY_FAILED: {said})"
        return ConnectionFailed(f"{what}; {certificate_cure(tls) or cure}.")
    if isinstance(error, trio.TooSlowError):
        why = f"no answer within {CONNECT_TIMEOUT:g} s"
    elif tls is not None and tls.reason == "WRONG_VERSION_NUMBER" and route.proxy is None:
        why = "there is no TLS at that port"
        cure = "write http:// in openai.base_url (OPENAI_BASE_URL) if it is a server of yours, or correct the port."
    elif isinstance(error, trio.BrokenResourceError):
        why = (tls and tls.reason) or "the connection was closed"
    elif (shortage := exhausted(error)) is not None:
        return ConnectionFailed(f"No connection to the API: {shortage}", retryable=True)
    elif any(isinstance(each, ConnectionRefusedError) for each in causes(error)):
        why = "connection refused: nothing listens there"
    else:
        why = str(error) or type(error).__name__
    return ConnectionFailed(f"{what} ({why}); {cure}", retryable=True)
