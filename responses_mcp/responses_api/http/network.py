"""The network backend below httpx and httpcore: the socket of one connection.

It does two things that httpcore's own backend does not. A cancel closes the connection at once wherever it comes, also
within a TLS handshake. And bytes behind a reply, which would be taken for the next one, are noticed: bytes are handed
on no further than where a reply may end, which is behind each empty line (RFC 9112: the end of a head, and of a chunked
body with its trailers) or, once a length is known, behind so many bytes.
"""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final, NamedTuple

import httpcore
import trio

from responses_mcp.errors import ConnectionFailed, UnusableReply, causes, exhausted
from responses_mcp.settings.address import is_loopback
from responses_mcp.under_trio import interrupts_alone

CONNECT_TIMEOUT: Final = 10.0  # seconds for a TCP connection with its look-up, and again for each TLS handshake
READ_BYTES: Final = 32 * 1024  # at once: what is done with them holds up everything else
HEAD_BYTES: Final = 4 * 1024  # at once, before it is known how much is to come
MOST_INTERIM_REPLIES: Final = 16  # of the status 1xx, before the reply itself

_EMPTY_LINE = re.compile(rb"\n\r?\n")


class Route(NamedTuple):
    """What a way to the API is set by, for messages: the variable of its proxy, and where certificates are."""

    proxy_from: str | None = None
    certificates: str | None = None


class Network(httpcore.AsyncNetworkBackend):
    """Opens the connection of one transport, and can close it in one step."""

    def __init__(self, route: Route | None = None) -> None:
        self.route = route or Route()
        self._socket: trio.SocketStream | None = None
        self._stream: NetworkStream | None = None

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109, ARG002  # of httpcore's protocol; ours is CONNECT_TIMEOUT
        local_address: str | None = None,  # noqa: ARG002
        socket_options: Iterable[Any] | None = None,  # noqa: ARG002
    ) -> NetworkStream:
        """Look up and connect. Raises `ConnectionFailed`, which names cause and cure."""
        try:
            with interrupts_alone(()), trio.fail_after(CONNECT_TIMEOUT):  # Trio connects from a nursery
                self._socket = await trio.open_tcp_stream(host, port)
        except trio.TooSlowError as error:
            raise _too_slow(f"{host}:{port}", self.route) from error
        except (OSError, RuntimeError) as error:  # the latter where no thread can be started for the look-up
            raise _unreachable(error, f"{host}:{port}", self.route) from error
        # A router may drop an idle connection: so that is noticed before the next request is sent.
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._stream = NetworkStream(self, self._socket, is_tls=False)
        return self._stream

    async def start_tls(self, below: trio.abc.Stream, context: ssl.SSLContext, host: str | None) -> NetworkStream:
        """Put TLS over the connection. Raises `ConnectionFailed`."""
        stream = trio.SSLStream(below, context, server_hostname=host, https_compatible=True)
        try:
            with trio.fail_after(CONNECT_TIMEOUT):
                await stream.do_handshake()
        except trio.TooSlowError as error:
            raise _too_slow(f"{host} (TLS)", self.route) from error
        except trio.BrokenResourceError as error:
            raise _no_tls(error, host or "the host", self.route) from error
        self._stream = NetworkStream(self, stream, is_tls=True)
        return self._stream

    @property
    def is_open(self) -> bool:
        """Tell whether there is a connection."""
        return self._socket is not None

    def begin_body(self, length: int | None) -> None:
        """Say that the head of a reply has been read, and the length of its body if that is known beforehand."""
        if self._stream is not None:
            self._stream.begin_body(length)

    async def is_silent(self) -> bool:
        """Tell whether nothing has come since the last reply ended, not even the end of the connection."""
        if self._socket is None or self._stream is None or self._socket.socket.is_readable():
            return False
        return await self._stream.is_silent()

    def close(self) -> None:
        """Close the socket now, also under TLS without a goodbye."""
        if self._socket is not None:
            self._socket.socket.close()
            self._socket = self._stream = None


class NetworkStream(httpcore.AsyncNetworkStream):
    """The bytes of one connection, or of the TLS within it."""

    def __init__(self, network: Network, stream: trio.abc.Stream, *, is_tls: bool) -> None:
        self._network = network
        self._stream = stream
        self._is_tls = is_tls
        self._data = b""  # received and not handed on, from `_at`
        self._at = 0
        self._handed = b""  # the last two bytes handed on
        self._heads = 0  # of replies since the last request
        self._in_head = False
        self._left: int | None = None  # of a body whose length is known

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109, ARG002
        """Send all of it."""
        self._heads, self._in_head, self._left, self._handed = 0, True, None, b""
        try:
            if buffer:  # else a cancel would find httpcore within a generator that it does not end
                await self._stream.send_all(buffer)
        except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
            raise httpcore.WriteError(str(error)) from error

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109, ARG002
        """Return what came, at most up to where a reply may end; b"" at the end. `max_bytes` are more than that."""
        if not self._network.is_open:
            raise httpcore.ReadError("the connection is closed")
        if not self.has_more:
            try:
                self._data = bytes(await self._stream.receive_some(HEAD_BYTES if self._in_head else READ_BYTES))
            except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
                raise httpcore.ReadError(str(error)) from error
            self._at = 0
        start, self._at = self._at, self._end()
        data = self._data[start : self._at]
        if not self.has_more:
            self._data, self._at = b"", 0
        return data

    @property
    def has_more(self) -> bool:
        """Tell whether bytes have been received that were not handed on yet."""
        return self._at < len(self._data)

    def begin_body(self, length: int | None) -> None:
        """Take what follows for a body."""
        self._in_head, self._left = False, length

    async def is_silent(self) -> bool:
        """Tell whether nothing has come that was not handed on; what is on the socket does not count."""
        if self.has_more or not self._is_tls:
            return not self.has_more
        # TLS may have read more from the socket than it has given out.
        with trio.move_on_after(0):
            with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                await self._stream.receive_some(1)
            return False
        return True

    async def aclose(self) -> None:
        """Close the connection at once."""
        self._network.close()
        # Other tasks run now, so that of many cancelled calls all sockets close before anything else is done.
        await trio.lowlevel.cancel_shielded_checkpoint()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109, ARG002
    ) -> NetworkStream:
        """Return the stream within TLS. Raises `ConnectionFailed`."""
        if self.has_more:
            raise httpcore.RemoteProtocolError("bytes before the TLS handshake")
        return await self._network.start_tls(self._stream, ssl_context, server_hostname)

    def get_extra_info(self, info: str) -> Any:
        """Return None for everything: httpcore asks this of idle connections, and `is_silent` has told."""

    def _end(self) -> int:
        """Return up to where the received bytes may be handed on."""
        if self._left is not None:
            end = min(len(self._data), self._at + self._left)
            self._left -= end - self._at
            return end
        known, start = len(self._handed), self._at
        if not known and not self._in_head:
            # A body that did not end with an empty line does not end with another right behind it.
            while start < len(self._data) and self._data[start] in b"\r\n":
                start += 1
            if start == len(self._data):
                return start
        # The empty line may have begun in what was handed on before.
        found = _EMPTY_LINE.search(self._handed + self._data[start : start + 2]) if known else None
        if found is None or found.end() <= known:
            found = _EMPTY_LINE.search(self._data, start)
            end = found.end() if found else len(self._data)
        else:
            end = start + found.end() - known
        if found is None:
            self._handed = (self._handed + self._data[max(start, end - 2) : end])[-2:]
            return end
        self._handed = b""
        self._heads += self._in_head
        if self._heads > MOST_INTERIM_REPLIES + 1:
            raise UnusableReply(
                f"The API sent more than {MOST_INTERIM_REPLIES} replies of the status 1xx and no other; "
                "check what lies between here and openai.base_url."
            )
        return end


def tls_error(error: BaseException) -> ssl.SSLError | None:
    """Return the TLS failure at the bottom of a failed connection, None if there is none."""
    return next((each for each in causes(error) if isinstance(each, ssl.SSLError)), None)


def certificate_cure(error: ssl.SSLCertVerificationError) -> str | None:
    """Return what to do about a certificate that is wrong in itself; None where it is not known who signed it."""
    said = error.verify_message
    if "expired" in said or "not yet valid" in said:
        return "set the clock of this machine; if it is right, the server needs a new certificate"
    if "Hostname" in said or "IP address" in said:
        return (
            "write the host in openai.base_url (OPENAI_BASE_URL), or that of an https proxy, as the certificate has it"
        )
    return None


def _unreachable(error: OSError | RuntimeError, place: str, route: Route) -> ConnectionFailed:
    """Return the error for a connection, or a look-up, that the system refused."""
    if (shortage := exhausted(error)) is not None:
        return ConnectionFailed(f"No connection to the API: {shortage}", retryable=True)
    refused = next((each for each in causes(error) if isinstance(each, ConnectionRefusedError)), None)
    why = "connection refused: nothing listens there" if refused is not None else str(error) or type(error).__name__
    what = "API" if route.proxy_from is None else "proxy"
    return ConnectionFailed(f"The {what} cannot be reached at {place} ({why}); {_cure(route, place)}", retryable=True)


def _too_slow(place: str, route: Route) -> ConnectionFailed:
    what = "API" if route.proxy_from is None else "proxy"
    return ConnectionFailed(
        f"No connection to the {what} within {CONNECT_TIMEOUT:g} s, tried {place}; {_cure(route, place)}",
        retryable=True,
    )


def _cure(route: Route, place: str) -> str:
    if route.proxy_from is None and is_loopback(place.rpartition(":")[0]):  # which is never asked through a proxy
        return "start the server there, or correct openai.base_url (OPENAI_BASE_URL)."
    if route.proxy_from is None:
        return "check the network, openai.base_url (OPENAI_BASE_URL), and HTTPS_PROXY if you need a proxy."
    return f"correct {route.proxy_from}, which names it, or name the API's host in NO_PROXY."


def _no_tls(error: trio.BrokenResourceError, host: str, route: Route) -> ConnectionFailed:
    tls = tls_error(error)
    if isinstance(tls, ssl.SSLCertVerificationError):
        cure = "behind a company proxy, set SSL_CERT_FILE to the company's CA certificates"
        if route.certificates is not None:
            cure = f"{route.certificates}, where the CA that signed it is missing: add it"
        why = f"CERTIFICATE_VERIFY_FAILED: {tls.verify_message.rstrip('.')}"
        return ConnectionFailed(
            f"The TLS certificate of {host} is not trusted ({why}); {certificate_cure(tls) or cure}."
        )
    why = (tls.reason or type(tls).__name__) if tls is not None else "the connection was closed"
    cure = "check openai.base_url (OPENAI_BASE_URL), its port, and HTTPS_PROXY if you need a proxy."
    if tls is not None and tls.reason == "WRONG_VERSION_NUMBER":  # what comes back is no TLS at all
        why = "there is no TLS at that port"
        cure = "write http:// in openai.base_url (OPENAI_BASE_URL) if it is a server of yours, or correct the port."
    if route.proxy_from is not None:
        cure = f"check openai.base_url (OPENAI_BASE_URL), and the proxy that {route.proxy_from} names."
    return ConnectionFailed(f"No TLS connection to {host} ({why}); {cure}", retryable=True)
