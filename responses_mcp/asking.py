"""Questions in, answers or lists of pages out: what `answer*` and `chatgpt_o3_search` do, without MCP (spec 6).

Use it as ``async with open_answers(settings) as asker: result = await asker.answer("…", recency_days=7)``.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from functools import partial
from typing import NamedTuple, TypeAlias, TypeVar

from responses_mcp.errors import BadArgument, ConfigError, ResponsesMcpError
from responses_mcp.json_types import JsonObject, replace_lone_surrogates
from responses_mcp.responses_api.api import ResponsesApi
from responses_mcp.responses_api.background import create_in_background
from responses_mcp.responses_api.parameters import model_traits
from responses_mcp.responses_api.request.arguments import ANY_LANGUAGE, USUAL_LIMIT, read_question, read_search_query
from responses_mcp.responses_api.request.payload import bare_hosts, request_body, require_domains, search_body
from responses_mcp.responses_api.response.parser import Answer, read_answer
from responses_mcp.responses_api.response.search_results import SearchResult, SearchResults, read_results
from responses_mcp.responses_api.response.sources import Citation
from responses_mcp.responses_api.retry import RetryPolicy, is_searched_again
from responses_mcp.responses_api.watcher import NOBODY, Watcher
from responses_mcp.secrets import OutgoingText, told
from responses_mcp.settings.model import SEARCH_EFFORT, Profile, SearchSettings, Settings
from responses_mcp.settings.system_policy import instructions_for
from responses_mcp.settings.time_zone import today_in
from responses_mcp.under_trio import opened, require_trio
from responses_mcp.usage.bill import Bill
from responses_mcp.usage.meter import Caller, Meter

__all__ = ["Answer", "Asker", "Citation", "SearchResult", "SearchResults", "Watcher", "open_answers"]

TOOLS = ("answer", "answer_detailed", "answer_quick")
"""The tools, and the profiles that are theirs."""

_LONGEST_VALUE = 60  # characters of a wrong argument that are repeated
_LONGEST_WAIT = 60.0  # seconds between two tries of a search; what the API asks for has a bound of its own

T = TypeVar("T")

log = logging.getLogger(__name__)


class Asked(NamedTuple):
    """A question as it would be sent: the body of its request, the profile that it was built from, and who asks."""

    query: str
    body: JsonObject
    profile: Profile
    caller: Caller


HandOff: TypeAlias = Callable[[Asked, Watcher], Awaitable[Answer | None]]
"""Has something else ask a question; None where it cannot, and nothing was sent. Raises what `Asker.answer` does."""


class Asker:
    """Asks the Responses API on behalf of a person or an agent.

    Connections are opened by the first question and kept until `aclose`. Any number of questions may run at once;
    cancelling one closes its socket and nothing else. `meter` is shared by all that belongs to one session. `today`
    gives the date, by default that in `locale.time_zone`. `hand_off` is given each question first, unless its profile
    has a `store` that is false.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        api: ResponsesApi | None = None,
        meter: Meter | None = None,
        today: Callable[[], str] | None = None,
        hand_off: HandOff | None = None,
    ) -> None:
        self._settings = settings
        self._api = api or ResponsesApi(settings.openai, settings.request, profiles=settings.model_profiles)
        self._meter = meter or Meter(settings)
        self._today = today or partial(today_in, settings.locale.time_zone)
        self._hand_off = hand_off
        self._outgoing = OutgoingText(settings.privacy.outgoing_secrets, settings.openai.secrets)
        self.redact = self._api.redact

    async def answer(
        self,
        query: str,
        *,
        recency_days: int | None = None,
        max_results: int | None = None,
        domains: Sequence[str] | str | None = None,
        profile: str = "answer",
        watcher: Watcher = NOBODY,
    ) -> Answer:
        """Answer `query`, searching the web when the model sees fit.

        Hints left out come from `search.defaults`; all arguments are read as those of the tools are (`read_question`).
        `profile` names an entry of `model_profiles`; one of `TOOLS` that is not configured stands for `answer`. Raises
        `ConfigError`, `BadArgument`, `LimitReached` or `UpstreamError`.
        """
        require_trio()
        asked = {"query": query, "recency_days": recency_days, "max_results": max_results, "domains": domains}
        question = read_question(asked, self._settings.search.defaults)
        self._require_usable()
        if self._settings.search.strict_domains:
            require_domains("domains", question.domains)
        chosen = self._profile(profile)
        (text, *hosts), masked = self._without_secrets([question.query, *question.domains])
        if masked:
            question = replace(question, query=text, domains=hosts)
        today, zone = self._today(), self._settings.locale.time_zone
        body = request_body(
            question,
            chosen,
            instructions=instructions_for(self._settings.policy, zone),
            today=today,
            time_zone=zone,
            strict_domains=self._settings.search.strict_domains,
        )
        _log_request(profile, chosen)
        read = partial(
            read_answer,
            model=chosen.model,
            max_citations=self._settings.policy.max_citations,
            date=today,
            redact=self.redact.known,
            blocked=bare_hosts(chosen.blocked_domains),
            files=bool(chosen.file_search.get("vector_store_ids")),
        )
        sent = Asked(text, body, chosen, Caller(profile, watcher.client, self.redact))
        _tell(watcher, chosen, masked)
        if self._hand_off is not None and chosen.store:
            await watcher.wait_for_room()
            handed_off = await _counted(masked, self._hand_off(sent, watcher))
            if handed_off is not None:
                return replace(handed_off, masked=masked)
        in_background = chosen.background and chosen.store
        ask: Callable[..., Awaitable[Answer]] = partial(self._api.create, body, read)
        if in_background:
            ask = partial(create_in_background, self._api, body, read)
        answer, bill = await _counted(masked, self._metered(sent, watcher, ask))
        return replace(answer, usage=bill.usage, masked=masked)

    async def search(
        self,
        query: str,
        *,
        limit: int = USUAL_LIMIT,
        language: str = ANY_LANGUAGE,
        timeframe: str | None = None,
        watcher: Watcher = NOBODY,
    ) -> SearchResults:
        """Search the web for `query` and return at most `limit` (1 to 50) pages, the most relevant first.

        `language` is a tag such as "ja"; `timeframe` is one of recent, past_week, past_month, past_year. Finding
        nothing is no error. Raises `BadArgument`, `ConfigError`, `LimitReached` or `UpstreamError`.
        """
        require_trio()
        asked = read_search_query({"query": query, "limit": limit, "language": language, "timeframe": timeframe})
        self._require_usable()
        profile = self._search_profile()
        (text,), masked = self._without_secrets([asked.query])
        asked = replace(asked, query=text)
        today, search = self._today(), self._settings.search
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
        blocked = bare_hosts(profile.blocked_domains)
        read = partial(read_results, limit=asked.limit, today=today, redact=self.redact.known, blocked=blocked)
        sent = Asked(text, body, profile, Caller("chatgpt_o3_search", watcher.client, self.redact))
        _tell(watcher, profile, masked)
        ask = partial(self._api.create, body, read, policy=retry_policy(search))
        found, bill = await _counted(masked, self._metered(sent, watcher, ask))
        log.debug("search: results=%d total=%d dropped=%d", len(found.results), found.total_count, found.dropped)
        return replace(found, usage=bill.usage, masked=masked)

    async def _metered(self, asked: Asked, watcher: Watcher, create: Callable[..., Awaitable[T]]) -> tuple[T, Bill]:
        """Send a question if the limits allow it, and return what came with its bill."""
        async with self._meter.call(asked.caller, asked.profile) as bill:
            return await create(watcher=replace(watcher, bill=bill)), bill

    def _require_usable(self) -> None:
        if self._settings.problems:
            raise ConfigError(self._settings.problems)

    def _without_secrets(self, texts: Sequence[str]) -> tuple[list[str], dict[str, int]]:
        """Return texts as they may leave, and what was masked in them, counted by kind."""
        sent = [self._outgoing.question(text) for text in texts]
        counts = Counter[str]()
        for each in sent:
            counts.update(each.masked)
        return [each.text for each in sent], counts

    def _profile(self, name: object) -> Profile:
        profiles = self._settings.model_profiles
        if not isinstance(name, str) or (name not in profiles and name not in TOOLS):
            known = sorted({*TOOLS, *profiles})
            given = replace_lone_surrogates(repr(name))[:_LONGEST_VALUE] if isinstance(name, str) else "not a text"
            raise BadArgument(f"profile is {given}; it must be one of {', '.join(known)}.")
        return profiles.get(name) or self._answer_profile()

    def _search_profile(self) -> Profile:
        own = self._settings.model_profiles.get("search")
        return own or replace(self._answer_profile(), reasoning_effort=SEARCH_EFFORT)

    def _answer_profile(self) -> Profile:
        profile = self._settings.model_profiles.get("answer")
        if profile is None:
            raise ConfigError(["model_profiles.answer is missing; set it in the YAML file, or set MODEL_ANSWER."])
        return profile

    async def aclose(self) -> None:
        """Close all connections, and the ledger."""
        require_trio()
        try:
            await self._api.aclose()
        finally:
            await self._meter.aclose()  # noqa: ASYNC102  # shielded, and bounded, within


def open_answers(settings: Settings) -> AbstractAsyncContextManager[Asker]:
    """Open a way to ask questions of the Responses API, and to search the web with it.

    Args:
      settings: read by `load_settings`, or made by hand. Nothing is checked and nothing connected before the first
        question, which raises `ConfigError` if the settings have problems.

    Returns:
      A context manager that gives an `Asker`. Any number of tasks may ask it at once.

    Raises:
      NotUnderTrio: the block is entered outside of Trio. For the rest see `Asker.answer` for what a question raises.

    Leaving the block closes all idle connections. End the questions first: a connection still in use is closed when its
    question ends.
    """
    return opened(Asker(settings))


def retry_policy(search: SearchSettings) -> RetryPolicy:
    """Return the contract's policy: after a rate limit, a lost connection or a time-out, again in 1 s, 2 s, 4 s."""
    return RetryPolicy(
        max_retries=search.max_attempts - 1,
        wait=lambda retries_done, _: min(2.0**retries_done, _LONGEST_WAIT),
        repeats=is_searched_again,
        try_seconds=search.timeout_ms / 1000,
        slow="raise search.timeout_ms (SEARCH_TIMEOUT_MS, in milliseconds), or lower reasoning_effort in the profile",
    )


async def _counted(masked: Mapping[str, int], work: Awaitable[T]) -> T:
    """Return what work returns; an error of it has the counts of what was masked."""
    try:
        return await work
    except ResponsesMcpError as error:
        error.masked = masked
        raise


def _tell(watcher: Watcher, profile: Profile, masked: Mapping[str, int]) -> None:
    if watcher.on_phase is not None:
        if masked:
            watcher.on_phase(f"masked in the question: {told(masked)}")
        watcher.on_phase(f"asking {profile.model}")


def _log_request(name: str, profile: Profile) -> None:
    if not log.isEnabledFor(logging.DEBUG):
        return
    traits = model_traits(profile.model)
    supports = f"{{verbosity:{str(traits.verbosity).lower()}, reasoning:{str(traits.reasoning).lower()}}}"
    log.debug("answer: profile=%s model=%s supports=%s", name, profile.model, supports)
    log.debug(
        "answer: request summary tools=web_search(on) reasoning=%s text.verbosity=%s",
        "on" if traits.reasoning else "off",
        "on" if traits.verbosity else "off",
    )
