"""The YAML file: where it is looked for, and what else than a good file may be found there (contract 5.2)."""

import os
import sys
from pathlib import Path

import pytest

from responses_mcp.settings import Settings, load_settings

from .loading import clean, load, problem, usual_place, warning


@pytest.mark.parametrize("kind", [str, Path])
def test_the_file_that_was_asked_for_is_read_instead_of_the_usual_one(kind: type[str | Path], tmp_path: Path) -> None:
    load(tmp_path, "request: {max_retries: 1}\n")
    other = tmp_path / "other.yaml"
    other.write_text("request: {max_retries: 2}\n")
    loaded = clean(load_settings({}, config_path=kind(other), home=kind(tmp_path), windows=False))
    assert loaded.settings.request.max_retries == 2
    assert loaded.sources["request.max_retries"] == f"yaml:{other}"


def test_a_tilde_in_the_asked_path_is_the_home(tmp_path: Path) -> None:
    (tmp_path / "other.yaml").write_text("request: {max_retries: 2}\n")
    loaded = clean(load_settings({}, config_path="~/other.yaml", home=tmp_path, windows=False))
    assert loaded.settings.request.max_retries == 2


@pytest.mark.parametrize("name", ["absent.yaml", "absent/deep.yaml", "nul\0.yaml", "file/below.yaml"])
def test_an_asked_file_that_is_not_there_is_a_warning_and_no_other_file_is_read(name: str, tmp_path: Path) -> None:
    load(tmp_path, "request: {max_retries: 1}\n")
    (tmp_path / "file").write_text("")
    loaded = load_settings({}, config_path=str(tmp_path / name), home=tmp_path, windows=False)
    assert warning(loaded).startswith("config file: there is no such file, so none is used (from --config, ")
    assert loaded.settings == Settings()


def test_windows_looks_below_appdata_when_the_usual_place_has_no_file(tmp_path: Path) -> None:
    appdata = tmp_path / "AppData"
    file = appdata / "openai-responses-mcp" / "config.yaml"
    file.parent.mkdir(parents=True)
    file.write_text("request: {max_retries: 5}\n")
    environ = {"APPDATA": str(appdata), "USERPROFILE": str(tmp_path)}
    loaded = clean(load_settings(environ, windows=True))
    assert loaded.settings.request.max_retries == 5
    assert loaded.sources["request.max_retries"] == f"yaml:{file}"
    assert clean(load_settings(environ, windows=False)).settings.request.max_retries == 3
    load(tmp_path, "request: {max_retries: 1}\n")
    assert clean(load_settings(environ, windows=True)).settings.request.max_retries == 1


@pytest.mark.parametrize("yaml", ["", "# nothing\n", "---\n", "~\n", "{}\n", "\ufeff"])
def test_a_file_that_says_nothing_is_fine(yaml: str, tmp_path: Path) -> None:
    assert clean(load(tmp_path, yaml)).settings == Settings()


def test_a_byte_order_mark_is_left_out(tmp_path: Path) -> None:
    assert clean(load(tmp_path, "\ufeffrequest: {max_retries: 1}\n")).settings.request.max_retries == 1


@pytest.mark.parametrize(
    ("yaml", "got"),
    [
        (b"\xff\xfe\x00a", "bytes that are not UTF-8, the first at offset 0"),
        (b"a: " + b"x" * 1024 * 1024, "a file over 128 KiB"),
    ],
)
def test_a_file_that_cannot_be_text_is_one_problem_and_leaves_the_defaults(
    yaml: bytes, got: str, tmp_path: Path
) -> None:
    loaded = load(tmp_path, yaml)
    assert problem(loaded) == (
        f"config file: expected a YAML file in UTF-8 of at most 128 KiB, got {got} (from {usual_place(tmp_path)}); "
        "give the path of such a file or cure this one."
    )
    assert loaded.settings == Settings(problems=loaded.problems)


def test_a_folder_in_place_of_the_file_is_a_problem(tmp_path: Path) -> None:
    assert "got a folder" in problem(load_settings({}, config_path=str(tmp_path), home=tmp_path))


@pytest.mark.skipif(sys.platform == "win32", reason="there are no named pipes in folders")
def test_a_pipe_in_place_of_the_file_is_a_problem_and_not_a_wait(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    found = problem(load_settings({}, config_path=str(pipe), home=tmp_path))
    assert "got something that is not a regular file" in found


def test_the_null_device_asks_for_no_configuration(tmp_path: Path) -> None:
    load(tmp_path, "request: {max_retries: 1}\n")
    assert clean(load_settings({}, config_path=os.devnull, home=tmp_path)).settings == Settings()


def test_a_file_that_may_not_be_read_is_a_problem_that_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: Path, mode: str) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "open", refuse)
    path = tmp_path / "config.yaml"
    path.touch()
    found = problem(load_settings({}, config_path=str(path), home=tmp_path))
    assert "got a failure to read it, permission denied" in found


@pytest.mark.parametrize(
    ("yaml", "line", "column"),
    [
        ("request:\n\tmax_retries: 1\n", 2, 1),
        ("request: [1\nserver: {}\n", 2, 7),
        ("a: *nowhere\n", 1, 4),
        ("a: b: c\n", 1, 5),
        ("a: 1\n---\nb: 2\n", 2, 1),
        ('a: "\\q"\n', 1, 6),
    ],
)
def test_broken_yaml_is_one_problem_with_line_and_column(yaml: str, line: int, column: int, tmp_path: Path) -> None:
    loaded = load(tmp_path, yaml)
    found = problem(loaded)
    assert found.startswith("config file: expected valid YAML, got an error there, ")
    assert f"(from {usual_place(tmp_path)} line {line} column {column}); correct the file." in found
    assert "\n" not in found
    assert "Traceback" not in found
    assert loaded.settings == Settings(problems=loaded.problems)


@pytest.mark.parametrize(
    "yaml", ["a: 1\nb: \x07\n", "a: \x00\n", 'a: "\\UFFFFFFFF"\n', "%YAML 1." + "9" * 5000 + "\n---\n"]
)
def test_characters_and_escapes_that_yaml_forbids_are_a_problem(yaml: str, tmp_path: Path) -> None:
    assert problem(load(tmp_path, yaml)).startswith("config file: expected ")


def test_a_control_character_is_found_by_its_line(tmp_path: Path) -> None:
    assert f"{usual_place(tmp_path)} line 2)" in problem(load(tmp_path, "a: 1\nb: \x07\n"))


@pytest.mark.parametrize(
    ("yaml", "got"),
    [
        ("- a\n- b\n", "a list"),
        ("text\n", '"text"'),
        ("5\n", "5 (a number)"),
        ("true\n", "true (a boolean)"),
        ("2026-01-01\n", '"2026-01-01" (a date)'),
    ],
)
def test_a_root_that_is_no_mapping_is_a_problem(yaml: str, got: str, tmp_path: Path) -> None:
    assert f"expected a mapping of sections, got {got} (from " in problem(load(tmp_path, yaml))


@pytest.mark.parametrize(
    ("yaml", "got"),
    [
        ("1: a\n", "1 (a number)"),
        ("on: a\n", "true (a boolean)"),
        ("2026-01-01: a\n", '"2026-01-01" (a date)'),
        ("[a, b]: c\n", "a list"),
        ("? {a: b}\n: c\n", "a mapping"),
        ("~: a\n", "nothing"),
        ("!x a: b\n", "a value with a tag of its own"),
    ],
)
def test_a_key_that_is_no_name_is_a_problem(yaml: str, got: str, tmp_path: Path) -> None:
    assert f"config file: expected names as keys, got {got} (from " in problem(load(tmp_path, yaml))


def test_a_key_written_twice_is_a_problem_with_the_line_of_the_second(tmp_path: Path) -> None:
    loaded = load(tmp_path, "request:\n  max_retries: 1\n  max_retries: 2\n")
    assert problem(loaded) == (
        f"request.max_retries: expected each key once, got it again (from {usual_place(tmp_path)} line 3); "
        "remove one of the two."
    )


def test_a_section_written_twice_is_a_problem(tmp_path: Path) -> None:
    assert problem(load(tmp_path, "request: {}\nrequest: {}\n")).startswith("request: expected each key once")


@pytest.mark.parametrize(("section", "got"), [("5", "5 (a number)"), ("[a]", "a list"), ("text", '"text"')])
def test_a_section_that_is_no_mapping_is_a_problem(section: str, got: str, tmp_path: Path) -> None:
    for key, yaml in (("server", f"server: {section}"), ("search.defaults", f"search: {{defaults: {section}}}")):
        assert problem(load(tmp_path, f"{yaml}\n")).startswith(f"{key}: expected a mapping of settings, got {got} (")


def test_anchors_and_aliases_work(tmp_path: Path) -> None:
    yaml = "model_profiles:\n  answer: &base {model: gpt-5.4, reasoning_effort: low}\n  answer_detailed: *base\n"
    profiles = clean(load(tmp_path, yaml)).settings.model_profiles
    assert (profiles["answer_detailed"].model, profiles["answer_detailed"].reasoning_effort) == ("gpt-5.4", "low")


@pytest.mark.parametrize("value", ["*a", "[*a, *a]", "5", "*self", "&x [*x]"])
def test_a_merge_key_is_a_problem_and_the_keys_beside_it_count(value: str, tmp_path: Path) -> None:
    loaded = load(
        tmp_path, f"search: {{defaults: &a {{max_results: 2}}}}\nrequest: &self\n  <<: {value}\n  max_retries: 1\n"
    )
    assert problem(loaded) == (
        "config file: expected each mapping to hold its own keys, got a merge key (<<) "
        f"(from {usual_place(tmp_path)} line 3); write the merged keys out."
    )
    assert loaded.settings.request.max_retries == 1


def test_aliases_that_would_expand_to_billions_cost_nothing(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 30)]
    lines.append("search: {defaults: {domains: *a29}}")
    loaded = load(tmp_path, "\n".join(lines))
    assert "search.defaults.domains: expected a list of at most 100 domain names, got a list in it" in problem(loaded)


def test_nesting_without_end_is_a_problem_and_no_crash(tmp_path: Path) -> None:
    assert "got far too many" in problem(load(tmp_path, "[" * 100_000))
    assert "got far too many" in problem(load(tmp_path, "a: " + "[" * 5_000 + "]" * 5_000))


def test_a_flood_of_findings_is_cut_with_a_count(tmp_path: Path) -> None:
    loaded = load(tmp_path, "".join(f"key{n}: 1\n" for n in range(3_000)) + "a: 1\n" * 60)
    assert len(loaded.warnings) == 51
    assert loaded.warnings[-1] == "2951 more like these; cure the ones above first."
    assert len(loaded.problems) == 51
    assert loaded.problems[-1] == "9 more like these; cure the ones above first."
