"""The key and the extra headers: where they come in, and what is said when they cannot be used (spec 8)."""

from types import MappingProxyType
from typing import Any

import pytest

from responses_mcp.errors import AuthenticationFailed
from responses_mcp.responses_api.request.credentials import credential_headers
from responses_mcp.settings.model import OpenAISettings

KEY = "sk-canary-0123456789abcdef"


def headers_for(**openai: Any) -> dict[str, str]:
    return credential_headers(OpenAISettings(**openai))


def complaint(**openai: Any) -> str:
    with pytest.raises(AuthenticationFailed) as caught:
        headers_for(**openai)
    assert "canary" not in f"{caught.value!r} {caught.value}"
    assert len(str(caught.value)) <= 400
    return str(caught.value)


def test_the_key_is_sent_as_a_bearer_token() -> None:
    assert headers_for(api_key=KEY) == {"authorization": f"Bearer {KEY}"}


@pytest.mark.parametrize(("key", "state"), [(None, "is not set"), ("", "is empty"), ("  \n", "is empty")])
def test_no_key_is_told_with_the_name_of_the_variable_and_where_a_program_sets_it(key: str | None, state: str) -> None:
    text = complaint(api_key=key, api_key_env="MY_KEY")
    assert f"MY_KEY {state}" in text
    assert text.endswith("Set it before the settings are loaded, or give `OpenAISettings` an `api_key`.")


@pytest.mark.parametrize(("key", "words"), [
    ("${OPENAI_API_KEY}", "placeholder"), ("${canary}", "placeholder"), ("${env:OPENAI_API_KEY}", "placeholder"),
    ("$(cat canary)", "placeholder"), ("%OPENAI_API_KEY%", "placeholder"), ("%ProgramFiles(x86)%", "placeholder"),
    ("$OPENAI_API_KEY", "placeholder"), ("$canary", "placeholder"), ("$env:OPENAI_API_KEY", "placeholder"),
    ("{env:OPENAI_API_KEY}", "placeholder"), ("${input:canary}", "placeholder"), ("$(pass show openai)", "placeholder"),
    ("sk-${canary}", "placeholder"), (f"{KEY} {KEY}", "white space"), (f"{KEY}\n{KEY}", "line break"),
    (f'"{KEY}"', "quotation marks"), (f"'{KEY}'", "quotation marks"),
    (f"{KEY}é", "Copy the key again"),
    (f"{KEY};", "Copy the key again"), (f"{KEY},", "Copy the key again"), (f"{KEY}\\n", "Copy the key again"),
    (f"{KEY}\u200b", "Copy the key again"), (f"{KEY}\x00", "Copy the key again"),
    (f"{KEY}\udcff", "Copy the key again"),
])  # fmt: skip
def test_a_key_that_no_server_can_accept_is_told_before_it_is_sent(key: str, words: str) -> None:
    text = complaint(api_key=key, api_key_env="MY_KEY")
    assert "MY_KEY" in text
    assert words in text
    assert "The same goes for what `OpenAISettings` was given." in text or "placeholder" in words


@pytest.mark.parametrize(
    "key", ["sk-ant-api03-0123456789", "sk-or-v1-0123456789", "AIzaSy0123456789", "gsk_0123456789"]
)
def test_a_key_of_another_provider_is_not_sent_to_openai(key: str) -> None:
    text = complaint(api_key=key, api_key_env="MY_KEY")
    assert "The API key in the environment variable MY_KEY is that of another provider. Put a key of OpenAI's" in text
    assert headers_for(api_key=key, base_url="https://gateway.example/v1") == {"authorization": f"Bearer {key}"}


@pytest.mark.parametrize("around", [" {}", "{}\n", "\t{}\r\n", "{}\u3000"])
def test_what_is_around_a_key_that_a_program_has_read_from_a_file_is_left_out(around: str) -> None:
    assert headers_for(api_key=around.format(KEY)) == {"authorization": f"Bearer {KEY}"}


@pytest.mark.parametrize("key", [
    "sk-...", "...", "YOUR_KEY", "your-api-key", "sk-your-key-here", "sk-proj-xxxxxxxxxxxx", "<your-openai-api-key>",
    "<OPENAI_API_KEY>", "TODO",
])  # fmt: skip
def test_the_example_of_a_page_is_told_and_sent_to_a_server_on_this_machine_alone(key: str) -> None:
    assert "MY_KEY is an example. Put" in complaint(api_key=key, api_key_env="MY_KEY")
    assert headers_for(api_key=key, base_url="http://127.0.0.1:4000/v1") == {"authorization": f"Bearer {key}"}


@pytest.mark.parametrize("key", ["<your key>", " <your API key here> ", "your key"])
def test_an_example_with_blanks_in_it_is_not_told_to_lose_them(key: str) -> None:
    assert "MY_KEY is an example. Put" in complaint(api_key=key, api_key_env="MY_KEY")


@pytest.mark.parametrize(
    "key", ["key", "sk-key", "sk-1234", "anything", "mykeychain", "your", "QUJDREVG=", "monkey=", "bearer"]
)
def test_a_short_key_of_a_gateway_is_no_example(key: str) -> None:
    assert headers_for(api_key=key) == {"authorization": f"Bearer {key}"}


@pytest.mark.parametrize("key", ["$1abc", "a$b", "50%off", "%a-b%", "{env}", "a{env:b}", "$a-b", "sk-$A"])
def test_a_key_that_merely_holds_the_sign_of_a_placeholder_is_sent(key: str) -> None:
    assert headers_for(api_key=key) == {"authorization": f"Bearer {key}"}


@pytest.mark.parametrize(
    "base_url", ["http://localhost:11434/v1", "http://127.0.0.1:8080/v1", "http://127.1.2.3/v1", "http://[::1]:1/v1"]
)
@pytest.mark.parametrize("key", [None, "", "  "])
def test_a_server_on_this_machine_needs_no_key_and_gets_none(base_url: str, key: str | None) -> None:
    assert headers_for(base_url=base_url, api_key=key) == {}


def test_a_server_on_this_machine_gets_the_key_if_there_is_one() -> None:
    assert headers_for(base_url="http://localhost:1/v1", api_key=KEY) == {"authorization": f"Bearer {KEY}"}


@pytest.mark.parametrize(
    "base_url", ["https://localhost.example.com/v1", "http://10.0.0.1/v1", "http://[bad", "nonsense"]
)
def test_every_other_server_needs_one(base_url: str) -> None:
    assert "OPENAI_API_KEY is not set" in complaint(base_url=base_url)


def test_a_name_that_a_client_left_for_the_key_is_none_for_a_server_on_this_machine() -> None:
    assert headers_for(api_key="${OPENAI_API_KEY}", base_url="http://127.0.0.1:8080/v1") == {}
    assert "placeholder" in complaint(api_key="${OPENAI_API_KEY}")


def test_extra_headers_stand_in_for_the_key() -> None:
    assert headers_for(headers={"api-key": KEY}) == {"api-key": KEY}


def test_extra_headers_are_sent_beside_the_key_and_win_over_it_in_any_letter_case() -> None:
    both = headers_for(api_key=KEY, headers={"OpenAI-Project": "proj_1", "Authorization": "Basic abc"})
    assert both == {"authorization": "Basic abc", "openai-project": "proj_1"}


@pytest.mark.parametrize("value", [f"{KEY}\r\nx: y", f"{KEY}é", f"{KEY}\x00", f"{KEY}\udcff"])
def test_an_extra_header_that_cannot_be_sent_is_told_without_its_value(value: str) -> None:
    text = complaint(headers=MappingProxyType({"api-key": value}), headers_env=MappingProxyType({"api-key": "AZURE"}))
    assert "api-key" in text
    assert "AZURE" in text
    assert "api-key" in complaint(headers=MappingProxyType({"api-key": value}))


def test_settings_do_not_show_the_secrets() -> None:
    assert "canary" not in repr(OpenAISettings(api_key=KEY, headers={"api-key": KEY}))
