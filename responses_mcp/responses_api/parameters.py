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
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

from responses_mcp.errors import UpstreamError
from responses_mcp.json_types import JsonObject
from responses_mcp.settings.model import EFFORTS

# A vendor in front (`openai/…`), `ft:`, and a variant or the rest of a fine-tune's id behind say nothing of the family.
_FAMILY = re.compile(r"(?:[^:]*/)?(?:ft:)?(gpt-|o)([0-9]{1,3})(?![0-9])")


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


_OF_SEARCH: Final = frozenset({"search_context_size", "external_web_access", "user_location"})  # in the search tool
_OPTIONAL: Final = _OF_SEARCH | {
    *("include", "text", "reasoning", "tool_choice", "stream_options", "stream", "encoding_format"),
    *("max_output_tokens", "max_tool_calls", "service_tier", "store", "prompt_cache_key", "safety_identifier"),
}
_ALSO_CALLED: Final = {"verbosity": "text", "reasoning_effort": "reasoning", "include_obfuscation": "stream_options"}

_OF_REQUEST: Final = ("parameter", "request", "schema", "location", "domains")  # kinds of errors; not what is asked

# How a refusal names parameters, in lower case and without links.
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
_LINK = re.compile(r"(?<![\w./#-])(?:[\w-]++\.[\w.-]*+|\w++:)/[^\s\"]*+")
_TAKEN = re.compile(  # what follows is taken
    r"(?<!not )\b(?:supported|allowed|permitted|accepted|valid|available) \w{1,20}s\b"
    r"|\b(?:expected|one of|should be|must be|did you mean)\b"
)
_LOCATION = re.compile(r"""\b(?:loc|path)\b\W{1,6}[(\[]([^)\]]{1,200})[)\]]""")
_PART = re.compile(r"\w+(?:[ -]+\w+)*")  # of a path: "text of the prompt" is one, and no name of ours
_Q = r"""'"`´‘’‚“”„«»‹›「」『』＂＇\[\]"""
_PATH = r"[#$./]{0,2}[a-z_]\w{0,40}(?:[./\[]\w{1,40}\]?){0,9}(?![\w-]|[./\[]\w)"
_NAME = re.compile(rf"[{_Q}]\s?({_PATH})(?=\s?\\{{0,8}}[{_Q}])|(?<![\w./#-])({_PATH})")  # in quotes, or not
_LISTED = rf"[{_Q}\\]{{0,9}}{_PATH}[{_Q}\\]{{0,9}}"
_NOUN = (
    r"(?:\b(?:param|arg|field|propert|key|option|attribute|name|inputs|path)[a-z]{0,6}\b(?:\(s\))?"
    r"|\bvalidation errors? for \w+|参数|參數|引数|字段|パラメーター?)(?:[^.:;(]{0,60}[:(])?"
)
_ANNOUNCED = re.compile(  # by a noun, or as the first word; behind the names stands a verb or no word
    rf"(?:{_NOUN}\s?|^)"
    rf"({_LISTED}(?:(?:,\s?(?:(?:and|or) )?| (?:and|or) ){_LISTED}){{0,9}})"
    rf"(?= ?$| ?[^\w {_Q}]| (?:is|was|are|were|not|can|cannot|must|may|should|does|has|and|in|for|on|at|by|with"
    r"|extra|invalid|un[a-z]{1,20})\b)"
)


Changes: TypeAlias = Mapping[tuple[str, str | None], str | None]
"""What is known of one model: (member, None) for one to leave out; (member, value) with what to send in its place."""


def fit(body: JsonObject, changes: Changes, fixed: AbstractSet[str] = frozenset()) -> JsonObject:
    """Return `body` as the model takes it; what is `fixed`, and a format of the text, stay in it."""
    if not changes:
        return body
    # What is made in the background has to be stored.
    kept = fixed | ({"store"} if "background" in body else set[str]())
    left_out = {name for name, value in changes if value is None and name not in kept}
    fitting = {key: value for key, value in body.items() if key not in left_out}
    if "text" in left_out and "format" in body.get("text", {}):
        fitting["text"] = {"format": body["text"]["format"]}
    if gone := left_out & _OF_SEARCH:
        fitting["tools"] = [{key: each[key] for key in each if key not in gone} for each in body.get("tools", ())]
    if taken := changes.get(("reasoning", fitting.get("reasoning", {}).get("effort") or "")):
        fitting["reasoning"] = {**fitting["reasoning"], "effort": taken}
    return fitting


def changes_after(
    error: UpstreamError, body: JsonObject, changes: Changes, fixed: AbstractSet[str] = frozenset()
) -> Changes | None:
    """Return the changes to try next, after `error` for `fit(body, changes, fixed)`; None if there are none."""
    sent = fit(body, changes, fixed)
    refused = _refused_members(error) & {*sent, *(key for tool in sent.get("tools", ()) for key in tool)} - fixed
    learnt, asked = dict(changes), str(body.get("reasoning", {}).get("effort"))
    if "reasoning" in refused and ("reasoning", asked) not in changes:
        order = (*EFFORTS, asked)
        said, listed = _divided(error.words)
        ranks = {order.index(word) for word in re.split(r"\W+", listed or said) if word in order}
        if ranks := ranks - {at := order.index(asked)}:  # of two equally near, the one that thinks more
            learnt["reasoning", asked] = order[min(ranks, key=lambda rank: (abs(rank - at), -rank))]
            refused -= {"reasoning"}
    learnt |= {(name, None): None for name in refused | ({"stream_options"} if "stream" in refused else set[str]())}
    return None if fit(body, learnt, fixed) == sent else learnt


def news(changes: Changes, known: Changes) -> Iterator[str]:
    """Yield a sentence for each of the changes that is not `known`."""
    for name, value in sorted(changes.keys() - known.keys(), key=str):
        if value is None:
            yield f"is asked without {name}, which is not taken"
        else:
            yield f"uses reasoning effort {changes[name, value]}, as {value} is not taken"


def _refused_members(error: UpstreamError) -> set[str]:
    """Return the members that an error refuses: all that it lists or announces, else the one of ours that it quotes.

    Of a list with anything else in it none is left out: the request would be refused again.
    """
    if error.maybe_paid or error.status not in (None, 400, 422) or error.kind not in _OF_REQUEST:
        return set()
    if paths := [each for each in error.params if each != "body"]:
        members = set(map(_member, paths))
        return set() if "" in members else members
    said, _ = _divided(error.words)
    said = _LOCATION.sub(lambda found: f"field {'.'.join(_PART.findall(found[1]))}", said)
    announced = (name for found in _ANNOUNCED.finditer(said) for name in _NAME.finditer(found[1]))
    if members := {_member(name[1] or name[2]) for name in announced} - {""}:
        return members
    # A word of plain English counts in quotes alone.
    named = (name[1] or name[2] for name in _NAME.finditer(said) if name[1] or not name[2].isalpha())
    members = set(map(_member, named)) - {""}
    return members if len(members) == 1 else set()


def _member(path: str) -> str:
    """Return the member that a server means by a path; "" if it is none that may be left out."""
    parts = _PART.findall(_plain(path))
    head, *rest = parts[1:] if parts[1:] and parts[0].endswith(("body", "request")) else parts or [""]
    if head == "tools":
        return next((name for name in rest if name in _OF_SEARCH), "")
    name = _ALSO_CALLED.get(head, head)
    # The format of a text is a question's own: without it, the answer would be another one.
    return name if name in _OPTIONAL and [head, *rest[:1]] != ["text", "format"] else ""


def _divided(words: str) -> tuple[str, str]:
    """Return, without links, what an error says before it lists what is taken, and the list."""
    said = _LINK.sub(" ", _plain(words))
    found = _TAKEN.search(said)
    return (said, "") if found is None else (said[: found.start()], said[found.end() :])


def _plain(words: str) -> str:
    return _HUMP.sub("_", words).lower()
