"""One call of the Responses API: a request, the retries it is worth, and one deadline over all of it (contract 7)."""

from __future__ import annotations

import json
import logging
import math
import random
from collections.abc import Callable
from typing import TYPE_CHECKING

import trio

from responses_mcp import __version__
from responses_mcp.errors import AuthenticationFailed, DeadlineExceeded, UpstreamError
from responses_mcp.protocol.jsonrpc import JsonObject
from responses_mcp.redaction import Redactor
from responses_mcp.responses_api.reading import check_status
from responses_mcp.responses_api.refusals import read_body
from responses_mcp.responses_api.retry import LONGEST_WAIT, backoff
from responses_mcp.settings.model import OpenAISettings, RequestSettings

if TYPE_CHECKING:
    from responses_mcp.responses_api.client import HttpConnections

log = logging.getLogger(__name__)


class ResponsesApi:
    """The Responses API at `openai.base_url`, with one retry layer. Connects on the first call."""

    def __init__(
        self, openai: OpenAISettings, request: RequestSettings, *, rng: Callable[[], float] = random.random
    ) -> None:
        self._openai = openai
        self._request = request
        self._rng = rng
        self._url = openai.base_url.rstrip("/") + "/responses"
        self._opening = trio.Lock()
        self._connections: HttpConnections | None = None
        self.redact = Redactor([openai.api_key, *openai.headers.values()])

    async def create(self, body: JsonObject) -> JsonObject:
        """Ask for a response and return the Response object, which has ended well or is incomplete.

        Takes at most `request.timeout_ms`, retries and waits included, and sends at most 1 + `request.max_retries`
        requests. Raises `UpstreamError`. Cancelling closes the socket.
        """
        headers = self._headers()
        seconds = self._request.timeout_ms / 1000
        with trio.move_on_after(seconds) as deadline:
            return await self._attempts(json.dumps(body, ensure_ascii=False).encode(), headers, deadline)
        raise DeadlineExceeded(
            f"No answer within {seconds:g} s; raise request.timeout_ms (OPENAI_API_TIMEOUT), "
            "lower reasoning_effort in the profile, or ask for less."
        )

    async def _attempts(self, body: bytes, headers: dict[str, str], deadline: trio.CancelScope) -> JsonObject:
        retries = 0
        while True:
            # A cancel during the wait must not cost another request, even if the wait had just ended.
            await trio.lowlevel.checkpoint_if_cancelled()
            try:
                return await self._attempt(body, headers)
            except UpstreamError as error:
                self._log_failure(retries + 1, error)
                wait = error.retry_after
                if wait is None:
                    wait = backoff(retries, self._rng())
                if not error.retryable or retries >= self._request.max_retries:
                    raise _after(error, retries) from error
                if wait > min(LONGEST_WAIT, deadline.deadline - trio.current_time()):
                    raise _after(error, retries) from error
            retries += 1
            await trio.sleep(wait)

    async def _attempt(self, body: bytes, headers: dict[str, str]) -> JsonObject:
        connections = await self._open()
        reply = await connections.post(self._url, headers, body)
        response = read_body(reply.status, reply.headers, reply.body, self.redact)
        check_status(response)
        log.debug(
            "openai(client): ok status=%d model=%s id=%s", reply.status, response.get("model"), response.get("id")
        )
        return response

    async def _open(self) -> HttpConnections:
        async with self._opening:
            if self._connections is None:
                # httpx takes a tenth of a second to import: in a thread, so that pings are answered meanwhile.
                connections = await trio.to_thread.run_sync(_import_connections, abandon_on_cancel=True)
                self._connections = await connections.open(limit=_connection_limit(self._request.max_connections))
            return self._connections

    def _headers(self) -> dict[str, str]:
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json",
            "User-Agent": f"openai-responses-mcp/{__version__}",
        }
        key = self._openai.api_key
        if key is not None and key.strip():
            _check_key(key, self._openai.api_key_env)
            headers["Authorization"] = f"Bearer {key}"
        elif not self._openai.headers and not _is_loopback(self._openai.base_url):
            name = self._openai.api_key_env
            state = "is empty" if key is not None else "is not set"
            raise AuthenticationFailed(
                f"There is no API key: the environment variable {name} {state}. Set it in the `env` of this server's "
                "entry in your MCP client's configuration, then restart the server."
            )
        headers.update(self._openai.headers)
        return headers

    def _log_failure(self, attempt: int, error: UpstreamError) -> None:
        log.debug(
            'openai(client): error attempt=%d status=%s name=%s code=%s msg="%s" body="%s"',
            attempt,
            error.status,
            type(error).__name__,
            error.code,
            error.message,
            error.body or "",
        )

    async def aclose(self) -> None:
        """Close all connections."""
        if self._connections is not None:
            await self._connections.aclose()


def _import_connections() -> type[HttpConnections]:
    from responses_mcp.responses_api.client import HttpConnections  # noqa: PLC0415  # imports httpx: on first use

    return HttpConnections


def _after(error: UpstreamError, retries: int) -> UpstreamError:
    if retries:
        error.message = f"{error.message} ({retries + 1} requests were made.)"
    return error


def _check_key(key: str, name: str) -> None:
    """Refuse a key that no server can accept, before it is sent anywhere. The key itself is never quoted."""
    problem = None
    if key.startswith(("${", "$(")) or (key.startswith("%") and key.endswith("%")):
        problem = "holds an unexpanded placeholder, not a key: your MCP client does not expand variables there"
    elif key != key.strip() or any(character.isspace() for character in key):
        problem = "has white space or a line break in it: remove it"
    elif not (key.isascii() and key.isprintable()):
        problem = "has characters that no API key has: copy the key again"
    if problem is not None:
        raise AuthenticationFailed(f"The API key in the environment variable {name} {problem}.")


def _is_loopback(base_url: str) -> bool:
    from ipaddress import ip_address  # noqa: PLC0415  # not needed for a server with a key
    from urllib.parse import urlsplit  # noqa: PLC0415

    host = urlsplit(base_url).hostname or ""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def _connection_limit(wanted: int) -> int:
    """Keep a quarter of the file descriptors, and 64, for everything else: `ulimit -n` is 256 on some systems."""
    try:
        import resource  # noqa: PLC0415  # not on Windows
    except ImportError:
        return wanted
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft in (resource.RLIM_INFINITY, -1):
        return wanted
    return max(1, min(wanted, math.floor((soft - 64) * 0.75)))
