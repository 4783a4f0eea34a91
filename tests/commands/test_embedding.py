"""`manuals index --embed`: what it says before anything is sent, what it asks, and how it goes on after an end."""

import json
import os
import sqlite3
import time
from contextlib import closing
from functools import partial
from pathlib import Path
from subprocess import DEVNULL

import pytest
import trio

from responses_mcp.manuals.embeddings import word_vectors
from responses_mcp.testing import Error, FakeApi, Hang, RecordedRequest, Reply, answer_with_embeddings
from tests.commands.online import KEY, WAIT, Command, api, command
from tests.processes import COMMAND, environment

pytestmark = pytest.mark.rule("P16")

__all__ = ["api", "command"]

SECTIONS = 40


@pytest.fixture
async def manuals(command: Command, api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Return a function that runs `manuals` over a folder with one manual; the provider is the fake API."""
    for number in range(SECTIONS):
        write(tmp_path, number)
    monkeypatch.setenv("MANUALS_ROOT", str(tmp_path / "manuals"))
    monkeypatch.setenv("MANUALS_INDEX_DIR", str(tmp_path / "index"))
    monkeypatch.setenv("MANUALS_EMBEDDINGS_PROVIDER", "api")
    await trio.lowlevel.checkpoint()
    return partial(command, "manuals")


def write(folder: Path, number: int) -> None:
    (folder / "manuals/guide").mkdir(parents=True, exist_ok=True)
    (folder / f"manuals/guide/{number}.md").write_text(f"# Page {number}\n\n{'word ' * 20}\n", encoding="utf-8")


def stored(tmp_path: Path) -> int:
    files = list((tmp_path / "index").glob("*.vectors"))
    if not files:
        return 0
    with closing(sqlite3.connect(files[0])) as connection:
        count: int = connection.execute("SELECT count(*) FROM vector").fetchone()[0]
    return count


async def test_without_yes_and_a_terminal_it_only_says_what_it_would_send_and_cost(
    manuals: Command, api: FakeApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, err = await manuals("index", "--embed")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[1] == (
        "40 sections without vectors, about 1,067 tokens for text-embedding-3-small, about $0.00 at OpenAI's "
        f"list price. The text is sent to {api.base_url}."
    )
    assert lines[2] == "Nothing was sent; add --yes to send the text."
    assert api.requests == []
    assert stored(tmp_path) == 0
    monkeypatch.setenv("MANUALS_EMBEDDINGS_MODEL", "nomic-embed-text")
    _, out, _ = await manuals("index", "--embed")
    assert "tokens for nomic-embed-text, at an unknown price." in out


async def test_with_yes_it_sends_each_text_once_and_json_has_what_was_done_as_data(
    manuals: Command, api: FakeApi, tmp_path: Path
) -> None:
    code, out, err = await manuals("index", "--embed", "--yes", "--json")
    assert code == 0
    assert json.loads(out)["embeddings"] == {
        "provider": "api",
        "model": "text-embedding-3-small",
        "sections": SECTIONS,
        "tokens": 1067,
        "dollars": pytest.approx(0.00002134),
        "embedded": SECTIONS,
    }
    assert err.endswith("40 sections got vectors.\n")
    assert stored(tmp_path) == SECTIONS
    assert sum(len(request.json["input"]) for request in api.requests) == SECTIONS
    assert {request.headers["authorization"] for request in api.requests} == {f"Bearer {KEY}"}
    sent = len(api.requests)
    code, out, _ = await manuals("index", "--embed", "--yes")
    assert out.splitlines()[1] == "All sections have their vectors."
    assert len(api.requests) == sent


async def test_a_failure_says_why_and_what_to_do_and_the_next_run_sends_the_rest(
    manuals: Command, api: FakeApi, tmp_path: Path
) -> None:
    api.script(Error(401, f"Bad key {KEY}"))
    code, _, err = await manuals("index", "--embed", "--yes")
    assert code == 1
    assert err.startswith("openai-responses-mcp: The embeddings endpoint failed: The API refused the key (401")
    assert err.endswith("Finished sections are kept; run the command again to continue.\n")
    assert KEY not in err
    code, _, _ = await manuals("index", "--embed", "--yes")
    assert (code, stored(tmp_path)) == (0, SECTIONS)


async def test_it_ends_at_once_without_a_provider(
    manuals: Command, api: FakeApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MANUALS_EMBEDDINGS_PROVIDER", "none")
    code, out, err = await manuals("index", "--embed", "--yes")
    assert (code, out) == (2, "")
    assert "set manuals.embeddings.provider (MANUALS_EMBEDDINGS_PROVIDER) to api or wordllama" in err
    assert api.requests == []


async def test_a_find_waits_for_wordllama_to_load(manuals: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    class Model:
        def embed(self, texts: list[str], **_: object) -> list[list[float]]:
            return [[1.0, 0.5] for _ in texts]

    def load() -> Model:
        time.sleep(2)  # longer than a search waits for a vector
        return Model()

    monkeypatch.setenv("MANUALS_EMBEDDINGS_PROVIDER", "wordllama")
    monkeypatch.setattr(word_vectors, "_load", load)
    assert (await manuals("index", "--embed"))[0] == 0
    assert "embeddings" not in (await manuals("find", "page"))[1]


async def test_nothing_is_sent_where_the_index_could_not_be_written(
    manuals: Command, api: FakeApi, tmp_path: Path
) -> None:
    (tmp_path / "index").write_text("", encoding="utf-8")  # no folder can be made there
    code, out, err = await manuals("index", "--embed", "--yes")
    assert (code, api.requests) == (1, [])
    assert "got vectors" not in out
    assert "The vectors cannot be kept (" in err
    assert "set manuals.index_dir to a folder that can be written to." in err


async def test_a_refused_text_ends_it_with_the_reason_and_what_is_done_stays(
    manuals: Command, api: FakeApi, tmp_path: Path
) -> None:
    (tmp_path / "manuals/other").mkdir()
    (tmp_path / "manuals/other/one.md").write_text("# One\n\nunbearable\n", encoding="utf-8")

    def answer(asked: RecordedRequest) -> Reply:
        if any("unbearable" in text for text in asked.json["input"]):
            return Error(400, "This model's maximum context length is 512 tokens.")
        return answer_with_embeddings(asked.json)

    api.script(*[answer] * 10)
    code, _, err = await manuals("index", "--embed", "--yes")
    assert (code, stored(tmp_path)) == (1, SECTIONS)
    assert "(400): This model's maximum context length is 512 tokens." in err
    code, _, _ = await manuals("index", "--forget")
    assert (code, list((tmp_path / "index").glob("*.vectors"))) == (0, [])


async def test_a_kill_in_the_middle_loses_no_batch_that_was_kept(
    manuals: Command, api: FakeApi, tmp_path: Path
) -> None:
    for number in range(SECTIONS, 160):
        write(tmp_path, number)
    await manuals("index")
    # Four requests at once, of which one is answered; when there is a fifth, the first batch has been kept.
    api.script(lambda asked: answer_with_embeddings(asked.json), *[Hang()] * 4)
    settings = {name: value for name, value in os.environ.items() if name.startswith("MANUALS_")}
    environ = environment(tmp_path, api.base_url, NO_PROXY="127.0.0.1", **settings)
    with trio.fail_after(WAIT):
        process = await trio.lowlevel.open_process(
            [*COMMAND, "manuals", "index", "--embed", "--yes"], env=environ, stdout=DEVNULL
        )
        await api.wait_requests(5)
        process.kill()
        await process.wait()
    done = stored(tmp_path)
    assert 0 < done < 160
    sent = len(api.requests)
    _, out, _ = await manuals("index", "--embed", "--yes")
    assert f"{160 - done} sections got vectors." in out
    assert sum(len(request.json["input"]) for request in api.requests[sent:]) == 160 - done
