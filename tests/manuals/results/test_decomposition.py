"""Taking questions apart: what splits, into what, and what must not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from responses_mcp.manuals.results.decomposition import compares, sub_queries
from responses_mcp.manuals.words import normalise


@pytest.mark.parametrize(
    ("query", "parts"),
    [
        ("リストとタプルの違い", ("リスト", "タプル")),
        ("リストとタプルの違いは何ですか？", ("リスト", "タプル")),
        ("非同期と同期の違い", ("非同期", "同期")),
        ("申し込みと取り消しの違い", ("申し込み", "取り消し")),
        ("「React」と『Vue』の違い", ("react", "vue")),
        ("React と Vue の違い", ("react", "vue")),
        ("VS Code と Vim の違い", ("vs code", "vim")),
        ("Python リストとタプルの比較", ("python リスト", "python タプル")),
        ("比較 リストとタプル", ("リスト", "タプル")),
        ("どちらがよい ＡＰＩとＳＤＫ", ("api", "sdk")),
        ("APIとSDKはどちらが速い", ("api", "sdk")),
        ("APIとSDKを比べる", ("api", "sdk")),
        ("読み取りと書き込みの設定", ("読み取りの設定", "書き込みの設定")),
        ("解約と変更の場合", ("解約の場合", "変更の場合")),
        ("初回の解約と変更の手数料", ("初回の解約の手数料", "初回の変更の手数料")),
        ("A、BとCの設定", ("aの設定", "bの設定")),
        ("npm vs yarn", ("npm", "yarn")),
        ("gRPC vs. REST?", ("grpc", "rest")),
        ("What is the difference between a list and a tuple in Python?", ("list", "tuple")),
        ("compare gRPC with REST", ("grpc", "rest")),
        ("how to enable or disable telemetry", ("how to enable telemetry", "how to disable telemetry")),
    ],
)
def test_a_question_about_several_things_is_taken_apart(query: str, parts: tuple[str, ...]) -> None:
    assert sub_queries(query) == list(parts)


@pytest.mark.parametrize(
    "query",
    [
        "認証とは", "認証とは何か", "HTTPとは", "トレースとはどういうもの", "APIという言葉の意味",
        "設定として使う値", "起動のときの手順", "困ったときの対処", "次のところの設定", "エラーと同じ原因の対処",
        "既定値と異なる値の設定", "Xと呼ばれるYの設定", "エラーと表示されるときの対処",
        "設定しないと起動しない場合の対処", "もっと速い方法の説明", "ひとつのことの設定", "Aと連携するBの設定",
        "認証と認可", "VS Code の設定", "install the VS Code extension", "editor for org files", "setup", ", vs npm",
        "",
    ],
)  # fmt: skip
def test_a_question_about_one_thing_is_left_whole(query: str) -> None:
    assert sub_queries(query) == []


def test_the_same_thing_twice_is_one_thing() -> None:
    assert sub_queries("AとＡの違い") == []


def test_pasted_text_is_left_whole() -> None:
    assert sub_queries("リストとタプルの違い" + "。" * 10 + "本文" * 200) == []


@pytest.mark.parametrize(
    "query", ["リストとタプルの違い", "AとBの差", "使い分け", "どっちがよい", "a vs b", "Compared with", "difference"]
)
def test_a_comparison_is_recognised(query: str) -> None:
    assert compares(query)


@pytest.mark.parametrize("query", ["差し込み印刷", "誤差の計算", "VS Code", "compartment", "different", "手順", ""])
def test_other_questions_are_no_comparison(query: str) -> None:
    assert not compares(query)


WORDS = st.sampled_from(
    [
        "リスト", "と", "の", "違い", "は", "設定", "a", "b", " ", "or", "vs", "compare", "and", "、", "とは",
        "読み", "difference between",
    ]
)  # fmt: skip


@given(st.one_of(st.text(max_size=60), st.lists(WORDS, max_size=12).map("".join)))
def test_parts_are_two_different_and_never_empty_or_the_whole(query: str) -> None:
    parts = sub_queries(query)
    if parts:
        assert len(set(parts)) == len(parts) == 2
        assert normalise(query) not in parts
        assert all(part and part == normalise(part) for part in parts)


@given(st.lists(WORDS, max_size=12).map("".join))
def test_what_something_is_never_splits_off_a_particle(query: str) -> None:
    assert not {"は", "いう", "して", "き"} & set(sub_queries(query + "とは"))
