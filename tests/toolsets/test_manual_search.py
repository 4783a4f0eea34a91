"""`manual_search` and the places of matches, as a client sees them: one call finds, the next one reads."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from responses_mcp.configured import configured_toolsets
from responses_mcp.manuals import KINDS
from responses_mcp.settings.model import ManualsSettings, ServerSettings, Settings
from responses_mcp.testing.client import connected_client
from tests.file_names import possible
from tests.toolsets.manuals_harness import REVISIONS, Desk, book, desk, settings_for

every_revision = pytest.mark.parametrize("revision", REVISIONS)
FILLER = "Nothing of note happens on this line of the page.\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    files = {
        "pumps/care.md": "# Care\n\n## Running dry\n\nA pump may run dry for ten seconds.\n",
        "pumps/list.md": "# Parts\n\nSeals, rings, and a spare impeller.\n",
        "valves/care.md": "# Valves\n\n## Cleaning\n\nClean the valve with warm water.\n",
    }
    return book(tmp_path, files)


async def searched(here: Desk, query: str, **arguments: Any) -> dict[str, Any]:
    return await here.call("manual_search", query=query, **arguments)


async def rows(here: Desk, query: str, **arguments: Any) -> list[dict[str, Any]]:
    results: list[dict[str, Any]] = (await searched(here, query, **arguments))["results"]
    return results


def size(answer: dict[str, Any]) -> int:
    return len(json.dumps(answer, ensure_ascii=False, separators=(",", ":")))


# Claude Code keeps tools from its model until they are searched for, by whole words of names and descriptions.
async def test_a_search_for_tools_finds_it_by_what_people_call_manuals(root: Path) -> None:
    async with desk(settings_for(root)) as here:
        listed = (await here.client.ask("tools/list"))["result"]["tools"]
    [description] = [tool["description"] for tool in listed if tool["name"] == "manual_search"]
    assert description.startswith("Start here: search ")
    for word in ("manual", "handbook", "guide", "policy", "runbook", "docs", "documentation", "社内規程"):
        assert re.search(rf"\b{word}\b", description)


# Two calls


@pytest.mark.rule("M2.4")
@every_revision
async def test_two_calls_find_and_read_without_a_listing(root: Path, revision: str) -> None:
    async with desk(settings_for(root), revision) as here:
        found = await searched(here, "How long may a pump run dry?")
        [row] = [row for row in found["results"] if row["line"] == 3]
        assert {**row, "score": 1} == {
            "title": "Running dry", "above": "Care", "line": 3,
            "snippet": "A pump may run dry for ten seconds.", "score": 1,
            "ref": {"manual_id": "pumps", "path": "care.md", "start_line": 3},
        }  # fmt: skip
        assert row == found["results"][0]
        assert found["complete"] is True
        read = await here.call("manual_read", ref=row["ref"])
    assert read["text"] == "## Running dry\n\nA pump may run dry for ten seconds."


async def test_all_manuals_are_ranked_together_unless_one_of_them_or_a_path_is_named(root: Path) -> None:
    book(root, {"valves/deep/care.md": "# More care\n\nA valve has no pump.\n"})
    book(root, {"valves/deeper.md": "# Deeper\n\ncare\n"})
    async with desk(settings_for(root)) as here:
        assert {row["ref"]["manual_id"] for row in await rows(here, "care")} == {"pumps", "valves"}
        assert {row["ref"]["manual_id"] for row in await rows(here, "care", manual_id="valves")} == {"valves"}
        assert {row["ref"]["manual_id"] for row in await rows(here, "care", manual_id="manuals")} == {"pumps", "valves"}
        assert {row["ref"]["path"] for row in await rows(here, "care", path_prefix="deep")} == {"deep/care.md"}
        assert {row["ref"]["path"] for row in await rows(here, "care", path_prefix="care.md")} == {"care.md"}
        assert await rows(here, "care", manual_id="pumps", path_prefix="deep") == []
        assert len(await rows(here, "care", limit=1)) == 1


@pytest.mark.parametrize(
    "prefix", ["d\u00e9j\u00e0", "de\u0301ja\u0300/", "./d\u00e9j\u00e0", "de\u0301ja\u0300/vu.md"]
)
async def test_a_path_may_be_composed_in_another_way(tmp_path: Path, prefix: str) -> None:
    book(tmp_path, {"m/de\u0301ja\u0300/vu.md": "# A\n\ngasket\n"})
    book(tmp_path, {"m/de\u0301ja\u0300 vu.md": "# A\n\ngasket\n"})
    async with desk(settings_for(tmp_path)) as here:
        [row] = await rows(here, "gasket", path_prefix=prefix)
        assert row["ref"]["path"].endswith("/vu.md")


async def test_a_path_finds_what_a_search_of_the_whole_manual_would_have_no_room_for(root: Path) -> None:
    for number in range(400):
        book(root, {f"pumps/many/{number}.md": "# Pump\n\nThe pump, the pump, a pump.\n"})
    book(root, {"pumps/few/last.md": "# Last\n\nOf all that is said here one word is pump, and it is the only one.\n"})
    async with desk(settings_for(root)) as here:
        assert [row["ref"]["path"] for row in await rows(here, "pump", path_prefix="few/")] == ["few/last.md"]


async def test_nothing_found_is_said_in_a_sentence(root: Path) -> None:
    async with desk(settings_for(root)) as here:
        for nonsense in ("zxqv flurb", "?!", "。"):
            found = await searched(here, nonsense)
            assert found == {"results": [], "complete": True, "note": "Nothing matches; try other words."}
        found = await searched(here, "seals", path_prefix="pumps")
        assert found["note"] == "Nothing is at or below 'pumps'; check the path."


async def test_a_long_question_finds_the_section_with_its_rarest_word_however_low_that_scores(tmp_path: Path) -> None:
    words = ["hotel", "cost", "limit", "night", "trip", "manager", "approval", "receipt"]
    for number in range(8):
        said = [words[(number + other) % 8] for other in (0, 1, 3)]
        book(tmp_path, {f"m/{number}.md": f"# Part {number}\n\n{FILLER * 3}{' '.join(said)}\n"})
    book(tmp_path, {"m/right.md": f"# Allowance\n\n{FILLER * 3}In Osaka it is so.\n"})
    async with desk(settings_for(tmp_path)) as here:
        found = await searched(here, f"{' '.join(words)} daily higher book room staff rate Osaka", limit=20)
        [row] = [row for row in found["results"] if row["ref"]["path"] == "right.md"]
        assert row["score"] < 0.03
        assert found["note"].startswith("Nothing matches well")


@pytest.mark.parametrize(
    ("query", "doubtful"),
    [
        ("How do I treat a fever in a toddler?", True),
        ("How do I treat a toddler?", True),
        ("how do I treat steel", False),
        ("treat", False),
        ("treat toddlr steel", False),
    ],
)
async def test_a_question_of_which_no_section_has_much_is_said_to_fit_badly(
    tmp_path: Path, query: str, *, doubtful: bool
) -> None:
    for number in range(9):
        words = "Treat steel with oil" if number % 2 else "Treat it"
        book(tmp_path, {f"m/{number}.md": f"# Part {number}\n\n{words}.\n"})
    for number in range(9, 30):
        book(tmp_path, {f"m/{number}.md": f"# Part {number}\n\n{FILLER}\n"})
    async with desk(settings_for(tmp_path)) as here:
        found = await searched(here, query)
        assert found["results"][0]["score"] > 0.06
        assert found.get("note", "").startswith("Nothing matches well") == doubtful


@pytest.mark.parametrize(
    ("query", "unknown"),
    [
        ("how to treat ringwrom in cats", "ringwrom"),
        ("treat cats with Xylitolum and ringwrom", "xylitolum, ringwrom"),
        ("treat cats", None),
        ("バルブの掃除方法", "掃除方法"),
        ("相続税のバルブ", "相続税"),
        ("open FileHandle", None),
        ("valves treat", None),
        ("treat 1,000 cats", "1,000"),
        ("cats,ringworm/xyzzy,treat", "xyzzy"),
        ("openable of the file", "openable"),
        ("エラーのバルブ", None),
    ],
)
async def test_words_of_the_question_that_no_manual_has_are_told(
    tmp_path: Path, query: str, unknown: str | None
) -> None:
    book(tmp_path, {"valves/a.md": "# Cats\n\nTreat cats that have ringworm. Error E-104.\n"})
    book(tmp_path, {"valves/b.md": "# バルブ\n\nバルブを開けるときはマイナスの電極から。\n\nOpen the file.\n"})
    book(
        tmp_path,
        {
            "valves/c.md": "# TN-4100K\n\nSection E, K or 第 3 章: 999 of 99, x86, a state to read, only 第12条の2. Grüße\n\nAB-12345678, 様式 M-7.\n"
        },
    )
    async with desk(settings_for(tmp_path)) as here:
        found = await searched(here, query)
        assert found["results"]
        told = found.get("note", "").partition("Not found in any manual searched: ")[2]
        assert told == (f"{unknown}. Check the spelling." if unknown else "")


async def test_four_unknown_words_are_told_also_beside_a_file_that_cannot_be_searched(tmp_path: Path) -> None:
    book(tmp_path, {"valves/a.md": "# Cats\n\nTreat cats that have ringworm.\n"})
    (tmp_path / "valves/image.md").write_bytes(b"\0\1")
    async with desk(settings_for(tmp_path)) as here:
        found = await searched(here, "cats with ringwrom")
        assert not found["complete"]
        assert found["note"].endswith("Not found in what was searched: ringwrom. Check the spelling.")
        found = await searched(here, "cats QX-1101 QX-1102 QX-1103 QX-1104 QX-1105")
        assert "searched: qx-1101, qx-1102, qx-1103, qx-1104." in found["note"]


@pytest.mark.parametrize("query", ["犬を連れて泊まれる部屋", "犬は泊まれますか", "泊まれる犬"])
async def test_a_word_of_one_kanji_is_found_in_a_sentence(tmp_path: Path, query: str) -> None:
    for number in range(12):
        book(tmp_path, {f"m/{number}.md": f"# 項目{number}\n\n連絡を取り、泊まる人の部屋の鍵を渡す。{number}\n"})
    book(tmp_path, {"m/pets.md": "# ペット同伴\n\n小型の犬と猫は、届け出れば同室できます。\n"})
    async with desk(settings_for(tmp_path)) as here:
        assert (await searched(here, query))["results"][0]["ref"]["path"] == "pets.md"


@pytest.mark.parametrize("query", ["unscrew", "grease", "締める", "torque", "a/b"])
async def test_a_word_behind_an_escape_of_json_is_found_as_such(tmp_path: Path, query: str) -> None:
    steps = "Open the valve.\nunscrew the cap.\n\tgrease it.\r\nボルトを締める。 \\torque a/b"
    (tmp_path / "m").mkdir()
    (tmp_path / "m/a.json").write_text(json.dumps({"steps": steps}).replace("a/b", "a\\/b"), encoding="utf-8")
    async with desk(settings_for(tmp_path)) as here:
        found = await searched(here, query)
        assert "note" not in found
        assert found["results"][0]["score"] > 0.3
        assert "\\n" not in found["results"][0]["snippet"]


@pytest.mark.parametrize("escape", ["\\u000a", "\\u000d\\u000a", "\\u0009", "\\n"])
@pytest.mark.parametrize("indent", [1, None])
async def test_line_ends_that_json_writes_as_numbers_are_none_of_the_file(
    tmp_path: Path, escape: str, indent: int | None
) -> None:
    texts = [f"Entry {number} tells of pumps.\nIt goes on with pipes." for number in range(1_200)]
    texts[900] = "The zorgonium valve opens.\nThen it closes."
    book(tmp_path, {"m/many.json": json.dumps(texts, indent=indent).replace("\\n", escape)})
    line = 902
    async with desk(settings_for(tmp_path)) as here:
        for query in ("zorgonium valve", "opens then"):
            [row, *_] = await rows(here, query)
            assert row.get("match_line", row["line"]) == line
            assert "zorgonium valve opens" in row["snippet"]
            page = await here.call("manual_scan", **row["ref"], max_chars=256)
            assert "zorgonium valve opens" in page["text"]


@pytest.mark.parametrize("sign", ["=>", "==", "===", "=:", "=~", "!=", "??", "||>"])
async def test_signs_of_code_are_found_and_shown(tmp_path: Path, sign: str) -> None:
    book(tmp_path, {"m/signs.md": f"# Of signs\n\n{FILLER * 8}Write a {sign} b here.\n{FILLER * 8}"})
    book(tmp_path, {"m/other.md": f"# Other\n\n{FILLER}Write a and b.\n"})
    async with desk(settings_for(tmp_path)) as here:
        for query in (sign, f"What does {sign} mean?"):
            row = (await rows(here, query))[0]
            assert row["title"] == "Of signs"
            assert f"a {sign} b" in row["snippet"]
        given = {"manual_id": "m", "required_terms": [sign], "inline_hits": {"limit": 1}}
        await here.call("manual_ls")
        hits = await here.call("manual_find", query=f"a {sign} b", **given)
    assert hits["status"] == "required_effective"


async def test_links_in_titles_are_shown_as_their_text_and_rules_of_tables_are_no_part_of_a_snippet(
    tmp_path: Path,
) -> None:
    text = (
        '# [BrowserWindow](#browserwindow)\n\n## [`npm ci`](/commands/npm-ci) or [b](x_(y) "z") ![i](i.png)[](#t)\n\n'
        "### `[a](b)` [c][d]\n\n| Key | Gasket |\n| :-- | --: |\n|---|---|\n| Left | washer - or none |\n"
    )
    book(tmp_path, {"m/a.md": text})
    async with desk(settings_for(tmp_path)) as here:
        [row] = await rows(here, "gasket washer")
        assert row["title"] == "`[a](b)` [c][d]"
        assert row["above"] == "BrowserWindow > `npm ci` or b i"
        assert row["snippet"] == "| Key | Gasket | | Left | washer - or none |"
        listed = (await here.call("manual_toc", manual_id="m", depth="deep", path_prefix="a.md"))["items"]
        assert [each["title"] for each in listed[0]["headings"]] == ["BrowserWindow", "`npm ci` or b i", row["title"]]


@pytest.mark.parametrize("query", ["TN-4100K", "TN4100K", "tn4100k", "ＴＮ４１００－Ｋ", "tn-4100-k"])
@pytest.mark.parametrize("written", ["TN-4100K", "TN4100K", "tn4100-k"])
async def test_a_code_is_found_with_hyphens_and_without_in_any_case(tmp_path: Path, query: str, written: str) -> None:
    book(tmp_path, {"m/a.md": f"# Toner\n\nOrder {written} again.\n"})
    book(tmp_path, {"m/b.md": "# Drum\n\nOrder TN-4200K or DR-4100 again.\n"})
    async with desk(settings_for(tmp_path)) as here:
        found = await searched(here, query)
        assert found["results"][0]["ref"]["path"] == "a.md"
        assert "note" not in found


async def test_a_folder_without_manuals_is_told_and_not_that_other_words_would_help(tmp_path: Path) -> None:
    async with desk(settings_for(tmp_path)) as here:
        failed = await here.fail("manual_search", query="pump")
    assert failed["code"] == "not_found"
    assert "set manuals.root (MANUALS_ROOT) to the folder that has them." in failed["message"]


# Arguments


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "query is missing; pass the question, a string of 1 to 10000 characters."),
        ({"query": " \n" * 99}, "query must be the question, a string of 1 to 10000 characters, got 198 blanks."),
        ({"query": "a", "limit": 0}, "limit must be an integer of 1 or more, got 0."),
        ({"query": "a", "manual_id": "nowhere"}, "There is no manual 'nowhere'; take an id from manual_ls."),
        ({"query": "a", "required_terms": ["a"]}, '"required_terms" is no argument of manual_search; leave it out. '
         "It takes query, limit, manual_id, path_prefix."),
    ],
)  # fmt: skip
async def test_what_cannot_be_asked_says_why(root: Path, arguments: dict[str, Any], message: str) -> None:
    async with desk(settings_for(root)) as here:
        assert (await here.fail("manual_search", **arguments))["message"] == message


async def test_a_limit_comes_as_text_too_and_over_twenty_it_is_twenty(root: Path) -> None:
    for number in range(30):
        book(root, {f"pumps/{number}.md": "# Rust\n\nrust\n"})
    async with desk(settings_for(root)) as here:
        assert len(await rows(here, "rust", limit="7")) == 7
        assert len(await rows(here, "rust", limit=1000)) == 20


def test_a_setting_turns_it_off(tmp_path: Path) -> None:
    manuals = ManualsSettings(root=str(tmp_path), search_tool=False)
    names = [tool.name for each in configured_toolsets(Settings(manuals=manuals)) for tool in each.tools]
    assert "manual_ls" in names
    assert "manual_search" not in names


@pytest.mark.parametrize(
    ("root_there", "tool", "told"), [(True, True, True), (True, False, False), (False, True, False)]
)
async def test_the_instructions_say_to_start_with_it(root_there: bool, tool: bool, told: bool) -> None:
    manuals = ManualsSettings(root="r" if root_there else None, search_tool=tool)
    settings = Settings(manuals=manuals, server=ServerSettings(instructions=True))
    async with connected_client(settings, initialize=False) as client:
        text = (await client.initialize())["result"]["instructions"]
    assert ("start with manual_search" in text) is told
    assert len(text) <= 600


# Room


async def test_where_names_take_all_the_room_rows_are_left_out_and_it_is_said(tmp_path: Path) -> None:
    for number in range(9):
        book(tmp_path, {f"m/{('folder' * 10 + '/') * 8}{number}.md": "# Rust\n\nrust\n"})
    async with desk(settings_for(tmp_path)) as here:
        found = await searched(here, "rust")
        assert 1 <= len(found["results"]) < 5
        assert size(found) <= 2500
        left_out = "Results were left out for lack of room; raise limit, or narrow the search with path_prefix."
        assert found["note"] == left_out
        assert len(await rows(here, "rust", limit=9)) > len(found["results"])
        assert len(await rows(here, "rust", limit=1)) == 1
        weak = await searched(here, "rust and some words about quite another thing that nobody has written down")
        assert len(weak["results"]) < 5
        assert weak["note"].startswith("Nothing matches well;")
        assert weak["note"].endswith(left_out)


async def test_however_long_the_names_rows_fit_and_each_snippet_says_something(tmp_path: Path) -> None:
    text = 'The \\"rust\\" on the gate of the harbour is brown. ' * 9
    lengths = range(1, 800, 20)
    for length in lengths:
        for number in range(5):
            folders = "/".join(["f" * 40] * (length // 41) + ["f" * (length % 41 or 1)])
            book(tmp_path, {f"m{length}/{folders}/{number}.md": f"# Rust\n\n{text}\n"})
    async with desk(settings_for(tmp_path)) as here:
        for length in lengths:
            found = await searched(here, "rust", manual_id=f"m{length}")
            assert size(found) <= 2500
            assert size(await searched(here, "rust", manual_id=f"m{length}", limit=20)) <= 20 * 500
            assert len(found["results"]) == 5 or "left out" in found["note"]
            snippets = [row["snippet"] for row in found["results"]]
            assert [each for each in snippets if not 12 <= len(each) <= 200 or "rust" not in each] == [], length


async def test_a_snippet_has_no_tags_comments_imports_or_shortcodes(tmp_path: Path) -> None:
    text = (
        "# Rust\n\nimport Tabs from '@theme/Tabs'\n\n<Tabs groupId=\"os\">\n<!-- rust: to do -->\n"
        "{{< note >}}Remove rust with `<brush>`.{{< /note >}} {% hint %}Then oil it.{% endhint %}\n</Tabs>\n"
        "\n```html\n<div>oil</div>\n```\n"
    )
    book(tmp_path, {"m/rust.md": text})
    async with desk(settings_for(tmp_path)) as here:
        [row] = await rows(here, "remove rust")
    assert row["snippet"] == "Remove rust with `<brush>`. Then oil it. ```html <div>oil</div> ```"


# Where it is


@pytest.mark.rule("M6.6")
@every_revision
@pytest.mark.parametrize("max_chars", [256, 2000, 12_000])
async def test_the_match_of_a_long_section_is_on_the_first_page_that_is_read(
    tmp_path: Path, revision: str, max_chars: int
) -> None:
    text = f"# Long\n\n{FILLER * 400}The gasket is blue.\n{FILLER * 400}\n# Next\n\nmore\n"
    book(tmp_path, {"m/long.md": text})
    line = text[: text.index("The gasket")].count("\n") + 1
    async with desk(settings_for(tmp_path), revision) as here:
        [row] = await rows(here, "blue gasket")
        assert (row["line"], row["match_line"]) == (1, line)
        assert row["ref"] == {"manual_id": "m", "path": "long.md", "start_line": 1, "match_line": line}
        read = await here.call("manual_read", ref=row["ref"], max_chars=max_chars)
        assert "The gasket is blue.\n" in read["text"]
        assert "# Next" not in read["text"]
        assert len(read["text"]) <= max_chars
        assert read["text"].startswith(FILLER.rstrip("\n")[:20])
        assert read["note"].startswith("This section is long, so the text starts at line ")
        if revision == "legacy" and read["truncated"]:
            following = await here.call("manual_read", ref=row["ref"], max_chars=max_chars)
            assert following["applied"]["mode"] == "scan_fallback"
            assert text.index(following["text"], text.index("The gasket")) > 0
        whole = await here.call("manual_read", ref={**row["ref"], "match_line": 5}, max_chars=max_chars)
        assert whole["text"].startswith("# Long\n")


async def test_another_match_in_the_same_section_is_another_place_to_read(tmp_path: Path) -> None:
    book(tmp_path, {"m/a.md": f"# A\n\n{FILLER * 300}A blue gasket.\n{FILLER * 300}A red valve.\n{FILLER * 300}"})
    async with desk(settings_for(tmp_path)) as here:
        [gasket], [valve] = await rows(here, "blue gasket"), await rows(here, "red valve")
        for row, words in ((gasket, "A blue gasket."), (valve, "A red valve."), (gasket, "A blue gasket.")):
            read = await here.call("manual_read", ref=row["ref"], max_chars=1000)
            assert words in read["text"]
        going_on = await here.call("manual_read", ref=gasket["ref"], max_chars=1000)
        assert "A blue gasket." not in going_on["text"]
        assert going_on["applied"]["mode"] == "scan_fallback"


async def test_a_section_with_sub_sections_ends_where_it_did_and_a_place_outside_it_is_ignored(tmp_path: Path) -> None:
    book(tmp_path, {"m/a.md": f"# A\n\n{FILLER * 40}\n## B\n\n{FILLER * 40}end of B\n\n# C\n\nc\n"})
    async with desk(settings_for(tmp_path), "modern") as here:
        ref = {"manual_id": "m", "path": "a.md", "start_line": 1}
        from_b = await here.call("manual_read", ref={**ref, "match_line": 84}, max_chars=2000)
        assert from_b["text"].endswith("end of B\n")
        for outside in ({"match_line": 89}, {"match_line": 10**9}, {"char_offset": 10**9}, {"match_line": None}):
            read = await here.call("manual_read", ref={**ref, **outside}, max_chars=2000)
            assert read["text"].startswith("# A\n")
        error = await here.fail("manual_read", ref={**ref, "match_line": "x"})
        assert error["message"] == 'ref.match_line must be an integer of 1 or more, got "x".'


@pytest.mark.parametrize("escaped", [True, False])
async def test_each_entry_of_json_is_shown_without_its_neighbour_and_read(tmp_path: Path, escaped: bool) -> None:
    """The rows of the index begin anywhere in a line, and have more characters in the file than in the index."""
    entries = [{"id": f"needle{number}q", "text": "歯車 " * (37 * number % 900)} for number in range(160)]
    book(tmp_path, {"m/many.json": json.dumps(entries, indent=1, ensure_ascii=escaped)})
    async with desk(settings_for(tmp_path)) as here:
        for number in range(0, 160, 8):
            [row] = await rows(here, f"needle{number}q")
            assert f"needle{number}q" in row["snippet"]
            page = await here.call("manual_scan", **row["ref"], max_chars=256)
            assert f"needle{number}q" in page["text"]


@pytest.mark.parametrize("path", ["page.json", "page.md"])
@pytest.mark.parametrize(
    ("asked", "written"),
    [
        ("E-104", "see E-104 here"),
        ("80040154", "call 0x80040154 here"),
        ("certificates", "call renewBranchCertificate here"),
        ("AL2555 code", "Code AL-2555 stops it."),
        ("what does AL-2555 stand for", "Code AL2555 stops it."),
        ("getElementById", "An element is a node."),
        ("snakeCaseName", "Set snake_case_name here."),
        ("0xDEADBEEF", "DEADBEEF is the mark."),
    ],
)
async def test_a_match_is_read_at_its_place_in_whichever_spelling_and_for_a_required_term_alone(
    tmp_path: Path, path: str, asked: str, written: str
) -> None:
    lines = [*["Some words of boxes."] * 400, written, *["Some words of boxes."] * 400]
    text = json.dumps(lines, indent=1) if ".json" in path else "\n".join(["# Page", *lines])
    line = text[: text.index(written)].count("\n") + 1
    async with desk(settings_for(book(tmp_path, {f"m/{path}": text}))) as here:
        [row, *_] = [row for row in await rows(here, asked) if written[:-1] in row["snippet"]]
        assert row["match_line"] == line
        ref = dict(row["ref"])
        tool = ref.pop("tool", "manual_read")
        assert written in (await here.call(tool, **(ref if tool == "manual_scan" else {"ref": ref})))["text"]
        for query, term in ((asked, "page"), *([("証明書の更新", asked)] if asked == "E-104" else [])):
            given = {"query": query, "manual_id": "m", "required_terms": [term], "inline_hits": {}}
            hits = (await here.call("manual_find", **given))["inline_hits"]["items"]
            at = "start_line" if ".json" in path else "match_line"
            assert line in [hit["ref"].get(at) for hit in hits]


async def test_a_paragraph_on_one_long_line_is_read_at_the_match(tmp_path: Path) -> None:
    book(tmp_path, {"m/a.md": f"# A\n\n{'長い文章。' * 8000}歯車は青い。{'長い文章。' * 8000}\n"})
    async with desk(settings_for(tmp_path), "modern") as here:
        [row] = await rows(here, "歯車")
        assert row["ref"] == {
            "manual_id": "m", "path": "a.md", "start_line": 1, "match_line": 3, "char_offset": row["char_offset"],
        }  # fmt: skip
        read = await here.call("manual_read", ref=row["ref"])
        assert "歯車は青い。" in read["text"]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp932", "euc_jp"])
@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
async def test_lines_are_those_that_a_scan_counts_whatever_the_encoding(
    tmp_path: Path, encoding: str, newline: str
) -> None:
    text = "# 説明\n\n" + "何も書いてありません。\n" * 500 + "歯車は青い。\n" + "何も書いてありません。\n" * 10
    book(tmp_path, {"m/a.md": text.replace("\n", newline).encode(encoding)})
    async with desk(settings_for(tmp_path)) as here:
        [row] = await rows(here, "青い歯車")
        assert "歯車は青い。" in row["snippet"]
        page = await here.call("manual_scan", manual_id="m", path="a.md", start_line=row["match_line"])
        assert page["text"].startswith("歯車は青い。\n")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("---\ntitle: Gasket\n---\n\n# One\n\nThe gasket is blue.\n", 5),
        ("---\ntitle: Gasket\n---\nThe gasket is blue.\n\n# One\n\nother\n", 1),
        ("# One\n\nother\n\n```\n# no heading\n```\nThe gasket is blue.\n", 1),
        ("+++\ntitle = 'x'\n+++\n\nThe gasket is blue.", 1),
    ],
)
async def test_the_text_shown_is_that_of_the_section(tmp_path: Path, text: str, line: int) -> None:
    book(tmp_path, {"m/a.md": text})
    async with desk(settings_for(tmp_path)) as here:
        row = (await rows(here, "blue gasket"))[0]
        assert row["line"] == line
        assert "The gasket is blue." in row["snippet"]
        assert "The gasket is blue." in (await here.call("manual_read", ref=row["ref"]))["text"]


async def test_a_match_in_a_heading_alone_shows_how_its_section_begins(tmp_path: Path) -> None:
    book(tmp_path, {"m/a.md": "# Gasket\n\nIt is blue.\n\n## Empty\n## Other\n\nx\n"})
    async with desk(settings_for(tmp_path)) as here:
        assert (await rows(here, "gasket"))[0]["snippet"] == "It is blue."
        assert (await rows(here, "empty"))[0]["snippet"] == ""


@pytest.mark.parametrize("name", possible("a b", "ä", "電源", "a'b", 'a"b', "100%", "a#b", "e\u0301"))
async def test_files_with_odd_names_are_found_and_read(tmp_path: Path, name: str) -> None:
    book(tmp_path, {f"{name}/{name}/{name}.md": "# A\n\nThe gasket is blue.\n"})
    async with desk(settings_for(tmp_path)) as here:
        [row] = await rows(here, "gasket")
        assert (await here.call("manual_read", ref=row["ref"]))["text"] == "# A\n\nThe gasket is blue."


async def test_a_file_that_has_changed_since_it_was_indexed_is_shown_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("responses_mcp.manuals.files.folder._FRESH_NS", -(10**18))
    book(tmp_path, {"m/a.md": "# A\n\nThe gasket is blue.\n"})
    book(tmp_path, {"m/b.md": "# B\n\nThe gasket is red.\n"})
    async with desk(settings_for(tmp_path)) as here:
        await searched(here, "gasket")
        book(tmp_path, {"m/a.md": "# New\n\nSomething else.\n"})
        (tmp_path / "m/b.md").unlink()
        found = {row["ref"]["path"]: row for row in await rows(here, "gasket")}
    assert {path: row["snippet"] for path, row in found.items()} == {
        "a.md": "The gasket is blue.",
        "b.md": "The gasket is red.",
    }


# By which words


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("what do E-104 and 0x80070005 mean", "error.md"),
        ("the meaning of 0x80070005", "error.md"),
        ("what does mean", "meaning.md"),
        ("What does mean speed say of it?", "meaning.md"),
    ],
)
async def test_mean_is_no_word_of_a_question_what_something_means(tmp_path: Path, query: str, path: str) -> None:
    book(tmp_path, {"m/error.md": "# Error\n\nIt is 0x80070005, access denied.\n"})
    book(tmp_path, {"m/meaning.md": "# Meaning\n\nWhat the words mean, and their meaning.\n"})
    async with desk(settings_for(tmp_path)) as here:
        assert (await rows(here, query))[0]["ref"]["path"] == path


OKURIGANA = [
    ("繰越", "繰り越し"),
    ("引越し", "引っ越し"),
    ("取扱い", "取り扱い"),
]


@pytest.mark.parametrize(("one", "other"), [*OKURIGANA, *(pair[::-1] for pair in OKURIGANA)])
async def test_a_japanese_word_is_found_with_and_without_its_okurigana(tmp_path: Path, one: str, other: str) -> None:
    book(tmp_path, {"m/right.md": f"# 案内\n\nここでは{other}について説明します。\n"})
    for number, word in enumerate(("越し方", "合わせ方", "扱い方", "申し出", "込み具合", "引き出し", "替え玉")):
        book(tmp_path, {f"m/{number}.md": f"# 案内\n\nここでは{word}について説明します。\n"})
    async with desk(settings_for(tmp_path)) as here:
        [row, *_] = await rows(here, one)
        assert (row["ref"]["path"], other in row["snippet"]) == ("right.md", True)
        await here.call("manual_ls")
        asked = {"query": f"{one}の案内", "manual_id": "m", "required_terms": [one]}
        payload = await here.call("manual_find", **asked, inline_hits={})
        assert payload["inline_hits"]["items"][0]["ref"]["path"] == "right.md"


async def test_no_place_is_shown_for_a_japanese_word_of_which_a_text_has_one_character(tmp_path: Path) -> None:
    book(tmp_path, {"m/a.md": "# 繰越\n\n" + "ここは別の話です。\n" * 400 + "布を繰るときの話です。\n"})
    async with desk(settings_for(tmp_path)) as here:
        await here.call("manual_ls")
        asked = {"query": "証明書の更新", "manual_id": "m", "required_terms": ["繰越"], "inline_hits": {}}
        [hit] = (await here.call("manual_find", **asked))["inline_hits"]["items"]
        assert "繰る" not in hit["ref"]["snippet"]


@every_revision
async def test_folded_forms_of_words_are_never_shown(tmp_path: Path, revision: str) -> None:
    book(tmp_path, {"m/a.md": "# サーバー\n\nサーバのポートはストレージごとに設定する。例外としてルーターは別。\n"})
    book(tmp_path, {"m/b.md": "# ルーター\n\nルーターのポート。サーバーとの違いはストレージの有無。\n"})
    async with desk(settings_for(tmp_path), revision) as here:
        shown = [await here.call("manual_ls"), await searched(here, "サーバーとルーターの違い")]
        for terms in (["ポート"], ["サーバー", "ゾーン"], ["モーター"]):
            arguments = {"query": "サーバーのポートのストレージ", "manual_id": "m", "required_terms": terms}
            found = await here.call("manual_find", **arguments, inline_hits={}, include_claim_graph=True)
            shown.append(found)
            shown += [await here.call("manual_hits", trace_id=found["trace_id"], kind=kind) for kind in KINDS]
    text = json.dumps(shown, ensure_ascii=False)
    for folded in ("サバ", "ポト", "ストレジ", "ゾン", "モタ", "ルタ"):
        assert folded not in text


# What was not searched


async def test_what_was_not_searched_is_said_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("responses_mcp.manuals.files.folder.LARGEST", 1000)
    book(
        tmp_path,
        {"m/a.md": "# A\n\nThe gasket is blue.\n", "m/large.md": "# A\n\n" + "gasket " * 1000, "n/none.md": "\0"},
    )
    settings = Settings(manuals=ManualsSettings(root=str(tmp_path)))
    async with desk(settings) as here:
        found = await searched(here, "gasket")
        assert [row["ref"]["path"] for row in found["results"]] == ["a.md"]
        assert found["complete"] is False
        assert found["reason"] == "m: 1 file not searched (too_large); n: 1 file not searched (not_text)"
        assert (await searched(here, "gasket", path_prefix="a.md"))["complete"] is True


# Hits of manual_find


@pytest.mark.rule("M5.11")
async def test_hits_say_where_the_match_is_within_the_fields_of_the_contract(tmp_path: Path) -> None:
    text = f"# Long\n\n## Part\n\n{FILLER * 400}The gasket is blue.\n{FILLER * 9}"
    book(tmp_path, {"m/long.md": text})
    line = text[: text.index("The gasket")].count("\n") + 1
    async with desk(settings_for(tmp_path)) as here:
        await here.call("manual_ls")
        arguments = {"query": "blue gasket", "manual_id": "m", "required_terms": ["gasket"], "inline_hits": {}}
        found = await here.call("manual_find", **arguments)
        [hit] = found["inline_hits"]["items"]
        assert hit.keys() == {"ref", "title", "score", "matched_tokens"}
        ref = hit["ref"]
        assert (ref["start_line"], ref["match_line"], ref["above"]) == (3, line, "Long")
        assert "The gasket is blue." in ref["snippet"]
        assert "The gasket is blue." in (await here.call("manual_read", ref=ref))["text"]
        [row] = (await here.call("manual_hits", trace_id=found["trace_id"]))["items"]
        assert row["ref"] == {"path": "long.md", "start_line": 3, "match_line": line}


@pytest.mark.rule("M7.6")
@every_revision
async def test_the_ref_of_a_hit_in_json_is_taken_as_it_is_by_the_tool_that_it_names(
    tmp_path: Path, revision: str
) -> None:
    entries = [{"id": number, "text": "lorem ipsum dolor sit amet"} for number in range(3000)]
    entries[2345]["text"] = "a blue gasket"
    book(tmp_path, {"m/line.json": json.dumps(entries)})
    book(tmp_path, {"m/lines.json": json.dumps(entries, indent=1)})
    async with desk(settings_for(tmp_path), revision) as here:
        await here.call("manual_ls")
        arguments = {"query": "blue gasket", "manual_id": "m", "required_terms": ["gasket"], "inline_hits": {}}
        found = await here.call("manual_find", **arguments)
        top = await here.call("manual_hits", trace_id=found["trace_id"], kind="integrated_top")
        plain = await here.call("manual_hits", trace_id=found["trace_id"])
        refs = [row["ref"] for row in (*found["inline_hits"]["items"], *top["items"])]
        refs += [{**row["ref"], "manual_id": plain["manual_id"]} for row in plain["items"]]
        refs += [row["ref"] for row in await rows(here, "blue gasket")]
        assert len(refs) == 8
        for ref in refs:
            assert ref["tool"] == "manual_scan"
            page = await here.call("manual_scan", **ref)
            assert "a blue gasket" in page["text"][:400]
            refused = await here.fail("manual_read", ref=ref)
            assert (refused["code"], refused["message"]) == (
                "invalid_scope",
                "path is a JSON file, which has no sections; read it with manual_scan.",
            )


async def test_a_scan_begins_where_the_ref_of_a_hit_says_and_refuses_what_is_no_place(root: Path) -> None:
    text = "".join(f"# Part {number}\n\nseal\n" for number in range(30))
    book(root, {"pumps/long.md": text})
    async with desk(settings_for(root), "modern") as here:
        page = await here.call("manual_scan", manual_id="pumps", path="long.md", start_line=1, match_line=10)
        assert page["text"] == text[text.index("# Part 3\n") :]
        error = await here.fail("manual_scan", manual_id="pumps", path="long.md", char_offset="x")
        assert error["message"] == 'char_offset must be an integer of 0 or more, got "x".'
