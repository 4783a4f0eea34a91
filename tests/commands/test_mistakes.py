"""Mistakes in the arguments of commands: what they tell, and that nothing is done."""

from contextlib import suppress

import pytest

from responses_mcp import cli


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("ask --domain x why", "ask: error: there is no option --domain; did you mean --domains?"),
        ("search --timeframe past_wek why", "; did you mean past_week?"),
        ("ask -x why", "ask: error: there is no option -x; put -- before words that begin with -"),
        ("ask -m gpt-5 why", "ask: error: there is no option -m; did you mean --max-results?"),
        ("ask -q why", "ask: error: there is no option -q; did you mean --quick?"),
        (
            "ask --version",
            "ask: error: there is no option --version of a command; did you mean openai-responses-mcp --version?",
        ),
        ("search --limit x y", "argument --limit: must be a whole number from 1 to 50, got 'x'"),
        ("ask --max-results x y", "argument --max-results: must be a whole number from 1 to 100, got 'x'"),
        ("usage --days 0", "argument --days: must be a whole number from 1 to 400, got '0'"),
        ("install cursr", "; did you mean cursor?"),
        ("doctor --client codx", "; did you mean codex?"),
        ("research lst", "there is no command lst; did you mean list? To ask it, put -- before it"),
        ("research shwo run_1", "there is no command shwo; did you mean show?"),
        ("research list --jsn", "research list: error: there is no option --jsn; did you mean --json?"),
        ("manuals", "manuals: error: COMMAND is missing: index, find, read, ls"),
        (
            "manuals find --force --root x",
            "manuals find: error: there is no option --force; put -- before words that begin with -",
        ),
        ("manuals ls --rooot x", "manuals ls: error: there is no option --rooot; did you mean --root?"),
        ("usage more", "usage: error: unrecognized arguments: more"),
        ("research status run_1", "there is no command status; there are list, show, cancel"),
        ("research delete run_1 --json", "there is no command delete; there are list, show, cancel"),
        ("--json ask why", "put ask first, and its options behind it: openai-responses-mcp ask …"),
        ("--stdio ask why", "put ask first, and its options behind it: openai-responses-mcp ask …"),
        ("research --json lst", "there is no command lst; did you mean list? To ask it, put -- before it"),
        ("ask --stdio hi", "leave --stdio out, which is for a server"),
        ("ask hi --max 3", "there is no option --max; did you mean --max-results?"),
        ("manuals read guide a.md --foo", "there is no option --foo; put -- before words that begin with -"),
        ("research --json list", "put list first: openai-responses-mcp research list …; to ask it, put -- before it"),
        (
            "research --effort deep show run_1",
            "put show first: openai-responses-mcp research show …; to ask it, put -- before it",
        ),
        ("install code", "; did you mean one of claude-code, vscode, codex, opencode?"),
        ("research why --continue ", "argument --continue: is empty; is a variable in it not set?"),
        ("install codex --manuals ", "argument --manuals: is empty; is a variable in it not set?"),
        ("install cursor codex", "install: error: unrecognized arguments: codex; CLIENT is one at a time"),
        ("install cursor --toolsets answer, search", "unrecognized arguments: search; put no blanks behind commas"),
        ("doctor codex", "doctor: error: unrecognized arguments: codex; did you mean --client codex?"),
        ("doctor everything", "doctor: error: unrecognized arguments: everything"),
        ("ask hi --domains", "argument --domains: A,B is missing: sites to prefer"),
        ("search hi --limit --json", "argument --limit: N is missing: pages to list, 1 to 50 (default 10)"),
        ("search --timeframe RECENT why", "; did you mean recent?"),
        ("ask --JSON why", "there is no option --JSON; did you mean --json?"),
        ("ask --json=true why", "argument --json: takes no value"),
        ("ask —json why", "there is no option —json; did you mean --json?"),
        ("ask why –profile=answer", "there is no option –profile; did you mean --profile?"),
        ("doctor —json", "there is no option —json; did you mean --json?"),
        ("manuals find oil --manuals hb", "there is no option --manuals; did you mean --manual?"),
        ("manuals find oil —path a", "there is no option —path; did you mean --path?"),
        ("ask why ーーjson", "there is no option ーーjson; did you mean --json?"),
        ("ask why \u2010\u2010json", "there is no option \u2010\u2010json; did you mean --json?"),
        ("ask why \u2011\u2011json", "there is no option \u2011\u2011json; did you mean --json?"),
        ("ask why \u2015json", "there is no option \u2015json; did you mean --json?"),
        ("ask why \uff70\uff70json", "there is no option \uff70\uff70json; did you mean --json?"),
        ("ask why \u00a0--json", "put an ordinary blank before --json, or -- before a question that has it"),
        ("ask why －－json", "there is no option －－json; did you mean --json?"),
        ("ask 質問　--json", "put an ordinary blank before --json, or -- before a question that has it"),
        ("ask 質問　—json", "there is no option —json; did you mean --json?"),
        ("--STDIO", "there is no option --STDIO; did you mean --stdio?"),
        ("ask --api-key=sk-canary why", "there is no option --api-key; the key goes into OPENAI_API_KEY"),
        ("ask --key=sk-canary why", "there is no option --key; the key goes into OPENAI_API_KEY"),
        ("ask --openai_api_key=sk-canary why", "there is no option --openai_api_key; the key goes into OPENAI_API_KEY"),
        ("ask --apikey sk-canary why", "there is no option --apikey; the key goes into OPENAI_API_KEY"),
        ("ask --OPENAI-KEY sk-canary why", "there is no option --OPENAI-KEY; the key goes into OPENAI_API_KEY"),
        ("ask --api-keyAbCd1234567890 why", "there is no option --api-key; the key goes into OPENAI_API_KEY"),
        ("doctor --api_key:AbCd1234567890", "there is no option --api_key; the key goes into OPENAI_API_KEY"),
        ("ask --monkey why", "there is no option --monkey; put -- before words that begin with -"),
        ("manuals find oil --keyword x", "there is no option --keyword; put -- before words that begin with -"),
        ("doctor sk-canary-0123456789abcdef", "unrecognized arguments: [redacted]"),
        ("--api-key=my-canary ask why", "put ask first, and its options behind it: openai-responses-mcp ask …"),
        ("install list", "; did you mean --list?"),
        ("install remove codex", "; did you mean --remove?"),
    ],
)
def test_a_wrong_argument_is_told_with_what_was_meant(capsys: pytest.CaptureFixture[str], line: str, told: str) -> None:
    with pytest.raises(SystemExit, match="2"):
        cli.run(line.split(" "))
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("usage: openai-responses-mcp ")
    assert shown.err.endswith(f"{told}\n")


@pytest.mark.parametrize("key", ["sk-proj-Zq8vT3mK9xW2pL7nR4cY6bH1", "4711-of-a-gateway"])
@pytest.mark.parametrize(
    "line",
    [
        *("-k{}", "ask -k{}", "manuals -k{}", "doctor -k{}", "usage -k{}", "{}", "install {}", "install --key {}"),
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


@pytest.mark.parametrize("line", ["-k{}", "ask -k{} why", "research -k{} why", "doctor -k{}", "usage -k{}"])
def test_what_stands_behind_a_short_option_that_is_none_is_not_shown(
    capsys: pytest.CaptureFixture[str], line: str
) -> None:
    with pytest.raises(SystemExit, match="2"):
        cli.run(line.format("abcdef1234567890abcdef").split(" "))
    shown = capsys.readouterr().err
    assert "there is no option -k" in shown
    assert "abcdef" not in shown


@pytest.mark.parametrize("name", ["GATEWAY_TOKEN", "MY_SECRET", "Proxy_Password", "DEPLOY_KEY"])
def test_a_secret_of_another_name_is_not_shown_either_but_a_plain_word_is(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    for value, told in (("4711-of-a-gateway", "[redacted]"), ("option", "'option'")):
        monkeypatch.setenv(name, value)
        with pytest.raises(SystemExit, match="2"):
            cli.run(["search", "--timeframe", value, "why"])
        assert told in capsys.readouterr().err


@pytest.mark.parametrize("word", ["–", "—", "—so-what", "–5", "−273.15", "npm　--json　の意味", "ー"])
def test_a_dash_that_no_option_follows_is_part_of_the_question(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert cli.run(["ask", "why", word, "now"]) == 2
    assert "There is no API key" in capsys.readouterr().err


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
