"""What a search promises of its order and scores, seen through the answers that clients get."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from responses_mcp.manuals.requests import SearchRequest
from responses_mcp.manuals.service import open_manuals
from responses_mcp.settings.model import LexicalSettings, ManualsSettings
from tests.manuals.searched import MANY, found, manual, paths

OTHERS = {
    "lamp.md": "# Lamps\nA lamp of red glass.\n",
    "door.md": "# Doors\nThe door has a bell and a lock.\n",
    "garden.md": "# Garden\nWater the garden in the evening.\n",
}


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("client", "Open an AsyncClient first."),
        ("async", "Open an AsyncClient first."),
        ("element", "Call getElementById with a name."),
        ("80070005", "The call ends with 0x80070005 then."),
        ("0x80070005", "The call ends with 80070005 then."),
        ("E104", "E-104 says that the lamp is hot."),
        ("E-104", "E104 says that the lamp is hot."),
        ("c0000005", "The call ends with 0xc0000005 then."),
        ("DEADBEEF", "The call ends with 0xdeadbeef then."),
        ("0xC0000005", "The call ends with c0000005 then."),
        ("retry", "Set max_retry_count to three."),
        ("getElementById", "To get an element by id is quick."),
    ],
)
def test_a_name_is_found_by_its_parts_and_the_parts_by_the_name(query: str, text: str) -> None:
    reader = manual({**OTHERS, "wanted.md": f"# Wanted\n{text}\n"})
    assert paths(found(reader, query, "zzqq"))[0] == "wanted.md"


def test_the_whole_name_comes_before_what_has_only_its_parts() -> None:
    reader = manual(
        {
            **OTHERS,
            "parts.md": "# Page\nTo get an element by its id, ask the page.\n",
            "whole.md": "# Page\nThe page has a getElementById for it, ask it.\n",
        }
    )
    assert paths(found(reader, "getElementById", "zzqq"))[:2] == ["whole.md", "parts.md"]


@pytest.mark.parametrize(("asked", "other"), [("commits", "committing"), ("indexes", "index"), ("rotate", "rotation")])
def test_of_two_forms_of_a_word_the_one_that_was_asked_for_comes_first(asked: str, other: str) -> None:
    for first, second in ((asked, other), (other, asked)):
        texts = {"a.md": f"# Page\nHere are {first} of all.\n", "b.md": f"# Page\nHere are {second} of all.\n"}
        rows = found(manual({**OTHERS, **texts}), asked, "zzqq")["candidates"]
        assert {row["path"] for row in rows} >= {"a.md", "b.md"}
        assert rows[0]["matched_tokens"] == [asked]


def test_a_code_is_one_word_and_comes_before_its_parts_far_apart() -> None:
    reader = manual(
        {
            **OTHERS,
            "apart.md": "# Page 104\nSet e of 104 lamps. On page 104 an e, an e and 104 lamps.\n",
            "whole.md": "# Errors\nWhen the display shows E-104, empty the tank.\n",
        }
    )
    (first, second, *_) = found(reader, "エラーE-104", "zzqq")["candidates"]
    assert (first["path"], second["path"]) == ("whole.md", "apart.md")
    assert first["token_hits"] == {"e-104": 1}


@pytest.mark.parametrize(
    ("asked", "parts"),
    [("新予備電源", ["予備電"]), ("予備電源", ["予備電"]), ("電源予備", ["予備"]), ("予備点検表", ["予備", "点検"])],
)
def test_of_a_compound_the_parts_that_a_text_has_are_named_wherever_they_stand(asked: str, parts: list[str]) -> None:
    reader = manual({**OTHERS, "care.md": "# 手入れ\n予備電池の点検をする。\n"})
    (first, *_) = found(reader, asked, "zzqq")["candidates"]
    assert sorted(first["matched_tokens"]) == sorted(parts)


def test_in_a_japanese_question_the_grammar_between_the_words_does_not_decide() -> None:
    others = {f"{n}.md": f"# 案内{n}\n粗大ごみは電話で申し込みます。番号は{n}番。\n" for n in range(9)}
    reader = manual(
        {
            **others,
            "grammar.md": "# 案内\n返しを求めるにはどうすればよいですか。料を得するにはどうすればよいですか。\n",
            "wanted.md": "# 案内\n住民票は窓口で取得できます。\n",
        }
    )
    assert paths(found(reader, "住民票の写しを取得するにはどうすればよいですか", "zzqq"))[0] == "wanted.md"


def test_scores_stay_below_1_however_many_numbers_are_asked_for() -> None:
    numbers = " ".join(str(100 + 7 * each) for each in range(38))
    reader = manual({**OTHERS, "table.md": f"# {numbers}\n{numbers}\n"})
    (first, *_) = found(reader, numbers, "zzqq")["candidates"]
    assert first["path"] == "table.md"
    assert 0.2 < first["score"] <= 1


@pytest.mark.parametrize("term", ["how", "should", "HOW", "lamps", "cleaning"])
def test_a_required_term_that_the_question_has_in_some_way_pushes_nothing_away(term: str) -> None:
    reader = manual(
        {
            **OTHERS,
            "term.md": f"# About\n{term} {term} {term}: it says {term} of {term}.\n",
            "wanted.md": "# Care\nEach lamp of the hall is cleaned with a soft cloth, once a month.\n",
        }
    )
    question = "How should a lamp of the hall be cleaned?"
    plain, required = found(reader, question, "zzqq")["candidates"], found(reader, question, term)["candidates"]
    assert [row["path"] for row in (plain[0], required[0])] == ["wanted.md", "wanted.md"]
    assert required[0]["score"] >= plain[0]["score"] - 0.01


ROOMS: Final = (
    "door bell gate wall roof floor stair fence cellar attic porch yard barn shed pond tree hedge lawn path road"
)
CARE: Final = {
    **{f"{room}.md": f"# Page\nHere {room} is told with some other words for it.\n" for room in ROOMS.split()},
    **{f"sets{number}.md": "# Sets\nplenty of sets\n" for number in range(3)},
    "wanted.md": "# Care\nEach lamp of the hall is cleaned monthly with vinegar and water.\n",
    "plenty.md": "# Care\nEach lamp of the hall is cleaned monthly; plenty is told here.\n",
    "zebra.md": "# Care\nEach lamp of the hall is cleaned monthly; zebras and a zebra are told here.\n",
    "quartz.md": f"# Other\nA lamp of another kind; quartz is told here. {'Much else is told of those who use it. ' * 20}\n",
    "catalogue.md": "# Care\nEach lamp of the hall is cleaned monthly; a catalogue of dialogues is told here.\n",
}
OF_CARE: Final = manual(CARE)


def scores_of_care(*terms: str) -> dict[str, float]:
    """Return the scores of the hits, the best first."""
    return {
        row["path"]: row["score"] for row in found(OF_CARE, "lamp hall cleaned vinegar water", *terms)["candidates"]
    }


@pytest.mark.parametrize("terms", [("zebra",), ("quartz",), ("plenty",), ("quartz", "the"), ("quartz", "zebra")])
def test_a_required_term_that_the_question_lacks_puts_nothing_before_what_fits_clearly_better(
    terms: tuple[str, ...],
) -> None:
    shown = list(scores_of_care(*terms))
    assert shown[0] == "wanted.md"
    assert shown.index("quartz.md") > max(shown.index("zebra.md"), shown.index("plenty.md"))
    assert set(scores_of_care("zzqq")) <= set(shown)


@pytest.mark.parametrize("term", ["zebra", "plenty", "catalogue"])
def test_a_required_term_that_the_question_lacks_chooses_among_what_fits_alike(term: str) -> None:
    assert list(scores_of_care(term))[:2] == ["wanted.md", f"{term}.md"]


def test_a_required_term_that_stands_within_other_words_lifts_hardly() -> None:
    plain = scores_of_care("zzqq")["catalogue.md"]
    assert scores_of_care("log")["catalogue.md"] - plain < (scores_of_care("catalogue")["catalogue.md"] - plain) / 4


@pytest.mark.parametrize("question", ["Is there anything on qqzz?", "What is told here?"])
def test_where_the_question_tells_nothing_a_required_term_decides(question: str) -> None:
    first, *_ = found(OF_CARE, question, "quartz")["candidates"]
    assert first["path"] == "quartz.md"
    assert first["score"] > 0.1


def test_a_term_that_nobody_has_changes_nothing() -> None:
    def rows(*terms: str) -> list[tuple[str, float]]:
        answer = found(MANY, "red lamp of glass", *terms)
        return [(row["path"], row["score"]) for row in answer["candidates"]]

    assert rows("qqzz", "zzqq") == rows("zzqq")
    assert rows("glass", "zzqq") == rows("zzqq", "glass") == rows("glass")
    assert rows("007", "zzqq") == rows("007") != rows("zzqq")


OFFICE: Final = {
    "week": "# Week\n\n## Laptop\nIT hands out laptops on Mondays.\n\n## Badge\nGet it at reception.\n\n## Accounts\nGet mail.\n",
}
API: Final = {
    "auth": "# Authentication\n\n## Getting a token\nSend the id.\n\n## Refreshing\nIt expires after 30 days.\n",
    "orders": "# Orders\n\n## Limits\nAsk seldom.\n",
}


def write_manual(root: Path, manual_id: str, texts: Mapping[str, str]) -> None:
    (root / manual_id).mkdir()
    for name, text in texts.items():
        (root / manual_id / f"{name}.md").write_text(text, encoding="utf-8")


async def test_a_manual_without_the_telling_word_does_not_take_another_word_for_it(tmp_path: Path) -> None:
    """How rare a word is shows in all manuals that are searched: alone, `get` is the rarest that the api manual has."""
    write_manual(tmp_path, "office", OFFICE)
    write_manual(tmp_path, "api", API)
    async with open_manuals(ManualsSettings(root=str(tmp_path))) as manuals:
        answer = await manuals.search(SearchRequest("where do I get my laptop"))
    assert (answer.rows[0].manual_id, answer.rows[0].title) == ("office", "Laptop")
    assert answer.rows[0].score > 1.5 * max(row.score for row in answer.rows if row.manual_id == "api")


LONG: Final = (
    "the gateway says that its peer refused a session while it was retrying, what may the colleague in Osaka check"
)
BLADES: Final = "A blade with bolt and washer lies in the drawer. "


@pytest.mark.parametrize(
    ("query", "beside"),
    [
        ("refused session", {"list": "# List\n" + BLADES * 3_000}),  # long, so the others of that manual are short
        (LONG, {f"{n}": f"# Part {n}\n{BLADES}Refused at the gateway.\n" for n in range(5)}),  # which share words
    ],
)
async def test_a_section_has_the_same_score_in_every_manual_that_is_searched(
    tmp_path: Path, query: str, beside: Mapping[str, str]
) -> None:
    same = {"same": f"# Sessions\n\n## Refused\nA peer refused the session at the gateway. {BLADES * 9}\n"}
    write_manual(tmp_path, "blades", {**same, **beside})
    write_manual(tmp_path, "net", same | {"door": "# Door\nIt has a bell and a lock.\n"})
    async with open_manuals(ManualsSettings(root=str(tmp_path))) as manuals:
        answer = await manuals.search(SearchRequest(query, limit=20))
    scores = {row.manual_id: row.score for row in answer.rows if row.title == "Refused"}
    assert scores["blades"] == pytest.approx(scores["net"])


async def test_the_name_of_a_manual_counts_as_a_part_of_its_paths(tmp_path: Path) -> None:
    for name in ("collector", "gateway"):
        write_manual(tmp_path, name, {"network": "# Network\n\n## Ports\nIt listens on a port.\n"})
    async with open_manuals(ManualsSettings(root=str(tmp_path))) as manuals:
        ports = await manuals.search(SearchRequest("gateway ports"))
        alone = await manuals.search(SearchRequest("gateway"))
        below = await manuals.search(SearchRequest("the gateway", path_prefix="network.md"))
        nothing = await manuals.search(SearchRequest("way"))
    assert [(row.manual_id, row.title) for row in ports.rows[:2]] == [("gateway", "Ports"), ("collector", "Ports")]
    assert ports.rows[0].score > 1.2 * ports.rows[1].score
    assert {row.manual_id for row in alone.rows} == {row.manual_id for row in below.rows} == {"gateway"}
    assert nothing.rows == ()


async def test_a_search_of_one_manual_does_not_depend_on_the_others(tmp_path: Path) -> None:
    async def rows() -> list[tuple[str, float]]:
        async with open_manuals(ManualsSettings(root=str(tmp_path))) as manuals:
            answer = await manuals.search(SearchRequest("get a laptop", manual_ids=("office",)))
        return [(row.title, row.score) for row in answer.rows]

    write_manual(tmp_path, "office", OFFICE)
    alone = await rows()
    write_manual(tmp_path, "api", API)
    assert len(alone) > 1
    assert await rows() == alone


@pytest.mark.parametrize("name", ["coverage_weight", "phrase_weight", "proximity_bonus_near", "number_context_bonus"])
def test_scores_are_shares_whatever_the_settings_say(name: str) -> None:
    files = {f"{n}.md": f"# Lamp {n}\nThe red lamp 217 of glass, the red lamp 217.\n" for n in range(4)}
    sections = "\n\n".join(f"## Lamp {n}\nA red lamp.\n" for n in range(30))
    for weight in (0.0, 100.0):
        settings = ManualsSettings(lexical=LexicalSettings(**{name: weight}))
        reader = manual({**OTHERS, **files, "toc.md": f"# Toc\n{sections}"})
        scores = [row["score"] for row in found(reader, "red lamp 217", "zzqq", settings=settings)["candidates"]]
        assert scores
        assert all(0 <= score <= 1 for score in scores)
        assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize(("asked", "written"), [("E104", "E-104"), ("E-104", "E104"), ("ａｌ１２", "AL-12")])
def test_a_required_code_is_found_with_and_without_its_hyphen_and_said_to_be(asked: str, written: str) -> None:
    reader = manual({**OTHERS, "codes.md": f"# Codes\n\n## {written}\nThe lamp is hot.\n\n## E-1049\nThe door.\n"})
    applied = found(reader, "what does it mean", asked)["applied"]
    assert (applied["required_effect_status"], applied["required_failure_reason"]) == ("required_effective", None)
    assert applied["required_terms_missing"] == []


@pytest.mark.parametrize(
    ("asked", "written"),
    [
        ("120", "Up to 120°C in oil"),
        ("N·m", "A torque of 27 N·m is enough"),
        ("300", "The plate is 200×300"),
        ("Valider", "Appuyez sur «Valider» pour finir"),
        ("Fabrikam", "Runs on Fabrikam® only"),
        ("dónde", "¿Dónde está la palanca?"),
    ],
)
async def test_a_word_is_found_beside_a_sign_that_is_no_letter(tmp_path: Path, asked: str, written: str) -> None:
    write_manual(tmp_path, "units", {"sought": f"# Page\n{written}.\n", "other": "# Page\nN pages and m rows.\n"})
    async with open_manuals(ManualsSettings(root=str(tmp_path))) as manuals:
        answer = await manuals.search(SearchRequest(asked))
    assert (answer.rows[0].path, answer.note) == ("sought.md", None)
    assert answer.rows[0].score > 0.4


def files_of(sections: Mapping[str, str]) -> dict[str, str]:
    """Return a page for each title, with filler around it."""
    pages = {f"{n}.md": f"# {title}\n{text}\n" for n, (title, text) in enumerate(sections.items())}
    return {**OTHERS, **pages}


DIRECTIVES: Final = files_of(
    {
        "v-if": "It renders the block only if the expression is true. See v-for and v-on.",
        "v-on": "It listens to events on the element. On a component it listens to its own events.",
        "v-for": "It renders a list, one block for each entry, with v-if on the outside.",
        "Events": "To listen on an element for events if there are any, and for each of them.",
    }
)


@pytest.mark.parametrize("name", ["v-if", "v-on", "v-for"])
@pytest.mark.parametrize("question", ["{}", "how does {} work?", "when should I use `{}`"])
def test_names_that_differ_in_a_word_of_grammar_are_different_questions(name: str, question: str) -> None:
    (first, *_) = found(manual(DIRECTIVES), question.format(name), "zzqq")["candidates"]
    assert first["title"] == name


WASTE: Final = files_of(
    {
        "ごみの出し方": "収集日の朝に出します。袋に入れてください。",
        "ふとんの出し方": "ひもでしばって、申し込んでから出します。",
        "粗大ごみの申し込み": "電話で申し込みます。",
    }
)


@pytest.mark.parametrize(
    ("question", "title"),
    [
        ("ごみの出し方", "ごみの出し方"),
        ("ふとんの出し方", "ふとんの出し方"),
        ("ふとんはどうやって出しますか", "ふとんの出し方"),
    ],
)
def test_words_in_hiragana_tell_questions_apart(question: str, title: str) -> None:
    (first, *_) = found(manual(WASTE), question, "zzqq")["candidates"]
    assert first["title"] == title


GUIDE: Final = manual(
    {
        "guide.md": "# Guide\nWords.\n## What to do when it is too hot {#hot}\n### Open the windows\nOpen them when it is "
        "too hot to work.\n### What else to do\nWhat to do: drink, when it is hot, and what not to do when too hot.\n",
        "other.md": "# Heat\nWhen it is too hot, do what the others do. What to do, when to do it, and why it is too hot.\n",
    }
)


@pytest.mark.parametrize("question", ["What to do when it is too hot", "what to do when it is too hot?"])
def test_a_question_that_is_a_title_finds_that_section_first_though_it_has_no_text_of_its_own(question: str) -> None:
    (first, *_) = found(GUIDE, question, "zzqq")["candidates"]
    assert (first["path"], first["start_line"]) == ("guide.md", 3)


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("Zurich", "The office in Zürich is open."),
        ("wi-fi", "Turn the wifi on."),
        ("OAuth 2.0", "It speaks OAuth2 with others."),
        ("10 ms", "It waits 10ms then."),
        ("10ms", "It waits 10 ms then."),
        ("sign in", "Press sign-in first."),
        ("a ||> b", "Write x ||> y for it."),
        ("c++", "It is written in C++ throughout."),
    ],
)
def test_what_writers_spell_in_several_ways_is_found(question: str, text: str) -> None:
    assert paths(found(manual({**OTHERS, "wanted.md": f"# Wanted\n{text}\n"}), question, "zzqq"))[0] == "wanted.md"


def test_where_a_question_has_nothing_but_grammar_all_of_it_is_asked_for() -> None:
    reader = manual({**OTHERS, "who.md": "# The Who\nWho they were.\n"})
    assert paths(found(reader, "who is who", "zzqq"))[0] == "who.md"


@pytest.mark.parametrize("name", ["CHANGELOG.md", "release-notes/2.md", "whatsnew/3.12.md", "変更履歴.md"])
def test_notes_of_releases_come_behind_equal_pages_unless_they_are_asked_for(name: str) -> None:
    reader = manual({**OTHERS, name: "# Lamps\nThe brass lamp dims.\n", "z.md": "# Lamps\nThe brass lamp dims.\n"})
    assert paths(found(reader, "brass lamp", "zzqq"))[:2] == ["z.md", name]
    asked = f"brass lamp {'変更履歴' if not name.isascii() else 'release notes changelog'}"
    assert paths(found(reader, asked, "zzqq"))[0] == name


@pytest.mark.parametrize(
    ("question", "first"),
    [("useLamp brass", "en/lamp.md"), ("useLamp brass の使い方", "ja/lamp.md"), ("useLamp 황동", "ko/lamp.md")],
)
def test_of_translations_the_one_in_the_language_of_the_question_comes_first(question: str, first: str) -> None:
    texts = {
        f"{code}/lamp.md": f"# useLamp\n\n`useLamp` brass {'brass ' * times}\n"
        for times, code in enumerate(["en", "ja", "ko", "de"])
    }
    found_paths = paths(found(manual({**OTHERS, **texts}), question, "zzqq"))
    assert found_paths[0] == first
    assert set(found_paths[:4]) == set(texts)


@pytest.mark.parametrize(
    ("title", "other", "questions"),
    [
        ("Status code", "The status code of a reply", ("Can you explain status code?", "What is a status code?")),
        (
            "Sealing",
            "Sealing of the pumps",
            ("Please describe sealing", "How does sealing work?", "How do I use sealing?"),
        ),
        ("{#if ...}", "Use of this if it is that", ("What is {#if}?", "How do I use {#if}?")),
        ("getElement", "Get the element", ("What is getElement?", "getElement", "Tell me about getElement")),
        ("リリース", "リリースの周期", ("リリースについて教えてください", "リリースとは何ですか？", "リリースって何")),
        ("部品の交換", "部品の交換の費用", ("部品の交換とは", "部品の交換を説明してください。")),
    ],
)
def test_a_title_that_is_asked_for_comes_before_longer_titles_with_more_text(
    title: str, other: str, questions: tuple[str, ...]
) -> None:
    filler = "Here is what is said of it, at some length and in many words.\n"
    reader = manual({
        **OTHERS,
        "own.md": f"# Page\n\n## {title}\n\n{filler}\n",
        "other.md": f"# Page\n\n## {other}\n\n{title} {other} {title}: {filler}{title}\n",
        "chapter.md": f"# Part\n\n## {title} and all\n\n### Details\n\n{title}. {filler}\n",
    })  # fmt: skip
    for question in questions:
        assert paths(found(reader, question, "zzqq"))[0] == "own.md"
