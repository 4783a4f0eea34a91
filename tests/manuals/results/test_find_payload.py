"""Payloads and rows kept small."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_mcp.manuals.cancellation import OutOfTime, unchecked
from responses_mcp.manuals.results.find_payload import Unscanned, packed, unpacked
from tests.manuals.found import payload, row
from tests.manuals.indexed import after


def test_a_payload_comes_back_from_its_packed_form() -> None:
    found = payload(row("設定.md", title="\ud800"), claim_graph={"claims": []})
    small = packed(found)
    assert unpacked(small) == found
    assert "candidates" not in small
    assert {key: small[key] for key in ("applied", "summary", "unscanned")}


def test_a_payload_of_many_rows_takes_few_bytes() -> None:
    found = payload(*(row(f"{number}.md") for number in range(50)))
    assert len(packed(found)["packed"]) < len(json.dumps(found)) / 8


@given(st.integers(0, 2500), st.integers(-20, 2600), st.integers(0, 200))
def test_pages_of_unscanned_files_are_as_of_a_list(count, offset, limit) -> None:
    reasons = [(f"{number}.md", "time_budget" if number % 3 else "too_large") for number in range(count)]
    rows = Unscanned("shop", reasons, unchecked)
    assert len(rows) == count
    shown = [(each["path"], each["reason"]) for each in rows[offset : offset + limit]]
    assert shown == reasons[offset : offset + limit]


def test_unscanned_files_are_told_with_any_name() -> None:
    reasons = [("a\nb.md", "x"), ("", "y"), ("設定.md", "x")]
    rows = Unscanned("shop", iter(reasons), unchecked)
    assert [(each["path"], each["reason"]) for each in rows[:]] == reasons
    assert list(rows.paths()) == [path for path, _ in reasons]
    assert not Unscanned("shop", [], unchecked)


def test_packing_many_paths_can_be_stopped() -> None:
    with pytest.raises(OutOfTime):
        Unscanned("shop", ((str(number), "x") for number in range(5000)), after(2))
