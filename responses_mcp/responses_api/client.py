"""The seam to httpx: the only module that imports it, itself imported on the first call.

httpx's connection pool looks at every connection it has at each request and each release, so its cost grows with the
square of the calls at once. Here each connection is a transport of its own with a pool of one; free ones are kept on a
stack, and a limiter lets calls through in the order in which they came. The SSL context, which is slow to build, is
shared, also with a proxy that is reached over TLS. httpx's client above the transports would add redirects, cookies
and authentication, none of which is wanted, to the price of every call.
"""

from __future__ import annotations

import ssl
import zlib
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import lru_cache, partial
from typing import NamedTuple, cast
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpx
import trio

from responses_mcp.errors import ConnectionFailed, UnusableReply
from responses_mcp.responses_api.connections import Listener, Reply
from responses_mcp.responses_api.retry import retryable_status

CONNECT_TIMEOUT = 10.0  # seconds until a TCP and TLS connection must stand
KEPT_IDLE = 16  # connections kept open for the next call; more are left over only by a burst
MAX_REPLY_BYTES = 64 * 1024 * 1024
UNPACKED_AT_ONCE = 512 * 1024  # bytes of a compressed reply between two looks at other tasks
CHUNKS_AT_ONCE = 100  # of a reply between two such looks; one read from the socket may hold ten thousand
PIECE = 64 * 1024  # bytes at least of each piece of a reply but the last, however small its chunks are
CLOSE_GRACE = 1.0  # seconds
LAST_BYTES = 0.25  # seconds for a reply to end when its listener has heard enough, so that its connection can be kept


class HttpConnections:
    """Connections to one server, at most `limit` at once; more requests wait in order and can be cancelled there.

    `proxy` is the URL of the proxy to go through, if there is one. Cancelling a request closes its socket.
    """

    def __init__(self, tls: ssl.SSLContext, proxy: str | None, *, limit: int) -> None:
        self._tls = tls
        self._proxy = proxy
        self._slots = trio.CapacityLimiter(limit)
        self._idle: list[httpx.AsyncHTTPTransport] = []
        self._kept_idle = KEPT_IDLE

    @classmethod
    async def open(cls, url: str, *, limit: int, trust_env: bool = True) -> HttpConnections:
        """Prepare for requests to the server of `url`; nothing is connected yet.

        With `trust_env`, certificates and proxy are those that the usual environment variables name. Raises
        `ConnectionFailed` for certificate files that cannot be used.
        """
        make_tls = partial(httpx.create_ssl_context, trust_env=trust_env)
        try:
            # Reading the certificate store takes tens of milliseconds, in which pings want an answer.
            tls = await trio.to_thread.run_sync(make_tls, abandon_on_cancel=True)
            proxy = await trio.to_thread.run_sync(proxy_for, url, abandon_on_cancel=True) if trust_env else None
        except OSError as error:  # ssl.SSLError is one
            raise ConnectionFailed(
                f"The CA certificates cannot be read ({type(error).__name__}); "
                "check the files that SSL_CERT_FILE and SSL_CERT_DIR name."
            ) from error
        return cls(tls, proxy, limit=limit)

    async def post(self, url: str, headers: Mapping[str, str], body: bytes, listener: Listener | None = None) -> Reply:
        """Send one request and read the whole reply, whatever its status, or let `listener` hear it.

        Raises `ConnectionFailed`, retryable only if the request cannot have reached the server, and `UnusableReply`
        for a reply over 64 MiB.
        """
        return await self._send(_Request("POST", url, headers, body), listener)

    async def get(self, url: str, headers: Mapping[str, str]) -> Reply:
        """Ask for what is at `url`; the same holds as for `post`."""
        return await self._send(_Request("GET", url, headers), None)

    async def _send(self, request: _Request, listener: Listener | None) -> Reply:
        async with self._slots:
            # A cancel may have come between the release of this place and now: it must not cost a connection.
            await trio.lowlevel.checkpoint_if_cancelled()
            transport = self._idle.pop() if self._idle else self._new_transport()
            whole = False
            try:
                reply, whole = await _exchange(transport, request, listener)
                return reply
            finally:
                # After anything but a whole reply it is not trusted to be in order, and must let go at once.
                if whole and len(self._idle) < self._kept_idle:
                    self._idle.append(transport)
                else:
                    with trio.CancelScope(shield=True, deadline=trio.current_time() + CLOSE_GRACE):
                        await transport.aclose()

    def _new_transport(self) -> httpx.AsyncHTTPTransport:
        try:
            return httpx.AsyncHTTPTransport(
                verify=self._tls,
                proxy=self._proxy_settings(),
                trust_env=False,  # read once, by `open`
                limits=httpx.Limits(max_connections=1, max_keepalive_connections=1),
            )
        except (ValueError, ImportError, httpx.InvalidURL) as error:
            raise ConnectionFailed(
                f"The proxy settings cannot be used ({type(error).__name__}); "
                "check HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY (http and https proxies work, socks does not)."
            ) from error

    def _proxy_settings(self) -> httpx.Proxy | None:
        if self._proxy is None:
            return None
        # Without a context, one would be built for each connection to the proxy, which holds up everything else.
        over_tls = self._proxy.lower().startswith("https:")
        return httpx.Proxy(self._proxy, ssl_context=self._tls if over_tls else None)

    async def aclose(self) -> None:
        """Close the idle connections; those in use are closed when their requests end, by a cancel at the latest."""
        self._kept_idle = 0
        idle, self._idle = self._idle, []
        with trio.CancelScope(shield=True, deadline=trio.current_time() + CLOSE_GRACE):
            # All at once, for when one takes all the time the others must be closed too.
            async with trio.open_nursery() as nursery:
                for transport in idle:
                    nursery.start_soon(transport.aclose)


def proxy_for(url: str) -> str | None:
    """Return the proxy through which `url` is reached, by HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY."""
    parts = urlsplit(url)
    proxies = getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    host = parts.hostname or ""
    if not proxy or proxy_bypass(host) or (parts.port and proxy_bypass(f"{host}:{parts.port}")):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


class _Request(NamedTuple):
    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes = b""


class _Body(httpx.AsyncByteStream):
    """A request body for one use. httpx's own is an async generator, of which a cancel leaves a loose end."""

    def __init__(self, data: bytes) -> None:
        self._pieces = [data]

    def __aiter__(self) -> _Body:
        return self

    async def __anext__(self) -> bytes:
        if not self._pieces:
            raise StopAsyncIteration
        return self._pieces.pop()


@lru_cache(maxsize=8)
def _parsed(url: str) -> tuple[httpx.URL, str]:
    """Return a URL and what names its host in a request. Raises UnicodeError or InvalidURL if it cannot be used."""
    parsed = httpx.URL(url)
    if not parsed.host:  # which is decoded here, and may turn out to be no name
        raise httpx.InvalidURL("no host")
    return parsed, parsed.netloc.decode("ascii")


async def _exchange(
    transport: httpx.AsyncHTTPTransport, wanted: _Request, listener: Listener | None
) -> tuple[Reply, bool]:
    """Return the reply, and whether it was read to its end."""
    try:
        url, host = _parsed(wanted.url)
        headers = {"host": host, "accept-encoding": "gzip", **wanted.headers}
        if wanted.method == "POST":
            headers["content-length"] = str(len(wanted.body))
        request = httpx.Request(
            wanted.method,
            url,
            headers=headers,
            stream=_Body(wanted.body),
            extensions={"timeout": {"connect": CONNECT_TIMEOUT}},
        )
        response = await transport.handle_async_request(request)
        try:
            pieces: list[bytes] = []
            if listener is not None and listener.begin(response.status_code, response.headers):
                whole = await _read(response, listener.hear)
            else:
                keeper = _Keeper(response)
                whole = await _read(response, keeper.hear)
                pieces = keeper.finish()
        finally:
            await response.aclose()
    except (httpx.ConnectError, httpx.ConnectTimeout) as error:
        raise _connect_failure(error) from error
    except httpx.ProxyError as error:
        # The request itself was not sent yet, so an outage of the proxy is worth another try; a refusal is not.
        raise ConnectionFailed(
            f"The proxy did not connect ({error}); check HTTPS_PROXY and HTTP_PROXY, "
            "and NO_PROXY for hosts to reach directly.",
            retryable=str(error).startswith("5"),
        ) from error
    except (UnicodeError, httpx.InvalidURL) as error:
        raise ConnectionFailed(
            "The host name in openai.base_url or in the proxy's address cannot be used; correct it."
        ) from error
    except httpx.TransportError as error:
        raise ConnectionFailed(
            f"The connection broke before the answer was complete ({type(error).__name__}); ask again.",
            maybe_paid=True,
        ) from error
    # Of httpx's headers each look-up goes through all of them.
    return Reply(response.status_code, dict(response.headers.items()), pieces), whole


async def _read(response: httpx.Response, hear: Callable[[bytes], Awaitable[bool]]) -> bool:
    """Give `hear` the body until it has enough, and return whether it was read to its end."""
    size = count = 0
    enough = False
    failure: UnusableReply | None = None
    chunks = aiter(cast(httpx.AsyncByteStream, response.stream))
    # Leaving the loop would leave httpx's generators unfinished; a cancel runs through all of them.
    with trio.CancelScope() as reading:
        try:
            async for chunk in chunks:
                size += len(chunk)
                count += 1
                try:
                    if count % CHUNKS_AT_ONCE == 0:
                        await trio.lowlevel.checkpoint()
                    if enough or failure is not None:
                        continue
                    if size > MAX_REPLY_BYTES:
                        raise _too_long(response.status_code)
                    enough = await hear(chunk)
                except UnusableReply as error:
                    failure = error
                    reading.cancel()
                except trio.Cancelled:
                    with suppress(httpx.TransportError):
                        async for _ in chunks:  # noqa: ASYNC102  # it raises at once
                            pass  # the generators have not seen this cancel yet
                    raise
                if enough:
                    reading.deadline = trio.current_time() + LAST_BYTES
        except httpx.TransportError:
            if not enough:
                raise
            return False
    if failure is not None:
        raise failure
    return not reading.cancelled_caught


class _Keeper:
    """Keeps the body of a reply, and undoes its compression, of which only gzip was offered."""

    def __init__(self, response: httpx.Response) -> None:
        self._pieces: list[bytes] = []
        self._last = bytearray()  # the piece that is not whole yet
        self._size = 0
        self._status = response.status_code
        coding = response.headers.get("content-encoding", "").strip().lower()
        if coding not in ("", "identity", "gzip", "x-gzip"):
            raise _unreadable(self._status)
        self._unpacker = zlib.decompressobj(16 + zlib.MAX_WBITS) if coding.endswith("gzip") else None

    async def hear(self, chunk: bytes) -> bool:
        if self._unpacker is None:
            self._keep(chunk)
            return False
        while chunk and not self._unpacker.eof:  # behind which there may be more, which is nothing to us
            try:
                piece = self._unpacker.decompress(chunk, UNPACKED_AT_ONCE)
            except zlib.error as error:
                raise _unreadable(self._status) from error
            self._keep(piece)
            self._size += len(piece)
            if self._size > MAX_REPLY_BYTES:
                raise _too_long(self._status)
            chunk = self._unpacker.unconsumed_tail
            if chunk:
                await trio.lowlevel.checkpoint()  # a few bytes can hold many megabytes
        return False

    def _keep(self, piece: bytes) -> None:
        self._last += piece
        if len(self._last) >= PIECE:
            self._pieces.append(bytes(self._last))
            self._last.clear()

    def finish(self) -> list[bytes]:
        if self._unpacker is not None and not self._unpacker.eof:
            raise _unreadable(self._status)
        return [*self._pieces, bytes(self._last)]


def _unreadable(status: int) -> UnusableReply:
    return UnusableReply(
        "The API's reply is compressed in a broken or unknown way; check what lies between here and openai.base_url.",
        status=status,
        retryable=retryable_status(status),
    )


def _too_long(status: int) -> UnusableReply:
    return UnusableReply(
        f"The API's reply is longer than {MAX_REPLY_BYTES} bytes; check openai.base_url.", status=status
    )


def _connect_failure(error: httpx.TransportError) -> ConnectionFailed:
    tls = tls_error(error)
    if isinstance(tls, ssl.SSLCertVerificationError):
        return ConnectionFailed(
            f"The API's TLS certificate is not trusted (CERTIFICATE_VERIFY_FAILED: {tls.verify_message}); behind a "
            "company proxy, set SSL_CERT_FILE to the company's CA certificates."
        )
    if tls is not None:
        return ConnectionFailed(
            f"No TLS connection to the API ({tls.reason or type(tls).__name__}); check openai.base_url, its port, and "
            "HTTPS_PROXY if you need a proxy.",
            retryable=True,
        )
    if isinstance(error, httpx.ConnectTimeout):
        return ConnectionFailed(
            f"No connection to the API within {CONNECT_TIMEOUT:g} s; check the network, openai.base_url, "
            "and HTTPS_PROXY if you need a proxy.",
            retryable=True,
        )
    return ConnectionFailed(
        f"The API cannot be reached ({str(error) or type(error).__name__}); check the network, openai.base_url, "
        "and HTTPS_PROXY if you need a proxy.",
        retryable=True,
    )


def tls_error(error: BaseException | None) -> ssl.SSLError | None:
    """Return the TLS failure at the bottom of a failed connection, None if there is none.

    Trio's own error above it says no more than that a stream broke.
    """
    while error is not None:
        if isinstance(error, ssl.SSLError):
            return error
        error = error.__cause__ or error.__context__  # httpcore hides the cause of what it raises
    return None
