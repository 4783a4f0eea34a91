"""Secrets out of text, in every form in which they travel."""

import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_mcp.secrets import MASK, Redactor

pytestmark = pytest.mark.rule("P11")

KEY = "canary+secret/with=odd&characters\"é'<x>"


@pytest.mark.parametrize(
    "text", ["{}", "before {} after", "x{}y", "{0}{0}", 'key="{}"', "https://h/?k={}&x", "(line\n{}\n)"]
)
def test_a_secret_is_masked_wherever_it_stands(text: str) -> None:
    secret = "plain-secret-of-some-kind"
    assert Redactor([secret])(text.format(secret)) == text.format(MASK)


@pytest.mark.parametrize(
    "form",
    [
        KEY,
        quote(KEY),
        quote(KEY, safe=""),
        quote_plus(KEY),
        quote(KEY, safe="+/=&'"),
        quote(KEY, safe="").lower(),
        quote(quote(KEY, safe=""), safe=""),
        json.dumps(KEY)[1:-1],
        json.dumps(KEY, ensure_ascii=False)[1:-1],
        json.dumps(KEY)[1:-1].replace("/", "\\/"),
        repr(KEY)[1:-1],
        "canary+secret/with=odd&amp;characters&quot;é&#x27;&lt;x&gt;",
        "canary+secret/with=odd&amp;characters&#34;é&#39;&lt;x&gt;",
        "canary&#x2B;secret&#47;with=odd%26characters&quot;\\u00e9&apos;&lt;x&gt;",
        f" {KEY}\n",
    ],
)
def test_a_secret_is_masked_in_the_forms_in_which_it_travels(form: str) -> None:
    assert "canary" not in Redactor([KEY])(f"You sent {form} as your key.")
    assert "secret" not in Redactor([KEY])(f"You sent {form} as your key.")


HEADER = ["Custom canary-token-0123"]


@pytest.mark.parametrize(
    ("secrets", "text", "masked"),
    [
        ("canary-secret", "<canary-secret>", f"<{MASK}>"),  # one needs no list around it
        (["  canary-secret\n"], "<canary-secret>", f"<{MASK}>"),
        (["canary", "canary-and-more"], "canary-and-more, canary", f"{MASK}, {MASK}"),
        (HEADER, HEADER[0], MASK),
        (HEADER, "The token canary-token-0123 is wrong", f"The token {MASK} is wrong"),
        (HEADER, "A Custom header", "A Custom header"),
        ([None, "", "  ", "abc", " ab "], "abc ab  None", "abc ab  None"),  # too short to be one
    ],
)
def test_secrets_are_masked_whole_without_blanks_and_by_the_token_of_a_header(
    secrets: str | list[str | None], text: str, masked: str
) -> None:
    assert Redactor(secrets)(text) == masked


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("Incorrect API key: sk-proj-abcDEF_0123456789-xyz.", f"Incorrect API key: {MASK}."),
        ("Authorization: Bearer abcdefgh12345678", f"Authorization: Bearer {MASK}"),
        ("Bearer onlylettershere", f"Bearer {MASK}"),
        ("authorization: bearer abcdefgh12345678", f"authorization: bearer {MASK}"),
        ("http://user:pass@proxy:8080 refused", f"http://{MASK}@proxy:8080 refused"),
        ("https://token@github.com/x", f"https://{MASK}@github.com/x"),
        ('{"key":"sk-0123456789abcdef0123"}', f'{{"key":"{MASK}"}}'),
    ],
)
def test_what_looks_like_somebody_elses_credential_is_masked_too(text: str, masked: str) -> None:
    assert Redactor()(text) == masked


def test_an_example_of_a_credential_stays_where_only_the_known_ones_are_looked_for() -> None:
    text = "sk-0123456789abcdef0123, Bearer abcdefgh12345678, https://user:password@host/"
    assert Redactor([KEY]).known(f"{text} {KEY}") == f"{text} {MASK}"


def test_a_secret_in_any_script_is_masked_in_urls_too() -> None:
    redact = Redactor(["鍵 は秘密"])
    for written in ("鍵 は秘密", "鍵+は秘密", quote("鍵 は秘密"), quote("鍵 は秘密").lower(), quote_plus("鍵 は秘密")):
        assert redact.known(f"https://ex.jp/?{written}&a") == f"https://ex.jp/?{MASK}&a"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "task-force-one-two-three",
        "sk-short",
        "Bearer of bad news",
        "mail a@b.jp",
        "https://a.jp/x@y",
        "日本語🐍",
        "desk-top-0123456789abcdef",
    ],
)
def test_ordinary_text_stays(text: str) -> None:
    assert Redactor(["some-secret-or-other"])(text) == text


@given(st.text(min_size=4).filter(lambda secret: len(secret.strip()) >= 4), st.text(), st.text())
def test_no_secret_survives_whatever_stands_around_it(secret: str, before: str, after: str) -> None:
    secret = secret.strip()
    masked = Redactor([secret])(before + secret + after)
    # A secret made of the mask's own letters would be in every masked text.
    assert secret not in masked.replace(MASK, "\0")


def test_long_texts_that_tempt_a_pattern_to_look_again_and_again_come_through() -> None:
    redact = Redactor(["some-secret-or-other", "%%%%%%%%%%%%%%%%%%%%a", KEY])
    for text in ("%25" * 300_000, "%2525" * 200_000, "canary+" * 150_000, "canary%2525%252B" * 50_000):
        assert redact(text) == text
    for text in ("://" * 100_000, "sk-" * 100_000, "Bearer " * 50_000, "://a" * 100_000, "a" * 1_000_000):
        assert redact(text)
