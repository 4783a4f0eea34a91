"""Mistakes in the arguments of commands: what they tell, and that nothing is done."""

from contextlib import suppress

import pytest

from responses_mcp import cli

FIRST = "put list, show or cancel first: openai-responses-mcp research show RUN; to ask these words, put -- first"


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("ask --domain x why", "ask: error: there is no option --domain; did you mean --domains?"),
        ("search --limit x y", "argument --limit: must be a whole number from 1 to 50, got 'x'"),
        ("usage --days ٣", "argument --days: must be a whole number from 1 to 400, got '٣'"),
        ("ask --quick --detailed x", "argument --detailed: not allowed with argument --quick"),
        ("research shwo run_1", FIRST),
        ("manuals", "manuals: error: COMMAND is missing: index, find, read, ls"),
        (
            "manuals find --force oil --root x",
            "manuals find: error: there is no option --force; put -- before words that begin with -",
        ),
        ("usage more", "usage: error: unrecognized arguments: more"),
        ("--json ask why", "put ask first and its options after it: openai-responses-mcp ask …"),
        ("research --json list", FIRST),
        ("research why --continue ", "argument --continue: is empty; is a variable in it not set?"),
        (
            "install --write",
            "CLIENT is missing; it is one of claude-code, claude-desktop, cursor, vscode, codex, gemini, windsurf, zed, opencode, goose",
        ),
        ("install codex --list --remove", "argument --remove: not allowed with argument --list"),
        ("manuals nonsense", "there is no command nonsense; there are index, find, read, ls"),
        ("ask --JSON why", "there is no option --JSON; did you mean --json?"),
        ("--STDIO", "there is no option --STDIO; did you mean --stdio?"),
        ("ask --api-key=sk-canary why", "there is no option --api-key; the key goes into OPENAI_API_KEY"),
        ("ask --monkey why", "there is no option --monkey; put -- before words that begin with -"),
        ("doctor sk-canary-0123456789abcdef", "unrecognized arguments: [redacted]"),
        ("--api-key=my-canary ask why", "put ask first and its options after it: openai-responses-mcp ask …"),
    ],
)
def test_a_wrong_argument_is_told_with_what_was_meant(capsys: pytest.CaptureFixture[str], line: str, told: str) -> None:
    with pytest.raises(SystemExit, match="2"):
        cli.run(line.split(" "))
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("usage: openai-responses-mcp ")
    assert shown.err.endswith(f"{told}\n")


@pytest.mark.parametrize("key", ["sk-proj-Zq8vT3mK9xW2pL7nR4cY6bH1", "4711-of-a-gateway", "abcdef1234567890abcdef"])
@pytest.mark.parametrize(
    "line",
    [
        *("-k{}", "ask -k{} why", "manuals -k{}", "usage -k{}", "{}", "install {}", "install --key {}"),
        *("manuals --api-key={}", "manuals {}", "why is {} no key of mine"),
        "search --timeframe {} why",
    ],
)
def test_a_key_in_a_wrong_command_line_is_not_shown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, line: str, key: str
) -> None:
    if not key.startswith("sk-"):
        monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(SystemExit, match="2"):
        cli.run(line.format(key).split(" "))
    shown = capsys.readouterr()
    assert key not in shown.out + shown.err


@pytest.mark.parametrize("name", ["GATEWAY_TOKEN", "MY_SECRET", "Proxy_Password", "DEPLOY_KEY"])
def test_a_secret_of_another_name_is_not_shown_either_but_a_plain_word_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    for value, told in (("4711-of-a-gateway", "[redacted]"), ("option", "'option'")):
        monkeypatch.setenv(name, value)
        with pytest.raises(SystemExit, match="2"):
            cli.run(["search", "--timeframe", value, "why"])
        assert told in capsys.readouterr().err


@pytest.mark.parametrize(("line", "told"), [("help", "commands:"), ("help ask", "usage: openai-responses-mcp ask ")])
def test_help_is_a_command_too(capsys: pytest.CaptureFixture[str], line: str, told: str) -> None:
    with suppress(SystemExit):
        assert cli.run(line.split()) == 0
    assert told in capsys.readouterr().out


@pytest.mark.parametrize("command", ["ask", "search", "research"])
def test_all_that_follows_two_dashes_is_the_question(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert cli.run([command, "--config", "missing.yaml", "--", "-x", "--json"]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""  # --json is no option there
    assert "missing.yaml" in shown.err
