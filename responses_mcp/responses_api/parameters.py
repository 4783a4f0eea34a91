"""Which parameters a model takes: by the model's id, and by what the API refuses (spec 5.6).

After a 400 or 422 that names an optional parameter, the request is repeated without it, or with the nearest effort that
the refusal lists. What a call learns is its own until the repeated request has been answered; then it is kept for the
model. Every member of a body is optional, and of the tool that searches the web, except those without which the answer
would be to another question: `_FIXED`, the format of a text, and what the caller says is `fixed`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Final, NamedTuple

from responses_mcp.errors import UpstreamError
from responses_mcp.json_types import JsonObject

# A vendor in front (`openai/…`), `ft:`, and a variant or the rest of a fine-tune's id behind say nothing of the family.
_FAMILY = re.compile(r"(?:[^:]*/)?(?:ft:)?(gpt-|o)([0-9]{1,3})(?![0-9])")
_EFFORTS: Final = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


class ModelTraits(NamedTuple):
    """What is sent to a model."""

    verbosity: bool
    reasoning: bool


@lru_cache(maxsize=64)
def model_traits(model: str) -> ModelTraits:
    """Return what `model` takes: gpt-5 and later families both, o3 and o4 only an effort, all others neither.

    >>> model_traits("openai/gpt-5.2-mini")
    ModelTraits(verbosity=True, reasoning=True)
    """
    family = _FAMILY.match(model.lower())
    generation = int(family[2]) if family else 0
    is_o = family is not None and family[1] == "o"
    return ModelTraits(verbosity=generation >= 5, reasoning=generation >= 5 or (is_o and generation >= 3))


def nearest_effort(effort: str, listed: list[str]) -> str:
    """Return the listed effort nearest to `effort`; of two equally near, the one that thinks more."""
    order = (*_EFFORTS, effort)
    return min(listed, key=lambda each: (abs(order.index(each) - order.index(effort)), -order.index(each)))


_FIXED: Final = frozenset(
    ("model", "input", "instructions", "tools", "type", "filters", "background", "previous_response_id", "dimensions")
)
_ALSO_CALLED: Final = {"verbosity": "text", "reasoning_effort": "reasoning", "include_obfuscation": "stream_options"}
_FILTERS: Final = {
    "allowed_domains": "is restricted to {} (domains, by search.strict_domains or in research)",
    "blocked_domains": "leaves out {} (blocked_domains, of the question or in the profile)",
}
_MOST_NAMED: Final = 3  # domains in an error

# How a refusal names parameters: in quotes, behind a colon or in front of one, as a path, or as a name of more than one
# word. "Reasoning about weapons is not supported" names none.
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
_LINK = re.compile(r"(?<![\w./#-])(?:[\w-]++\.[\w.-]*+|\w++:)/[^\s\"]*+")
_TAKEN = re.compile(r"(?<!not )\bsupported \w{1,20}s\b|\b(?:expected|one of|should be|must be|did you mean)\b")
_Q = r"""'"`´‘’“”«»「」\[\]"""
_PART = re.compile(r"\w+(?:[ -]+\w+)*")  # of a path: "text of the prompt" is one, and no name of ours
_NAME = re.compile(
    rf"[{_Q}]\s?[#$./]{{0,2}}[a-z_]\w{{0,40}}(?:[./\[]\w{{1,40}}\]?){{0,9}}\s?\\{{0,8}}[{_Q}]"
    r"|(?:^|: )[a-z]{1,40}(?=[:,]|\.?$|\. )"
    r"|(?<![\w.#-])([#$./]{0,2}[a-z]\w{0,40}(?:[./]\w{1,40}){0,9})(?![\w-])"
)
_LISTED = re.compile(r"\W{0,20}(?:and|or)?\W{0,20}")  # what stands between names of one list


@dataclass(frozen=True, slots=True)
class ParameterFallback:
    """What is known of one model: members of the body to leave out, and efforts with what to send instead."""

    left_out: frozenset[str] = frozenset()
    moved: Mapping[str, str] = field(default_factory=dict[str, str])

    def fit(self, body: JsonObject, fixed: AbstractSet[str] = frozenset()) -> JsonObject:
        """Return `body` as the model takes it; what is `fixed`, and a format of the text, stay in it."""
        if not self.left_out and not self.moved:
            return body
        # What is made in the background has to be stored.
        left_out = self.left_out - fixed - ({"store"} if "background" in body else set[str]())
        fitting = {key: value for key, value in body.items() if key not in left_out}
        if "text" in left_out and "format" in body.get("text", {}):
            fitting["text"] = {"format": body["text"]["format"]}
        if "tools" in body:
            fitting["tools"] = [
                {key: value for key, value in tool.items() if key not in left_out} if _searches(tool) else tool
                for tool in body["tools"]
            ]
        if (taken := self.moved.get(fitting.get("reasoning", {}).get("effort"))) is not None:
            fitting["reasoning"] = {**fitting["reasoning"], "effort": taken}
        return fitting

    def after(
        self, error: UpstreamError, body: JsonObject, fixed: AbstractSet[str] = frozenset()
    ) -> ParameterFallback | None:
        """Return the fallback to try next, after `error` for `self.fit(body, fixed)`; None if there is none."""
        sent = self.fit(body, fixed)
        of_search = (key for tool in sent.get("tools", ()) if _searches(tool) for key in tool)
        refused, efforts = _refused(error, {*sent, *of_search} - _FIXED - fixed)
        moved, asked = self.moved, str(body.get("reasoning", {}).get("effort"))
        others = [effort for effort in efforts if effort != asked]
        if "reasoning" in refused and asked not in moved and others:
            refused, moved = refused - {"reasoning"}, {**moved, asked: nearest_effort(asked, others)}
        if "stream" in refused:
            refused |= {"stream_options"}
        learnt = ParameterFallback(self.left_out | refused, moved)
        return None if learnt.fit(body, fixed) == sent else learnt

    def joined(self, other: ParameterFallback) -> ParameterFallback:
        """Return what both know."""
        return ParameterFallback(self.left_out | other.left_out, {**self.moved, **other.moved})

    def news(self, known: ParameterFallback) -> Iterator[str]:
        """Yield a sentence for each thing that `known` does not have."""
        for name in sorted(self.left_out - known.left_out):
            yield f"is asked without {name}, which is not taken"
        for asked, taken in self.moved.items() - known.moved.items():
            yield f"uses reasoning effort {taken}, as {asked} is not taken"


def refused_domains(error: UpstreamError, body: JsonObject) -> str:
    """Return the beginning of a message that names the refused domains; "" if `error` is about something else."""
    tools: list[JsonObject] = body.get("tools") or [{}]  # the first searches the web
    filters: JsonObject = tools[0].get("filters", {})
    if not filters or not _is_about_request(error) or (error.params and "tools" not in error.params[0]):
        return ""
    said = _LINK.sub(" ", " ".join((*error.params, error.words))).lower()
    is_about = re.search(r"\bfilters?\b|domain", said)
    for name, domains in sorted(filters.items(), key=lambda each: (each[0] not in said, each[0])):
        if named := [domain for domain in domains if domain in said] or (domains if is_about else []):
            more = f" and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
            return f"The search {_FILTERS[name].format(', '.join(named[:_MOST_NAMED]) + more)}, and that was refused. "
    return ""


def _is_about_request(error: UpstreamError) -> bool:
    """Tell whether an error refuses a part of the request, and not what it asks."""
    if error.status is None:  # within a stream, or a Response
        return error.kind in ("parameter", "request", "location") and not error.maybe_paid
    return error.status in (400, 422) and error.kind != "content" and not error.maybe_paid


def _searches(tool: JsonObject) -> bool:
    return str(tool.get("type")).startswith("web_search")


def _refused(error: UpstreamError, optional: AbstractSet[str]) -> tuple[set[str], list[str]]:
    """Return the `optional` members that an error refuses, and the efforts that it lists in their place.

    They are those of its `params`, else the one that its words name, or those that they name in one list. Of parameters
    with any other among them none is left out: the request would be refused again.
    """
    if not _is_about_request(error):
        return set(), []
    said, *taken = _TAKEN.split(_plain(error.words), maxsplit=1)
    efforts = [word for word in re.split(r"\W+", " ".join(taken)) if word in _EFFORTS]
    if paths := [each for each in error.params if each != "body"]:
        members = {_member(path, optional) for path in paths}
        return (set() if "" in members else members), efforts
    bare = (found for found in _NAME.finditer(said) if not (found[1] or "").isalpha())
    names = [found for found in bare if _member(found[0], optional)]
    between = (said[one.end() : other.start()] for one, other in pairwise(names))
    members = {_member(found[0], optional) for found in names}
    return (members if len(members) == 1 or all(map(_LISTED.fullmatch, between)) else set()), efforts


def _member(path: str, optional: AbstractSet[str]) -> str:
    """Return the member that a server means by a path; "" if it is not `optional`."""
    parts: list[str] = _PART.findall(_plain(path))
    head, *rest = parts[1:] if parts[:1] == ["body"] and parts[1:] else parts or [""]
    if head == "tools":
        return next((name for name in rest if name in optional), "")
    name = _ALSO_CALLED.get(head, head)
    # Without the format of a text, which is a question's own, the answer would be another one.
    return name if name in optional and [head, *rest[:1]] != ["text", "format"] else ""


def _plain(words: str) -> str:
    """Return words in lower case, names in one style, without links."""
    return _LINK.sub(" ", _HUMP.sub("_", words).lower())
