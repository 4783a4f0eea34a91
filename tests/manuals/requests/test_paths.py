"""Relative paths and the ids of manual_ls: what is let through, and that nothing else is."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_mcp.manuals.errors import ManualsError
from responses_mcp.manuals.requests.paths import (
    child_id,
    file_type,
    parse_child_id,
    parts_of,
    require_single_name,
    served_name,
)


def refusal(call, *arguments, **options) -> str:
    with pytest.raises(ManualsError) as caught:
        call(*arguments, **options)
    assert str(arguments[0]).strip() == "" or len(arguments[0]) < 3 or arguments[0] not in caught.value.message
    return caught.value.code


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        ("a.md", ["a.md"]),
        ("ja/b/c.json", ["ja", "b", "c.json"]),
        ("ja\\b\\c.md", ["ja", "b", "c.md"]),
        ("./ja//b/./c.md", ["ja", "b", "c.md"]),
        ("ja/", ["ja"]),
        ("", []),
        (".", []),
        (" / ", None),
        ("Q: what.md", ["Q: what.md"]),
        ("日本語/ファイル.md", ["日本語", "ファイル.md"]),
        ("a..b.md", ["a..b.md"]),
    ],
)
def test_a_path_is_cut_at_either_slash_without_its_empty_parts(path: str, parts: list[str] | None) -> None:
    if parts is None:
        assert refusal(parts_of, path) == "invalid_path"
    else:
        assert parts_of(path, windows=False) == parts


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd", " /etc/passwd", "\\\\server\\share\\a.md", "\\\\?\\C:\\a.md", "C:\\a.md", "c:/a.md", "C:",
        "../a.md", "a/../../b.md", "..", "a\\..\\b.md", "a/.. /b.md", "a\0.md", "a\udc80.md", "x" * 5000,
    ],
)  # fmt: skip
@pytest.mark.parametrize("windows", [False, True])
def test_what_cannot_be_a_path_below_a_manual_is_an_invalid_path(path: str, windows: bool) -> None:
    assert refusal(parts_of, path, windows=windows) == "invalid_path"


@pytest.mark.parametrize("path", [".git/config.md", "a/.hidden.md", ".env.json", "a/.../b.md"])
def test_a_hidden_name_is_forbidden(path: str) -> None:
    assert refusal(parts_of, path) == "forbidden"


@pytest.mark.parametrize(
    "path", ["con.md", "a/NUL", "com1.json", "a.md:stream", "C:a.md", "a ./b.md", "dir./b.md", "a?.md", "lpt¹ .md"]
)
def test_windows_reserves_more_names(path: str) -> None:
    assert refusal(parts_of, path, windows=True) == "invalid_path"
    assert parts_of(path, windows=False)


def test_outer_blanks_make_no_difference_on_windows_either() -> None:
    assert parts_of("a /b.JSON ", windows=True) == ["a", "b.JSON"]


@given(st.text() | st.text(alphabet="./\\C:a \0\udcff", max_size=12), st.booleans())
def test_no_path_gets_out_of_its_manual(path: str, windows: bool) -> None:
    parts: list[str] = []
    with suppress(ManualsError):
        parts = parts_of(path, windows=windows)
    for part in parts:
        assert part.strip() not in ("", ".", "..")
        assert not part.startswith(".")
        assert not set(part) & set("/\\\0")
        part.encode()


@pytest.mark.parametrize(("path", "kind"), [("a.md", "md"), ("A.MD", "md"), ("b/c.JsOn", "json"), ("a.mdq", None),
    ("md", None), ("a.xyz", None), ("a.md ", None), ("", None)])  # fmt: skip
def test_the_type_of_a_file_is_its_extension_in_any_case(path: str, kind: str | None) -> None:
    assert file_type(path) == kind


UNSEEN = ["co\xadop.md", "\ufeffa.md", "a\u200e.md", "a\u200bb.md", "exe\u202edm.md", "a\u2060.md", "a\u200db.md"]
SEEN = [
    "guide.md",
    "👩\u200d👩\u200d👧.md",
    "❤\ufe0f.md",
    "می\u200cخواهم.md",
    "葛\U000e0100.md",
    "a\u3000b.md",
    "a\xa0.md",
]


@pytest.mark.parametrize("name", [".git", "a\\b.md", "caf\udce9.md", " ", *UNSEEN])
def test_a_name_that_cannot_be_asked_for_is_not_shown(name: str) -> None:
    assert not served_name(name)


@pytest.mark.parametrize("name", SEEN)
def test_a_name_whose_invisible_characters_its_writing_needs_is_shown(name: str) -> None:
    assert served_name(name)
    assert parts_of(name) == [name]


@pytest.mark.parametrize("name", UNSEEN)
def test_a_name_with_characters_that_nobody_sees_cannot_be_asked_for(name: str) -> None:
    assert refusal(parts_of, f"ja/{name}") == "invalid_path"


@pytest.mark.parametrize("name", ["a/b", "a\\b", "..", ".", "/", "C:/", " ", "", "a/", "x\0y", "\ud800"])
def test_a_manual_is_named_by_one_name(name: str) -> None:
    assert refusal(require_single_name, name) == "invalid_parameter"


@given(st.sampled_from(["dir", "file"]), st.text(min_size=1), st.text(min_size=1))
def test_an_id_leads_back_to_what_it_names(kind, manual_id: str, path: str) -> None:
    if any("\ud800" <= each <= "\udfff" for each in manual_id + path):
        return
    assert parse_child_id(child_id(kind, manual_id, path)) == (kind, manual_id, path)


def test_the_path_in_an_id_is_unpadded_url_safe_base64() -> None:
    assert child_id("file", "docs", "a/b.md") == "file::docs::YS9iLm1k"
    assert child_id("dir", "docs", "?>~") == "dir::docs::Pz5-"


@pytest.mark.parametrize("identity", ["dir::", "dir::x", "dir::x::", "file::x::a", "dir::x::!!", "dir::x::YQ==",
    "dir::::YQ", "dir::x::gICA", "dir::x::YR", "dir::x::日本"])  # fmt: skip
def test_a_damaged_id_is_refused(identity: str) -> None:
    assert refusal(parse_child_id, identity) == "invalid_parameter"


@pytest.mark.parametrize("identity", ["manuals", "docs", "other::x::YQ", "dir", "file", ""])
def test_an_id_of_another_form_is_the_name_of_a_manual(identity: str) -> None:
    assert parse_child_id(identity) is None
