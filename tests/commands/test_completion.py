"""The scripts that complete commands: run in real shells, where the machine has them."""

import io
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from responses_mcp import cli
from responses_mcp.commands.completion import SHELLS, build_parser, contexts, script

BASH = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
_openai_responses_mcp
printf '%s\\n' "${COMPREPLY[@]}"
"""


def completed(shell: str, folder: Path, *words: str) -> list[str]:
    """Return what a shell offers for the last of some words."""
    file = folder / "script"
    file.write_text(script(shell), encoding="utf-8")
    name = shutil.which(shell)
    if name is None:
        pytest.skip(f"there is no {shell} here")
    line = " ".join(words)
    command = {
        "bash": [name, "--norc", "-c", BASH, "bash", str(file), *words],
        "fish": [name, "--no-config", "-c", f"source {file}; complete -C '{line}'"],
    }[shell]
    environ = {**os.environ, "HOME": str(folder)}
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=30, check=True)
    assert done.stderr == ""
    return [line.partition("\t")[0] for line in done.stdout.splitlines() if line]


@pytest.mark.parametrize("shell", ["bash", "fish"])
@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (["res"], {"research"}),
        (["--too"], {"--toolsets"}),
        (["ask", "--prof"], {"--profile"}),
        (["ask", "--profile", "answer_d"], {"answer_detailed"}),
        (["--toolsets", "man"], {"manuals"}),
        (["install", "codex", "--toolsets", "sea"], {"search"}),
        (["research", "sh"], {"show"}),
        (["research", "list", "--js"], {"--json"}),
        (["doctor", "--client", "cod"], {"codex"}),
        (["install", "cla"], {"claude-code", "claude-desktop"}),
        (["install", "codex", "--wr"], {"--write"}),
        (["manuals", "fi"], {"find"}),
        (["manuals", "find", "--li"], {"--limit"}),
        (["usage", "--by", "cl"], {"client"}),
        (["completion", "z"], {"zsh"}),
        (["ask", "a question; rm -rf $(x) `y` *"], set()),
    ],
    ids=lambda each: " ".join(sorted(each) if isinstance(each, set) else each),  # the same in all workers of xdist
)
def test_a_shell_completes_commands_options_and_values(
    shell: str, words: list[str], offered: set[str], tmp_path: Path
) -> None:
    if shell == "fish" and "`" in words[-1]:
        pytest.skip("fish would have to be told the line in quotes of its own")
    assert set(completed(shell, tmp_path, "openai-responses-mcp", *words)) == offered


def test_every_command_and_option_is_in_every_script() -> None:
    named = {word for context in contexts() for option in context.options for word in option.names}
    assert {"--write", "--config", "--limit", "--effort"} <= named
    for shell in SHELLS:
        text = script(shell)
        words = [*cli.COMMANDS, *(name.lstrip("-") for name in named)]
        assert [word for word in words if word not in text] == []
        assert text.isascii()


@pytest.mark.parametrize("shell", SHELLS)
def test_the_scripts_end_lines_with_lf_on_every_system(shell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    buffer = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(buffer, encoding="cp1252", newline="\r\n"))
    assert cli.run(["completion", shell]) == 0
    assert buffer.getvalue().decode() == script(shell)


def test_the_scripts_hold_nothing_that_a_shell_would_run() -> None:
    every = [word for context in contexts() for option in context.options for word in (*option.names, *option.words)]
    every += [word for context in contexts() for word in context.following]
    assert [word for word in every if not word.replace("-", "").replace("_", "").isalnum()] == []


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_a_shell_can_read_its_script(shell: str, tmp_path: Path) -> None:
    name = shutil.which(shell)
    if name is None:
        pytest.skip(f"there is no {shell} here")
    (tmp_path / "script").write_text(script(shell), encoding="utf-8")
    done = subprocess.run(
        [name, "-n", str(tmp_path / "script")], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stderr == ""


@pytest.mark.skipif(os.name == "nt", reason="the examples are for shells of POSIX")
def test_the_examples_work_in_a_home_in_which_nothing_is(tmp_path: Path) -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash here")
    program = tmp_path / "bin/openai-responses-mcp"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m responses_mcp "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    _, _, examples = (build_parser().epilog or "").partition("examples:\n")
    lines = examples.replace("\\\n", "").splitlines()
    assert len(lines) == 7
    environ = {**os.environ, "HOME": str(tmp_path), "PATH": f"{program.parent}:{os.environ['PATH']}"}
    tried = "\n".join(["set -e", *lines, ". ~/.bashrc", "complete -p openai-responses-mcp"])
    done = subprocess.run([bash, "-c", tried], env=environ, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "complete -F _openai_responses_mcp openai-responses-mcp\n"
    assert (tmp_path / ".config/fish/completions/openai-responses-mcp.fish").stat().st_size > 0
    if (zsh := shutil.which("zsh")) is not None:
        asked = ". ~/.zshrc; print $_comps[openai-responses-mcp]"
        done = subprocess.run([zsh, "-fc", asked], env=environ, capture_output=True, text=True, timeout=60, check=False)
        assert (done.stdout, done.stderr) == ("_openai_responses_mcp\n", "")
