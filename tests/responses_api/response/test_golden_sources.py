"""Texts in the manner of real models, English and Japanese, and what an answer makes of their sources (spec 3.2)."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from responses_mcp.answers import Answer, Answers
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


def expected(case: dict[str, Any]) -> str:
    text: str = case["text"]
    if "block" in case:
        return f"{text}\n\nSources:\n" + "\n".join(case["block"])
    if "adds" in case:
        return "\n".join([text, *case["adds"]])
    return text if case.get("stays") else case["answer"]


async def asked(case: dict[str, Any], text: str) -> Answer:
    search = bodies.web_search_call(["q"])
    search["action"]["sources"] = [{"type": "api", "name": name} for name in case.get("named", ())]
    body = bodies.answer(text, annotations=map(annotation, case.get("cited", ())), searches=[search])
    api, _ = stub_api(ok(body))
    answers = Answers(Settings(policy=PolicySettings(max_citations=10)), api=api, today=lambda: TODAY)
    return await answers.answer("Why?")


@pytest.mark.rule("spec 6")
@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
async def test_a_text_gets_what_its_sources_lack_and_no_second_header(case: dict[str, Any]) -> None:
    answer = await asked(case, case["text"])
    assert answer.text == expected(case)
    assert [each.published_at for each in answer.citations] == case["dates"]
    assert await asked(case, answer.text) == answer


def test_there_are_enough_texts_in_both_languages() -> None:
    japanese = [case for case in CASES if not case["text"].isascii()]
    assert (len(CASES) >= 60, len(japanese) >= 15) == (True, True)
