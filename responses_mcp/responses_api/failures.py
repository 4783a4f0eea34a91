"""What a failure of the API means: one `Failure` for every way in which it comes, and one table of kinds.

A failure comes as an HTTP status, as a body with status 200, as an event of a stream, or within a Response.
`read_failure` brings all of them into one form, `kind_of` finds the kind, and `KINDS` says for each kind what happened,
what to do, and whether the same request may be answered later. The error that a failure becomes has all that is decided
here: its kind, whether to repeat the request, how far the request had come, and whether it may have been paid for.

What the API said is redacted before it is cut: half a key is still half a key.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Final, NamedTuple, cast

from responses_mcp.errors import (
    AuthenticationFailed,
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
from responses_mcp.responses_api.retry import LONGEST_DURATION, asked_wait, seconds_until
from responses_mcp.sanitization import sanitized

LONGEST_READ: Final = 64 * 1024  # bytes of an error body, characters of a text; the rest of an HTML page says nothing
_LONGEST_JUDGED: Final = 8 * 1024  # characters of a code, and of a message in which its kind is looked for
_LONGEST_TOLD = 400  # characters that clients get of a message (spec 8.2)
_LONGEST_TEXT = 300  # characters of one without what is added to it, and of a body in the debug log (spec 8.1)
_LONGEST_WORD = 64  # characters of a code or an id
_MOST_READ = 10  # objects of an error, within each other or side by side
_MOST_WRITTEN = 200  # values and brackets of an error that has no text
_MOST_ITEMS = 1_000  # of an output
_NAME = re.compile(r"[\w.:-]+", re.ASCII)
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+")
_NOTHING: Final = frozenset(
    {"", "0", "200", "none", "null", "error", "failed", "fail", "response.error", "response.failed"}
)
_STATES: Final = ("completed", "failed", "incomplete", "cancelled", "queued", "in_progress")
_UNFINISHED: Final = frozenset({"in_progress", "searching", "queued", "interpreting", "generating", "failed"})

# Where servers put the parts of an error. What stands beside it is read where the error itself does not say it.
_WITHIN: Final = ("error", "errors", "detail", "fault", "response")
_BESIDE: Final = ("details", "violations", "fieldViolations", "innererror", "innerError")
_TEXTS: Final = (
    *("message", "msg", "error_description", "error_message", "errorMessage", "error_msg", "Message", "faultstring"),
    *("detail", "title", "reason"),
)
_CODES: Final = ("code", "error_code", "errorCode", "errorcode", "status", "reason", "quotaId")
_STATUSES: Final = ("status", "status_code", "statusCode", "http_status", "httpStatus", *_CODES[:4])
_PARAMS: Final = ("param", "parameter", "path", "loc", "field", "property", "pointer", "instancePath")
_WAITS: Final = (
    *("retry_after", "retryAfter", "retry_after_seconds", "retryDelay", "resets_in_seconds", "resets_at", "reset_at"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """What the API says of a failure, redacted.

    `status` is the HTTP status, or the number that stands in the body in its place. `labels` are all words for it, code
    and type among them, in lower case with underscores. `raw` is what a provider said to the gateway that answers.
    `wait` is how many seconds the API asks to wait.
    """

    status: int | None = None
    type: str | None = None
    code: str | None = None
    params: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    message: str = ""
    raw: str = ""
    wait: float | None = None

    @property
    def words(self) -> str:
        """Return all that was said."""
        return f"{self.message} The provider says: {self.raw}".lstrip() if self.raw else self.message


class Kind(NamedTuple):
    """A row of the table.

    `codes` is looked for in labels, `param` in `params`. `said` is looked for in the message where the status is one of
    `on`. A kind without `on` is vague: a status says as much, so its codes and words count only where there is none.
    `usual` are the statuses that mean this kind where nothing else is found. `again` tells whether the same request may
    be answered later, and `progress` how far it had come: behind a gateway, the API may go on.
    """

    error: type[UpstreamError]
    happened: str
    cure: str
    codes: str = r"(?!)"
    said: str = r"(?!)"
    param: str = r"(?!)"
    on: tuple[int, ...] = ()
    usual: tuple[int, ...] = ()
    again: bool = False
    progress: Progress = "refused"


_REFUSED: Final = (RequestRefused, "The API refused the request")
_FORBIDDEN: Final = (RequestRefused, "The API key may not do this")
_FAILED: Final = (ServiceFailed, "The API failed")
_LATER = "Try again later, or check openai.base_url if it is not OpenAI's."
_GIVEN = "Check the profile's model and its parameters."

# In the order in which they are tried: what is exhausted or refused for good stands before what may pass.
KINDS: Final[dict[str, Kind]] = {
    "previous": Kind(
        *_REFUSED,
        "It no longer has what continue_from goes on from; ask again, and say in the question what it needs.",
        r"previous_response_not_found",
        param=r"previous_response_id",
        on=(400, 404),
    ),
    "schema": Kind(*_REFUSED, "Correct output_schema, or leave it out.", param=r"text\W+format", on=(400, 422)),
    "location": Kind(
        *_REFUSED, "Correct location, or user_location in the profile.", param=r"user_location", on=(400, 422)
    ),
    "content": Kind(
        *(*_REFUSED, "Ask in other words."),
        r"content_(?:filter|policy|management)|moderation|safety|\w_policy(?:_|$)|^policy_violation|responsible_ai"
        r"|guardrail|^cyber|^bio_|invalid_prompt|inspection",
        r"(?:usage|content|management|safety) (?:polic|guideline)|flagged|moderation|safety system"
        r"|terms of (?:us|serv)|content filter|inappropriate|prompt (?:was |is )?blocked|敏感|违规",
        on=(400, 403, 422, 424),
    ),
    "too_large": Kind(
        *(RequestRefused, "The request is too large there", "Ask in fewer words, or have it take larger requests."),
        said=r"(?:prompt|input|request|query) (?:is |was )?too (?:long|large)",
        on=(413, 429),
        usual=(413,),
    ),
    "too_long": Kind(
        *(RequestRefused, "The request is too long", "Ask in fewer words, or choose a model that takes more."),
        r"context_(?:length|window|size)|(?:string|array)_above_max|too_(?:long|large)|length_exceeded",
        r"context (?:length|window|size)|(?:prompt|input|request|query|string) (?:is |was )?too (?:long|large)"
        r"|reduce the length|\btokens?\b.{0,60} exceed|exceed.{0,60}\b(?:tokens|context)\b"
        r"|\b(?:input|prompt|message)s?\W{1,3}tokens?\b.{0,60}\b(?:must|may|only|limit|max)",
        on=(400, 422, 500),
    ),
    "usage_limit": Kind(
        *(RateLimited, "The API's limit for a day, or that of the plan, is used up"),
        "Ask again when it is reset, or have the provider raise it.",
        r"(?:usage|daily|weekly|monthly|plan|day)_(?:limit|quota)|per_(?:day|week|month)",
        r"\bper[ -](?:day|week|month)\b|\b[rt]pd\b|/ ?day\b|\b24 hours\b|每[日天周月]|今日"
        r"|\b(?:daily|weekly|monthly|plan|usage) (?:\w{1,30} ){0,2}(?:limit|allocation|quota)",
        on=(400, 403, 429, 500),
    ),
    "quota": Kind(
        *(QuotaExhausted, "The account's quota is used up", "Check plan and billing with the provider."),
        r"insufficient_(?:\w{1,30}_)?(?:quota|balance|credits?|funds?)|(?:quota|balance|credits?)_(?:\w{1,30}_)?"
        r"(?:exceeded|exhausted|too_low)|exceeded_\w{0,30}quota|^quota$|billing|payment_required|arrear|budget",
        r"exceeded your current quota|insufficient (?:user |account )?(?:quota|balance|credits?|funds)"
        r"|balance is (?:too low|insufficient)|quota exceeded|(?:no|any|all available|not enough|out of) credits"
        r"|out of (?:\w{1,30} ){0,3}quota|quota (?:is |was )?(?:exhausted|used up)|余额|欠费|充值|额度",
        on=(400, 402, 403, 429, 500),
        usual=(402,),
    ),
    "model": Kind(
        *(RequestRefused, "The API does not offer this model"),
        "Check the model, the key's access to it, and openai.base_url.",
        r"model_(?:\w{1,30}_)?(?:not|access|invalid|deprecated|unsupported)"
        r"|(?:invalid|unknown|unsupported)_model|deployment_not_found",
        r"\bmodel\b.{0,120}?\b(?:not found|not exist|no longer|deprecated|decommissioned|is unknown)"
        r"|(?:unknown|invalid|no such) model|not a valid model|model identifier is invalid|no models? loaded"
        r"|模型不存在",
        param=r"^model$",
        on=(400, 403, 404, 410, 422, 500),
    ),
    "region": Kind(
        *(*_FORBIDDEN, "The provider does not serve this region: ask from another, or ask another provider."),
        r"country|region|residency|territory",
        r"country, region|(?<!_)(?:country|region|territory|location) (?:\w{1,30} ){1,3}?not (?:support|availab|allow)"
        r"|not (?:supported|available|allowed) (?:in|from|for) (?:your|this) (?:country|region|territory|location)",
        on=(400, 401, 403),
        usual=(451,),
    ),
    "scope": Kind(
        *(*_FORBIDDEN, "Give the key the permission that is named there, or use a key that has it."),
        *(r"scope", r"\bscopes?\b"),
        on=(401, 403),
    ),
    "ip_address": Kind(
        *(*_FORBIDDEN, "Allow the address of this machine for the key's project, or change the key."),
        *(r"(?:^|_)ip_", r"\bip(?: address)?\b"),
        on=(401, 403),
    ),
    "organization": Kind(
        *(*_FORBIDDEN, "Correct the organization and project that the key belongs to."),
        *(r"organi[sz]ation", r"(?:member of|no such|invalid|wrong) (?:an )?organi[sz]ation"),
        on=(401, 403),
    ),
    "right": Kind(
        *(*_FORBIDDEN, "Check the key's project, its model access and your region."),
        *(r"permission|forbidden|access_denied|not_authori[sz]ed", r"insufficient permission|not allowed to"),
        on=(401, 403),
        usual=(403,),
    ),
    "key": Kind(
        *(AuthenticationFailed, "The API refused the key", "Put a valid key into {key_from}."),
        r"api_key|invalid_key|authenticat|unauthori[sz]ed|invalid_(?:\w{1,30}_)?token|token_expired|deactivated",
        r"(?:invalid|incorrect|wrong|missing|expired) (?:api.?key|(?:\w{1,30} )?token provided)|unauthori[sz]ed"
        r"|authenticat|api.?key (?:is )?(?:not valid|invalid|expired)"
        r"|^(?:invalid|wrong|missing|expired) (?:key|token)\W*$",
        on=(400,),
        usual=(401,),
    ),
    "rate_limit": Kind(
        *(RateLimited, "The API limits the rate of requests", "Wait a while and ask again."),
        r"rate_?limit|too_many|throttl|^requests$|^tokens$|resource_exhausted",
        r"rate.?limit|too many requests",
        usual=(429,),
        again=True,
    ),
    "timeout": Kind(
        *(*_FAILED, _LATER, r"time_?d?_?out|deadline", r"\btimed out|\btime-?out"),
        usual=(408, 504, 522, 524),
        again=True,
        progress="doubtful",
    ),
    "overload": Kind(
        *(ServiceFailed, "The API is overloaded", _LATER, r"overload|unavailable|slow_?down|capacity|busy"),
        r"overload|unavailable|at capacity|\bbusy\b|slow down",
        usual=(503, 529),
        again=True,
        progress="doubtful",
    ),
    "conflict": Kind(*_FAILED, _LATER, r"conflict", usual=(409,), again=True),
    "server": Kind(
        *(*_FAILED, _LATER),
        r"server_error|internal|^api_error$|bad_gateway|upstream|provider_error|processing_error",
        r"internal (?:server )?error|bad gateway|server had an error|provider returned|upstream",
        usual=tuple(range(500, 600)),
        again=True,
        progress="doubtful",
    ),
    "proxy": Kind(
        *(RequestRefused, "The proxy wants to know who asks"),
        "Put user:password@ before its host in HTTPS_PROXY or HTTP_PROXY, or, if unset, correct openai.base_url.",
        usual=(407,),
    ),
    "address": Kind(
        *(RequestRefused, "The API does not know what was asked for"),
        "Check the model, and whether openai.base_url has a Responses API.",
        r"unknown_url|^not_found(?:_error)?$|no_route",
        r"^(?:404\W{1,3})?(?:page |route |path |url )?not found\W*$|unexpected endpoint",
        usual=(404,),
    ),
    "method": Kind(
        *(RequestRefused, "Nothing takes questions there", "Correct openai.base_url (OPENAI_BASE_URL)."), usual=(405,)
    ),
    "redirect": Kind(
        *(RequestRefused, "The API redirects"),
        "That is not followed with a key; set openai.base_url to the final address.",
        usual=tuple(range(300, 400)),
    ),
    "parameter": Kind(
        *(*_REFUSED, _GIVEN),
        r"(?:unsupported|unknown|invalid|missing|extra)_(?:\w{1,30}_)?(?:parameter|value|type|field|union|enum)"
        r"|_below_min|extra_forbidden|validation|literal_error",
    ),
    "request": Kind(
        *(*_REFUSED, _GIVEN),
        r"invalid_(?:\w{1,30}_)?request|bad_request|invalid_argument|invalid_prompt",
        usual=tuple(range(400, 500)),
    ),
    "unknown": Kind(RequestRefused, "The API did not answer", "Ask again later, or change the question or the model."),
}
_PATTERNS: Final = {
    name: [re.compile(each) for each in (kind.codes, kind.said, kind.param)] for name, kind in KINDS.items()
}
_OF_STATUS: Final = {status: name for name in reversed(KINDS) for status in KINDS[name].usual}
_SHORT_LIMIT = re.compile(r"\bper[ -](?:min|sec|hour)|\b[rt]pm\b|per_(?:min|sec|hour)")
# Gateways have the code of a prompt that is refused for any request that they cannot read.
_UNREADABLE = re.compile(r"(?:invalid|bad|malformed) (?:\w{1,30} ){0,4}request|provider returned")


def kind_of(failure: Failure) -> str:
    """Return the name of the kind in `KINDS`: the first whose codes or words are there, else that of the status."""
    said = failure.words[:_LONGEST_JUDGED].lower()
    labels = [each for each in failure.labels if each != "invalid_prompt" or not _UNREADABLE.search(said)]
    named = [
        name
        for name, kind in KINDS.items()
        if (failure.status is None or kind.on)
        and (any(map(_PATTERNS[name][0].search, labels)) or any(map(_PATTERNS[name][2].search, failure.params)))
    ]
    status = failure.status or next((KINDS[name].usual[0] for name in named if KINDS[name].usual), None)
    is_short = any(map(_SHORT_LIMIT.search, (said, *labels)))
    passes = {"quota": is_short or failure.wait is not None, "usage_limit": is_short}
    for name, kind in KINDS.items():
        is_told = (status is None or status in kind.on) and not passes.get(name) and _PATTERNS[name][1].search(said)
        if name in named or is_told:
            break
    else:
        name = _OF_STATUS.get(status, "server") if status else "request" if failure.params else "unknown"
    is_of_parameter = failure.params or any(map(_PATTERNS["parameter"][0].search, labels))
    return "parameter" if name == "request" and is_of_parameter else name


# Reading


def read_failure(value: object, redact: Redact) -> Failure | None:
    """Return what a JSON value says of a failure: an object in any of the forms that servers use, or a text.

    Of objects within each other the innermost that has a part of it counts, of a list the first, but all its messages
    and parameters. None where nothing is said.
    """
    found = _objects([value], _WITHIN + _TEXTS)
    beside = _objects([each.get(name) for each in chain(*found) for name in _BESIDE], _BESIDE)
    metadata = [as_object(each.get("metadata")) for each in chain(*found)]
    behind = _objects([each.get("raw") for each in metadata], _WITHIN + _TEXTS)
    message, raw = _message_of(found, redact), _message_of(behind, redact)
    given = list(chain(*found, *behind, *beside))
    types = [_word(each.get("type"), redact) for each in given]
    codes = [_word(code, redact) for each in given for code in _codes_of(each)]
    params = tuple(dict.fromkeys(word for each in given if (word := _word(_param_of(each), redact))))
    labels = (_HUMP.sub("_", word).lower() for word in (*codes, *types) if word)
    waits = chain(map(_wait_of, given), (_header_wait(each.get("headers")) for each in metadata))
    failure = Failure(
        status=next((status for each in given for name in _STATUSES if (status := _status(each.get(name)))), None),
        type=next(filter(None, types), None),
        code=next((code for code in codes if code and not _status(code)), None),
        params=params,
        labels=tuple(dict.fromkeys(labels)),
        message=message,
        raw="" if raw in message else raw,
        wait=next(filter(None, waits), None) or asked_wait({}, f"{message} {raw}"),
    )
    return failure if failure != Failure() else None


def _objects(values: list[object], names: tuple[str, ...]) -> list[list[JsonObject]]:
    """Return the objects in `values` and within each other, also as JSON in a text: by depth, the innermost first."""
    found: list[list[JsonObject]] = []
    room = _MOST_READ
    while values and room > 0:
        level: list[JsonObject] = []
        inner: list[object] = []
        for each in islice(_each(values), room):
            room -= 1
            if isinstance(each, dict):
                level.append(given := as_object(cast("object", each)))
                inner += islice((value for name in names if (value := _structure(given.get(name)))), 1)
            elif isinstance(each, str) and (value := _structure(each)):
                inner.append(value)
            elif isinstance(each, str):
                level.append({"message": each})
        found.insert(0, level)
        values = inner
    return found


def _each(values: list[object]) -> Iterator[object]:
    for value in filter(None, values):
        yield from cast("list[object]", value) if isinstance(value, list) else [value]


def _structure(value: object) -> object:
    """Return an object or a list that has anything in it, also where it stands as JSON in a text; None for the rest."""
    if isinstance(value, str):
        value = _decoded(value) if value.lstrip()[:1] in ("{", "[") else None
    return cast("object", value) if value and isinstance(value, dict | list) else None


def _message_of(found: list[list[JsonObject]], redact: Redact) -> str:
    """Return the texts of the innermost objects that have any. A validator's path stands before its text."""
    for level in found:
        if texts := [text for each in level if (text := _text_of(each))]:
            return " ".join(_sentence(_beginning(text, redact)) for text in dict.fromkeys(texts))
    unread = (value for each in chain(*found) for name in _TEXTS if (value := _structure(each.get(name))))
    return "".join(_sentence(_beginning(_written(value), redact)) for value in islice(unread, 1))


def _text_of(given: JsonObject) -> str:
    text = next((text for name in (*_TEXTS, "error") if (text := given.get(name)) and isinstance(text, str)), "")
    path = "" if "param" in given else _param_of(given)
    return f"{path}: {text}" if text and path else text


def _codes_of(given: JsonObject) -> Iterator[object]:
    """Yield the codes of an object. A reason, or an error that is no object, is one if it is a single word."""
    for name in (*_CODES, "error"):
        code = given.get(name)
        if name not in ("reason", "error") or (isinstance(code, str) and _NAME.fullmatch(code[:_LONGEST_JUDGED])):
            yield code


def _param_of(given: JsonObject) -> str:
    """Return the part of the request that an object is about, its path joined by dots."""
    for name in _PARAMS:
        param = given.get(name)
        if isinstance(param, list):
            return ".".join(str(part)[:_LONGEST_WORD] for part in cast("list[object]", param)[:_MOST_READ])
        if isinstance(param, str) and name != "path":  # which is that of a URL
            return param
    return ""


def _wait_of(given: JsonObject) -> float | None:
    milliseconds = seconds_until(str(given.get("retry_after_ms"))[:_LONGEST_WORD])
    if milliseconds:
        return milliseconds / 1000
    return next((wait for name in _WAITS if (wait := seconds_until(str(given.get(name))[:_LONGEST_WORD]))), None)


def _header_wait(headers: object) -> float | None:
    given = as_object(headers)
    return asked_wait({str(name).lower(): str(given[name])[:_LONGEST_WORD] for name in islice(given, _MOST_READ)})


def _status(value: object) -> int | None:
    """Return a number that is the HTTP status of a failure, also where it is written as a text."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    text = str(value) if isinstance(value, int | str) else ""
    return int(text) if re.fullmatch(r"[3-5][0-9][0-9]", text, re.ASCII) else None


def _decoded(text: str) -> object:
    try:
        return json.loads(text[:LONGEST_READ].removeprefix("\ufeff"))
    except (ValueError, RecursionError):
        return None


def _word(value: object, redact: Redact) -> str | None:
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        return None
    word = _beginning(str(value), redact, _LONGEST_JUDGED)[:_LONGEST_WORD]
    return None if word.lower() in _NOTHING else word


def _beginning(text: str, redact: Redact, most: int = LONGEST_READ) -> str:
    """Return the beginning of a text as it may be shown."""
    return redacted_beginning(sanitized(text[:most]), most, redact, cut=len(text) > most)


def _written(value: object) -> str:
    pieces: list[str] = []
    with suppress(RecursionError):
        pieces.extend(islice(json.JSONEncoder(ensure_ascii=False).iterencode(value), _MOST_WRITTEN))
    return "".join(pieces)


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
    said = _structure(beginning[:LONGEST_READ].decode("utf-8", "replace").removeprefix("\ufeff"))
    failure = read_failure(said, redact) or Failure()
    return _refusal(replace(failure, status=status), headers, beginning, redact, key_from)


def refusal_in(
    value: object, headers: Mapping[str, str], beginning: bytes, redact: Redact, key_from: str = "OPENAI_API_KEY"
) -> UpstreamError | None:
    """Return the error for the JSON value of a success that is an error in place of what was asked for."""
    given = as_object(next(_each([value]), None))
    is_response = given.get("object") in ("response", "list") or isinstance(given.get("output"), list)
    if is_response or _has_used(given) or (given.get("status") in _STATES and "id" in given):
        return None
    has_error = any(given.get(name) for name in _WITHIN[:4]) or given.get("success") is False
    is_coded = any(given.get(name) for name in _STATUSES)
    is_told = is_coded and any(isinstance(given.get(name), str) for name in _TEXTS)
    if not (has_error or is_told or "error" in (given.get("object"), given.get("type"))):
        return None
    failure = read_failure(given, redact)
    return None if failure is None else _refusal(failure, headers, beginning, redact, key_from)


def _refusal(
    failure: Failure, headers: Mapping[str, str], beginning: bytes, redact: Redact, key_from: str
) -> UpstreamError:
    error = _error(replace(failure, wait=asked_wait(headers) or failure.wait), "refused", key_from)
    if headers.get("x-should-retry", "").strip().lower() == "false":
        error.retryable = False
    error.request_id = _request_id(headers, redact)
    error.body = _excerpt(beginning, redact)
    return error


def response_error(response: JsonObject, redact: Redact, progress: Progress = "accepted") -> UpstreamError | None:
    """Return the error for a Response that did not end well, None for one that did or names no state.

    `progress` is how far the request had come, as far as its events tell.
    """
    status, given = response.get("status"), response.get("error")
    failure = read_failure({"error": given}, redact) if given else None
    error: UpstreamError | None = None
    if status == "failed" or failure:
        error = _error(failure or Failure(), progress)
    elif status == "incomplete":
        if as_object(response.get("incomplete_details")).get("reason") == "content_filter":
            error = RequestRefused(
                "The API's content filter stopped the answer; ask in other words.", code="content_filter"
            )
            error.kind = "content"
    elif status not in (None, "completed"):
        known = f"status {status}" if status in _STATES else "an unknown status"
        error = UnusableReply(
            f"The API returned a response that is not finished ({known}); ask again, "
            "and if it happens again check that openai.base_url is a Responses API."
        )
    if error is not None:
        error.advance("begun" if _has_output(response) else progress)
        if _has_used(response):
            error.retryable, error.maybe_paid = False, True
    return error


def _has_used(response: JsonObject) -> bool:
    counts = as_object(response.get("usage")).values()
    return any(isinstance(count, int | float) and count > 0 for count in counts)


def _has_output(response: JsonObject) -> bool:
    """Tell whether a Response has a text, or something else that is finished."""
    output = response.get("output")
    for item in islice(cast("list[object]", output) if isinstance(output, list) else [], _MOST_ITEMS):
        given = as_object(item)
        if given.get("content") if given.get("type") == "message" else given.get("status") not in _UNFINISHED and given:
            return True
    return False


def _error(failure: Failure, progress: Progress, key_from: str = "OPENAI_API_KEY") -> UpstreamError:
    """Return the error that a failure becomes, in words for a person."""
    name = kind_of(failure)
    kind = KINDS[name]
    cure = kind.cure.format(key_from=key_from)
    if failure.wait is not None and issubclass(kind.error, RateLimited | ServiceFailed):
        cure += f" It asks to wait {_duration(failure.wait)}."
    known = " ".join(str(each) for each in (failure.status, failure.code) if each)
    before = f"{kind.happened} ({known})" if known else kind.happened
    said = failure.words or ("no reason given." if name == "unknown" else "")
    room = max(0, _LONGEST_TEXT - len(before) - len(cure))
    said = said if len(said) <= room else said[: max(0, room - 1)] + "…"
    error = kind.error(
        f"{before}: {said} {cure}" if said else f"{before}. {cure}",
        status=failure.status,
        type=failure.type,
        code=failure.code,
        param=next(iter(failure.params), None),
        retryable=kind.again,
        retry_after=failure.wait,
    )
    error.kind, error.params, error.words, error.said = name, failure.params, failure.words, said or None
    error.advance(kind.progress if progress == "refused" else progress)
    if failure.code and not _NAME.fullmatch(failure.code):  # free text, which may repeat the question
        before = before.replace(failure.code, "…")
    error.unquoted = f"{before}. {cure}"
    return error


def not_an_object(status: int, headers: Mapping[str, str], body: bytes, redact: Redact, why: str) -> UnusableReply:
    """Return the error for a success whose body is no JSON object; `why` is for the debug log."""
    return UnusableReply(
        f"The API answered {status} with something that is not a JSON object; "
        "check that openai.base_url is a Responses API and that no proxy rewrites it.",
        status=status,
        request_id=_request_id(headers, redact),
        body=f"{why}: {_excerpt(body[: LONGEST_READ + 1], redact)}",
    )


def _duration(seconds: float) -> str:
    return "a day or longer" if seconds >= LONGEST_DURATION else f"{seconds:.3f}".rstrip("0").rstrip(".") + " s"


def _request_id(headers: Mapping[str, str], redact: Redact) -> str | None:
    return redact(sanitized(headers.get("x-request-id", "")))[:_LONGEST_WORD] or None


def _excerpt(beginning: bytes, redact: Redact) -> str:
    text = beginning[:LONGEST_READ].decode("utf-8", "replace")
    text = redacted_beginning(text, LONGEST_READ, redact, cut=len(beginning) > LONGEST_READ)
    return " ".join(text.split())[:_LONGEST_TEXT]


# The settings that an error is about

_VERSION = re.compile(r"/v[0-9][a-z0-9]*+/?$|/openai/?$")
_VARIABLES: Final = {"answer": "ANSWER", "answer_detailed": "DETAILED", "answer_quick": "QUICK", "search": "SEARCH"}


def name_model(error: UpstreamError, model: str, models: Mapping[str, str], base_url: str) -> None:
    """Have an error about the model, or about a path, name the settings to change and what the address may lack.

    `models` are those of the profiles, or of an option (`--model`). Where a path is wrong, whatever else is there may
    answer.
    """
    settings = [
        name
        if name[:2] == "--"
        else f"model_profiles.{name}.model" + (f" (MODEL_{variable})" if (variable := _VARIABLES.get(name)) else "")
        for name, other in models.items()
        if other == model
    ]
    added = ""
    is_refused = error.kind in ("address", "parameter", "request", "right") and error.status in (400, 403, 404, 410)
    if settings and (error.kind == "model" or (is_refused and (error.status == 404 or model in error.message))):
        added = f" The model is {model[:_LONGEST_WORD]}, from {' and '.join(settings)}."
    elsewhere = error.kind in ("address", "method", "redirect") or (error.kind == "reply" and error.status is not None)
    if elsewhere and error.code in (None, "unknown_url") and not _VERSION.search(base_url):
        added += " openai.base_url (OPENAI_BASE_URL) does not end in /v1: did you forget that, or add more behind it?"
    room = max(0, _LONGEST_TOLD - len(added))
    error.message = error.message[:room] + added
    if error.unquoted is not None:
        error.unquoted = error.unquoted[:room] + added
