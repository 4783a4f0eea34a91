"""What a server or model turned out not to take, learnt from its refusals.

A 400 or 422 that names an optional parameter costs one request: the parameter is left out, or an effort is moved to
one the model takes, and the lesson is kept for the life of the process. `tools` is never left out: that would turn a
searched answer into an unsearched one without a word.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from responses_mcp.errors import UpstreamError
from responses_mcp.protocol.jsonrpc import JsonObject
from responses_mcp.responses_api.models import clamp_effort

_EFFORT_IN_QUOTES = re.compile(r"['\"`](none|minimal|low|medium|high|xhigh|max)['\"`]")


def _without(*names: str) -> Callable[[JsonObject], JsonObject]:
    return lambda body: {key: value for key, value in body.items() if key not in names}


def _without_filters(body: JsonObject) -> JsonObject:
    return {
        **body,
        "tools": [{key: value for key, value in tool.items() if key != "filters"} for tool in body["tools"]],
    }


def _named(word: str) -> re.Pattern[str]:
    """Match a parameter whose name is also a word of plain English: as `param`, in quotes, or called a parameter."""
    return re.compile(rf"^{word}\b|['\"`]{word}\b|\b(?:parameter|field|argument)s?:? {word}\b")


# Names by which refusals call an optional parameter, and the body without it. The first that fits is meant.
_OPTIONAL: tuple[tuple[str, re.Pattern[str], Callable[[JsonObject], JsonObject]], ...] = (
    ("include", _named("include"), _without("include")),
    ("text.verbosity", re.compile(r"\bverbosity\b"), _without("text")),
    ("reasoning", re.compile(r"\breasoning\b"), _without("reasoning")),
    ("tools[0].filters", re.compile(r"\bfilters\b|\ballowed_domains\b"), _without_filters),
    ("tool_choice", re.compile(r"\btool_choice\b"), _without("tool_choice")),
    ("stream", re.compile(rf"{_named('stream').pattern}|\bstreaming is not\b"), _without("stream")),
)


@dataclass
class Accommodation:
    """The lessons about one model."""

    effort: str | None = None
    left_out: set[str] = field(default_factory=set[str])

    def fit(self, body: JsonObject) -> JsonObject:
        """Return `body` as the model is known to take it."""
        if self.effort is not None and "reasoning" in body:
            body = {**body, "reasoning": {**body["reasoning"], "effort": self.effort}}
        for name, _, leave_out in _OPTIONAL:
            if name in self.left_out:
                body = leave_out(body)
        return body

    def learn(self, error: UpstreamError, body: JsonObject) -> str | None:
        """Take a lesson from the refusal of `body`; return it in words, or None if there is nothing to try.

        "" says that another call has learnt the same meanwhile: worth another try, and no news.
        """
        if error.status not in (400, 422):
            return None
        said = f"{error.param or ''} {error.message}".lower()
        for name, pattern, leave_out in _OPTIONAL:
            if pattern.search(error.param.lower() if error.param else said) and leave_out(body) != body:
                return self._move_effort(said, body) if name == "reasoning" else self._leave_out(name)
        return None

    def _move_effort(self, said: str, body: JsonObject) -> str:
        asked = str(body["reasoning"].get("effort"))
        taken = tuple(
            word for word in _EFFORT_IN_QUOTES.findall(said.partition("supported values")[2]) if word != asked
        )
        if self.effort is not None and asked != self.effort:
            return ""
        if not taken or self.effort is not None:
            return self._leave_out("reasoning")
        self.effort = clamp_effort(asked, taken)
        return f"uses reasoning effort {self.effort}, as {asked} is not taken"

    def _leave_out(self, name: str) -> str:
        if name in self.left_out:
            return ""
        self.left_out.add(name)
        return f"is asked without {name}, which is not taken"
