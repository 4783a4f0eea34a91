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
from typing import Final, TypeVar
from urllib.parse import quote

import trio

from responses_mcp.errors import AuthenticationFailed, ConnectionFailed, DeadlineExceeded, UnusableReply, UpstreamError
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

UNSHOWN: Final = (
    "The API says that the response has ended, and does not show its answer, which was paid for; asked again, the "
    "question is paid for again."
)

IDLE: Final = 180.0  # seconds without an event, after which a stream is given up
_MOST_NOT_FOUND: Final = 4  # in a row: the API may not know a response at once in all places
_REFUSED_FOR: Final = 60.0  # seconds: a gateway may refuse for a moment what it lets through later
_MOST_LEFT_OUT: Final = 2  # times, by the last event and by the look right behind it, that a later look may mend
_FIRST_WAIT: Final = 2.0  # seconds between two looks, growing
_LONGEST_WAIT: Final = 10.0
# What can stand in an address, and is no step within one. Those of proxies are long.
_ID: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.:~=+@|-]{0,1023}")
_ABOUT_IT: Final = re.compile(r"\b(?:background|store)\b", re.IGNORECASE)  # in a message that names no parameter
LATER: Final = "try again later."
_LONGEST_PHASE: Final = 200  # characters
_LOOK: Final = 20.0  # seconds for a look at a response that has ended
LEAVING: Final = 1.0
"""Seconds that a caller that leaves may take, for an id to come or to have the response cancelled."""


def _may_cancel_again(error: UpstreamError) -> bool:
    return error.retryable or isinstance(error, ConnectionFailed)  # which costs nothing, however often it is asked


CANCEL_AT_ONCE: Final = RetryPolicy(max_retries=3, wait=lambda _, __: LEAVING / 5, repeats=_may_cancel_again)
"""For a caller that leaves."""

CANCEL_FOR_SURE: Final = RetryPolicy(max_retries=6, wait=backoff, repeats=_may_cancel_again, try_seconds=5, slow=LATER)
"""For a caller that waits: about 20 seconds, or a minute if the API asks for a wait."""


def has_ended(response: JsonObject, unsaid: str | None = None) -> bool:
    """Tell whether a Response has ended; one that names no status is `unsaid`, or has its answer."""
    return response.get("status", unsaid or ("completed" if response.get("output") else None)) in ENDED


class StoredResponses:
    """The responses that the API stores: looked up and cancelled by their id, at no cost.

    `without_background` are the models for which background mode was refused, so that it is not asked for again.
    """

    def __init__(self, api: ResponsesApi) -> None:
        self.api = api
        self.without_background = set[str]()

    async def look_up(self, response_id: str, *, seconds: float) -> JsonObject:
        """Return a stored response as it is now. Raises `UpstreamError`; with status 404, it is not known.

        Some servers answer 200 to a path that they do not know: what has nothing of a response is not known, either.
        """
        unknown = UnusableReply("The API answered a look-up with what is no response.", status=HTTPStatus.NOT_FOUND)
        try:
            found = await self.ask(Call(path_of(response_id), seconds=seconds, cure=LATER))
        except UpstreamError as error:
            if error.status is None and error.kind in ("unknown", "address"):
                raise unknown from error
            raise
        if not {"id", "status", "output"} & found.keys():
            raise unknown
        if found.get("id", response_id) != response_id:
            raise UnusableReply("The API answered a look-up with another response.")
        return found

    async def cancel(self, response_id: str, *, seconds: float, policy: RetryPolicy) -> JsonObject:
        """Cancel a response in background mode and return what it is then, which may have ended otherwise."""
        return await self.ask(Call(f"{path_of(response_id)}/cancel", {}, policy, seconds, LATER))

    async def ask(
        self,
        call: Call,
        read: Callable[[ReplyReader], JsonObject] = ReplyReader.json_object,
        watcher: Watcher = NOBODY,
    ) -> JsonObject:
        """Do what `ResponsesApi.ask` does, and return the Response that `read` finds, without an id that is none."""
        return await self.api.ask(call, lambda reader: as_response(read(reader), self.api.redact.known), watcher)


def usable_id(value: object, redact: Redact) -> str | None:
    """Return the id of a Response, None for what is none: it is asked for by that, and kept, so it holds no secret."""
    return value if isinstance(value, str) and _ID.fullmatch(value) and redact(value) == value else None


def as_response(found: JsonObject, redact: Redact) -> JsonObject:
    """Return a Response without an `id` or a `status` that cannot be one; without an id, only the API's own are."""
    has_id = usable_id(found.get("id"), redact) is not None
    has_status = found.get("status") in STATES or (has_id and isinstance(found.get("status"), str))
    known = {"id": has_id, "status": has_status}
    return {name: value for name, value in found.items() if known.get(name, True)}


def keeps_nothing(response: JsonObject) -> bool:
    """Tell whether a Response says that the API works on it in the foreground, or does not store it."""
    return response.get("background") is False or response.get("store") is False


def path_of(response_id: str) -> str:
    """Return the path under which a stored response is."""
    return f"/responses/{quote(response_id, safe='')}"


def _is_final(error: UpstreamError) -> bool:
    """Tell whether a look at a response that failed so fails for a reason that does not pass by itself."""
    return isinstance(error, AuthenticationFailed) or error.status in (400, 401, 403, 405, 410, 413, 422)


def _is_without_background(error: UpstreamError) -> bool:
    """Tell whether a server may have refused the request because it has no background mode, or keeps nothing.

    Whether it did, shows when it is asked without, which costs nothing where something else was meant.
    """
    if error.status == HTTPStatus.NOT_FOUND:  # later on, it means a response that is kept no longer
        return not error.maybe_paid and not error.param and not (error.code or "").startswith("model_")
    if error.param:  # names what it is about: a vector store, or a member of a schema, has a longer name
        about = error.param.removeprefix("body.") in ("background", "store")
    else:
        about = _ABOUT_IT.search(error.message) is not None
    return about and error.status in (400, 422)


class Handle:
    """One response: asked for once, followed to its end, and left or cancelled by whoever began it.

    `live` is its work, in a task that the caller begins; `over` is set when that has ended. Then `found` is the
    Response, or `failure` says why there is none. `body` has no background mode; without `store: false` in it, and
    unless the API is known to have no such mode, the API is asked to keep the response (`kept`), under an `id` that the
    first event names. `sent` is true from right before a request until the API has refused it. `phase` says what is
    going on, and `searches` counts the searches that were seen. `news` is set, and made anew, in the step in which one
    of these changes. With `cancels`, leaving cancels the response at the API. `last` is what is known of a response
    that was left, and `unread` why the last look at it failed.
    """

    def __init__(
        self,
        stored: StoredResponses,
        body: JsonObject,
        watcher: Watcher,
        *,
        seconds: float,
        fixed: AbstractSet[str] = frozenset(),
        cancels: bool = False,
    ) -> None:
        self.id: str | None = None
        self.kept = body.get("store") is not False and body["model"] not in stored.without_background
        self.sent = False
        self.phase = f"asking {body['model']}"
        self.searches = 0
        self.news = trio.Event()
        self.over = trio.Event()
        self.found: JsonObject | None = None
        self.last: JsonObject = {}
        self.failure: Exception | None = None
        self.unread: UpstreamError | None = None
        self.bill = watcher.bill
        self._stored = stored
        self._body = body
        self._watcher = watcher
        self._seconds = seconds
        self._fixed = fixed
        self._cancels = cancels
        self._life = trio.CancelScope(shield=True)
        self._reading = trio.CancelScope()
        self._idle = trio.CancelScope()
        self._leaving = False
        self._cursor = -1
        self._looks = 0
        self._failures = 0  # of looks, in a row
        self._not_found = 0  # of them
        self._refused_since = math.inf
        self._left_out = 0  # times

    def with_last(self, response: JsonObject) -> JsonObject:
        """Return a Response with what `last` alone has told, which said that the response had ended."""
        return {**self.last, **{name: value for name, value in response.items() if value is not None or not self.last}}

    def leave(self) -> None:
        """Have the work end: at once where nothing was sent, else with the id, or in a second at most."""
        self._leaving = True
        if not self.sent:
            self._life.cancel(reason="nothing was sent")
            return
        self._life.deadline = min(self._life.deadline, trio.current_time() + LEAVING)
        if self.id is not None or not self.kept:  # there is nothing to wait for
            self._reading.cancel(reason="its caller has left")

    def stop(self) -> None:
        """Stop the work at once, as it is, and have all who wait for news look."""
        self._life.cancel(reason="it is over")
        self._announce()

    @trio.lowlevel.enable_ki_protection  # Ctrl-C here would leave the response at the API to go on
    async def live(self, admit: Callable[[], Awaitable[Bill]] | None = None) -> None:
        """Ask, once `admit` has given a bill, and follow the response until it has ended, or was left."""
        with self._life:
            try:
                if admit is not None:
                    self.bill = await admit()
                    # Not within the moment in which a crash leaves open what was paid for; an error comes back.
                    with suppress(UpstreamError):
                        await self._stored.api.prepare()
                with self._reading:
                    self.found = await self._end()
            except Exception as error:  # noqa: BLE001  # raised where it is waited for, and so in no group
                self.failure = error
            broken = self.failure is not None and not isinstance(self.failure, UpstreamError)  # by who listens
            self.last = self.found or self.last
            if self._cancels and (self._leaving or broken) and self.id is not None and self.found is None:
                with suppress(UpstreamError):
                    now = await self._stored.cancel(self.id, seconds=LEAVING, policy=CANCEL_AT_ONCE)
                    self.last = self.with_last(now)
        if self.bill is not None:
            self.bill.take(self.last)
        self.over.set()

    async def _end(self) -> JsonObject:
        broke = True
        try:
            found = await self._ask()
        except UpstreamError as error:
            if self.id is None:
                if self.bill is not None and error.progress != "refused":
                    self.bill.maybe_billed()
                raise
            log.debug("openai(background): the stream broke: %s", error)
        else:
            if self._has_ended(found, unsaid="completed"):
                return found
            if self.id is None:  # or one with which nothing can be had
                raise ConnectionFailed("The API began and told no id of it; ask again.", maybe_paid=True)
            broke = found.get("status") == "failed"
        if broke and not self.last and self._has_ended(found := await self._follow()):
            return found
        while True:
            if (seen := await self._look()) is not None:
                return seen

    def _has_ended(self, found: JsonObject, *, unsaid: str | None = None, looked: bool = False) -> bool:
        """Tell whether a Response has ended and, if it is kept, shows its answer, or leaves it out again and again.

        One that names no status is `unsaid`, or has its answer. A failure at the end of a stream, without an id, is
        one of the stream, unless the response was `looked` up.
        """
        if self.id is not None and found.get("status") == "failed" and "id" not in found and not looked:
            return False
        if self.id is not None and found.get("status") in WITH_ANSWER and not found.get("output"):
            if not self._left_out:
                self.last, self._looks = found, 0  # the next look comes at once, and the one behind it in 2 s
            self._left_out += 1
            return self._left_out > _MOST_LEFT_OUT
        return has_ended(found, unsaid)

    async def _ask(self) -> JsonObject:
        """Send the question; where the API has no background mode, which costs nothing, once more without."""
        if not self.kept:
            return await self._send(self._body)
        try:
            return await self._send({**self._body, "background": True, "store": True})
        except UpstreamError as error:
            if self.sent or not _is_without_background(error):  # one that was taken is not asked a second time
                raise
            refused = error.status
        self.kept = False
        self._announce()
        found = await self._send(self._body)
        if found.get("status") in WITH_ANSWER and refused != HTTPStatus.NOT_FOUND:  # which a gateway gives for a moment
            self._stored.without_background.add(self._body["model"])
            log.warning("the API has no background mode for %s, so it is asked without", self._body["model"])
        return found

    async def _send(self, body: JsonObject) -> JsonObject:
        """Send a request: the only place where something that is paid for begins."""
        policy = RetryPolicy(max_retries=self._stored.api.max_retries, wait=backoff, repeats=self._may_repeat)
        call = Call("/responses", {**body, **STREAMED}, policy, self._seconds, fixed=self._fixed)
        with trio.CancelScope() as self._idle:
            found = await self._stored.ask(call, ReplyReader.response, self._listening(self._sending))
            if keeps_nothing(found):  # as some say in their last event alone
                self.kept = False
            elif self.kept:
                self.id = self.id or found.get("id")
            self._announce()
            return found
        raise ConnectionFailed(f"The API was silent for {IDLE:g} s.", maybe_paid=True)

    async def _follow(self) -> JsonObject:
        """Read the events that come behind the last one, and return the Response of the last of them; {} without it."""
        self.tell("taking up the stream again")
        anew = self._cursor < 0 or self._watcher.on_text is not None  # a text is told from its beginning
        after = "" if anew else f"&starting_after={self._cursor}"
        call = Call(f"{path_of(self.id or '')}?stream=true{after}&include_obfuscation=false", seconds=math.inf)
        with trio.CancelScope(deadline=trio.current_time() + IDLE) as self._idle:
            try:
                read = partial(ReplyReader.response, begins=False, from_start=anew)
                return await self._stored.ask(call, read, self._listening(None))
            except UpstreamError as error:
                log.debug("openai(background): the stream cannot be taken up: %s", error)
        return {}

    def _listening(self, on_send: Callable[[], Awaitable[None]] | None) -> Watcher:
        """Return who listens to a stream; what comes right before a request, and its bill, are for the first one."""
        bill = None if on_send is None else self.bill
        return replace(self._watcher, on_phase=self.tell, on_event=self._placed, on_send=on_send, bill=bill)

    async def _look(self) -> JsonObject | None:
        """Wait until the response is worth another look, which costs nothing, and return it if it has ended.

        Raises `UpstreamError` where it cannot be had any more.
        """
        if self._looks:
            await trio.sleep(min(_FIRST_WAIT * 1.5 ** min(self._looks - 1, 10), _LONGEST_WAIT))
        self._looks += 1
        try:
            found = await self._stored.look_up(self.id or "", seconds=_LOOK if self.last else IDLE)
            if self.last and found.get("status") is None and not found.get("output"):
                raise UnusableReply("The API answered a look-up with nothing of the response.")
        except UpstreamError as error:
            self._failed(error)
            return None
        self.unread, self._failures, self._not_found, self._refused_since = None, 0, 0, math.inf
        if self._has_ended(found := self.with_last(found), looked=True):
            return found
        self.tell("waiting at the API" if found.get("status") == "queued" else "working")
        return None

    def _failed(self, error: UpstreamError) -> None:
        """Count a look that failed. Raises `UpstreamError` where no other one is worth it."""
        now = trio.current_time()
        self._failures += 1
        self._not_found = self._not_found + 1 if error.status == HTTPStatus.NOT_FOUND else 0
        self._refused_since = min(self._refused_since, now) if _is_final(error) else math.inf
        is_refused = error.code == TOO_LONG or now - self._refused_since >= _REFUSED_FOR
        if self.last and (self._failures >= _MOST_NOT_FOUND or is_refused):
            raise UnusableReply(UNSHOWN, maybe_paid=True) from error
        if self._not_found >= _MOST_NOT_FOUND:  # the 404 is about the request, and names the model
            raise UnusableReply(GONE, maybe_paid=True) from error
        if is_refused:
            error.maybe_paid = True
            raise error
        self.unread = error
        self.tell(f"the response cannot be looked up: {error.message}")

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
        if self._leaving and not self.sent:
            self._life.cancel(reason="nobody waits for it")
        return error.retryable and not self.sent

    def _placed(self, event: JsonObject) -> None:
        """Take note of an event: in the step in which it is read, without a checkpoint."""
        number, response = event.get("sequence_number"), as_object(event.get("response"))
        if isinstance(number, int):
            self._cursor = max(number, self._cursor)
        response_id, is_kept = usable_id(response.get("id"), self._stored.api.redact.known), not keeps_nothing(response)
        if self.id is None and (not is_kept or response_id is not None):
            self.kept = self.kept and is_kept
            self.id = response_id if self.kept else None
            self._announce()
        # Silence counts anew; without an id, to hang up would lose the answer.
        self._idle.deadline = trio.current_time() + IDLE if self.id is not None else math.inf
        if self._leaving and self.id is not None:
            self._reading.cancel(reason="its caller has left")

    def tell(self, phase: str) -> None:
        """Take what is going on, in words for a person."""
        self.searches += phase.startswith("searched")
        if self._watcher.on_phase is not None:
            self._watcher.on_phase(phase)
        if (phase := phase[:_LONGEST_PHASE]) != self.phase:  # the query of a search may be of any length
            self.phase = phase
            self._announce()

    def _announce(self) -> None:
        self.news.set()
        self.news = trio.Event()


async def create_in_background(
    stored: StoredResponses,
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
    seconds = stored.api.timeout_ms / 1000
    handle = Handle(stored, body, watcher, seconds=seconds + LEAVING, cancels=True)
    if not handle.kept:
        return await stored.api.create(body, read, watcher=watcher)
    with trio.move_on_after(seconds):
        async with alone() as nursery:
            nursery.start_soon(handle.live)
            try:
                await handle.over.wait()
            except BaseException:  # also Ctrl-C
                handle.leave()
                raise
        if (failure := handle.failure or response_error(handle.found or {}, stored.api.redact)) is not None:
            try:
                raise failure
            finally:
                handle.failure = failure = None  # whose traceback holds this frame
        return read(handle.found or {})
    status = handle.last.get("status")
    became = ", and it may go on at the API and cost something" if handle.sent else ", and it was not sent"
    if status == "cancelled":
        became = ", and it was cancelled at the API"
    elif status in ENDED:
        became = ", and it had ended at the API, which did not show its answer in time"
    raise DeadlineExceeded(
        f"No answer within {seconds:g} s{became}; {ASK_LONGER}", code="timeout", maybe_paid=handle.sent
    )
