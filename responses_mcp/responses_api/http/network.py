"""The network backend below httpcore: the socket of one connection.

It does three things that httpcore's own backend does not. A cancel closes the connection at once wherever it comes,
also within a TLS handshake. A request goes out in one piece. And of a reply's head h11 is given no byte more, so that
the chunks of its body can be joined before h11 takes each on its own.
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
MOST_INTERIM_REPLIES: Final = 16  # of the status 1xx, before the reply itself

_EMPTY_LINE = re.compile(rb"\n\r?\n")  # the end of a head, as h11 finds it
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,8})\r\n")
_BEGUN = re.compile(rb"[0-9A-Fa-f]{1,8}\r?")  # what may become that


class Route(NamedTuple):
    """What a way to the API is set by, for messages: the variable of its proxy, and where certificates are."""

    proxy_from: str | None = None
    certificates: str | None = None


class Network(httpcore.AsyncNetworkBackend):
    """Opens one connection, and can close it in one step."""

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
        self._stream = NetworkStream(self, self._socket)
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
        self._stream = NetworkStream(self, stream)
        return self._stream

    @property
    def is_open(self) -> bool:
        """Tell whether there is a connection."""
        return self._socket is not None

    @property
    def is_idle(self) -> bool:
        """Tell whether the connection is open and its socket has nothing to read, not even the end."""
        return self._socket is not None and not self._socket.socket.is_readable()

    def begin_body(self, *, chunked: bool) -> None:
        """Say that the head of a reply has been read."""
        if self._stream is not None:
            self._stream.begin_body(chunked=chunked)

    async def has_more(self) -> bool:
        """Tell whether bytes came behind the reply, as far as they have been received."""
        return self._stream is None or await self._stream.has_more()

    def close(self) -> None:
        """Close the socket now, also under TLS without a goodbye."""
        if self._socket is not None:
            self._socket.socket.close()
            self._socket = self._stream = None


class NetworkStream(httpcore.AsyncNetworkStream):
    """The bytes of one connection, or of the TLS within it."""

    def __init__(self, network: Network, stream: trio.abc.Stream) -> None:
        self._network = network
        self._stream = stream
        self._unsent: list[bytes] = []
        self._received: bytes = b""  # and not handed on
        self._last: bytes = b""  # bytes handed on: an empty line may have begun with them
        self._heads = 0  # of replies since the last request
        self._in_head = False
        self._chunks: _Chunks | None = None

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109, ARG002
        """Take bytes to send, which go out together when the reply is to be read."""
        self._unsent.append(buffer)

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109, ARG002
        """Return what came, of a head no more than up to its end; b"" at the end. `max_bytes` are more than that."""
        if not self._network.is_open:
            raise httpcore.ReadError("the connection is closed")
        if self._unsent:
            await self._send()
        data, self._received = self._received, b""
        try:
            while not data:
                data = bytes(await self._stream.receive_some(READ_BYTES))
                if not data:
                    return b""
                if self._chunks is not None:
                    data = self._chunks.joined(data)
        except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
            raise httpcore.ReadError(str(error)) from error
        return self._of_head(data) if self._in_head else data

    async def _send(self) -> None:
        data = b"".join(self._unsent)
        self._unsent.clear()
        self._heads, self._in_head, self._last, self._chunks = 0, True, b"", None
        # Where a server answers and closes before it has the whole request, its answer is there to be read.
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            await self._stream.send_all(data)

    def _of_head(self, data: bytes) -> bytes:
        known = len(self._last)
        data = self._last + data
        found = _EMPTY_LINE.search(data)
        if found is None:
            self._last = data[-2:]
            return data[known:]
        self._heads += 1
        if self._heads > MOST_INTERIM_REPLIES + 1:
            raise UnusableReply(
                f"The API sent more than {MOST_INTERIM_REPLIES} replies of the status 1xx and no other; "
                "check what lies between here and openai.base_url."
            )
        self._last, self._received = b"", data[found.end() :]
        return data[known : found.end()]

    def begin_body(self, *, chunked: bool) -> None:
        """Take what follows for a body."""
        self._in_head = False
        if chunked:
            self._chunks = _Chunks()
            self._received = self._chunks.joined(self._received)

    async def has_more(self) -> bool:
        """Tell whether bytes have been received that were not handed on; those on a plain socket do not count."""
        if self._received or (self._chunks is not None and self._chunks.held):
            return True
        if isinstance(self._stream, trio.SocketStream):
            return False
        # TLS may have read more from the socket than it has given out.
        with trio.move_on_after(0):
            with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                await self._stream.receive_some(1)
            return True
        return False

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
        if self._received:
            raise httpcore.RemoteProtocolError("bytes before the TLS handshake")
        return await self._network.start_tls(self._stream, ssl_context, server_hostname)

    def get_extra_info(self, info: str) -> Any:
        """Return None for everything: httpcore asks this of idle connections, and `Network.is_idle` has told."""


class _Chunks:
    """Joins the chunks of a body that came together into one, as h11 takes 10 µs for each, whatever its size.

    What it does not understand it leaves to h11, which judges all of it.
    """

    def __init__(self) -> None:
        self.held = b""  # the beginning of a chunk's size
        self._left = 0  # bytes of the chunk that has begun, its line end included; -1 to leave all as it is

    def joined(self, data: bytes) -> bytes:
        """Return the next bytes of the body, in other chunks."""
        if self._left < 0:
            return data
        data, self.held = self.held + data, b""
        at = start = min(self._left, len(data))
        self._left -= start
        pieces: list[bytes] = []
        while at < len(data):
            size = _CHUNK.match(data, at)
            if size is None:
                if _BEGUN.fullmatch(data, at):
                    data, self.held = data[:at], data[at:]
                else:
                    self._left = -1
                break
            length = int(size[1], 16)
            end = size.end() + length + 2
            if end > len(data):
                self._left = end - len(data)
                break
            if not length or not data.startswith(b"\r\n", end - 2):
                self._left = -1  # the last one, or none
                break
            pieces.append(data[size.end() : end - 2])
            at = end
        if len(pieces) < 2:
            return data
        whole = b"".join(pieces)
        return b"%b%x\r\n%b\r\n%b" % (data[:start], len(whole), whole, data[at:])


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
