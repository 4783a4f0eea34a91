"""One call of the Responses API: a request, the retries it is worth, and one deadline over all of it (contract 7)."""

from __future__ import annotations

import json
import logging
import random
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import trio

from responses_mcp import __version__
from responses_mcp.errors import ConnectionFailed, DeadlineExceeded, RateLimited, UpstreamError
from responses_mcp.protocol.jsonrpc import JsonObject, replace_lone_surrogates
from responses_mcp.redaction import Redactor
from responses_mcp.responses_api.accommodation import Accommodation
from responses_mcp.responses_api.connections import Connect, Connections, connection_limit
from responses_mcp.responses_api.credentials import credential_headers
from responses_mcp.responses_api.json_slices import let_go
from responses_mcp.responses_api.reading import check_status
from responses_mcp.responses_api.refusals import read_body
from responses_mcp.responses_api.retry import LONGEST_WAIT, RetryPolicy, backoff
from responses_mcp.responses_api.streaming import StreamListener, is_success, looks_like_events
from responses_mcp.settings.model import OpenAISettings, RequestSettings

if TYPE_CHECKING:
    from responses_mcp.responses_api.client import HttpConnections

log = logging.getLogger(__name__)

_WANTS_JSON = {"accept": "application/json"}
_WANTS_EVENTS = {"accept": "text/event-stream, application/json", "accept-encoding": "identity"}


async def connect_over_http(url: str, limit: int, *, trust_env: bool = True) -> Connections:
    """Prepare for requests to `url` with httpx, which is imported now and not before."""
    # The import takes a tenth of a second: in a thread, so that pings are answered meanwhile.
    connections = await trio.to_thread.run_sync(_import_client, abandon_on_cancel=True)
    return await connections.open(url, limit=limit, trust_env=trust_env)


def _import_client() -> type[HttpConnections]:
    from responses_mcp.responses_api.client import HttpConnections  # noqa: PLC0415  # imports httpx: on first use

    return HttpConnections


class ResponsesApi:
    """The Responses API at `openai.base_url`, with one retry layer. Connects on the first call.

    `connect` opens what requests go through, by default httpx, and `rng` spreads the waits between them.
    """

    def __init__(
        self,
        openai: OpenAISettings,
        request: RequestSettings,
        *,
        rng: Callable[[], float] = random.random,
        connect: Connect | None = None,
    ) -> None:
        self._openai = openai
        self._request = request
        self._rng = rng
        self._connect = connect or partial(connect_over_http, trust_env=request.trust_env)
        self._url = openai.base_url.rstrip("/") + "/responses"
        self._connecting = trio.Lock()
        self._connections: Connections | None = None
        self._lessons: dict[str, Accommodation] = {}
        self.redact = Redactor([openai.api_key, *openai.headers.values()])

    async def create(
        self,
        body: JsonObject,
        *,
        on_phase: Callable[[str], None] | None = None,
        policy: RetryPolicy | None = None,
    ) -> JsonObject:
        """Ask for a response and return the Response object, which has ended well or is incomplete.

        Takes at most `request.timeout_ms`, retries and waits included. What is asked again is for `policy` to say;
        without one, what may pass and is not paid for twice, `request.max_retries` times at most. With `on_phase` the
        response is streamed and its phases are told, in words for a person. Raises `UpstreamError`. Cancelling closes
        the socket.
        """
        policy = policy or RetryPolicy(max_retries=self._request.max_retries, wait=backoff)
        headers = {
            "content-type": "application/json",
            **(_WANTS_JSON if on_phase is None else _WANTS_EVENTS),
            "user-agent": f"openai-responses-mcp/{__version__}",
            **credential_headers(self._openai),
        }
        if on_phase is not None:
            body = {**body, "stream": True}
        seconds = self._request.timeout_ms / 1000
        with trio.move_on_after(seconds) as deadline:
            return await self._attempts(body, headers, policy, deadline, on_phase or _unheard)
        raise DeadlineExceeded(
            f"No answer within {seconds:g} s; raise request.timeout_ms (OPENAI_API_TIMEOUT), "
            "lower reasoning_effort in the profile, or ask for less.",
            code="timeout",
        )

    async def _attempts(
        self,
        body: JsonObject,
        headers: dict[str, str],
        policy: RetryPolicy,
        deadline: trio.CancelScope,
        on_phase: Callable[[str], None],
    ) -> JsonObject:
        lessons = self._lessons.setdefault(str(body.get("model")), Accommodation())
        retries = 0
        while True:
            fitting = lessons.fit(body)
            # A cancel during the wait must not cost another request, even if the wait had just ended.
            await trio.lowlevel.checkpoint_if_cancelled()
            try:
                return await self._attempt(fitting, headers, policy, on_phase)
            except UpstreamError as error:
                self._log_failure(retries + 1, error)
                wait = self._wait_before_retry(error, retries, policy, lessons, fitting)
                left = deadline.deadline - trio.current_time()
                if wait is None or retries >= policy.max_retries or wait > min(LONGEST_WAIT, left):
                    if error.maybe_paid and wait is None:
                        error.message += " It was not repeated, as it may have been paid for."
                    if retries:
                        error.message += f" ({retries + 1} requests were made.)"
                    raise
                if wait:
                    on_phase(f"{_cause(error)}, retry in {wait:.0f} s ({retries + 1}/{policy.max_retries})")
            retries += 1
            await trio.sleep(wait)

    def _wait_before_retry(
        self, error: UpstreamError, retries: int, policy: RetryPolicy, lessons: Accommodation, body: JsonObject
    ) -> float | None:
        """Return the seconds after which another request is worth it; None when it is not."""
        if policy.repeats(error):
            return policy.wait(retries, self._rng()) if error.retry_after is None else error.retry_after
        lesson = lessons.learn(error, body)
        if lesson is None:
            return None
        if lesson:
            log.warning("the model %s %s", body.get("model"), lesson)
        return 0.0

    async def _attempt(
        self, body: JsonObject, headers: dict[str, str], policy: RetryPolicy, on_phase: Callable[[str], None]
    ) -> JsonObject:
        with trio.move_on_after(policy.try_seconds):
            return await self._exchange(body, headers, on_phase)
        raise DeadlineExceeded(
            f"No answer within {policy.try_seconds:g} s; {policy.slow}.", code="timeout", maybe_paid=True
        )

    async def _exchange(self, body: JsonObject, headers: dict[str, str], on_phase: Callable[[str], None]) -> JsonObject:
        connections = await self._open() if self._connections is None else self._connections
        data = replace_lone_surrogates(json.dumps(body, ensure_ascii=False)).encode()
        stream = StreamListener(on_phase)
        reply = await connections.post(self._url, headers, data, stream)
        if stream.heard:
            response = stream.finish()
        elif is_success(reply.status) and looks_like_events(reply.pieces):
            for piece in reply.pieces:
                await trio.lowlevel.checkpoint()
                if await stream.hear(piece):
                    break
            response = stream.finish()
        else:
            response = await read_body(reply.status, reply.headers, reply.pieces, self.redact)
        try:
            check_status(response, self.redact)
        except UpstreamError:
            await let_go(response)  # noqa: ASYNC120  # to a cancel it is all the same how it ended
            raise
        log.debug(
            "openai(client): ok status=%d model=%s id=%s", reply.status, response.get("model"), response.get("id")
        )
        return response

    async def _open(self) -> Connections:
        async with self._connecting:
            if self._connections is None:
                self._connections = await self._connect(self._url, connection_limit(self._request.max_connections))
            return self._connections

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


def _unheard(phase: str) -> None:
    """Take the phases of a call that nobody watches."""


def _cause(error: UpstreamError) -> str:
    if isinstance(error, RateLimited):
        return "rate limited"
    if isinstance(error, DeadlineExceeded):
        return "no answer in time"
    if isinstance(error, ConnectionFailed) and error.maybe_paid:
        return "connection lost"
    return "not connected" if isinstance(error, ConnectionFailed) else "the API failed"
