"""The socket of one connection, with the TLS over it, as the stream below httpcore; and why one does not come about.

It does three things that httpcore's own stream does not. A cancel closes the connection at once wherever it comes,
also within a TLS handshake. A request goes out in one piece. And the chunks of a reply that came together are joined
before h11 takes each on its own.
"""

from __future__ import annotations

import re
import socket
import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final, NamedTuple

import httpcore
import trio

from responses_mcp.errors import ConnectionFailed, causes, exhausted
from responses_mcp.settings.address import is_loopback
from responses_mcp.under_trio import interrupts_alone

CONNECT_TIMEOUT: Final = 10.0  # seconds for a TCP connection with its look-up, and again for each TLS handshake
READ_BYTES: Final = 64 * 1024  # at once
BULK_BYTES: Final = 8 * 1024  # in one read, above which it waits for its turn: what is done with it takes a while
MOST_INTERIM_REPLIES: Final = 16  # of the status 1xx, before the reply itself

_BROKEN = trio.BrokenResourceError, trio.ClosedResourceError
_CHUNK = re.compile(rb"([1-9A-Fa-f][0-9A-Fa-f]{0,7})\r\n")


class Socket(httpcore.AsyncNetworkStream):
    """The socket of one connection, and the bytes within its TLS. `close` closes it in one step.

    Of all that share `turns`, so many hand on much at once between two looks of Trio at other tasks.
    """

    def __init__(self, turns: trio.CapacityLimiter) -> None:
        self._turns = turns
        self._socket: trio.SocketStream | None = None
        self._stream: trio.abc.Stream | None = None  # the same, or the TLS over it
        self._unsent: list[bytes] = []
        self._received: bytes = b""  # and not handed on
        self._heads = 0  # of replies since the last request
        self._hand_on: Callable[[bytes], bytes] = bytes  # takes what came, and returns what h11 is given of it now
        self._chunk_left = 0  # bytes to come of a chunk that has begun, its line end included

    async def connect(self, host: str, port: int) -> None:
        """Look up and connect. Raises what `not_connected` explains."""
        with interrupts_alone(()), trio.fail_after(CONNECT_TIMEOUT):  # Trio connects from a nursery
            self._stream = self._socket = await trio.open_tcp_stream(host, port)
        # A router may drop an idle connection: so that is noticed before the next request is sent.
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

    async def put_tls(self, context: ssl.SSLContext | None, host: str) -> None:
        """Put TLS over the connection, and over the TLS of a proxy. Raises what `not_connected` explains."""
        if self._stream is None or context is None or self._received:
            raise trio.BrokenResourceError("bytes before the TLS handshake")
        self._stream = stream = trio.SSLStream(self._stream, context, server_hostname=host, https_compatible=True)
        with trio.fail_after(CONNECT_TIMEOUT):
            await stream.do_handshake()

    async def is_quiet(self) -> bool:
        """Tell whether it is open, and nothing has come behind the last reply, not even the end."""
        if self._stream is None or self._socket is None or self._received or self._socket.socket.is_readable():
            return False
        if self._stream is self._socket:
            return True
        # TLS may have read more than it has given out. The deadline comes behind the beginning of its scope: otherwise
        # Trio would cancel before the first look.
        with trio.CancelScope() as waiting, suppress(*_BROKEN):
            waiting.deadline = trio.current_time()
            await self._stream.receive_some(1)
        return waiting.cancelled_caught

    def close(self) -> None:
        """Close the socket now, also under TLS without a goodbye; nothing happens if there is none."""
        if self._socket is not None:
            self._socket.socket.close()
        self._socket, self._stream, self._received = None, None, b""

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
            self._heads, self._hand_on = 0, self._head_of
            # Where a server answers and closes before it has the whole request, its answer is there to be read.
            with suppress(*_BROKEN):
                await self._stream.send_all(request)
        if not data:
            try:
                data = bytes(await self._stream.receive_some(READ_BYTES))
            except _BROKEN as error:
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

    def begin_body(self, *, chunked: bool) -> None:
        """Take what follows the head of a reply for its body, and join its chunks if it has some."""
        self._chunk_left, self._hand_on = 0, self._joined if chunked else bytes

    def _head_of(self, data: bytes) -> bytes:
        head, end, self._received = data.partition(b"\r\n\r\n")
        self._heads += bool(end)
        if self._heads > MOST_INTERIM_REPLIES + 1:
            raise httpcore.RemoteProtocolError(f"more than {MOST_INTERIM_REPLIES} replies of the status 1xx")
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


# Why there is no connection

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
    proxy: httpcore.URL | None = None
    proxy_headers: Sequence[tuple[bytes, bytes]] = ()

    def cure(self, host: str) -> str:
        """Return what to do where no connection to `host` comes about."""
        if self.proxy_from is not None:
            return f"correct {self.proxy_from}, which names the proxy, or name the API's host in NO_PROXY."
        if is_loopback(host):
            return "start the server there, or correct openai.base_url (OPENAI_BASE_URL)."
        return "check the network, openai.base_url (OPENAI_BASE_URL), and HTTPS_PROXY if you need a proxy."


def tls_error(error: BaseException) -> ssl.SSLError | None:
    """Return the TLS failure at the bottom of a failed connection, None if there is none."""
    return next((each for each in causes(error) if isinstance(each, ssl.SSLError)), None)


def certificate_cure(error: ssl.SSLCertVerificationError) -> str | None:
    """Return what to do about a certificate that is wrong in itself; None where it is not known who signed it."""
    return next((cure for said, cure in _CERTIFICATE_CURES.items() if said.search(error.verify_message)), None)


def not_connected(what: str, error: Exception, host: str, route: Route) -> ConnectionFailed:
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
