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

PARSERS: dict[str, Parse] = {
    "manual_ls": parse_ls,
    "manual_toc": parse_toc,
    "manual_find": parse_find,
    "manual_hits": parse_hits,
    "manual_read": parse_read,
    "manual_scan": parse_scan,
}
LEAST: dict[str, dict[str, Any]] = {
    "manual_ls": {},
    "manual_toc": {"manual_id": "m"},
    "manual_find": {"query": "q", "manual_id": "m", "required_terms": ["t"]},
    "manual_hits": {"trace_id": "t"},
    "manual_read": {"ref": {"manual_id": "m", "path": "a.md"}},
    "manual_scan": {"manual_id": "m", "path": "a.md"},
}
NAMES: dict[str, tuple[str, ...]] = {
    "manual_ls": ("id",),
    "manual_toc": ("manual_id", "path_prefix", "max_files", "cursor", "depth", "max_headings_per_file"),
    "manual_find": (
        *("query", "manual_id", "required_terms", "expand_scope", "only_unscanned_from_trace_id"),
        *("include_claim_graph", "use_cache", "inline_hits", "budget"),
    ),
    "manual_hits": ("trace_id", "kind", "offset", "limit"),
    "manual_read": ("ref", "max_chars", "scope"),
    "manual_scan": ("manual_id", "path", "start_line", "cursor", "max_chars"),
}
MINIMAL: dict[str, Any] = {
    "manual_ls": LsRequest("manuals"),
    "manual_toc": TocRequest("m", "", "shallow", 20, 0, 20),
    "manual_find": FindRequest("q", "m", ("t",), None, None, False, None, 60_000, 200, None),
    "manual_hits": HitsRequest("t", "candidates", 0, 50),
    "manual_read": ReadRequest("m", "a.md", None, 12_000),
    "manual_scan": ScanRequest("m", "a.md", None, None, 12_000),
}

every_tool = pytest.mark.parametrize("tool", list(PARSERS))


def read(tool: str, **arguments: Any) -> Any:
    """Return the request for the least arguments of a tool, with some changed."""
    return PARSERS[tool]({**LEAST[tool], **arguments})


def refusal(tool: str, start: str = "", code: str = "invalid_parameter", /, **arguments: Any) -> ManualsError:
    """Return the error for the least arguments of a tool, with some changed; its message begins with `start`."""
    with pytest.raises(ManualsError) as caught:
        read(tool, **arguments)
    assert caught.value.code == code
    assert caught.value.message.startswith(start)
    return caught.value


# In all tools


@pytest.mark.rule("M3.1", "M4.49", "M5.1", "M5.2", "M6.5", "M7.5")
@every_tool
def test_what_is_left_out_has_its_default(tool: str) -> None:
    assert read(tool) == MINIMAL[tool]


@pytest.mark.rule("M3.8", "M4.55", "M7.6")
@every_tool
def test_null_is_the_same_as_left_out(tool: str) -> None:
    nulls = dict.fromkeys(set(NAMES[tool]) - set(LEAST[tool]))
    assert read(tool, **nulls) == MINIMAL[tool]


@pytest.mark.rule("M2.8", "M4.55")
@every_tool
@pytest.mark.parametrize("value", [True, None, "x"])
def test_an_unknown_argument_is_refused_and_the_known_ones_are_named(tool: str, value: Any) -> None:
    error = refusal(tool, colour=value)
    assert '"colour"' in error.message
    for name in NAMES[tool]:
        assert name in error.message


@pytest.mark.rule("M3.5", "M6.4")
@pytest.mark.parametrize(
    ("tool", "name"), [("manual_toc", "include_headings"), ("manual_read", "allow_file"), ("manual_read", "expand")]
)
def test_arguments_of_earlier_versions_are_refused(tool: str, name: str) -> None:
    for value in (True, False):
        error = refusal(tool, **{name: value})
        assert name in error.message


def test_an_unknown_argument_with_a_long_name_makes_no_long_message() -> None:
    error = refusal("manual_ls", **{"x" * 5000: 1})
    assert len(str(error.as_json())) < 400


@pytest.mark.rule("M4.10", "M4.13")
@pytest.mark.parametrize(("tool", "name"), [(tool, name) for tool, arguments in LEAST.items() for name in arguments])
def test_a_required_argument_must_be_there_and_not_be_empty(tool: str, name: str) -> None:
    code = "invalid_path" if name == "path" else "invalid_parameter"
    for value in (None, "", " \u3000\n", 5, True, 1.5, [5], {"y": 1}, []):
        error = refusal(tool, "", code, **{name: value})
        assert name in error.message
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

every_integer = pytest.mark.parametrize("case", INTEGERS, ids=lambda case: f"{case.tool}-{case.argument}")


def given_as(tool: str, argument: str, value: Any) -> dict[str, Any]:
    """Return the arguments that pass `value` as a dotted argument."""
    outer, _, inner = argument.partition(".")
    return {outer: {**LEAST[tool].get(outer, {}), inner: value}} if inner else {outer: value}


@pytest.mark.rule("M4.50", "M5.3")
@every_integer
def test_an_integer_is_taken_within_its_bounds_in_every_way_to_write_it(case: Whole) -> None:
    for number in (case.least, case.least + 40, case.most or 2**53 - 1):
        for value in (number, float(number), str(number), f" {number}\n", f"+{number}"):
            assert getattr(read(case.tool, **given_as(case.tool, case.argument, value)), case.shown) == number
    assert getattr(read(case.tool, **given_as(case.tool, case.argument, None)), case.shown) == case.default


@pytest.mark.rule("M4.53", "M5.4", "M7.4")
@every_integer
def test_what_is_no_integer_is_refused(case: Whole) -> None:
    for value in NO_INTEGERS:
        error = refusal(case.tool, **given_as(case.tool, case.argument, value))
        assert case.argument in error.message
        assert " got " in error.message
        assert len(error.message) < 250


@pytest.mark.rule("M4.50", "M5.3", "M6.5", "M7.5")
@every_integer
def test_an_integer_out_of_bounds_is_refused_and_the_bounds_are_named(case: Whole) -> None:
    for number in (case.least - 1, -5, (case.most or 2**53 - 1) + 1):
        error = refusal(case.tool, **given_as(case.tool, case.argument, number))
        assert case.argument in error.message
        assert str(case.least) in error.message
        assert str(case.most or "") in error.message


# Booleans

FLAGS = ("expand_scope", "include_claim_graph", "use_cache")


@pytest.mark.rule("M4.36")
@pytest.mark.parametrize("name", FLAGS)
def test_a_boolean_is_taken_and_nothing_that_looks_like_one(name: str) -> None:
    for value in (True, False):
        assert getattr(read("manual_find", **{name: value}), name) is value
    looks_like_one: list[Any] = [0, 1, "true", "yes", "", [], {}, 1.0]
    for wrong in looks_like_one:
        refusal("manual_find", f"{name} must be true or false, got ", **{name: wrong})


# manual_ls


@pytest.mark.rule("M2.1")
@pytest.mark.parametrize("value", [None, "", "manuals", " manuals "])
def test_no_id_is_the_root(value: Any) -> None:
    assert read("manual_ls", id=value) == LsRequest("manuals")


@pytest.mark.rule("M2.8")
@pytest.mark.parametrize("value", [" ", "\u3000", 0, 5, True, False, ["a"], {"id": "a"}, [], {}])
def test_an_id_that_is_blank_or_no_string_is_refused(value: Any) -> None:
    error = refusal("manual_ls", id=value)
    assert (error.code, error.details) == ("invalid_parameter", {"field": "id"})


# The id of a manual


@pytest.mark.rule("M3.6", "M4.11", "M6.2", "M7.3")
@pytest.mark.parametrize(
    ("tool", "field"),
    [(tool, "manual_id") for tool in ("manual_toc", "manual_find", "manual_scan")] + [("manual_read", "ref.manual_id")],
)
def test_the_root_is_no_manual_and_the_refusal_names_some(tool: str, field: str) -> None:
    error = refusal(tool, f"{field} must be ", **given_as(tool, field, "manuals"))
    assert 'manual_ls(id="manuals").items[].id' in error.message
    assert error.details == {"field": field}
    parse: Any = PARSERS[tool]
    with pytest.raises(ManualsError) as caught:
        parse({**LEAST[tool], **given_as(tool, field, "manuals")}, candidate_ids=[f"m{at}" for at in range(200)])
    assert caught.value.details["candidate_ids"] == [f"m{at}" for at in range(50)]


@pytest.mark.parametrize("value", ["a/b", "a\\b", "..", ".", "/", "../m", "m/"])
def test_the_id_of_a_manual_is_no_path(value: str) -> None:
    for tool, field in (("manual_toc", "manual_id"), ("manual_read", "ref.manual_id")):
        error = refusal(tool, **given_as(tool, field, value))
        assert field in error.message


def test_the_id_of_a_manual_may_have_blanks_around_it() -> None:
    assert read("manual_toc", manual_id=" m ").manual_id == "m"


# manual_toc


def test_depth_is_read_in_any_case() -> None:
    assert read("manual_toc", depth=" Deep ", path_prefix="a").depth == "deep"
    assert read("manual_toc", depth="SHALLOW").depth == "shallow"


@pytest.mark.parametrize("value", ["", "deeper", 1, True, [], {}])
def test_another_depth_is_refused(value: Any) -> None:
    refusal("manual_toc", 'depth must be "shallow" or "deep", got ', depth=value, path_prefix="a")


@pytest.mark.rule("M3.2")
@pytest.mark.parametrize("prefix", [None, "", " ", ".", "./"])
def test_deep_needs_a_prefix(prefix: Any) -> None:
    refusal("manual_toc", "path_prefix is missing; pass a file or folder", depth="deep", path_prefix=prefix)


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


def test_a_prefix_is_a_relative_path() -> None:
    assert read("manual_toc", path_prefix="a\\b//c/").path_prefix == "a/b/c"
    for value in ("/etc", "../x", "a/../../b", "C:\\x", "a\0b"):
        refusal("manual_toc", "", "invalid_path", path_prefix=value)
    no_strings: list[Any] = [5, True, ["a"], {}]
    for value in no_strings:
        refusal("manual_toc", path_prefix=value)


@pytest.mark.rule("M3.8")
def test_a_cursor_of_the_contents_is_an_object_a_number_or_a_text_of_digits() -> None:
    for cursor in (40, "40", 40.0, {"offset": 40}, {"offset": "40"}, {"offset": 40, "more": True}):
        assert read("manual_toc", cursor=cursor).offset == 40
    for nothing in (None, {}, {"offset": None}):
        assert read("manual_toc", cursor=nothing).offset == 0


@pytest.mark.rule("M7.6")
@pytest.mark.parametrize("tool", ["manual_toc", "manual_scan"])
@pytest.mark.parametrize("cursor", [True, False, "", "x", [40], {"page": 2}, {"limit": None}])
def test_a_cursor_that_is_none_is_refused_and_not_taken_for_the_beginning(tool: str, cursor: Any) -> None:
    refusal(tool, "cursor must be ", cursor=cursor)


# manual_find


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
@pytest.mark.parametrize(
    "value",
    [
        [], [""], [" "], ["a", ""], ["a", None], [1], [True], [["a"]], ["a", "b", "c"], "a", {"a": 1}, 5, True,
        ["a"] * 3, ["a", "A", "b"], ["a"] * 101, ["a" * 1001], ["\x07"],
    ],
    ids=lambda value: str(value)[:20],
)  # fmt: skip
def test_required_terms_are_one_or_two_strings(value: Any) -> None:
    error = refusal("manual_find", "required_terms must be an array of 1 or 2 different", required_terms=value)
    assert len(error.message) < 250


def test_a_query_has_a_longest_length() -> None:
    assert read("manual_find", query="x" * 10_000).query == "x" * 10_000
    error = refusal("manual_find", query="x" * 10_001)
    assert error.message.endswith("got a string of 10001 characters.")


def test_a_query_can_be_written_whatever_characters_are_in_it() -> None:
    assert read("manual_find", query="a\ud83d🐍\x1b\nb").query == "a?🐍 b"


@pytest.mark.rule("M4.41")
@pytest.mark.parametrize(("limit", "read_as"), [(None, 5), (1, 1), ("3", 3), (5, 5), (6, 5), (10**30, 5), (1e300, 5)])
def test_the_limit_of_inline_hits_is_lowered_to_5(limit: Any, read_as: int) -> None:
    assert read("manual_find", inline_hits={"limit": limit}).inline_hits == read_as


def test_inline_hits_without_a_limit_are_5() -> None:
    assert read("manual_find", inline_hits={}).inline_hits == 5


@pytest.mark.rule("M4.41")
@pytest.mark.parametrize("limit", [0, -1, True, False, 1.5, "x", "", [1], {}])
def test_a_limit_of_inline_hits_is_an_integer_of_1_or_more(limit: Any) -> None:
    refusal("manual_find", "inline_hits.limit must be an integer of 1 or more, got ", inline_hits={"limit": limit})


@pytest.mark.rule("M4.55")
@pytest.mark.parametrize("name", ["budget", "inline_hits"])
@pytest.mark.parametrize("value", [True, 5, "x", [], [1]])
def test_budget_and_inline_hits_are_objects(name: str, value: Any) -> None:
    refusal("manual_find", f"{name} must be an object like {{", **{name: value})


@pytest.mark.rule("M6.8")
def test_further_members_of_budget_inline_hits_and_ref_are_ignored() -> None:
    found = read("manual_find", budget={"time_ms": 5, "more": 1}, inline_hits={"limit": 2, "kind": "x"})
    assert (found.time_ms, found.max_candidates, found.inline_hits) == (5, 200, 2)
    ref = {"target": "manual", "manual_id": "m", "path": "a.md", "start_line": 3, "json_path": None, "signals": []}
    assert read("manual_read", ref=ref) == ReadRequest("m", "a.md", 3)


@pytest.mark.rule("M4.55")
@pytest.mark.parametrize("value", ["", " ", 5, True, ["x"], {}])
def test_an_earlier_trace_is_named_by_a_string(value: Any) -> None:
    assert read("manual_find", only_unscanned_from_trace_id="abc").only_unscanned_from_trace_id == "abc"
    refusal(
        "manual_find",
        "only_unscanned_from_trace_id must be the trace_id of an earlier manual_find, got ",
        only_unscanned_from_trace_id=value,
    )


# manual_hits


@pytest.mark.rule("M5.12")
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_the_contract_is_taken(kind: str) -> None:
    assert read("manual_hits", kind=kind).kind == kind


@pytest.mark.rule("M5.12")
@pytest.mark.parametrize("kind", ["Candidates", "", " gaps", "all", 5, True, [], {}, ["gaps"]])
def test_another_kind_is_refused_and_the_kinds_are_named(kind: Any) -> None:
    refusal("manual_hits", "kind must be one of candidates, unscanned, ", kind=kind)


# manual_read and manual_scan


@pytest.mark.rule("M6.3")
@pytest.mark.parametrize("scope", [None, "section"])
def test_the_old_scope_is_taken_where_it_says_nothing_new(scope: Any) -> None:
    assert read("manual_read", scope=scope) == MINIMAL["manual_read"]


@pytest.mark.rule("M6.3")
@pytest.mark.parametrize("scope", ["file", "sections", "snippet", "Section", "", 1, True, [], {}])
def test_another_scope_is_refused(scope: Any) -> None:
    refusal("manual_read", 'scope must be "section" or left out', scope=scope)


@pytest.mark.rule("M6.8")
@pytest.mark.parametrize("ref", [5, True, "m/a.md", ["m", "a.md"], '["m", "a.md"]'])
def test_a_ref_is_an_object(ref: Any) -> None:
    refusal("manual_read", "ref must be an object like {manual_id, path, start_line}", ref=ref)


@pytest.mark.rule("M6.8")
@pytest.mark.parametrize("path", [None, "", " ", 5, True, ["a.md"], {}])
def test_a_path_is_a_string(path: Any) -> None:
    for tool, field in (("manual_read", "ref.path"), ("manual_scan", "path")):
        refusal(tool, f"{field} ", "invalid_path", **given_as(tool, field, path))


def test_a_path_keeps_its_blanks() -> None:
    assert read("manual_scan", path=" a .md").path == " a .md"


@pytest.mark.rule("M7.1", "M7.2")
@pytest.mark.parametrize(
    ("arguments", "line", "offset"),
    [
        ({}, None, None),
        ({"start_line": 3}, 3, None),
        ({"start_line": 3, "cursor": 40}, 3, None),
        ({"start_line": 3, "cursor": {"char_offset": 40, "start_line": 9}}, 3, None),
        ({"cursor": {"start_line": 9}}, 9, None),
        ({"cursor": {"char_offset": 40, "start_line": 9}}, None, 40),
        ({"cursor": {"char_offset": 0, "start_line": 9}}, None, 0),
        ({"cursor": {"char_offset": None, "start_line": 9}}, 9, None),
        ({"cursor": {"char_offset": None}}, None, None),
        ({"cursor": {}}, None, None),
        ({"cursor": 40}, None, 40),
        ({"cursor": "40"}, None, 40),
        ({"cursor": 0}, None, 0),
    ],
)
def test_a_scan_begins_at_its_line_before_its_cursor(
    arguments: dict[str, Any], line: int | None, offset: int | None
) -> None:
    request = read("manual_scan", **arguments)
    assert (request.start_line, request.char_offset) == (line, offset)


def test_a_cursor_that_is_not_used_is_still_checked() -> None:
    refusal("manual_scan", start_line=3, cursor={"char_offset": "x"})


# Whatever comes

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None)) | st.just("deep"),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=10,
)
INNER = ("offset", "start_line", "char_offset", "limit", "time_ms", "max_candidates", "manual_id", "path", "scope")
SHAPED = JSON | st.dictionaries(st.sampled_from(INNER), JSON, max_size=4)


@every_tool
@given(st.data())
def test_any_json_makes_a_request_or_a_refusal_that_names_a_field(tool: str, data: st.DataObject) -> None:
    names = st.sampled_from(NAMES[tool]) | st.text(max_size=10)
    changed = data.draw(st.dictionaries(names, SHAPED, max_size=3))
    arguments = {**LEAST[tool], **changed} if data.draw(st.booleans()) else changed
    try:
        request = PARSERS[tool](arguments)
    except ManualsError as error:
        check_refusal(
            error, {*NAMES[tool], *(f"{outer}.{inner}" for outer in NAMES[tool] for inner in INNER), *arguments}
        )
    else:
        assert type(request) is type(MINIMAL[tool])
        assert hash(request) == hash(PARSERS[tool](arguments))


def check_refusal(error: ManualsError, fields: set[str]) -> None:
    assert error.message.endswith(".")
    assert len(error.message) < 700
    if "field" in error.details:
        assert error.details["field"] in {field[:40] for field in fields}
    else:
        assert error.code in ("invalid_path", "forbidden")  # worded for all paths alike
