"""What a failure of the API means: one `Failure` for every way in which it comes, and one table of kinds.

A failure comes as an HTTP status, as a body with status 200, as an event of a stream, or within a Response.
`read_failure` brings all into one form, and `kind_of` finds the row of `KINDS`. What the API said is redacted before it
is cut: half a key is still half a key.
"""

from __future__ import annotations

import json
import re
import time
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import islice, repeat
from typing import Any, Final, NamedTuple, cast

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
from responses_mcp.json_types import JsonObject, as_object, objects
from responses_mcp.responses_api.retry import LONGEST_DURATION, asked_wait, seconds_until
from responses_mcp.sanitization import beginning_of, sanitized
from responses_mcp.secrets import Redact
from responses_mcp.usage.models import note_on_end

LONGEST_READ: Final = 64 * 1024  # bytes of an error body, characters of a text; the rest of an HTML page says nothing
_LONGEST_TOLD = 400  # characters that clients get of a message (spec 8.2)
_LONGEST_TEXT = 300  # characters of one without what is added to it, of a body in the debug log (8.1), of any code
_LONGEST_WORD = 64  # characters that are told of a code, an id or a model
_MOST_NAMED = 3  # domains
_MOST_READ = 100  # values of an error
_MOST_LISTED = 10
_MOST_MEMBERS = 1_000  # of an object, and items of an output
_NAME = re.compile(r"[\w.:-]+", re.ASCII)
_STATUS = re.compile(r"([3-5][0-9][0-9])(?:\.0)?")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[\W_]+")
_WORKED: Final = (None, "completed", "incomplete")  # what the state of an item is that may have been paid for
STATES: Final = ("completed", "failed", "incomplete", "cancelled", "queued", "in_progress")
_NOTHING: Final = frozenset({"", "0", "200", "none", "null", "error", "fail", *STATES})

# Where servers put the parts of an error, named as `_members` does.
_WITHIN: Final = (
    *("error", "errors", "detail", "message", "fault", "issues", "response", "raw", "metadata", "headers"),
    *("details", "violations", "fieldviolations", "innererror"),
)
_TEXTS: Final = ("message", "msg", "description", "faultstring", "raw", "detail", "title", "error")
_CODES: Final = ("statuscode", "httpstatus", "code", "status", "quotaid", "quotalimit", "reason", "error")
_PARAMS: Final = ("param", "parameter", "field")
_PATHS: Final = ("keys", "path", "loc")
_KNOWN: Final = frozenset((*_WITHIN, *_TEXTS, *_CODES, *_PARAMS, *_PATHS))
_WAIT = re.compile(r"retryafter(ms|seconds)?|retrydelay|resets?(at|inseconds)|xratelimitreset")
# Gateways have this code for any request that they cannot read, with what the API behind said of it within.
_OF_GATEWAY: Final = "invalid_prompt"
_JSON_BEGINS = re.compile(r"\A[\ufeff \r\n\t]*[{\[]|\{(?=\s?\"error\")")
_LEFT_OUT = re.compile(r"^[Ee]rror_?(?=\w{3})|[\W_]")


class Failure(NamedTuple):
    """What the API says of a failure, redacted.

    `status` may be a number in the body, `params` are the parts of the request to blame, `wait` is in seconds. `labels`
    are all codes and types in lower-case words, and the names in `params` behind the word "param".
    """

    status: int | None = None
    type: str | None = None
    code: str | None = None
    params: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    words: str = ""
    wait: float | None = None


class Kind(NamedTuple):
    """A row of the table.

    `words` are looked for in labels, and in the message where the status is one of `on`; "~" stands for up to three
    others. A kind without `on` is vague: its words count only where there is no status. `usual` are the statuses that
    mean this kind where nothing else is found. `again` is None where the same request would be refused again, else how
    far the request had come: behind a gateway, the API may go on.
    """

    error: type[UpstreamError]
    happened: str
    cure: str
    words: str = r"(?!)"
    on: tuple[int, ...] = ()
    usual: tuple[int, ...] = ()
    again: Progress | None = None


_REFUSED: Final = (RequestRefused, "The API refused the request")
_FORBIDDEN: Final = (RequestRefused, "The API key may not do this")
_FAILED: Final = (ServiceFailed, "The API failed", "Try again later, or check openai.base_url if it is not OpenAI's.")
_OF_KEY: Final = (401, 403)

# In the order in which they are tried: what is exhausted or refused for good stands before what may pass.
KINDS: Final[dict[str, Kind]] = {
    "previous": Kind(*_REFUSED,
        "The API lost the run of continue_from: ask again, and repeat in the question what it builds on.",
        r"previous response not found|^param previous response id", (400, 404)),
    "domains": Kind(*_REFUSED, "Correct the domains (search.strict_domains), or blocked_domains.",
        r"^param.* (filters|domains?)\b|\b(valid|invalid|allowed|blocked) domains?\b|parameter filters", (400, 422)),
    "content": Kind(*_REFUSED, "Ask in other words.",
        r"(content|usage|management|safety) (filter|polic|guideline|management)|moderation|flagged|policy violation"
        r"|^cyber|^bio |^invalid prompt|safety(?![ _]identifier)|terms of (us|serv)|inappropriate|\brisk\b"
        r"|prompt (was |is )?blocked|responsible ai|guardrail", (400, 403, 422, 424)),
    "usage_limit": Kind(RateLimited, "The API's limit for a day, or that of the plan, is used up",
        "Ask again when it is reset, or have the provider raise it.",
        r"\b(per|a|each|requests|tokens) (day|week|month)\b|\b[rt]pd\b|\b24 ?h(ours)?\b"
        r"|\b(daily|weekly|monthly|plan|usage|day) ~(limit|allocation|quota)", (400, 403, 429, 500)),
    "too_long": Kind(RequestRefused, "The request is too long",
        "Ask in fewer words, or choose a model with a larger context.",
        r"(?<!search )context (length|window|size)|(input|prompt) length|length exceeded|reduce the length"
        r"|(string|array) above max|(^|(prompt|input|request|query|string|payload) )(is |was )?too (long|large)"
        r"|too many ~tokens|than \d+ ~tokens|\btokens?\b.{0,60} exceed|exceed.{0,60}\b(tokens|context)\b"
        r"|\b(input|prompt|message)s? tokens?\b.{0,60}\b(must|may|only|limit|max)", (400, 422, 429, 500), (413,)),
    "quota": Kind(QuotaExhausted, "The account's quota is used up", "Check plan and billing with the provider.",
        r"insufficient ~(quota|balance|credit|fund)|exceeded ~(quota|budget)|payment required|out of ~quota|^quota$"
        r"|billing|(no|any|all available|not enough|out of) credits|over budget|arrear|余额|额度"
        r"|(quota|balance|credits?|budget|free tier) (\w{1,30} ){0,5}(exceeded|exhausted|used up|too low|insufficient)",
        (400, 402, 403, 429, 500), (402,)),
    "model": Kind(RequestRefused, "The API does not offer this model",
        "Check the model, the key's access to it, and openai.base_url.",
        r"^param model$|^model (\w+ )?(not|access|invalid|deprecated|unsupported)|no (models? loaded|endpoints found)"
        r"|\b(models?|deployment)\b.{0,120}?\b(not found|not exist|no longer|deprecated|retired|decommissioned"
        r"|end of its life|identifier is invalid)|(unknown|invalid|unsupported|no such|not a valid) model",
        (400, 403, 404, 410, 422, 500)),
    "scope": Kind(*_FORBIDDEN, "Give the key the permission that the API names, or use another.", r"scope", _OF_KEY),
    "ip_address": Kind(*_FORBIDDEN, "Allow the address of this machine in the key's project.", r"\bip\b", _OF_KEY),
    "right": Kind(*_FORBIDDEN, "Check the key's organization, project and model access, and your region.",
        r"permission|(?<!extra[ _])forbidden|access denied(?! due to (invalid|missing))|not authori[sz]ed|residency"
        r"|(member of an|no such|invalid|wrong|mismatched|unknown) organi[sz]ation|organi[sz]ation not"
        r"|country region|\b(country|region|location) ~not (support|availab|allow)"
        r"|not (supported|available|allowed) (in|from|for) (your|this) (country|region|location)",
        (400, 401, 403), (403, 451)),
    "key": Kind(AuthenticationFailed, "The API refused the key", "Put a valid key into {key_from}.",
        r"(invalid|incorrect|wrong|missing|expired) (api ?)?key|api ?key (is )?(not valid|invalid|expired|missing)"
        r"|unauthori[sz]ed|authenticat|deactivated|\btoken (\w{1,30} ){0,5}(is invalid|expired)", (400, 403), (401,)),
    "rate_limit": Kind(RateLimited, "The API limits the rate of requests", "Wait a while and ask again.",
        r"rate ?limit|too many|throttl|^(requests|tokens)$|resource exhausted|quota", (), (429,), "refused"),
    "timeout": Kind(*_FAILED, r"\btimed? ?out|deadline", (), (408, 504, 522, 524), "doubtful"),
    "overload": Kind(ServiceFailed, "The API is overloaded", _FAILED[2],
        r"overload|unavailable|slow ?down|capacity|\bbusy\b", (), (503, 529), "doubtful"),
    "conflict": Kind(*_FAILED, r"conflict", (), (409,), "refused"),
    "server": Kind(*_FAILED,
        r"server .{0,7}error|internal|^api error$|bad gateway|upstream|(provider|processing|returned) error",
        (), tuple(range(500, 600)), "doubtful"),
    "proxy": Kind(RequestRefused, "The proxy asks for a user and password",
        "Put user:password@ before its host in HTTPS_PROXY or HTTP_PROXY, or, if unset, correct openai.base_url.",
        usual=(407,)),
    "redirect": Kind(RequestRefused, "The API redirects",
        "The key is not sent to a redirect; set openai.base_url to the final address.", usual=tuple(range(300, 400))),
    "address": Kind(RequestRefused, "The API does not know this address or model",
        "Check the model, and whether openai.base_url has a Responses API.",
        r"unknown url|no route|unexpected endpoint|^(404 )?((page|route|path|url) )?not found( error)?$",
        usual=(404, 405)),
    "request": Kind(*_REFUSED, "Check {param}the profile's model and its parameters.",
        r"(invalid|bad) (\w+ )?request|invalid (argument|prompt)|^param |extra forbidden|validation|above max|below min"
        r"|(unsupported|unknown|invalid|missing|extra|literal) (\w+ )?(parameter|value|type|field|union|enum|error)",
        (), tuple(range(400, 500))),
    "reply": Kind(UnusableReply, "The API's answer cannot be used",
        "Check that openai.base_url is a Responses API and that no proxy rewrites it.",
        r"^unfinished$", (), tuple(range(200, 300))),
    "unknown": Kind(RequestRefused, "The API did not answer", "Ask again later, or change the question or the model."),
}  # fmt: skip
_WORDS: Final = {name: re.compile(kind.words.replace("~", r"(\w{1,30} ){0,3}")) for name, kind in KINDS.items()}
_OF_STATUS: Final = {status: name for name in reversed(KINDS) for status in KINDS[name].usual}
_SHORT_LIMIT = re.compile(r"\bper (?:min|sec|hour)|\b[rt]pm\b")
_UNREADABLE = re.compile(r"(?:invalid|bad|malformed) (?:\w{1,30} ){0,4}request|provider returned")


def kind_of(failure: Failure) -> str:
    """Return the name of the kind in `KINDS`: the first whose words are there, else that of the status."""
    said = re.sub(r"\W+", " ", failure.words.lower()).strip()
    labels = [each for each in failure.labels if each != "invalid prompt" or not _UNREADABLE.search(said)]
    named = [name for name, pattern in _WORDS.items() if any(map(pattern.search, labels))]
    meant = next((KINDS[name].usual for name in named if KINDS[name].usual), ())
    statuses = {failure.status} if failure.status else {*meant}
    is_short = any(map(_SHORT_LIMIT.search, (said, *labels)))
    passes = {
        "quota": is_short or failure.wait is not None,
        "usage_limit": is_short,
        "too_long": 429 in statuses and "too l" not in said,  # a rate is a number of tokens, too
    }
    for name, kind in KINDS.items():
        if name in named and (failure.status is None or kind.on):
            return name
        if not (statuses and statuses.isdisjoint(kind.on)) and not passes.get(name) and _WORDS[name].search(said):
            return name
    return "unknown" if failure.status is None else _OF_STATUS.get(failure.status, "server")


# Reading


def read_failure(value: object, redact: Redact) -> Failure | None:
    """Return what a JSON value says of a failure: an object in any of the forms that servers use, or a text.

    The innermost part with a message counts, of a list all of them; None where nothing is said.
    """
    parts = sorted(_parts_of(value), key=lambda part: (not _text_of(part[1]), -part[0]))
    given = [members for _, members in parts]
    innermost = dict.fromkeys(_text_of(members) for depth, members in parts if depth == parts[0][0])
    shown = (" ".join(beginning_of(text, LONGEST_READ, redact).split()) for text in islice(innermost, _MOST_LISTED))
    message = " ".join(text if text[-1] in ".!?。" else text + "." for text in shown if text)
    types = _words((each.get("type") for each in given), redact)
    told = ((each, each.get(name)) for each in given for name in _CODES)
    own = (code for each, code in told if code != _OF_GATEWAY or each is given[0])
    codes = [*filter(_NAME.fullmatch, _words(own, redact))]
    params = _words((param for each in given for param in _params_of(each)), redact)
    waits = (
        seconds_until(str(wait)[:_LONGEST_WORD] + ("ms" if name.endswith("ms") else ""))
        for each in given
        for name, wait in each.items()
        if _WAIT.fullmatch(name) and isinstance(wait, str | int | float)
    )
    failure = Failure(
        next((int(found[1]) for code in codes if (found := _STATUS.fullmatch(code))), None),
        next(iter(types), "")[:_LONGEST_WORD] or None,
        next((code for code in codes if not _STATUS.fullmatch(code)), "")[:_LONGEST_WORD] or None,
        tuple(dict.fromkeys(params)),
        tuple(_HUMP.sub(" ", each).lower() for each in (*codes, *types, *map("param {}".format, params))),
        message,
        next(filter(None, waits), None) or asked_wait({}, message),
    )
    return failure if failure != Failure() else None


def _parts_of(value: object) -> Iterator[tuple[int, JsonObject]]:
    """Yield the objects of an error with their depths, the outermost first; a text is an object with a message."""
    values = deque([(0, value)])
    for _ in range(_MOST_READ):
        if not values:
            return
        depth, value = values.popleft()
        value = _structure(value) or value
        values.extend((depth, each) for each in _listed(value))
        if isinstance(value, dict):
            yield depth, (members := _members(cast("JsonObject", value)))
            inner = filter(None, (_structure(members.get(name)) for name in _WITHIN))
            values.extend((depth + 1, each) for each in inner)
        elif value and isinstance(value, str):
            yield depth, {"message": value}


def _listed(value: object) -> list[object]:
    """Return the beginning of a list, none of anything else."""
    return cast("list[object]", value)[:_MOST_LISTED] if isinstance(value, list) else []


def _members(value: JsonObject) -> JsonObject:
    """Return the members of an object by lower-case names without signs, nor "error" before another word."""
    return {_LEFT_OUT.sub("", name).lower(): each for name, each in islice(value.items(), _MOST_MEMBERS)}


def _structure(value: object) -> object:
    """Return an object or a list that has anything in it, also one that stands as JSON in a text; None for the rest."""
    if isinstance(value, str) and (begun := _JSON_BEGINS.search(value, 0, LONGEST_READ)):
        with suppress(ValueError, RecursionError):
            value, _ = json.JSONDecoder().raw_decode(value[:LONGEST_READ], begun.end() - 1)
    return cast("object", value) if value and isinstance(value, dict | list) else None


def _text_of(given: JsonObject) -> str:
    """Return the message of an object, behind the path that a validator names."""
    text = next((text for name in _TEXTS if (text := given.get(name)) and isinstance(text, str)), "")
    path = "" if "param" in given else ", ".join(_params_of(given))
    return f"{path}: {text}" if text and path else text


def _params_of(given: JsonObject) -> list[str]:
    """Return the parts of the request that an object is about, a path joined by dots."""
    for name in _PATHS:  # in a text, it is a URL's
        if steps := [str(step)[:_LONGEST_TEXT] for step in _listed(given.get(name)) if isinstance(step, str | int)]:
            return steps if name == "keys" else [".".join(steps)]
    params = [param for name in _PARAMS if (param := given.get(name)) and isinstance(param, str)]
    return [param for param in params[:1] if not param.isdigit()]


def _words(values: Iterable[object], redact: Redact) -> list[str]:
    """Return codes and names as they may be shown, without those that say nothing."""
    texts = (str(each) for each in values if isinstance(each, str | int | float) and not isinstance(each, bool))
    words = (redact(sanitized(text)) for text in texts if len(text) <= _LONGEST_TEXT)
    return [word for word in words if word.lower().removeprefix("response.") not in _NOTHING]


# Errors


class Head(NamedTuple):
    """What is known of a reply before its body, under lower-case names; what is quoted of the reply passes `redact`."""

    status: int
    headers: Mapping[str, str]
    redact: Redact
    key_from: str = "OPENAI_API_KEY"

    @property
    def is_success(self) -> bool:
        """Tell whether the status is one of success."""
        return 200 <= self.status < 300


def reply_error(head: Head, value: object, beginning: bytes) -> UpstreamError | None:
    """Return the error that a reply is; None for a success whose JSON `value` is an object and no error.

    `beginning` is that of the body, by which other statuses are judged.
    """
    said: Any
    if head.is_success:
        given = as_object(next(iter(_listed(value)), value))
        is_response = given.get("object") in ("response", "list") or isinstance(given.get("output"), list)
        is_response = is_response or _has_used(given) or (given.get("status") in STATES and "id" in given)
        said = {} if is_response else {name: each for name, each in given.items() if each}
        failure = None if _KNOWN.isdisjoint(_members(said)) else read_failure(said, head.redact)
        if failure is None and not isinstance(value, dict):
            failure = Failure(head.status, words="It is not a JSON object.")
    else:
        text = beginning[:LONGEST_READ].decode("utf-8", "replace").strip()
        is_plain = text[:1].isalnum() and " " in text and not {"<", "\ufffd"} & {*text}  # no page, and no broken JSON
        said = _structure(text) or (text if is_plain and len(beginning) <= LONGEST_READ else None)
        failure = (read_failure(said, head.redact) or Failure())._replace(status=head.status)
    if failure is None:
        return None
    wait = asked_wait(head.headers) or failure.wait
    error = _error(failure._replace(wait=wait), "refused", as_object(said), head.key_from)
    if head.headers.get("x-should-retry", "").strip().lower() == "false":
        error.retryable = False
    error.request_id = head.redact(sanitized(head.headers.get("x-request-id", "")))[:_LONGEST_WORD] or None
    text, is_cut = beginning[:LONGEST_READ].decode("utf-8", "replace"), len(beginning) > LONGEST_READ
    body = beginning_of(text, LONGEST_READ, head.redact, cut=is_cut)
    error.body = " ".join(body.split())[:_LONGEST_TEXT]
    return error


def response_error(response: JsonObject, redact: Redact, progress: Progress = "accepted") -> UpstreamError | None:
    """Return the error for a Response that did not end well, None for one that did or names no state."""
    status, given = response.get("status"), response.get("error")
    failure = read_failure({"error": given}, redact) if given else None
    if failure is None and status not in (None, "completed", "failed", "incomplete"):
        known = f"status {status}" if status in STATES else "an unknown status"
        failure = Failure(labels=("unfinished",), words=f"It is not finished ({known}).")
    elif failure is None and as_object(response.get("incomplete_details")).get("reason") == "content_filter":
        stopped = "Its content filter stopped the answer."
        failure = Failure(code="content_filter", labels=("content filter",), words=stopped)
    elif failure is None and status == "failed":
        failure = Failure()
    return None if failure is None else _error(failure, progress, response)


def _has_used(response: JsonObject) -> bool:
    counts = as_object(response.get("usage")).values()
    return any(isinstance(count, int | float) and count > 0 for count in counts)


def _error(
    failure: Failure, progress: Progress, response: JsonObject, key_from: str = "OPENAI_API_KEY"
) -> UpstreamError:
    """Return the error that a failure becomes, which may be paid for where the `response` has output or usage."""
    name = kind_of(failure)
    kind = KINDS[name]
    before = _begin(kind, failure.status, failure.code)
    param = "".join(f"{each[:_LONGEST_WORD]}, " for each in failure.params[:1])
    is_word = any(pattern.search(_HUMP.sub(" ", failure.code or "").lower()) for pattern in _WORDS.values())
    unquoted = before if is_word else _begin(kind, failure.status, None)  # an unknown code may be of the question
    wait, asks = failure.wait, ""
    if wait is not None and issubclass(kind.error, RateLimited | ServiceFailed):
        asks = f" It asks to wait {'a day or longer' if wait >= LONGEST_DURATION else f'{round(wait, 3):.8g} s'}."
    cure, plain = (kind.cure.format(key_from=key_from, param=each) + asks for each in (param, ""))
    said = failure.words or ("no reason given." if name == "unknown" else "")
    if len(said) > (room := max(0, _LONGEST_TEXT - len(before) - len(cure))):
        said = said[: max(0, room - 1)] + "…"
    error = kind.error(f"{before}: {said} {cure}" if said else f"{before}. {cure}", retryable=kind.again is not None)
    error.kind, error.said, error.unquoted = name, said or None, f"{unquoted}. {plain}"
    error.status, error.type, error.code, error.retry_after = failure.status, failure.type, failure.code, wait
    error.param, error.params, error.words = next(iter(failure.params), None), failure.params, failure.words
    if progress != "refused" or name != "reply":  # a success that cannot be used may have been paid for
        error.advance(progress if progress != "refused" else kind.again or "refused")
    if _has_used(response):
        error.advance("accepted")
        error.retryable, error.maybe_paid = False, True
    for item in objects(response.get("output"), repeat(None, _MOST_MEMBERS)):
        is_message = item.get("type") == "message"
        if item and (item.get("content") if is_message else item.get("status") in _WORKED):
            error.advance("begun")
    return error


def _begin(kind: Kind, status: int | None, code: str | None) -> str:
    known = " ".join(str(each) for each in (status, code) if each)
    return f"{kind.happened} ({known})" if known else kind.happened


# What a call adds

_VERSION = re.compile(r"/v[0-9][a-z0-9]*+/?$|/openai/?$")
_VARIABLES: Final = {"answer": "ANSWER", "answer_detailed": "DETAILED", "answer_quick": "QUICK", "search": "SEARCH"}


def settings_to_change(error: UpstreamError, body: JsonObject, models: Mapping[str, str], base_url: str) -> str:
    """Return what an error is about: settings of the model, one of `models` by profile, domains, or the address."""
    if "model" not in body:
        return ""
    model, words = str(body["model"]), ""
    if error.kind == "model" or error.status == 404 or (error.status in (400, 403, 410) and model in error.message):
        known = {name: f"model_profiles.{name}.model (MODEL_{variable})" for name, variable in _VARIABLES.items()}
        settings = " and ".join(known.get(name, name) for name, other in models.items() if other == model)
        source = f" The model is {model[:_LONGEST_WORD]}, from {settings}." if settings else ""
        words = source + note_on_end(model, time.strftime("%Y-%m-%d", time.gmtime()))
    elif error.kind == "domains":
        filters = as_object(next(objects(body.get("tools"), repeat(None, 1)), JsonObject()).get("filters"))
        lists = (cast("list[object]", names) for names in filters.values() if isinstance(names, list))
        named = [str(each) for names in lists for each in names]
        more = f" and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
        words = f" The search names {', '.join(named[:_MOST_NAMED])}{more}." if named else ""
    elsewhere = error.kind in ("address", "redirect") or (error.kind == "reply" and error.status is not None)
    if elsewhere and error.code in (None, "unknown_url") and not _VERSION.search(base_url):
        words += " openai.base_url (OPENAI_BASE_URL) does not end in /v1: is that missing, or is there more after it?"
    return words


def end_call(error: UpstreamError, attempts: int, settings: str, *, is_repeated: bool) -> None:
    """Put how often a call asked, why not again, and the settings behind the message of its error, which is cut."""
    behind = (f" ({attempts} attempts were made.)" if attempts > 1 else "") + settings
    if error.maybe_paid and not is_repeated:
        behind = " It was not repeated, as it may have been paid for." + behind
    room = max(0, _LONGEST_TOLD - len(behind))
    error.message = error.message[:room] + behind
    if error.unquoted is not None:
        error.unquoted = error.unquoted[:room] + behind
