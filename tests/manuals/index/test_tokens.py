"""Tokens: what of a text is counted."""

import pytest

from responses_mcp.manuals.index.tokens import tokens, tokens_and_parts
from responses_mcp.manuals.words import prepared


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("v-on and v-if", "von v on and vif v if"),
        ("Array.from Vec::from", "array.from array from vec.from vec from"),
        ("wi-fi wifi WiFi", "wifi wi fi wifi wifi"),
        ("E-104 E104", "e104 e 104 e104"),
        ("max_retry_count", "maxretrycount max retry count"),
        ("OAuth 2.0 and OAuth2", "oauth 2 2.0 and oauth2"),
        ("0xDEADBEEF 1,000", "deadbeef 1000"),
        ("commits committed committing", "commit commit commit"),
        ("Zürich naïve Ελλάς", "zurich naiv ελλασ"),
        ("don't can't it's", "do not it"),
        ("C++ C# .NET", "c++ c# net"),
        ("a ||> b ?? c => d", "a ||> b ?? c => d"),
        ("| --- | **bold** <!-- no -->", "bold no"),
        ("ごみの出し方", "ごみ みの の出 出し し方 方 出方"),
        ("サーバー", "サバ バ"),
        ("取り扱い", "取り り扱 扱い い 取扱"),
        ("«Valider» 한국어", "valider 한국 국어 어"),
        ("", ""),
    ],
)
def test_a_text_is_cut_into_tokens(text: str, made: str) -> None:
    assert tokens(prepared(text)) == made


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("getElementById and HTTPServer", "get element by id http server"),
        ("10ms or OAuth2", "10 ms auth oauth 2"),
        ("A Plain sentence. ALL capitals", ""),
    ],
)
def test_capitals_and_digits_tell_parts_of_names_apart(text: str, parts: str) -> None:
    assert tokens_and_parts(prepared(text)) == (tokens(prepared(text)), parts)
