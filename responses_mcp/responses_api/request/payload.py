"""The body of `POST /responses`, from a question and a profile (spec 6, step 4)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from responses_mcp.json_types import JsonObject, replace_lone_surrogates
from responses_mcp.responses_api.parameters import clamp_effort, model_traits
from responses_mcp.responses_api.request.question import Question
from responses_mcp.settings.model import Profile
from responses_mcp.settings.time_zone import TOKYO

MAX_DOMAINS = 100  # what the search tool takes
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
    return searching_body(text, profile, instructions=instructions, only_domains=only)


def searching_body(text: str, profile: Profile, *, instructions: str, only_domains: Sequence[str] = ()) -> JsonObject:
    """Build the body for any input text; `only_domains`, if there are any, are the only ones that are searched."""
    traits = model_traits(profile.model)
    tool: JsonObject = {"type": "web_search"}
    hosts = dict.fromkeys(_bare_host(domain) for domain in _words(only_domains))
    if hosts:
        tool["filters"] = {"allowed_domains": list(hosts)[:MAX_DOMAINS]}
    body: JsonObject = {
        "model": profile.model,
        "instructions": instructions,
        "input": text,
        "tools": [tool],
        "include": ["web_search_call.action.sources"],
    }
    if traits.verbosity:
        body["text"] = {"verbosity": profile.verbosity}
    if traits.reasoning:
        body["reasoning"] = {"effort": clamp_effort(profile.reasoning_effort, traits.efforts)}
    return body


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
