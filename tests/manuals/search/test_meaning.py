"""Searches that compare meaning, through `Manuals`: what rises, what is asked for, and what happens when that fails."""

import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest
import trio

from responses_mcp.manuals.embeddings.embedder import Embedder, EmbeddingFailed
from responses_mcp.manuals.embeddings.endpoint import EmbeddingsEndpoint
from responses_mcp.manuals.errors import ManualsError
from responses_mcp.manuals.index.store import index_path
from responses_mcp.manuals.requests import FindRequest, HitsRequest, SearchRequest
from responses_mcp.manuals.service import Manuals
from responses_mcp.manuals.threads import Times
from responses_mcp.responses_api.api import ResponsesApi
from responses_mcp.settings.model import EmbeddingsSettings, ManualsSettings, OpenAISettings, RequestSettings, Settings
from responses_mcp.testing import FakeApi, Hang, Json, open_fake_api
from responses_mcp.testing.client import connected_client
from tests.manuals.embeddings.stub import StubEmbedder, fail

WAIT = 20.0  # seconds; a bound for a stuck machine, not an expectation
TIMES = Times(
    fresh=0.0, looks_apart=0.0, least_look=WAIT / 2, least_search=WAIT / 2, closing=WAIT / 2, patience=WAIT / 2
)
OTHER_WORDS = (
    "chimney horsepower kitchen basketball cabinet watermelon plaster toothbrush gardens strawberry weather motorcycle "
)
SAME_MEANING = "prolong credential " * 6
QUERY = "renew the certificate"
KEY = "sk-canary-0123456789abcdef"


def page(title: str, body: str) -> str:
    return f"# {title}\n\n{body}\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a manual in which two pages have the words of a question alike, and one is about nothing else."""
    folder = tmp_path / "root/shop"
    folder.mkdir(parents=True)
    (folder / "a-words.md").write_text(page("First", f"renew the certificate {OTHER_WORDS}"), encoding="utf-8")
    (folder / "b-meaning.md").write_text(page("Second", f"renew the certificate {SAME_MEANING}"), encoding="utf-8")
    for number in range(6):
        (folder / f"{number}.md").write_text(
            page(f"Page {number}", f"the weather number {number} of the certificate"), encoding="utf-8"
        )
    return tmp_path / "root"


def embedder() -> StubEmbedder:
    return StubEmbedder({"prolong": "renew", "credential": "certificate"})


@asynccontextmanager
async def opened(root: Path, embedder: Embedder | None, times: Times = TIMES) -> AsyncGenerator[Manuals]:
    settings = ManualsSettings(root=str(root), index_dir=str(root.parent / "index"))
    manuals = Manuals(settings, embedder=embedder, times=times)
    try:
        with trio.fail_after(WAIT):  # noqa: ASYNC100  # over what the test does
            yield manuals
    finally:
        with trio.CancelScope(shield=True):
            await manuals.aclose()


async def found(manuals: Manuals, query: str = QUERY, **given: Any) -> tuple[list[str], dict[str, Any]]:
    """Return the paths found, best first, and `applied`."""
    request = FindRequest(
        **{"query": query, "manual_id": "shop", "required_terms": ("zzz",), "use_cache": False, **given}
    )
    answer = await manuals.find(request)
    items = manuals.hits(HitsRequest(answer["trace_id"]), compact=True)["items"]
    return [item["ref"]["path"] for item in items], answer["applied"]


def stored(root: Path) -> int:
    count = 0
    for file in (root.parent / "index").glob("*.vectors"):
        with closing(sqlite3.connect(file)) as connection:
            count += connection.execute("SELECT count(*) FROM vector").fetchone()[0]
    return count


async def test_what_means_the_same_rises_above_what_only_has_more_of_the_words(root: Path) -> None:
    async with opened(root, None) as manuals:
        by_words, applied = await found(manuals)
        assert by_words[0] == "a-words.md"
        assert "ranked_by" not in applied
    async with opened(root, embedder()) as manuals:
        await manuals.index("shop")
        assert await manuals.embed("shop") == 8
        by_meaning, applied = await found(manuals)
        assert by_meaning[0] == "b-meaning.md"
        assert sorted(by_meaning) == sorted(by_words)
        assert (applied["ranked_by"], applied["meaning_failure_reason"]) == ("words and meaning", None)


async def test_a_search_of_all_manuals_compares_as_many_sections_as_a_find(tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "shop").mkdir(parents=True)
    for number in range(240):
        (root / f"shop/{number}.md").write_text(page("Page", f"the certificate of weather {number}"), encoding="utf-8")
    (root / "shop/best.md").write_text(page("Best", f"certificate {SAME_MEANING}"), encoding="utf-8")
    for word in ("renew", "revoke"):  # so that no section has all that is asked for
        (root / f"shop/{word}.md").write_text(page("Other", f"{word} a watermelon"), encoding="utf-8")
    async with opened(root, embedder()) as manuals:
        await manuals.index("shop")
        await manuals.embed("shop")
        paths, _ = await found(manuals, "renew revoke certificate")
        rows = (await manuals.search(SearchRequest("renew revoke certificate"))).rows
        assert paths[:3] == [row.path for row in rows[:3]]
        assert (sorted(paths[:2]), paths[2]) == (["renew.md", "revoke.md"], "best.md")


async def test_a_search_asks_for_its_question_once_and_for_nothing_else(root: Path) -> None:
    stub = embedder()
    async with opened(root, stub) as manuals:
        await manuals.index("shop")
        await manuals.embed("shop")
        stub.asked.clear()
        for _ in range(3):
            await found(manuals)
        assert stub.asked == [[QUERY]]


async def test_a_manual_without_vectors_is_searched_by_words_and_that_is_said(root: Path) -> None:
    stub = embedder()
    async with opened(root, stub) as manuals:
        paths, applied = await found(manuals)
        assert paths[0] == "a-words.md"
        assert applied["ranked_by"] == "words"
        assert applied["meaning_failure_reason"].endswith("run 'openai-responses-mcp manuals index --embed'.")
        assert stub.asked == [[QUERY]]
        assert stored(root) == 0


async def test_a_provider_that_fails_leaves_the_result_by_words_and_says_so(root: Path) -> None:
    stub = embedder()
    async with opened(root, None) as manuals:
        by_words, _ = await found(manuals)
    async with opened(root, stub) as manuals:
        await manuals.embed("shop")
        stub.before = fail
        paths, applied = await found(manuals)
        assert paths == by_words
        assert (applied["ranked_by"], applied["meaning_failure_reason"]) == ("words", "It is down.")


async def test_a_slow_provider_costs_a_search_its_patience_and_the_next_one_nothing(root: Path) -> None:
    stub = embedder()
    stub.before = trio.sleep_forever
    async with opened(root, stub, Times(**{**_as_dict(TIMES), "patience": 0.05})) as manuals:
        for _ in range(2):
            paths, applied = await found(manuals)
            assert paths[0] == "a-words.md"
            assert "embeddings did not arrive within 0.05 s; ask again." in applied["meaning_failure_reason"]
        assert len(stub.asked) == 1
        stub.before, stub.rest = trio.lowlevel.checkpoint, 0.0
        with trio.move_on_after(10):
            while applied["meaning_failure_reason"] is not None and "within" in applied["meaning_failure_reason"]:
                manuals._comparing._resting_until = 0.0
                _, applied = await found(manuals)
        assert len(stub.asked) == 2


async def test_the_last_questions_are_remembered_however_they_are_written_and_long_ones_are_cut(root: Path) -> None:
    stub = embedder()
    async with opened(root, stub) as manuals:
        for query in ("Rotate  KEYS", "rotate keys", "word " * 200_000):
            await found(manuals, query)
        assert [len(text) for text in stub.texts if "\n" not in text] == [len("rotate keys"), 2000]


async def test_a_result_that_was_not_compared_is_not_kept_for_the_same_question(root: Path) -> None:
    stub = embedder()
    async with opened(root, stub) as manuals:
        await manuals.index("shop")
        modes = []
        for _ in range(2):
            _, applied = await found(manuals, use_cache=True)
            modes.append(applied["sem_cache_mode"])
        await manuals.embed("shop")
        for _ in range(2):
            paths, applied = await found(manuals, use_cache=True)
            modes.append(applied["sem_cache_mode"])
            assert paths[0] == "b-meaning.md"
        assert modes == ["miss", "miss", "miss", "exact"]


async def test_a_question_that_means_the_same_is_answered_from_the_cache(root: Path) -> None:
    async with opened(root, embedder()) as manuals:
        await manuals.index("shop")
        await manuals.embed("shop")
        first, applied = await found(manuals, "renew the certificate", use_cache=True)
        assert applied["sem_cache_mode"] == "miss"
        again, applied = await found(manuals, "prolong the credential", use_cache=True)
        assert (again, applied["sem_cache_mode"], applied["sem_cache_score"]) == (first, "semantic", 1.0)


async def test_each_model_has_vectors_of_its_own_and_those_of_another_length_stay_as_they_are(root: Path) -> None:
    async with opened(root, embedder()) as manuals:
        await manuals.index("shop")
        await manuals.embed("shop")
    async with opened(root, StubEmbedder(name="other")) as manuals:
        assert (await found(manuals))[1]["ranked_by"] == "words"
        assert await manuals.embed("shop") == 8
        assert (await manuals.outstanding("shop")).sections == 0
    shorter = StubEmbedder(dimensions=32)
    async with opened(root, shorter) as manuals:
        paths, applied = await found(manuals)
        assert (paths[0], applied["ranked_by"]) == ("a-words.md", "words")
        assert applied["meaning_failure_reason"] == (
            "The model gives vectors of 32 numbers, but the index has some of 64; run 'openai-responses-mcp manuals index "
            "--forget', and then 'openai-responses-mcp manuals index --embed'."
        )
        (root / "shop/new.md").write_text(page("New", "renew"), encoding="utf-8")
        await manuals.index("shop")
        with pytest.raises(EmbeddingFailed, match=r"of 32 numbers, but the index has some of 64; run .* --forget"):
            await manuals.embed("shop")
    async with opened(root, embedder()) as manuals:
        assert (await found(manuals))[0][0] == "b-meaning.md"
        assert stored(root) == 16


async def test_vectors_outlive_the_index_and_files_that_go_and_come_back_under_another_name(root: Path) -> None:
    stub = embedder()
    async with opened(root, stub) as manuals:
        await manuals.index("shop")
        await manuals.embed("shop")
        content = (root / "shop/b-meaning.md").read_bytes()
        (root / "shop/b-meaning.md").unlink()
        await manuals.index("shop")
        (root / "shop/c-meaning.md").write_bytes(content)
        await manuals.index("shop")
        assert (await manuals.outstanding("shop")).sections == 0
    for file in (root.parent / "index").glob("*.sqlite3*"):
        file.unlink()
    async with opened(root, stub) as manuals:
        assert (await found(manuals))[0][0] == "c-meaning.md"
        assert await manuals.embed("shop") == 0


@pytest.mark.parametrize("use", ["nobody", "another process", "a newer version", "other manuals"])
async def test_a_new_index_takes_the_place_of_older_ones_that_nobody_uses(root: Path, use: str) -> None:
    ours = index_path(root.parent / "index", root)
    older = ours.with_name(f"{ours.name[:24]}-8004.sqlite3")
    if use in ("a newer version", "other manuals"):
        older = ours.with_name(f"{ours.name[:24]}-99004.sqlite3" if use == "a newer version" else "0-8004.sqlite3")
    older.parent.mkdir()
    with closing(sqlite3.connect(older, isolation_level=None)) as holder:
        holder.execute("PRAGMA journal_mode = WAL")
        holder.execute("CREATE TABLE manual (id, name)")
        if use != "another process":
            holder.close()
        async with opened(root, None) as manuals:
            await manuals.index("shop")
        assert older.exists() == (use != "nobody")


async def test_two_fills_of_one_program_take_turns(root: Path) -> None:
    stub = embedder()
    done: list[int] = []
    async with opened(root, stub) as manuals:
        await manuals.index("shop")

        async def fill() -> None:
            done.append(await manuals.embed("shop"))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(fill)
            nursery.start_soon(fill)
        assert sorted(done) == [0, 8]
        assert len(stub.texts) == 8


async def test_a_section_that_changes_while_it_is_embedded_gets_a_vector_of_its_new_text(root: Path) -> None:
    stub = embedder()
    async with opened(root, stub) as manuals:
        await manuals.index("shop")

        async def change() -> None:
            stub.before = trio.lowlevel.checkpoint
            (root / "shop/b-meaning.md").write_text(
                page("Second", "something else of the certificate"), encoding="utf-8"
            )
            await manuals.index("shop")

        stub.before = change
        assert await manuals.embed("shop") == 9
        assert "Second\nsomething else of the certificate" in stub.texts
        assert (await manuals.outstanding("shop")).sections == 0


async def test_requests_of_a_fill_are_bounded_and_a_few_at_once(root: Path) -> None:
    for number in range(200):
        (root / f"shop/more{number}.md").write_text(page(f"More {number}", "text " * 400), encoding="utf-8")
    stub = embedder()
    running = most = 0

    async def count() -> None:
        nonlocal running, most
        running, most = running + 1, max(most, running + 1)
        await trio.sleep(0.3)
        running -= 1

    stub.before = count
    async with opened(root, stub) as manuals:
        await manuals.index("shop")
        assert await manuals.embed("shop", most=150) == 150
        assert await manuals.embed("shop") == 58
        assert len(stub.texts) == len(set(stub.texts))
    assert most == 4
    assert all(len(texts) <= 32 and sum(map(len, texts)) <= 40_000 for texts in stub.asked)


async def test_what_is_under_way_at_a_failure_is_kept_and_no_more_is_begun(root: Path) -> None:
    for number in range(200):
        (root / f"shop/more{number}.md").write_text(page(f"More {number}", f"text {number}"), encoding="utf-8")
    stub = embedder()

    async def fail_first() -> None:
        if len(stub.asked) == 1:
            await trio.sleep(0.1)
            await fail()
        await trio.sleep(0.3)

    stub.before = fail_first
    async with opened(root, stub) as manuals:
        await manuals.index("shop")
        with pytest.raises(EmbeddingFailed, match="It is down"):
            await manuals.embed("shop")
    assert (stored(root), len(stub.asked)) == (32 * 3, 4)


async def test_what_was_embedded_before_a_failure_is_not_sent_again(root: Path) -> None:
    for number in range(200):
        (root / f"shop/more{number}.md").write_text(page(f"More {number}", f"text {number}"), encoding="utf-8")
    stub = embedder()
    async with opened(root, stub) as manuals:
        await manuals.index("shop")

        async def fail_later() -> None:
            if len(stub.asked) > 4:
                await fail()
            await trio.lowlevel.checkpoint()

        stub.before = fail_later
        with pytest.raises(EmbeddingFailed):
            await manuals.embed("shop")
    again = embedder()
    done = stored(root)
    assert 0 < done < 208
    async with opened(root, again) as manuals:
        reports: list[int] = []
        assert await manuals.embed("shop", on_progress=reports.append) == 208 - done == len(again.texts)
        assert reports[-1] == 208 - done


async def test_without_an_embedder_there_is_nothing_to_fill(root: Path) -> None:
    async with opened(root, None) as manuals:
        for ask in (manuals.embed, manuals.outstanding):
            with pytest.raises(ManualsError, match=r"set manuals\.embeddings\.provider"):
                await ask("shop")


# With the endpoint, on real sockets


def endpoint(api: FakeApi) -> EmbeddingsEndpoint:
    openai = OpenAISettings(base_url=api.base_url, api_key=KEY)
    return EmbeddingsEndpoint(
        EmbeddingsSettings(provider="api"), lambda: ResponsesApi(openai, RequestSettings(trust_env=False))
    )


@asynccontextmanager
async def behind_a_fake(root: Path) -> AsyncGenerator[tuple[Manuals, FakeApi]]:
    async with open_fake_api() as api:
        embedder = endpoint(api)
        async with opened(root, embedder) as manuals:
            await manuals.index("shop")
            try:
                yield manuals, api
            finally:
                with trio.CancelScope(shield=True):
                    await embedder.aclose()


async def test_a_manual_is_embedded_and_searched_over_http(root: Path) -> None:
    async with behind_a_fake(root) as (manuals, api):
        assert await manuals.embed("shop") == 8
        _, applied = await found(manuals)
        assert applied["ranked_by"] == "words and meaning"
        assert {request.target for request in api.requests} == {"/v1/embeddings"}
        assert [len(request.json["input"]) for request in api.requests] == [8, 1]


async def test_a_result_for_which_the_api_was_asked_tells_what_that_took_and_others_nothing(root: Path) -> None:
    async with open_fake_api() as api:
        openai = OpenAISettings(base_url=api.base_url, api_key=KEY)
        manuals = ManualsSettings(root=str(root), embeddings=EmbeddingsSettings(provider="api"))
        settings = Settings(openai=openai, manuals=manuals)
        async with connected_client(settings) as client:
            with trio.fail_after(WAIT):
                first, again = [await client.call("manual_search", {"query": "pump"}) for _ in range(2)]
        counts = [request for request in api.requests if request.target.endswith("/embeddings")]
    used = first["result"]["_meta"]["io.github.uchimanajet7/usage"]
    assert used["attempts"] == len(counts) >= 1
    assert used["total_tokens"] == used["input_tokens"] > 0
    assert "_meta" not in again["result"]


async def test_cancelling_a_search_that_waits_for_its_question_closes_the_socket(root: Path) -> None:
    async with behind_a_fake(root) as (manuals, api):
        api.script(Hang())
        async with trio.open_nursery() as nursery:
            nursery.start_soon(found, manuals)
            await api.wait_requests(1)
            nursery.cancel_scope.cancel()
        await api.wait_hang_ups(1)
        assert len(api.requests) == 1


async def test_cancelling_the_filling_closes_all_its_sockets(root: Path) -> None:
    for number in range(200):
        (root / f"shop/more{number}.md").write_text(page(f"More {number}", f"text {number}"), encoding="utf-8")
    async with behind_a_fake(root) as (manuals, api):
        api.script(Hang(), Hang(), Hang(), Hang())
        async with trio.open_nursery() as nursery:
            nursery.start_soon(manuals.embed, "shop")
            await api.wait_requests(4)
            nursery.cancel_scope.cancel()
        await api.wait_hang_ups(4)
        assert len(api.requests) == 4
        assert stored(root) == 0


async def test_nonsense_from_the_endpoint_leaves_the_result_by_words(root: Path) -> None:
    async with behind_a_fake(root) as (manuals, api):
        await manuals.embed("shop")
        api.script(Json({"data": [{"index": 0, "embedding": [1.0, 2.0]}]}))
        paths, applied = await found(manuals)
        assert (paths[0], applied["ranked_by"]) == ("a-words.md", "words")
        api.script(Json({"data": [{"index": 0, "embedding": KEY}]}))
        _, applied = await found(manuals, "another question about the certificate")
        assert KEY not in applied["meaning_failure_reason"]


def _as_dict(times: Times) -> dict[str, float]:
    return {name: getattr(times, name) for name in Times.__dataclass_fields__}
