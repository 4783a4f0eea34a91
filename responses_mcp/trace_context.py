"""The trace that a request belongs to (w3.org/TR/trace-context, w3.org/TR/baggage): read from `_meta`, sent as headers.

What is not of the standards' grammar, or longer than they ask anybody to pass on, is left out. So nothing of it can end
a header or begin another one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Final

from responses_mcp.json_types import as_object

# As texts: few requests have a trace, and a start should not wait for patterns.
_IDS: Final = r"-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}"
_PARENT: Final = rf"00{_IDS}|(?!00|ff)[0-9a-f]{{2}}{_IDS}(?:-[!-~]{{0,200}})?"  # later versions may add something
_LONGEST_STATE: Final = 512  # characters
_MOST_STATES: Final = 32
_STATE: Final = r"[a-z0-9][a-z0-9_*/@-]{0,255}=[ -+\--<>-~]{0,255}[!-+\--<>-~]"
_LONGEST_BAGGAGE: Final = 8192  # characters
_MOST_BAGGAGE: Final = 64
_WORD: Final = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_VALUE: Final = r"[!#-+\--:<-\[\]-~]*"
_MEMBER: Final = rf"{_WORD}={_VALUE}"
_PROPERTY: Final = rf"{_WORD}(?:={_VALUE})?"

TRACE: Final = ContextVar[Mapping[str, str]]("TRACE", default={})  # noqa: B039  # nobody changes it
"""The headers of the trace that the running call belongs to, none outside of calls."""


def trace_of(params: Mapping[str, object]) -> dict[str, str]:
    """Return the headers for the trace that the `_meta` of a request's params tells."""
    meta = as_object(params.get("_meta"))
    headers: dict[str, str] = {}
    parent, state, baggage = (meta.get(name) for name in ("traceparent", "tracestate", "baggage"))
    if isinstance(parent, str) and re.fullmatch(_PARENT, parent):
        headers["traceparent"] = parent
        if isinstance(state, str) and (state := _listed(state)):
            headers["tracestate"] = state
    if isinstance(baggage, str) and len(baggage) <= _LONGEST_BAGGAGE:
        members = [_carried(each) for each in baggage.split(",")]
        if len(members) <= _MOST_BAGGAGE and all(members):
            headers["baggage"] = ",".join(members)
    return headers


def _listed(text: str) -> str:
    """Return a state as it may be sent, empty if a member of it is wrong."""
    members = [each.strip(" \t") for each in text.split(",")] if len(text) <= _LONGEST_STATE else []
    members = [each for each in members if each]  # empty ones are allowed
    right = len(members) <= _MOST_STATES and all(re.fullmatch(_STATE, each) for each in members)
    return ",".join(members) if right and len({each.partition("=")[0] for each in members}) == len(members) else ""


def _carried(text: str) -> str:
    """Return a member of the baggage with its properties, without blanks; empty if it is wrong."""
    parts = (part.partition("=") for part in text.split(";"))
    first, *properties = (name.strip(" \t") + sign + value.strip(" \t") for name, sign, value in parts)
    right = re.fullmatch(_MEMBER, first) and all(re.fullmatch(_PROPERTY, each) for each in properties)
    return ";".join([first, *properties]) if right else ""
