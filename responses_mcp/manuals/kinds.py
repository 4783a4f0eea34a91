"""The kinds of rows that `manual_hits` shows (contract, manual_hits). Apart, because a start needs nothing else."""

from __future__ import annotations

from typing import Final

KINDS: Final = (
    "candidates",
    "unscanned",
    "conflicts",
    "gaps",
    "integrated_top",
    "claims",
    "evidences",
    "edges",
    "gate_runs",
    "fusion_debug",
)
