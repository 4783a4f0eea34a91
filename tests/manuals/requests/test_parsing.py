"""What the manual tools take as arguments, and how they refuse the rest (M2 to M7)."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_mcp.manuals import KINDS
from responses_mcp.manuals.errors import ManualsError
from responses_mcp.manuals.requests import FindRequest, HitsRequest, LsRequest, ReadRequest, ScanRequest, TocRequest
from responses_mcp.manuals.requests.parsing import parse_find, parse_hits, parse_ls, parse_read, parse_scan, parse_toc

Parse = Callable[[Mapping[str, Any]], Any]


class Tool(NamedTuple):
    """A tool: what reads its arguments, the least of them, the request that they make, and the names of others."""

    parse: Parse
    least: dict[str, Any]
    request: Any
    others: tuple[str, ...]


FIND = {"query": "q", "manual_id": "m", "required_terms": ["t"]}
FILE = {"manual_id": "m", "path": "a.md"}
TOOLS = {
    "manual_ls": Tool(parse_ls, {}, LsRequest("manuals"), ("id",)),
    "manual_toc": Tool(
        parse_toc,
        {"manual_id": "m"},
        TocRequest("m", "", "shallow", 20, 0, 20),
        ("path_prefix", "max_files", "cursor", "depth", "max_headings_per_file"),
    ),
    "manual_find": Tool(
        parse_find,
        FIND,
        FindRequest("q", "m", ("t",), None, None, False, None, 60_000, 200, None),
        ("expand_scope", "only_unscanned_from_trace_id", "include_claim_graph", "use_cache", "inline_hits", "budget"),
    ),
    "manual_hits": Tool(
        parse_hits, {"trace_id": "t"}, HitsRequest("t", "candidates", 0, 50), ("kind", "offset", "limit")
    ),
    "manual_read": Tool(parse_read, {"ref": FILE}, ReadRequest("m", "a.md", None, 12_000), ("max_chars", "scope")),
    "manual_scan": Tool(
        parse_scan, FILE, ScanRequest("m", "a.md", None, None, 12_000), ("start_line", "cursor", "max_chars")
    ),
}

every_tool = pytest.mark.parametrize("tool", list(TOOLS))


def read(tool: str, /, **arguments: Any) -> Any:
    """Return the request for the least arguments of a tool, with some changed."""
    return TOOLS[tool].parse({**TOOLS[tool].least, **arguments})


def refusal(tool: str, start: str = "", code: str = "invalid_parameter", /, **arguments: Any) -> ManualsError:
    """Return the error for the least arguments of a tool, with some changed; its message begins with `start`."""
    with pytest.raises(ManualsError) as caught:
        read(tool, **arguments)
    assert caught.value.code == code
    assert caught.value.message.startswith(start)
    return caught.value


# In all tools


@pytest.mark.rule("M3.1", "M3.8", "M4.49", "M4.55", "M5.1", "M5.2", "M6.5", "M7.5", "M7.6")
@every_tool
def test_what_is_left_out_or_null_has_its_default(tool: str) -> None:
    assert read(tool) == read(tool, **dict.fromkeys(TOOLS[tool].others)) == TOOLS[tool].request


@pytest.mark.rule("M2.8", "M3.5", "M4.55", "M6.4")
@every_tool
def test_an_unknown_argument_is_refused_and_the_known_ones_are_named(tool: str) -> None:
    for name in ("colour", "include_headings", "allow_file", "expand"):
        for value in (True, None, "x"):
            error = refusal(tool, f'"{name}" is no argument of {tool}', **{name: value})
            assert all(each in error.message for each in (*TOOLS[tool].least, *TOOLS[tool].others))
    assert len(str(refusal(tool, **{"x" * 5000: 1}).as_json())) < 400


@pytest.mark.rule("M4.10", "M4.13", "M6.8")
@pytest.mark.parametrize(
    ("tool", "name"),
    [(tool, name) for tool, each in TOOLS.items() for name in each.least] + [("manual_read", "ref.path")],
)
def test_a_required_argument_must_be_there_and_not_be_empty(tool: str, name: str) -> None:
    code = "invalid_path" if name.endswith("path") else "invalid_parameter"
    for value in (None, "", " \u3000\n", 5, True, 1.5, [5], {"y": 1}, []):
        if (name, value) != ("ref", {"y": 1}):
            error = refusal(tool, name, code, **given_as(tool, name, value))
            assert error.message.startswith(f"{name} is missing; pass ") is (value is None)


# Integers


class Whole(NamedTuple):
    """An integer argument: how it is passed, how the request shows it, its bounds and its default."""

    tool: str
    argument: str
    shown: str
    least: int
    most: int | None
    default: int | None


INTEGERS = [
    Whole("manual_toc", "max_files", "max_files", 1, 50, 20),
    Whole("manual_toc", "max_headings_per_file", "max_headings_per_file", 1, 200, 20),
    Whole("manual_toc", "cursor", "offset", 0, None, 0),
    Whole("manual_toc", "cursor.offset", "offset", 0, None, 0),
    Whole("manual_find", "budget.time_ms", "time_ms", 1, None, 60_000),
    Whole("manual_find", "budget.max_candidates", "max_candidates", 1, None, 200),
    Whole("manual_hits", "offset", "offset", 0, None, 0),
    Whole("manual_hits", "limit", "limit", 1, None, 50),
    Whole("manual_read", "max_chars", "max_chars", 256, 50_000, 12_000),
    Whole("manual_read", "ref.start_line", "start_line", 1, None, None),
    Whole("manual_scan", "max_chars", "max_chars", 256, 50_000, 12_000),
    Whole("manual_scan", "start_line", "start_line", 1, None, None),
    Whole("manual_scan", "cursor", "char_offset", 0, None, None),
    Whole("manual_scan", "cursor.char_offset", "char_offset", 0, None, None),
    Whole("manual_scan", "cursor.start_line", "start_line", 1, None, None),
]
NO_INTEGERS = [
    True, False, 1.5, float("nan"), float("inf"), "", "x", "1.5", "1e3", "300_0", "true", "null", "0x300", [300], [],
    10**400, 1e300, "9" * 21, "9" * 5000,
]  # fmt: skip


def given_as(tool: str, argument: str, value: Any) -> dict[str, Any]:
    """Return the arguments that pass `value` as a dotted argument."""
    outer, _, inner = argument.partition(".")
    return {outer: {**TOOLS[tool].least.get(outer, {}), inner: value}} if inner else {outer: value}


@pytest.mark.rule("M4.50", "M4.53", "M5.3", "M5.4", "M6.5", "M7.4", "M7.5")
@pytest.mark.parametrize("case", INTEGERS, ids=lambda case: f"{case.tool}-{case.argument}")
def test_an_integer_is_taken_within_its_bounds_in_every_way_to_write_it_and_nothing_else(case: Whole) -> None:
    tool, name, shown, least, most, default = case
    for number in (least, least + 40, most or 2**53 - 1):
        for value in (number, float(number), str(number), f" {number}\n", f"+{number}"):
            assert getattr(read(tool, **given_as(tool, name, value)), shown) == number
    assert getattr(read(tool, **given_as(tool, name, None)), shown) == default
    for wrong in (*NO_INTEGERS, least - 1, -5, (most or 2**53 - 1) + 1):
        error = refusal(tool, **given_as(tool, name, wrong))
        assert all(each in error.message for each in (name, " got ", str(least), str(most or "")))
        assert len(error.message) < 250


@pytest.mark.rule("M3.3", "M3.4")
@pytest.mark.parametrize(
    ("arguments", "most"),
    [({}, 50), ({"path_prefix": " "}, 50), ({"path_prefix": "a", "depth": "deep"}, 50), ({"path_prefix": "a"}, 200)],
)
def test_how_many_files_may_be_asked_for_hangs_on_depth_and_prefix(arguments: dict[str, Any], most: int) -> None:
    assert read("manual_toc", max_files=most, **arguments).max_files == most
    error = refusal("manual_toc", max_files=most + 1, **arguments)
    assert f"from 1 to {most}" in error.message
    assert (f"{most} with depth" in error.message) is ("depth" in arguments)
    assert (f"{most} without path_prefix" in error.message) is (most == 50 and "depth" not in arguments)


@pytest.mark.rule("M4.41")
def test_the_limit_of_inline_hits_is_lowered_to_5() -> None:
    for limit, read_as in ((None, 5), (1, 1), ("3", 3), (5, 5), (6, 5), (10**30, 5), (1e300, 5)):
        assert read("manual_find", inline_hits={"limit": limit}).inline_hits == read_as
    assert read("manual_find", inline_hits={}).inline_hits == 5
    no_limits: list[Any] = [0, -1, True, False, 1.5, "x", "", [1], {}]
    for wrong in no_limits:
        refusal("manual_find", "inline_hits.limit must be an integer of 1 or more, got ", inline_hits={"limit": wrong})


# What is chosen from few


@pytest.mark.rule("M2.1", "M3.1", "M5.12", "M6.3")
@pytest.mark.parametrize(
    ("tool", "arguments", "shown", "read_as"),
    [
        *(("manual_ls", {"id": value}, "id", "manuals") for value in (None, "", "manuals", " manuals ")),
        ("manual_toc", {"depth": " Deep ", "path_prefix": "a"}, "depth", "deep"),
        ("manual_toc", {"depth": "SHALLOW"}, "depth", "shallow"),
        ("manual_toc", {"manual_id": " m "}, "manual_id", "m"),
        ("manual_toc", {"path_prefix": "a\\b//c/"}, "path_prefix", "a/b/c"),
        ("manual_scan", {"path": " a .md"}, "path", " a .md"),
        ("manual_read", {"scope": "section"}, "path", "a.md"),
        ("manual_find", {"only_unscanned_from_trace_id": "abc"}, "only_unscanned_from_trace_id", "abc"),
        *(("manual_hits", {"kind": kind}, "kind", kind) for kind in KINDS),
        *(
            ("manual_find", {name: value}, name, value)
            for name in ("expand_scope", "include_claim_graph", "use_cache")
            for value in (True, False)
        ),
    ],
)
def test_what_is_given_is_taken(tool: str, arguments: dict[str, Any], shown: str, read_as: object) -> None:
    assert getattr(read(tool, **arguments), shown) == read_as


@pytest.mark.rule("M2.8", "M4.36", "M4.55", "M5.12", "M6.3", "M6.8")
@pytest.mark.parametrize(
    ("tool", "arguments", "start", "values"),
    [
        ("manual_ls", "id", "id must be an id", [" ", "\u3000", 0, 5, True, False, ["a"], {"id": "a"}, [], {}]),
        ("manual_toc", "depth", 'depth must be "shallow" or "deep", got ', ["", "deeper", 1, True, [], {}]),
        ("manual_toc", "path_prefix", "path_prefix must be ", [5, True, ["a"], {}]),
        *(
            ("manual_find", name, f"{name} must be true or false, got ", [0, 1, "true", "yes", "", [], {}, 1.0])
            for name in ("expand_scope", "include_claim_graph", "use_cache")
        ),
        *(
            ("manual_find", name, f"{name} must be an object like {{", [True, 5, "x", [], [1]])
            for name in ("budget", "inline_hits")
        ),
        ("manual_find", "only_unscanned_from_trace_id", "only_unscanned_from_trace_id must be the trace_id of an earlier "
         "manual_find, got ", ["", " ", 5, True, ["x"], {}]),
        ("manual_hits", "kind", "kind must be one of candidates, unscanned, ",
         ["Candidates", "", " gaps", "all", 5, True, [], {}, ["gaps"]]),
        ("manual_read", "scope", 'scope must be "section" or left out',
         ["file", "sections", "snippet", "Section", "", 1, True, [], {}]),
        ("manual_read", "ref", "ref must be an object like {manual_id, path, start_line}",
         [5, True, "m/a.md", ["m", "a.md"], '["m", "a.md"]']),
    ],
)  # fmt: skip
def test_another_value_is_refused(tool: str, arguments: str, start: str, values: list[Any]) -> None:
    for value in values:
        assert refusal(tool, start, **{arguments: value}).details == {"field": arguments}


@pytest.mark.rule("M3.2")
def test_deep_needs_a_prefix_and_a_prefix_is_a_relative_path() -> None:
    for prefix in (None, "", " ", ".", "./"):
        refusal("manual_toc", "path_prefix is missing; pass a file or folder", depth="deep", path_prefix=prefix)
    for prefix in ("/etc", "../x", "a/../../b", "C:\\x", "a\0b"):
        refusal("manual_toc", "", "invalid_path", path_prefix=prefix)


# Cursors


@pytest.mark.rule("M3.8", "M7.6")
def test_a_cursor_is_an_object_a_number_or_a_text_of_digits_and_nothing_else() -> None:
    for cursor in (40, "40", 40.0, {"offset": 40}, {"offset": "40"}, {"offset": 40, "more": True}):
        assert read("manual_toc", cursor=cursor).offset == 40
    for nothing in (None, {}, {"offset": None}):
        assert read("manual_toc", cursor=nothing).offset == 0
    for wrong in (True, False, "", "x", [40], {"page": 2}, {"limit": None}):
        for tool in ("manual_toc", "manual_scan"):
            refusal(tool, "cursor must be ", cursor=wrong)
    refusal("manual_scan", start_line=3, cursor={"char_offset": "x"})  # also one that is not used


@pytest.mark.rule("M7.1", "M7.2")
@pytest.mark.parametrize(
    ("arguments", "line", "offset"),
    [
        ({}, None, None),
        ({"start_line": 3, "cursor": 40}, 3, None),
        ({"start_line": 3, "cursor": {"char_offset": 40, "start_line": 9}}, 3, None),
        ({"cursor": {"start_line": 9}}, 9, None),
        ({"cursor": {"char_offset": 0, "start_line": 9}}, None, 0),
        ({"cursor": {"char_offset": None, "start_line": 9}}, 9, None),
        ({"cursor": {"char_offset": None}}, None, None),
        ({"cursor": "40"}, None, 40),
        ({"start_line": 3, "match_line": 7, "tool": "manual_scan", "above": "x", "snippet": "y"}, 7, None),
        ({"start_line": 3, "match_line": 7, "char_offset": 99}, None, 99),
    ],
)
def test_a_scan_begins_at_a_match_before_its_line_before_its_cursor(
    arguments: dict[str, Any], line: int | None, offset: int | None
) -> None:
    request = read("manual_scan", **arguments)
    assert (request.start_line, request.char_offset) == (line, offset)


# Texts


@pytest.mark.rule("M4.13")
@pytest.mark.parametrize(
    ("given", "read_as"),
    [
        (["a"], ("a",)),
        (["Ａ４ "], ("a4",)),
        (["b", "a"], ("b", "a")),
        (["X", " ｘ "], ("x",)),
        (["a\x1b[2J\x85b"], ("a [2j b",)),
        (["二  要素", "認証"], ("二 要素", "認証")),
        (["a\ud800"], ("a?",)),
    ],
)
def test_required_terms_are_normalised_and_different(given: list[str], read_as: tuple[str, ...]) -> None:
    assert read("manual_find", required_terms=given).required_terms == read_as


@pytest.mark.rule("M4.13")
def test_required_terms_are_one_or_two_strings() -> None:
    values: list[Any] = [
        [], [""], [" "], ["a", ""], ["a", None], [1], [True], [["a"]], ["a", "b", "c"], "a", {"a": 1}, 5, True,
        ["a"] * 3, ["a", "A", "b"], ["a"] * 101, ["a" * 1001], ["\x07"],
    ]  # fmt: skip
    for value in values:
        error = refusal("manual_find", "required_terms must be an array of 1 or 2 different", required_terms=value)
        assert len(error.message) < 250


def test_a_query_has_a_longest_length_and_can_be_written_whatever_is_in_it() -> None:
    assert read("manual_find", query="x" * 10_000).query == "x" * 10_000
    assert refusal("manual_find", query="x" * 10_001).message.endswith("got a string of 10001 characters.")
    assert read("manual_find", query="a\ud83d🐍\x1b\nb").query == "a?🐍 b"


@pytest.mark.rule("M6.8")
def test_further_members_of_budget_inline_hits_and_ref_are_ignored() -> None:
    found = read("manual_find", budget={"time_ms": 5, "more": 1}, inline_hits={"limit": 2, "kind": "x"})
    assert (found.time_ms, found.max_candidates, found.inline_hits) == (5, 200, 2)
    ref: dict[str, Any] = {"target": "manual", **FILE, "start_line": 3, "json_path": None, "signals": []}
    assert read("manual_read", ref=ref) == ReadRequest("m", "a.md", 3)


# Whatever comes

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None)) | st.just("deep"),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=10,
)
INNER = ("offset", "start_line", "char_offset", "limit", "time_ms", "max_candidates", "manual_id", "path", "scope")


@every_tool
@given(st.data())
def test_any_json_makes_a_request_or_a_refusal_that_names_a_field(tool: str, data: st.DataObject) -> None:
    known = (*TOOLS[tool].least, *TOOLS[tool].others)
    shaped = JSON | st.dictionaries(st.sampled_from(INNER), JSON, max_size=4)
    changed = data.draw(st.dictionaries(st.sampled_from(known) | st.text(max_size=10), shaped, max_size=3))
    arguments = {**TOOLS[tool].least, **changed} if data.draw(st.booleans()) else changed
    refused: ManualsError | None = None
    try:
        request = TOOLS[tool].parse(arguments)
        assert type(request) is type(TOOLS[tool].request)
        assert hash(request) == hash(TOOLS[tool].parse(arguments))
    except ManualsError as error:
        refused = error
    if refused is not None:
        assert refused.message.endswith(".")
        assert len(refused.message) < 700
        inner = {f"{outer}.{each}" for outer in known for each in INNER}
        fields = {*known, *inner, *(each[:40] for each in arguments)}
        assert refused.details.get("field") in fields or refused.code in ("invalid_path", "forbidden")
