"""The fake's `/embeddings`, held against the official client: shapes, both forms of numbers, refusals."""

from typing import Any

import openai
import pytest
import trio
from openai.types import CreateEmbeddingResponse

from responses_mcp.testing import Error, FakeApi, answer_with_embeddings, count_words, open_fake_api
from tests.testing.official_types import check_types

WAIT = 30.0  # seconds; a bound for a stuck machine, not an expectation


async def created(api: FakeApi, **given: Any) -> CreateEmbeddingResponse:
    client = openai.AsyncOpenAI(api_key="sk-fake", base_url=api.base_url, max_retries=0)
    with trio.fail_after(WAIT):
        async with client:
            response: CreateEmbeddingResponse = await client.embeddings.create(**given)
    return response


@pytest.mark.parametrize("form", [{}, {"encoding_format": "float"}, {"encoding_format": "base64"}])
async def test_the_official_client_gets_vectors_of_its_texts_in_order(form: dict[str, str]) -> None:
    async with open_fake_api() as api:
        found = await created(api, model="m", input=["rotate keys", "logs"], **form)
    check_types(found)
    assert [each.index for each in found.data] == [0, 1]
    assert found.model == "m"
    if form.get("encoding_format") != "base64":
        for vector, expected in zip(found.data, count_words(["rotate keys", "logs"]), strict=True):
            assert vector.embedding == pytest.approx(expected, abs=1e-6)


async def test_a_test_brings_vectors_of_its_own() -> None:
    async with open_fake_api(embed=lambda texts: [[float(len(text))] for text in texts]) as api:
        found = await created(api, model="m", input=["a", "abc"])
    assert [each.embedding for each in found.data] == [[1.0], [3.0]]


@pytest.mark.parametrize(
    "body", [None, [], {}, {"input": "a"}, {"model": "m"}, {"model": "m", "input": []}, {"model": "m", "input": [""]}]
)
def test_what_the_api_refuses_the_fake_refuses(body: object) -> None:
    reply = answer_with_embeddings(body)
    assert isinstance(reply, Error)
    assert reply.status == 400
