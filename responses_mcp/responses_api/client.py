"""The seam to httpx: the only module that imports it, itself imported on the first call.

httpx's connection pool looks at every connection it has at each request and each release, so its cost grows with the
square of the calls at once. Here each connection is a client of its own with a pool of one; free ones are kept on a
stack, and a limiter lets calls through in the order in which they came. The SSL context, which is slow to build, is
shared.
"""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass

import httpx
import trio

from responses_mcp.errors import ConnectionFailed, UnusableReply

CONNECT_TIMEOUT = 10.0  # seconds until a TCP and TLS connection must stand
KEPT_IDLE = 16  # connections kept open for the next call; more are left over only by a burst
MAX_REPLY_BYTES = 64 * 1024 * 1024
CLOSE_GRACE = 1.0  # seconds


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP response, read whole. Header names are lower-case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class HttpConnections:
    """Connections to one server, at most `limit` at once; more requests wait in order and can be cancelled there.

    Proxy and certificate settings come from the usual environment variables, which httpx reads when a connection is
    set up. Cancelling a request closes its socket.
    """

    def __init__(self, tls: ssl.SSLContext, *, limit: int) -> None:
        self._tls = tls
        self._slots = trio.CapacityLimiter(limit)
        self._idle: list[httpx.AsyncClient] = []

    @classmethod
    async def open(cls, *, limit: int) -> HttpConnections:
        """Prepare for requests; nothing is connected yet. Raises `ConnectionFailed` for unusable certificate files."""
        try:
            # Reading the certificate store takes tens of milliseconds, in which pings want an answer.
            tls = await trio.to_thread.run_sync(httpx.create_ssl_context, abandon_on_cancel=True)
        except OSError as error:  # ssl.SSLError is one
            raise ConnectionFailed(
                f"The CA certificates cannot be read ({type(error).__name__}); "
                "check the files that SSL_CERT_FILE and SSL_CERT_DIR name."
            ) from error
        return cls(tls, limit=limit)

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> Reply:
        """Send one request and read the whole reply, whatever its status.

        Raises `ConnectionFailed`, retryable only if the request cannot have reached the server, and `UnusableReply`
        for a reply over 64 MiB.
        """
        async with self._slots:
            client = self._idle.pop() if self._idle else self._new_client()
            try:
                return await _exchange(client, url, headers, body)
            finally:
                if len(self._idle) < KEPT_IDLE:
                    self._idle.append(client)
                else:
                    with trio.CancelScope(shield=True, deadline=trio.current_time() + CLOSE_GRACE):
                        await client.aclose()

    def _new_client(self) -> httpx.AsyncClient:
        try:
            return httpx.AsyncClient(
                verify=self._tls,
                timeout=httpx.Timeout(None, connect=CONNECT_TIMEOUT),
                limits=httpx.Limits(max_connections=1, max_keepalive_connections=1),
            )
        except (ValueError, ImportError, httpx.InvalidURL) as error:
            raise ConnectionFailed(
                f"The proxy settings cannot be used ({type(error).__name__}); "
                "check HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY (http and https proxies work, socks does not)."
            ) from error

    async def aclose(self) -> None:
        """Close the idle connections. Those in use are closed by cancelling their requests."""
        idle, self._idle = self._idle, []
        with trio.CancelScope(shield=True, deadline=trio.current_time() + CLOSE_GRACE):
            for client in idle:
                await client.aclose()


async def _exchange(client: httpx.AsyncClient, url: str, headers: Mapping[str, str], body: bytes) -> Reply:
    try:
        async with client.stream("POST", url, headers=headers, content=body) as response:
            received = bytearray()
            async for chunk in response.aiter_bytes():
                received += chunk
                if len(received) > MAX_REPLY_BYTES:
                    raise UnusableReply(
                        f"The API's reply is longer than {MAX_REPLY_BYTES} bytes; check openai.base_url.",
                        status=response.status_code,
                    )
            return Reply(response.status_code, dict(response.headers), bytes(received))
    except (httpx.ConnectError, httpx.ConnectTimeout) as error:
        raise ConnectionFailed(_connect_failure(error), retryable=True) from error
    except httpx.ProxyError as error:
        raise ConnectionFailed(
            f"The proxy did not connect ({error}); check HTTPS_PROXY and HTTP_PROXY, "
            "and NO_PROXY for hosts to reach directly."
        ) from error
    except httpx.DecodingError as error:
        raise UnusableReply(
            "The API's reply is compressed in a broken way; check what lies between here and openai.base_url."
        ) from error
    except (httpx.TransportError, httpx.InvalidURL) as error:
        raise ConnectionFailed(
            f"The connection broke before the answer was complete ({type(error).__name__}); it is not repeated "
            "by itself, as it may have been paid for: ask again."
        ) from error


def _connect_failure(error: httpx.TransportError) -> str:
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        return (
            "The API's TLS certificate is not trusted (CERTIFICATE_VERIFY_FAILED); behind a company proxy, "
            "set SSL_CERT_FILE to the company's CA certificates."
        )
    if isinstance(error, httpx.ConnectTimeout):
        return (
            f"No connection to the API within {CONNECT_TIMEOUT:g} s; check the network, openai.base_url, "
            "and HTTPS_PROXY if you need a proxy."
        )
    return (
        f"The API cannot be reached ({str(error) or type(error).__name__}); check the network, openai.base_url, "
        "and HTTPS_PROXY if you need a proxy."
    )
