"""Questions as vectors: asked for once, and not waited for longer than a search has patience."""

import pytest
import trio

from responses_mcp.manuals.embeddings.embedder import Embedder, EmbeddingFailed
from responses_mcp.manuals.embeddings.endpoint import EmbeddingsEndpoint
from responses_mcp.manuals.embeddings.questions import Questions
from responses_mcp.manuals.embeddings.word_vectors import WordVectors
from responses_mcp.settings.model import EmbeddingsSettings
from tests.manuals.embeddings.stub import StubEmbedder, fail

pytestmark = pytest.mark.clock("virtual")


async def test_a_question_is_embedded_once_however_it_is_written() -> None:
    stub = StubEmbedder()
    questions = Questions(stub, 1.0)
    first = await questions.ask("Rotate  KEYS", trio.current_time() + 1)
    assert first == await questions.ask("rotate keys", trio.current_time() + 1)
    assert first is not None
    assert stub.asked == [["rotate keys"]]


async def test_a_question_of_a_megabyte_is_cut() -> None:
    stub = StubEmbedder()
    await Questions(stub, 1.0).ask("word " * 200_000, trio.current_time() + 1)
    assert len(stub.texts[0]) == 2000


async def test_a_question_without_words_is_like_nothing() -> None:
    assert (await Questions(StubEmbedder(), 1.0).ask("", trio.current_time() + 1)).is_like_nothing


async def test_only_the_last_questions_are_remembered() -> None:
    stub = StubEmbedder()
    questions = Questions(stub, 1.0)
    for number in [*range(257), 1, 0]:
        await questions.ask(f"question {number}", trio.current_time() + 1)
    assert stub.texts[257:] == ["question 0"]


async def test_a_slow_provider_is_given_up_and_then_left_alone_for_a_while() -> None:
    stub = StubEmbedder()
    stub.before = trio.sleep_forever
    questions = Questions(stub, 1.0)
    began = trio.current_time()
    for word in ("one", "two"):
        with pytest.raises(EmbeddingFailed, match="no embeddings within 1 s"):
            await questions.ask(word, began + 1)
    assert (trio.current_time() - began, stub.asked) == (1, [["one"]])
    stub.before = trio.lowlevel.checkpoint
    await trio.sleep(10)
    assert await questions.ask("two", trio.current_time() + 1) is not None


async def test_a_provider_that_fails_says_why_again_without_being_asked() -> None:
    stub = StubEmbedder()
    stub.before = fail
    questions = Questions(stub, 1.0)
    for word in ("one", "two"):
        with pytest.raises(EmbeddingFailed, match="It is down"):
            await questions.ask(word, trio.current_time() + 1)
    assert stub.asked == [["one"]]


@pytest.mark.clock("real")
@pytest.mark.parametrize(
    ("embedder", "advice"),
    [
        (StubEmbedder(), "."),
        (WordVectors(), ": wordllama may still be loading. Ask again."),
        (
            EmbeddingsEndpoint(EmbeddingsSettings(), pytest.fail),
            "; check manuals.embeddings.base_url and the network. 'openai-responses-mcp doctor' says more.",
        ),
    ],
)
async def test_what_is_said_of_a_slow_provider_is_about_that_one(embedder: Embedder, advice: str) -> None:
    assert str(Questions(embedder, 1.0).too_slow()) == f"There were no embeddings within 1 s{advice}"
