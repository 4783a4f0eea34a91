"""The claim graph: which claims, which evidence, and how the one bears on the other."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_mcp.manuals.results.claims import (
    Fit,
    Relation,
    Seen,
    claim_graph,
    confidence_of,
    coverage_of,
    empty_graph,
    leaning_of,
    relation_of,
)
from responses_mcp.manuals.results.decomposition import sub_queries
from tests.manuals.found import row

FACETS = ["definition", "procedure", "eligibility", "exceptions", "compare", "unknown"]


def graph_of(query: str, *rows: Any) -> dict[str, Any]:
    return claim_graph(query, "shop", rows, sub_queries(query))


def asked_facets(graph: dict[str, Any]) -> list[str]:
    return [each["facet"] for each in graph["facets"] if each["claim_count"]]


def relations(graph: dict[str, Any], facet: str) -> list[str]:
    return [each["relation"] for each in graph["edges"] if each["from_claim_id"].split(":")[1] == facet]


def coverage(graph: dict[str, Any], facet: str) -> str:
    return next(each["coverage_status"] for each in graph["facets"] if each["facet"] == facet)


@pytest.mark.rule("M4.6")
def test_an_empty_graph_is_four_empty_lists_of_its_own() -> None:
    graph = empty_graph()
    assert graph == {"claims": [], "evidences": [], "edges": [], "facets": []}
    graph["claims"].append(1)
    assert empty_graph()["claims"] == []


@pytest.mark.parametrize(
    ("query", "facets"),
    [
        ("解約とは", ["definition"]),
        ("What is a refund", ["definition"]),
        ("解約の手順", ["procedure"]),
        ("how to cancel", ["procedure"]),
        ("加入の条件", ["eligibility"]),
        ("prerequisites", ["eligibility"]),
        ("対象外の品", ["eligibility", "exceptions"]),
        ("limitations", ["exceptions"]),
        ("リストとタプルの違い", ["compare"]),
        ("npm or yarn, how to install", ["procedure"]),
        ("npm vs yarn", ["compare"]),
        ("解約", ["unknown"]),
        ("", ["unknown"]),
    ],
)
def test_the_words_of_a_question_choose_its_facets(query: str, facets: list[str]) -> None:
    assert asked_facets(graph_of(query, row())) == facets


def test_an_exception_among_the_hits_is_a_facet_too() -> None:
    assert asked_facets(graph_of("解約の手順", row(signals=("exceptions",)))) == ["procedure", "exceptions"]


def test_all_facets_are_told_of_in_a_fixed_order() -> None:
    graph = graph_of("解約の手順", row())
    assert [each["facet"] for each in graph["facets"]] == FACETS
    assert graph["facets"][0] == {
        "facet": "definition",
        "claim_count": 0,
        "supported_count": 0,
        "conflicted_count": 0,
        "unresolved_count": 0,
        "coverage_status": "missing",
    }


def test_claims_are_the_question_and_its_parts_numbered_over_all_facets() -> None:
    graph = graph_of("設定とは、リストとタプルの違い", row())
    asked = ["設定とは、リストとタプルの違い", "設定とは、 リスト", "設定とは、 タプル"]
    facets = ["definition"] * 3 + ["procedure"] * 3 + ["compare"] * 3
    assert [(each["claim_id"], each["text"]) for each in graph["claims"]] == [
        (f"claim:{facet}:{number}", f"{asked[(number - 1) % 3]} [{facet}]") for number, facet in enumerate(facets, 1)
    ]


def test_there_is_one_evidence_for_each_hit_by_rank() -> None:
    graph = graph_of("解約", row("a.md", 3, signals=("exact",), score=2.5), row("b.md", 9))
    first, second = graph["evidences"]
    assert re.fullmatch("[0-9a-f]{16}", first.pop("snippet_digest"))
    assert first == {
        "evidence_id": "ev:1",
        "ref": {"target": "manual", "manual_id": "shop", "path": "a.md", "start_line": 3},
        "signals": ["exact"],
        "score": 2.5,
    }
    assert second["evidence_id"] == "ev:2"


@pytest.mark.parametrize("other", [row("b.md"), row(line=2), row(signals=("exact",)), row(score=2.0)])
def test_the_digest_of_an_evidence_tells_hits_apart(other: dict[str, Any]) -> None:
    same, again, changed = (graph_of("q", each)["evidences"][0]["snippet_digest"] for each in (row(), row(), other))
    assert same == again != changed


def test_a_hit_that_has_nothing_of_the_question_is_no_edge() -> None:
    graph = graph_of("解約", row(title="目次", tokens=()))
    assert graph["edges"] == []
    assert (graph["claims"][0]["status"], graph["claims"][0]["confidence"]) == ("unresolved", 0.0)
    assert coverage(graph, "unknown") == "partial"


@pytest.mark.parametrize(("open_ends", "status"), [(2, "supported"), (3, "unresolved")])
def test_strong_support_outweighs_one_more_open_end(open_ends: int, status: str) -> None:
    words = ("手順", "甲乙", "丙丁", "戊己", "庚辛")
    rows = [row("1.md", title="手順", tokens=words, score=10.0)]
    rows += [row(f"{n}.md", title="x", tokens=("甲乙",), score=4.0) for n in range(open_ends)]
    graph = graph_of(" ".join(words), *rows)
    assert relations(graph, "procedure") == ["supports", *["requires_followup"] * open_ends]
    assert graph["claims"][0]["status"] == status


def test_an_exception_conflicts_with_who_may() -> None:
    rule = row("a.md", title="加入の条件", tokens=("加入", "条件"))
    but = row("b.md", title="加入できない方", tokens=("加入", "条件"), signals=("exceptions",))
    graph = graph_of("加入の条件", rule, but)
    assert relations(graph, "eligibility") == ["supports", "contradicts"]
    assert relations(graph, "exceptions") == ["contradicts", "supports"]
    assert [each["status"] for each in graph["claims"]] == ["conflicted", "conflicted"]


def test_long_vowel_marks_and_width_make_no_difference() -> None:
    graph = graph_of("コレクタ ＡＰＩ", row(title="コレクター", tokens=("api",)))
    assert relations(graph, "unknown") == ["supports"]


def test_a_long_question_is_weighed_by_its_first_words() -> None:
    rows = [row(f"{n}.md", title="解約", tokens=("解約",)) for n in range(50)]
    graph = graph_of("解約 " + "".join(chr(0x4E00 + n % 5000) for n in range(9000)), *rows)
    assert len(graph["evidences"]) == 50
    assert len(graph["edges"]) == 50


def fit(
    kind: float = 0.0, coverage: float = 0.0, score: float = 0.0, *, exception: bool = False, hinted: bool = False
) -> Fit:
    return Fit(kind, coverage, score, exception, hinted)


@pytest.mark.parametrize(
    ("facet", "how", "relation"),
    [
        ("exceptions", fit(0.30, 0.45, exception=True), "supports"),
        ("exceptions", fit(0.29, 0.45, exception=True), "contradicts"),
        ("exceptions", fit(0.30, 0.45), "contradicts"),
        ("exceptions", fit(0.20, 0.44), "requires_followup"),
        ("exceptions", fit(0.19, 0.25), "requires_followup"),
        ("exceptions", fit(0.20, 0.0), "requires_followup"),
        ("exceptions", fit(0.19, 0.24), None),
        ("eligibility", fit(0.90, 0.30, exception=True), "contradicts"),
        ("eligibility", fit(0.26, 0.29, exception=True), "supports"),
        ("eligibility", fit(0.26, 0.30), "supports"),
        ("eligibility", fit(0.25, 0.25), "requires_followup"),
        ("eligibility", fit(0.90, 0.0), "requires_followup"),
        ("eligibility", fit(0.18, 0.0), "requires_followup"),
        ("eligibility", fit(0.17, 0.25), "requires_followup"),
        ("eligibility", fit(0.17, 0.24), None),
        ("compare", fit(0.30, 0.45, hinted=True), "supports"),
        ("compare", fit(0.30, 0.45), "requires_followup"),
        ("compare", fit(0.29, 0.45, hinted=True), "requires_followup"),
        ("compare", fit(0.30, 0.44, hinted=True), "requires_followup"),
        ("compare", fit(0.90, 0.20), "requires_followup"),
        ("compare", fit(0.90, 0.19), None),
        ("unknown", fit(0.0, 0.15, 0.50), "supports"),
        ("unknown", fit(0.9, 0.14, 0.50), "requires_followup"),
        ("unknown", fit(0.9, 0.15, 0.49), "requires_followup"),
        ("unknown", fit(0.0, 0.10, 0.20), "requires_followup"),
        ("unknown", fit(0.9, 0.09, 1.0), None),
        ("unknown", fit(0.9, 1.0, 0.19), None),
        ("definition", fit(0.24, 0.01), "supports"),
        ("procedure", fit(0.24, 0.01), "supports"),
        ("procedure", fit(0.23, 0.20), "requires_followup"),
        ("procedure", fit(0.23, 0.19), None),
        ("procedure", fit(0.90, 0.0), None),
    ],
)
def test_a_hit_bears_on_a_claim_by_its_kind_its_words_and_its_score(
    facet: str, how: Fit, relation: Relation | None
) -> None:
    assert relation_of(facet, how) == relation


@pytest.mark.parametrize(
    ("relation", "how", "confidence"),
    [
        ("supports", fit(), 0.27),
        ("supports", fit(hinted=True), 0.33),
        ("contradicts", fit(hinted=True), 0.28),
        ("requires_followup", fit(hinted=True), 0.20),
        ("supports", fit(0.5, 0.2, 0.6), 0.65),
        ("contradicts", fit(0.5, 0.2, 0.6), 0.66),
        ("requires_followup", fit(0.5, 0.2, 0.6), 0.455),
        ("supports", fit(1, 1, 1, hinted=True), 0.98),
    ],
)
def test_the_confidence_of_an_edge_grows_with_all_of_them(relation: Relation, how: Fit, confidence: float) -> None:
    assert confidence_of(relation, how) == pytest.approx(confidence)


@pytest.mark.parametrize(
    ("facet", "text", "marks", "leaning"),
    [
        ("procedure", "x", {}, (0.0, False)),
        ("procedure", "手順", {}, (0.28, True)),
        ("procedure", "手順と手順", {}, (0.28, True)),
        ("procedure", "手順と方法", {}, (0.36, True)),
        ("procedure", "手順と方法と操作と設定と使い方", {}, (0.48, True)),
        ("procedure", "x", {"exception": True, "definition": True}, (0.0, False)),
        ("definition", "x", {"definition": True}, (0.20, False)),
        ("definition", "x", {"exception": True}, (0.0, False)),
        ("exceptions", "例外", {"exception": True}, (0.48, True)),
        ("exceptions", "x", {"definition": True}, (0.0, False)),
        ("unknown", "手順", {"exception": True}, (0.0, False)),
    ],
)
def test_the_kind_of_a_hit_is_told_by_its_words_and_signals(
    facet: str, text: str, marks: dict[str, bool], leaning: tuple[float, bool]
) -> None:
    hit = Seen(text, 1.0, marks.get("exception", False), marks.get("definition", False))
    assert leaning_of(facet, hit, asked=False) == pytest.approx(leaning)
    more = 0.0 if facet == "unknown" else 0.12
    assert leaning_of(facet, hit, asked=True) == pytest.approx((leaning[0] + more, leaning[1]))


@pytest.mark.parametrize(
    ("words", "text", "coverage"),
    [
        ([], "解約", 0.0),
        (["解約"], "解約", 1.0),
        (["解約", "pay"], "paying", 0.5),
        (["解約手数"], "解約の手数", 2 / 3),
        (["解約"], "解", 0.0),
        (["abcd"], "ab cd", 0.0),  # half of a name is nothing
    ],
)
def test_coverage_is_the_share_of_words_and_of_their_pairs_in_japanese(
    words: list[str], text: str, coverage: float
) -> None:
    assert coverage_of(words, text) == pytest.approx(coverage)


def test_kind_words_and_score_make_the_confidence_of_an_edge() -> None:
    best = row("1.md", title="手順", tokens=("解約",), score=8.0)
    half = row("2.md", title="x", tokens=("解約",), score=4.0, signals=("definition_title",))
    edges = graph_of("解約の方法", best, half)["edges"]
    # Covering one word of two adds .55 x .5 to the kind.
    expected = [
        0.25 + 0.35 + 0.30 * (0.12 + 0.28 + 0.275) + 0.05 + 0.08,
        0.25 + 0.175 + 0.30 * (0.12 + 0.275) + 0.05 + 0.02,
    ]
    assert [each["confidence"] for each in edges] == pytest.approx(expected, abs=1e-4)


def test_rows_without_any_score_are_as_good_as_nothing() -> None:
    graph = graph_of("解約", row(tokens=("解約",), score=0.0), row(tokens=("解約",), score=-1.0))
    assert relations(graph, "unknown") == []


WORDS = ["解約", "とは", "手順", "条件", "例外", "リストとタプルの違い", "how to", "vs", "a", " "]
ROWS = st.builds(
    row,
    path=st.sampled_from(["a.md", "設定.md"]),
    title=st.sampled_from(["", "解約の手順", "例外", "guide"]),
    score=st.sampled_from([-1.0, 0.0, 0.5, 7.25]),
    tokens=st.lists(st.sampled_from(WORDS), max_size=3).map(tuple),
    signals=st.sampled_from([(), ("exceptions",), ("definition_title",)]),
)


@pytest.mark.rule("M4.56")
@given(query=st.lists(st.sampled_from(WORDS), max_size=5).map("".join), rows=st.lists(ROWS, max_size=5))
def test_a_graph_holds_together(query: str, rows: list[dict[str, Any]]) -> None:
    graph = graph_of(query, *rows)
    claims = {each["claim_id"]: each for each in graph["claims"]}
    evidences = [each["evidence_id"] for each in graph["evidences"]]
    assert len(claims) == len(graph["claims"])
    assert evidences == [f"ev:{n + 1}" for n in range(len(rows))]
    edges = [(each["from_claim_id"], each["to_evidence_id"]) for each in graph["edges"]]
    assert len(set(edges)) == len(edges)
    assert {claim for claim, _ in edges} <= set(claims)
    assert {evidence for _, evidence in edges} <= set(evidences)
    assert all(0.05 <= each["confidence"] <= 0.98 for each in graph["edges"])
    assert all(0.0 <= each["confidence"] <= 0.98 for each in graph["claims"])
    for told in graph["facets"]:
        of_facet = [each["status"] for each in graph["claims"] if each["facet"] == told["facet"]]
        assert told["claim_count"] == len(of_facet) <= 3
        assert all(told[f"{each}_count"] == of_facet.count(each) for each in ("supported", "conflicted", "unresolved"))
        covered = "covered" if "supported" in of_facet else "partial" if of_facet else "missing"
        assert told["coverage_status"] == covered
