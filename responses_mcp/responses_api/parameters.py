"""Which parameters a model or server takes: from the model's id, and from its errors (spec 5.6).

Unknown future models of a known family get the family's parameters, and the parameter fallback corrects that: after a
400 or 422 that names an optional parameter, the request is repeated without it, or with an effort that the model takes.
What a call learns is its own until it has been answered; then it is kept for its model. `tools` and a filter in it are
never left out: that would widen the search, or drop it, without a word. Nor is what one question was asked with: the
format of its answer, and what its caller says is `fixed`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final

from responses_mcp.errors import UpstreamError
from responses_mcp.json_types import JsonObject

_EFFORT_ORDER: Final = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
# A vendor in front (`openai/…`), `ft:`, and a variant or the rest of a fine-tune's id behind say nothing of the kind.
_BASE_NAME = re.compile(r"(?:[^:]*/)?(?:ft:)?([^:]*)")
_O_SERIES = re.compile(r"o[0-9]")
_GPT = re.compile(r"gpt-([0-9]{1,3})(?:\.([0-9]{1,3}))?(-.*)?")

_LOW_TO_HIGH = ("low", "medium", "high")
_LOW_TO_XHIGH = ("low", "medium", "high", "xhigh")


@dataclass(frozen=True, slots=True)
class ModelTraits:
    """What may be sent to a model; `efforts` is empty where `reasoning` is false."""

    verbosity: bool
    reasoning: bool
    efforts: tuple[str, ...] = ()


def model_traits(model: str) -> ModelTraits:
    """Return what `model` takes. A vendor prefix (`openai/…`), `ft:` and a variant (`:free`) do not matter."""
    base = _BASE_NAME.match(model.lower())
    name = base[1] if base else ""
    if _O_SERIES.match(name):
        return ModelTraits(
            verbosity=False, reasoning=True, efforts=("medium",) if "deep-research" in name else _LOW_TO_HIGH
        )
    gpt = _GPT.fullmatch(name)
    suffix = (gpt[3] or "") if gpt else ""
    if gpt is None or int(gpt[1]) < 5 or suffix.startswith("-chat"):
        return ModelTraits(verbosity=False, reasoning=False)
    efforts = _gpt_efforts((int(gpt[1]), int(gpt[2] or 0)), suffix)
    return ModelTraits(verbosity=True, reasoning=True, efforts=efforts)


def _gpt_efforts(version: tuple[int, int], suffix: str) -> tuple[str, ...]:
    # `minimal` is missing on purpose: the API refuses it together with web search, which every request of ours has.
    if suffix.startswith("-pro"):
        return ("high",) if version == (5, 0) else ("medium", "high", "xhigh")
    if "-codex" in suffix:
        return _LOW_TO_XHIGH if version >= (5, 2) or "-max" in suffix else _LOW_TO_HIGH
    if version[0] == 6:
        return (*_LOW_TO_XHIGH, "max")
    known = {
        (5, 0): _LOW_TO_HIGH,
        (5, 1): ("none", *_LOW_TO_HIGH),
        (5, 2): ("none", *_LOW_TO_XHIGH),
        (5, 4): ("none", *_LOW_TO_XHIGH),
        (5, 5): ("none", *_LOW_TO_XHIGH),
    }
    return known.get(version, ("none", *_LOW_TO_XHIGH, "max"))


def clamp_effort(effort: str, allowed: tuple[str, ...]) -> str:
    """Return the member of `allowed` nearest to `effort`; of two equally near, the one that thinks more."""
    if effort in allowed or effort not in _EFFORT_ORDER:
        return effort
    wanted = _EFFORT_ORDER.index(effort)
    return min(allowed, key=lambda each: (abs(_EFFORT_ORDER.index(each) - wanted), -_EFFORT_ORDER.index(each)))


_OF_SEARCH = frozenset({"search_context_size", "external_web_access", "user_location"})  # members of the search tool
_OPTIONAL = _OF_SEARCH | {
    *("include", "text", "reasoning", "tool_choice", "stream_options", "stream", "encoding_format"),
    *("max_output_tokens", "max_tool_calls", "service_tier", "store", "prompt_cache_key", "safety_identifier"),
}
_ALSO_CALLED = {
    "verbosity": "text",
    "reasoning_effort": "reasoning",
    "reasoningeffort": "reasoning",
    "include_obfuscation": "stream_options",
    "streaming": "stream",
}
_LISTED = re.compile(r"(?:supported values|input should be|expected one of)(.*)")
_EFFORTS = re.compile(r"['\"`](none|minimal|low|medium|high|xhigh|max)['\"`]")
_MOST_NAMED = 3  # domains in an error
_LONGEST_NAMED = 253  # characters; no host has more

# How errors name a parameter. All text is in lower case, every repetition is bounded, and names are paths.
_PATH = r"(?:[#$]?[./])?(?:['\"]?body\b\W{1,5})?[a-z_]\w{0,40}+(?:[.\[/]\w{1,40}+\]?){0,4}+"
_PATHS = rf"{_PATH}(?:['\"`\]]{{0,2}}(?:,| and|, and) ['\"`]?{_PATH}){{0,9}}"
_NOUN = r"(?:param(?:eter)?|argument|field|propert(?:y|ie)|key|name|option)(?:s\b|\(s\)|\b)"
# What is no word of plain English needs neither quotes nor a noun to be meant as a name.
_PLAIN = (
    r"(?<![\w./\[\]#-])(?:include[.\[]\d\]?|text\.verbosity|reasoning[._]?effort|tool_choice|include_obfuscation|"
    r"stream_options(?:\.include_obfuscation)?|stream(?:ing)?|max_output_tokens|max_tool_calls|service_tier|"
    r"prompt_cache_key|safety_identifier|search_context_size|external_web_access|user_location)(?![.\[]?\w)"
)
_NOT = r"(?:not|no longer) (?:yet |currently )?(?:supported|allowed|permitted|recogni[sz]ed|accepted|implemented)"
_REFUSED = rf"(?:un(?:supported|known|recogni[sz]ed|expected)|extra|{_NOT}|does(?: not|n't) (?:support|allow))"
_WHERE = r"(?: (?:on|with|by|for|in) (?:(?:this|the|your) )?(?:model|endpoint|server|request|object))?"
_OPEN = r"[\s:=('\"`\[{]{1,5}"
_VALUE = r"(?:[ =:]{1,2}(?:with |of |value ){0,2}['\"`][\w.-]{1,40}['\"`]|[=:] ?\w{1,20})?"
_NAMED = [
    re.compile(pattern)
    for pattern in (
        # unsupported parameter: NAME, does not support 'NAME', not supported on this model: NAME
        rf"\b(?:{_REFUSED}|invalid(?: value for)?){_WHERE},?(?: (?:the|these|request|keyword|following)){{0,3}} {_NOUN}"
        rf"(?: supplied)?{_WHERE}{_OPEN}(?P<name>{_PATHS})",
        rf"\b{_NOUN} (?:are |is )?{_NOT}{_WHERE}:{_OPEN}(?P<name>{_PATHS})",
        rf"\b{_REFUSED}(?: the)?[\s:(\[]{{0,3}}['\"`](?P<name>{_PATHS})",
        rf"\b{_REFUSED}{_WHERE}:? (?P<name>{_PLAIN})",
        # 'NAME' is not supported, NAME: extra inputs are not permitted
        rf"(?:['\"`](?P<name>{_PATH})['\"`]|(?P<plain>{_PLAIN}))(?: (?:{_NOUN}|responses))?{_VALUE}[:,]?"
        rf"(?: (?:is|are|was|were))?(?: currently)?(?: only allowed| {_REFUSED})",
        rf"(?<![\w./#-])(?P<name>{_PATH}): extra inputs",
        # Where validators say that the fault is.
        rf"\bvalidation errors? for \w{{1,60}} (?P<name>{_PATH})",
        rf"\b(?:loc|param)['\"]?: ?[(\[]?['\"](?P<name>{_PATH})(?=['\"])",
        r"\bverified to (?P<name>stream)\b",
    )
]
_FIRST = re.compile(r"[#$./]*(?:['\"]?body\W+)?(\w++)(?!-| \w)")
_OF_FORMAT = re.compile(r"\btext\W+format\b|\bresponse_format\b")
_LINK = re.compile(r"(?<![\w./#-])[\w.-]++:?/[^\s'\"]*+")


@dataclass(frozen=True, slots=True)
class ParameterFallback:
    """What is known of one model: members of the body to leave out, and efforts with what to send instead."""

    left_out: frozenset[str] = frozenset()
    moved: Mapping[str, str] = field(default_factory=dict[str, str])

    def fit(self, body: JsonObject, fixed: AbstractSet[str] = frozenset()) -> JsonObject:
        """Return `body` as the model takes it; what is `fixed`, and a format of the text, stay in it."""
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
            listed = _LISTED.search(error.message.lower())
            others = tuple(effort for effort in _EFFORTS.findall(listed[1]) if effort != asked) if listed else ()
            if others:
                moved = {**self.moved, asked: clamp_effort(asked, others)}
                return ParameterFallback(self.left_out | (refused - {"reasoning"}), moved)
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
    param, said = _told(error)
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


def _told(error: UpstreamError) -> tuple[str, str]:
    """Return the parameter that an error names and its message; two empty texts where content was refused."""
    said = _LINK.sub(" ", error.message.lower())  # the words in an address name nothing
    if error.status not in (400, 422) or error.kind == "content":
        return "", ""
    param = (error.param or "").lower()
    return "" if param in ("none", "null", "body") else param, said


def _refused_members(error: UpstreamError) -> frozenset[str]:
    param, said = _told(error)
    found = (match[match.lastgroup or 0] for pattern in _NAMED for match in pattern.finditer(said))
    paths = [param] if param else [path for names in found for path in re.split(r", (?:and )?| and ", names)]
    # The format of a text is a question's own: without it, the answer would be another one.
    paths = [path for path in paths if not _OF_FORMAT.search(path)]
    firsts = (_FIRST.match(path.strip("'\"`")) for path in paths)
    words = [_ALSO_CALLED.get(first[1], first[1]) for first in firsts if first]
    if "tools" in words:
        words += [name for path in paths for name in _OF_SEARCH.intersection(re.split(r"\W+", path))]
    return frozenset(words) & _OPTIONAL
