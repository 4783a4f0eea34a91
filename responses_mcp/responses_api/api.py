"""One call of the Responses API: a request, the retries it is worth, and one deadline over all of it (spec 7)."""

from __future__ import annotations

import json
import logging
import math
import random
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from collections.abc import Set as AbstractSet
from contextlib import closing, nullcontext
from dataclasses import replace
from functools import cached_property, lru_cache, partial
from itertools import count
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import trio

from responses_mcp import __version__
from responses_mcp.errors import ConnectionFailed, DeadlineExceeded, KeyUnusable, RateLimited, UpstreamError, exhausted
from responses_mcp.json_types import JsonObject, replace_lone_surrogates
from responses_mcp.responses_api.failures import end_call, settings_to_change
from responses_mcp.responses_api.http import open_connections
from responses_mcp.responses_api.http.connections import Request, connection_limit, encoded
from responses_mcp.responses_api.parameters import Changes, changes_after, fit, news
from responses_mcp.responses_api.request.credentials import credential_headers, key_from
from responses_mcp.responses_api.response.reply import LARGE_BYTES, ReplyBudget, ReplyReader
from responses_mcp.responses_api.response.sources import WrittenText
from responses_mcp.responses_api.retry import LONGEST_WAIT, Gate, RetryPolicy, backoff
from responses_mcp.responses_api.watcher import NOBODY, Watcher
from responses_mcp.sanitization import line_at, sanitized
from responses_mcp.secrets import Redactor
from responses_mcp.settings.model import OpenAISettings, Profile, RequestSettings
from responses_mcp.trace_context import TRACE

if TYPE_CHECKING:
    from responses_mcp.responses_api.http.network import ConnectionPool

log = logging.getLogger(__name__)

T = TypeVar("T")

_ENCODE: Final = json.JSONEncoder(ensure_ascii=False).encode
# Streamed whether or not anybody watches: gateways close connections that are silent for a minute or four, and what
# they cut may have been paid for.
STREAMED: Final[JsonObject] = {"stream": True, "stream_options": {"include_obfuscation": False}}
ASK_LONGER: Final = (
    "raise request.timeout_ms (OPENAI_API_TIMEOUT), lower reasoning_effort in the profile, or ask for less."
)
_COMMON_HEADERS: Final = {
    "content-type": "application/json",
    "accept": "text/event-stream, application/json",
    "user-agent": f"openai-responses-mcp/{__version__}",
}
_CAUSES: Final = {"timeout": "no answer in time", "connection": "connection failed"}  # of a repeated request
_LIMITED: Final = "that long the call was waiting for the API's rate limit for {}. Ask for less at once."
_FAILED: Final = 'openai(client): error attempt=%d status=%s name=%s code=%s msg="%s" body="%s"'


class Call(NamedTuple):
    """A request with what holds for its repeats: a GET without a body, else a POST.

    It takes at most `seconds`, by default `request.timeout_ms`; `cure` says what to do where that is too short.
    Members of the body, or of its search, that are `fixed` are sent whatever the API says of them.
    """

    path: str
    body: JsonObject | None = None
    policy: RetryPolicy | None = None
    seconds: float | None = None
    cure: str = ASK_LONGER
    fixed: AbstractSet[str] = frozenset()


class ResponsesApi:
    """The Responses API at `openai.base_url`, with one retry layer. Connects on the first call.

    `profiles` are named in errors about their models. `connect` opens what requests go through, by default httpx, and
    `rng` spreads the waits between them.
    """

    def __init__(
        self,
        openai: OpenAISettings,
        request: RequestSettings,
        *,
        profiles: Mapping[str, Profile] = MappingProxyType({}),
        rng: Callable[[], float] = random.random,
        connect: Callable[[str, int], Awaitable[Any]] | None = None,
    ) -> None:
        self._openai = openai
        self._request = request
        self._models = {name: profile.model for name, profile in profiles.items()}
        self._rng = rng
        self._connect = connect or partial(open_connections, trust_env=request.trust_env)
        self._url = openai.base_url.rstrip("/")
        self._connecting = trio.Lock()
        self._connections: ConnectionPool | None = None
        self._closed = False
        self._changes = defaultdict[str, Changes](dict)  # of the body, by model
        self._gates = defaultdict[str, Gate](Gate)  # by model
        self._policy = RetryPolicy(max_retries=request.max_retries, wait=backoff)
        self._budget = ReplyBudget()
        self._decoding = trio.Lock()
        self.redact = Redactor(openai.secrets)
        self._key_from = key_from(openai)
        self.timeout_ms = request.timeout_ms
        self.max_retries = request.max_retries

    async def create(
        self,
        body: JsonObject,
        read: Callable[[JsonObject], T],
        *,
        watcher: Watcher = NOBODY,
        policy: RetryPolicy | None = None,
    ) -> T:
        """Ask for a response and return what `read` makes of the Response object, which ended well or is incomplete.

        `read` is called in the step that decodes the reply, so that of all calls one such object exists at a time.
        Takes at most `request.timeout_ms`, retries and waits included. `policy` says what is asked again; without one,
        what may pass and is not paid for twice, `request.max_retries` times at most. Raises `UpstreamError`. Cancelling
        closes the socket.
        """

        def answer(reader: ReplyReader) -> T:
            response = reader.finish()
            if log.isEnabledFor(logging.DEBUG):
                named = (line_at(response, key, self.redact) for key in ("model", "id"))
                log.debug("openai(client): ok status=%d model=%s id=%s", reader.head.status, *named)
            return read(response)

        return await self.ask(Call("/responses", {**body, **STREAMED}, policy), answer, watcher)

    async def post(self, path: str, body: JsonObject, read: Callable[[JsonObject], T], *, once: bool = False) -> T:
        """Ask another endpoint of the same server and return what `read` makes of the JSON object that it answers.

        Connections, time limit, retries and errors are those of `create`. With `once` only a request with a parameter
        that is refused is repeated, without that.
        """
        policy = RetryPolicy(max_retries=1, wait=backoff, repeats=lambda _: False) if once else None

        def answer(reader: ReplyReader) -> T:
            found = reader.json_object()
            log.debug("openai(client): ok status=%d path=%s", reader.head.status, path)
            return read(found)

        return await self.ask(Call(path, body, policy), answer)

    async def ask(self, call: Call, read: Callable[[ReplyReader], T], watcher: Watcher = NOBODY) -> T:
        """Send a request as often as it takes, and return what `read` makes of the reply.

        Raises `UpstreamError`. Cancelling closes the socket.
        """
        body, policy, bill = call.body or {}, call.policy or self._policy, watcher.bill
        seconds, model = call.seconds or self.timeout_ms / 1000, str(body.get("model"))
        watcher = self._without_secrets(watcher)
        # The key is in no local variable, which a report of errors would show.
        request = Request(
            "GET" if call.body is None else "POST",
            self._url + call.path,
            {**encoded(TRACE.get() if self._request.propagate_trace else {}), **self._headers},
            watcher=watcher,
        )
        gate = self._gates[model] if "model" in body else Gate()  # other requests have no limit
        ticket = gate.ticket()
        # What a call learns is its own until it is answered: a refusal may have meant something else.
        changes = known = self._changes[model]
        cure = call.cure
        with trio.move_on_after(seconds) as deadline:
            for retries in count():
                sent = 0 if bill is None else bill.usage.attempts
                request.body = b"" if call.body is None else _as_json(fit(body, changes, call.fixed))
                for change in news(changes, {}):
                    log.debug("openai(client): the model %s %s", model, change)
                try:
                    cure = _LIMITED.format(model)
                    await gate.enter(ticket, deadline.deadline, watcher.on_phase)
                    cure = call.cure
                    # A cancel during the wait must not cost another request, even if the wait had just ended.
                    await trio.lowlevel.checkpoint_if_cancelled()
                    answer = await self._attempt(request, read, watcher, policy, partial(gate.read, ticket))
                except UpstreamError as error:
                    if bill is not None and bill.usage.attempts > sent and error.progress in ("refused", "doubtful"):
                        bill.not_billed()  # this one, and none before it
                    said = error.status, type(error).__name__, error.code, error.message, error.body or ""
                    log.debug(_FAILED, retries + 1, *said)
                    wait = policy.wait_before_retry(error, retries, self._rng)  # which is told of every failure
                    if learnt := changes_after(error, body, changes, call.fixed):
                        changes, wait = learnt, 0.0
                    left = deadline.deadline - trio.current_time()
                    if wait is None or retries >= policy.max_retries or wait > min(LONGEST_WAIT, left):
                        settings = settings_to_change(error, body, self._models, self._openai.base_url)
                        end_call(error, retries + 1, settings, is_repeated=wait is not None)
                        raise
                    if isinstance(error, RateLimited):
                        gate.close(ticket, wait)  # which is waited for at the gate
                        wait = 0.0
                    elif wait and watcher.on_phase is not None:
                        cause = _CAUSES.get(error.kind, "the API failed")
                        watcher.on_phase(f"{cause}, retry in {wait:.0f} s ({retries + 1}/{policy.max_retries})")
                else:
                    if changes is not known:
                        for change in news(changes, self._changes[model]):  # other calls may have learnt meanwhile
                            log.warning("the model %s %s", model, change)
                        self._changes[model] = {**self._changes[model], **changes}
                    return answer
                finally:
                    gate.leave(ticket)
                await trio.sleep(wait)
        maybe_paid = bill is not None and bill.usage.uncounted > 0
        raise DeadlineExceeded(f"No answer within {seconds:g} s; {cure}", code="timeout", maybe_paid=maybe_paid)

    @cached_property
    def _headers(self) -> Mapping[bytes, bytes]:
        """Return the headers of every request. Raises `AuthenticationFailed`."""
        try:
            return encoded({**_COMMON_HEADERS, **credential_headers(self._openai)})
        except KeyUnusable as error:
            raise error.with_traceback(None) from None  # whose frames have the key

    def _without_secrets(self, watcher: Watcher) -> Watcher:
        """Return a watcher that hears the same, without secrets and what a terminal would obey."""
        if (on_phase := watcher.on_phase) is not None:

            def tell(phase: str) -> None:
                on_phase(self.redact.known(sanitized(phase)))

            watcher = replace(watcher, on_phase=tell)
        if (on_text := watcher.on_text) is not None:
            watcher = replace(watcher, on_text=WrittenText(on_text, self.redact.known).take)
        return watcher

    async def _attempt(
        self,
        request: Request,
        read: Callable[[ReplyReader], T],
        watcher: Watcher,
        policy: RetryPolicy,
        on_head: Callable[[int, Mapping[str, str]], None],
    ) -> T:
        """Send a request once and return what `read` makes of its reply."""
        reader = ReplyReader(
            most_bytes=self._request.max_reply_bytes,
            budget=self._budget,
            redact=self.redact,
            key_from=self._key_from,
            watcher=watcher,
            on_head=on_head,
        )
        try:
            # A scope costs a hundredth of a call, and most tries have no time of their own.
            has_time = policy.try_seconds < math.inf
            with trio.move_on_after(policy.try_seconds) if has_time else nullcontext(), closing(reader):
                connections = self._connections or await self._open()
                await connections.send(request, reader)
                if reader.held_bytes <= LARGE_BYTES:
                    return read(reader)
                # One after the other, and all other tasks in between.
                async with self._decoding:
                    await trio.lowlevel.checkpoint()
                    answer = read(reader)
                    await trio.lowlevel.cancel_shielded_checkpoint()  # to write it takes as long again
                    return answer
            raise DeadlineExceeded(
                f"No answer within {policy.try_seconds:g} s; {policy.slow}.", code="timeout", maybe_paid=True
            )
        except UpstreamError as error:
            if reader.progress == "begun":
                error.advance("begun")
            raise

    async def _open(self) -> ConnectionPool:
        async with self._connecting:
            if self._connections is None:
                limit = connection_limit(self._request.max_connections)
                try:
                    opened: ConnectionPool = await self._connect(self._url, limit)
                except RuntimeError as error:  # "can't start new thread"
                    if (shortage := exhausted(error)) is None:
                        raise
                    raise ConnectionFailed(f"No connection to the API: {shortage}", retryable=True) from error
                self._connections = opened
                if self._closed:  # before there was any
                    await opened.aclose()
            return self._connections

    async def aclose(self) -> None:
        """Close all connections, and keep none open from now on."""
        self._closed = True
        if self._connections is None:
            await trio.lowlevel.checkpoint()
        else:
            await self._connections.aclose()


_instructions_as_json: Final = lru_cache(maxsize=8)(_ENCODE)  # the longest text of a body, which others share


def _as_json(body: JsonObject) -> bytes:
    text = _ENCODE({name: value for name, value in body.items() if name != "instructions"})
    if "instructions" in body:
        text = f'{{"instructions": {_instructions_as_json(body["instructions"])}, {text[1:]}'
    try:
        return text.encode()
    except UnicodeEncodeError:  # a lone surrogate
        return replace_lone_surrogates(text).encode()
