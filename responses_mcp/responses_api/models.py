"""Which parameters a model takes, read from its id (contract 5.6, and what the models of today do).

Unknown future models of a known family are trusted with the family's parameters: the API's own refusal is then the
better teacher.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

_EFFORT_ORDER: Final = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_O_SERIES = re.compile(r"o\d")
_GPT = re.compile(r"gpt-(\d+)(?:\.(\d+))?(-.*)?$")

_LOW_TO_HIGH = ("low", "medium", "high")
_LOW_TO_XHIGH = ("low", "medium", "high", "xhigh")


@dataclass(frozen=True, slots=True)
class ModelTraits:
    """What may be sent to a model. `efforts` None: any value is worth trying."""

    verbosity: bool
    reasoning: bool
    efforts: tuple[str, ...] | None = None


def model_traits(model: str) -> ModelTraits:
    """Return what `model` takes. A vendor prefix (`openai/…`) and `ft:` do not matter."""
    name = model.rpartition("/")[2].removeprefix("ft:")
    if _O_SERIES.match(name):
        return ModelTraits(
            verbosity=False, reasoning=True, efforts=("medium",) if "deep-research" in name else _LOW_TO_HIGH
        )
    gpt = _GPT.match(name)
    if gpt is None or int(gpt[1]) < 5 or "-chat-latest" in name:
        return ModelTraits(verbosity=False, reasoning=False)
    return ModelTraits(
        verbosity=True, reasoning=True, efforts=_gpt_efforts((int(gpt[1]), int(gpt[2] or 0)), gpt[3] or "")
    )


def _gpt_efforts(version: tuple[int, int], suffix: str) -> tuple[str, ...] | None:
    # `minimal` is missing on purpose: the API refuses it together with web search, which every request of ours has.
    if suffix.startswith("-pro"):
        return ("high",) if version == (5, 0) else ("medium", "high", "xhigh")
    if "-codex" in suffix:
        return _LOW_TO_XHIGH if version >= (5, 2) or "-max" in suffix else _LOW_TO_HIGH
    if version >= (6, 0):
        return (*_LOW_TO_XHIGH, "max") if version < (7, 0) else None
    known = {
        (5, 0): _LOW_TO_HIGH,
        (5, 1): ("none", *_LOW_TO_HIGH),
        (5, 2): ("none", *_LOW_TO_XHIGH),
        (5, 4): ("none", *_LOW_TO_XHIGH),
        (5, 5): ("none", *_LOW_TO_XHIGH),
        (5, 6): ("none", *_LOW_TO_XHIGH, "max"),
    }
    return known.get(version)


def clamp_effort(effort: str, allowed: tuple[str, ...] | None) -> str:
    """Return the member of `allowed` nearest to `effort`; of two equally near, the one that thinks more."""
    if allowed is None or effort in allowed or effort not in _EFFORT_ORDER:
        return effort
    wanted = _EFFORT_ORDER.index(effort)
    return min(allowed, key=lambda each: (abs(_EFFORT_ORDER.index(each) - wanted), -_EFFORT_ORDER.index(each)))
