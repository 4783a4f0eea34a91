"""Questions in, answers out: what the `answer*` tools do, without MCP (spec 6).

Use it as ``async with open_answers(settings) as answers: result = await answers.answer("…", recency_days=7)``.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from functools import partial
from typing import NamedTuple, TypeAlias

from responses_mcp.errors import BadArgument, ConfigError
from responses_mcp.json_types import JsonObject, replace_lone_surrogates
from responses_mcp.outgoing import OutgoingText, added, told
from responses_mcp.responses_api.api import ResponsesApi
from responses_mcp.responses_api.background import create_in_background
from responses_mcp.responses_api.parameters import model_traits
from responses_mcp.responses_api.request.payload import bare_hosts, request_body, require_domains
from responses_mcp.responses_api.request.question import read_question
from responses_mcp.responses_api.response.citations import Citation
from responses_mcp.responses_api.response.parser import Answer, read_answer
from responses_mcp.room import Room
from responses_mcp.settings.model import Profile, Settings
from responses_mcp.settings.system_policy import instructions_for
from responses_mcp.settings.time_zone import today_in
from responses_mcp.under_trio import OneRun, opened, require_listeners
from responses_mcp.usage.meter import Caller, Meter

__all__ = ["Answer", "Answers", "Citation", "open_answers"]

TOOLS = ("answer", "answer_detailed", "answer_quick")
"""The tools, and the profiles that are theirs."""

_LONGEST_VALUE = 60  # characters of a wrong argument that are repeated


class Asked(NamedTuple):
    """A question as it would be sent: the body of its request, the profile that it was built from, and who asks."""

    query: str
    body: JsonObject
    profile: Profile
    caller: Caller


HandOff: TypeAlias = Callable[[Asked], Awaitable["Answer | None"]]
"""Has something else ask a question; None where it cannot, and nothing was sent. Raises what `Answers.answer` does."""

log = logging.getLogger(__name__)


class Answers:
    """Asks the Responses API on behalf of a person or an agent.

    Connections are opened by the first question and kept until `aclose`. Any number of questions may run at once;
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
        self._meter = meter or Meter(settings)
        self._today = today or partial(today_in, settings.locale.time_zone)
        self._outgoing = OutgoingText(settings)
        self._one_run = OneRun()
        self.redact = self._api.redact

    async def answer(
        self,
        query: str,
        *,
        recency_days: int | None = None,
        max_results: int | None = None,
        domains: Sequence[str] | str | None = None,
        profile: str = "answer",
        on_phase: Callable[[str], None] | None = None,
        on_text: Callable[[str], None] | None = None,
        room: Room | None = None,
        client: str | None = None,
        hand_off: HandOff | None = None,
    ) -> Answer:
        """Answer `query`, searching the web when the model sees fit.

        Hints left out come from `search.defaults`; all arguments are read as those of the tools are (`read_question`).
        `profile` names an entry of `model_profiles`; one of `TOOLS` that is not configured stands for `answer`.
        `on_phase` is told what is going on ("searching", "writing", a retry), in words for a person. `on_text` is told
        the text while it is written, in pieces, after "" for its beginning, which comes again where an answer broke
        off; they may end before the text does, and the text in other sources. Neither may wait. `client` is for the
        ledger. `hand_off` is given the question first, unless its profile has a `store` that is false. Raises
        `ConfigError`, `BadArgument`, `LimitReached` or `UpstreamError`.
        """
        self.require_run()
        asked = {"query": query, "recency_days": recency_days, "max_results": max_results, "domains": domains}
        question = read_question(asked, self._settings.search.defaults)
        require_listeners(on_phase=on_phase, on_text=on_text)
        if self._settings.problems:
            raise ConfigError(self._settings.problems)
        if self._settings.search.strict_domains:
            require_domains("domains", question.domains)
        chosen = self._profile(profile)
        query_sent = self._outgoing.question(question.query)
        domains_sent = [self._outgoing.question(domain) for domain in question.domains]
        masked = added(each.masked for each in (query_sent, *domains_sent))
        question = replace(question, query=query_sent.text, domains=[each.text for each in domains_sent])
        date = self._today()
        body = request_body(
            question,
            chosen,
            instructions=instructions_for(self._settings.policy, self._settings.locale.time_zone),
            today=date,
            time_zone=self._settings.locale.time_zone,
            strict_domains=self._settings.search.strict_domains,
        )
        _log_request(profile, chosen)
        if on_phase is not None:
            if masked:
                on_phase(f"masked in the question: {told(masked)}")
            on_phase(f"asking {chosen.model}")
        most = self._settings.policy.max_citations
        read = partial(
            read_answer,
            model=chosen.model,
            max_citations=most,
            date=date,
            redact=self.redact.known,
            blocked=bare_hosts(chosen.blocked_domains),
            files=bool(chosen.file_search.vector_store_ids),
        )
        caller = Caller(profile, client, self.redact)
        if hand_off is not None and chosen.store is not False:
            if room is not None:
                await room.wait()
            answer = await hand_off(Asked(question.query, body, chosen, caller))
            if answer is not None:
                return replace(answer, masked=masked)
        patience = self._settings.request.timeout_ms / 1000
        async with self._meter.call(caller, chosen, on_phase=on_phase, patience=patience) as bill:
            in_background = chosen.background and chosen.store is not False
            create = partial(create_in_background, self._api) if in_background else self._api.create
            answer = await create(body, read, on_phase=on_phase, on_text=on_text, room=room, bill=bill)
        return replace(answer, usage=bill.usage, masked=masked)

    def _profile(self, name: object) -> Profile:
        profiles = self._settings.model_profiles
        known = sorted({*TOOLS, *profiles})
        if not isinstance(name, str) or name not in known:
            given = replace_lone_surrogates(repr(name))[:_LONGEST_VALUE] if isinstance(name, str) else "not a text"
            near = _near(name, known) if isinstance(name, str) else ()
            cure = f"; did you mean {near[0]}?" if len(near) == 1 else "."
            raise BadArgument(f"profile is {given}; it must be one of {', '.join(known)}{cure}")
        chosen = profiles.get(name) or profiles.get("answer")
        if chosen is None or "answer" not in profiles:
            raise ConfigError(["model_profiles.answer is missing; set it in the YAML file, or set MODEL_ANSWER."])
        return chosen

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


def _near(name: str, known: Sequence[str]) -> Sequence[str]:
    """Return those of the names that one which is none of them may stand for."""
    from difflib import get_close_matches  # noqa: PLC0415  # for mistakes alone

    return [each for each in known if name in each] or get_close_matches(name, known, 1)


def _log_request(name: str, profile: Profile) -> None:
    traits = model_traits(profile.model)
    supports = f"{{verbosity:{str(traits.verbosity).lower()}, reasoning:{str(traits.reasoning).lower()}}}"
    log.debug("answer: profile=%s model=%s supports=%s", name, profile.model, supports)
    log.debug(
        "answer: request summary tools=web_search(on) reasoning=%s text.verbosity=%s",
        "on" if traits.reasoning else "off",
        "on" if traits.verbosity else "off",
    )


def open_answers(
    settings: Settings, *, named: Mapping[str, Profile] | None = None
) -> AbstractAsyncContextManager[Answers]:
    """Open a way to ask questions of the Responses API.

    Args:
      settings: read by `load_settings`, or made by hand. Nothing is checked and nothing connected before the first
        question, which raises `ConfigError` if the settings have problems.
      named: the profiles as errors about their models name them, if not as the settings do: for a command whose option
        has chosen a model.

    Returns:
      A context manager that gives an `Answers`. Any number of tasks may ask it at once.

    Raises:
      NotUnderTrio: the block is entered outside of Trio. For the rest see `Answers.answer` for what a question raises.

    Leaving the block closes all idle connections. End the questions first: a connection still in use is closed when its
    question ends.
    """
    api = None if named is None else ResponsesApi(settings.openai, settings.request, profiles=named)
    return opened(Answers(settings, api=api))
