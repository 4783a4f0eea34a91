"""Tokens: what of a text is counted."""

import pytest

from responses_mcp.manuals.index.tokens import tokens
from responses_mcp.manuals.words import prepared


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("v-on and v-if", "von v on and vif v if"),
        ("Array.from Vec::from", "array.from array from vec.from vec from"),
        ("wi-fi wifi WiFi", "wifi wi fi wifi wifi =wi =fi"),
        ("E-104 E104", "e104 e 104 e104 =e =104"),
        ("max_retry_count", "maxretrycount max retry count"),
        ("OAuth 2.0 and OAuth2", "oauth =auth 2 2.0 and oauth2 =auth =oauth =2"),
        (
            "getElementById, HTTPServer: 10ms",
            "getelementbyid =get =element =by =id httpserver =http =server 10ms =10 =ms",
        ),
        ("A Plain sentence. ALL capitals", "a plain sentenc all capit"),
        ("0xDEADBEEF 1,000", "deadbeef 1000"),
        ("commits committed committing", "commit commit commit"),
        ("rapidly rapid, optional options", "rapid rapid option option"),
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
