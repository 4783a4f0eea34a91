"""manual_hits: the views of a find, kind by kind."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_mcp.manuals.cancellation import unchecked
from responses_mcp.manuals.errors import ManualsError
from responses_mcp.manuals.requests import HitsRequest
from responses_mcp.manuals.results.diagnosis import gap_rows
from responses_mcp.manuals.results.find_payload import Unscanned
from responses_mcp.manuals.results.traces import page
from tests.manuals.found import payload, row

TRACE = "0123456789abcdef" * 2


def show(
    found: dict[str, Any], kind: str, *, compact: bool = False, offset: int = 0, limit: int = 50
) -> dict[str, Any]:
    request = HitsRequest(trace_id=TRACE, kind=kind, offset=offset, limit=limit)
    return page(found, request, compact=compact)


def test_a_kind_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ManualsError) as caught:
        show(payload(), "Candidates")
    assert caught.value.code == "invalid_parameter"
    assert "integrated_top" in caught.value.message


@pytest.mark.rule("M4.54", "M5.5", "M5.6")
def test_candidates_are_compressed_and_share_their_manual() -> None:
    found = payload(row("a.md", 7, signals=("exact",), score=0.5))
    full, compact = (show(found, "candidates", compact=compact) for compact in (False, True))
    assert full["manual_id"] == compact["manual_id"] == "shop"
    short: dict[str, Any] = {"ref": {"path": "a.md", "start_line": 7}, "score": 0.5, "matched_tokens": ["guide"]}
    assert compact["items"] == [short]
    assert full["items"] == [
        {
            **short,
            "ref": {**short["ref"], "signals": ["exact"]},
            "score_lexical": 0.5,
            "score_fused": 0.5,
            "token_hits": {"guide": 1},
            "match_coverage": 1.0,
            "rank_explain": ["bm25"],
        }
    ]


@pytest.mark.rule("M5.11")
def test_public_integrated_top_has_titles_and_refs_to_read() -> None:
    shown = show(payload(row("a.md", 7, score=0.5)), "integrated_top", compact=True)
    assert "manual_id" not in shown
    ref = {"manual_id": "shop", "path": "a.md", "start_line": 7}
    assert shown["items"] == [{"ref": ref, "title": "Guide", "score": 0.5, "matched_tokens": ["guide"]}]


def test_integrated_top_is_the_candidates_in_full() -> None:
    found = payload(row("a.md"), row("b.md"))
    assert show(found, "integrated_top")["items"] == found["candidates"]


@pytest.mark.parametrize("kind", ["unscanned", "gaps", "gate_runs", "fusion_debug"])
@pytest.mark.parametrize("compact", [True, False])
def test_rows_of_other_kinds_are_shown_as_they_are(kind: str, compact: bool) -> None:
    rows = [{"number": number} for number in range(3)]
    found = {**payload(row()), kind: rows}
    shown = show(found, kind, compact=compact, offset=1)
    assert (shown["total"], shown["items"]) == (3, rows[1:])


@pytest.mark.rule("M5.9")
def test_gap_and_unscanned_rows_have_the_fields_of_a_row() -> None:
    fields = {"path", "start_line", "score", "reason", "signals", "conflict_with", "gap_hint"}
    gap = gap_rows([])[0]
    assert set(gap) == {"ref", *fields}
    assert (gap["reason"], gap["ref"], gap["path"], gap["start_line"], gap["score"]) == ("gap", None, None, None, None)
    (unscanned,) = Unscanned("shop", [("a.md", "time_budget")], unchecked)[:]
    assert set(unscanned) == {"manual_id", *fields}
    assert (unscanned["reason"], unscanned["manual_id"], unscanned["path"]) == ("time_budget", "shop", "a.md")


@pytest.mark.rule("M5.13")
@given(
    count=st.integers(0, 30),
    limit=st.integers(1, 12),
    kind=st.sampled_from(["candidates", "integrated_top", "unscanned"]),
    compact=st.booleans(),
)
def test_pages_join_to_all_rows_and_end_empty(count: int, limit: int, kind: str, compact: bool) -> None:
    rows = [row(f"{number}.md") for number in range(count)]
    found = payload(*rows, unscanned=rows)
    whole = show(found, kind, compact=compact, limit=1000)
    joined: list[Any] = []
    for offset in range(0, count + limit, limit):
        part = show(found, kind, compact=compact, offset=offset, limit=limit)
        assert part["total"] == count
        joined += part["items"]
    assert joined == whole["items"]
    assert show(found, kind, compact=compact, offset=count + 5)["items"] == []
