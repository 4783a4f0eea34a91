"""Where the API is and how to be let in: addresses, the key's variable, extra headers (spec 8)."""

from pathlib import Path

import pytest

from responses_mcp.settings import OpenAISettings

from .loading import clean, load, problem


@pytest.mark.parametrize(
    "text",
    [
        *("https://api.openai.com/v1", "https://res.openai.azure.com/openai/v1/", "https://proxy.example:8443"),
        *("HTTPS://Proxy.Example/v1//", "https://[2001:db8::1]:8443/v1", "http://localhost:11434/v1"),
        *("http://LOCALHOST/v1", "http://127.0.0.1:1234/v1/", "http://127.8.9.10/v1", "http://[::1]:8080/v1"),
    ],
)
def test_https_anywhere_and_http_on_loopback_are_good_addresses(text: str, tmp_path: Path) -> None:
    url = text.rstrip("/")
    assert clean(load(tmp_path, environ={"OPENAI_BASE_URL": text})).settings.openai.base_url == url
    assert clean(load(tmp_path, f"openai: {{base_url: '{text}'}}\n")).settings.openai.base_url == url


@pytest.mark.rule("spec 8")
@pytest.mark.parametrize(
    "host",
    [
        *("api.openai.com", "127.0.0.1.example.com", "localhost.example.com", "128.0.0.1", "0x7f000001", "[::2]"),
        "10.0.0.5:8080",
    ],
)
def test_http_elsewhere_needs_a_word_of_the_user(host: str, tmp_path: Path) -> None:
    environ = {"OPENAI_BASE_URL": f"http://{host}/v1"}
    loaded = load(tmp_path, environ=environ)
    assert "which would carry the key unencrypted (from env OPENAI_BASE_URL); use https, or set" in problem(loaded)
    assert loaded.settings.openai == OpenAISettings()
    assert loaded.sources["openai.base_url"] == "default"
    loaded = clean(load(tmp_path, "openai: {allow_http: true}\n", environ))
    assert loaded.settings.openai.base_url == f"http://{host}/v1"


@pytest.mark.parametrize(
    "text",
    [
        *("api.openai.com/v1", "/v1", "//api.openai.com/v1", "ftp://api.openai.com/v1", "file:///etc/hosts"),
        *("https://", "https:///v1", "https://:443/v1", "https://host:0/v1", "https://host:99999/v1"),
        *("https://host:port/v1", "https://[::1/v1"),
        *("https://host/v1?api-version=1", "https://host/v1?", "https://host/v1#top", "https://ho st/v1"),
        *("https://host/\x00v1", "https://host\\@evil.example/v1", "https://${HOST}/v1", "https://" + "x" * 300),
    ],
)
def test_what_is_no_plain_absolute_address_is_a_problem(text: str, tmp_path: Path) -> None:
    loaded = load(tmp_path, "openai: {allow_http: true}\n", {"OPENAI_BASE_URL": text})
    assert problem(loaded).startswith("openai.base_url: expected an absolute https URL with a host")
    assert loaded.settings.openai.base_url == OpenAISettings().base_url


def test_credentials_in_the_address_are_a_problem_that_points_to_headers(tmp_path: Path) -> None:
    for text, words in (
        ("https://user:hunter22@host/v1", "openai.headers_env"),
        ("https://hunter22@host/v1", "openai.headers_env"),
        ("https://host/v1?key=hunter22", "(not shown)"),
        ("https://user:hunter22@host /v1", "(not shown)"),
        ("https://user:hunter22@${HOST}/v1", "(not shown)"),
    ):
        found = problem(load(tmp_path, environ={"OPENAI_BASE_URL": text}))
        assert "hunter22" not in found
        assert words in found


def test_the_key_comes_from_the_variable_that_the_setting_names(tmp_path: Path) -> None:
    yaml, environ = "openai: {api_key_env: TEAM_KEY}\n", {"OPENAI_API_KEY": "one", "TEAM_KEY": "two"}
    for text, variables, key, source in (
        ("", environ, "one", "env:OPENAI_API_KEY"),
        (yaml, environ, "two", "env:TEAM_KEY"),
        (yaml, {**environ, "TEAM_KEY": ""}, None, "default"),
        ("", {"OPENAI_API_KEY": "  "}, "  ", "env:OPENAI_API_KEY"),  # which the call that needs it refuses
    ):
        loaded = clean(load(tmp_path, text, variables))
        assert (loaded.settings.openai.api_key, loaded.sources["openai.api_key_present"]) == (key, source)


def test_the_name_of_the_variable_must_be_one_and_is_not_repeated(tmp_path: Path) -> None:
    for name in ("sk-proj-abc", "'2KEY'", "TEAM-KEY", "'TEAM KEY'", "5", "''", "abcdef0123456789abcdef0123456789"):
        loaded = load(tmp_path, f"openai: {{api_key_env: {name}}}\n", {"OPENAI_API_KEY": "one"})
        assert problem(loaded).startswith("openai.api_key_env: expected the name of an environment variable, got ")
        assert name.strip("'") not in problem(loaded) or name in {"5", "''"}
        assert loaded.settings.openai.api_key_env == "OPENAI_API_KEY"


def test_headers_take_their_values_from_the_environment(tmp_path: Path) -> None:
    yaml = "openai:\n  headers_env:\n    api-key: AZURE_KEY\n    Authorization: GATEWAY\n    x-none: ~\n"
    loaded = clean(load(tmp_path, yaml, {"AZURE_KEY": " abc ", "GATEWAY": "Bearer def"}))
    assert dict(loaded.settings.openai.headers_env) == {"api-key": "AZURE_KEY", "Authorization": "GATEWAY"}
    assert dict(loaded.settings.openai.headers) == {"api-key": "abc", "Authorization": "Bearer def"}


NAMES = "headers_env: expected a mapping of header names to names of environment variables, got "


@pytest.mark.parametrize(
    ("yaml", "expected"),
    [
        ("{api-key: NOT_SET}", "expected a value of printable ASCII in the environment variable NOT_SET, got none"),
        ("{api-key: EMPTY}", "in the environment variable EMPTY, got none"),
        ("{api-key: CONTROL}", "in the environment variable CONTROL, got other characters"),
        ("{api-key: JAPANESE}", "got other characters (not shown)"),
        ("{api-key: UNFILLED}", "got a placeholder left unfilled"),
        ("{authorization: UNFILLED_TOKEN}", "got a placeholder left unfilled"),
        ("{api-key: UNFILLED_OTHERWISE}", "got a placeholder left unfilled"),
        ("{api-key: sk-proj-abc}", f"{NAMES}other text (not shown) for api-key"),
        ("{api-key: 5}", f"{NAMES}5 (a number) for api-key"),
        ("{api-key: [A]}", f"{NAMES}a list for api-key"),
        *(
            (f"{{{name}: GOOD}}", f"{NAMES}{name.replace(chr(39), chr(34))}, which is no name of a header")
            for name in ("'api key'", "'a:b'", "''")
        ),
        *((f"{{{name}: GOOD}}", "which is no name of a header") for name in ("ヘッダー", '"a\\r\\nb"', '"a\\u2028"')),
        ("{api-key: GOOD, api-key: GOOD}", "openai.headers_env.api-key comes twice; remove one"),
        ("[GOOD]", f"{NAMES}a list"),
        ("GOOD", 'got "GOOD"'),
    ],
)
def test_a_header_that_cannot_be_sent_is_a_problem(yaml: str, expected: str, tmp_path: Path) -> None:
    environ = {"GOOD": "value", "EMPTY": " ", "CONTROL": "sec\nret", "JAPANESE": "秘密", "UNFILLED": "${KEY}"}
    environ |= {"UNFILLED_TOKEN": "Bearer $TOKEN", "UNFILLED_OTHERWISE": "{env:KEY}"}
    loaded = load(tmp_path, f"openai: {{headers_env: {yaml}}}\n", environ)
    assert expected in problem(loaded)
    assert "sec" not in problem(loaded).replace("openai.headers_env", "")
    assert "秘密" not in problem(loaded)
    assert set(loaded.settings.openai.headers) <= {"api-key"}
