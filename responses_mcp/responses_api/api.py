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
from http import HTTPStatus
from types import MappingProxyType
from typing import Final, NamedTuple, TypeVar
from urllib.parse import quote

import trio

from responses_mcp import __version__
from responses_mcp.errors import (
    ConnectionFailed,
    DeadlineExceeded,
    KeyUnusable,
    RateLimited,
    UnusableReply,
    UpstreamError,
    exhausted,
)
from responses_mcp.json_types import JsonObject, replace_lone_surrogates
from responses_mcp.responses_api.failures import name_model
from responses_mcp.responses_api.gate import Gate
from responses_mcp.responses_api.http.connections import Connect, Connections, Request, connection_limit
from responses_mcp.responses_api.parameters import ParameterFallback, refused_domains
from responses_mcp.responses_api.request.credentials import credential_headers, key_from
from responses_mcp.responses_api.response.reply import LARGE_BYTES, ReplyBudget, ReplyReader
from responses_mcp.responses_api.response.streaming import as_response
from responses_mcp.responses_api.response.written_text import WrittenText
from responses_mcp.responses_api.retry import LONGEST_WAIT, RetryPolicy, backoff
from responses_mcp.responses_api.watcher import NOBODY, Watcher
from responses_mcp.sanitization import line_at, sanitized
from responses_mcp.secrets import Redactor
from responses_mcp.settings.model import OpenAISettings, Profile, RequestSettings
from responses_mcp.trace_context import TRACE
from responses_mcp.usage.bill import Bill

log = logging.getLogger(__name__)

T = TypeVar("T")

_NOTHING_LEARNT = ParameterFallback()
_ENCODE: Final = json.JSONEncoder(ensure_ascii=False).encode
_FAILED: Final = 'openai(client): error attempt=%d status=%s name=%s code=%s msg="%s" body="%s"'


async def connect_over_http(url: str, limit: int, *, trust_env: bool = True) -> Connections:
    """Prepare for requests to `url` with httpx, which is imported now and not before."""

    def import_client() -> Callable[..., Awaitable[Connections]]:
        from responses_mcp.responses_api.http.client import open_connections  # noqa: PLC0415  # imports httpx

        return open_connections

    # The import takes a tenth of a second: in a thread, so that pings are answered meanwhile.
    open_connections = await trio.to_thread.run_sync(import_client, abandon_on_cancel=True)
    return await open_connections(url, limit=limit, trust_env=trust_env)


_STREAMED: Final[JsonObject] = {"stream": True, "stream_options": {"include_obfuscation": False}}


class _Call(NamedTuple):
    """A request with what holds for its repeats: a GET without a body, else a POST."""

    path: str
    body: JsonObject | None = None
    policy: RetryPolicy | None = None
    seconds: float | None = None
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
        connect: Connect | None = None,
    ) -> None:
        self._openai = openai
        self._request = request
        self._models = {name: profile.model for name, profile in profiles.items()}
        self._rng = rng
        self._connect = connect or partial(connect_over_http, trust_env=request.trust_env)
        self._url = openai.base_url.rstrip("/")
        self._connecting = trio.Lock()
        self._connections: Connections | None = None
        self._closed = False
        self._fallbacks: dict[str, ParameterFallback] = {}  # by model
        self._gates = defaultdict[str, Gate](Gate)  # by model
        self._policy = RetryPolicy(max_retries=request.max_retries, wait=backoff)
        self._budget = ReplyBudget()
        self._decoding = trio.Lock()
        self._blanks = any(" " in value for value in openai.headers.values())
        self.redact = Redactor(openai.secrets)
        self._key_from = key_from(openai)
        self.timeout_ms = request.timeout_ms
        self.max_retries = request.max_retries
        self.without_background = set[str]()
        """The models for which background mode was refused: no use in asking for it again."""
        self.keeps_unsaid = False
        """Whether a response was found that was kept and said neither so nor otherwise."""

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
        # Streamed whether or not anybody watches: gateways close connections that are silent for a minute or four, and
        # what they cut may have been paid for.
        body = {**body, **_STREAMED}

        def answer(reader: ReplyReader) -> T:
            response = reader.finish()
            if log.isEnabledFor(logging.DEBUG):
                named = (line_at(response, key, self.redact) for key in ("model", "id"))
                log.debug("openai(client): ok status=%d model=%s id=%s", reader.head.status, *named)
            return read(response)

        return await self._ask(_Call("/responses", body, policy), answer, watcher)

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

        return await self._ask(_Call(path, body, policy), answer, NOBODY)

    async def prepare(self) -> None:
        """Do now what a first request would have to wait for, before anything is connected. Raises `UpstreamError`."""
        if self._connections is None:
            await self._open()

    async def begin_run(
        self,
        body: JsonObject,
        *,
        watcher: Watcher,
        policy: RetryPolicy | None = None,
        fixed: AbstractSet[str] = frozenset(),
        seconds: float,
    ) -> JsonObject:
        """Ask for a response in background mode and return the Response object, in whatever state it ended.

        Takes at most `seconds`. The bill is told of each request, but not what came of it, which may be known later.
        Members of the body, or of its search, that are `fixed` are sent whatever the API says of them. The rest is as
        for `create`.
        """
        call = _Call("/responses", {**body, **_STREAMED}, policy, seconds, fixed)
        return await self._ask(call, lambda reader: as_response(reader.response(), self.redact.known), watcher)

    async def follow_run(
        self,
        response_id: str,
        *,
        after: int,
        watcher: Watcher,
        seconds: float,
    ) -> JsonObject:
        """Read the events of a stored response that come behind number `after`, until it ends; -1 reads all.

        Returns the Response of the last event, without output where that event has no answer: it is to be looked up.
        Raises `UpstreamError`, also where the stream ends before the response.
        """
        start = "" if after < 0 else f"&starting_after={after}"
        path = f"{_path_of(response_id)}?stream=true{start}&include_obfuscation=false"

        def ended(reader: ReplyReader) -> JsonObject:
            return as_response(reader.response(begins=False, from_start=after < 0), self.redact.known)

        return await self._ask(_Call(path, seconds=seconds), ended, watcher)

    async def look_up_run(self, response_id: str, *, seconds: float) -> JsonObject:
        """Return a stored response as it is now. Raises `UpstreamError`; with status 404, it is not known.

        Some servers answer 200 to a path that they do not know: what has nothing of a response is not known, either.
        """
        unknown = UnusableReply("The API answered a look-up with what is no response.", status=HTTPStatus.NOT_FOUND)
        try:
            found = await self._ask(_Call(_path_of(response_id), seconds=seconds), self._response, NOBODY)
        except UpstreamError as error:
            if error.status is None and error.kind in ("unknown", "address"):
                raise unknown from error
            raise
        if not {"id", "status", "output"} & found.keys():
            raise unknown
        return found

    async def cancel_run(self, response_id: str, *, seconds: float, policy: RetryPolicy | None = None) -> JsonObject:
        """Cancel a response in background mode and return what it is then, which may have ended otherwise."""
        call = _Call(f"{_path_of(response_id)}/cancel", {}, policy, seconds)
        return await self._ask(call, self._response, NOBODY)

    def _response(self, reader: ReplyReader) -> JsonObject:
        return as_response(reader.json_object(), self.redact.known)

    async def _ask(self, call: _Call, read: Callable[[ReplyReader], T], watcher: Watcher) -> T:
        """Send a request as often as it takes."""
        body, policy, bill = call.body or {}, call.policy or self._policy, watcher.bill
        trace = dict[str, str](TRACE.get() if self._request.propagate_trace else ())
        method = "GET" if call.body is None else "POST"
        # Before anything is sent: it may raise. No local variable has the key, which a report of errors would show.
        bare = Request(method, self._url + call.path, {**trace, **self._headers})
        watcher = self._without_secrets(watcher)
        seconds = call.seconds or self._request.timeout_ms / 1000
        model = str(body.get("model"))
        gate = self._gates[model] if "model" in body else Gate()  # other requests have no limit
        ticket = gate.ticket()
        # What a call learns is its own until it is answered: a refusal may have meant something else.
        fallback = self._fallbacks.get(model, _NOTHING_LEARNT)
        retries = 0
        is_sent = False
        limited_for: float | None = None
        with trio.move_on_after(seconds) as deadline:
            while True:
                attempts = 0 if bill is None else bill.attempts
                content = b"" if call.body is None else _as_json(fallback.fit(body, call.fixed))
                request = Request(
                    bare.method, bare.url, bare.headers, content, watcher.wait_for_room, watcher.before_sending
                )
                for news in fallback.news(_NOTHING_LEARNT):
                    log.debug("openai(client): the model %s %s", model, news)
                is_sent = False
                try:
                    tell = watcher.on_phase if limited_for is None else None
                    await gate.enter(ticket, deadline.deadline, tell)
                    is_sent, limited_for = True, None
                    # A cancel during the wait must not cost another request, even if the wait had just ended.
                    await trio.lowlevel.checkpoint_if_cancelled()
                    answer = await self._attempt(request, read, watcher, policy, partial(gate.read, ticket))
                except UpstreamError as error:
                    is_unbilled = error.progress in ("refused", "doubtful")
                    if bill is not None and bill.attempts > attempts and is_unbilled:
                        bill.not_billed()  # this one, and none before it
                    said = error.status, type(error).__name__, error.code, error.message, error.body or ""
                    log.debug(_FAILED, retries + 1, *said)
                    learnt = fallback.after(error, body, call.fixed)
                    wait = policy.wait_before_retry(error, retries, self._rng)  # which is told of every failure
                    if learnt:
                        fallback, wait = learnt, 0.0
                    left = deadline.deadline - trio.current_time()
                    if wait is None or retries >= policy.max_retries or wait > min(LONGEST_WAIT, left):
                        last = _last_words(error, retries, repeated=wait is not None)
                        error.message = refused_domains(error, body) + error.message + last
                        if error.unquoted is not None:
                            error.unquoted += last
                        if "model" in body:
                            name_model(error, model, self._models, self._openai.base_url)
                        raise
                    if wait and watcher.on_phase is not None:
                        watcher.on_phase(f"{_cause(error)}, retry in {wait:.0f} s ({retries + 1}/{policy.max_retries})")
                    if isinstance(error, RateLimited):
                        limited_for = wait
                else:
                    self._remember(model, fallback)
                    return answer
                finally:
                    if is_sent:
                        gate.leave(ticket, limited_for)
                retries += 1
                if limited_for is None:
                    await trio.sleep(wait)
        raise self._late(call, seconds, None if is_sent else model, bill)

    def _late(self, call: _Call, seconds: float, waiting_for: str | None, bill: Bill | None) -> DeadlineExceeded:
        """Return the error for a call whose time is up, perhaps while it was `waiting_for` the limit of a model."""
        if waiting_for is not None:
            return DeadlineExceeded(
                f"No answer within {seconds:g} s; that long the call was waiting for the API's rate limit for "
                f"{waiting_for}. Ask for less at once, or have the limit raised.",
                code="timeout",
            )
        if call.path.startswith("/responses/"):  # no question, but something about one
            return DeadlineExceeded(f"The API said nothing for {seconds:g} s; try again later.", code="timeout")
        longer = "raise request.timeout_ms (OPENAI_API_TIMEOUT),"
        if (ms := self._request.timeout_ms) < 1000:  # which was meant in seconds
            longer = f"request.timeout_ms (OPENAI_API_TIMEOUT) is in milliseconds, and is {ms}: set it higher,"
        return DeadlineExceeded(
            f"No answer within {seconds:g} s; {longer} lower reasoning_effort in the profile, or ask for less.",
            code="timeout",
            maybe_paid=bill is not None and bill.uncounted > 0,
        )

    @cached_property
    def _headers(self) -> dict[str, str]:
        """Return the headers of every request. Raises `AuthenticationFailed`."""
        try:
            return {
                "content-type": "application/json",
                "accept": "text/event-stream, application/json",
                "user-agent": f"openai-responses-mcp/{__version__}",
                **credential_headers(self._openai),
            }
        except KeyUnusable as error:
            raise error.with_traceback(None) from None  # whose frames have the key

    def _without_secrets(self, watcher: Watcher) -> Watcher:
        """Return a watcher that hears the same, without secrets and what a terminal would obey."""
        on_phase, on_text = watcher.on_phase, watcher.on_text
        if on_phase is not None:

            def tell(phase: str) -> None:
                on_phase(self.redact.known(sanitized(phase)))

            watcher = replace(watcher, on_phase=tell)
        if on_text is not None:
            watcher = replace(watcher, on_text=WrittenText(on_text, self.redact.known, lines=self._blanks).take)
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

    async def _open(self) -> Connections:
        async with self._connecting:
            if self._connections is None:
                limit = connection_limit(self._request.max_connections)
                try:
                    self._connections = await self._connect(self._url, limit)
                except RuntimeError as error:  # "can't start new thread"
                    if (shortage := exhausted(error)) is None:
                        raise
                    raise ConnectionFailed(f"No connection to the API: {shortage}", retryable=True) from error
                if self._closed:  # before there was any
                    await self._connections.aclose()
            return self._connections

    def _remember(self, model: str, fallback: ParameterFallback) -> None:
        known = self._fallbacks.get(model, _NOTHING_LEARNT)  # other calls may have learnt meanwhile
        if fallback is known:
            return
        for news in fallback.news(known):
            log.warning("the model %s %s", model, news)
        self._fallbacks[model] = known.joined(fallback)

    async def aclose(self) -> None:
        """Close all connections, and keep none open from now on."""
        self._closed = True
        if self._connections is None:
            await trio.lowlevel.checkpoint()
        else:
            await self._connections.aclose()


@lru_cache(maxsize=8)
def _instructions_as_json(text: str) -> str:
    """Return the longest text of a request, which those of one profile share."""
    return _ENCODE(text)


def _as_json(body: JsonObject) -> bytes:
    if isinstance(instructions := body.get("instructions"), str):
        rest = _ENCODE({name: value for name, value in body.items() if name != "instructions"})
        text = f'{{"instructions": {_instructions_as_json(instructions)}, {rest[1:]}'
    else:
        text = _ENCODE(body)
    try:
        return text.encode()
    except UnicodeEncodeError:  # a lone surrogate
        return replace_lone_surrogates(text).encode()


def _path_of(response_id: str) -> str:
    return f"/responses/{quote(response_id, safe='')}"


def _last_words(error: UpstreamError, retries: int, *, repeated: bool) -> str:
    """Return what comes behind an error that ends a call; `repeated` tells that its kind is asked again."""
    message = ""
    if error.maybe_paid and not repeated:
        message += " It was not repeated, as it may have been paid for."
    if retries:
        what = "attempts" if isinstance(error, ConnectionFailed) and not error.maybe_paid else "requests"
        message += f" ({retries + 1} {what} were made.)"
    return message


def _cause(error: UpstreamError) -> str:
    if isinstance(error, RateLimited):
        return "rate limited"
    if isinstance(error, DeadlineExceeded):
        return "no answer in time"
    if isinstance(error, ConnectionFailed) and error.maybe_paid:
        return "connection lost"
    return "not connected" if isinstance(error, ConnectionFailed) else "the API failed"
