"""The folder of manuals: only what lies under the root is listed or opened, whatever lies there."""

import errno
import os
import re
import socket
import sys
import unicodedata
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_mcp.manuals.cancellation import OutOfTime, unchecked
from responses_mcp.manuals.errors import ManualsError
from responses_mcp.manuals.files import directories
from responses_mcp.manuals.files.folder import Folder, Stamp
from tests.manuals.indexed import after

CODES = {"invalid_parameter", "invalid_path", "forbidden", "out_of_scope", "not_found", "conflict"}
links = pytest.mark.skipif(not hasattr(os, "O_NOFOLLOW"), reason="symbolic links need a privilege here")


@pytest.fixture(params=[directories._HAS_DESCRIPTORS, False], ids=["by descriptor", "by name"])
def root(request, tmp_path: Path, monkeypatch) -> Path:
    """Hold each way of looking names up to the same rules."""
    monkeypatch.setattr(directories, "_HAS_DESCRIPTORS", request.param)
    root = tmp_path / "manuals here"
    write(root / "docs/a.md", "# A")
    write(root / "docs/ja/b.JSON", "{}")
    write(root / "docs/ja/deep/c.Md", "# C")
    write(tmp_path / "outside/secret.md", "canary")
    return root


def write(path: Path, text: str = "x") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="")


def walked(root: Path, left_out: dict[str, str] | None = None) -> list[str]:
    return sorted(path for path, _ in Folder(root).walk("docs", unchecked, {} if left_out is None else left_out))


def resolved(folder: Folder, manual_id: str, path: str) -> str:
    with folder.open(manual_id, path) as handle:
        return handle.name


def refusal(root: Path, manual_id: str, path: str) -> ManualsError:
    with pytest.raises(ManualsError) as caught:
        Folder(root).open(manual_id, path).close()
    told = f"{caught.value.message} {caught.value.details}"
    assert str(root.parent) not in told
    assert "canary" not in told
    assert re.fullmatch(r"[^\n]+[;,] [^\n]+\.", caught.value.message), "a cause and a cure"
    return caught.value


def test_every_manual_is_listed_by_code_point(root: Path) -> None:
    for name in ("b", "C", "あ", ".hidden", "manuals"):
        (root / name).mkdir()
    assert Folder(root).manuals() == ["C", "b", "docs", "manual::manuals", "あ"]


def served(folder: Folder) -> dict[str, list[str]]:
    return {each: sorted(path for path, _ in folder.walk(each, unchecked, {})) for each in folder.manuals()}


def test_files_in_the_root_are_a_manual_of_its_name_with_a_number_where_that_is_taken(tmp_path: Path) -> None:
    root = tmp_path / "guide"
    write(root / "sub/a.md")
    write(root / "b.md")
    assert served(Folder(root)) == {"guide": ["b.md"], "sub": ["sub/a.md".partition("/")[2]]}
    assert Folder(root).children("guide", "", unchecked) == [("b.md", "file")]
    with Folder(root).open("guide", "b.md") as handle:
        assert handle.name == "b.md"
    assert refusal(root, "guide", "sub/a.md").code == "not_found"
    write(root / "guide/c.md")
    write(root / "guide-2/d.md")
    assert served(Folder(root)) == {"guide": ["c.md"], "guide-2": ["d.md"], "guide-3": ["b.md"], "sub": ["a.md"]}
    assert Folder(root).children("guide-3", "", unchecked) == [("b.md", "file")]
    (root / "b.md").unlink()
    assert list(served(Folder(root))) == ["guide", "guide-2", "sub"]


def test_files_in_a_root_that_is_called_as_the_root_id_or_is_hidden_have_an_id(tmp_path: Path) -> None:
    write(tmp_path / "manuals/b.md")
    write(tmp_path / ".notes/b.md")
    assert served(Folder(tmp_path / "manuals")) == {"manual::manuals": ["b.md"]}
    assert served(Folder(tmp_path / ".notes")) == {"files": ["b.md"]}


def test_what_patterns_of_the_settings_or_of_git_fit_is_neither_listed_nor_walked_nor_opened(tmp_path: Path) -> None:
    for path in ("m/a.md", "m/node_modules/b.md", "m/out/c.md", "m/out/kept.md", "m/deep/out/d.md", "m/x.draft.md"):
        write(tmp_path / path)
    (tmp_path / ".gitignore").write_text("*.draft.md\r\n", encoding="utf-8-sig")
    (tmp_path / "m/.gitignore").write_text("# built\n/out/*\n!kept.md\n", encoding="utf-8")
    assert served(Folder(tmp_path)) == {"m": ["a.md", "deep/out/d.md", "out/kept.md"]}
    assert Folder(tmp_path).children("m", "out", unchecked) == [("kept.md", "file")]
    assert [refusal(tmp_path, "m", each).code for each in ("node_modules/b.md", "out/c.md", "x.draft.md")] == [
        "forbidden"
    ] * 3
    chosen = Folder(tmp_path, ["deep/", "m/deep", "!*.draft.md"])
    assert served(chosen) == {"m": ["a.md", "node_modules/b.md", "out/kept.md", "x.draft.md"]}
    assert Folder(tmp_path, ["m"]).manuals() == []


def test_a_root_that_does_not_exist_has_no_manuals(tmp_path: Path) -> None:
    folder = Folder(tmp_path / "nowhere")
    assert folder.manuals() == []
    assert refusal(tmp_path / "nowhere", "docs", "a.md").code == "not_found"


def test_a_root_that_is_a_file_is_a_conflict(root: Path) -> None:
    with pytest.raises(ManualsError) as caught:
        Folder(root / "docs/a.md").manuals()
    assert caught.value.code == "conflict"
    assert refusal(root / "docs/a.md", "docs", "a.md").code in ("conflict", "not_found")


def test_every_markdown_and_json_file_is_walked_with_its_stamp(root: Path) -> None:
    write(root / "docs/readme.xyz")
    write(root / "docs/folder.md/inner.md")
    found = dict(Folder(root).walk("docs", unchecked, {}))
    assert sorted(found) == ["a.md", "folder.md/inner.md", "ja/b.JSON", "ja/deep/c.Md"]
    status = (root / "docs/a.md").stat()
    assert found["a.md"] == Stamp.of(status)
    assert found["a.md"].size == 3
    write(root / "docs/a.md", "# AB")
    assert dict(Folder(root).walk("docs", unchecked, {}))["a.md"] != found["a.md"]


def test_hidden_entries_are_neither_walked_nor_opened(root: Path) -> None:
    write(root / "docs/.git/x.md")
    write(root / "docs/.x.md")
    assert walked(root) == ["a.md", "ja/b.JSON", "ja/deep/c.Md"]
    assert refusal(root, "docs", ".git/x.md").code == refusal(root, "docs", ".x.md").code == "forbidden"
    assert refusal(root, "docs", " .x.md").code == "not_found"
    (root / ".git").mkdir()
    assert refusal(root, ".git", "x.md").code == "forbidden"


@links
def test_no_link_is_followed_at_any_level_below_the_root(root: Path) -> None:
    outside = root.parent / "outside"
    (root / "linked").symlink_to(outside)
    (root / "docs/folder").symlink_to(outside)
    (root / "docs/file.md").symlink_to(outside / "secret.md")
    (root / "docs/inside.md").symlink_to(root / "docs/a.md")
    (root / "docs/dangling.md").symlink_to("nowhere")
    (root / "docs/loop").symlink_to("loop")
    folder = Folder(root)
    assert folder.manuals() == ["docs"]
    assert walked(root) == ["a.md", "ja/b.JSON", "ja/deep/c.Md"]
    assert sorted(folder.children("docs", "", unchecked)) == [("a.md", "file"), ("ja", "dir")]
    for manual_id, path in [("linked", "secret.md"), ("docs", "folder/secret.md"), ("docs", "file.md"),
                            ("docs", "inside.md"), ("docs", "dangling.md"), ("docs", "loop/a.md")]:  # fmt: skip
        assert refusal(root, manual_id, path).code == "forbidden"
    for call in (
        folder.require_manual,
        lambda name: folder.children(name, "", unchecked),
        lambda name: folder.walk(name, unchecked, {}),
    ):
        with pytest.raises(ManualsError) as caught:
            list(call("linked"))
        assert caught.value.code == "forbidden"
    with pytest.raises(ManualsError):
        list(folder.walk("docs", unchecked, {}, under="folder"))


@links
def test_the_root_itself_may_be_a_link(root: Path) -> None:
    link = root.parent / "link"
    link.symlink_to(root)
    assert Folder(link).manuals() == ["docs"]
    assert walked(link) == walked(root)
    with Folder(link).open("docs", "a.md") as handle:
        assert handle.read() == b"# A"


@links
def test_a_folder_swapped_for_a_link_in_the_middle_of_a_walk_does_not_lead_out(root: Path) -> None:
    left_out: dict[str, str] = {}
    walk = Folder(root).walk("docs", unchecked, left_out)
    assert next(walk)[0] == "a.md"
    (root / "docs/ja").rename(root.parent / "moved")
    (root / "docs/ja").symlink_to(root.parent / "outside")
    assert (list(walk), left_out) == ([], {})


@links
def test_a_file_swapped_for_a_link_just_before_it_is_opened_is_not_followed(root: Path, monkeypatch) -> None:
    real = os.open

    def swap(path, flags, *arguments, **options):
        if str(path).endswith("a.md"):
            (root / "docs/a.md").unlink()
            (root / "docs/a.md").symlink_to(root.parent / "outside/secret.md")
        return real(path, flags, *arguments, **options)

    monkeypatch.setattr(os, "open", swap)
    assert refusal(root, "docs", "a.md").code == "forbidden"


def test_by_name_a_file_is_refused_that_resolves_to_another_name(root: Path, monkeypatch) -> None:
    """Short names and junctions of Windows do so."""
    monkeypatch.setattr(directories, "_HAS_DESCRIPTORS", False)
    real = os.path.realpath
    monkeypatch.setattr(os.path, "realpath", lambda path: real(path).replace("a.md", "secret.md").replace("ja", "jb"))
    assert refusal(root, "docs", "a.md").code == "out_of_scope"
    assert refusal(root, "docs", "ja/b.JSON").code == "out_of_scope"


def test_by_name_a_file_is_refused_that_is_another_one_once_it_is_open(root: Path, monkeypatch) -> None:
    monkeypatch.setattr(directories, "_HAS_DESCRIPTORS", False)
    real = os.open

    def swap(path, *arguments, **options):
        (root.parent / "outside/secret.md").replace(root / "docs/a.md")
        return real(path, *arguments, **options)

    monkeypatch.setattr(os, "open", swap)
    assert refusal(root, "docs", "a.md").code == "out_of_scope"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no FIFOs here")
def test_what_is_no_regular_file_is_neither_walked_nor_waited_for(root: Path, monkeypatch) -> None:
    os.mkfifo(root / "docs/pipe.md")
    monkeypatch.chdir(root / "docs")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket.md")
        assert walked(root) == ["a.md", "ja/b.JSON", "ja/deep/c.Md"]
        assert refusal(root, "docs", "pipe.md").code == "forbidden"
        assert refusal(root, "docs", "socket.md").code == "forbidden"


@pytest.mark.parametrize(
    ("manual_id", "path", "code"),
    [
        ("docs", "missing.md", "not_found"),
        ("docs", "missing/a.md", "not_found"),
        ("docs", "a.md/b.md", "not_found"),
        ("docs", "ja", "not_found"),
        ("docs", "x" * 300 + ".md", "invalid_path"),
        ("docs", "é" * 200 + "/a.md", "invalid_path"),
        ("x" * 300, "a.md", "invalid_path"),
        ("nope", "a.md", "not_found"),
        ("manuals", "a.md", "invalid_parameter"),
        ("docs/ja", "b.JSON", "invalid_parameter"),
        ("..", "a.md", "invalid_parameter"),
        ("docs", "", "invalid_path"),
        ("docs", "/etc/passwd", "invalid_path"),
        ("docs", "../../outside/secret.md", "invalid_path"),
        ("docs", "notes.xyz", "forbidden"),
        ("loose.md", "a.md", "not_found"),
    ],
)
@pytest.mark.skipif(sys.platform == "win32", reason="other systems word it differently")
def test_each_wrong_request_has_its_code(root: Path, manual_id: str, path: str, code: str) -> None:
    write(root / "docs/notes.xyz")
    write(root / "loose.md")
    assert refusal(root, manual_id, path).code == code


@pytest.mark.parametrize("wrong", ["nope", "manuals"])
def test_a_wrong_manual_is_answered_with_the_ids_there_are(root: Path, wrong: str) -> None:
    assert refusal(root, wrong, "a.md").details["candidate_ids"] == ["docs"]
    with pytest.raises(ManualsError) as caught:
        next(Folder(root).walk(wrong, unchecked, {}))
    assert caught.value.details["candidate_ids"] == ["docs"]


@pytest.mark.parametrize("wanted", [errno.EACCES, errno.EIO, errno.EMFILE])
def test_what_cannot_be_opened_is_a_conflict_that_names_it(root: Path, monkeypatch, wanted: int) -> None:
    real = os.open

    def fail(path, flags, *arguments, **options):
        if str(path).endswith("b.JSON"):
            raise OSError(wanted, os.strerror(wanted), str(root / "docs/ja/b.JSON"))
        return real(path, flags, *arguments, **options)

    monkeypatch.setattr(os, "open", fail)
    error = refusal(root, "docs", "ja/b.JSON")
    assert error.code == "conflict"
    assert "'ja/b.JSON'" in error.message
    assert os.strerror(wanted) in error.message
    assert error.details == {"manual_id": "docs", "path": "ja/b.JSON"}


def test_a_folder_that_cannot_be_entered_is_reported_and_the_walk_goes_on(root: Path, monkeypatch) -> None:
    write(root / "docs/zz/z.md")
    entered = (
        directories.DirectoryByDescriptor.enter if directories._HAS_DESCRIPTORS else directories.DirectoryByPath.enter
    )

    def fail(place, name):
        if name == "ja":
            raise PermissionError(errno.EACCES, "Permission denied")
        return entered(place, name)

    monkeypatch.setattr(
        directories.DirectoryByDescriptor if directories._HAS_DESCRIPTORS else directories.DirectoryByPath,
        "enter",
        fail,
    )
    left_out: dict[str, str] = {}
    assert walked(root, left_out=left_out) == ["a.md", "zz/z.md"]
    assert left_out == {"ja": "unreadable"}


def test_folders_too_deep_to_walk_are_reported(root: Path) -> None:
    deep = root / "docs" / "/".join(["d"] * 63)
    write(deep / "last.md")
    write(deep / "d/beyond.md")
    left_out: dict[str, str] = {}
    assert [path for path in walked(root, left_out=left_out) if "last" in path or "beyond" in path] == [
        "/".join(["d"] * 63) + "/last.md"
    ]
    assert left_out == {"/".join(["d"] * 64): "too_deep"}


@pytest.mark.skipif(sys.platform == "darwin", reason="the system folds names itself")
def test_composed_and_decomposed_spellings_find_the_same_file(root: Path) -> None:
    nfc, nfd = (unicodedata.normalize(form, "ガイド") for form in ("NFC", "NFD"))
    write(root / nfd / nfd / f"{nfc}.md", "found")
    folder = Folder(root)
    assert folder.require_manual(nfc) == folder.require_manual(nfd) == nfd
    for path in (f"{nfc}/{nfc}.md", f"{nfd}/{nfd}.md", f"{nfc}/{nfd}.md", f" {nfd}/{nfc}.md "):
        assert resolved(folder, nfc, path) == f"{nfd}/{nfc}.md"
        with folder.open(nfd, path) as handle:
            assert handle.read() == b"found"
    assert [path for path, _ in folder.walk(nfc, unchecked, {}, under=nfc)] == [f"{nfd}/{nfc}.md"]
    assert refusal(root, nfc, f"{nfc}/{nfc}s.md").code == "not_found"


@pytest.mark.skipif(sys.platform == "darwin", reason="the system folds names itself")
def test_of_two_files_that_differ_in_spelling_only_each_is_found_by_its_own(root: Path) -> None:
    nfc, nfd = (unicodedata.normalize(form, "ガ.md") for form in ("NFC", "NFD"))
    write(root / "docs" / nfc, "composed")
    write(root / "docs" / nfd, "decomposed")
    for path, text in ((nfc, b"composed"), (nfd, b"decomposed")):
        with Folder(root).open("docs", path) as handle:
            assert handle.read() == text


@pytest.mark.skipif(sys.platform in ("darwin", "win32"), reason="file names are text there")
def test_names_that_cannot_be_served_are_left_out_with_the_reason(root: Path) -> None:
    names = ("caf\udce9.md", "back\\slash.md", "new\nline.md", "ja/\x1b[2J/x.md", ".hidden\n.md", "a\x85.xyz")
    for name in (*names, "exe\u202edm.md", "ja/co\xadop/x.md"):
        write(root / "docs" / name)
    left_out: dict[str, str] = {}
    assert walked(root, left_out=left_out) == ["a.md", "ja/b.JSON", "ja/deep/c.Md"]
    wrong = {
        "caf\ufffd.md",
        "back\\slash.md",
        "new<U+000A>line.md",
        "ja/<U+001B>[2J",
        "exe<U+202E>dm.md",
        "ja/co<U+00AD>op",
    }
    assert left_out == dict.fromkeys(wrong, "name_not_served")
    with pytest.raises(ManualsError) as caught:
        Folder(root).open("docs", "new\nline.md")
    assert caught.value.code == "invalid_path"


def test_paths_below_a_folder_or_of_one_file_or_of_nothing(root: Path) -> None:
    folder = Folder(root)

    def below(under: str) -> list[str]:
        return sorted(path for path, _ in folder.walk("docs", unchecked, {}, under=under))

    assert below("") == below(".") == ["a.md", "ja/b.JSON", "ja/deep/c.Md"]
    assert below("ja") == below("ja/") == ["ja/b.JSON", "ja/deep/c.Md"]
    assert below("ja/b.JSON") == ["ja/b.JSON"]
    for nowhere in ("j", "ja/b", "nowhere/x"):
        with pytest.raises(ManualsError, match=f"has no '{nowhere.removesuffix('/x')}'"):
            below(nowhere)


def test_a_walk_of_many_entries_asks_often_whether_to_stop(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    for number in range(1000):
        (tmp_path / f"docs/{number}.md").touch()
    for call in (
        lambda check: Folder(tmp_path).walk("docs", check, {}),
        partial(Folder(tmp_path).children, "docs", ""),
    ):
        with pytest.raises(OutOfTime):
            list(call(after(3)))


def test_a_file_that_vanishes_in_the_middle_of_a_walk_is_left_out(root: Path) -> None:
    for number in range(600):
        write(root / f"docs/many/{number}.md")
    walk = Folder(root).walk("docs", unchecked, {})
    first = next(path for path, _ in walk if path.startswith("many/"))
    for path in (root / "docs/many").iterdir():
        path.unlink()
    assert first not in dict(walk)


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="open descriptors cannot be counted here")
def test_no_descriptor_stays_open(root: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    folder = Folder(root)
    next(folder.walk("docs", unchecked, {}))
    resolved(folder, "docs", "ja/deep/c.Md")
    for path in ("ja", "ja/none.md", "none/x.md"):
        refusal(root, "docs", path)
    walked(root)
    list(folder.children("docs", "ja", unchecked))
    assert len(os.listdir("/proc/self/fd")) == before


@given(st.text(max_size=20) | st.lists(
    st.sampled_from(["..", ".", "", "docs", "ja", "a.md", "out", "outside", "secret.md", "CON", "C:", "\0", "~", " "]),
    max_size=5,
).map("/".join))  # fmt: skip
def test_no_path_whatever_opens_what_is_outside(root: Path, path: str) -> None:
    if hasattr(os, "O_NOFOLLOW") and not (root / "docs/out").is_symlink():
        (root / "docs/out").symlink_to(root.parent)
    for manual_id in ("docs", path):
        told, code = "", "forbidden"
        try:
            with Folder(root).open(manual_id, path) as handle:
                told = handle.read().decode()
        except ManualsError as error:
            told, code = f"{error.message}{error.details}", error.code
        assert code in CODES
        assert "canary" not in told
        assert str(root.parent) not in told
