"""The body of `POST /responses`, from a question and a profile (spec 6, step 4)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import sha256

from responses_mcp.errors import BadArgument
from responses_mcp.json_types import JsonObject, replace_lone_surrogates
from responses_mcp.responses_api.parameters import model_traits
from responses_mcp.responses_api.request.question import Question
from responses_mcp.settings.model import FileSearch, Profile
from responses_mcp.settings.time_zone import TOKYO

MAX_DOMAINS = 100  # what the search tool takes
_LONGEST_IDENTIFIER = 64  # characters
_PASSED_ON = (
    *("max_output_tokens", "max_tool_calls", "service_tier", "store", "prompt_cache_key", "safety_identifier"),
)
_LONGEST_SHOWN = 60  # characters
_DOMAIN = re.compile(r"\w\.\w")  # or part of one
_HOST = re.compile(r"(?:[a-z][a-z0-9+.-]*://)?(?:[^/?#@]*@)?(?:\*?\.)?([^/:?#]+)", re.IGNORECASE)


def request_body(
    question: Question,
    profile: Profile,
    *,
    instructions: str,
    today: str,
    time_zone: str = TOKYO,
    strict_domains: bool = False,
) -> JsonObject:
    """Build the body: the query and a line of hints as input, only parameters that the model takes, and nothing null.

    `today` is the date in the time zone of that name. With `strict_domains` the domains also become a filter of the
    search tool.
    """
    hints = [
        f"today={today} ({time_zone})",
        f"recency_days={question.recency_days}",
        f"max_results={question.max_results}",
    ]
    domains = _words(question.domains)
    if domains:
        hints.append("domains=" + " ".join(domains))
    text = replace_lone_surrogates(f"{question.query}\n\n[Hints] {', '.join(hints)}")
    only = question.domains if strict_domains else ()
    body = searching_body(text, profile, instructions=instructions, only_domains=only)
    if profile.file_search.vector_store_ids:
        body["tools"].append(file_search_tool(profile.file_search))
    return body


def searching_body(text: str, profile: Profile, *, instructions: str, only_domains: Sequence[str] = ()) -> JsonObject:
    """Build the body for any input text; `only_domains`, if there are any, are the only ones that are searched.

    It searches the web alone.
    """
    traits = model_traits(profile.model)
    body: JsonObject = {
        "model": profile.model,
        "instructions": instructions,
        "input": text,
        "tools": [_web_search(profile, only_domains)],
        "include": ["web_search_call.action.sources"],
    }
    if traits.verbosity:
        body["text"] = {"verbosity": profile.verbosity}
    if traits.reasoning:
        body["reasoning"] = {"effort": profile.reasoning_effort}
    passed_on = {name: getattr(profile, name) for name in _PASSED_ON}
    if (who := profile.safety_identifier) is not None and len(who) > _LONGEST_IDENTIFIER:
        passed_on["safety_identifier"] = sha256(who.encode("utf-8", "replace")).hexdigest()
    return body | _set_alone(passed_on)


def require_domains(name: str, domains: Sequence[str]) -> None:
    """Raise `BadArgument` for domains that cannot restrict a search: too many, or what is none."""
    if len(domains) > MAX_DOMAINS:
        raise BadArgument(f"{name} has more than {MAX_DOMAINS} domains; pass fewer.")
    for each in domains:
        if not _DOMAIN.search(" ".join(bare_hosts([each]))):
            raise BadArgument(f"{name} has {each[:_LONGEST_SHOWN]!r}, which is no domain; pass it like example.jp.")


def bare_hosts(domains: Sequence[str]) -> tuple[str, ...]:
    """Return domains, or URLs, as the search tool takes them: hosts in the form that DNS knows, each once."""
    return tuple(dict.fromkeys(_bare_host(domain) for domain in _words(domains)))[:MAX_DOMAINS]


def file_search_tool(files: FileSearch) -> JsonObject:
    """Return the tool that searches files in vector stores."""
    ranking = None if files.score_threshold is None else {"score_threshold": files.score_threshold}
    tool = {
        "type": "file_search",
        "vector_store_ids": list(files.vector_store_ids),
        "max_num_results": files.max_num_results,
        "ranking_options": ranking,
        "filters": files.filters,
    }
    return _set_alone(tool)


def _web_search(profile: Profile, only_domains: Sequence[str]) -> JsonObject:
    filters: JsonObject = {}
    if only := bare_hosts(only_domains):
        filters["allowed_domains"] = list(only)
    if blocked := bare_hosts(profile.blocked_domains):
        filters["blocked_domains"] = list(blocked)
    place = profile.user_location
    parts = {"country": place.country, "region": place.region, "city": place.city, "timezone": place.timezone}
    known = _set_alone(parts)
    tool = {
        "type": "web_search",
        "filters": filters or None,
        "search_context_size": profile.search_context_size,
        "external_web_access": profile.external_web_access,
        "user_location": {"type": "approximate", **known} if known else None,
    }
    return _set_alone(tool)


def _set_alone(members: JsonObject) -> JsonObject:
    return {name: value for name, value in members.items() if value is not None}


def _words(domains: Sequence[str]) -> list[str]:
    """Return what was given without blanks, which would break the line of hints."""
    return replace_lone_surrogates(" ".join(domains)).split()


def _bare_host(domain: str) -> str:
    """Return the host alone, in the form that DNS knows; what has no such form stays, for the API to judge."""
    match = _HOST.match(domain)
    host = (match[1] if match else domain).rstrip(".").lower()
    try:
        return host if host.isascii() else host.encode("idna").decode("ascii")
    except UnicodeError:
        return host
