"""The section of manuals: numbers, folders, the toolset that comes with a root, and where the index goes."""

import json
import os
from pathlib import Path

import pytest

from responses_mcp.settings import ManualsSettings, ServerSettings, Settings, load_settings, show_config
from responses_mcp.settings.files import absolute, user_folder

from .loading import clean, load, problem, usual_place, warning


@pytest.fixture
def manuals(tmp_path: Path) -> Path:
    """A folder that can be the root, with a name of any letters."""
    folder = tmp_path / "社内 manuals (2026)"
    folder.mkdir()
    return folder


def test_patterns_of_what_to_leave_out_may_hold_blanks_as_folders_do(tmp_path: Path) -> None:
    patterns = ("old docs", "!社内 資料/", "$RECYCLE.BIN", "a,b", "todo")
    yaml = f"manuals: {{exclude: {json.dumps(patterns)}}}\n"
    assert clean(load(tmp_path, yaml)).settings.manuals.exclude == patterns
    named = clean(load(tmp_path, environ={"MANUALS_EXCLUDE": "old docs , b"})).settings.manuals.exclude
    assert named == ("old docs", "b")
    assert 'got " " in it' in problem(load(tmp_path, "manuals: {exclude: [' ']}\n"))


def test_folders_start_at_home_or_the_file_or_the_working_directory(
    manuals: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for root in (f"~/{manuals.name}", manuals.name, str(manuals)):
        assert clean(load(tmp_path, environ={"MANUALS_ROOT": root})).settings.manuals.root == str(manuals)
    (tmp_path / "config.yaml").write_text(f"manuals: {{root: {manuals.name}, index_dir: ~/index}}\n", "utf-8")
    loaded = clean(load_settings({}, config_path="config.yaml", home=tmp_path, windows=False)).settings.manuals
    assert (loaded.root, loaded.index_dir) == (str(manuals), str(tmp_path / "index"))


def test_a_folder_without_a_working_directory_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone() -> str:
        raise FileNotFoundError

    monkeypatch.setattr(os, "getcwd", gone)
    assert absolute(Path("manuals")) == Path("manuals")


@pytest.mark.parametrize("name", ["absent", "a-file", "a-file/below", "$DOCS/books", "%DOCS%"])
def test_a_root_that_is_no_folder_is_a_warning_and_keeps_the_toolset(name: str, tmp_path: Path) -> None:
    (tmp_path / "a-file").touch()
    loaded = load(tmp_path, environ={"MANUALS_ROOT": f"~/{name}"})
    assert warning(loaded).startswith(
        f"manuals.root: there is no such folder, so there are no manuals: {tmp_path / name} (from env MANUALS_ROOT); "
    )
    assert loaded.settings.toolsets == ("answer", "manuals")
    assert [each.name for each in tmp_path.iterdir()] == ["a-file"], "loading creates no folder"


@pytest.mark.rule("spec 5.5")
@pytest.mark.parametrize(
    ("listed", "option", "offered"),
    [
        (None, None, ("answer", "manuals")),
        ("answer", None, ("answer",)),
        ("answer", "manuals", ("answer", "manuals")),
    ],
)
def test_manuals_are_offered_where_there_is_a_root_unless_a_list_says_otherwise(
    manuals: Path, listed: str | None, option: str | None, offered: tuple[str, ...], tmp_path: Path
) -> None:
    environ = {"MANUALS_ROOT": str(manuals)} | ({} if listed is None else {"MCP_TOOLSETS": listed})
    assert clean(load(tmp_path, environ=environ, toolsets=option)).settings.toolsets == offered
    server = ServerSettings(toolsets=("answer", "manuals"))  # made by hand
    assert Settings(server=server).toolsets == ("answer",)
    assert Settings(server=server, manuals=ManualsSettings(root="/m")).toolsets == ("answer", "manuals")


def test_a_list_with_manuals_needs_a_root(tmp_path: Path) -> None:
    expected = (
        "server.toolsets: expected manuals.root to be set, because manuals is in the list, got none (from {}); "
        "set MANUALS_ROOT or manuals.root, or drop manuals from the list."
    )
    for loaded, where in (
        (load(tmp_path, toolsets="manuals"), "--toolsets"),
        (load(tmp_path, environ={"MCP_TOOLSETS": "answer,manuals"}), "env MCP_TOOLSETS"),
        (load(tmp_path, "server:\n  toolsets: [manuals]\n"), f"{usual_place(tmp_path)}"),
    ):
        assert problem(loaded) == expected.format(where)
        assert loaded.settings.toolsets == ("answer",)


def test_the_index_goes_to_the_cache_folder_if_there_is_a_root_and_nothing_else_is_said(
    manuals: Path, tmp_path: Path
) -> None:
    environ = {"MANUALS_ROOT": str(manuals), "XDG_CACHE_HOME": str(tmp_path / "xdg"), "LOCALAPPDATA": str(tmp_path)}
    loaded = clean(load_settings(environ, home=tmp_path, windows=True))
    assert loaded.settings.manuals.index_dir == str(tmp_path / "openai-responses-mcp")
    assert loaded.sources["manuals.index_dir"] == "default"
    shown = json.loads(show_config(loaded, "1"))["effective"]["manuals"]
    assert shown["index_dir"] == loaded.settings.manuals.index_dir
    named = clean(load_settings({**environ, "MANUALS_INDEX_DIR": "~/i"}, home=tmp_path, windows=True))
    assert named.settings.manuals.index_dir == str(tmp_path / "i")
    assert named.sources["manuals.index_dir"] == "env:MANUALS_INDEX_DIR"
    del environ["MANUALS_ROOT"]
    assert clean(load_settings(environ, home=tmp_path, windows=True)).settings == Settings()


@pytest.mark.rule("P17")
def test_the_cache_folder_is_that_of_the_system(tmp_path: Path) -> None:
    xdg, local = {"XDG_CACHE_HOME": str(tmp_path / "xdg")}, {"LOCALAPPDATA": str(tmp_path / "local")}
    for windows, environ, folder in (
        (False, {}, "home/.cache"),
        (False, xdg | local, "xdg"),
        (False, {"XDG_CACHE_HOME": ""}, "home/.cache"),
        (False, {"XDG_CACHE_HOME": "relative"}, "home/.cache"),
        (True, xdg | local, "local"),
        (True, {}, "home/AppData/Local"),
    ):
        assert user_folder("cache", environ, tmp_path / "home", windows=windows) == tmp_path / folder


def test_a_user_without_a_home_gets_the_defaults_and_the_index_in_memory(
    manuals: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_home() -> Path:
        raise RuntimeError

    monkeypatch.setattr(Path, "home", no_home)
    assert clean(load_settings({}, windows=False)).settings == Settings()
    loaded = clean(load_settings({"MANUALS_ROOT": str(manuals)}, windows=False))
    assert (loaded.settings.manuals.root, loaded.settings.manuals.index_dir) == (str(manuals), None)


@pytest.mark.parametrize(
    "url", ["http://192.168.0.7/v1", "https://user:pass@host/v1", "ftp://host/v1", "https://host/?a"]
)
def test_an_address_of_embeddings_is_judged_as_that_of_the_answers_is(url: str, tmp_path: Path) -> None:
    loaded = load(tmp_path, f"manuals:\n  embeddings:\n    provider: api\n    base_url: {url}\n")
    assert problem(loaded).startswith("manuals.embeddings.base_url: expected an absolute https URL")
    assert "pass" not in problem(loaded)
