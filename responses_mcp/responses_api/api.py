"""One call of the Responses API: a request, the retries it is worth, and one deadline over all of it (spec 7)."""

from __future__ import annotations

import json
import logging
import random
from collections.abc import Awaitable, Callable, Mapping
from collections.abc import Set as AbstractSet
from functools import cached_property, partial
from http import HTTPStatus
from types import MappingProxyType
from typing import TypeVar
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
from responses_mcp.redaction import Redactor
from responses_mcp.responses_api.failures import is_unbilled, mark, name_model
from responses_mcp.responses_api.gate import Gate
from responses_mcp.responses_api.http.pool import Connect, Connections, Request, connection_limit
from responses_mcp.responses_api.parameters import ParameterFallback, refused_domains
from responses_mcp.responses_api.request.credentials import credential_headers, key_from
from responses_mcp.responses_api.response.reply import LARGE_BYTES, ReplyBudget, ReplyReader
from responses_mcp.responses_api.response.streaming import Place, as_response
from responses_mcp.responses_api.response.written_text import WrittenText
from responses_mcp.responses_api.retry import LONGEST_WAIT, RetryPolicy, backoff
from responses_mcp.room import Room
from responses_mcp.sanitization import line_at, sanitized
from responses_mcp.settings.model import OpenAISettings, Profile, RequestSettings
from responses_mcp.trace_context import TRACE
from responses_mcp.usage.bill import Bill

log = logging.getLogger(__name__)

T = TypeVar("T")

_NOTHING_LEARNT = ParameterFallback()


async def connect_over_http(url: str, limit: int, *, trust_env: bool = True) -> Connections:
    """Prepare for requests to `url` with httpx, which is imported now and not before."""

    def import_client() -> Callable[..., Awaitable[Connections]]:
        from responses_mcp.responses_api.http.client import open_connections  # noqa: PLC0415  # imports httpx

        return open_connections

    # The import takes a tenth of a second: in a thread, so that pings are answered meanwhile.
    open_connections = await trio.to_thread.run_sync(import_client, abandon_on_cancel=True)
    return await open_connections(url, limit=limit, trust_env=trust_env)


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
        self._gates: dict[str, Gate] = {}  # by model
        self._policy = RetryPolicy(max_retries=request.max_retries, wait=backoff)
        self._budget = ReplyBudget()
        self._decoding = trio.Lock()
        self._blanks = any(" " in value for value in openai.headers.values())
        self.redact = Redactor([openai.api_key, *openai.headers.values()])
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
        on_phase: Callable[[str], None] | None = None,
        on_text: Callable[[str], None] | None = None,
        policy: RetryPolicy | None = None,
        room: Room | None = None,
        bill: Bill | None = None,
    ) -> T:
        """Ask for a response and return what `read` makes of the Response object, which ended well or is incomplete.

        `read` is called in the step that decodes the reply, so that of all calls one such object exists at a time.
        Takes at most `request.timeout_ms`, retries and waits included. `policy` says what is asked again; without one,
        what may pass and is not paid for twice, `request.max_retries` times at most. `on_phase` is told the phases of
        the response, in words for a person, and `on_text` its text, as `WrittenText` tells it. With `room` the API is
        asked, and a large reply read, only while the client's answers leave some. `bill` gets what each attempt used.
        Raises `UpstreamError`. Cancelling closes the socket.
        """
        # Streamed whether or not anybody watches: gateways close connections that are silent for a minute or four, and
        # what they cut may have been paid for.
        body = {**body, "stream": True, "stream_options": {"include_obfuscation": False}}

        def answer(reader: ReplyReader) -> T:
            response = reader.finish(None if bill is None else bill.take)
            if log.isEnabledFor(logging.DEBUG):
                named = (line_at(response, key, self.redact) for key in ("model", "id"))
                log.debug("openai(client): ok status=%d model=%s id=%s", reader.status, *named)
            return read(response)

        return await self._ask(
            "/responses", body, answer, on_phase=on_phase, on_text=on_text, policy=policy, room=room, bill=bill
        )

    async def post(self, path: str, body: JsonObject, read: Callable[[JsonObject], T], *, once: bool = False) -> T:
        """Ask another endpoint of the same server and return what `read` makes of the JSON object that it answers.

        Connections, time limit, retries and errors are those of `create`. With `once` only a request with a parameter
        that is refused is repeated, without that.
        """
        policy = RetryPolicy(max_retries=1, wait=backoff, repeats=lambda _: False) if once else None

        def answer(reader: ReplyReader) -> T:
            found = reader.json_object()
            log.debug("openai(client): ok status=%d path=%s", reader.status, path)
            return read(found)

        return await self._ask(path, body, answer, policy=policy)

    async def prepare(self) -> None:
        """Do now what a first request would have to wait for, before anything is connected. Raises `UpstreamError`."""
        if self._connections is None:
            await self._open()

    async def begin_run(
        self,
        body: JsonObject,
        *,
        on_place: Callable[[Place], None],
        on_send: Callable[[], Awaitable[None]],
        on_phase: Callable[[str], None] | None = None,
        on_text: Callable[[str], None] | None = None,
        policy: RetryPolicy | None = None,
        room: Room | None = None,
        bill: Bill | None = None,
        fixed: AbstractSet[str] = frozenset(),
        seconds: float,
    ) -> JsonObject:
        """Ask for a response in background mode and return the Response object, in whatever state it ended.

        `on_place` is told the id of the response and the number of each event. `on_send` is awaited right before each
        request, after all other waits, that for a connection too; what it raises ends the call, and nothing is sent.
        Takes at most `seconds`.
        `bill` is told of each request, but not what came of it, which may be known later. Members of the body, or of
        its search, that are `fixed` are sent whatever the API says of them. The rest is as for `create`.
        """
        return await self._ask(
            "/responses",
            {**body, "stream": True, "stream_options": {"include_obfuscation": False}},
            lambda reader: as_response(reader.response(), self.redact.known),
            on_place=on_place,
            on_send=on_send,
            on_phase=on_phase,
            on_text=on_text,
            policy=policy,
            room=room,
            bill=bill,
            fixed=fixed,
            seconds=seconds,
        )

    async def follow_run(
        self,
        response_id: str,
        *,
        after: int,
        on_place: Callable[[Place], None],
        on_phase: Callable[[str], None] | None = None,
        on_text: Callable[[str], None] | None = None,
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

        return await self._ask(
            path, None, ended, on_place=on_place, on_phase=on_phase, on_text=on_text, seconds=seconds
        )

    async def look_up_run(self, response_id: str, *, seconds: float) -> JsonObject:
        """Return a stored response as it is now. Raises `UpstreamError`; with status 404, it is not known.

        Some servers answer 200 to a path that they do not know: what has nothing of a response is not known, either.
        """
        unknown = UnusableReply("The API answered a look-up with what is no response.", status=HTTPStatus.NOT_FOUND)
        try:
            found = await self._ask(_path_of(response_id), None, self._response, seconds=seconds)
        except UpstreamError as error:
            if error.status is None and error.kind in ("unknown", "address"):
                raise unknown from error
            raise
        if not {"id", "status", "output"} & found.keys():
            raise unknown
        return found

    async def cancel_run(self, response_id: str, *, seconds: float, policy: RetryPolicy | None = None) -> JsonObject:
        """Cancel a response in background mode and return what it is then, which may have ended otherwise."""
        return await self._ask(f"{_path_of(response_id)}/cancel", {}, self._response, policy=policy, seconds=seconds)

    def _response(self, reader: ReplyReader) -> JsonObject:
        return as_response(reader.json_object(), self.redact.known)

    async def _ask(
        self,
        path: str,
        given: JsonObject | None,
        read: Callable[[ReplyReader], T],
        *,
        on_phase: Callable[[str], None] | None = None,
        on_text: Callable[[str], None] | None = None,
        on_place: Callable[[Place], None] | None = None,
        on_send: Callable[[], Awaitable[None]] | None = None,
        policy: RetryPolicy | None = None,
        room: Room | None = None,
        bill: Bill | None = None,
        fixed: AbstractSet[str] = frozenset(),
        seconds: float | None = None,
    ) -> T:
        """POST `given`, or GET where there is nothing to give, as often as it takes."""
        body = given or {}
        policy = policy or self._policy
        bare = self._bare("GET" if given is None else "POST", path)  # which may raise, before anything is sent
        written = None if on_text is None else WrittenText(on_text, self.redact.known, lines=self._blanks).take

        def tell(phase: str) -> None:
            if on_phase is not None:
                on_phase(self.redact.known(sanitized(phase)))

        model = str(body.get("model"))
        # What a call learns is its own until it is answered: a refusal may have meant something else.
        fallback = self._fallbacks.get(model, _NOTHING_LEARNT)
        retries = 0
        seconds = seconds or self._request.timeout_ms / 1000
        gate = (self._gates.get(model) if "model" in body else None) or Gate()  # other requests have no limit
        if "model" in body:
            self._gates[model] = gate
        ticket = gate.ticket()
        number: int | None = None
        limited_for: float | None = None
        with trio.move_on_after(seconds) as deadline:
            while True:
                attempts = 0 if bill is None else bill.usage.attempts
                data = replace_lone_surrogates(json.dumps(fallback.fit(body, fixed), ensure_ascii=False)).encode()
                request = Request(bare.method, bare.url, bare.headers, b"" if given is None else data)
                for news in fallback.news(_NOTHING_LEARNT):
                    log.debug("openai(client): the model %s %s", model, news)
                number = None
                try:
                    number = await gate.enter(ticket, deadline.deadline, tell if limited_for is None else None)
                    limited_for = None
                    # A cancel during the wait must not cost another request, even if the wait had just ended.
                    await trio.lowlevel.checkpoint_if_cancelled()
                    answer = await self._attempt(
                        request,
                        read,
                        on_phase=on_phase and tell,
                        on_text=written,
                        on_place=on_place,
                        on_head=partial(gate.read, number),
                        on_send=on_send,
                        policy=policy,
                        room=room,
                        bill=bill,
                    )
                except UpstreamError as error:
                    if bill is not None and bill.usage.attempts > attempts and is_unbilled(error):
                        bill.not_billed()  # this one, and none before it
                    self._log_failure(retries + 1, error)
                    learnt = fallback.after(error, body, fixed)
                    wait = policy.wait_before_retry(error, retries, self._rng)  # which is told of every failure
                    if learnt:
                        wait = 0.0
                    left = deadline.deadline - trio.current_time()
                    if wait is None or retries >= policy.max_retries or wait > min(LONGEST_WAIT, left):
                        last = _last_words(error, retries, repeated=wait is not None)
                        error.message = refused_domains(error, body) + error.message + last
                        if error.unquoted is not None:
                            error.unquoted += last
                        if "model" in body:
                            name_model(error, model, self._models, self._openai.base_url)
                        raise
                    fallback = learnt or fallback
                    if wait:
                        tell(f"{_cause(error)}, retry in {wait:.0f} s ({retries + 1}/{policy.max_retries})")
                    if isinstance(error, RateLimited):
                        limited_for = wait
                else:
                    self._remember(model, fallback)
                    return answer
                finally:
                    if number is not None:
                        gate.leave(number, limited_for)
                retries += 1
                if limited_for is None:
                    await trio.sleep(wait)
        if number is None:
            raise DeadlineExceeded(
                f"No answer within {seconds:g} s; that long the call was waiting for the API's rate limit for {model}. "
                "Ask for less at once, or have the limit raised.",
                code="timeout",
            )
        if path.startswith("/responses/"):  # no question, but something about one
            raise DeadlineExceeded(f"The API said nothing for {seconds:g} s; try again later.", code="timeout")
        raise DeadlineExceeded(
            f"No answer within {seconds:g} s; {_more_time(self._request.timeout_ms)} "
            "lower reasoning_effort in the profile, or ask for less.",
            code="timeout",
            maybe_paid=bill is not None and bill.usage.uncounted > 0,
        )

    def _bare(self, method: str, path: str) -> Request:
        trace = dict[str, str](TRACE.get() if self._request.propagate_trace else ())
        return Request(method, self._url + path, {**trace, **self._headers})

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

    async def _attempt(
        self,
        request: Request,
        read: Callable[[ReplyReader], T],
        *,
        on_phase: Callable[[str], None] | None,
        on_text: Callable[[str], None] | None,
        on_place: Callable[[Place], None] | None,
        on_head: Callable[[int, Mapping[str, str]], None],
        on_send: Callable[[], Awaitable[None]] | None,
        policy: RetryPolicy,
        room: Room | None,
        bill: Bill | None,
    ) -> T:
        reader = ReplyReader(
            most_bytes=self._request.max_reply_bytes,
            budget=self._budget,
            redact=self.redact,
            key_from=key_from(self._openai),
            on_phase=on_phase,
            on_text=on_text,
            on_place=on_place,
            on_head=on_head,
        )
        with trio.move_on_after(policy.try_seconds), reader:
            connections = self._connections or await self._open()

            async def make_room() -> None:
                if room is not None:
                    await room.wait()

            async def sending() -> None:
                if on_send is not None:
                    await on_send()
                if bill is not None:
                    bill.sending()

            try:
                request.on_send = sending
                await connections.send(request, reader, make_room)
            except UpstreamError as error:
                if reader.progress == "begun":
                    mark(error, "begun")
                raise
            if reader.held_bytes <= LARGE_BYTES:
                return read(reader)
            # One after the other, and all other tasks in between.
            async with self._decoding:
                await trio.lowlevel.checkpoint()
                answer = read(reader)
                await trio.lowlevel.cancel_shielded_checkpoint()  # to write it takes as long again
                return answer
        late = DeadlineExceeded(
            f"No answer within {policy.try_seconds:g} s; {policy.slow}.", code="timeout", maybe_paid=True
        )
        if reader.progress == "begun":
            mark(late, "begun")
        raise late

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

    def _log_failure(self, attempt: int, error: UpstreamError) -> None:
        said = (attempt, error.status, type(error).__name__, error.code, error.message, error.body or "")
        log.debug('openai(client): error attempt=%d status=%s name=%s code=%s msg="%s" body="%s"', *said)

    async def aclose(self) -> None:
        """Close all connections, and keep none open from now on."""
        self._closed = True
        if self._connections is None:
            await trio.lowlevel.checkpoint()
        else:
            await self._connections.aclose()


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


def _more_time(timeout_ms: int) -> str:
    if timeout_ms >= 1000:  # a second
        return "raise request.timeout_ms (OPENAI_API_TIMEOUT),"
    return f"request.timeout_ms (OPENAI_API_TIMEOUT) is in milliseconds, and is {timeout_ms}: set it higher,"


def _cause(error: UpstreamError) -> str:
    if isinstance(error, RateLimited):
        return "rate limited"
    if isinstance(error, DeadlineExceeded):
        return "no answer in time"
    if isinstance(error, ConnectionFailed) and error.maybe_paid:
        return "connection lost"
    return "not connected" if isinstance(error, ConnectionFailed) else "the API failed"
