"""The rules of the contract that need the whole of it: real files, a real index, and the tools on the wire.

docs/internals/manuals-contract.md says which test holds which rule; what one module can hold alone is tested beside it.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from responses_mcp.manuals import KINDS
from responses_mcp.manuals.requests import FindRequest, HitsRequest, ReadRequest
from responses_mcp.manuals.requests.parsing import parse_find
from responses_mcp.manuals.service import Manuals, open_manuals
from responses_mcp.settings.model import (
    CacheSettings,
    FindSettings,
    LexicalSettings,
    ManualsSettings,
    Settings,
)
from tests.toolsets.manuals_harness import REVISIONS, Desk, book, desk


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with two manuals: `book` of 60 sections, and `lore` for scores."""
    root = tmp_path_factory.mktemp("manuals")
    files = {
        "lore/panel.md": "# Panel\nPress the red button twice. Form 217 follows.\n",
        "lore/board.md": f"# Board\nA red lamp. {'Some other words stand between. ' * 5}Then a button.\n",
        "lore/index.md": "# Overview\nThe red button, and form 217.\n",
        "lore/tome.md": f"# Tome\nThe red button. {'Many more words follow here. ' * 250}\n",
        "lore/many.md": "".join(f"# Room {number}\nviolet curtains\n" for number in range(6)),
        "lore/zero.md": "# Room 9\nviolet curtains\n",
        "lore/settings.json": '{"colour": "red", "limit": 217}\n',
        "lore/sections.md": "Before all.\n\n# One\nfirst\n\n## Sub\nbelow\n\n# Two\nsecond\n" + "and more\n" * 100,
    }
    for number in range(100):
        words = ["lamp", *["brass"] * (number < 70), *["unless"] * (number % 2)]
        files[f"shelf/{number:02}.md"] = f"# Requirements {number}\n{' '.join(words)} and other things\n"
    for number in range(60):
        words = ["alpha", *["beta"] * (number % 2), *["gamma"] * (not number % 3), *["solo"] * (number == 7)]
        files[f"book/part{number % 4}/{number:02}.md"] = f"# Topic {number}\n{' '.join(words)} and other things\n"
    return book(root, files)


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("index")


Open = Callable[..., AbstractAsyncContextManager[Manuals]]


@pytest.fixture
def manuals(root: Path, index: Path) -> Open:
    """Return what opens the manuals with some settings changed."""

    return lambda **changed: open_manuals(ManualsSettings(root=str(root), index_dir=str(index), **changed))


@pytest.fixture
async def opened(manuals: Open) -> AsyncGenerator[Manuals]:
    """Return the manuals with the usual settings."""
    async with manuals() as opened:
        yield opened


@pytest.fixture
async def here(root: Path, index: Path) -> AsyncGenerator[Desk]:
    """Return a client that has listed the manuals."""
    async with desk(Settings(manuals=ManualsSettings(root=str(root), index_dir=str(index)))) as here:
        await here.call("manual_ls")
        yield here


async def find(manuals: Manuals, query: str, *terms: str, manual_id: str = "book", **more: Any) -> dict[str, Any]:
    return await manuals.find(FindRequest(query, manual_id, terms, **more))


def rows(manuals: Manuals, found: dict[str, Any], kind: str = "candidates") -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = manuals.hits(HitsRequest(found["trace_id"], kind))["items"]
    return items


# manual_ls


@pytest.mark.rule("M2.3")
async def test_each_listing_shows_the_manuals_that_there_are_now(tmp_path: Path) -> None:
    async with desk(Settings(manuals=ManualsSettings(root=str(tmp_path)))) as here:

        async def listed() -> list[str]:
            return [item["id"] for item in (await here.call("manual_ls", id="manuals"))["items"]]

        assert await listed() == []
        (tmp_path / "b").mkdir()
        assert await listed() == ["b"]
        (tmp_path / "b.md").write_text("# One more\n", encoding="utf-8")
        assert sorted(await listed()) == sorted(["b", tmp_path.name])
        (tmp_path / "b.md").unlink()
        (tmp_path / "a").mkdir()
        assert await listed() == ["a", "b"]
        (tmp_path / "b").rmdir()
        assert await listed() == ["a"]


# manual_toc


@pytest.mark.rule("M3.1", "M3.9")
async def test_contents_have_the_fields_of_the_contract(here: Desk) -> None:
    shallow = await here.call("manual_toc", manual_id="lore", max_files=2, cursor="1")
    deep = await here.call("manual_toc", manual_id="lore", path_prefix="sections.md", depth="deep")
    assert shallow == {
        "applied": {
            "manual_id": "lore", "path_prefix": "", "depth": "shallow", "max_files": 2, "include_headings": False,
            "max_headings_per_file": 20, "offset": 1,
        },
        "total_files": 8,
        "next_cursor": {"offset": 3},
        "items": [{"path": "index.md", "headings": []}, {"path": "many.md", "headings": []}],
    }  # fmt: skip
    assert deep["applied"]["include_headings"] is True
    assert deep["items"][0]["headings"] == [
        {"title": "One", "line_start": 3}, {"title": "Sub", "line_start": 6}, {"title": "Two", "line_start": 9},
    ]  # fmt: skip


# manual_find: its score


async def reasons(manuals: Open, query: str, **changed: Any) -> set[str]:
    """Return what counted in the score of any row."""
    async with manuals(**changed) as opened:
        found = await find(opened, query, "red", manual_id="lore")
        return {why.rpartition(" ")[0] for row in rows(opened, found) for why in row["rank_explain"]}


BONUSES = {"coverage", "phrase", "proximity", "number in context"}
DEDUCTIONS = {"list of contents"}


@pytest.mark.rule("M4.2")
async def test_a_score_is_made_of_words_and_bonuses_less_what_noise_costs(manuals: Open) -> None:
    assert {"tf-idf"} | BONUSES | DEDUCTIONS <= await reasons(manuals, "red button form 217")


@pytest.mark.rule("M4.3")
async def test_the_weights_of_the_score_are_settings(manuals: Open) -> None:
    without = LexicalSettings(
        coverage_weight=0, phrase_weight=0, number_context_bonus=0,
        proximity_bonus_near=0, proximity_bonus_far=0, length_penalty_weight=0,
    )  # fmt: skip
    left = await reasons(manuals, "red button form 217", lexical=without)
    assert left >= {"tf-idf", "coverage"}  # a part of coverage is fixed
    assert left.isdisjoint(BONUSES - {"coverage"})


@pytest.mark.rule("M4.2")
async def test_what_is_noise_costs_points(manuals: Open) -> None:
    scores: list[dict[str, float]] = []
    for penalty in (0.0, 0.2):
        async with manuals(lexical=LexicalSettings(length_penalty_weight=penalty)) as opened:
            found = await find(opened, "red button", "red", manual_id="lore")
            scores.append({row["ref"]["path"]: row["score"] for row in rows(opened, found)})
            explained = {row["ref"]["path"]: " ".join(row["rank_explain"]) for row in rows(opened, found)}
    assert scores[1]["tome.md"] < scores[0]["tome.md"]
    assert scores[1]["panel.md"] > scores[0]["panel.md"]  # shorter than most
    assert "list of contents -" in explained["index.md"]


@pytest.mark.rule("M4.4")
@pytest.mark.parametrize(
    ("settings", "places"), [({}, 4), ({"exploration_ratio": 0.4}, 8), ({"exploration_enabled": False}, 0)]
)
async def test_a_fixed_share_of_the_hits_explores(manuals: Open, settings: dict[str, Any], places: int) -> None:
    async with manuals(find=FindSettings(**settings)) as opened:
        shown = rows(opened, await find(opened, "alpha beta gamma", "beta", max_candidates=20))
    explored = ["exploration" in row["ref"]["signals"] for row in shown]
    assert explored == [False] * (20 - places) + [True] * places
    scores = [row["score"] for row in shown]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.rule("M4.51")
async def test_hits_are_at_most_50_and_at_most_as_many_as_asked_for(opened: Manuals) -> None:
    for asked, shown in ((1, 1), (3, 3), (50, 50), (200, 50), (1000, 50)):
        found = await find(opened, "alpha things", "beta", max_candidates=asked)
        assert found["summary"]["candidates"] == len(rows(opened, found)) == shown


@pytest.mark.rule("M4.52")
async def test_the_second_section_of_a_file_comes_after_as_good_a_one_of_another(opened: Manuals) -> None:
    shown = rows(opened, await find(opened, "violet", "violet", manual_id="lore"))
    assert [row["ref"]["path"] for row in shown[:2]] == ["many.md", "zero.md"]
    assert {row["ref"]["path"] for row in shown[2:]} == {"many.md"}


# manual_find: scope, gates, required terms


@pytest.mark.rule("M4.12", "M4.33", "M4.34")
async def test_a_search_stays_in_its_manual(opened: Manuals) -> None:
    for expand in (None, True, False):
        found = await find(opened, "red button", "red", expand_scope=expand, use_cache=False)
        assert found["applied"]["requested_expand_scope"] is expand
        assert found["applied"]["expand_scope"] is False
        assert found["summary"]["candidates"] == 0
    for kind in ("candidates", "integrated_top", "unscanned", "fusion_debug"):
        for row in rows(opened, await find(opened, "alpha red", "beta"), kind):
            assert "lore" not in str(row)


@pytest.mark.rule("M4.14")
async def test_both_gates_always_run_and_are_fused(opened: Manuals) -> None:
    for query, terms in (
        ("alpha things", ("beta",)),
        ("alpha", ("nowhere",)),
        ("alpha", ("alpha",)),
        ("x", ("y",)),
    ):
        found = await find(opened, query, *terms)
        assert [run["gate"] for run in rows(opened, found, "gate_runs")] == ["g0", "g_req"]
    found = await find(opened, "alpha things", "beta")
    first = rows(opened, found, "fusion_debug")[0]
    assert [each["gate"] for each in first["contributions"]] == ["g0", "g_req"]
    assert min(each["rank"] for each in first["contributions"]) == 1
    assert "beta" in (await opened.read(read_of(first)))[0]["text"]


def read_of(row: dict[str, Any]) -> ReadRequest:
    return ReadRequest(row["ref"]["manual_id"], row["ref"]["path"], row["ref"]["start_line"])


@pytest.mark.rule("M4.16", "M4.17", "M4.20", "M4.21", "M4.26", "M4.56")
async def test_what_became_of_the_required_terms_is_in_applied(opened: Manuals) -> None:
    applied = (await find(opened, "things", "beta"))["applied"]
    assert {key: value for key, value in applied.items() if not key.startswith("sem_cache")} == {
        "manual_id": "book",
        "requested_expand_scope": None,
        "expand_scope": False,
        "required_terms_source": "user",
        "required_terms_decision_reason": "provided_by_caller",
        "requested_required_terms": ["beta"],
        "required_terms": ["beta"],
        "required_terms_df_filtered": [],
        "required_terms_relaxed": False,
        "required_terms_relax_reason": None,
        "required_effect_status": "required_effective",
        "required_failure_reason": None,
        "required_strict_candidates": 30,
        "required_filtered_candidates": 30,
        "required_terms_match_stats": [{"term": "beta", "matched_docs": 30, "matched_doc_ratio": 0.5}],
        "required_terms_missing": [],
        "required_top_k": 5,
        "required_top_hits": 5,
        "selected_gate": "g_req",
        "gate_selection_reason": "rrf_fusion_with_required_gate",
    }


@pytest.mark.rule("M4.18")
async def test_required_terms_are_reported_as_they_were_normalised(opened: Manuals) -> None:
    request = parse_find({"query": "things", "manual_id": "book", "required_terms": ["ＢＥＴＡ ", "Gamma"]})
    applied = (await opened.find(request))["applied"]
    assert applied["requested_required_terms"] == ["beta", "gamma"]


@pytest.mark.rule("M4.15", "M4.20", "M4.21", "M4.26", "M4.29", "M4.32")
async def test_terms_that_nothing_has_leave_the_search_without_them(opened: Manuals) -> None:
    plain = rows(opened, await find(opened, "beta things", "absent"))
    found = await find(opened, "beta things", "nowhere")
    applied = found["applied"]
    assert applied["selected_gate"] == "g0"
    assert applied["gate_selection_reason"] == "required_gate_empty_fallback_to_g0"
    assert applied["required_terms_relaxed"] is True
    assert applied["required_terms_relax_reason"] == "zero_candidates_with_required_terms"
    assert applied["required_effect_status"] == "required_none_matched"
    assert applied["required_terms_missing"] == ["nowhere"]
    assert (applied["required_strict_candidates"], applied["required_filtered_candidates"]) == (0, 0)
    assert applied["required_top_hits"] == 0
    assert found["summary"]["candidates"] > 0
    assert [row["ref"] for row in rows(opened, found)] == [row["ref"] for row in plain]


@pytest.mark.rule("M4.19", "M4.22", "M4.23", "M4.24")
async def test_a_term_in_nearly_every_section_is_dropped_and_a_rare_one_kept(opened: Manuals) -> None:
    applied = (await find(opened, "things", "alpha", "solo"))["applied"]
    assert applied["required_terms_df_filtered"] == [
        {"term": "alpha", "doc_freq": 60, "doc_freq_ratio": 1.0, "reason": "too_common", "dropped": True},
        {"term": "solo", "doc_freq": 1, "doc_freq_ratio": 0.0167, "reason": "too_rare", "dropped": False},
    ]
    assert applied["requested_required_terms"] == ["alpha", "solo"]
    assert applied["required_terms"] == ["solo"]


@pytest.mark.rule("M4.26")
async def test_candidates_with_required_terms_are_counted_before_the_best_are_chosen(opened: Manuals) -> None:
    found = await find(opened, "lamp", "brass", manual_id="shelf")
    applied = found["applied"]
    assert found["summary"]["candidates"] == 50
    assert (applied["required_strict_candidates"], applied["required_filtered_candidates"]) == (70, 70)


@pytest.mark.rule("M4.24")
async def test_a_rare_term_is_searched_for_when_it_is_reported_as_kept(opened: Manuals) -> None:
    found = await find(opened, "things", "alpha", "solo")
    assert rows(opened, found, "gate_runs")[1]["required_terms"] == found["applied"]["required_terms"] == ["solo"]
    assert rows(opened, found, "gate_runs")[1]["candidates_count"] == 1
    first = rows(opened, found)[0]
    assert first["ref"]["path"] == "part3/07.md"
    assert "required_term" in first["ref"]["signals"]
    assert found["applied"]["required_effect_status"] != "required_none_matched"


@pytest.mark.rule("M4.25", "M4.27", "M4.28")
async def test_a_term_that_is_nowhere_is_named(opened: Manuals) -> None:
    applied = (await find(opened, "things", "beta", "nowhere"))["applied"]
    assert applied["required_terms_missing"] == ["nowhere"]
    assert applied["required_effect_status"] == "term_dropped_or_weakened"
    assert applied["required_failure_reason"] == "some_required_terms_not_found_in_manual_scope:nowhere"
    assert applied["required_terms_match_stats"] == [
        {"term": "beta", "matched_docs": 30, "matched_doc_ratio": 0.5},
        {"term": "nowhere", "matched_docs": 0, "matched_doc_ratio": 0.0},
    ]


@pytest.mark.rule("M4.31")
async def test_two_terms_are_three_passes_and_both_in_one_section_come_first(opened: Manuals) -> None:
    found = await find(opened, "things", "beta", "gamma")
    shown = rows(opened, found)
    numbers = [int(row["ref"]["path"][-5:-3]) for row in shown]
    both = [number % 2 == 1 and number % 3 == 0 for number in numbers]
    assert both[:10] == [True] * 10
    assert not any(both[10:])
    for row, number in zip(shown, numbers, strict=True):
        signals = row["ref"]["signals"]
        assert ("required_term_and" in signals) is (number % 2 == 1 and number % 3 == 0)
        assert ("required_terms_rrf" in signals) is (number % 2 == 1 or number % 3 == 0)


@pytest.mark.rule("M4.25")
async def test_a_search_that_did_not_see_everything_says_how_many_files_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("responses_mcp.manuals.files.folder.LARGEST", 200)
    (tmp_path / "book").mkdir()
    for number in range(5):
        (tmp_path / f"book/{number}.md").write_text(
            f"# Topic {number}\nalpha {'beta' * (number % 2)}\n", encoding="utf-8"
        )
    (tmp_path / "book/large.md").write_text("# Large\nzebra\n" + "alpha\n" * 100, encoding="utf-8")
    settings = ManualsSettings(root=str(tmp_path))
    async with desk(Settings(manuals=settings)) as here:
        await here.call("manual_ls")
        wanted = {"query": "alpha", "manual_id": "book"}
        missed = await here.call("manual_find", **wanted, required_terms=["zebra"])
        reason = "incomplete:1_files_not_searched"
        assert (missed["status"], missed["failure_reason"]) == ("required_fallback", f"{reason};not_found_so_far:zebra")
        found = await here.call("manual_find", **wanted, required_terms=["beta"])
        assert (found["status"], found["failure_reason"]) == ("required_effective", reason)
        gaps = await here.call("manual_hits", trace_id=found["trace_id"], kind="gaps")
        assert ["1_files_not_searched" in gap["gap_hint"] for gap in gaps["items"]] == [True]
        (tmp_path / "book/large.md").unlink()
    async with open_manuals(settings) as opened:
        whole = await find(opened, "alpha", "zebra")
        assert whole["summary"]["integration_status"] == "ready"
        assert whole["applied"]["required_effect_status"] == "required_none_matched"
        (tmp_path / "book/large.md").write_text("zebra " * 100, encoding="utf-8")
    async with open_manuals(settings) as opened:
        part = await find(opened, "alpha", "zebra")
        assert part["summary"]["integration_status"] == "needs_followup"
        assert part["summary"]["gap_count"] == len(rows(opened, part, "gaps")) == 1


@pytest.mark.rule("M4.27")
async def test_a_rare_word_is_found_although_one_that_looks_like_it_is_everywhere(tmp_path: Path) -> None:
    (tmp_path / "book").mkdir()
    for number in range(200):
        (tmp_path / f"book/{number}.md").write_text(
            f"# Virtual {number}\nvirtual functions, committed\n", encoding="utf-8"
        )
    rare = {"a.md", "b.md", "c.md"}
    for name in rare:
        text = f"{'Other long words stand here. ' * 30}virtualization, to commit of function_a\n"
        (tmp_path / "book" / name).write_text(f"# Other\n{text}", encoding="utf-8")
    async with open_manuals(ManualsSettings(root=str(tmp_path))) as opened:
        for word, sections in (("virtualization", 3), ("function_a", 3)):
            for query in (word, f"how does {word} work in general"):
                found = await find(opened, query, word)
                assert {row["ref"]["path"] for row in rows(opened, found)} >= rare
                applied = found["applied"]
                assert applied["required_effect_status"] == "required_effective"
                assert applied["required_filtered_candidates"] == sections
                assert applied["required_terms_match_stats"][0]["matched_docs"] == sections


# manual_find: claim graph and cache


@pytest.mark.rule("M4.1", "M4.5", "M5.7")
async def test_a_claim_graph_is_there_when_it_was_asked_for(opened: Manuals) -> None:
    found = await find(opened, "what is beta", "beta", include_claim_graph=True)
    assert found["claim_graph"].keys() == {"claims", "evidences", "edges", "facets"}
    for kind in ("claims", "evidences", "edges"):
        assert rows(opened, found, kind) == found["claim_graph"][kind] != []
    without = await find(opened, "what is beta", "beta")
    assert "claim_graph" not in without
    assert without["summary"] == found["summary"]
    for kind in ("claims", "evidences", "edges"):
        assert rows(opened, without, kind) == []


@pytest.mark.rule("M4.1")
async def test_contradictions_and_open_questions_of_the_claim_graph_leave_the_summary_alone(opened: Manuals) -> None:
    query = "what are the requirements of lamp, unless brass"
    found = await find(opened, query, "brass", manual_id="shelf", include_claim_graph=True)
    relations = {edge["relation"] for edge in found["claim_graph"]["edges"]}
    statuses = {claim["status"] for claim in found["claim_graph"]["claims"]}
    assert "contradicts" in relations
    assert statuses != {"supported"}
    plain = await find(opened, query, "brass", manual_id="shelf")
    assert found["summary"] == plain["summary"]
    assert (plain["summary"]["conflict_count"], plain["summary"]["integration_status"]) == (0, "ready")


@pytest.mark.rule("M4.6", "M5.8")
async def test_a_claim_graph_that_is_switched_off_is_empty(manuals: Open) -> None:
    async with manuals(find=FindSettings(claim_graph_enabled=False)) as opened:
        found = await find(opened, "what is beta", "beta", include_claim_graph=True)
        assert found["claim_graph"] == {"claims": [], "evidences": [], "edges": [], "facets": []}
        for kind in ("claims", "evidences", "edges"):
            assert rows(opened, found, kind) == []


async def modes(manuals: Manuals, *finds: dict[str, Any]) -> list[str]:
    return [(await find(manuals, "solo", "solo", **more))["applied"]["sem_cache_mode"] for more in finds]


USE, GRAPH = {"use_cache": True}, {"include_claim_graph": True}


@pytest.mark.rule("M4.37")
@pytest.mark.parametrize(
    ("enabled", "finds", "expected"),
    [
        (True, [{}, {}, {"use_cache": False}, USE], ["miss", "exact", "bypass", "exact"]),
        (False, [{}, {}, USE, USE], ["bypass", "bypass", "miss", "exact"]),
    ],
)
async def test_the_cache_is_used_as_settings_say_unless_the_request_says_otherwise(
    manuals: Open, enabled: bool, finds: list[dict[str, Any]], expected: list[str]
) -> None:
    async with manuals(cache=CacheSettings(enabled=enabled)) as opened:
        assert await modes(opened, *finds) == expected


@pytest.mark.rule("M4.38")
async def test_a_find_with_a_claim_graph_bypasses_the_cache(opened: Manuals) -> None:
    assert await modes(opened, {}, GRAPH, GRAPH | USE, {}) == ["miss", "bypass", "bypass", "exact"]


@pytest.mark.rule("M4.44")
@pytest.mark.parametrize(
    ("gaps", "conflicts", "again"), [(0, -1, "guard_revalidate"), (1, 0, "exact"), (-1, -1, "exact")]
)
async def test_a_cached_answer_with_too_many_gaps_is_searched_again(
    manuals: Open, gaps: int, conflicts: int, again: str
) -> None:
    async with manuals(cache=CacheSettings(max_summary_gap=gaps, max_summary_conflict=conflicts)) as opened:
        assert await modes(opened, {}, {}) == ["miss", again]


@pytest.mark.rule("M4.45")
async def test_the_full_form_tells_how_the_cache_was_used(opened: Manuals) -> None:
    first = (await find(opened, "solo", "solo"))["applied"]
    again = (await find(opened, "solo", "solo"))["applied"]
    names = ("used", "hit", "mode", "score", "latency_saved_ms")
    assert [first[f"sem_cache_{name}"] for name in names] == [True, False, "miss", None, None]
    assert [again[f"sem_cache_{name}"] for name in names[:4]] == [True, True, "exact", 1.0]
    assert isinstance(again["sem_cache_latency_saved_ms"], int)


# manual_find and manual_hits


@pytest.mark.rule("M4.30", "M4.56")
async def test_a_find_has_the_full_form(opened: Manuals) -> None:
    found = await find(opened, "beta を網羅的に", "beta", include_claim_graph=True)
    assert found["next_actions"] == []
    assert list(found) == ["trace_id", "applied", "claim_graph", "summary", "next_actions"]
    assert list(found["summary"]) == [
        "scanned_files", "scanned_nodes", "candidates", "file_bias_ratio", "conflict_count", "gap_count",
        "integration_status",
    ]  # fmt: skip
    assert found["applied"].keys() >= {"sem_cache_used", "selected_gate", "required_effect_status"}


@pytest.mark.rule("M4.8", "M4.9", "M5.9", "M5.10")
@pytest.mark.parametrize(("query", "terms"), [("beta", ("beta",)), ("solo", ("solo",)), ("zzz", ("zzz",))])
async def test_gaps_and_conflicts_are_as_many_as_the_summary_says(
    opened: Manuals, query: str, terms: tuple[str, ...]
) -> None:
    found = await find(opened, query, *terms)
    gaps, conflicts = rows(opened, found, "gaps"), rows(opened, found, "conflicts")
    assert found["summary"]["gap_count"] == len(gaps) == (query != "beta")
    assert all(row["reason"] == "gap" and row["gap_hint"] for row in gaps)
    assert found["summary"]["conflict_count"] == len(conflicts) == 0


@pytest.mark.rule("M4.54", "M5.5")
async def test_full_candidates_say_how_they_matched(opened: Manuals) -> None:
    row = rows(opened, await find(opened, "beta things", "beta"))[0]
    assert row["ref"].keys() == {"path", "start_line", "signals"}
    assert set(row["matched_tokens"]) == set(row["token_hits"]) == {"beta", "things"}
    assert row["match_coverage"] == 1.0
    assert row["rank_explain"]


@pytest.mark.rule(
    "M4.7", "M4.39", "M4.40", "M4.42", "M4.43", "M4.46", "M4.57", "M5.1", "M5.2", "M5.6", "M5.11", "M5.13"
)
@pytest.mark.parametrize("revision", REVISIONS)
async def test_public_answers_are_compact_whatever_is_asked(here: Desk, revision: str) -> None:
    here = Desk(here.client, revision)
    found = await here.call(
        "manual_find", query="beta を網羅的に", manual_id="book", required_terms=["beta"],
        include_claim_graph=True, use_cache=True, inline_hits={"limit": 9}, budget={"max_candidates": 8},
    )  # fmt: skip
    assert list(found) == ["trace_id", "candidates", "status", "failure_reason", "inline_hits", "next_actions"]
    assert found["candidates"] == 8
    assert found["status"] == "required_effective"
    assert found["next_actions"] == []
    trace = found["trace_id"]
    page = await here.call("manual_hits", trace_id=trace, kind="integrated_top", offset=0, limit=5)
    assert found["inline_hits"] == page
    assert [sorted(item) for item in page["items"]] == [["matched_tokens", "ref", "score", "title"]] * 5
    candidates = await here.call("manual_hits", trace_id=trace)
    assert (candidates["kind"], candidates["offset"], candidates["limit"]) == ("candidates", 0, 50)
    assert candidates["manual_id"] == "book"
    assert [sorted(item) for item in candidates["items"]] == [["matched_tokens", "ref", "score"]] * 8
    assert [sorted(item["ref"]) for item in candidates["items"]] == [["path", "start_line"]] * 8
    for kind in KINDS:
        page = await here.call("manual_hits", trace_id=trace, kind=kind, limit=3)
        assert (page["kind"], page["limit"]) == (kind, 3)
        assert len(page["items"]) == min(page["total"], 3)


# manual_read and manual_scan


async def test_every_hit_can_be_read(here: Desk) -> None:
    for query, manual in (("beta things", "book"), ("before all", "lore"), ("red button", "lore")):
        found = await here.call(
            "manual_find", query=query, manual_id=manual, required_terms=[query.split()[0]], inline_hits={}
        )
        assert found["inline_hits"]["items"]
        for hit in found["inline_hits"]["items"]:
            if hit["ref"]["path"].endswith(".json"):
                assert (await here.call("manual_scan", manual_id=manual, path=hit["ref"]["path"]))["text"]
            else:
                assert (await here.call("manual_read", ref=hit["ref"]))["text"]


@pytest.mark.rule("M6.7", "M6.9")
async def test_a_section_asked_for_again_goes_on_in_the_file(here: Desk) -> None:
    ref = {"manual_id": "lore", "path": "sections.md", "start_line": 6}
    named = (ref, {**ref, "path": "./sections.md"}, {**ref, "path": ".\\sections.md"})  # the same, however it is named
    answers = [await here.call("manual_read", ref=each, max_chars=256) for each in named]
    assert [answer["applied"]["mode"] for answer in answers] == ["read", "scan_fallback", "scan_fallback"]
    assert answers[0] == {
        "text": "## Sub\nbelow\n",
        "truncated": False,
        "applied": {"scope": "section", "max_sections": None, "max_chars": 256, "mode": "read"},
    }
    assert answers[1]["text"].startswith("# Two\nsecond\nand more\n")
    joined = answers[1]["text"] + answers[2]["text"]
    assert joined == "# Two\nsecond\n" + ("and more\n" * 100)[: 512 - len("# Two\nsecond\n")]


@pytest.mark.rule("M7.7")
async def test_a_scan_has_the_fields_of_the_contract(here: Desk) -> None:
    page = await here.call("manual_scan", manual_id="lore", path="sections.md", start_line=3, max_chars=256)
    assert page == {
        "manual_id": "lore",
        "path": "sections.md",
        "text": page["text"],
        "applied_range": {"start_line": 3, "end_line": 3 + page["text"].count("\n", 0, -1)},
        "next_cursor": {"char_offset": len("Before all.\n\n") + 256},
        "eof": False,
        "truncated": True,
        "truncated_reason": "max_chars",
        "applied": {"max_chars": 256},
    }
    assert page["text"].startswith("# One\nfirst\n")
    last = await here.call("manual_scan", manual_id="lore", path="settings.json")
    assert (last["eof"], last["truncated"], last["truncated_reason"]) == (True, False, "none")
    assert last["next_cursor"] == {"char_offset": None}
    assert last["applied"] == {"max_chars": 12_000}


@pytest.mark.rule("M7.2")
async def test_a_file_is_read_to_its_end_by_any_form_of_cursor(here: Desk, root: Path) -> None:
    whole = (root / "lore/sections.md").read_text(encoding="utf-8")
    forms: list[Callable[[Any], Any]] = [
        lambda cursor: cursor,
        lambda cursor: cursor["char_offset"],
        lambda cursor: str(cursor["char_offset"]),
    ]
    for form in forms:
        page = await here.call("manual_scan", manual_id="lore", path="sections.md", max_chars=300)
        text = page["text"]
        while not page["eof"]:
            page = await here.call(
                "manual_scan", manual_id="lore", path="sections.md", max_chars=300, cursor=form(page["next_cursor"])
            )
            text += page["text"]
        assert text == whole


@pytest.mark.rule("M7.1")
@pytest.mark.parametrize(
    ("where", "begins"),
    [
        ({}, "Before all."),
        ({"start_line": 3}, "# One"),
        ({"cursor": {"start_line": 6}}, "## Sub"),
        ({"start_line": 3, "cursor": {"start_line": 6}}, "# One"),
        ({"start_line": 3, "cursor": 20}, "# One"),
        ({"cursor": len("Before all.\n\n# One\n")}, "first"),
        ({"start_line": None, "cursor": None}, "Before all."),
    ],
)
async def test_a_scan_begins_at_its_line_then_at_its_cursor_then_at_the_first_line(
    here: Desk, where: dict[str, Any], begins: str
) -> None:
    page = await here.call("manual_scan", manual_id="lore", path="sections.md", **where)
    assert page["text"].startswith(begins)
