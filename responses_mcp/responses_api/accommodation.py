"""What a server or model turned out not to take, learnt from its refusals.

A 400 or 422 that refuses an optional parameter costs one request: the parameter is left out, or an effort is moved to
one the model takes. What a call learns is its own until it has been answered; then it is kept for its model. `tools`
and a filter in it are never left out: that would widen the search, or drop it, without a word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from responses_mcp.errors import UpstreamError
from responses_mcp.protocol.jsonrpc import JsonObject
from responses_mcp.responses_api.models import clamp_effort

_OPTIONAL = frozenset({"include", "text", "reasoning", "tool_choice", "stream_options", "stream"})
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

# How refusals name a parameter. All text is in lower case, every repetition is bounded, and names are paths.
_PATH = r"(?:[#$]?[./])?(?:['\"]?body\b\W{1,5})?[a-z_]\w{0,40}+(?:[.\[/]\w{1,40}+\]?){0,4}+"
_PATHS = rf"{_PATH}(?:['\"`\]]{{0,2}}(?:,| and|, and) ['\"`]?{_PATH}){{0,9}}"
_NOUN = r"(?:param(?:eter)?|argument|field|propert(?:y|ie)|key|name|option)(?:s\b|\(s\)|\b)"
# What is no word of plain English needs neither quotes nor a noun to be meant as a name.
_PLAIN = (
    r"(?<![\w./\[\]#-])(?:include[.\[]\d\]?|text\.verbosity|reasoning[._]?effort|tool_choice|include_obfuscation|"
    r"stream_options(?:\.include_obfuscation)?|stream(?:ing)?)(?![.\[]?\w)"
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
_LINK = re.compile(r"(?<![\w./#-])[\w.-]++:?/[^\s'\"]*+")
_CONTENT_CODE = re.compile(r"prompt|policy|content_filter|moderation|safety")
_ABOUT_CONTENT = re.compile(
    r"(?:usage|content|management|safety) polic|flagged|moderation|safety system|terms of (?:us|serv)|invalid_prompt"
)


@dataclass(frozen=True, slots=True)
class Accommodation:
    """Lessons about one model: members of the body that are left out, and efforts with what is sent instead."""

    left_out: frozenset[str] = frozenset()
    moved: Mapping[str, str] = field(default_factory=dict[str, str])

    def fit(self, body: JsonObject) -> JsonObject:
        """Return `body` as the model is known to take it."""
        fitting = {key: value for key, value in body.items() if key not in self.left_out}
        if (taken := self.moved.get(fitting.get("reasoning", {}).get("effort"))) is not None:
            fitting["reasoning"] = {**fitting["reasoning"], "effort": taken}
        return fitting

    def after(self, error: UpstreamError, body: JsonObject) -> Accommodation | None:
        """Return what to ask with now that `body`, as it fitted, was refused; None if nothing is left to try."""
        sent = self.fit(body)
        refused = _refused_members(error) & sent.keys()
        if not refused:
            return None
        if "reasoning" in refused and sent["reasoning"] == body["reasoning"]:
            asked = str(sent["reasoning"].get("effort"))
            listed = _LISTED.search(error.message.lower())
            others = tuple(effort for effort in _EFFORTS.findall(listed[1]) if effort != asked) if listed else ()
            if others:
                moved = {**self.moved, asked: clamp_effort(asked, others)}
                return Accommodation(self.left_out | (refused - {"reasoning"}), moved)
        if "stream" in refused:
            refused |= {"stream_options"}
        return Accommodation(self.left_out | refused, self.moved)

    def joined(self, other: Accommodation) -> Accommodation:
        """Return the lessons of both."""
        return Accommodation(self.left_out | other.left_out, {**self.moved, **other.moved})

    def news(self, known: Accommodation) -> Iterator[str]:
        """Yield, in words, what is not among the lessons `known`."""
        for name in sorted(self.left_out - known.left_out):
            yield f"is asked without {name}, which is not taken"
        for asked, taken in self.moved.items() - known.moved.items():
            yield f"uses reasoning effort {taken}, as {asked} is not taken"


def refused_domains(error: UpstreamError, body: JsonObject) -> str:
    """Return the beginning of an error that names the domains which were refused; "" if it is about something else."""
    domains: list[str] = [
        domain for tool in body.get("tools", ()) for domain in tool.get("filters", {}).get("allowed_domains", ())
    ]
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
    return f"The search is restricted to {listed} (search.strict_domains), and that was refused. "


def _told(error: UpstreamError) -> tuple[str, str]:
    """Return the parameter that a refusal names and what it says; nothing where content is refused."""
    said = _LINK.sub(" ", error.message.lower())  # the words in an address name nothing
    of_content = _CONTENT_CODE.search(f"{error.code} {error.type}".lower()) or _ABOUT_CONTENT.search(said)
    if error.status not in (400, 422) or of_content:
        return "", ""
    param = (error.param or "").lower()
    return "" if param in ("none", "null", "body") else param, said


def _refused_members(error: UpstreamError) -> frozenset[str]:
    param, said = _told(error)
    found = (match[match.lastgroup or 0] for pattern in _NAMED for match in pattern.finditer(said))
    paths = [param] if param else [path for names in found for path in re.split(r", (?:and )?| and ", names)]
    firsts = (_FIRST.match(path.strip("'\"`")) for path in paths)
    return frozenset(_ALSO_CALLED.get(first[1], first[1]) for first in firsts if first) & _OPTIONAL
