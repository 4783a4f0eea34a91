"""What becomes of measured values: results as a file, targets, tables, pictures and a page. All values are made up."""

import json
import os
import platform
import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from tests.bench import page, plots, table
from tests.bench.results import Machine, Results, Sample, load
from tests.bench.targets import ELSEWHERE, EVERY, TARGETS, Target, Verdict

SVG = "{http://www.w3.org/2000/svg}"
SERVERS = ("ours", "original", "python-sdk", "typescript-sdk")
CHARACTER = 7.4  # width of one at 13 pixels in a wide font, on average

MACHINE = Machine(
    processor="A Processor",
    cores=2,
    memory_gib=7.8,
    system="Linux 6.1",
    python="3.11.7",
    packages={"trio": "0.35.0", "httpcore": "1.0.9"},
    node="20.20.2",
    date="2026-01-31",
    load=(0.1, 1.5),
)
PAGE = "".join(f"\nBefore {name}.\n\n<!-- bench:{name} -->\nold\n<!-- /bench:{name} -->\n" for name in page.BLOCKS)

# What every server is given; a subject's figures are these times a factor, or for what is better when higher divided.
FIGURES = {
    ("start", "initialize", "ms"): 180.0,
    ("memory", "idle", "MiB"): 30.0,
    **{("memory", str(calls), "MiB"): 32.0 for calls in range(100, 1001, 100)},
    ("messages", "ping", "1/s"): 50_000.0,
    ("messages", "tools/list", "1/s"): 40_000.0,
    **{("calls", case, "s"): 0.5 for case in ("1", "10", "100", "500", "1000", "1000/1024 files")},
    **{("calls_failed", case, "calls"): 0.0 for case in ("1", "10", "100", "500", "1000", "1000/1024 files")},
    ("call_cpu", "1000 at once", "ms"): 1.0,
    ("cancel", "one", "ms"): 1.0,
    ("cancel", "500 at once", "ms"): 50.0,
    ("body_ping", "100 of 1 MB", "ms"): 3.0,
}
Changes = Mapping[tuple[str, str, str], tuple[float, ...] | None]


def made_up(changes: Changes | None = None, *, servers: tuple[str, ...] = SERVERS) -> Results:
    """Return results in which each server is twice as bad as the one before; `changes` replaces values or, with None, takes them out."""
    values: dict[tuple[str, str, str], tuple[float, ...] | None] = {}
    units: dict[tuple[str, str], str] = {}
    for (measure, case, unit), figure in FIGURES.items():
        units[measure, case] = unit
        for index, subject in enumerate(servers):
            own = figure / 2**index if measure == "messages" else figure * 2**index
            values[measure, case, subject] = (own, 0.9 * own, 1.1 * own)
    values["start", "exit", "python"] = (10.0, 11.0, 12.0)
    values["start", "exit", "trio"] = (160.0, 170.0, 180.0)
    values.update(changes or {})
    samples = tuple(
        Sample(measure, case, subject, units.get((measure, case), "ms"), found)
        for (measure, case, subject), found in values.items()
        if found is not None
    )
    return Results(MACHINE, {one.subject: f"{one.subject} 1.2.3" for one in samples}, 3, samples)


def judged(wording: str, results: Results) -> Verdict | None:
    [target] = [target for target in TARGETS if target.wording.startswith(wording)]
    return target.judge(results)


def cells(markdown: str, first: str) -> list[str]:
    """Return the cells of the row of a table that begins with `first`."""
    [row] = [line for line in markdown.splitlines() if line.startswith(f"| {first} |")]
    return [cell.strip() for cell in row.strip("|").split("|")]


# Results


def test_results_that_were_written_and_read_are_the_same(tmp_path: Path) -> None:
    results = made_up({("start", "exit", "trio"): (0.1 + 0.2, 1e-9, 3.0)})
    results.write(tmp_path / "results.json")
    assert Results.read(tmp_path / "results.json") == results


def test_the_file_of_results_has_medians_for_people(tmp_path: Path) -> None:
    made_up().write(tmp_path / "results.json")
    found = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))["samples"]
    assert [one["median"] for one in found if one["subject"] == "trio"] == [170.0]


def test_a_figure_that_is_no_number_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="JSON"):
        made_up({("start", "exit", "trio"): (float("nan"),)}).write(tmp_path / "results.json")
    assert list(tmp_path.iterdir()) == []


def test_what_was_not_measured_has_no_median() -> None:
    assert made_up().median("start", "initialize", "ours") == 180.0
    assert made_up().median("start", "initialize", "nobody") is None


def test_a_sample_without_values_is_refused() -> None:
    with pytest.raises(ValueError, match="no values of start exit for trio"):
        Sample("start", "exit", "trio", "ms", ())


@pytest.mark.skipif(os.name != "posix", reason="the benchmarks need Linux or macOS")
def test_the_machine_is_described_without_its_name() -> None:
    machine = Machine.here(load())
    assert machine.python == platform.python_version()
    assert machine.packages.keys() >= {"trio", "httpx", "httpcore", "h11"}
    assert machine.cores > 0
    assert machine.memory_gib > 0
    assert platform.node() not in str(machine).split()


# Targets


def test_a_factor_is_applied_to_a_figure_of_the_same_run() -> None:
    verdict = judged("Start: no more than 1.2", made_up({("start", "initialize", "ours"): (204.0,)}))
    assert verdict == Verdict(204.0, "≤", 204.0, "ms", met=True, note="")
    verdict = judged("Start: no more than 1.2", made_up({("start", "initialize", "ours"): (204.1,)}))
    assert verdict is not None
    assert not verdict.met


def test_the_median_of_the_rounds_counts() -> None:
    verdict = judged("Memory after the start: no", made_up({("memory", "idle", "ours"): (10.0, 90.0, 39.0)}))
    assert verdict is not None
    assert (verdict.figure, verdict.met) == (39.0, True)


def test_one_failed_call_in_one_round_is_too_many() -> None:
    verdict = judged("However many", made_up({("calls_failed", "10", "ours"): (0.0, 0.0, 1.0)}))
    assert verdict is not None
    assert (verdict.figure, verdict.met) == (1.0, False)


def test_the_original_of_this_run_counts_and_only_without_it_that_of_another_machine() -> None:
    [target] = [target for target in TARGETS if target.wording.startswith("1000 calls at once: no more")]
    here = target.judge(made_up({("calls", "1000", "original"): (1.0,)}))
    elsewhere = target.judge(made_up(servers=("ours",)))
    assert here is not None
    assert elsewhere is not None
    assert (here.bound, here.note) == (0.8, "")
    assert (elsewhere.bound, elsewhere.note) == (0.8 * 2.1, ELSEWHERE)


@pytest.mark.parametrize(
    ("wording", "measure", "case", "behind", "ahead"),
    [
        ("Start: ahead of the Py", "start", "initialize", 100.0, 99.9),
        ("Pings a second: ahead of the Py", "messages", "ping", 100.0, 100.1),
    ],
)
def test_who_is_as_good_as_another_is_not_ahead(
    wording: str, measure: str, case: str, behind: float, ahead: float
) -> None:
    for figure, met in ((behind, False), (ahead, True)):
        results = made_up({(measure, case, "ours"): (figure,), (measure, case, "python-sdk"): (100.0,)})
        verdict = judged(wording, results)
        assert verdict is not None
        assert verdict.met is met


def test_a_target_is_not_judged_without_its_peer_or_without_this_server() -> None:
    assert judged("Start: ahead of the Python SDK", made_up(servers=("ours",))) is None
    assert judged("Memory after the start: no more", made_up({("memory", "idle", "ours"): None})) is None


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.wording)
def test_every_target_is_about_cases_that_the_table_names(target: Target) -> None:
    named = {(target.measure, target.case), *(bound.of[:2] for bound in target.bounds if bound.of)}
    assert {key for key in named if key not in table.ROWS} <= {("calls_failed", EVERY)}


# Tables


@pytest.mark.parametrize(
    ("value", "text"),
    [
        *((0, "0"), (0.0004, "0.000"), (0.2, "0.200"), (0.9996, "1.00"), (1.234, "1.23"), (9.996, "10.0")),
        *((41.26, "41.3"), (99.96, "100"), (188.4, "188"), (51946.2, "51,946")),
    ],
)
def test_figures_have_three_digits_that_count(value: float, text: str) -> None:
    assert table.number(value) == text


def test_a_row_has_the_median_its_range_and_how_many_times_as_good_it_is_as_others() -> None:
    assert cells(table.markdown(made_up()), table.ROWS["start", "initialize"]) == [
        *("start, until `initialize` is answered", "ms", "180", "162 – 198"),
        *("360 (2.0×)", "720 (4.0×)", "1,440 (8.0×)", ""),
    ]
    assert cells(table.markdown(made_up()), "pings")[1:6] == [
        *("per s", "50,000", "45,000 – 55,000", "25,000 (2.0×)", "12,500 (4.0×)")
    ]


def test_where_another_is_ahead_the_factor_is_below_one() -> None:
    found = made_up({("start", "initialize", "original"): (90.0,), ("messages", "ping", "original"): (200_000.0,)})
    assert cells(table.markdown(found), table.ROWS["start", "initialize"])[4] == "90.0 (0.50×)"
    assert cells(table.markdown(found), "pings")[4] == "200,000 (0.25×)"


def test_failed_calls_stand_beside_their_time_which_is_then_no_feat() -> None:
    failed = made_up({("calls_failed", "10", "python-sdk"): (0.0, 7.0, 3.0), ("calls_failed", "10", "ours"): (1.0,)})
    assert cells(table.markdown(failed), "10 calls at once")[2:6] == [
        *("0.500, 1 failed", "0.450 – 0.550", "1.00 (2.0×)", "2.00, 7 failed")
    ]


def test_a_program_that_is_no_server_is_named_beside_its_figure() -> None:
    found = made_up({("start", "exit", "ours"): None})
    assert cells(table.markdown(found), table.ROWS["start", "exit"])[2:] == [
        "",
        "",
        "",
        "",
        "",
        "Python 11.0, Trio 170",
    ]


def test_a_case_without_words_is_shown_by_its_name_and_the_memory_of_the_curve_is_not() -> None:
    markdown = table.markdown(made_up({("start", "backwards", "ours"): (1.0,)}))
    assert cells(markdown, "start, backwards")[1:3] == ["ms", "1.00"]
    assert "memory, 500" not in markdown
    assert "calls_failed" not in markdown


def test_a_measure_that_a_server_lacks_leaves_its_field_empty() -> None:
    found = made_up({("cancel", "one", "python-sdk"): None})
    assert cells(table.markdown(found), "cancelling one call")[5] == ""
    assert cells(table.markdown_targets(found), "Cancelling one call: ahead of the Python SDK")[1:] == [
        "",
        "",
        "not measured",
    ]


def test_servers_that_were_not_in_the_run_have_neither_columns_nor_targets() -> None:
    text = table.render(made_up(servers=("ours",)))
    assert "SDK" not in text
    assert "not measured\n" not in text


def test_a_target_shows_what_was_measured_what_was_needed_and_whether_it_was_met() -> None:
    markdown = table.markdown_targets(made_up({("memory", "idle", "ours"): (41.0,)}))
    assert cells(markdown, "Memory after the start: no more than 40 MiB")[1:] == ["41.0 MiB", "≤ 40.0", "**not met**"]
    assert cells(markdown, "Pings a second: at least 40,000")[1:] == ["50,000 per s", "≥ 40,000", "met"]


def test_a_figure_from_another_machine_is_marked_and_said_so_once() -> None:
    markdown = table.markdown_targets(made_up(servers=("ours",)))
    assert cells(markdown, "Cancelling 500 calls at once: no slower than the original")[2] == "≤ 140 ¹"
    assert markdown.count(ELSEWHERE) == 1
    assert ELSEWHERE not in table.markdown_targets(made_up())


def test_the_table_for_terminals_has_columns_and_no_markup() -> None:
    text = table.render(made_up({("memory", "idle", "ours"): (41.0,)}))
    assert not re.search(r"[`*|]", text)
    figures = text.split("\n\n")[0].splitlines()
    ends = {
        line.index(word) + len(word) for line, word in zip(figures[:3], ("this server", "", "180"), strict=True) if word
    }
    assert len(ends) == 1


@pytest.mark.parametrize(
    ("text", "short"),
    [
        ("Python 3.11.7, trio 0.35.0", "Python 3.11, trio 0.35"),
        ("0.9", "0.9"),
        ("127.0.0.1", "127.0.0.1"),
        ("v20.20.2", "v20.20"),
    ],
)
def test_versions_are_shortened_to_two_numbers(text: str, short: str) -> None:
    assert table.short_versions(text) == short


# Pictures


def pictures(results: Results) -> dict[str, ET.Element]:
    return {name: ET.fromstring(text) for name, text in plots.draw(results).items()}


def texts(picture: ET.Element) -> list[str]:
    return ["".join(text.itertext()) for text in picture.iter(f"{SVG}text")]


# Values that come out close to each other, of which some calls failed.
CROWDED = made_up(
    {(measure, case, subject): (1000.5,) for measure, case, _ in FIGURES for subject in SERVERS[:3]}
    | {("start", "exit", "trio"): (1000.5,), ("calls_failed", "1", "ours"): (0.0,)}
)


@pytest.fixture(params=["made up", "crowded", "alone"])
def results(request: pytest.FixtureRequest) -> Results:
    return {"made up": made_up(), "crowded": CROWDED, "alone": made_up(servers=("ours",))}[request.param]


def test_the_same_results_give_the_same_small_pictures(results: Results) -> None:
    drawn = plots.draw(results)
    assert drawn == plots.draw(results)
    assert all(len(text.encode()) < 8192 for text in drawn.values())


def test_pictures_need_nothing_from_elsewhere_and_run_nothing(results: Results) -> None:
    for text in plots.draw(results).values():
        assert re.findall(r"@import|url\(|href|\bon\w+=|https?://(?!www\.w3\.org/2000/svg\")", text) == []


def test_pictures_have_a_title_and_tell_their_figures_to_those_who_do_not_see_them() -> None:
    for name, picture in pictures(made_up()).items():
        title, description = picture.find(f"{SVG}title"), picture.find(f"{SVG}desc")
        assert title is not None
        assert description is not None
        assert picture.get("aria-labelledby") == f"{title.get('id')} {description.get('id')}"
        assert title.text in texts(picture)
        figure = {"start.svg": "180 ms", "calls.svg": "0.500 s", "memory.svg": "32.0 MiB"}[name]
        assert f"this server: {figure}" in (description.text or "")


def test_every_server_and_its_figure_is_written_where_its_line_or_bar_ends() -> None:
    shown = {name: texts(picture) for name, picture in pictures(made_up()).items()}
    assert {"this server", "180 ms", "the original", "360 ms", "an empty Python program", "11.0 ms"} <= set(
        shown["start.svg"]
    )
    assert {"this server: 0.500 s", "TypeScript SDK: 4.00 s", "the upstream alone: 0.2 s"} <= set(shown["calls.svg"])
    assert {"this server: 32.0 MiB", "Python SDK: 128 MiB"} <= set(shown["memory.svg"])


def test_axes_have_names_units_and_round_figures() -> None:
    shown = {name: texts(picture) for name, picture in pictures(made_up()).items()}
    assert {"milliseconds", "0", "500", "1,000", "1,500"} <= set(shown["start.svg"])
    assert {"calls at once", "seconds", "1", "10", "100", "500", "1,000"} <= set(shown["calls.svg"])
    assert {"calls answered, ten at a time", "MiB", "0", "200", "400"} <= set(shown["memory.svg"])


def test_bars_stand_in_the_order_of_their_length() -> None:
    picture = pictures(made_up({("start", "initialize", "python-sdk"): (100.0,)}))["start.svg"]
    bars = list(picture.iter(f"{SVG}rect"))[1:]
    lengths = [float(bar.get("width", "")) for bar in bars]
    assert len(lengths) == 6
    assert lengths == sorted(lengths)


def test_no_text_lies_on_another_or_leaves_the_picture(results: Results) -> None:
    for picture in pictures(results).values():
        width, height = float(picture.get("width", "")), float(picture.get("height", ""))
        boxes = []
        for text in picture.iter(f"{SVG}text"):
            if text.get("transform"):
                continue  # it runs upwards, left of all others
            x, y, length = float(text.get("x", "")), float(text.get("y", "")), CHARACTER * len("".join(text.itertext()))
            left = x - length * {None: 0, "middle": 0.5, "end": 1}[text.get("text-anchor")]
            assert left >= 0
            assert left + length <= width
            assert 13 <= y <= height - 5
            boxes.append((left, left + length, y))
        for index, (left, right, y) in enumerate(boxes):
            for other_left, other_right, other_y in boxes[:index]:
                assert right <= other_left or other_right <= left or abs(y - other_y) >= 15


def test_labels_leave_their_place_only_for_others_and_never_for_one_below_the_axis() -> None:
    assert plots._apart([100, 200], 300) == [100, 200]
    assert plots._apart([101, 290, 100, 100], 300) == [136, 290, 100, 118]
    assert plots._apart([300, 298, 200], 300) == [300, 282, 200]


def test_points_at_which_calls_failed_are_hollow_and_the_picture_says_so() -> None:
    drawn = made_up({("calls_failed", "1000", "python-sdk"): (0.0, 40.0, 0.0)})
    picture = pictures(drawn)["calls.svg"]
    assert [circle.get("class") for circle in picture.iter(f"{SVG}circle")].count("failed") == 1
    assert {"Python SDK: 2.00 s, 40 failed", "calls at once (hollow: some failed)"} <= set(texts(picture))
    assert "hollow" not in plots.draw(made_up())["calls.svg"]


def test_a_line_that_ends_early_says_where() -> None:
    early = pictures(made_up({("calls", "1000", "python-sdk"): None, ("memory", "1000", "python-sdk"): None}))
    assert "Python SDK: 2.00 s at 500" in texts(early["calls.svg"])
    assert "Python SDK: 128 MiB at 900" in texts(early["memory.svg"])


def test_this_server_is_drawn_over_the_others() -> None:
    last = list(pictures(made_up())["calls.svg"].iter(f"{SVG}g"))[-1]
    assert last.get("class") == "ours"


def test_pictures_have_colours_that_can_be_read_on_light_and_on_dark_pages() -> None:
    for picture in plots.draw(made_up()).values():
        light, dark = picture.split("@media (prefers-color-scheme: dark)")
        for part in (light, dark):
            [background] = set(re.findall(r"\.page[^{]*\{ fill: (#\w{6})", part))
            colours = re.findall(r"(?:^|\s)(?:text|\.title) \{ fill: (#\w{6})|\{ color: (#\w{6})", part)
            assert len(colours) == 7
            assert all(contrast(background, one or other) >= 4.5 for one, other in colours)


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours as the guidelines for accessible pages (WCAG) have it."""
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour: str) -> float:
    parts = (int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize(("measure", "case"), [("start", "initialize"), ("calls", None), ("memory", None)])
def test_there_is_no_picture_without_this_server(measure: str, case: str | None) -> None:
    without: Changes = {
        (key[0], key[1], "ours"): None for key in FIGURES if key[0] == measure and case in (key[1], None)
    }
    with pytest.raises(ValueError, match=f"lack {measure}"):
        plots.draw(made_up(without))


# The page


def test_what_stands_between_the_marks_is_replaced_and_the_rest_stays() -> None:
    text = page.written(made_up(), PAGE)
    assert text.count("old") == 0
    assert re.sub(r"(<!-- (bench:\w+) -->\n).*?(<!-- /\2 -->)", r"\1old\n\3", text, flags=re.DOTALL) == PAGE
    assert page.written(made_up(), text) == text


def test_the_page_tells_machine_versions_load_and_who_was_measured() -> None:
    text = page.written(made_up(), PAGE)
    assert "| Machine | A Processor, 2 cores, 7.8 GiB, Linux 6.1 |" in text
    assert "| Versions | Python 3.11, Trio 0.35, httpcore 1.0, Node 20.20 |" in text
    assert "| Run | 3 rounds on 2026-01-31; load 0.1 before and 1.5 after it |" in text
    assert "| the original | original 1.2 |" in text
    assert "| bare Trio | trio 1.2 |" in text


def test_the_page_is_written_with_pictures_and_results_beside_it(tmp_path: Path) -> None:
    (tmp_path / page.PAGE).write_text(PAGE, encoding="utf-8")
    page.update(made_up(), tmp_path)
    assert {file.name for file in (tmp_path / page.FOLDER).iterdir()} == {*plots.draw(made_up()), page.RESULTS}
    assert Results.read(tmp_path / page.FOLDER / page.RESULTS) == made_up()
    assert (tmp_path / page.PAGE).read_text(encoding="utf-8") == page.written(made_up(), PAGE)


@pytest.mark.parametrize(
    ("text", "changes", "said"),
    [
        (PAGE.replace("<!-- /bench:table -->", ""), {}, "<!-- /bench:table -->"),
        (PAGE + PAGE, {}, "each once"),
        (PAGE, {("body_ping", "100 of 1 MB", "ours"): None}, "not measured: The slowest ping"),
    ],
)
def test_a_page_without_marks_or_results_that_lack_what_has_a_target_write_nothing(
    text: str, changes: Changes, said: str, tmp_path: Path
) -> None:
    (tmp_path / page.PAGE).write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=said):
        page.update(made_up(changes), tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == [page.PAGE]
    assert (tmp_path / page.PAGE).read_text(encoding="utf-8") == text


def test_a_machine_without_node_names_none() -> None:
    assert "Node" not in page.machine(replace(made_up(), machine=replace(MACHINE, node=None)))
