"""A question in background mode: the API works on it whatever becomes of the connection, until it is told to stop.

It is asked once. A stream that breaks is taken up again, and where that fails the response is looked up, neither of
which costs anything. Who leaves before the end has it cancelled at the API, which takes a second at most.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import replace
from http import HTTPStatus
from typing import Final, TypeVar
from urllib.parse import quote

import trio

from responses_mcp.errors import AuthenticationFailed, ConnectionFailed, DeadlineExceeded, UnusableReply, UpstreamError
from responses_mcp.json_types import JsonObject
from responses_mcp.responses_api.api import ASK_LONGER, STREAMED, Call, ResponsesApi
from responses_mcp.responses_api.failures import response_error
from responses_mcp.responses_api.response.reply import TOO_LONG, ReplyReader
from responses_mcp.responses_api.response.streaming import as_response, keeps_nothing
from responses_mcp.responses_api.retry import RetryPolicy, backoff
from responses_mcp.responses_api.watcher import NOBODY, Place, Watcher

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

_UNSHOWN: Final = (
    "The API says that the response has ended, and does not show its answer, which was paid for; asked again, the "
    "question is paid for again."
)

IDLE: Final = 180.0  # seconds without an event, after which a stream is given up
_MOST_NOT_FOUND: Final = 4  # in a row: the API may not know a response at once in all places
_REFUSED_FOR: Final = 60.0  # seconds: a gateway may refuse for a moment what it lets through later
_MOST_LEFT_OUT: Final = 2  # times, by the last event and by the look right behind it, that a later look may mend
_FIRST_WAIT: Final = 2.0  # seconds between two looks, growing
_LONGEST_WAIT: Final = 10.0
_ABOUT_IT: Final = re.compile(r"\b(?:background|store)\b", re.IGNORECASE)  # in a message that names no parameter
_LATER: Final = "try again later."
_LOOK: Final = 20.0  # seconds for a look at a response that has ended
_LEAVING: Final = 1.0  # seconds that who leaves may take to have the response cancelled


def _may_cancel_again(error: UpstreamError) -> bool:
    return error.retryable or isinstance(error, ConnectionFailed)  # which costs nothing, however often it is asked


_CANCELLING: Final = RetryPolicy(max_retries=3, wait=lambda _, __: _LEAVING / 5, repeats=_may_cancel_again)


class StoredResponses:
    """The responses that the API stores: begun in background mode, followed, looked up and cancelled by their id.

    `without_background` are the models for which background mode was refused, so that it is not asked for again.
    `keeps_unsaid` tells that a response was found that was kept and said neither so nor otherwise.
    """

    def __init__(self, api: ResponsesApi) -> None:
        self.api = api
        self.without_background = set[str]()
        self.keeps_unsaid = False

    async def begin(
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
        for `ResponsesApi.create`.
        """
        call = Call("/responses", {**body, **STREAMED}, policy, seconds, fixed=fixed)
        return await self.api.ask(call, lambda reader: self._shown(reader.response()), watcher)

    async def follow(self, response_id: str, *, after: int, watcher: Watcher) -> JsonObject:
        """Read the events of a stored response that come behind number `after`, until it ends; -1 reads all.

        Returns the Response of the last event, without output where that event has no answer: it is to be looked up.
        Raises `UpstreamError`, also where the stream ends before the response.
        """
        start = "" if after < 0 else f"&starting_after={after}"
        path = f"{_path_of(response_id)}?stream=true{start}&include_obfuscation=false"

        def ended(reader: ReplyReader) -> JsonObject:
            return self._shown(reader.response(begins=False, from_start=after < 0))

        return await self.api.ask(Call(path, seconds=math.inf), ended, watcher)

    async def look_up(self, response_id: str, *, seconds: float) -> JsonObject:
        """Return a stored response as it is now. Raises `UpstreamError`; with status 404, it is not known.

        Some servers answer 200 to a path that they do not know: what has nothing of a response is not known, either.
        """
        unknown = UnusableReply("The API answered a look-up with what is no response.", status=HTTPStatus.NOT_FOUND)
        try:
            found = await self._ask(Call(_path_of(response_id), seconds=seconds, cure=_LATER))
        except UpstreamError as error:
            if error.status is None and error.kind in ("unknown", "address"):
                raise unknown from error
            raise
        if not {"id", "status", "output"} & found.keys():
            raise unknown
        return found

    async def cancel(self, response_id: str, *, seconds: float, policy: RetryPolicy) -> JsonObject:
        """Cancel a response in background mode and return what it is then, which may have ended otherwise."""
        return await self._ask(Call(f"{_path_of(response_id)}/cancel", {}, policy, seconds, _LATER))

    async def _ask(self, call: Call) -> JsonObject:
        return await self.api.ask(call, lambda reader: self._shown(reader.json_object()))

    def _shown(self, response: JsonObject) -> JsonObject:
        return as_response(response, self.api.redact.known)

    def note_refusal(self, model: str, status: int | None) -> None:
        """Remember that a model was refused with background mode, and not without; `status` is that of the refusal."""
        if status is not None and status != HTTPStatus.NOT_FOUND:  # which a gateway may give for a moment
            self.without_background.add(model)
            log.warning("the API has no background mode for %s, so it is asked without", model)


def _path_of(response_id: str) -> str:
    return f"/responses/{quote(response_id, safe='')}"


class Looks:
    """The looks at a response: each after a longer wait, until it has ended and shows its answer.

    `last` is the Response that said first that it had ended, where it left its answer out, as some do in the last
    event: the answer is looked up then, and what `last` alone has told, such as the usage, still holds.
    Where `is_gone`, the API does not know the response any more; where `is_refused`, it cannot be read.
    """

    def __init__(self) -> None:
        self._done = 0
        self._failures = 0  # in a row, of any kind
        self._not_found = 0
        self._refused_since = math.inf
        self._left_out = 0
        self.last: JsonObject = {}
        self.is_gone = False
        self.is_refused = False

    def has_ended(self, response: JsonObject, *, unsaid: str | None = None, kept: bool = True) -> bool:
        """Tell whether a Response has ended and, if it is `kept`, shows its answer, or leaves it out again and again.

        One that names no status is `unsaid`, or has its answer: others may say nothing of the response.
        """
        status = response.get("status", unsaid or ("completed" if response.get("output") else None))
        if kept and response.get("status") in WITH_ANSWER and not response.get("output"):
            if not self.last:
                self.last, self._done = response, 0  # the next look comes at once, and the one behind it in 2 s
            self._left_out += 1
            return self._left_out > _MOST_LEFT_OUT
        return status in ENDED

    def with_last(self, response: JsonObject) -> JsonObject:
        """Return a Response with what `last` alone has told."""
        if not self.last:
            return response
        return {**self.last, **{name: value for name, value in response.items() if value is not None}}

    async def look(self, stored: StoredResponses, response_id: str) -> JsonObject:
        """Wait until the response is worth another look, and return it as it is then; costs nothing, however often.

        `last` stands where it cannot be had any more. Raises `UpstreamError`.
        """
        if self._done:
            await trio.sleep(min(_FIRST_WAIT * 1.5 ** min(self._done - 1, 10), _LONGEST_WAIT))
        self._done += 1
        try:
            found = await stored.look_up(response_id, seconds=_LOOK if self.last else IDLE)
            if self.last and found.get("status") is None and not found.get("output"):
                raise UnusableReply("The API answered a look-up with nothing of the response.")
        except UpstreamError as error:
            self._failed(error)
            if self.last and (self._failures >= _MOST_NOT_FOUND or self.is_refused):
                return self.last
            raise
        self._failures, self._not_found, self._refused_since = 0, 0, math.inf
        return self.with_last(found)

    def _failed(self, error: UpstreamError) -> None:
        now = trio.current_time()
        self._failures += 1
        self._not_found = self._not_found + 1 if error.status == HTTPStatus.NOT_FOUND else 0
        self._refused_since = min(self._refused_since, now) if _is_final(error) else math.inf
        self.is_gone = self._not_found >= _MOST_NOT_FOUND
        self.is_refused = error.code == TOO_LONG or now - self._refused_since >= _REFUSED_FOR


def is_repeatable(error: UpstreamError) -> bool:
    """Tell whether a request in background mode may be repeated: fewer may, as it goes on where nobody waits."""
    return error.retryable and error.progress == "refused"


def _is_final(error: UpstreamError) -> bool:
    """Tell whether a look at a response that failed so fails for a reason that does not pass by itself."""
    return isinstance(error, AuthenticationFailed) or error.status in (400, 401, 403, 405, 410, 413, 422)


def lost_previous(error: BaseException | None) -> bool:
    """Tell whether a question was refused because the API does not have the response any more that it follows up."""
    if not isinstance(error, UpstreamError) or error.status not in (400, 404):
        return False
    if error.code == "previous_response_not_found" or error.param == "previous_response_id":
        return True
    return error.status == HTTPStatus.BAD_REQUEST and not error.param and "previous_response_id" in error.message


def is_without_background(error: BaseException | None) -> bool:
    """Tell whether a server may have refused the request because it has no background mode, or keeps nothing.

    Whether it did, shows when it is asked without, which costs nothing where something else was meant.
    """
    if not isinstance(error, UpstreamError) or error.status not in (400, 404, 422):
        return False
    if error.status == HTTPStatus.NOT_FOUND:  # later on, it means a response that is kept no longer
        return not error.maybe_paid and not error.param and not (error.code or "").startswith("model_")
    if error.param:  # names what it is about: a vector store, or a member of a schema, has a longer name
        return error.param.removeprefix("body.") in ("background", "store")
    return _ABOUT_IT.search(error.message) is not None


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
    api = stored.api

    async def ask_without() -> T:
        return await api.create(body, read, watcher=watcher)

    if body["model"] in stored.without_background:
        return await ask_without()
    asking = _Asking(stored, body, watcher)
    with trio.move_on_after(api.timeout_ms / 1000):
        try:
            return read(await asking.response())
        except UpstreamError as error:
            if asking.sent or not is_without_background(error):  # one that was taken is not asked a second time
                raise
            refused = error.status
        asking.sent = True  # in another way
        answer = await ask_without()
        stored.note_refusal(body["model"], refused)
        return answer
    said = f"No answer within {api.timeout_ms / 1000:g} s{asking.became}; {ASK_LONGER}"
    raise DeadlineExceeded(said, code="timeout", maybe_paid=asking.sent)


class _Asking:
    """One question on its way. The work is a task of its own, so that it can end properly when its caller leaves."""

    def __init__(self, stored: StoredResponses, body: JsonObject, watcher: Watcher) -> None:
        self._stored = stored
        self._body = {**body, "background": True, "store": True}
        self._watcher = replace(watcher, on_place=self._placed, on_send=self._sending)
        self._bill = watcher.bill
        self._life = trio.CancelScope(shield=True)
        self._reading = trio.CancelScope()
        self._idle = trio.CancelScope()
        self._over = trio.Event()
        self._leaving = False
        self.sent = False  # the request is on its way, or was and has not failed
        self._id: str | None = None
        self._cursor = -1
        self._looks = Looks()
        self._found: JsonObject | None = None
        self._told: JsonObject = {}  # what is known of one whose caller has left
        self._failure: Exception | None = None

    @property
    def became(self) -> str:
        """Say what became of a question whose caller has left."""
        status = self._told.get("status")
        if status == "cancelled":
            return ", and it was cancelled at the API"
        if status in ENDED:
            return ", and it had ended at the API, which did not show its answer in time"
        return ", and it may go on at the API and cost something" if self.sent else ", and it was not sent"

    async def response(self) -> JsonObject:
        """Return the Response, which ended well or is incomplete. Raises `UpstreamError`."""
        interrupted: BaseException | None = None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._work)
            try:
                await self._over.wait()
            except trio.Cancelled:
                self._leave()
                raise
            except BaseException as error:  # noqa: BLE001  # Ctrl-C, raised outside the nursery, so that it is in no group
                self._leave()
                interrupted = error
        if interrupted is not None:
            try:
                raise interrupted
            finally:
                del interrupted  # its traceback holds this frame
        if self._failure is not None:
            failure, self._failure = self._failure, None
            try:
                raise failure
            finally:
                del failure  # its traceback holds this frame
        found, self._found = self._found or {}, None
        if (failed := response_error(found, self._stored.api.redact)) is not None:
            raise failed
        return found

    def _leave(self) -> None:
        """Have the work end: at once where nothing was sent, else when the API was told, in a second at most."""
        self._leaving = True
        if not self.sent:
            self._life.cancel(reason="nothing was sent")
        else:
            self._life.deadline = trio.current_time() + _LEAVING
            if self._id is not None:
                self._reading.cancel(reason="its caller has left")

    @trio.lowlevel.enable_ki_protection  # Ctrl-C here would leave the response at the API to go on
    async def _work(self) -> None:
        with self._life:
            try:
                with self._reading:
                    self._found = await self._result()
            except Exception as error:  # noqa: BLE001  # raised where it is waited for, and so in no group
                self._failure = error
            broken = self._failure is not None and not isinstance(self._failure, UpstreamError)  # by who listens
            self._told = self._found or self._looks.last
            if (self._leaving or broken) and self._id is not None and self._found is None:
                with suppress(UpstreamError):
                    now = await self._stored.cancel(self._id, seconds=_LEAVING, policy=_CANCELLING)
                    self._told = self._looks.with_last(now)
        if self._bill is not None:
            self._bill.take(self._told)
        self._over.set()

    async def _result(self) -> JsonObject:
        try:
            found = await self._ask()
        except UpstreamError as error:
            if self._id is None:
                if self._bill is not None and error.progress != "refused":
                    self._bill.maybe_billed()
                raise
            log.debug("openai(background): the stream broke: %s", error)
        else:
            if self._has_ended(found, unsaid="completed"):
                return found
            if self._id is None:  # or one with which nothing can be had
                raise ConnectionFailed("The API began and told no id of it; ask again.", maybe_paid=True)
        if not self._looks.last and self._has_ended(found := await self._follow()):
            return found
        return await self._look_up()

    def _has_ended(self, found: JsonObject, unsaid: str | None = None) -> bool:
        """Tell whether the Response that ends a stream has ended, which an event about the stream does not tell."""
        broke = self._id is not None and "id" not in found and found.get("status") == "failed"
        return not broke and self._looks.has_ended(found, unsaid=unsaid, kept=self._id is not None)

    async def _ask(self) -> JsonObject:
        api = self._stored.api
        policy = RetryPolicy(max_retries=api.max_retries, wait=backoff, repeats=self._may_repeat)
        with trio.CancelScope() as self._idle:
            found = await self._stored.begin(
                self._body,
                watcher=self._watcher,
                policy=policy,
                seconds=api.timeout_ms / 1000 + _LEAVING,  # by then its caller has left
            )
            if not keeps_nothing(found):
                self._id = self._id or found.get("id")
            return found
        raise ConnectionFailed(f"The API was silent for {IDLE:g} s.", maybe_paid=True)

    async def _follow(self) -> JsonObject:
        self._tell("taking up the stream again")
        after = self._cursor if self._watcher.on_text is None else -1  # a text is told from its beginning
        with trio.CancelScope(deadline=trio.current_time() + IDLE) as self._idle:
            try:
                watcher = replace(self._watcher, on_send=None, bill=None)
                return await self._stored.follow(self._id or "", after=after, watcher=watcher)
            except UpstreamError as error:
                log.debug("openai(background): the stream cannot be taken up: %s", error)
        return {}

    async def _look_up(self) -> JsonObject:
        """Return the Response when it has ended."""
        while True:
            try:
                found = await self._looks.look(self._stored, self._id or "")
            except UpstreamError as error:
                if self._looks.is_gone:  # the 404 is about the request, and names the model
                    raise UnusableReply(GONE, maybe_paid=True) from error
                if self._looks.is_refused:
                    error.maybe_paid = True
                    raise
                self._tell("waiting for the API")
            else:
                if found is self._looks.last:
                    raise UnusableReply(_UNSHOWN, maybe_paid=True)
                if self._looks.has_ended(found):
                    return found

    async def _sending(self) -> None:
        if self._leaving:  # since it was last refused
            self._life.cancel(reason="nobody waits for it")
            await trio.lowlevel.checkpoint()
        self.sent = True

    def _may_repeat(self, error: UpstreamError) -> bool:
        self.sent = error.progress != "refused"
        if self.sent:  # so it is worded, and told to who would ask again
            error.maybe_paid, error.retryable = True, False
        self._idle.deadline = math.inf
        return not self._leaving and is_repeatable(error)

    def _placed(self, place: Place) -> None:
        """Take note of an event: in the step in which it is read, without a checkpoint."""
        if place.number is not None:
            self._cursor = max(place.number, self._cursor)
        if place.kept:
            self._id = self._id or place.response_id
        if self._id is not None:  # without one, to hang up would lose the answer
            self._idle.deadline = trio.current_time() + IDLE
        if self._leaving and self._id is not None:
            self._reading.cancel(reason="its caller has left")

    def _tell(self, phase: str) -> None:
        if self._watcher.on_phase is not None:
            self._watcher.on_phase(phase)
