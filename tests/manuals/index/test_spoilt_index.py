"""A server whose index others spoil, before it starts or while it lives: every search finds all the same.

The index is made anew, or moves into memory where no file can be used.
"""

import logging
import os
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
import trio

from responses_mcp.manuals.service import Manuals
from responses_mcp.manuals.threads import Times
from responses_mcp.settings.model import ManualsSettings, Settings
from responses_mcp.testing.client import McpClient, connected_client
from responses_mcp.toolsets.manuals import ManualsToolset
from tests.processes import WAIT

POSIX = pytest.mark.skipif(os.name == "nt", reason="folders and files have no permissions of this kind there")
FILES = 12


def running(file: Path, *statements: str) -> list[tuple[str]]:
    """Run statements as another program does, which knows nothing of our rules; return the rows of the last."""
    connection = sqlite3.connect(file, isolation_level=None)
    try:
        return [connection.execute(statement).fetchall() for statement in statements][-1]
    finally:
        connection.close()


def delete_sections(file: Path) -> None:
    [(name,)] = running(file, "SELECT name FROM sqlite_master WHERE name LIKE 'words%content'")
    running(file, f"DELETE FROM {name}")


def put_a_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def put_a_full_folder(file: Path) -> None:
    put_a_folder(file)
    (file / "a").touch()


def cut(share: float) -> Callable[[Path], None]:
    return lambda file: os.truncate(file, int(file.stat().st_size * share))


def overwrite_the_header(file: Path) -> None:
    file.write_bytes(b"junk" * 1000)


def overwrite_pages(file: Path) -> None:
    content, dice = bytearray(file.read_bytes()), random.Random(1)
    for at in range(8192, len(content) - 500, 4096):
        content[at : at + 400] = dice.randbytes(400)
    file.write_bytes(content)


def misspell(word: bytes, instead: bytes) -> Callable[[Path], None]:
    """Return what changes a word in how the tables were made, as a bad disk does."""

    def spoil(file: Path) -> None:
        content = file.read_bytes()
        assert word in content
        file.write_bytes(content.replace(word, instead))

    return spoil


def put_another_database(file: Path) -> None:
    other = file.with_name("other")
    running(other, "CREATE TABLE section (a)")
    other.replace(file)


def put_a_read_only_file(file: Path) -> None:
    other = file.with_name("other")
    other.write_bytes(b"no database" * 500)
    other.chmod(0o400)
    other.replace(file)


def remove_folder(file: Path) -> None:
    shutil.rmtree(file.parent)


def put_a_file_for_the_folder(file: Path) -> None:
    shutil.rmtree(file.parent)
    file.parent.write_text("x", encoding="utf-8")


def put_a_link_to_nowhere(file: Path) -> None:
    if os.name == "nt":
        pytest.skip("links need a privilege there")
    file.unlink()
    file.symlink_to(file.parent / "gone" / "nowhere")


def take_permissions_of_the_file(file: Path) -> None:
    for each in file.parent.iterdir():
        each.chmod(0)


def take_permission_to_write(file: Path) -> None:
    for each in file.parent.iterdir():
        each.chmod(0o400)
    file.parent.chmod(0o500)


def take_permissions_of_the_folder(file: Path) -> None:
    file.parent.chmod(0)


REPLACED = {
    "nothing left of it": cut(0),
    "half of it": cut(0.5),
    "nearly all of it": cut(0.99),
    "junk": overwrite_the_header,
    "junk in its pages": overwrite_pages,
    "an option misspelt": misspell(b"tokenize=", b"tokenizd="),
    "an option without sense": misspell(b"tokenchars", b"tokencharz"),
    "an option that is no text": misspell(b"tokenize=", b"tokeniz\xff="),
    "a tokenizer that is no text": misspell(b'="ascii', b'="asc\xffi'),
    "another database": put_another_database,
    "a read-only file": put_a_read_only_file,
    "no folder": remove_folder,
    "no file": Path.unlink,
}
OBSTRUCTED = {
    "a folder": put_a_folder,
    "a full folder": put_a_full_folder,
    "a file for the folder": put_a_file_for_the_folder,
    "a link to nowhere": put_a_link_to_nowhere,
}
TAKEN = {
    "the file": take_permissions_of_the_file,
    "writing": take_permission_to_write,
    "the folder": take_permissions_of_the_folder,
}


@pytest.fixture
def place(tmp_path: Path) -> Iterable[Path]:
    """Return a folder with a manual, and a place for its index that can be cleared away afterwards."""
    folder = tmp_path / "root" / "shop"
    folder.mkdir(parents=True)
    for number in range(FILES):
        (folder / f"{number}.md").write_text(
            f"# Title {number}\n\napples number{number}\n\n## Part\n\npears\n", encoding="utf-8"
        )
    yield tmp_path
    if (tmp_path / "index").is_dir():
        (tmp_path / "index").chmod(0o700)


def serving(place: Path, fresh: float = 0.0) -> AbstractAsyncContextManager[McpClient]:
    """Serve the manuals; a look at the files is good for `fresh` seconds."""
    settings = Settings(manuals=ManualsSettings(root=str(place / "root"), index_dir=str(place / "index")))
    manuals = Manuals(settings.manuals, times=Times(fresh=fresh, looks_apart=0.0))
    return connected_client(settings, toolsets=[ManualsToolset(settings, manuals=manuals)])


async def asking(client: McpClient, word: str) -> str | int:
    arguments = {"query": word, "manual_id": "shop", "required_terms": [word], "use_cache": False}
    return await client.start_call("manual_find", arguments)


async def answered(client: McpClient, call: str | int) -> set[str]:
    answer = (await client.response(call))["result"]
    assert not answer.get("isError"), answer
    trace = answer["structuredContent"]["trace_id"]
    hits = (await client.call("manual_hits", {"trace_id": trace, "limit": 50}))["result"]["structuredContent"]
    return {item["ref"]["path"] for item in hits["items"]}


async def found(client: McpClient, word: str) -> set[str]:
    return await answered(client, await asking(client, word))


async def finds_all(client: McpClient) -> None:
    assert await found(client, "number7") == {"7.md"}
    assert len(await found(client, "apples")) == FILES
    assert await found(client, "number8") == {"8.md"}


@pytest.fixture(params=["before a start", "looked at", "just looked at"])
def when(request: pytest.FixtureRequest) -> str:
    """Tell when the index is spoilt: whether the next search looks at the files, or believes the last look."""
    return str(request.param)


def spoilt(spoil: Callable[[Path], None], file: Path) -> None:
    """Spoil an index that a server has open."""
    try:
        spoil(file)
    except PermissionError:
        if os.name != "nt":
            raise
        pytest.skip("an open file cannot be deleted or replaced there")


async def said(spoil: Callable[[Path], None], place: Path, caplog: pytest.LogCaptureFixture, when: str) -> list[str]:
    """Spoil the index of a server, look that it finds all the same, and return its warnings."""
    with trio.fail_after(WAIT), caplog.at_level(logging.WARNING):
        async with serving(place, WAIT if when == "just looked at" else 0.0) as client:
            await client.call("manual_ls", {})
            await finds_all(client)
            [file] = (place / "index").glob("*.sqlite3")
            running(file, "PRAGMA wal_checkpoint(TRUNCATE)")
            if when != "before a start":
                spoilt(spoil, file)
                await finds_all(client)
            if when == "looked at":
                (place / "root" / "shop" / "new.md").write_text("# New\n\nbananas\n", encoding="utf-8")
                assert await found(client, "bananas") == {"new.md"}
        if when == "before a start":
            spoil(file)
            async with serving(place) as client:
                await client.call("manual_ls", {})
                await finds_all(client)
    return [record.getMessage() for record in caplog.records]


@pytest.mark.parametrize("kind", REPLACED)
async def test_an_index_that_is_cut_or_replaced_is_made_anew(place, caplog, kind, when) -> None:
    assert len(await said(REPLACED[kind], place, caplog, when)) <= 1


@pytest.mark.parametrize("kind", OBSTRUCTED)
async def test_an_index_whose_place_is_taken_goes_on_in_memory(place, caplog, kind, when) -> None:
    [warning] = await said(OBSTRUCTED[kind], place, caplog, when)
    assert "kept in memory" in warning
    assert str(place) not in warning


@POSIX
@pytest.mark.parametrize("what", TAKEN)
async def test_an_index_without_permissions_goes_on_in_memory(place, caplog, what, when) -> None:
    place.chmod(0o500)
    if os.access(place, os.W_OK):
        pytest.skip("root may do all")
    place.chmod(0o700)
    warnings = await said(TAKEN[what], place, caplog, when)
    assert len(warnings) <= 1
    assert all("kept in memory" in warning for warning in warnings)


@pytest.mark.parametrize(
    ("spoil", "warning"), [(put_a_folder, "kept in memory"), (delete_sections, "was broken and is rebuilt")]
)
async def test_of_finds_that_meet_a_spoilt_index_at_once_one_replaces_it(place, caplog, spoil, warning) -> None:
    with trio.fail_after(WAIT), caplog.at_level(logging.WARNING):
        async with serving(place, WAIT) as client:
            await client.call("manual_ls", {})
            await finds_all(client)
            [file] = (place / "index").glob("*.sqlite3")
            spoilt(spoil, file)
            calls = [await asking(client, "apples") for _ in range(6)]
            assert [len(await answered(client, call)) for call in calls] == [FILES] * 6
    [record] = caplog.records
    assert warning in record.getMessage()
