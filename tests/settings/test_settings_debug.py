"""The debug log and the toolsets: decided once, command line over environment over file (spec 8.1)."""

from pathlib import Path

import pytest

from responses_mcp.settings import load_settings

from .loading import clean, load, problem, usual_place, warning

Decision = tuple[bool, str | None, str, str]


def decision(home: Path, yaml: str = "", env: str | None = None, option: bool | str | None = None) -> Decision:
    environ = {"DEBUG": env} if env is not None else {}
    loaded = clean(load(home, f"server: {{{yaml}}}\n", environ, debug=option))
    server, file = loaded.settings.server, f"yaml:{usual_place(home)}"
    on, path = (loaded.sources[key].replace(file, "yaml") for key in ("server.debug", "server.debug_file"))
    return server.debug, server.debug_file, on, path


def test_words_switch_the_log_on_and_off_over_the_file(tmp_path: Path) -> None:
    assert decision(tmp_path, "debug: true") == (True, None, "yaml", "default")
    for word in ("1", "true", "yes", "on", "TRUE", "Yes", " on "):
        assert decision(tmp_path, "debug: false", env=word) == (True, None, "env:DEBUG", "default")
    for word in ("0", "false", "no", "off", "FALSE", "Off", "", " "):
        assert decision(tmp_path, "debug: true", word) == (False, None, "env:DEBUG", "default")


@pytest.mark.rule("spec 8.1")
@pytest.mark.parametrize("path", ["/var/log/x.log", "x.log", "C:\\logs\\x.log", "2", "truely", "ログ.txt"])
def test_anything_else_is_the_path_of_the_log(path: str, tmp_path: Path) -> None:
    assert decision(tmp_path, env=path) == (True, str(Path(path).absolute()), "env:DEBUG", "env:DEBUG")
    assert not Path(path).exists(), "deciding opens nothing"


@pytest.mark.rule("spec 8.1")
@pytest.mark.parametrize("text", ["*", "app:*", "express:*,http", "a,b", "-,", "*.log"])
def test_filters_of_other_programs_are_ignored_with_one_line(text: str, tmp_path: Path) -> None:
    loaded = load(tmp_path, "server: {debug: true}\n", {"DEBUG": text})
    assert warning(loaded) == (
        f'DEBUG: ignored, because "{text}" looks like a filter meant for other programs (from env DEBUG); '
        "use 1, 0 or the path of a file."
    )
    assert loaded.settings.server.debug
    assert loaded.sources["server.debug"] == f"yaml:{usual_place(tmp_path)}"
    assert not load(tmp_path, "", {"DEBUG": text}).settings.server.debug


@pytest.mark.rule("spec 5.1")
def test_the_option_wins_over_all_and_a_bare_one_keeps_the_file_of_a_lower_level(tmp_path: Path) -> None:
    y, e, c = (str(tmp_path / f"{name}.log") for name in "yec")
    yaml = f"debug_file: '{y}'"
    assert decision(tmp_path, option=True) == (True, None, "cli:--debug", "default")
    assert decision(tmp_path, yaml, option=True) == (True, y, "cli:--debug", "yaml")
    assert decision(tmp_path, yaml, "0", True) == (True, y, "cli:--debug", "yaml")
    assert decision(tmp_path, yaml, e, True) == (True, e, "cli:--debug", "env:DEBUG")
    assert decision(tmp_path, yaml, "1") == (True, y, "env:DEBUG", "yaml")
    assert decision(tmp_path, yaml) == (False, y, "default", "yaml")
    assert decision(tmp_path, f"debug: false, {yaml}", e, c) == (True, c, "cli:--debug", "cli:--debug")


def test_a_tilde_is_the_home_and_paths_of_the_file_start_at_its_folder(tmp_path: Path) -> None:
    home = str(tmp_path / "x.log")
    assert decision(tmp_path, env="~/x.log")[1] == decision(tmp_path, option="~/x.log")[1] == home
    assert decision(tmp_path, "debug: true, debug_file: ~/x.log")[1] == home
    assert decision(tmp_path, "debug: true, debug_file: x.log")[1] == str(usual_place(tmp_path).parent / "x.log")
    assert decision(tmp_path, env="~other/x.log")[1] == str(Path("~other/x.log").absolute())


def test_what_cannot_be_a_path_is_a_problem(tmp_path: Path) -> None:
    for text in ("a\nb", "nul\0", "x" * 5000, "${LOG}"):
        loaded = load(tmp_path, environ={"DEBUG": text})
        assert problem(loaded).startswith("server.debug_file: expected the path of a file, got ")
        assert "(from env DEBUG)" in problem(loaded)
        assert loaded.settings.server.debug_file is None


@pytest.mark.rule("spec 5.1")
def test_toolsets_come_from_the_option_then_the_variable_then_the_file(tmp_path: Path) -> None:
    yaml, environ = "server: {toolsets: [answer]}\n", {"MCP_TOOLSETS": "answer"}
    for text, variables, option, source in (
        (yaml, environ, "answer", "cli:--toolsets"),
        (yaml, environ, None, "env:MCP_TOOLSETS"),
        (yaml, {}, None, f"yaml:{usual_place(tmp_path)}"),
    ):
        loaded = clean(load(tmp_path, text, variables, toolsets=option))
        assert loaded.settings.server.toolsets == ("answer",)
        assert loaded.sources["server.toolsets"] == source
    assert clean(load(tmp_path, "")).settings.server.toolsets is None
    given = load_settings({}, home=tmp_path, toolsets=["answer", "research"])
    assert given.settings.server.toolsets == ("answer", "research")


@pytest.mark.rule("spec 1", "spec 5.5")
def test_answer_is_always_the_first_of_the_toolsets_and_the_others_keep_their_order(tmp_path: Path) -> None:
    for yaml, others in {
        **dict.fromkeys(("[]", "answer", "'answer, answer'", "[answer, answer]", "','"), ()),
        "'search , manuals,'": ("search", "manuals"),
        "[manuals, search]": ("manuals", "search"),
    }.items():
        loaded = clean(load(tmp_path, f"manuals: {{root: {tmp_path}}}\nserver: {{toolsets: {yaml}}}\n"))
        assert loaded.settings.server.toolsets == ("answer", *others)


def test_an_unknown_toolset_is_a_problem_that_lists_the_known_ones(tmp_path: Path) -> None:
    loaded = load(tmp_path, environ={"MCP_TOOLSETS": "answer,weather"})
    assert problem(loaded) == (
        "server.toolsets: expected a list of at most 100 toolset names (answer, manuals, search, research), "
        'got "weather" in it (from env MCP_TOOLSETS); correct it or unset it.'
    )
    assert loaded.settings.server.toolsets is None
    assert 'got "weather" in it (from --toolsets)' in problem(load(tmp_path, toolsets="weather"))
    assert "got 5 (a number) in it" in problem(load(tmp_path, "server: {toolsets: [5]}\n"))
    assert "got 5 (a number) (" in problem(load(tmp_path, "server: {toolsets: 5}\n"))
