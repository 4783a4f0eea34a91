"""Retrieval over a folder of manuals: documents of many formats, searched and read off the event loop."""

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
"""The kinds of rows that `manual_hits` shows (M5.12). Here, because a start needs nothing else."""
