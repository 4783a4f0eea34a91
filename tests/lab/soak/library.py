"""Questions for the manual tools, with answers that are known: the corpus of the tests of the search."""

from __future__ import annotations

import json
import random
from collections import deque
from pathlib import Path
from typing import Any, Final

from tests.lab.soak.expected import manual_with
from tests.lab.soak.ledger import Judge

CORPUS: Final = Path(__file__).parents[2] / "manuals" / "corpus"
KINDS: Final = ("candidates", "integrated_top", "gaps", "conflicts", "unscanned", "gate_runs")
WORDINGS: Final = 4  # of a question; few, so that what the server remembers of words is complete before long
Question = tuple[str, dict[str, Any], Judge]  # tool, arguments, what the answer must be


class Library:
    """The manuals, read once, and the searches that were made in them."""

    def __init__(self) -> None:
        self._gold = [json.loads(line) for line in (CORPUS / "gold.jsonl").read_text("utf-8").splitlines()]
        self._texts = {
            (each.relative_to(CORPUS).parts[0], "/".join(each.relative_to(CORPUS).parts[1:])): each.read_text("utf-8")
            for each in sorted(CORPUS.glob("*/**/*"))
            if each.suffix in (".md", ".json")
        }
        self._traces: deque[str] = deque(maxlen=20)
        self._asked = 0

    def remember(self, found: dict[str, Any]) -> None:
        """Note the answer of a search, for `manual_hits`."""
        self._traces.append(found["trace_id"])

    def question(self, rng: random.Random, *, modern: bool) -> Question:
        """Return a tool, its arguments, and what its answer must be."""
        tool = rng.choice(
            (
                "manual_ls",
                "manual_toc",
                "manual_find",
                "manual_find",
                "manual_hits",
                "manual_read",
                "manual_scan",
                "manual_search",
                "wrong",
            )
        )
        gold = rng.choice(self._gold)
        manual, path = gold["manual_id"], gold["path"]
        if tool == "manual_ls":
            wanted = rng.choice(("manuals", manual))
            return self._asks(tool, {"id": wanted}, lambda found: found["id"] == wanted and found["items"], modern)
        if tool == "manual_toc":
            return self._asks(
                tool, {"manual_id": manual, "max_files": 5}, lambda found: len(found["items"]) == 5, modern
            )
        if tool == "manual_find":
            return self._find(rng, gold, modern)
        if tool == "manual_hits" and self._traces:
            trace, kind = rng.choice(self._traces), rng.choice(KINDS)
            return self._asks(
                tool, {"trace_id": trace, "kind": kind}, lambda found: (found["trace_id"], found["kind"]) == (trace, kind), modern,
                ("not_found",),
            )  # fmt: skip
        if tool == "manual_read" and path.endswith(".md"):
            text = self._texts[manual, path]
            ref = {"manual_id": manual, "path": path}
            return self._asks(tool, {"ref": ref}, lambda found: found["text"] and found["text"] in text, modern)
        if tool == "manual_scan":
            text = self._texts[manual, path]
            start = rng.randrange(len(text))
            arguments = {"manual_id": manual, "path": path, "cursor": {"char_offset": start}, "max_chars": 500}
            return self._asks(tool, arguments, lambda found: found["text"] == text[start : start + 500], modern)
        if tool == "manual_search":
            return self._asks(
                tool, {"query": gold["query"]}, lambda found: found["complete"] and found["results"], modern
            )
        wrong = rng.choice(
            ({"manual_id": "manuals", "path": path}, {"manual_id": "nothing", "path": path}, {"path": path})
        )
        faults = ("invalid_parameter", "not_found")
        return self._asks("manual_scan", wrong, lambda _: False, modern, faults)

    def _find(self, rng: random.Random, gold: dict[str, Any], modern: bool) -> Question:
        self._asked = (self._asked + 1) % WORDINGS
        query = f"{gold['query']} {self._asked}" if self._asked % 2 else gold["query"]
        arguments = {"query": query, "manual_id": gold["manual_id"], "required_terms": gold["required_terms"][:2]}
        arguments |= rng.choice(
            ({}, {"inline_hits": {"limit": 3}}, {"use_cache": False}, {"include_claim_graph": True})
        )
        inline = "inline_hits" in arguments
        return self._asks(
            "manual_find",
            arguments,
            lambda found: found["candidates"] > 0 and ("inline_hits" in found) == inline,
            modern,
        )

    def _asks(
        self, tool: str, arguments: dict[str, Any], check: Any, modern: bool, faults: tuple[str, ...] = ()
    ) -> Question:
        return tool, arguments, manual_with(tool, check, modern=modern, faults=faults)
