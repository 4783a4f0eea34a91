"""manual_ls: direct children with ids that list or name them."""

from pathlib import Path

import pytest

from responses_mcp.manuals.cancellation import unchecked
from responses_mcp.manuals.errors import ManualsError
from responses_mcp.manuals.files import listing
from responses_mcp.manuals.files.folder import Folder
from responses_mcp.manuals.files.listing import list_children
from responses_mcp.manuals.requests import LsRequest
from responses_mcp.manuals.requests.paths import child_id


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    for name in ("docs/b.md", "docs/a/x.JSON", "docs/a/sub/deep.md", "docs/c.xyz", "docs/.hidden/y.md", "あ/z.md"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x", encoding="utf-8")
    return Folder(tmp_path)


def names(listed) -> list[str]:
    return [row["name"] for row in listed["items"]]


@pytest.mark.rule("M2.2")
def test_the_root_lists_the_manuals_afresh_at_each_call(folder: Folder, tmp_path: Path) -> None:
    assert list_children(folder, LsRequest()) == {
        "id": "manuals",
        "items": [{"id": "docs", "name": "docs", "kind": "dir"}, {"id": "あ", "name": "あ", "kind": "dir"}],
    }
    (tmp_path / "new").mkdir()
    assert names(list_children(folder, LsRequest())) == ["docs", "new", "あ"]


@pytest.mark.rule("M2.5", "M2.6", "M2.9")
def test_a_manual_lists_its_direct_children_in_one_order(folder: Folder) -> None:
    assert list_children(folder, LsRequest("docs")) == {
        "id": "docs",
        "items": [
            {"id": "dir::docs::YQ", "name": "a", "kind": "dir"},
            {"id": "file::docs::Yi5tZA", "name": "b.md", "kind": "file", "path": "b.md", "file_type": "md"},
        ],
    }


@pytest.mark.rule("M2.5")
def test_a_folder_is_listed_by_its_id_level_by_level(folder: Folder) -> None:
    inner = list_children(folder, LsRequest("dir::docs::YQ"))
    assert inner["id"] == "dir::docs::YQ"
    assert [(row["name"], row.get("path"), row.get("file_type")) for row in inner["items"]] == [
        ("sub", None, None),
        ("x.JSON", "a/x.JSON", "json"),
    ]
    deepest = list_children(folder, LsRequest(inner["items"][0]["id"]))
    assert deepest["items"][0]["path"] == "a/sub/deep.md"


@pytest.mark.rule("M2.7")
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


@pytest.mark.rule("M2.2")
def test_a_root_that_is_missing_or_empty_is_named(tmp_path: Path) -> None:
    root = tmp_path / "here"
    missing = list_children(Folder(root), LsRequest())
    assert missing["items"] == []
    assert f"'{root}'" in missing["note"]
    assert "does not exist" in missing["note"]
    assert "MANUALS_ROOT" in missing["note"]
    root.mkdir()
    empty = list_children(Folder(root), LsRequest())
    assert empty["items"] == []
    assert f"'{root}'" in empty["note"]
    assert "has no folder and no served file" in empty["note"]


@pytest.mark.rule("M2.2")
def test_a_manual_may_be_called_as_the_root_is(tmp_path: Path) -> None:
    place = tmp_path / "manuals/sub"
    place.mkdir(parents=True)
    (place / "a.md").write_bytes(b"# A\nx")
    folder = Folder(tmp_path)
    [row] = list_children(folder, LsRequest())["items"]
    assert (row["name"], row["kind"]) == ("manuals", "dir")
    assert row["id"] != "manuals"
    [sub] = list_children(folder, LsRequest(row["id"]))["items"]
    [file] = list_children(folder, LsRequest(sub["id"]))["items"]
    assert file["path"] == "sub/a.md"
    assert [path for path, _ in folder.walk(row["id"], unchecked, {})] == ["sub/a.md"]
    assert folder.require_manual(row["id"]) == row["id"]
    with folder.open(row["id"], "sub/a.md") as handle:
        assert handle.read() == b"# A\nx"
    with pytest.raises(ManualsError):
        folder.require_manual("manuals")


@pytest.mark.rule("M2.9")
@pytest.mark.parametrize("folders", [True, False])
def test_a_large_folder_comes_in_pieces_that_say_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, folders: bool
) -> None:
    assert listing.MOST_LISTED == 1000
    monkeypatch.setattr(listing, "MOST_LISTED", 3)
    place = tmp_path if folders else tmp_path / "m"
    place.mkdir(exist_ok=True)
    for number in range(8):
        (place / f"{number}.md").write_text("", encoding="utf-8") if not folders else (place / f"{number}").mkdir()
    names: list[str] = []
    given: list[int] = []
    at: str | None = "manuals" if folders else "m"
    while at is not None:
        listed = list_children(Folder(tmp_path), LsRequest(at))
        assert listed["id"] == at
        names += [item["name"] for item in listed["items"]]
        given.append(len(listed["items"]))
        at = listed.get("next_id")
        assert ("next_id" in listed.get("note", "")) is (at is not None)
    assert names == [f"{number}" if folders else f"{number}.md" for number in range(8)]
    assert given == [3, 3, 2]
