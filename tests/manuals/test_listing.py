"""manual_ls: direct children with ids that list or name them."""

from pathlib import Path

import pytest

from responses_mcp.manuals.checks import OutOfTime
from responses_mcp.manuals.errors import ManualsError
from responses_mcp.manuals.folder import Folder
from responses_mcp.manuals.listing import list_children
from responses_mcp.manuals.paths import child_id
from responses_mcp.manuals.requests import LsRequest


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    for name in ("docs/b.md", "docs/a/x.JSON", "docs/a/sub/deep.md", "docs/c.txt", "docs/.hidden/y.md", "あ/z.md"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x", encoding="utf-8")
    return Folder(tmp_path)


def names(listed) -> list[str]:
    return [row["name"] for row in listed["items"]]


def test_the_root_lists_the_manuals_afresh_at_each_call(folder: Folder, tmp_path: Path) -> None:
    assert list_children(folder, LsRequest()) == {
        "id": "manuals",
        "items": [{"id": "docs", "name": "docs", "kind": "dir"}, {"id": "あ", "name": "あ", "kind": "dir"}],
    }
    (tmp_path / "new").mkdir()
    assert names(list_children(folder, LsRequest())) == ["docs", "new", "あ"]


def test_a_manual_lists_its_direct_children_in_one_order(folder: Folder) -> None:
    assert list_children(folder, LsRequest("docs")) == {
        "id": "docs",
        "items": [
            {"id": "dir::docs::YQ", "name": "a", "kind": "dir"},
            {"id": "file::docs::Yi5tZA", "name": "b.md", "kind": "file", "path": "b.md", "file_type": "md"},
        ],
    }


def test_a_folder_is_listed_by_its_id_level_by_level(folder: Folder) -> None:
    inner = list_children(folder, LsRequest("dir::docs::YQ"))
    assert inner["id"] == "dir::docs::YQ"
    assert [(row["name"], row.get("path"), row.get("file_type")) for row in inner["items"]] == [
        ("sub", None, None),
        ("x.JSON", "a/x.JSON", "json"),
    ]
    deepest = list_children(folder, LsRequest(inner["items"][0]["id"]))
    assert deepest["items"][0]["path"] == "a/sub/deep.md"


@pytest.mark.parametrize(
    ("identity", "code"),
    [
        (child_id("file", "docs", "b.md"), "invalid_parameter"),
        (child_id("file", "docs", "missing.md"), "invalid_parameter"),
        ("dir::docs::!", "invalid_parameter"),
        ("docs/a", "invalid_parameter"),
        ("..", "invalid_parameter"),
        (child_id("dir", "..", "a"), "invalid_parameter"),
        (child_id("dir", "manuals", "docs"), "invalid_parameter"),
        (child_id("dir", "docs", "../あ"), "invalid_path"),
        (child_id("dir", "docs", "/etc"), "invalid_path"),
        (child_id("dir", "docs", ".hidden"), "forbidden"),
        (child_id("dir", "docs", "missing"), "not_found"),
        (child_id("dir", "docs", "b.md"), "not_found"),
        ("nope", "not_found"),
    ],
)
def test_what_cannot_be_listed_says_why(folder: Folder, identity: str, code: str) -> None:
    with pytest.raises(ManualsError) as caught:
        list_children(folder, LsRequest(identity))
    assert caught.value.code == code


def test_many_children_come_in_one_order_and_can_be_interrupted(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    for number in range(10_000):
        (tmp_path / f"docs/{number}.md").touch()
    folder = Folder(tmp_path)
    assert names(list_children(folder, LsRequest("docs"))) == sorted(f"{number}.md" for number in range(10_000))

    def stop() -> None:
        raise OutOfTime

    with pytest.raises(OutOfTime):
        list_children(folder, LsRequest("docs"), stop)
