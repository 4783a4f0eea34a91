"""What the settings turn on, put together without Trio: toolsets, and a conversation about them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache, partial
from typing import TYPE_CHECKING

from responses_mcp import __version__
from responses_mcp.runtime.conversation import Conversation, open_conversation
from responses_mcp.settings.model import Settings
from responses_mcp.toolsets.answer import INSTRUCTIONS, AnswerToolset
from responses_mcp.toolsets.base import Toolset

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from responses_mcp.asking import Asker, HandOff
    from responses_mcp.research.runs import Research
    from responses_mcp.responses_api.api import ResponsesApi
    from responses_mcp.toolsets.tasks import RunsToolset
    from responses_mcp.usage.meter import Meter


def configured_conversation(settings: Settings, toolsets: Iterable[Toolset] | None = None) -> Conversation:
    """Begin a conversation about `toolsets`, by default those that `settings` turn on."""
    return open_conversation(
        configured_toolsets(settings) if toolsets is None else toolsets,
        settings.server,
        version=__version__,
        instructions=_instructions(settings) if settings.server.instructions else None,
    )


def _instructions(settings: Settings) -> str:
    if "manuals" not in settings.toolsets or not settings.manuals.search_tool:
        return INSTRUCTIONS
    from responses_mcp.toolsets import manual_definitions  # noqa: PLC0415  # most servers have none

    return f"{INSTRUCTIONS} {manual_definitions.INSTRUCTIONS}"


def configured_toolsets(settings: Settings) -> list[Toolset]:
    """Build the toolsets that `settings` turn on. What does their work is imported and opened by the first call."""

    @cache
    def api() -> ResponsesApi:  # one, so that they share its connections
        from responses_mcp.responses_api.api import ResponsesApi  # noqa: PLC0415

        return ResponsesApi(settings.openai, settings.request, profiles=settings.model_profiles)

    @cache
    def meter() -> Meter:  # one, so that they keep the limits together
        from responses_mcp.usage.meter import Meter  # noqa: PLC0415

        return Meter(settings)

    def asker(hand_off: HandOff | None = None) -> Asker:
        from responses_mcp.asking import Asker  # noqa: PLC0415

        return Asker(settings, api=api(), meter=meter(), hand_off=hand_off)

    def research() -> AbstractAsyncContextManager[Research]:
        from responses_mcp.research.runs import open_research  # noqa: PLC0415

        return open_research(settings, api=api(), meter=meter())

    server = settings.server
    runs = _runs(settings, research)
    hand_off = task_of = None
    if runs is not None:
        task_of = runs.answer_of
        seconds = settings.request.handoff_ms / 1000 if "research" in settings.toolsets else 0.0
        hand_off = partial(runs.answer, seconds=seconds, task_seconds=settings.request.task_after_ms / 1000)
    answering = partial(asker, hand_off)
    toolsets: list[Toolset] = [
        AnswerToolset(answering, debug=server.debug, most_characters=server.max_result_chars, task_of=task_of)
    ]
    if "manuals" in settings.toolsets:
        from responses_mcp.toolsets.manuals import ManualsToolset  # noqa: PLC0415  # most servers have none

        toolsets.append(ManualsToolset(settings, api=api))
    if server.prompts is not False:
        from responses_mcp.toolsets.prompts import PromptsToolset  # noqa: PLC0415  # some want none

        with_manuals = "manuals" in settings.toolsets and settings.manuals.search_tool
        toolsets.append(PromptsToolset(legacy=server.prompts is True, manuals=with_manuals))
    if "search" in settings.toolsets:
        from responses_mcp.toolsets.search import SearchToolset  # noqa: PLC0415  # most servers have none

        toolsets.append(SearchToolset(asker))
    if runs is not None:
        toolsets.append(runs)
    return toolsets


def _runs(settings: Settings, research: Callable[[], AbstractAsyncContextManager[Research]]) -> RunsToolset | None:
    """Return the toolset of research; where it is off, the runs that calls in the background can become."""
    offered = "research" in settings.toolsets
    answering = [each for name, each in settings.model_profiles.items() if name != "search"]
    become_tasks = any(each.background and each.store for each in answering) and settings.research.state_dir is not None
    if not (offered or become_tasks):
        return None
    from responses_mcp.toolsets.research import ResearchToolset  # noqa: PLC0415  # most servers have none
    from responses_mcp.toolsets.tasks import RunsToolset  # noqa: PLC0415

    server = settings.server
    return (ResearchToolset if offered else RunsToolset)(
        research,
        most_characters=server.max_result_chars,
        keep_days=settings.research.keep_days,
        stores=[name for name, _, store in (each.partition("=") for each in settings.research.stores) if store],
        debug=server.debug,
    )
