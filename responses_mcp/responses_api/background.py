"""Responses in background mode, which the API works on whatever becomes of the connection, until it is told to stop.

`Handle` is the one machine for plain calls, calls that may be handed off, and runs. A question is sent once. A stream
that breaks is resumed, and where that fails the response is looked up, neither of which costs anything.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Awaitable, Callable
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from typing import Any, Final, TypeVar
from urllib.parse import quote

import trio

from responses_mcp.errors import ConnectionFailed, DeadlineExceeded, UnusableReply, UpstreamError
from responses_mcp.json_types import JsonObject, as_object
from responses_mcp.responses_api.api import ASK_LONGER, STREAMED, Call, ResponsesApi
from responses_mcp.responses_api.failures import STATES, response_error
from responses_mcp.responses_api.response.reply import TOO_LONG, ReplyReader
from responses_mcp.responses_api.retry import RetryPolicy, backoff
from responses_mcp.responses_api.watcher import NOBODY, Watcher
from responses_mcp.secrets import Redact
from responses_mcp.under_trio import alone
from responses_mcp.usage.bill import Bill

log = logging.getLogger(__name__)

T = TypeVar("T")

ENDED: Final = frozenset({"completed", "incomplete", "failed", "cancelled"})
"""The states of a Response in which it stays."""
WITH_ANSWER: Final = frozenset({"completed", "incomplete"})
"""Those of them that have an answer."""
KEPT_SO_LONG: Final = "It keeps one that is not stored, or whose organisation stores nothing, for about ten minutes."
GONE: Final = (
    f"The API no longer knows the response, so the answer is lost, though it may have been paid for. {KEPT_SO_LONG}"
)
LEAVING: Final = 1.0
"""Seconds that a caller that leaves may take, for an id to come or to have the response cancelled."""
LOOK: Final = 20.0
"""Seconds for one look at a response."""
FORGOTTEN: Final = 60.0
"""Seconds for which the API may not know a response that it knows later."""

IDLE: Final = 180.0  # seconds without an event, after which a stream is given up
_FIRST_WAIT: Final = 2.0  # seconds between two looks, growing
_LONGEST_WAIT: Final = 10.0
_LONGEST_PHASE: Final = 200  # characters
_LATER: Final = "try again later."
_AS_STORED: Final = {"background": True, "store": True}
# What can stand in an address, and is no step within one. Those of proxies are long.
_ID: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:~=+@|-]{0,1023}")
_ABOUT_IT: Final = re.compile(r"\b(?:background|store)\b", re.IGNORECASE)  # in a message that names no parameter


def _passes(error: UpstreamError) -> bool:
    """Tell whether what costs nothing, however often it is asked, may be answered soon."""
    return error.retryable or isinstance(error, ConnectionFailed)


_CANCEL: Final = RetryPolicy(
    max_retries=6, wait=lambda retries, _: 0.2 * 2.0**retries, repeats=_passes, try_seconds=5, slow=_LATER
)


def has_ended(response: JsonObject) -> bool:
    """Tell whether a Response has ended; one that names no status has where it has output."""
    return response.get("status", "completed" if response.get("output") else None) in ENDED


async def look_up(api: ResponsesApi, response_id: str, *, seconds: float = LOOK) -> JsonObject:
    """Return a stored response as it is now, which costs nothing. Raises `UpstreamError`; status 404: it is unknown."""
    found = await _fetch(api, Call(_path_of(response_id), seconds=seconds, cure=_LATER))
    if found.get("id", response_id) != response_id or not {"status", "output"} & found.keys():
        raise UnusableReply("The API answered a look-up with something other than a response.")
    return found


async def cancel(api: ResponsesApi, response_id: str, *, seconds: float) -> JsonObject:
    """Cancel a response in background mode and return what it is then, which may have ended otherwise.

    Takes about 20 seconds where the API does not answer, or a minute if it asks for a wait. Raises `UpstreamError`.
    """
    return await _fetch(api, Call(f"{_path_of(response_id)}/cancel", {}, _CANCEL, seconds, _LATER))


async def _fetch(
    api: ResponsesApi,
    call: Call,
    read: Callable[[ReplyReader], JsonObject] = ReplyReader.json_object,
    watcher: Watcher = NOBODY,
) -> JsonObject:
    """Do what `ResponsesApi.ask` does, and return the Response that `read` finds, without an id that is none."""
    return await api.ask(call, lambda reader: _response(read(reader), api.redact.known), watcher)


def usable_id(value: object, redact: Redact) -> str | None:
    """Return the id of a Response, None for what is none: it is asked for by that, and kept, so it holds no secret."""
    return value if isinstance(value, str) and _ID.fullmatch(value) and redact(value) == value else None


def _response(found: JsonObject, redact: Redact) -> JsonObject:
    """Return a Response without an `id` or a `status` that cannot be one; without an id, only the API's own are."""
    has_id = usable_id(found.get("id"), redact) is not None
    has_status = found.get("status") in STATES or (has_id and isinstance(found.get("status"), str))
    known = {"id": has_id, "status": has_status}
    return {name: value for name, value in found.items() if known.get(name, True)}


def keeps_nothing(response: JsonObject) -> bool:
    """Tell whether a Response says that the API works on it in the foreground, or does not store it."""
    return response.get("background") is False or response.get("store") is False


def _path_of(response_id: str) -> str:
    return f"/responses/{quote(response_id, safe='')}"


def _is_without_background(error: UpstreamError) -> bool:
    """Tell whether a server may have refused the request because it has no background mode, or keeps nothing.

    Whether it did, shows when it is asked without, which costs nothing where something else was meant.
    """
    if error.maybe_paid or error.status not in (400, 404, 422) or (error.code or "").startswith("model_"):
        return False
    if error.param:  # names what it is about: a vector store, or a member of a schema, has a longer name
        return error.param.removeprefix("body.") in _AS_STORED
    return error.status == HTTPStatus.NOT_FOUND or _ABOUT_IT.search(error.message) is not None


class Handle:
    """One response: asked for once, followed to its end, and left or cancelled by whoever began it.

    `live` is its work, in a task that the caller begins; `over` is set when that has ended. Then `found` is the
    Response, or `failure` says why there is none. The API is asked to keep the response (`kept`), under the `id` that
    the first event names, unless `body` says otherwise or the API refuses. `sent` is true from right before a request
    until the API has refused it. `news` is set, and made anew, in the step in which one of these, `phase` or `searches`
    changes. With `cancels`, leaving cancels the response at the API.
    """

    def __init__(
        self,
        api: ResponsesApi,
        body: JsonObject,
        watcher: Watcher,
        *,
        seconds: float,
        fixed: AbstractSet[str] = frozenset(),
        cancels: bool = False,
    ) -> None:
        self.id: str | None = None
        self.kept = body.get("store") is not False
        self.sent = False
        self.phase = f"asking {body['model']}"
        self.searches = 0
        self.news = trio.Event()
        self.over = trio.Event()
        self.found = JsonObject()
        self.failure: Exception | None = None
        self.bill = watcher.bill
        self._api = api
        self._body = body
        self._watcher = watcher
        self._seconds = seconds
        self._fixed = fixed
        self._cancels = cancels
        self._life = trio.CancelScope(shield=True)
        self._idle = trio.CancelScope()
        self._left_until = math.inf  # once its caller leaves
        self._cursor = -1

    def leave(self) -> None:
        """Have the work end: at once where there is no id to wait for, else with the id, or in a second at most."""
        self._left_until = self._life.deadline = trio.current_time() + LEAVING
        self._announce()

    def stop(self, failure: Exception | None = None) -> None:
        """Stop the work at once, as it is, and have all who wait for news look."""
        self.failure = self.failure or failure
        self._life.cancel(reason="it is over")
        self._announce()

    @trio.lowlevel.enable_ki_protection  # Ctrl-C here would leave the response at the API to go on
    async def live(self, admit: Callable[[], Awaitable[Bill]] | None = None) -> None:
        """Ask, once `admit` has given a bill, and follow the response until it has ended, or was left."""
        with self._life:
            try:
                if admit is not None:
                    self.bill = await admit()
                self.found = await self._end()
            except Exception as error:  # noqa: BLE001  # raised where it is waited for, and so in no group
                self.failure = error
        broken = self.failure is not None and not isinstance(self.failure, UpstreamError)  # by who listens
        if self._cancels and (broken or self._left_until < math.inf) and self.id is not None and not self.found:
            with trio.CancelScope(deadline=self._left_until, shield=True), suppress(UpstreamError):
                self.found = await cancel(self._api, self.id, seconds=LEAVING)
        if self.bill is not None:
            self.bill.take(self.found)
        self.over.set()

    async def _end(self) -> JsonObject:
        """Ask, and return the Response that has ended. Raises `UpstreamError`."""
        found = JsonObject()
        try:
            found = await self._ask()
        except UpstreamError as error:
            if self.id is None:
                if self.bill is not None and error.progress != "refused":
                    self.bill.maybe_billed()
                raise
            log.debug("openai(background): the stream broke: %s", error)
        if self.id is None:  # nothing more can be had
            if found.get("status", "completed") in ENDED:
                return found
            raise ConnectionFailed("The API began to answer, but sent no id; ask again.", maybe_paid=True)
        if not found or _is_error(found):
            found = await self._resume()
        if _is_error(found) or not has_ended(found):
            found = await self._poll()
        if found.get("status") in WITH_ANSWER and not found.get("output"):  # some leave it out of the last event
            self.found = found
            with suppress(UpstreamError):
                seen = await look_up(self._api, self.id)
                if has_ended(seen):
                    return {**found, **{name: value for name, value in seen.items() if value is not None}}
        return found

    async def _ask(self) -> JsonObject:
        """Send the question; where the API has no background mode, which costs nothing, once more without."""
        if not self.kept:
            return await self._send(self._body)
        try:
            return await self._send(self._body | _AS_STORED)
        except UpstreamError as error:
            if self.sent or not _is_without_background(error):  # one that was taken is not asked a second time
                raise
        self.kept = False
        self._announce()
        return await self._send(self._body)

    async def _send(self, body: JsonObject) -> JsonObject:
        """Send a request: the only place where something that is paid for begins."""
        policy = RetryPolicy(max_retries=self._api.max_retries, wait=backoff, repeats=self._may_repeat)
        call = Call("/responses", {**body, **STREAMED}, policy, self._seconds, fixed=self._fixed)
        with trio.CancelScope() as self._idle:
            found = await self._read(call, ReplyReader.response, on_send=self._sending, bill=self.bill)
            if keeps_nothing(found):  # as some say in their last event alone
                self.kept = False
            elif self.kept:
                self.id = self.id or found.get("id")
            self._announce()
            return found
        raise ConnectionFailed(f"The API was silent for {IDLE:g} s.", maybe_paid=True)

    async def _resume(self) -> JsonObject:
        """Read the events that come behind the last one, and return the Response of the last of them; {} without it."""
        self.tell("taking up the stream again")
        anew = self._cursor < 0 or self._watcher.on_text is not None  # a text is told from its beginning
        after = "" if anew else f"&starting_after={self._cursor}"
        call = Call(f"{_path_of(self.id or '')}?stream=true{after}&include_obfuscation=false", seconds=math.inf)
        with trio.CancelScope(deadline=trio.current_time() + IDLE) as self._idle:
            try:
                read = partial(ReplyReader.response, begins=False, from_start=anew)
                found = await self._read(call, read, on_send=None, bill=None)
                return found if found.get("id", self.id) == self.id else {}
            except UpstreamError as error:
                log.debug("openai(background): the stream cannot be taken up: %s", error)
        return {}

    async def _read(self, call: Call, read: Callable[[ReplyReader], JsonObject], **first: Any) -> JsonObject:
        """Read a stream; what comes right before a request, and its bill, are for the `first` one."""
        watcher = replace(self._watcher, on_phase=self.tell, on_event=self._take, **first)
        return await _fetch(self._api, call, read, watcher)

    async def _poll(self) -> JsonObject:
        """Look the response up, which costs nothing, until it has ended, and return it.

        Raises `UpstreamError` for one that is too long, or that the API no longer knows.
        """
        pause, unknown_since = _FIRST_WAIT, math.inf
        while True:
            try:
                found = await look_up(self._api, self.id or "", seconds=IDLE)
            except UpstreamError as error:
                is_unknown, now = error.status == HTTPStatus.NOT_FOUND, trio.current_time()
                unknown_since = min(unknown_since, now) if is_unknown else math.inf
                if now - unknown_since >= FORGOTTEN:  # the 404 is about the request, and names the model
                    raise UnusableReply(GONE, status=HTTPStatus.NOT_FOUND, maybe_paid=True) from error
                if error.code == TOO_LONG:
                    error.maybe_paid = True
                    raise
                self.tell(f"the response cannot be looked up: {error.message}")
            else:
                if has_ended(found):
                    return found
                unknown_since = math.inf
                self.tell("waiting at the API" if found.get("status") == "queued" else "working")
            await trio.sleep(pause)
            pause = min(pause * 1.5, _LONGEST_WAIT)

    async def _sending(self) -> None:
        if self._watcher.on_send is not None:
            await self._watcher.on_send()
        await trio.lowlevel.checkpoint_if_cancelled()  # it was left meanwhile: nothing is sent
        self.sent = True
        self._announce()

    def _may_repeat(self, error: UpstreamError) -> bool:
        """Tell whether a request is repeated: fewer may be, as it goes on where nobody waits."""
        self.sent = error.progress != "refused"
        if self.sent:  # so it is worded, and told to who would ask again
            error.maybe_paid, error.retryable = True, False
        self._idle.deadline = math.inf
        self._announce()
        return error.retryable and not self.sent

    def _take(self, event: JsonObject) -> None:
        """Take note of an event: in the step in which it is read, without a checkpoint."""
        number, response = event.get("sequence_number"), as_object(event.get("response"))
        if isinstance(number, int):
            self._cursor = max(number, self._cursor)
        response_id, is_kept = usable_id(response.get("id"), self._api.redact.known), not keeps_nothing(response)
        if self.id is None and (not is_kept or response_id is not None):
            self.kept = self.kept and is_kept
            self.id = response_id if self.kept else None
            self._announce()
        # Silence counts anew; without an id, to hang up would lose the answer.
        self._idle.deadline = trio.current_time() + IDLE if self.id is not None else math.inf

    def tell(self, phase: str) -> None:
        """Take what is going on, in words for a person."""
        self.searches += phase.startswith("searched")
        if self._watcher.on_phase is not None:
            self._watcher.on_phase(phase)
        if (phase := phase[:_LONGEST_PHASE]) != self.phase:  # the query of a search may be of any length
            self.phase = phase
            self._announce()

    def _announce(self) -> None:
        """Have all who wait for news look; a caller that has left waits for nothing but the id."""
        self.news.set()
        self.news = trio.Event()
        if self._left_until < math.inf and not (self.sent and self.kept and self.id is None):
            self._life.cancel(reason="its caller has left")


def _is_error(response: JsonObject) -> bool:
    """Tell whether a stream ended in an error: one without an id is an error of the stream, not of the response."""
    return response.get("status") == "failed" and "id" not in response


async def create_in_background(
    api: ResponsesApi,
    body: JsonObject,
    read: Callable[[JsonObject], T],
    *,
    watcher: Watcher = NOBODY,
) -> T:
    """Do what `ResponsesApi.create` does, in background mode and stored; where the API has no such mode, without.

    Cancelling this, or its time coming to an end, cancels the response at the API: that takes a second at most, in
    which the id of one that was just asked for may still come. `on_text` is told a text from its beginning again where
    the stream broke. Raises `UpstreamError`.
    """
    seconds = api.timeout_ms / 1000
    handle = Handle(api, body, watcher, seconds=seconds + LEAVING, cancels=True)
    with trio.move_on_after(seconds):
        async with alone() as nursery:
            nursery.start_soon(handle.live)
            try:
                await handle.over.wait()
            except BaseException:  # also Ctrl-C
                handle.leave()
                raise
        if (failure := handle.failure or response_error(handle.found, api.redact)) is not None:
            try:
                raise failure
            finally:
                handle.failure = failure = None  # whose traceback holds this frame
        return read(handle.found)
    became = "and it may go on at the API and cost something" if handle.sent else "and it was not sent"
    became = "and it was cancelled at the API" if handle.found.get("status") == "cancelled" else became
    raise DeadlineExceeded(
        f"No answer within {seconds:g} s, {became}; {ASK_LONGER}", code="timeout", maybe_paid=handle.sent
    )
