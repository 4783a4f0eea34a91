"""What is researched: what may narrow a question, checked, and the body of its request."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Literal, TypedDict, cast, get_args

from responses_mcp.errors import BadArgument, ConfigError
from responses_mcp.json_types import JsonObject, as_object, replace_lone_surrogates
from responses_mcp.responses_api.request.arguments import MOST_DAYS, read_domains, read_number, read_object, read_word
from responses_mcp.responses_api.request.payload import bare_hosts, require_domains, searching_body
from responses_mcp.settings.model import Profile, Settings

Effort = Literal["quick", "standard", "deep"]
EFFORTS: Final[tuple[Effort, ...]] = get_args(Effort)
LOCATION: Final = ("country", "region", "city", "timezone")

# The profile of each effort, and the reasoning effort where that profile is not configured.
PROFILES: Final = {"quick": "answer_quick", "standard": "answer", "deep": "answer_detailed"}
_REASONING: Final = {"quick": "low", "deep": "high"}
_LARGEST_SCHEMA: Final = 64 * 1024  # bytes
_DEEPEST_SCHEMA: Final = 100
_LONGEST_QUERY: Final = 1_000_000  # characters
_LONGEST_PLACE: Final = 200  # characters
_MOST_TOOL_CALLS: Final = 1_000
_COUNTRY: Final = re.compile(r"[A-Za-z]{2}")


class Narrowing(TypedDict, total=False):
    """What may narrow a question.

    `effort` is `quick`, `standard` or `deep`. Only `domains` are searched, and never `blocked_domains`. `recency_days`
    is a hint. `location` may have `country` (two letters), `region`, `city` and `timezone`. `output_schema` is the JSON
    schema of an object, in which the answer is given then. `stores` are searched along with the web, by their names in
    `research.stores`. `max_tool_calls` bounds the searches.
    """

    effort: Effort | None
    domains: Sequence[str] | None
    blocked_domains: Sequence[str] | None
    recency_days: int | None
    location: Mapping[str, str] | None
    output_schema: Mapping[str, Any] | None
    stores: Sequence[str] | None
    max_tool_calls: int | None


def digest_of(body: JsonObject) -> str:
    """Return a name for what a request asks, which tells nothing of it."""
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()


def checked(asked: Mapping[str, object], known_stores: Sequence[str] = ()) -> Narrowing:
    """Return what narrows a question, read as the arguments of a tool are, with ids in place of the names of stores.

    Each of `known_stores` is `name=id`. Raises `BadArgument` for what cannot be sent, naming the argument.
    """
    if unknown := asked.keys() - Narrowing.__annotations__:
        raise TypeError(f"a run has no {min(unknown)!r}")
    wanted = read_word("effort", asked.get("effort")) or "standard"
    effort: Effort | None = next((each for each in EFFORTS if each == wanted), None)
    if effort is None:
        raise BadArgument(f"effort must be one of {', '.join(EFFORTS)}; pass one of them, or leave it out.")
    names = {name: read_domains(asked.get(name), name, only=True) or () for name in ("domains", "blocked_domains")}
    for name, given in names.items():
        require_domains(name, given)
    stores = read_domains(asked.get("stores"), "stores", like='["docs"]', only=True)
    return {
        "effort": effort,
        "domains": names["domains"],
        "blocked_domains": names["blocked_domains"],
        "recency_days": read_number("recency_days", asked.get("recency_days"), least=0, most=MOST_DAYS, bounded=True),
        "location": _place(read_object("location", asked.get("location"))),
        "output_schema": _schema(read_object("output_schema", asked.get("output_schema"))),
        "stores": _stores(stores or (), known_stores),
        "max_tool_calls": read_number("max_tool_calls", asked.get("max_tool_calls"), least=1, most=_MOST_TOOL_CALLS),
    }


def profile_of(effort: str | None, settings: Settings) -> Profile:
    """Return the profile that an effort stands for. Raises `ConfigError` where there is none."""
    profiles, effort = settings.model_profiles, effort or "standard"
    if (own := profiles.get(PROFILES[effort])) is not None:
        return own
    if "answer" not in profiles:
        raise ConfigError(["model_profiles.answer is missing; set it in the YAML file, or set MODEL_ANSWER."])
    usual = profiles["answer"]
    return replace(usual, reasoning_effort=_REASONING.get(effort, usual.reasoning_effort))


def run_body(
    query: str,
    narrowing: Narrowing,
    profile: Profile,
    *,
    instructions: str,
    today: str,
    time_zone: str,
    store: bool = True,
    previous: str | None = None,
) -> JsonObject:
    """Build the body of the request, without background mode; without `store`, the API is asked to keep nothing.

    `previous` is the response that it goes on from. `today` is "" for the same request on whatever day. Raises
    `BadArgument` for a query that is too long.
    """
    if len(query) > _LONGEST_QUERY:
        raise BadArgument(f"query has more than {_LONGEST_QUERY} characters; shorten it.")
    days = narrowing.get("recency_days")
    recency = "" if days is None else f", recency_days={days}"
    body = searching_body(
        replace_lone_surrogates(f"{query}\n\n[Hints] today={today} ({time_zone}){recency}"),
        profile,
        instructions=instructions,
        only_domains=narrowing.get("domains") or (),
    )
    tool = body["tools"][0]
    if blocked := bare_hosts([*(narrowing.get("blocked_domains") or ()), *profile.blocked_domains]):
        tool["filters"] = {**tool.get("filters", {}), "blocked_domains": list(blocked)}
    if location := narrowing.get("location"):
        tool["user_location"] = {"type": "approximate", **location}
    if stores := narrowing.get("stores"):
        body["tools"].append({"type": "file_search", **profile.file_search, "vector_store_ids": list(stores)})
    if (schema := narrowing.get("output_schema")) is not None:
        named = {"type": "json_schema", "name": "answer", "schema": dict(schema), "strict": _is_closed(schema)}
        body["text"] = {**body.get("text", {}), "format": named}
    members = {"max_tool_calls": narrowing.get("max_tool_calls"), "previous_response_id": previous}
    body |= {name: value for name, value in members.items() if value is not None}
    return body if store else {**body, "store": False}


def _stores(names: Sequence[str], known: Sequence[str]) -> Sequence[str]:
    """Return the ids of stores by their names; an id that nobody has configured is none."""
    ids = {name: store for name, _, store in (each.partition("=") for each in known) if store}
    if unknown := [name for name in names if name not in ids]:
        may = f"it may have {', '.join(ids)}" if ids else "there are none in research.stores"
        raise BadArgument(f"stores has {unknown[0][:30]!r}; {may}.")
    return tuple(dict.fromkeys(ids[name] for name in names))


def _place(location: Mapping[str, object] | None) -> Mapping[str, str] | None:
    given = {name: each for name, each in (location or {}).items() if each is not None}
    texts = ((name, each) for name in LOCATION if isinstance(each := given.get(name), str))
    place = {name: replace_lone_surrogates(each).strip() for name, each in texts}
    if len(place) < len(given) or any(len(each) > _LONGEST_PLACE for each in place.values()):
        names = ", ".join(LOCATION)
        raise BadArgument(f'location may have {names}, each a short text; pass it like {{"country": "JP"}}.')
    if not _COUNTRY.fullmatch(place.get("country") or "JP"):
        raise BadArgument("location.country is not a code of two letters; pass one such as JP.")
    return {name: each for name, each in place.items() if each} or None


def _schema(schema: Mapping[str, object] | None) -> Mapping[str, object] | None:
    """Return a schema that can be sent as it is. Raises `BadArgument`."""
    if schema is None:
        return None
    try:
        text = json.dumps(schema, allow_nan=False)
    except (TypeError, ValueError, RecursionError):
        raise BadArgument("output_schema is not JSON; pass a JSON schema.") from None
    if len(text) > _LARGEST_SCHEMA:
        raise BadArgument(f"output_schema has more than {_LARGEST_SCHEMA} bytes; pass a smaller one.")
    if max(depth for _, depth in _nodes(schema)) > _DEEPEST_SCHEMA:
        raise BadArgument(f"output_schema is nested more than {_DEEPEST_SCHEMA} deep; pass a flatter one.")
    if schema.get("type") != "object":
        raise BadArgument('output_schema has no "type": "object" at its root; wrap the answer into an object.')
    return schema


def _nodes(schema: object) -> Iterator[tuple[JsonObject, int]]:
    """Yield each object in a schema, and how deep it is, without recursion."""
    pending: list[tuple[object, int]] = [(schema, 1)]
    while pending:
        each, depth = pending.pop()
        node, items = as_object(each), cast("list[object]", each) if isinstance(each, list) else []
        yield node, depth
        pending += [(one, depth + 1) for one in (*node.values(), *items)]


def _is_closed(schema: Mapping[str, Any]) -> bool:
    """Tell whether the API can hold a model to a schema: all members required, and no others, in every object."""
    for node, _ in _nodes(schema):
        if node.get("type") == "object" or "properties" in node:
            required = node.get("required")
            listed = cast("list[object]", required) if isinstance(required, list) else []
            is_open = node.get("additionalProperties") is not False
            if is_open or not all(name in listed for name in as_object(node.get("properties"))):
                return False
    return True
