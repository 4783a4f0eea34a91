"""The connections to a server: which of them are kept, and what the environment says of certificates and proxies."""

from __future__ import annotations

import logging
import os
import ssl
import sys
import threading
from collections import deque
from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import certifi
import trio

from responses_mcp.errors import ConnectionFailed, exhausted
from responses_mcp.responses_api.http.connections import Reader, Request
from responses_mcp.responses_api.http.network import HttpConnection, Route, route_through
from responses_mcp.settings.address import is_loopback

log = logging.getLogger(__name__)

KEPT_IDLE: Final = 16  # connections kept open for the next call; more are left over only by a burst
IDLE_SECONDS: Final = 90.0  # that they are kept for: servers and routers forget them after 60 to 350
READS_AT_ONCE: Final = 4  # of much, between two looks at other tasks

# Held by a thread that loads certificates. A process should take it before it ends: OpenSSL must not be taken down
# under such a thread, which cannot be stopped and may have been left behind.
certificates = threading.Lock()

_warn_once = lru_cache(maxsize=8)(log.warning)


def pool_for(url: str, limit: int, *, trust_env: bool) -> ConnectionPool:
    """Return the pool of connections to the server of `url`. Raises as `open_connections` does."""
    route = _with_certificates(route_to(url) if trust_env else Route(), url, trust_env=trust_env)
    return ConnectionPool(partial(HttpConnection, route, trio.CapacityLimiter(READS_AT_ONCE)), limit=limit)


def _with_certificates(route: Route, url: str, *, trust_env: bool) -> Route:
    """Return the way to `url` with the certificates that it takes."""
    file, folder = (os.environ.get(name) or None if trust_env else None for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"))
    named = f"SSL_CERT_FILE is {file}" if file else f"SSL_CERT_DIR is {folder}" if folder else None
    if url.lower().startswith("http://") and (route.proxy is None or route.proxy.scheme == "http"):
        return route
    try:
        with certificates:
            # A file is read again when it has changed.
            now = None if file is None else Path(file).stat()
            tls = _context(file, folder, now and (now.st_ino, now.st_size, now.st_mtime_ns))
    except OSError as error:  # ssl.SSLError is one
        why = exhausted(error) or (f"correct it, or unset it: {named}." if named else "install certifi anew.")
        reason = error.strerror or type(error).__name__
        raise ConnectionFailed(f"The CA certificates cannot be read ({reason}); {why}") from error
    return route._replace(certificates=named, tls=tls)


def route_to(url: str) -> Route:
    """Return the way to `url`, through the proxy of HTTP_PROXY, HTTPS_PROXY or ALL_PROXY, unless NO_PROXY excepts it.

    This machine is reached without one: a proxy would look for the server on its own. Raises `ConnectionFailed` for a
    proxy that cannot be used.
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
    return route_through(proxy if "://" in proxy else f"http://{proxy}", named_by)


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


class ConnectionPool:
    """Connections to one server, at most `limit` at once; more requests wait in order and can be cancelled there."""

    def __init__(self, new_connection: Callable[[], HttpConnection], *, limit: int) -> None:
        self._new_connection = new_connection
        self._slots = trio.CapacityLimiter(limit)
        self._idle: deque[tuple[HttpConnection, float]] = deque()  # a stack, with the time since when
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
