"""manual_toc: pages of files, with headings if wanted, never of more than 200 files."""

import os
from pathlib import Path

import pytest

from responses_mcp.manuals.cancellation import OutOfTime, unchecked
from responses_mcp.manuals.errors import ManualsError
from responses_mcp.manuals.files.folder import Folder
from responses_mcp.manuals.files.listing import table_of_contents
from responses_mcp.manuals.requests import TocRequest
from tests.manuals.indexed import after


def write(root: Path, path: str, text: str = "") -> None:
    target = root / "docs" / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(text.encode())


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(tmp_path, "b/two.md", "# Two\ntext\n\n```\n# no heading\n```\n## Sub ##\n")
    write(tmp_path, "b/data.json", "{}")
    write(tmp_path, "b/plain.md", "no heading at all")
    write(tmp_path, "bb/other.md", "# Other")
    write(tmp_path, "a.md", "# A")
    write(tmp_path, "skipped.xyz", "# no")
    return tmp_path


def toc(root: Path, check=unchecked, **request):
    return table_of_contents(Folder(root), TocRequest("docs", **request), check)


def paths(contents) -> list[str]:
    return [item["path"] for item in contents["items"]]


def refusal(root: Path, **request) -> ManualsError:
    with pytest.raises(ManualsError) as caught:
        toc(root, **request)
    return caught.value


def test_a_shallow_page_has_paths_by_code_point_and_opens_no_file(root: Path, monkeypatch) -> None:
    monkeypatch.setattr(Folder, "open", None)
    assert toc(root) == {
        "applied": {
            "manual_id": "docs",
            "path_prefix": "",
            "depth": "shallow",
            "max_files": 20,
            "include_headings": False,
            "max_headings_per_file": 20,
            "offset": 0,
        },
        "total_files": 5,
        "next_cursor": None,
        "items": [
            {"path": path, "headings": []} for path in ("a.md", "b/data.json", "b/plain.md", "b/two.md", "bb/other.md")
        ],
    }


@pytest.mark.rule("M3.1")
def test_a_deep_page_has_headings_with_their_lines(root: Path) -> None:
    found = toc(root, depth="deep", path_prefix="b")
    assert found["applied"]["include_headings"] is True
    assert {item["path"]: item["headings"] for item in found["items"]} == {
        "b/data.json": [{"title": "data.json", "line_start": 1}],
        "b/plain.md": [{"title": "plain", "line_start": 1}],
        "b/two.md": [{"title": "Two", "line_start": 1}, {"title": "Sub", "line_start": 7}],
    }


def test_headings_end_at_the_number_asked_for(root: Path) -> None:
    write(root, "b/many.md", "\r\n".join(f"# H{number}" for number in range(500)))
    assert [len(item["headings"]) for item in toc(root, depth="deep", path_prefix="b/many.md")["items"]] == [20]
    listed = toc(root, depth="deep", path_prefix="b/many.md", max_headings_per_file=3)["items"][0]["headings"]
    assert listed == [{"title": f"H{number}", "line_start": number + 1} for number in range(3)]


@pytest.mark.rule("M3.2")
def test_a_prefix_is_a_folder_or_a_file_and_not_the_start_of_a_name(root: Path) -> None:
    assert paths(toc(root, path_prefix="b")) == ["b/data.json", "b/plain.md", "b/two.md"]
    assert paths(toc(root, path_prefix="./b/")) == paths(toc(root, path_prefix="b"))
    assert toc(root, path_prefix="b\\two.md")["applied"]["path_prefix"] == "b/two.md"
    assert paths(toc(root, path_prefix="b/two.md")) == ["b/two.md"]
    for nothing in ("b/t", "nowhere", "nowhere/x.md", "a.md/x", "skipped.md"):
        error = refusal(root, path_prefix=nothing)
        assert error.code == "not_found"
        assert ("is a file, not a folder" if nothing == "a.md/x" else "has no '") in error.message


@pytest.mark.rule("M3.9")
def test_pages_join_to_the_whole(root: Path) -> None:
    joined: list[str] = []
    offset = 0
    while True:
        page = toc(root, max_files=2, offset=offset)
        joined += paths(page)
        assert page["total_files"] == 5
        if page["next_cursor"] is None:
            break
        offset = page["next_cursor"]["offset"]
    assert joined == paths(toc(root))
    assert paths(toc(root, offset=5)) == []
    error = refusal(root, offset=6)
    assert error.code == "invalid_parameter"
    assert "5 files" in error.message


@pytest.mark.parametrize(
    ("prefix", "code"), [("/etc", "invalid_path"), ("../docs", "invalid_path"), (".git", "forbidden")]
)
def test_a_prefix_stays_in_its_manual(root: Path, prefix: str, code: str) -> None:
    assert refusal(root, path_prefix=prefix).code == code


@pytest.mark.rule("M3.7")
def test_two_hundred_files_are_listed_and_one_more_is_too_many(root: Path) -> None:
    for number in range(200):
        write(root, f"c/{number // 100}/{number}.md")
    assert toc(root, path_prefix="c", max_files=200)["total_files"] == 200
    error = refusal(root)
    assert error.code == "needs_narrow_scope"
    assert "205 files" in error.message
    assert "path_prefix" in error.message
    assert "'c'" in error.message
    assert error.details == {
        "total_files": 205,
        "folders": [
            {"path_prefix": "c", "files": 200},
            {"path_prefix": "b", "files": 3},
            {"path_prefix": "bb", "files": 1},
        ],
    }
    write(root, "c/0/more.md")
    error = refusal(root, path_prefix="c")
    assert error.details["folders"] == [{"path_prefix": "c/0", "files": 101}, {"path_prefix": "c/1", "files": 100}]


def test_one_wide_folder_is_refused_with_the_ways_that_are_left(root: Path) -> None:
    for number in range(201):
        write(root, f"wide/{number}.md")
    error = refusal(root, path_prefix="wide")
    assert "201 files" in error.message
    assert "manual_find" in error.message
    assert "folders" not in error.details


@pytest.fixture
def locked(root: Path, monkeypatch) -> set[str]:
    """Return the names, without their folders, of what cannot be opened."""
    names: set[str] = set()
    real = os.open

    def fail(path, flags, *arguments, **options):
        if Path(path).name in names:
            raise PermissionError(13, "Permission denied", f"/somewhere/{path}")
        return real(path, flags, *arguments, **options)

    monkeypatch.setattr(os, "open", fail)
    return names


def test_a_file_that_cannot_be_read_leaves_the_others_readable(root: Path, locked: set[str]) -> None:
    locked.add("plain.md")
    items = {item["path"]: item for item in toc(root, depth="deep", path_prefix="b")["items"]}
    assert items["b/plain.md"]["headings"] == []
    assert "'b/plain.md'" in items["b/plain.md"]["note"]
    assert "/somewhere" not in items["b/plain.md"]["note"]
    assert len(items["b/two.md"]["headings"]) == 2


def test_a_folder_that_cannot_be_read_is_named(root: Path, locked: set[str]) -> None:
    locked.add("bb")
    found = toc(root)
    if found["total_files"] == 4:  # else this system opens no folders
        assert found["unreadable"] == ["bb"]


def test_the_work_can_be_interrupted(root: Path) -> None:
    with pytest.raises(OutOfTime):
        toc(root, after(0))
