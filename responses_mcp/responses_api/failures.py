"""What a failure of the API means: one `Failure` for every way in which it comes, and one table of kinds.

A failure comes as an HTTP status, as a body with status 200, as an event of a stream, or within a Response.
`read_failure` brings all of them into one form, `kind_of` finds the kind, and `KINDS` says for each kind what happened,
what to do, whether to repeat the request, and whether it may be worked on all the same. Output that came before a
failure outweighs the kind: the request may have been paid for, and is not repeated.

What the API said is redacted before it is cut: half a key is still half a key.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import Final, Literal, NamedTuple, cast

from responses_mcp.errors import (
    AuthenticationFailed,
    ConnectionFailed,
    KeyUnusable,
    Progress,
    QuotaExhausted,
    RateLimited,
    RequestRefused,
    ServiceFailed,
    UnusableReply,
    UpstreamError,
)
from responses_mcp.json_types import JsonObject, as_object
from responses_mcp.redaction import Redact, redacted_beginning
from responses_mcp.responses_api.retry import asked_wait
from responses_mcp.sanitization import sanitized

LONGEST_READ: Final = 64 * 1024  # bytes of an error body, characters of a text; the rest of an HTML page says nothing
_LONGEST_TEXT = 300  # characters of a message, with what the API said in it
_LONGEST_TOLD = 400  # characters that clients get of one (spec 8.2)
_LONGEST_WORD = 64  # characters of a type or a code
_LONGEST_ID = 100
_LONGEST_BODY = 300  # characters of a body in the debug log (spec 8.1)
_LONGEST_WAIT = 86_400  # seconds that are named; a header may have a number of 300 digits
_MOST_WRITTEN = 1_000  # values and brackets of details that are no text
_MOST_NESTED = 4  # objects within each other, of which the innermost has the words
_NAME = re.compile(r"[\w.:-]+", re.ASCII)
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9_]+")
_NOTHING: Final = frozenset(
    {"", "0", "200", "none", "null", "error", "failed", "fail", "response.error", "response.failed"}
)
# Statuses that a message may name; anything else could be a secret.
_KNOWN_STATUSES = ("queued", "in_progress", "cancelled")
_UNFINISHED: Final = frozenset({"in_progress", "searching", "queued", "interpreting", "generating", "failed"})
# Where servers put the parts of an error.
_NESTED: Final = ("error", "errors", "detail", "fault", "response")
_MESSAGES: Final = (
    *("message", "msg", "error_description", "error_message", "errorMessage", "error_msg", "Message", "faultstring"),
    *("detail", "title", "reason"),
)
_CODES: Final = ("code", "error_code", "errorCode", "errorcode", "status")
_STATUSES: Final = ("status", "status_code", "statusCode", "http_status", "httpStatus")
_WAITS: Final = {"retry_after_ms": 0.001} | dict.fromkeys(
    ("retry_after", "retryAfter", "retry_after_seconds", "resets_in_seconds"), 1.0
)
_OF_QUESTION: Final = ("input", "ctx", "url")  # in the details of a validator
_RESPONSE_STATES: Final = ("completed", "failed", "incomplete", "cancelled", "queued", "in_progress")


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """What the API says of a failure, redacted.

    `status` is the HTTP status, or the number that stands in the body in its place. `raw` is what a provider said to
    the gateway that answers. `wait` is how many seconds the words ask to wait.
    """

    status: int | None = None
    type: str | None = None
    code: str | None = None
    param: str | None = None
    message: str = ""
    raw: str = ""
    wait: float | None = None

    @property
    def words(self) -> str:
        """Return all that was said."""
        return f"{self.message} The provider says: {self.raw}".lstrip() if self.raw else self.message


class Kind(NamedTuple):
    """A row of the table.

    `words` are looked for in code and type, `said` in the message where the HTTP status is in `said_with`, or there is
    none. `again` tells who repeats the request: nobody, calls that are not searches, or all. `is_worked_on` tells that
    the API may go on behind the failure.
    """

    error: type[UpstreamError]
    happened: str
    cure: str
    words: str = r"(?!)"
    said: str = r"(?!)"
    said_with: tuple[int, ...] = ()
    again: Literal["never", "calls", "all"] = "never"
    is_worked_on: bool = False


_LATER = "Try again later, or check openai.base_url if it is not OpenAI's."
_PARAMETERS = "Check the profile's model and its parameters."
_REFUSED = "The API refused the request"
_FAILED = "The API failed"

# In the order in which they are tried: what is exhausted or refused for good stands before what may pass.
KINDS: Final[Mapping[str, Kind]] = {
    "content": Kind(
        *(RequestRefused, _REFUSED, "Ask in other words."),
        r"content_(?:filter|policy|management)|moderation|safety|\w_policy(?:_|$)|^policy_violation|responsible_ai|guardrail|^cyber|^bio_"
        r"|invalid_prompt|inspection",
        r"(?:usage|content|management|safety) (?:polic|guideline)|flagged|moderation|safety system"
        r"|terms of (?:us|serv)|content filter|inappropriate|prompt (?:was |is )?blocked",
        (400, 403, 422, 424),
    ),
    "too_long": Kind(
        *(RequestRefused, "The request is too long", "Ask in fewer words, or choose a model that takes more."),
        r"context_(?:length|window|size)|(?:string|array)_above_max|too_(?:long|large)|length_exceeded",
        r"maximum context length|context (?:length|window|size)|(?:prompt|input|request|query) (?:is |was )?too "
        r"(?:long|large)|string too long|reduce the length",
        (400, 413, 422, 429),
    ),
    "quota": Kind(
        *(QuotaExhausted, "The account's quota is used up", "Check plan and billing with the provider."),
        r"insufficient_(?:\w{1,30}_)?(?:quota|balance|credits?|funds?)|(?:quota|balance|credits?)_(?:\w{1,30}_)?(?:exceeded"
        r"|exhausted|too_low)|exceeded_\w{0,30}quota|^quota$|billing|payment_required|arrear|budget",
        r"exceeded your current quota|insufficient (?:user |account )?(?:quota|balance|credits?|funds)"
        r"|balance is (?:too low|insufficient)|quota exceeded|(?:no|any|all available|not enough|out of) credits"
        r"|out of (?:\w{1,30} ){0,3}quota|quota (?:is |was )?(?:exhausted|used up)",
        (400, 402, 403, 429),
    ),
    "usage_limit": Kind(
        *(RateLimited, "The API's limit for a day, or that of the plan, is used up"),
        "Ask again when it is reset, or have the provider raise it.",
        r"(?:usage|daily|weekly|monthly|plan|day)_limit|per_day",
        r"\bper[ -](?:day|week|month)\b|\b[rt]pd\b"
        r"|\b(?:daily|weekly|monthly|plan|usage) (?:\w{1,30} ){0,2}(?:limit|allocation|quota)",
        (403, 429),
    ),
    "model": Kind(
        *(RequestRefused, "The API does not offer this model"),
        "Check the model, the key's access to it, and openai.base_url.",
        r"model_(?:\w{1,30}_)?(?:not|access|invalid|deprecated|unsupported)|(?:invalid|unknown|unsupported)_model"
        r"|deployment_not_found",
        r"\bmodel\b.{0,120}?\b(?:not found|not exist|no longer|deprecated|decommissioned|is unknown)"
        r"|(?:unknown|invalid|no such) model|not a valid model|model identifier is invalid|no models? loaded",
        (400, 403, 404, 410, 422),
    ),
    "right": Kind(
        *(RequestRefused, "The API key may not do this", "Check the key's project, its model access and your region."),
        r"permission|forbidden|access_denied|scope|not_authori[sz]ed|\bip_|country|region|residency|organization",
        r"missing scope|insufficient permission|\bip(?: address)?\b|member of an organization|country, region"
        r"|not allowed to",
        (401, 403),
    ),
    "key": Kind(
        *(AuthenticationFailed, "The API refused the key", "Put a valid key into {key_from}."),
        r"api_key|invalid_key|authenticat|unauthori[sz]ed|invalid_(?:\w{1,30}_)?token|token_expired|deactivated",
        r"(?:invalid|incorrect|wrong|missing|expired) (?:api.?key|(?:\w{1,30} )?token provided)|unauthori[sz]ed"
        r"|authenticat|api.?key (?:is )?(?:not valid|invalid|expired)"
        r"|^(?:invalid|wrong|missing|expired) (?:key|token)\W*$",
        (400,),
    ),
    "rate_limit": Kind(
        *(RateLimited, "The API limits the rate of requests", "Wait a while and ask again."),
        r"rate_?limit|too_many|throttl|^requests$|^tokens$|resource_exhausted",
        r"rate.?limit|too many requests",
        again="all",
    ),
    "timeout": Kind(
        *(ServiceFailed, _FAILED, _LATER, r"time_?d?_?out|deadline", r"\btimed out|\btime-?out"),
        again="all",
        is_worked_on=True,
    ),
    "overload": Kind(
        *(ServiceFailed, "The API is overloaded", _LATER, r"overload|unavailable|slow_?down|capacity|busy"),
        r"overload|unavailable|at capacity|\bbusy\b|slow down",
        again="calls",
        is_worked_on=True,
    ),
    "conflict": Kind(ServiceFailed, _FAILED, _LATER, r"conflict", again="calls"),
    "server": Kind(
        *(ServiceFailed, _FAILED, _LATER),
        r"server_error|internal|^api_error$|bad_gateway|upstream|provider_error|processing_error",
        r"internal (?:server )?error|bad gateway|server had an error|provider returned|upstream",
        again="calls",
        is_worked_on=True,
    ),
    "parameter": Kind(
        *(RequestRefused, _REFUSED, _PARAMETERS),
        r"(?:unsupported|unknown|invalid|missing|extra)_(?:\w{1,30}_)?(?:parameter|value|type|field|union|enum)|_above_max"
        r"|_below_min|extra_forbidden|validation|literal_error",
    ),
    "address": Kind(
        *(RequestRefused, "The API does not know what was asked for"),
        "Check the model, and whether openai.base_url has a Responses API.",
        r"unknown_url|^not_found(?:_error)?$|no_route",
        r"^(?:404\W{1,3})?(?:page |route |path |url )?not found\W*$|unexpected endpoint",
    ),
    "request": Kind(
        *(RequestRefused, _REFUSED, _PARAMETERS),
        r"invalid_(?:\w{1,30}_)?request|bad_request|invalid_argument|invalid_prompt",
    ),
    "unknown": Kind(RequestRefused, "The API did not answer", "Ask again later, or change the question or the model."),
    "connection": Kind(ConnectionFailed, "", "", again="all"),
    "reply": Kind(UnusableReply, "", "", is_worked_on=True),
}
_PATTERNS: Final = {name: (re.compile(kind.words), re.compile(kind.said)) for name, kind in KINDS.items()}
_REFINING: Final = ("content", "too_long", "quota", "usage_limit", "model")  # by their words, whatever the code says
_STATUSES_OF: Final[Mapping[str, tuple[int, ...]]] = {
    "request": (400, 422),
    "key": (401,),
    "quota": (402,),
    "right": (403,),
    "address": (404, 405, 407),
    "timeout": (408, 504),
    "conflict": (409,),
    "too_long": (413,),
    "rate_limit": (429,),
    "overload": (503, 529),
}
_OF_STATUS: Final = {status: name for name, statuses in _STATUSES_OF.items() for status in statuses}
# What to do, and what happened, in place of what the kind says, by what is found in `status code param: message`.
_SPECIAL: Final = tuple(
    (kind, re.compile(pattern), cure, happened)
    for kind, pattern, cure, happened in (
        ("right", r"scope", "Give the key the permission that is named there, or use a key that has it.", ""),
        ("right", r"\bip(?:_|\b)", "Allow the address of this machine for the key's project, or change the key.", ""),
        ("right", r"organization", "Correct the organization and project that the key belongs to.", ""),
        (
            *("", r"^\S{0,9} (?:previous_response_not_found|\S{0,64} previous_response_id\b)"),
            *(
                "It no longer has what continue_from goes on from; ask again, and say in the question what it needs.",
                "",
            ),
        ),
        ("", r"^\S{0,9} \S{0,64} \S{0,64}\btext\.format\b", "Correct output_schema, or leave it out.", ""),
        ("", r"^\S{0,9} \S{0,64} \S{0,64}\buser_location\b", "Correct location, or user_location in the profile.", ""),
        (
            "too_long",
            r"^413 ",
            "Ask in fewer words, or have it take larger requests.",
            "The request is too large there",
        ),
        ("address", r"^405 ", "Correct openai.base_url (OPENAI_BASE_URL).", "Nothing takes questions there"),
        (
            *("address", r"^407 "),
            "Put user:password@ before its host in HTTPS_PROXY or HTTP_PROXY, or, if unset, correct openai.base_url.",
            "The proxy wants to know who asks",
        ),
        (
            *("address", r"^3\d\d "),
            *("That is not followed with a key; set openai.base_url to the final address.", "The API redirects"),
        ),
    )
)
_SHORT_LIMIT = re.compile(r"\bper[ -](?:min|sec|hour)|\b[rt]pm\b")
_OF_PROMPT = re.compile(r"prompt|polic|flag|safety|moderat|violat|content")
_MOST_JUDGED: Final = 8 * 1024  # characters of a message in which its kind is looked for


def kind_of(failure: Failure) -> str:
    """Return the name of the kind in `KINDS`: by code and type, by the words, then by the status."""
    status, said = failure.status, failure.words[:_MOST_JUDGED].lower()
    codes = [_HUMP.sub("_", word).lower() for word in (failure.code, failure.type) if word]
    if failure.raw or ("request" in said and not _OF_PROMPT.search(said)):
        # Gateways have this code for any request that they cannot read.
        codes = ["invalid_request" if code == "invalid_prompt" else code for code in codes]
    is_short = _SHORT_LIMIT.search(said) is not None
    passes = {"quota": is_short or failure.wait is not None, "usage_limit": is_short}
    named = [n for n in KINDS if _has_status(n, status) and any(map(_PATTERNS[n][0].search, codes))]
    told = [
        name
        for name, kind in KINDS.items()
        if (status is None or status in kind.said_with) and not passes.get(name) and _PATTERNS[name][1].search(said)
    ]
    if named and told and (told[0] in _REFINING or status is not None):
        return min(named[0], told[0], key=list(KINDS).index)
    if named or told:
        return [*named, *told][0]
    if failure.param == "model" and status in (None, 400, 404, 422):
        return "model"
    if failure.param and status in (None, 400, 422):
        return "parameter"
    if status is None:
        return "unknown"
    return _OF_STATUS.get(status, "server" if status >= 500 else "address" if status < 400 else "request")


def _has_status(name: str, status: int | None) -> bool:
    """Tell whether a code may stand for a kind with this status: some servers have one code for all they refuse."""
    if status is None:
        return True
    if KINDS[name].again != "never":
        return status >= 500 or status in ((408, 409, 429) if KINDS[name].again == "all" else (408, 409))
    return name not in ("parameter", "request") or status in (400, 422)


# Reading


def read_failure(value: object, redact: Redact) -> Failure:
    """Return what a JSON value says of a failure: an object in any of the forms that servers use, or a text.

    Of objects within each other, the innermost that has a part of it counts.
    """
    found = Failure()
    for given in reversed(_within(value)):
        own = _read_own(given, redact)
        found = replace(own, **{part: said for part in Failure.__slots__ if (said := getattr(found, part))})
    return found


def says(failure: Failure) -> bool:
    """Tell whether a failure has anything to say."""
    return failure.status is not None or bool(failure.message or failure.code or failure.type or failure.raw)


def _within(value: object) -> list[JsonObject]:
    """Return the objects that stand within each other, also as JSON in a text; of a list, the first."""
    found: list[JsonObject] = []
    while value and len(found) <= _MOST_NESTED:
        if isinstance(value, list):
            value = cast("list[object]", value)[0]
        if isinstance(value, str):
            value = _decoded(value) if found else {"message": value}
        if not isinstance(value, dict):
            break
        given = as_object(cast("object", value))
        found.append(given)
        inner = ((name, given.get(name)) for name in (*_NESTED, *_MESSAGES))
        value = next((value for name, value in inner if _leads_on(name, value)), None)
    return found


def _leads_on(name: str, value: object) -> bool:
    """Tell whether a failure is within a member. A validator's list of details is told as a whole."""
    if isinstance(value, str):
        return value.lstrip().startswith("{")
    return bool(value) and (isinstance(value, dict) or (isinstance(value, list) and name not in _MESSAGES))


def _read_own(given: JsonObject, redact: Redact) -> Failure:
    """Read the members of an object, and of none within it but what a gateway passes on."""
    error, metadata = given.get("error"), as_object(given.get("metadata"))
    said = next((text for name in _MESSAGES if (text := given.get(name))), None)
    codes = [given.get(name) for name in _CODES]
    if isinstance(error, str):
        if said is None:
            said = error
        elif _NAME.fullmatch(error):
            codes.append(error)
    told = said if isinstance(said, str) else "" if said is None else _dump(_without_input(said))
    message = _sentence(_beginning(told, redact))
    behind = _read_raw(metadata.get("raw"), redact)
    param = given.get("param")
    if param is None and isinstance(path := given.get("path", given.get("loc")), list):  # as validators name it
        param = ".".join(str(part) for part in cast("list[object]", path)[:_MOST_NESTED])
    return Failure(
        status=next(filter(None, (_status(given.get(name)) for name in (*_STATUSES, *_CODES))), None),
        type=_word(given.get("type"), redact) or behind.type,
        code=next((word for code in codes if not _status(code) and (word := _word(code, redact))), behind.code),
        param=_word(param, redact) or behind.param,
        message=message,
        raw="" if behind.message in message else behind.message,
        wait=_wait(given, as_object(metadata.get("headers"))) or asked_wait({}, message) or behind.wait,
    )


def _read_raw(raw: object, redact: Redact) -> Failure:
    """Read what a provider said to a gateway, which passes it on as a text or as an object."""
    value = (_decoded(raw) or raw) if isinstance(raw, str) else raw
    found = read_failure(value, redact)
    if not raw or (found.message and not isinstance(value, list)):
        return found
    return replace(found, message=_sentence(_beginning(raw if isinstance(raw, str) else _dump(raw), redact)))


def _wait(given: JsonObject, headers: JsonObject) -> float | None:
    """Return how many seconds to wait, also until a moment in seconds or milliseconds since 1970."""
    for name, unit in _WAITS.items():
        if seconds := _number(given.get(name)):
            return seconds * unit
    moment = _number(given.get("resets_at")) or _number(headers.get("X-RateLimit-Reset")) or 0
    left = moment / (1_000 if moment >= 1e12 else 1) - time.time()
    return left if left > 0 else None


def _number(value: object) -> float | None:
    """Return a number above zero, also where it is written as a text."""
    if isinstance(value, str) and len(value) <= 13 and value.isascii() and value.isdecimal():
        value = int(value)
    usable = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 1e13
    return float(cast("float", value)) if usable else None


def _status(value: object) -> int | None:
    """Return a number that is the HTTP status of a failure."""
    number = _number(value)
    return int(number) if number and number.is_integer() and 300 <= number < 600 else None


def _decoded(text: str) -> object:
    try:
        return json.loads(text[:LONGEST_READ].removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        return None


def _without_input(details: object) -> object:
    """Return the details of a validator without what it was given, which is the question."""
    listed = cast("list[object]", details)[:_MOST_WRITTEN] if isinstance(details, list) else [details]
    told = [
        {name: value for name, value in members.items() if name not in _OF_QUESTION}
        if (members := as_object(each))
        else each
        for each in listed
    ]
    return told if isinstance(details, list) else told[0]


def _word(value: object, redact: Redact) -> str | None:
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        return None
    word = _beginning(str(value), redact)[:_LONGEST_WORD]
    return None if word.lower() in _NOTHING else word


def _beginning(text: str, redact: Redact) -> str:
    """Return the beginning of a text as it may be shown."""
    return redacted_beginning(sanitized(text[:LONGEST_READ]), LONGEST_READ, redact, cut=len(text) > LONGEST_READ)


def _dump(value: object) -> str:
    text = ""
    with suppress(RecursionError):
        for piece in islice(json.JSONEncoder(ensure_ascii=False).iterencode(value), _MOST_WRITTEN):
            text += piece
    return text


def _sentence(text: str) -> str:
    text = " ".join(text.split())
    return text if not text or text[-1] in ".!?。" else text + "."


# Errors


def http_error(
    status: int, headers: Mapping[str, str], beginning: bytes, redact: Redact, key_from: str = "OPENAI_API_KEY"
) -> UpstreamError:
    """Return the error for an HTTP status that is no success.

    `headers` has lower-case names, `beginning` is the body as far as it is read. What is quoted passes `redact`.
    `key_from` says where the key comes from.
    """
    said = _decoded(beginning[:LONGEST_READ].decode("utf-8", "replace"))
    failure = replace(read_failure(said, redact), status=status)
    return _refusal(failure, headers, beginning, redact, key_from)


def refusal_in(
    value: object, headers: Mapping[str, str], beginning: bytes, redact: Redact, key_from: str = "OPENAI_API_KEY"
) -> UpstreamError | None:
    """Return the error for the JSON value of a success that is an error in place of what was asked for."""
    first = cast("list[object]", value)[:1] if isinstance(value, list) else [value]
    given = as_object(first[0] if first else None)
    is_response = given.get("object") == "response" or isinstance(given.get("output"), list) or _has_used(given)
    stated = given.get("status") in _RESPONSE_STATES and "id" in given
    if is_response or stated or given.get("object") == "list":
        return None
    has_error = any(given.get(name) for name in ("error", "errors", "detail", "fault")) or given.get("success") is False
    is_coded = any(given.get(name) for name in (*_CODES, *_STATUSES))
    is_told = is_coded and any(isinstance(given.get(name), str) for name in _MESSAGES)
    failure = read_failure(given, redact)
    if not (has_error or is_told or "error" in (given.get("object"), given.get("type"))) or not says(failure):
        return None
    return _refusal(failure, headers, beginning, redact, key_from)


def _refusal(
    failure: Failure, headers: Mapping[str, str], beginning: bytes, redact: Redact, key_from: str
) -> UpstreamError:
    error = _error(replace(failure, wait=asked_wait(headers, failure.words) or failure.wait), key_from)
    if headers.get("x-should-retry", "").strip().lower() == "false":
        error.retryable = False
    error.progress = "refused"
    error.request_id = redact(sanitized(headers.get("x-request-id", "")))[:_LONGEST_ID] or None
    error.body = _excerpt(beginning, redact)
    return error


def response_error(response: JsonObject, redact: Redact, progress: Progress = "accepted") -> UpstreamError | None:
    """Return the error for a Response that did not end well, None for one that did or names no state.

    `progress` is how far the request had come, as far as its events tell.
    """
    status, given = response.get("status"), response.get("error")
    failure = read_failure({"error": given}, redact) if given else Failure()
    error: UpstreamError | None = None
    if status == "failed" or says(failure):
        error = _error(failure)
    elif status == "incomplete":
        if as_object(response.get("incomplete_details")).get("reason") == "content_filter":
            error = RequestRefused(
                "The API's content filter stopped the answer; ask in other words.", code="content_filter"
            )
            error.kind = "content"
    elif status not in (None, "completed"):
        known = f"status {status}" if status in _KNOWN_STATUSES else "an unknown status"
        error = UnusableReply(
            f"The API returned a response that is not finished ({known}); ask again, "
            "and if it happens again check that openai.base_url is a Responses API."
        )
    if error is not None:
        mark(error, "begun" if _has_output(response) else progress)
        if _has_used(response):
            error.retryable, error.maybe_paid = False, True
    return error


def mark(error: UpstreamError, progress: Progress) -> None:
    """Say how far the request of an error had come. What had begun to answer may be paid for, and is not repeated."""
    if error.progress != "begun":
        error.progress = progress
    if error.progress == "begun":
        error.retryable, error.maybe_paid = False, True


def is_unbilled(error: UpstreamError) -> bool:
    """Tell whether the API refused a request, or never got it, so that nobody bills it."""
    if isinstance(error, ConnectionFailed):
        return not error.maybe_paid
    return isinstance(error, KeyUnusable) or error.progress == "refused"


def is_unpaid(error: UpstreamError) -> bool:
    """Tell whether nobody works on a request that failed so: a gateway may answer for an API that goes on."""
    return is_unbilled(error) and not KINDS[error.kind].is_worked_on


def is_searched_again(error: UpstreamError) -> bool:
    """Tell whether a search is repeated, which may be paid for twice unless it had begun to answer."""
    may_repeat = error.retryable or error.maybe_paid
    return may_repeat and error.progress != "begun" and KINDS[error.kind].again == "all"


def may_pass(status: int) -> bool:
    """Tell whether a reply with this status may be another one next time."""
    return KINDS[kind_of(Failure(status=status))].again != "never"


def _has_used(response: JsonObject) -> bool:
    counts = as_object(response.get("usage")).values()
    return any(isinstance(count, int | float) and count > 0 for count in counts)


def _has_output(response: JsonObject) -> bool:
    """Tell whether a Response has a text, or something else that is finished."""
    output = response.get("output")
    for item in islice(cast("list[object]", output) if isinstance(output, list) else [], _MOST_WRITTEN):
        given = as_object(item)
        if given.get("type") == "message":
            if given.get("content"):
                return True
        elif given and given.get("status") not in _UNFINISHED:
            return True
    return False


def _error(failure: Failure, key_from: str = "OPENAI_API_KEY") -> UpstreamError:
    """Return the error that a failure becomes, in words for a person."""
    name = kind_of(failure)
    kind = KINDS[name]
    about = f"{failure.status} {failure.code} {failure.param}: {failure.words[:_MOST_JUDGED]}".lower()
    special = (row[2:] for row in _SPECIAL if row[0] in ("", name) and row[1].search(about))
    cure, happened = next(special, (kind.cure, kind.happened))
    happened, cure = happened or kind.happened, cure.format(key_from=key_from)
    if failure.wait is not None and issubclass(kind.error, RateLimited | ServiceFailed):
        cure += f" It asks to wait {_duration(failure.wait)}."
    known = " ".join(str(each) for each in (failure.status, failure.code) if each)
    before = f"{happened} ({known})" if known else happened
    said = failure.words or ("no reason given." if name == "unknown" else "")
    said = _cut(said, _LONGEST_TEXT - len(before) - len(cure))
    error = kind.error(
        _message(before, said, cure),
        status=failure.status,
        type=failure.type,
        code=failure.code,
        param=failure.param,
        retryable=kind.again != "never",
        retry_after=failure.wait,
    )
    error.kind = name
    error.words = failure.words
    error.said = said or None
    if failure.code and not _NAME.fullmatch(failure.code):  # free text, which may repeat the question
        before = before.replace(failure.code, "…")
    error.unquoted = _message(before, "", cure)
    return error


def not_an_object(status: int, headers: Mapping[str, str], body: bytes, redact: Redact, why: str) -> UnusableReply:
    """Return the error for a success whose body is no JSON object; `why` is for the debug log."""
    return UnusableReply(
        f"The API answered {status} with something that is not a JSON object; "
        "check that openai.base_url is a Responses API and that no proxy rewrites it.",
        status=status,
        request_id=redact(sanitized(headers.get("x-request-id", "")))[:_LONGEST_ID] or None,
        body=f"{why}: {_excerpt(body[: LONGEST_READ + 1], redact)}",
    )


def _message(before: str, said: str, cure: str) -> str:
    return f"{before}: {said} {cure}" if said else f"{before}. {cure}"


def _cut(said: str, room: int) -> str:
    """Return what the API said, cut such that the message has a bounded length; the cure is never cut."""
    return said if len(said) <= room else said[: max(0, room - 1)] + "…"


def _duration(seconds: float) -> str:
    return "a day or longer" if seconds >= _LONGEST_WAIT else f"{seconds:.3f}".rstrip("0").rstrip(".") + " s"


def _excerpt(beginning: bytes, redact: Redact) -> str:
    text = beginning[:LONGEST_READ].decode("utf-8", "replace")
    text = redacted_beginning(text, LONGEST_READ, redact, cut=len(beginning) > LONGEST_READ)
    return " ".join(text.split())[:_LONGEST_BODY]


# The settings that an error is about

_VERSION = re.compile(r"/v[0-9][a-z0-9]*+/?$|/openai/?$")
_VARIABLES: Final = {"answer": "ANSWER", "answer_detailed": "DETAILED", "answer_quick": "QUICK", "search": "SEARCH"}


def name_model(error: UpstreamError, model: str, models: Mapping[str, str], base_url: str) -> None:
    """Have an error about the model, or about a path, name the settings to change and what the address may lack.

    `models` are those of the profiles, or of an option (`--model`). Where a path is wrong, whatever else is there may
    answer.
    """
    refused = error.kind in ("address", "request", "parameter", "right") and error.status in (400, 403, 404, 410)
    about = error.kind == "model" or (refused and (error.status == 404 or model in error.message))
    named = _named(model, models) if about else ""
    elsewhere = error.kind == "address" and error.status != 407
    if isinstance(error, UnusableReply):
        elsewhere = error.status is not None
    if elsewhere and error.code in (None, "unknown_url") and not _VERSION.search(base_url):
        named += " openai.base_url (OPENAI_BASE_URL) does not end in /v1: did you forget that, or add more behind it?"
    room = max(0, _LONGEST_TOLD - len(named))
    error.message = error.message[:room] + named
    if error.unquoted is not None:
        error.unquoted = error.unquoted[:room] + named


def _named(model: str, models: Mapping[str, str]) -> str:
    """Return a sentence that names the settings which a model comes from, nothing for one that is in none."""
    settings = " and ".join(
        name
        if name.startswith("--")
        else f"model_profiles.{name}.model" + (f" (MODEL_{_VARIABLES[name]})" if name in _VARIABLES else "")
        for name, other in models.items()
        if other == model
    )
    return f" The model is {model[:_LONGEST_WORD]}, from {settings}." if settings else ""
