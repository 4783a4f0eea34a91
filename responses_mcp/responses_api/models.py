"""Which parameters a model takes, read from its id (contract 5.6, and what the models of today do).

Unknown future models of a known family are trusted with the family's parameters: the API's own refusal is then the
better teacher.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

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
