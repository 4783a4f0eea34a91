"""Which parameters a model takes: by the model's id, and by what the API refuses (spec 5.6).

After a 400 or 422 that names an optional parameter, the request is repeated without it, or with the nearest effort that
the refusal lists. What a call learns is its own until the repeated request has been answered; then it is kept for the
model. `tools` and a filter in it are never left out: the search would be wider than asked, or missing. Nor is what one
question needs: the format of its answer, and what its caller says is `fixed`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from functools import lru_cache
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
    wanted = _EFFORTS.index(effort) if effort in _EFFORTS else len(_EFFORTS)
    return min(listed, key=lambda each: (abs(_EFFORTS.index(each) - wanted), -_EFFORTS.index(each)))


_OF_SEARCH = frozenset({"search_context_size", "external_web_access", "user_location"})  # members of the search tool
_OPTIONAL: Final = _OF_SEARCH | {
    *("include", "text", "reasoning", "tool_choice", "stream_options", "stream", "encoding_format"),
    *("max_output_tokens", "max_tool_calls", "service_tier", "store", "prompt_cache_key", "safety_identifier"),
}
_ALSO_CALLED: Final = {
    "verbosity": "text",
    "reasoning_effort": "reasoning",
    "reasoningeffort": "reasoning",
    "include_obfuscation": "stream_options",
    "streaming": "stream",
}
_ENGLISH: Final = frozenset({"include", "text", "reasoning", "stream", "streaming", "store", "verbosity"})
_MOST_NAMED = 3  # domains in an error
_LONGEST_NAMED = 253  # characters; no host has more

# A name stands in quotes of any kind, escaped or not, or is no word of plain English.
_QUOTES = r"""'"`´‘’“”«»「」\[\]"""
_PATH = r"(?:[#$]?[./])?(?:body[./])?([a-z_]\w{0,40})(?:[.\[/]\w{1,40}\]?){0,4}"
_QUOTED = re.compile(rf"[{_QUOTES}]\s?{_PATH}(?=\s?\\{{0,8}}[{_QUOTES}])")
_UNQUOTED = re.compile(rf"(?<![\w./#-]){_PATH}(?![\w-])")
_WORD = re.compile(r"\w+")
_PATH_LIST = re.compile(r"""\b(?:loc|path)\b\W{1,6}[(\[]([^)\]]{1,200})[)\]]""")
# Names that a noun announces: between it and a verb or nothing, or behind a colon up to the end of the sentence.
_NOUN = r"\b(?:param|arg|field|propert|key|option|attribute|input|name)"
_NAME = rf"[{_QUOTES}]?\w{{1,40}}[{_QUOTES}]?"
_NAMES = re.compile(rf"{_NOUN}[^:.;]{{0,60}}:\s({_NAME}(?:(?:,| and|, and) {_NAME}){{0,9}})\s?(?=$|\.\s|\.$|[;(\n])")
_NAMED = re.compile(
    rf"\b(?:parameter|argument|field|property|key|option|attribute|name):? (?=[{_QUOTES}]?({_PATH})"
    r"(?: ?$|[^\w ]| (?:is|was|are|were|not|can|cannot|must|may|should|does|has|in|for|on)\b))"
)
_LIST = re.compile(
    r"\b(?:supported|allowed|permitted|accepted|valid|available) (?:values|options|efforts|levels)\b"
    r"|\b(?:expected|one of|should be|must be|did you mean)\b"
)
_EFFORT = re.compile(r"\b(none|minimal|low|medium|high|xhigh|max)\b")
_PARAM = re.compile(r"[#$./]*(?:body\W+)?(\w++)(?!-| \w)")
_LINK = re.compile(r"(?<![\w./#-])[\w.-]++:?/[^\s'\"]*+")


@dataclass(frozen=True, slots=True)
class ParameterFallback:
    """What is known of one model: members of the body to leave out, and efforts with what to send instead."""

    left_out: frozenset[str] = frozenset()
    moved: Mapping[str, str] = field(default_factory=dict[str, str])

    def fit(self, body: JsonObject, fixed: AbstractSet[str] = frozenset()) -> JsonObject:
        """Return `body` as the model takes it; what is `fixed`, and a format of the text, stay in it."""
        if not self.left_out and not self.moved:
            return body
        left_out = self.left_out - fixed
        fitting = {key: value for key, value in body.items() if key not in left_out}
        if "text" in left_out and "format" in body.get("text", {}):
            fitting["text"] = {"format": body["text"]["format"]}
        if gone := left_out & _OF_SEARCH:
            fitting["tools"] = [
                {key: value for key, value in tool.items() if key not in gone} for tool in body.get("tools", ())
            ]
        if (taken := self.moved.get(fitting.get("reasoning", {}).get("effort"))) is not None:
            fitting["reasoning"] = {**fitting["reasoning"], "effort": taken}
        return fitting

    def after(
        self, error: UpstreamError, body: JsonObject, fixed: AbstractSet[str] = frozenset()
    ) -> ParameterFallback | None:
        """Return the fallback to try next, after `error` for `self.fit(body, fixed)`; None if there is none."""
        sent = self.fit(body, fixed)
        members = {*sent, *(key for tool in sent.get("tools", ()) for key in tool)} - fixed
        if sent.get("text", {}).keys() == {"format"}:
            members.discard("text")
        refused = _refused_members(error) & members
        if not refused or ("store" in refused and "background" in sent):  # which has to be stored
            return None
        if "reasoning" in refused and sent["reasoning"] == body["reasoning"]:
            asked = str(sent["reasoning"].get("effort"))
            _, listed = _divided(error.words.lower())
            if others := [effort for effort in _EFFORT.findall(listed) if effort != asked]:
                return ParameterFallback(self.left_out, {**self.moved, asked: nearest_effort(asked, others)})
        if "stream" in refused:
            refused |= {"stream_options"}
        return ParameterFallback(self.left_out | refused, self.moved)

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
    filters: JsonObject = {}
    for tool in body.get("tools", ()):
        if tool.get("type") == "web_search":
            filters = tool.get("filters", {})
    domains: list[str] = [*filters.get("allowed_domains", ()), *filters.get("blocked_domains", ())]
    if not _is_about_request(error):
        return ""
    param, said = "".join(_params(error)[:1]), _LINK.sub(" ", error.words.lower())
    named = [domain for domain in domains if domain in said]
    about = re.search(r"\bfilters?\b|domain", f"{param} {said}")
    if not (named or (about and domains)) or (param and not param.startswith("tools")):
        return ""
    names = [
        domain if len(domain) <= _LONGEST_NAMED else f"one of {len(domain)} characters" for domain in named or domains
    ]
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    listed = ", ".join(names[:_MOST_NAMED]) + more
    if "allowed_domains" not in filters:
        why = "blocked_domains, of the question or in the profile"
        return f"The search leaves out {listed} ({why}), and that was refused. "
    why = "domains, by search.strict_domains or in research"
    return f"The search is restricted to {listed} ({why}), and that was refused. "


def _is_about_request(error: UpstreamError) -> bool:
    """Tell whether an error refuses a part of the request, and not what it asks."""
    if error.maybe_paid:
        return False
    if error.status is None:  # within a stream, or a Response
        return error.kind in ("parameter", "request", "location")
    return error.status in (400, 422) and error.kind != "content"


def _params(error: UpstreamError) -> list[str]:
    """Return the parts of the request that an error is about."""
    return [
        param for each in error.params if (param := each.lower().removeprefix("body.")) not in ("none", "null", "body")
    ]


def _refused_members(error: UpstreamError) -> frozenset[str]:
    """Return the members that an error refuses: all that it lists or announces, else the one of ours that it quotes.

    Of a list with anything else in it none is left out: the request would be refused again.
    """
    if not _is_about_request(error):
        return frozenset()
    said, _ = _divided(_LINK.sub(" ", error.words.lower()))
    if listed := _params(error) or [".".join(_WORD.findall(path[1])) for path in _PATH_LIST.finditer(said)]:
        return _optional_all(listed)
    announced = [name for names in _NAMES.finditer(said) for name in _WORD.findall(names[1]) if name != "and"]
    announced = announced or [path[1] for path in _NAMED.finditer(said)]
    if members := _optional_all(announced):
        return members
    paths = [
        *_QUOTED.finditer(said),
        *(path for path in _UNQUOTED.finditer(said) if path[1] not in _ENGLISH or "." in path[0]),
    ]
    named = frozenset[str]().union(*(_optional(path[0].lstrip(_QUOTES)) for path in paths))
    return named if len(named) == 1 else frozenset()


def _optional_all(paths: list[str]) -> frozenset[str]:
    members = [_optional(path) for path in paths]
    return frozenset[str]().union(*members) if all(members) else frozenset()


def _optional(path: str) -> frozenset[str]:
    """Return the member that a server means by a path, if it may be left out."""
    if path.startswith("tools"):
        return _OF_SEARCH.intersection(_WORD.findall(path))
    name = _PARAM.match(path)
    return _OPTIONAL & {_ALSO_CALLED.get(name[1], name[1])} if name and not _is_format(path) else frozenset()


def _is_format(path: str) -> bool:
    # The format of a text is a question's own: without it, the answer would be another one.
    return re.search(r"\btext\W+format\b", path) is not None


def _divided(said: str) -> tuple[str, str]:
    """Return what an error says before it lists what is taken, and the list."""
    found = _LIST.search(said)
    return (said, "") if found is None else (said[: found.start()], said[found.end() :])
