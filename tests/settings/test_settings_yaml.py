"""The YAML file: where it is looked for, and what else than a good file may be found there (spec 5.2)."""

import os
import sys
from pathlib import Path

import pytest

from responses_mcp.settings import Settings, load_settings

from .loading import clean, load, problem, usual_place


@pytest.mark.rule("spec 5.2")
def test_the_file_that_was_asked_for_is_read_instead_of_the_usual_one(tmp_path: Path) -> None:
    load(tmp_path, "request: {max_retries: 1}\n")
    other = tmp_path / "other.yaml"
    other.write_text("request: {max_retries: 2}\n", encoding="utf-8")
    for asked in ("~/other.yaml", str(other), other):
        loaded = clean(load_settings({}, config_path=asked, home=str(tmp_path), windows=os.name == "nt"))
        assert loaded.settings.request.max_retries == 2
        assert loaded.sources["request.max_retries"] == f"yaml:{other}"


@pytest.mark.rule("spec 5.2")
def test_an_asked_file_that_is_not_there_is_a_problem_and_no_other_file_is_read(tmp_path: Path) -> None:
    load(tmp_path, "request: {max_retries: 1}\n")
    (tmp_path / "file").write_text("", encoding="utf-8")
    for name in ("absent.yaml", "absent/deep.yaml", "nul\0.yaml", "file/below.yaml"):
        loaded = load_settings({}, config_path=str(tmp_path / name), home=tmp_path, windows=False)
        assert problem(loaded).startswith(
            "config file: expected a YAML file in UTF-8 of at most 128 KiB, got no such file "
        )
        assert loaded.settings == Settings(problems=loaded.problems)


@pytest.mark.rule("spec 5.2")
def test_windows_looks_below_appdata_when_the_usual_place_has_no_file(tmp_path: Path) -> None:
    appdata = tmp_path / "AppData"
    file = appdata / "openai-responses-mcp" / "config.yaml"
    file.parent.mkdir(parents=True)
    file.write_text("request: {max_retries: 5}\n", encoding="utf-8")
    environ = {"APPDATA": str(appdata), "USERPROFILE": str(tmp_path)}
    loaded = clean(load_settings(environ, windows=True))
    assert loaded.settings.request.max_retries == 5
    assert loaded.sources["request.max_retries"] == f"yaml:{file}"
    assert clean(load_settings(environ, windows=False)).settings.request.max_retries == 3
    load(tmp_path, "request: {max_retries: 1}\n")
    assert clean(load_settings(environ, windows=True)).settings.request.max_retries == 1


def test_a_file_that_says_nothing_is_fine_and_so_is_the_null_device(tmp_path: Path) -> None:
    for yaml in ("", "# nothing\n", "---\n", "~\n", "{}\n", "\ufeff", "\ufeffrequest: {}"):
        assert clean(load(tmp_path, yaml)).settings == Settings()
    load(tmp_path, "request: {max_retries: 1}\n")
    assert clean(load_settings({}, config_path=os.devnull, home=tmp_path)).settings == Settings()


@pytest.mark.skipif(sys.platform == "win32", reason="there are no named pipes in folders")
def test_what_is_no_file_that_can_be_read_is_a_problem_and_not_a_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path, mode: str) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    def told(path: Path) -> str:
        return problem(load_settings({}, config_path=path, home=tmp_path))

    os.mkfifo(tmp_path / "pipe")
    assert "got something that is not a regular file" in told(tmp_path / "pipe")
    assert "got a folder" in told(tmp_path)
    (tmp_path / "config.yaml").touch()
    monkeypatch.setattr(Path, "open", refuse)
    assert "got a failure to read it, permission denied" in told(tmp_path / "config.yaml")


def test_a_file_that_cannot_be_text_is_one_problem_and_leaves_the_defaults(tmp_path: Path) -> None:
    for yaml, got in {
        "request: {}".encode("utf-16"): "bytes that are not UTF-8, the first at offset 0",
        "manuals: {root: 社内}".encode("shift_jis"): "bytes that are not UTF-8, the first at offset 16",
        b"a: " + b"x" * 1024 * 1024: "a file over 128 KiB",
    }.items():
        loaded = load(tmp_path, yaml)
        assert problem(loaded) == (
            f"config file: expected a YAML file in UTF-8 of at most 128 KiB, got {got} (from {usual_place(tmp_path)}); "
            "give the path of such a file or correct this one."
        )
        assert loaded.settings == Settings(problems=loaded.problems)


BROKEN = "config file: expected valid YAML, got an error there, "
ROOT = "config file: expected a mapping of sections, got "
SECTION = ": expected a mapping of settings, got "


@pytest.mark.parametrize(
    ("yaml", "words"),
    [
        ("request:\n\tmax_retries: 1\n", (BROKEN, '(from FILE line 2 column 1); correct the file.')),
        ("request: [1\nserver: {}\n", (BROKEN, "(from FILE line 2 column 7); correct the file.")),
        ("a: b: c\n", (BROKEN, "(from FILE line 1 column 5); correct the file.")),
        ("a: 1\n---\nb: 2\n", (BROKEN, "(from FILE line 2 column 1); correct the file.")),
        ('a: "C:\\Users\\me"\n', (BROKEN, "(from FILE line 1 column 9); correct the file.")),
        ('a: "\n', (BROKEN, "(from FILE line 2 column 1); correct the file.")),
        ("a: 1\nb: \x07\n", (BROKEN,)),
        ("a: \x00\n", (BROKEN,)),
        ('a: "\\UFFFFFFFF"\n', (BROKEN, "a character or depth that YAML forbids")),
        ("%YAML 1." + "9" * 5000 + "\n---\n", ("config file: expected ",)),
        ("- a\n- b\n", (f"{ROOT}a list (from FILE); start it with a section",)),
        ("text\n", (f'{ROOT}"text" (from ',)),
        ("true\n", (f"{ROOT}true (a boolean) (from ",)),
        ("1: a\n", (BROKEN, '"1 is not a string; put it in quotes" (from FILE line 1 column 1)')),
        ("request:\n  max_retries: 1\n  2: a\n", (BROKEN, '"request.2 is not a string; put it in quotes" (from FILE line 3')),
        ("[a, b]: c\n", (BROKEN, "is not a string")),
        ("? {a: b}\n: c\n", (BROKEN, "is not a string")),
        ("~: a\n", (BROKEN, "is not a string")),
        ("!x a: b\n", (BROKEN, "a tag or an alias; leave it out")),
        ("a: !!python/object:os.system {}\n", (BROKEN, "(from FILE line 1 column 4); correct the file.")),
        ("a: &a {b: 1}\nc: {<<: *a}\n", (BROKEN, "a tag or an alias")),
        ("a: *nowhere\n", (BROKEN, "(from FILE line 1 column 4); correct the file.")),
        ("request:\n  max_retries: 1\n  max_retries: 2\n", (BROKEN, "request.max_retries comes twice; remove one")),
        ("request: {}\nrequest: {}\n", (BROKEN, "request comes twice")),
        ("server: 5\n", (f"server{SECTION}5 (a number) (from FILE); indent its settings below it or remove it.",)),
        ("search: {defaults: [a]}\n", (f"search.defaults{SECTION}a list (",)),
        ("search: {defaults: text}\n", (f'search.defaults{SECTION}"text" (',)),
        ("request: localhost:8080\n", (f"request{SECTION}", "; indent its settings below it or remove it.")),
        ("[" * 100_000, (BROKEN,)),
        ("a: " + "[" * 5_000 + "]" * 5_000, (BROKEN,)),
    ],
    ids=lambda value: value[:12] if isinstance(value, str) else "",
)  # fmt: skip
def test_what_is_wrong_with_a_file_is_one_problem_with_its_place(
    yaml: str, words: tuple[str, ...], tmp_path: Path
) -> None:
    loaded = load(tmp_path, yaml)
    found = problem(loaded).replace(str(usual_place(tmp_path)), "FILE")
    assert found.startswith(words[0])
    assert words[-1] in found
    assert found.isprintable()


def test_aliases_that_would_expand_to_billions_are_refused_at_once(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 30)]
    lines.append("search: {defaults: {domains: *a29}}")
    assert "a tag or an alias" in problem(load(tmp_path, "\n".join(lines)))


def test_a_flood_of_findings_is_cut_with_a_count(tmp_path: Path) -> None:
    loaded = load(tmp_path, "".join(f"key{n}: 1\n" for n in range(3_000)))
    assert len(loaded.warnings) == 51
    assert loaded.warnings[-1] == "2950 more like these; correct the ones above first."
