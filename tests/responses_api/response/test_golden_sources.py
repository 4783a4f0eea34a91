"""Texts in the manner of real models, English and Japanese, and what an answer makes of their sources (spec 3.2)."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from responses_mcp.asking import Answer, Asker
from responses_mcp.settings.model import PolicySettings, Settings
from responses_mcp.testing import bodies
from responses_mcp.testing.items import url_citation
from tests.responses_api.stub import ok, stub_api

TODAY = "2026-11-22"
TABLE = Path(__file__).with_name("golden_sources.yaml").read_text("utf-8")
CASES: list[dict[str, Any]] = yaml.load(TABLE, yaml.BaseLoader)  # a date stays a text


def annotation(cited: Any) -> dict[str, Any]:
    url, *dated = cited if isinstance(cited, list) else [cited]
    return {**url_citation(url, "", 0, 1), **({"published_at": dated[0]} if dated else {})}


async def asked(case: dict[str, Any], text: str) -> Answer:
    search = bodies.web_search_call(["q"])
    search["action"]["sources"] = [{"type": "api", "name": name} for name in case.get("named", ())]
    body = bodies.answer(text, annotations=map(annotation, case.get("cited", ())), searches=[search])
    api, _ = stub_api(ok(body))
    answers = Asker(Settings(policy=PolicySettings(max_citations=10)), api=api, today=lambda: TODAY)
    return await answers.answer("Why?")


@pytest.mark.rule("spec 6")
@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
async def test_a_text_ends_in_our_block_and_keeps_its_prose(case: dict[str, Any]) -> None:
    answer = await asked(case, case["text"])
    body = case.get("body", case["text"])
    names = [cited[0] if isinstance(cited, list) else cited for cited in case.get("cited", ())] + case.get("named", [])
    listed = [f"- {name} ({date})" for name, date in zip(names, case["dates"], strict=True)]
    assert answer.text == "\n".join([f"{body}\n\nSources:", *(listed or [f"- web_search ({TODAY})"])])
    assert [each.published_at for each in answer.citations] == case["dates"]
    assert await asked(case, answer.text) == answer


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_what_is_taken_out_of_a_text_is_lines_of_sources_alone(case: dict[str, Any]) -> None:
    kept = case.get("body", case["text"]).split("\n")
    for line in [line for line in case["text"].split("\n") if line.strip() and line not in kept][1:]:  # and a header
        assert re.search(r"https?://|^[ >]*[-*・|\d<]|\d{4}-\d\d-\d\d|^(?:Forecast|Warning)|:$|\*\*$", line.strip())


def test_there_are_enough_texts_in_both_languages() -> None:
    japanese = [case for case in CASES if not case["text"].isascii()]
    assert (len(CASES) >= 60, len(japanese) >= 15) == (True, True)
