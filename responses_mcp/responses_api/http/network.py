"""The socket of one connection, with the TLS over it, as the stream below httpcore; and why one does not come about.

It does three things that httpcore's own stream does not. A cancel closes the connection at once wherever it comes,
also within a TLS handshake. A request goes out in one piece. And of a reply's head h11 is given no byte more, so that
the chunks of its body can be joined before h11 takes each on its own.
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

from responses_mcp.errors import ConnectionFailed, UnusableReply, causes, exhausted
from responses_mcp.settings.address import is_loopback
from responses_mcp.under_trio import interrupts_alone

CONNECT_TIMEOUT: Final = 10.0  # seconds for a TCP connection with its look-up, and again for each TLS handshake
READ_BYTES: Final = 64 * 1024  # at once
BULK_BYTES: Final = 8 * 1024  # in one read, above which it waits for its turn: what is done with it takes a while
MOST_INTERIM_REPLIES: Final = 16  # of the status 1xx, before the reply itself

_BROKEN = trio.BrokenResourceError, trio.ClosedResourceError
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,8})\r\n")
_BEGUN = re.compile(rb"[0-9A-Fa-f]{0,8}\r?")  # what may become that


class Socket(httpcore.AsyncNetworkStream):
    """The socket of one connection, and the bytes within its TLS. `close` closes it in one step.

    Of all that share `turns`, so many hand on much at once between two looks of Trio at other tasks.
    """

    def __init__(self, turns: trio.CapacityLimiter) -> None:
        self.is_open = False
        self._turns = turns
        self._socket: trio.SocketStream | None = None
        self._stream: trio.abc.Stream | None = None  # the same, or the TLS over it
        self._unsent: list[bytes] = []
        self._received: bytes = b""  # and not handed on
        self._heads = 0  # of replies since the last request
        self._hand_on: Callable[[bytes], bytes] = bytes  # takes what came, and returns what h11 is given of it

    async def connect(self, host: str, port: int) -> None:
        """Look up and connect. Raises what `not_connected` explains."""
        with interrupts_alone(()), trio.fail_after(CONNECT_TIMEOUT):  # Trio connects from a nursery
            self._stream = self._socket = await trio.open_tcp_stream(host, port)
        self.is_open = True
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
        self.is_open, self._socket, self._stream, self._received = False, None, None, b""

    # What httpcore calls

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109, ARG002
        """Take bytes to send, which go out together when the reply is to be read."""
        self._unsent.append(buffer)

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109, ARG002
        """Return what came, of a head no more than up to its end; b"" at the end. `max_bytes` are no less."""
        if self._unsent and self._stream is not None:
            data = b"".join(self._unsent)
            self._unsent.clear()
            self._heads, self._hand_on = 0, self._of_head
            # Where a server answers and closes before it has the whole request, its answer is there to be read.
            with suppress(*_BROKEN):
                await self._stream.send_all(data)
        data, self._received = self._received, b""
        try:
            given = data and self._hand_on(data)
            while not given:
                if self._stream is None:
                    raise httpcore.ReadError("the connection is closed")
                data = bytes(await self._stream.receive_some(READ_BYTES))
                if not data:
                    return b""
                if len(data) > BULK_BYTES:
                    async with self._turns:  # which is got in a step of its own
                        pass
                given = self._hand_on(data)
        except _BROKEN as error:
            raise httpcore.ReadError(str(error)) from error
        return given

    async def aclose(self) -> None:
        """Close the connection at once."""
        self.close()
        # Other tasks run now, so that of many cancelled calls all sockets close before anything else is done.
        await trio.lowlevel.cancel_shielded_checkpoint()

    def begin_body(self, *, chunked: bool) -> None:
        """Take what follows the head of a reply for its body, and join its chunks if it has some."""
        self._hand_on = Chunks().joined if chunked else bytes

    def _of_head(self, data: bytes) -> bytes:
        head, end, self._received = data.partition(b"\r\n\r\n")
        self._heads += bool(end)
        if self._heads > MOST_INTERIM_REPLIES + 1:
            raise UnusableReply(
                f"The API sent more than {MOST_INTERIM_REPLIES} replies of the status 1xx and no other; "
                "check what lies between here and openai.base_url."
            )
        return head + end


class Chunks:
    """Joins the chunks of a body that came together into one, as h11 takes 10 µs for each, whatever its size.

    What it does not understand it leaves to h11, which judges all of it.
    """

    def __init__(self) -> None:
        self.held: bytes = b""  # the beginning of a chunk's size
        self._left = 0  # bytes of the chunk that has begun, its line end included; -1 to leave all as it is

    def joined(self, data: bytes) -> bytes:
        """Return the next bytes of the body, in other chunks."""
        if self._left < 0:
            return data
        data, self.held = self.held + data, b""
        at = start = min(self._left, len(data))
        self._left -= start
        pieces: list[bytes] = []
        while (size := _CHUNK.match(data, at)) and (length := int(size[1], 16)):
            end = size.end() + length
            if data[end : end + 2] != b"\r\n":  # it goes on, or is none
                self._left = end + 2 - len(data) if len(data) < end + 2 else -1
                break
            pieces.append(data[size.end() : end])
            at = end + 2
        else:
            if _BEGUN.fullmatch(data, at):
                data, self.held = data[:at], data[at:]
            else:
                self._left = -1  # the last one, or none
        if len(pieces) < 2:
            return data
        whole = b"".join(pieces)
        return b"%b%x\r\n%b\r\n%b" % (data[:start], len(whole), whole, data[at:])


# Why there is no connection


class Route(NamedTuple):
    """The way to the API: through which proxy, with which certificates, and what names these, for messages."""

    proxy_from: str | None = None
    certificates: str | None = None
    tls: ssl.SSLContext | None = None  # None where none is wanted
    proxy: httpcore.Origin | None = None
    proxy_headers: Sequence[tuple[bytes, bytes]] = ()


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


def not_connected(error: Exception, host: str, place: str, route: Route) -> ConnectionFailed:
    """Return why there is no connection to `host`, the API's or the proxy's, or no TLS over it, with the cure."""
    what, cure = "API", "check the network, openai.base_url (OPENAI_BASE_URL), and HTTPS_PROXY if you need a proxy."
    if route.proxy_from is not None:
        what, cure = "proxy", f"correct {route.proxy_from}, which names it, or name the API's host in NO_PROXY."
    elif is_loopback(host):  # which is never asked through a proxy
        cure = "start the server there, or correct openai.base_url (OPENAI_BASE_URL)."
    if isinstance(error, trio.TooSlowError):
        said = f"No connection to the {what} within {CONNECT_TIMEOUT:g} s, tried {place}; {cure}"
    elif isinstance(error, trio.BrokenResourceError):
        return _no_tls(tls_error(error), host, route)
    elif (shortage := exhausted(error)) is not None:
        said = f"No connection to the API: {shortage}"
    else:
        is_refused = any(isinstance(each, ConnectionRefusedError) for each in causes(error))
        why = "connection refused: nothing listens there" if is_refused else str(error) or type(error).__name__
        said = f"The {what} cannot be reached at {place} ({why}); {cure}"
    return ConnectionFailed(said, retryable=True)


def _no_tls(tls: ssl.SSLError | None, host: str, route: Route) -> ConnectionFailed:
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
