"""Queries in, lists of pages out: what the tool `chatgpt_o3_search` does, without MCP.

Use it as ``async with open_search(settings) as search: found = await search.search("…", limit=5)``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from functools import partial

from responses_mcp.errors import ConfigError
from responses_mcp.outgoing import OutgoingText, told
from responses_mcp.responses_api.api import ResponsesApi
from responses_mcp.responses_api.failures import is_searched_again
from responses_mcp.responses_api.request.payload import bare_hosts
from responses_mcp.responses_api.request.search import ANY_LANGUAGE, USUAL_LIMIT, read_search_query, search_body
from responses_mcp.responses_api.response.search_list import SearchResult
from responses_mcp.responses_api.response.search_results import SearchResults, read_results
from responses_mcp.responses_api.retry import RetryPolicy
from responses_mcp.room import Room
from responses_mcp.settings.model import SEARCH_EFFORT, Profile, SearchSettings, Settings
from responses_mcp.settings.time_zone import today_in
from responses_mcp.under_trio import OneRun, opened, require_listeners
from responses_mcp.usage.meter import Caller, Meter

__all__ = ["SearchResult", "SearchResults", "WebSearch", "open_search"]

log = logging.getLogger(__name__)

_LONGEST_WAIT = 60.0  # seconds; what the API itself asks for has a bound of its own


class WebSearch:
    """Searches the web with the Responses API on behalf of a person or an agent.

    Connections are opened by the first search and kept until `aclose`. Any number of searches may run at once;
    cancelling one closes its socket and nothing else. `meter` is shared by all that belongs to one session. `today`
    gives the date, by default that in `locale.time_zone`.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        api: ResponsesApi | None = None,
        meter: Meter | None = None,
        today: Callable[[], str] | None = None,
    ) -> None:
        self._settings = settings
        self._api = api or ResponsesApi(settings.openai, settings.request, profiles=settings.model_profiles)
        self._policy = retry_policy(settings.search)
        self._meter = meter or Meter(settings)
        self._today = today or partial(today_in, settings.locale.time_zone)
        self._outgoing = OutgoingText(settings)
        self._one_run = OneRun()
        self.redact = self._api.redact

    async def search(
        self,
        query: str,
        *,
        limit: int = USUAL_LIMIT,
        language: str = ANY_LANGUAGE,
        timeframe: str | None = None,
        on_phase: Callable[[str], None] | None = None,
        room: Room | None = None,
        client: str | None = None,
    ) -> SearchResults:
        """Search for `query` and return at most `limit` (1 to 50) pages, the most relevant first.

        `language` is a tag such as "ja"; `timeframe` is one of recent, past_week, past_month, past_year. `on_phase` is
        told what is going on, in words for a person; it must not wait. Finding nothing is no error. Raises
        `BadArgument`, `ConfigError`, `LimitReached` or `UpstreamError`. `client` is for the ledger.
        """
        self._one_run.require()
        asked = read_search_query({"query": query, "limit": limit, "language": language, "timeframe": timeframe})
        require_listeners(on_phase=on_phase)
        if self._settings.problems:
            raise ConfigError(self._settings.problems)
        profile = self._profile()
        sent = self._outgoing.question(asked.query)
        asked = replace(asked, query=sent.text)
        today = self._today()
        search = self._settings.search
        body = search_body(
            asked,
            profile,
            today=today,
            time_zone=self._settings.locale.time_zone,
            domains=search.defaults.domains,
            strict_domains=search.strict_domains,
        )
        bounds = (asked.limit, asked.language, asked.timeframe)
        log.debug("search: model=%s limit=%d language=%s timeframe=%s", profile.model, *bounds)
        if on_phase is not None:
            if sent.masked:
                on_phase(f"masked in the question: {told(sent.masked)}")
            on_phase(f"asking {profile.model}")
        blocked = bare_hosts(profile.blocked_domains)
        read = partial(read_results, limit=asked.limit, today=today, redact=self.redact.known, blocked=blocked)
        caller, patience = Caller("chatgpt_o3_search", client, self.redact), self._settings.request.timeout_ms / 1000
        async with self._meter.call(caller, profile, on_phase=on_phase, patience=patience) as bill:
            found = await self._api.create(body, read, on_phase=on_phase, policy=self._policy, room=room, bill=bill)
        log.debug("search: results=%d total=%d dropped=%d", len(found.results), found.total_count, found.dropped)
        return replace(found, usage=bill.usage, masked=sent.masked)

    def _profile(self) -> Profile:
        profiles = self._settings.model_profiles
        if "search" in profiles:
            return profiles["search"]
        if "answer" not in profiles:
            raise ConfigError(["model_profiles.answer is missing; set it in the YAML file, or set MODEL_ANSWER."])
        return replace(profiles["answer"], reasoning_effort=SEARCH_EFFORT)

    def require_run(self) -> None:
        """Raise `NotUnderTrio` outside of Trio, and in another run than that of its first use."""
        self._one_run.require()

    async def aclose(self) -> None:
        """Close all connections."""
        self.require_run()
        try:
            await self._api.aclose()
        finally:  # also where its host is cancelled: what was paid for is still to be written down
            await self._meter.aclose()  # noqa: ASYNC102  # shielded, and bounded, within


def open_search(settings: Settings) -> AbstractAsyncContextManager[WebSearch]:
    """Open a web search through the Responses API.

    Args:
      settings: read by `load_settings`, or made by hand. Nothing is checked and nothing connected before the first
        search, which raises `ConfigError` if the settings have problems.

    Returns:
      A context manager that gives a `WebSearch`. Any number of tasks may ask it at once.

    Raises:
      NotUnderTrio: the block is entered outside of Trio. For the rest see `WebSearch.search` for what a search raises.

    Leaving the block closes all idle connections. End the searches first: a connection still in use is closed when its
    search ends.
    """
    return opened(WebSearch(settings))


def retry_policy(search: SearchSettings) -> RetryPolicy:
    """Return the contract's policy: after a rate limit, a lost connection or a time-out, again in 1 s, 2 s, 4 s."""
    return RetryPolicy(
        max_retries=search.max_attempts - 1,
        wait=lambda retries_done, _: min(2.0**retries_done, _LONGEST_WAIT),
        repeats=is_searched_again,
        try_seconds=search.timeout_ms / 1000,
        slow="raise search.timeout_ms (SEARCH_TIMEOUT_MS, in milliseconds), or lower reasoning_effort in the profile",
    )
