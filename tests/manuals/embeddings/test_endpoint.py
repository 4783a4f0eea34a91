"""The provider `api`: what is sent where, and replies that are not to be believed."""

import json
import re
from collections.abc import Sequence
from typing import Any

import pytest
import trio

from responses_mcp.manuals.embeddings.embedder import Embedder, EmbeddingFailed, vectors_of
from responses_mcp.manuals.embeddings.endpoint import EmbeddingsEndpoint
from responses_mcp.manuals.embeddings.provider import open_embedder, what_is_sent
from responses_mcp.manuals.embeddings.word_vectors import WordVectors
from responses_mcp.settings.model import EmbeddingsSettings, ManualsSettings, OpenAISettings, Settings
from tests.responses_api.stub import KEY, Play, Reply, StubConnections, ok, refused, stub_api

pytestmark = pytest.mark.usefixtures("autojump_clock")


def endpoint(*script: Play, **given: Any) -> tuple[EmbeddingsEndpoint, StubConnections]:
    api, stub = stub_api(*script)
    return EmbeddingsEndpoint(EmbeddingsSettings(provider="api", **given), lambda: api), stub


def item(index: object, embedding: object) -> dict[str, Any]:
    return {"object": "embedding", "index": index, "embedding": embedding}


def reply(*items: object, **more: Any) -> Reply:
    return ok({"object": "list", "data": list(items), "model": "m", **more})


def floats(vectors: Sequence[Sequence[float]]) -> list[list[float]]:
    return [list(vector) for vector in vectors]


async def test_one_request_has_all_texts_and_goes_where_the_answers_come_from() -> None:
    embedder, stub = endpoint(reply(item(0, [1, 2]), item(1, [3, 4])))
    assert floats(await embedder.embed(["a", "鍵\ud800"])) == [[1, 2], [3, 4]]
    [sent] = stub.sent
    assert sent.url == "https://api.openai.com/v1/embeddings"
    assert sent.headers["authorization"] == f"Bearer {KEY}"
    assert json.loads(sent.body) == {
        "model": "text-embedding-3-small",
        "input": ["a", "鍵\ufffd"],
    }


async def test_dimensions_are_asked_for_only_where_they_are_set() -> None:
    embedder, stub = endpoint(reply(item(0, [1, 2])), model="m", dimensions=2)
    await embedder.embed(["a"])
    assert json.loads(stub.sent[0].body)["dimensions"] == 2
    assert embedder.name == "api m 2"


async def test_vectors_come_in_the_order_of_the_texts() -> None:
    embedder, _ = endpoint(reply(item(1, [1, -2]), item(0, [3, 4.5])))
    assert floats(await embedder.embed(["a", "b"])) == [[3, 4.5], [1, -2]]


async def test_a_server_that_leaves_the_index_out_is_taken_at_its_order() -> None:
    embedder, _ = endpoint(reply({"embedding": [1]}, {"embedding": [2]}))
    assert floats(await embedder.embed(["a", "b"])) == [[1], [2]]


HOSTILE = {
    "too few": reply(item(0, [1.0])),
    "too many": reply(item(0, [1.0]), item(1, [1.0]), item(2, [1.0])),
    "one twice": reply(item(0, [1.0]), item(0, [1.0])),
    "an index beyond": reply(item(0, [1.0]), item(7, [1.0])),
    "an index below": reply(item(0, [1.0]), item(-1, [1.0])),
    "an index that is text": reply(item("0", [1.0]), item("1", [1.0])),
    "two lengths": reply(item(0, [1.0]), item(1, [1.0, 2.0])),
    "empty vectors": reply(item(0, []), item(1, [])),
    "no vectors": reply({}, {}),
    "no objects": reply(1, None),
    "no data": ok({"object": "list"}),
    "data that is an object": ok({"data": {"0": [1.0]}}),
    "text in a vector": reply(item(0, [1.0]), item(1, ["x"])),
    "lists in a vector": reply(item(0, [1.0]), item(1, [[1.0]])),
    "null in a vector": reply(item(0, [1.0]), item(1, [None])),
    "an infinite number": Reply(200, {}, [b'{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[1e999]}]}']),
    "the same part of a vector": reply(item(0, [1.0, None]), item(1, [1.0, None])),
    "no number": Reply(200, {}, [b'{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[NaN]}]}']),
    "a number too large": reply(item(0, [1.0]), item(1, [1e300])),
    "nothing but zeros": reply(item(0, [0.0, 0.0]), item(1, [0.0, 0.0])),
    "base64 that nobody asked for": reply(item(0, "AACAPw=="), item(1, "AACAPw==")),
    "a vector without end": reply(item(0, [1.0] * 9000), item(1, [1.0] * 9000)),
    "a list": Reply(200, {}, [b"[[1.0], [1.0]]"]),
    "HTML": Reply(200, {}, [b"<html>"]),
    "half of it": Reply(200, {}, [b'{"data":[{"index":0,"embedding":[1']),
    "nothing": Reply(200, {}, [b""]),
}


@pytest.mark.parametrize("play", HOSTILE.values(), ids=HOSTILE)
async def test_a_reply_that_is_not_what_was_asked_for_fails_and_is_not_asked_again(play: Reply) -> None:
    embedder, stub = endpoint(play)
    with pytest.raises(EmbeddingFailed, match=r"The embedd(ings endpoint|er 'api text-embedding-3-small')"):
        await vectors_of(embedder, ["a", "b"])
    assert len(stub.sent) == 1


async def test_another_length_than_was_asked_for_fails_with_the_cure() -> None:
    embedder, _ = endpoint(reply(item(0, [1.0, 2.0, 3.0])), dimensions=2)
    with pytest.raises(EmbeddingFailed, match=r"vectors of 3 numbers, not 2; set manuals\.embeddings\.dimensions"):
        await embedder.embed(["a"])


@pytest.mark.clock("virtual")
async def test_what_may_pass_is_asked_again_like_everything_else() -> None:
    embedder, stub = endpoint(refused(429, retry_after="7"), reply(item(0, [1.0])))
    assert floats(await embedder.embed(["a"])) == [[1]]
    assert stub.times == [0, 7]


async def test_an_echoed_key_is_in_no_message() -> None:
    body = json.dumps({"error": {"message": f"Bad key {KEY}", "type": KEY, "code": KEY}}).encode()
    embedder, _ = endpoint(Reply(401, {}, [body]))
    with pytest.raises(EmbeddingFailed) as caught:
        await embedder.embed(["a"])
    assert KEY not in str(caught.value)
    assert "401" in str(caught.value)


def failing(base_url: str | None, play: Play) -> EmbeddingsEndpoint:
    api, _ = stub_api(play, timeout_ms=5_000, max_retries=0)
    return EmbeddingsEndpoint(EmbeddingsSettings(provider="api", base_url=base_url), lambda: api)


FAILURES: dict[str, Play] = {
    "another path": refused(404, "model_not_found"),
    "a wrong request": refused(400),
    "a fault": refused(500),
    "a fault that may pass": refused(503),
    "a redirect": refused(302),
    "a key that may not": refused(403),
    "a limit": refused(429),
    "HTML": Reply(200, {}, [b"<html>"]),
    "no answer": trio.sleep_forever,
}


@pytest.mark.clock("virtual")
@pytest.mark.parametrize("base_url", [None, "http://127.0.0.1:11434/v1"])
@pytest.mark.parametrize("play", FAILURES.values(), ids=FAILURES)
async def test_a_failure_names_the_settings_of_embeddings_and_none_of_the_answer_tools(
    play: Play, base_url: str | None
) -> None:
    with pytest.raises(EmbeddingFailed) as caught:
        await failing(base_url, play).embed(["a"])
    message = str(caught.value)
    assert not re.search("OPENAI_BASE_URL|[Pp]rofile|reasoning|Responses API|\\bask for less", message), message
    assert ("openai.base_url" in message) <= (base_url is None), message
    assert message.endswith("."), message


def saying(message: str) -> Reply:
    return Reply(400, {}, [json.dumps({"error": {"message": message}}).encode()])


@pytest.mark.parametrize("said", ["input is too long for the model profile 'small'", "abc " * 800])
async def test_what_a_server_says_is_told_whatever_its_words(said: str) -> None:
    with pytest.raises(EmbeddingFailed) as caught:
        await failing(None, saying(said)).embed(["a"])
    assert f"(400): {said[:200]}" in str(caught.value)
    assert str(caught.value).endswith("manuals.embeddings.model and the network.")


@pytest.mark.parametrize("status", [429, 500])
async def test_who_has_a_second_is_told_at_once_why_it_failed(status: int) -> None:
    embedder, stub = endpoint(*[refused(status)] * 5)
    with trio.fail_after(1), pytest.raises(EmbeddingFailed, match=rf"\({status}"):
        await embedder.embed(["a"])
    assert len(stub.sent) == 1


@pytest.mark.clock("virtual")
async def test_a_failure_says_what_to_change() -> None:
    with pytest.raises(EmbeddingFailed) as caught:
        await failing("http://127.0.0.1:11434/v1", FAILURES["another path"]).embed(["a"])
    assert str(caught.value) == (
        "The embeddings endpoint failed: The API does not offer this model (404 model_not_found): Said so. "
        "Check manuals.embeddings.base_url, manuals.embeddings.model and the network."
    )
    with pytest.raises(EmbeddingFailed) as caught:
        await failing(None, FAILURES["no answer"]).embed(["a"])
    assert str(caught.value).endswith(
        ". Check openai.base_url (manuals.embeddings.base_url is not set), manuals.embeddings.model and the network."
    )


async def test_a_key_that_is_missing_is_told_in_words_for_whoever_searches() -> None:
    settings = Settings(openai=OpenAISettings(), manuals=ManualsSettings(embeddings=EmbeddingsSettings(provider="api")))
    embedder = open_embedder(settings)
    assert embedder is not None
    with pytest.raises(EmbeddingFailed) as caught:
        await embedder.embed(["a"])
    assert str(caught.value) == (
        "The embeddings endpoint failed: There is no API key: the environment variable OPENAI_API_KEY is not set. "
        "Set it, or set manuals.embeddings.provider to none."
    )
    await embedder.aclose()


# Which embedder the settings ask for


def chosen(**given: Any) -> Settings:
    return Settings(openai=OpenAISettings(api_key=KEY), manuals=ManualsSettings(embeddings=EmbeddingsSettings(**given)))


def shared() -> Any:
    raise AssertionError


@pytest.mark.rule("P16")
async def test_without_a_provider_there_is_none_and_nothing_is_sent() -> None:
    await trio.lowlevel.checkpoint()
    assert open_embedder(chosen()) is None
    assert what_is_sent(chosen()) is None


@pytest.mark.parametrize("base_url", [None, "https://api.openai.com/v1"])
async def test_the_connections_of_the_answers_are_shared_where_the_server_is_the_same(base_url: str | None) -> None:
    api, stub = stub_api(reply(item(0, [1.0])))
    embedder = open_embedder(chosen(provider="api", base_url=base_url), lambda: api)
    assert embedder is not None
    await embedder.aclose()
    assert stub.closed == 0
    await embedder.embed(["a"])
    assert len(stub.sent) == 1
    await embedder.aclose()
    assert stub.closed == 1


async def test_another_server_has_connections_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    _, stub = stub_api(reply(item(0, [1.0])))
    monkeypatch.setattr("responses_mcp.responses_api.api.open_connections", lambda *at, **_: stub.connect(*at))
    embedder = open_embedder(chosen(provider="api", base_url="http://127.0.0.1:11434/v1"), shared)
    assert embedder is not None
    await embedder.embed(["a"])
    assert stub.sent[0].url == "http://127.0.0.1:11434/v1/embeddings"


async def test_what_is_sent_is_told_with_its_address_and_the_name_of_the_key() -> None:
    await trio.lowlevel.checkpoint()
    told = what_is_sent(chosen(provider="api", model="m", base_url="https://host/v1"))
    assert told is not None
    assert "the texts of the manuals" in told
    assert "the question of each search are sent to https://host/v1/embeddings, for the model m" in told
    assert told.endswith("with the key of OPENAI_API_KEY if there is one")
    assert what_is_sent(chosen(provider="wordllama")) is None


async def test_wordllama_is_neither_loaded_nor_looked_for_before_it_is_used() -> None:
    embedder: Embedder | None = open_embedder(chosen(provider="wordllama"), shared)
    assert isinstance(embedder, WordVectors)
    await embedder.aclose()
