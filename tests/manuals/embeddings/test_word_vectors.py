"""The provider wordllama: loaded once, by the first use, without a download; and what is said where it is missing."""

import logging
import sys
import types
from pathlib import Path
from typing import Any

import pytest
import trio

from responses_mcp.manuals.embeddings.embedder import EmbeddingFailed
from responses_mcp.manuals.embeddings.vectors import question
from responses_mcp.manuals.embeddings.word_vectors import WordVectors

WAIT = 20.0  # seconds; a bound for a stuck machine, not an expectation


@pytest.fixture
def loads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Put a package in the place of wordllama; return what its model is loaded with."""
    seen: list[dict[str, Any]] = []

    class WordLlama:
        @classmethod
        def load(cls, **given: Any) -> "WordLlama":
            seen.append(given)
            logging.basicConfig(level=logging.INFO)  # as wordllama does
            return cls()

        def embed(self, texts: list[str], *, return_np: bool, batch_size: int) -> list[list[float]]:
            assert (return_np, batch_size) == (False, 8)
            return [[float(len(text)), 1.0] for text in texts]

    module = types.ModuleType("wordllama")
    module.__file__ = str(tmp_path / "wordllama/__init__.py")
    module.WordLlama = WordLlama  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "wordllama", module)
    return seen


async def test_the_model_is_loaded_once_from_its_own_wheel_without_a_download(loads, tmp_path) -> None:
    vectors = WordVectors()
    results: list[Any] = []

    async def ask(text: str) -> None:
        results.append(await vectors.embed([text, "ab"]))

    with trio.fail_after(WAIT):
        assert loads == []
        async with trio.open_nursery() as nursery:
            for text in ("a", "abc"):
                nursery.start_soon(ask, text)
    assert sorted(results) == [[[1.0, 1.0], [2.0, 1.0]], [[3.0, 1.0], [2.0, 1.0]]]
    assert loads == [{"cache_dir": tmp_path / "wordllama", "disable_download": True}]


@pytest.mark.parametrize(
    ("text", "known"), [("naïve café", True), ("鍵の更新", False), ("rotate the API 鍵", False), ("“x” → 1 €", True)]
)
async def test_a_text_that_cannot_be_english_is_like_nothing(loads, text: str, known: bool) -> None:
    with trio.fail_after(WAIT):
        [vector] = await WordVectors().embed([text])
    assert any(vector) == known


async def test_loading_it_leaves_the_logging_of_the_process_alone(loads, monkeypatch) -> None:
    root = logging.getLogger()
    monkeypatch.setattr(root, "handlers", [])
    monkeypatch.setattr(root, "level", logging.WARNING)
    with trio.fail_after(WAIT):
        await WordVectors().embed(["a"])
    assert (root.handlers, root.level) == ([], logging.WARNING)


async def test_where_the_package_is_missing_the_extra_is_named(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "wordllama", None)
    with (
        trio.fail_after(WAIT),
        pytest.raises(EmbeddingFailed, match=r'install --force "openai-responses-mcp\[semantic\] @ git'),
    ):
        await WordVectors().embed(["a"])


async def test_a_package_that_cannot_load_its_model_is_told(loads, monkeypatch, caplog) -> None:
    def broken(**_: Any) -> Any:
        raise FileNotFoundError("no weights")

    monkeypatch.setattr(sys.modules["wordllama"].WordLlama, "load", broken)
    with trio.fail_after(WAIT), pytest.raises(EmbeddingFailed, match="cannot be loaded \\(FileNotFoundError\\)"):
        await WordVectors().embed(["a"])
    assert "wordllama cannot be loaded" in caplog.text


async def test_the_real_model_knows_words_that_mean_the_same() -> None:
    pytest.importorskip("wordllama")
    with trio.fail_after(WAIT):
        car, auto, tree = await WordVectors().embed(["buy a car", "purchase an automobile", "the leaves of a tree"])
    asked = question(car)
    assert asked.cosine(question(auto)) > asked.cosine(question(tree)) + 0.2
