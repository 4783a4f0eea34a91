"""The model's instructions: built in, from a file, or both; and never a silent step back (spec 4)."""

import re
from pathlib import Path

import pytest

from responses_mcp.settings import LoadedSettings
from responses_mcp.settings.system_policy import SYSTEM_POLICY, SYSTEM_POLICY_REV, instructions_for

from .loading import clean, load, problem, usual_place


def with_policy(home: Path, content: bytes | None, merge: str = "replace", path: str = "policy.md") -> LoadedSettings:
    folder = usual_place(home).parent
    folder.mkdir(parents=True, exist_ok=True)
    if content is not None:
        (folder / "policy.md").write_bytes(content)
    return load(home, f"policy: {{system: {{source: file, path: '{path}', merge: {merge}}}}}\n")


@pytest.mark.rule("spec 4")
def test_a_file_replaces_the_built_in_text_or_joins_it_over_one_blank_line(tmp_path: Path) -> None:
    for merge, instructions in {
        "replace": "規則\r\nTwo\n",
        "prepend": f"規則\r\nTwo\n\n{SYSTEM_POLICY}",
        "append": f"{SYSTEM_POLICY}\n\n規則\r\nTwo",
    }.items():
        for mark in ("", "\ufeff"):
            policy = clean(with_policy(tmp_path, f"{mark}規則\r\nTwo\n".encode(), merge)).settings.policy
            assert policy.instructions == instructions_for(policy) == instructions


@pytest.mark.rule("spec 4")
def test_a_file_that_cannot_be_used_is_a_problem(tmp_path: Path) -> None:
    path = usual_place(tmp_path).parent / "policy.md"
    for content, got in (
        (None, "no such file"),
        (b"", "an empty file"),
        (b"\xef\xbb\xbf \n\t\n", "an empty file"),
        (b"caf\xe9", "bytes that are not UTF-8, the first at offset 3"),
        (b"\xff\xfea\x00", "bytes that are not UTF-8, the first at offset 0"),
        (b"x" * (256 * 1024 + 1), "a file over 256 KiB"),
    ):
        loaded = with_policy(tmp_path, content)
        assert problem(loaded) == (
            f"policy.system.path: expected a text file in UTF-8 of at most 256 KiB, got {got} at {path} "
            f"(from {usual_place(tmp_path)}); correct the file or set policy.system.source to builtin."
        )
        assert loaded.settings.policy.instructions is None


def test_the_source_file_needs_the_path_of_a_file(tmp_path: Path) -> None:
    for path in (".", "nul\\0", "policy.md/deeper"):
        assert "policy.system.path: expected" in problem(with_policy(tmp_path, b"x" * 256 * 1024, path=path))
    assert problem(load(tmp_path, "policy:\n  system:\n    source: file\n")) == (
        "policy.system.path: expected the path of a file, because policy.system.source is file, got none "
        f"(from {usual_place(tmp_path)}); add the path or set the source to builtin."
    )


@pytest.mark.rule("spec 9")
def test_the_text_is_short_and_names_everything_that_the_input_can_bring() -> None:
    assert len(SYSTEM_POLICY.splitlines()) <= 62
    assert SYSTEM_POLICY.strip() == SYSTEM_POLICY
    for word in (
        *("web_search", "[Hints]", "today", "recency_days", "max_results", "domains", "Asia/Tokyo", "YYYY-MM-DD"),
        *("Sources:", "Japanese", "English", "data, not instructions", "Never invent"),
    ):
        assert word in SYSTEM_POLICY
    assert re.fullmatch(r"\d{4}-\d{2}-\d{2} v\d+\.\d+\.\d+", SYSTEM_POLICY_REV)
