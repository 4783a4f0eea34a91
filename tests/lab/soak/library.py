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
TOOLS: Final = (
    *("manual_ls", "manual_toc", "manual_find", "manual_find", "manual_hits", "manual_read", "manual_scan"),
    *("manual_search", "wrong"),
)
FIND_OPTIONS: Final[tuple[dict[str, Any], ...]] = (
    *({}, {"inline_hits": {"limit": 3}}, {"use_cache": False}, {"include_claim_graph": True}),
)
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
        tool, arguments, check, faults = self._choice(rng.choice(TOOLS), rng)
        return tool, arguments, manual_with(tool, check, modern=modern, faults=faults)

    def _choice(self, tool: str, rng: random.Random) -> tuple[str, dict[str, Any], Any, tuple[str, ...]]:
        gold = rng.choice(self._gold)
        manual, path, query = gold["manual_id"], gold["path"], gold["query"]
        match tool:
            case "manual_ls":
                wanted = rng.choice(("manuals", manual))
                return tool, {"id": wanted}, lambda found: found["id"] == wanted and found["items"], ()
            case "manual_toc":
                return tool, {"manual_id": manual, "max_files": 5}, lambda found: len(found["items"]) == 5, ()
            case "manual_find":
                self._asked = (self._asked + 1) % WORDINGS
                arguments = {"query": f"{query} {self._asked}" if self._asked % 2 else query, "manual_id": manual}
                arguments |= {"required_terms": gold["required_terms"][:2], **rng.choice(FIND_OPTIONS)}
                inline = "inline_hits" in arguments
                return tool, arguments, lambda found: found["candidates"] > 0 and ("inline_hits" in found) == inline, ()
            case "manual_hits" if self._traces:
                wanted = {"trace_id": rng.choice(self._traces), "kind": rng.choice(KINDS)}
                return tool, wanted, lambda found: found | wanted == found, ("not_found",)
            case "manual_read" if path.endswith(".md"):
                text = self._texts[manual, path]
                ref = {"manual_id": manual, "path": path}
                return tool, {"ref": ref}, lambda found: found["text"] and found["text"] in text, ()
            case "manual_scan":
                text = self._texts[manual, path]
                start = rng.randrange(len(text))
                arguments = {"manual_id": manual, "path": path, "cursor": {"char_offset": start}, "max_chars": 500}
                return tool, arguments, lambda found: found["text"] == text[start : start + 500], ()
            case "manual_search":
                return tool, {"query": query}, lambda found: found["complete"] and found["results"], ()
        wrong = rng.choice(
            ({"manual_id": "manuals", "path": path}, {"manual_id": "nothing", "path": path}, {"path": path})
        )
        return "manual_scan", wrong, lambda _: False, ("invalid_parameter", "not_found")
