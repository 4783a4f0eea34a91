"""Manuals as resources on the wire, in both revisions: their list, their templates, reading, completion, refusals."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from unittest.mock import Mock, patch
from urllib.parse import quote

import pytest
import trio

from responses_mcp.manuals.errors import ManualsError
from responses_mcp.manuals.files.folder import Folder
from responses_mcp.settings.model import Settings
from responses_mcp.testing.client import ServedClient, connected_client
from tests.file_names import possible
from tests.hostile.corpus import ENVELOPE
from tests.toolsets.manuals_harness import REVISIONS, WAIT, ask, book, fill, settings_for

every_revision = pytest.mark.parametrize("revision", REVISIONS)
READABLE = ("guide/data.json", "guide/intro.md", "other/x.md")
TEMPLATE = "manual://{manual_id}/{+path}"


class Reader:
    """A client of one revision that asks for resources."""

    def __init__(self, client: ServedClient, revision: str) -> None:
        self.client = client
        self.revision = revision

    async def ask(self, method: str, /, **params: Any) -> dict[str, Any]:
        return await ask(self.client, self.revision, method, **params)

    async def get(self, method: str, /, **params: Any) -> dict[str, Any]:
        answer = await self.ask(method, **params)
        result: dict[str, Any] = answer["result"]
        if self.revision == "modern":
            assert result["resultType"] == "complete"
        if method != "completion/complete" and self.revision == "modern":
            assert (result["ttlMs"], result["cacheScope"]) == (0, "private")
        else:
            assert not {"ttlMs", "cacheScope"} & result.keys()
        return result

    async def read(self, uri: str) -> list[dict[str, Any]]:
        contents: list[dict[str, Any]] = (await self.get("resources/read", uri=uri))["contents"]
        return contents

    async def refusal(self, method: str, /, **params: Any) -> dict[str, Any]:
        error: dict[str, Any] = (await self.ask(method, **params))["error"]
        return error

    async def uris(self) -> tuple[list[str], int]:
        """Return the URIs of all pages, and how many pages there were."""
        found: list[str] = []
        pages = 0
        cursor: dict[str, str] = {}
        while True:
            page = await self.get("resources/list", **cursor)
            found += [row["uri"] for row in page["resources"]]
            pages += 1
            if "nextCursor" not in page:
                return found, pages
            cursor = {"cursor": page["nextCursor"]}

    async def completed(self, name: str, value: str, **chosen: str) -> dict[str, Any]:
        result = await self.get(
            "completion/complete",
            ref={"type": "ref/resource", "uri": TEMPLATE},
            argument={"name": name, "value": value},
            context={"arguments": chosen},
        )
        completion: dict[str, Any] = result["completion"]
        return completion


@asynccontextmanager
async def reader(root: Path, revision: str = "legacy", **more: Any) -> AsyncGenerator[Reader]:
    async with connected_client(settings_for(root, **more)) as client:
        yield Reader(client, revision)


@pytest.mark.rule("spec 2.3")
async def test_only_a_server_with_manuals_offers_resources(tmp_path: Path) -> None:
    async with connected_client(Settings(), initialize=False) as client:
        assert (await client.initialize())["result"]["capabilities"] == {"tools": {}}
        assert (await client.ask("resources/list"))["error"]["code"] == -32601
    offered: dict[str, Any] = {"tools": {}, "resources": {}, "completions": {}}
    async with connected_client(settings_for(fill(tmp_path)), initialize=False) as client:
        assert (await client.initialize())["result"]["capabilities"] == offered
        discovered = await client.ask("server/discover", {"_meta": ENVELOPE})
        assert offered.items() <= discovered["result"]["capabilities"].items()


@every_revision
async def test_the_list_has_the_manuals_and_then_their_files(tmp_path: Path, revision: str) -> None:
    async with reader(fill(tmp_path), revision) as desk:
        page = await desk.get("resources/list")
        [template] = (await desk.get("resources/templates/list"))["resourceTemplates"]
    assert template["uriTemplate"] == TEMPLATE
    assert page["resources"] == [
        *(
            {
                "uri": f"manual://{name}/",
                "name": name,
                "title": f"Manual {name}: list of files",
                "mimeType": "application/json",
            }
            for name in ("guide", "other")
        ),
        *(
            {
                "uri": f"manual://{path}",
                "name": path.rpartition("/")[2],
                "title": path,
                "mimeType": "application/json" if path.endswith(".json") else "text/markdown",
            }
            for path in ("guide/api/auth.md", "guide/data.json", "guide/intro.md", "other/x.md")
        ),
    ]


async def test_long_lists_come_in_pages_that_lack_nothing_and_repeat_nothing(tmp_path: Path) -> None:
    [odd, *_] = possible("名前 #1?.md", "名前 #1.md")
    paths = [
        *(f"m{number:03}/a.md" for number in range(230)),
        *(f"m007/{folder}/{number:03}.md" for folder in ("a", "a.md.d", "b/c") for number in range(120)),
        "m007/a.md",
        f"m007/{odd}",
        "m007/100%.md",
    ]
    async with reader(book(tmp_path, dict.fromkeys(paths, "# A\n"))) as desk:
        found, pages = await desk.uris()
        assert pages == 5
        assert len(found) == len(set(found)) == 230 + len(set(paths))
        assert [each.count("/") for each in found[:231]] == [3] * 231
        for uri in (f"manual://m007/{quote(odd)}", "manual://m007/100%25.md"):
            assert uri in found
            assert (await desk.read(uri))[0] == {"uri": uri, "mimeType": "text/markdown", "text": "# A\n"}
        # As a client that fills in the template without encoding would write it.
        assert (await desk.read(f"manual://m007/{odd}"))[0]["text"] == "# A\n"


async def test_a_list_goes_on_when_the_file_that_it_had_come_to_has_gone(tmp_path: Path) -> None:
    async with reader(book(tmp_path, {f"m/d/{number:03}.md": "" for number in range(400)})) as desk:
        first = await desk.get("resources/list")
        (tmp_path / "m" / "d" / "198.md").unlink()  # the last on the page of 200, behind the manual
        second = await desk.get("resources/list", cursor=first["nextCursor"])
        assert second["resources"][0]["uri"] == "manual://m/d/199.md"
        for file in (tmp_path / "m" / "d").iterdir():
            file.unlink()
        (tmp_path / "m" / "d").rmdir()
        assert (await desk.get("resources/list", cursor=first["nextCursor"]))["resources"] == []


@every_revision
async def test_a_file_is_read_whole_and_byte_for_byte(tmp_path: Path, revision: str) -> None:
    async with reader(fill(tmp_path), revision) as desk:
        for path, kind in (("guide/api/auth.md", "text/markdown"), ("guide/data.json", "application/json")):
            uri = f"manual://{path}"
            text = (tmp_path / path).read_text(encoding="utf-8")
            assert await desk.read(uri) == [{"uri": uri, "mimeType": kind, "text": text}]


@every_revision
async def test_text_that_steers_a_terminal_or_hides_is_taken_out(tmp_path: Path, revision: str) -> None:
    hostile = "# Over\u202eview\n\nA \x1b[31mred\u200b\U000e0041 word, 👩‍👩‍👧 and می‌خواهم.\n"
    async with reader(book(tmp_path, {"guide/intro.md": hostile}), revision) as desk:
        [content] = await desk.read("manual://guide/intro.md")
    assert content["text"] == "# Overview\n\nA ␛[31mred word, 👩‍👩‍👧 and می‌خواهم.\n"


async def test_a_long_file_comes_in_pieces_that_name_the_next(tmp_path: Path) -> None:
    text = "# Long\n" + "あ😀\n" * 40_000
    uri: str | None = "manual://m/long.md"
    pieces = []
    async with reader(book(tmp_path, {"m/long.md": text})) as desk:
        while uri is not None:
            first, *rest = await desk.read(uri)
            assert first["uri"] == uri
            pieces.append(first["text"])
            uri = rest[0]["uri"] if rest else None
            assert not rest or (rest[0]["mimeType"] == "text/plain" and rest[0]["uri"] in rest[0]["text"])
    assert [len(piece) for piece in pieces] == [50_000, 50_000, 20_007]
    assert "".join(pieces) == text


@every_revision
async def test_a_line_names_a_section_and_a_folder_is_its_list(tmp_path: Path, revision: str) -> None:
    async with reader(fill(tmp_path), revision) as desk:
        [section] = await desk.read("manual://guide/intro.md#line=4")
        [top] = await desk.read("manual://guide/")
        [folder] = await desk.read("manual://guide/api/")
        wrong = await desk.refusal("resources/read", uri="manual://guide/data.json#line=1")
    assert section["uri"] == "manual://guide/intro.md#line=4"
    assert section["text"] == "## Setup\nfirst\n"
    assert [(row["uri"], row["kind"]) for row in json.loads(top["text"])["items"]] == [
        ("manual://guide/api/", "dir"),
        ("manual://guide/data.json", "file"),
        ("manual://guide/intro.md", "file"),
    ]
    assert [row["uri"] for row in json.loads(folder["text"])["items"]] == ["manual://guide/api/auth.md"]
    assert wrong["code"] == -32602


@every_revision
@pytest.mark.parametrize("uri", ["manual://guide/none.md", "manual://none/x.md", "manual://guide/api/none/"])
async def test_what_does_not_exist_is_refused_as_the_revision_has_it(tmp_path: Path, revision: str, uri: str) -> None:
    async with reader(fill(tmp_path), revision) as desk:
        error = await desk.refusal("resources/read", uri=uri)
    if revision == "legacy":
        assert (error["code"], error["data"]) == (-32002, {"uri": uri})
    else:
        assert error["code"] == -32602
    assert error["message"].endswith(".")


HOSTILE = {
    "up": "manual://guide/../../secret.md",
    "up, encoded": "manual://guide/%2e%2e/%2E%2E/secret.md",
    "up, encoded twice": "manual://guide/%252e%252e/%252e%252e/secret.md",
    "up, with a slash encoded": "manual://guide/..%2f..%2fsecret.md",
    "up, with a backslash": "manual://guide/..%5c..%5csecret.md",
    "up, as the manual": "manual://../secret.md",
    "up, in the manual": "manual://guide%2f..%2f../secret.md",
    "absolute": "manual://guide//etc/passwd",
    "absolute, without a manual": "manual:///etc/passwd",
    "a drive": "manual://guide/C:%5csecret.md",
    "NUL": "manual://guide/intro.md%00.json",
    "NUL, raw": "manual://guide/intro.md\0",
    "a newline": "manual://guide/intro.md%0a",
    "a lone surrogate": "manual://guide/\ud800.md",
    "bytes that are not UTF-8": "manual://guide/%ff%fe.md",
    "an overlong slash": "manual://guide/..%c0%af..%c0%afsecret.md",
    "hidden": "manual://guide/.git/config.md",
    "a link out": "manual://guide/out.md",
    "a folder that is a link out": "manual://guide/outside/secret.md",
    "a list of a folder that is a link out": "manual://guide/outside/",
    "another scheme": "file:///etc/passwd",
    "a scheme like ours": "manuals://guide/intro.md",
    "no scheme": "guide/intro.md",
    "nothing": "",
    "a long name": "manual://guide/" + "a" * 5000 + ".md",
    "very long": "manual://guide/" + "%61" * 2_000_000,
    "a section far away": "manual://guide/intro.md#line=999999999999",
    "a place far away": "manual://guide/intro.md#char=999999999999",
    "the root of all manuals": "manual://manuals/",
}


@every_revision
async def test_nothing_outside_of_the_manuals_is_read_and_each_refusal_says_why(tmp_path: Path, revision: str) -> None:
    book(tmp_path, {"secret.md": "SECRET", "outside/secret.md": "SECRET"})
    root = fill(tmp_path / "root")
    (root / "guide" / "out.md").symlink_to(tmp_path / "secret.md")
    (root / "guide" / "outside").symlink_to(tmp_path / "outside")
    async with reader(root, revision) as desk:
        for name, uri in HOSTILE.items():
            answer = await desk.ask("resources/read", uri=uri)
            assert answer.get("error", {}).get("code") in (-32002, -32602), (name, answer)
            assert "SECRET" not in json.dumps(answer)
            assert str(tmp_path) not in json.dumps(answer)
            assert len(answer["error"]["message"]) < 1000
        found, _ = await desk.uris()
    assert not [uri for uri in found if "out" in uri]


@every_revision
async def test_params_and_cursors_that_nobody_was_given_are_refused(tmp_path: Path, revision: str) -> None:
    async with reader(fill(tmp_path), revision) as desk:
        cursors: list[Any] = ["", "x", 5, {}, "guide/intro.md", "manual://%ff/", "manual://" + "a" * 100_000, "é"]
        for cursor in cursors:
            assert (await desk.refusal("resources/list", cursor=cursor))["code"] == -32602, cursor
        for params in ({}, {"uri": None}, {"uri": 5}, {"uri": ["manual://guide/"]}):
            assert (await desk.refusal("resources/read", **params))["code"] == -32602, params
        # One that names what is not there only says where to go on.
        page = await desk.get("resources/list", cursor="manual://guide/../../../etc/passwd")
        assert page["resources"][0]["uri"].startswith("manual://guide/")


@every_revision
async def test_manuals_and_paths_are_completed_level_by_level(tmp_path: Path, revision: str) -> None:
    pages = {f"other/page{number:03}.md": "" for number in range(130)}
    async with reader(book(fill(tmp_path), pages), revision) as desk:
        assert await desk.completed("manual_id", "") == {"values": ["guide", "other"], "total": 2, "hasMore": False}
        assert (await desk.completed("manual_id", "GU"))["values"] == ["guide"]
        assert (await desk.completed("path", "", manual_id="guide"))["values"] == ["api/", "data.json", "intro.md"]
        assert (await desk.completed("path", "api/au", manual_id="guide"))["values"] == ["api/auth.md"]
        many = await desk.completed("path", "page", manual_id="other")
        assert (len(many["values"]), many["total"], many["hasMore"]) == (100, 130, True)
        for value, manual_id in (("../", "guide"), ("", "none"), ("", "../.."), ("x" * 10_000, "guide")):
            assert (await desk.completed("path", value, manual_id=manual_id))["values"] == []
        assert (await desk.completed("path", "in"))["values"] == []


async def test_completion_of_what_is_not_offered_is_refused(tmp_path: Path) -> None:
    template = {"type": "ref/resource", "uri": TEMPLATE}
    async with reader(fill(tmp_path)) as desk:
        for params in (
            {},
            {"ref": 5, "argument": []},
            {"ref": template, "argument": {"name": "other", "value": ""}},
            {"ref": template, "argument": {"name": "path", "value": 5}},
        ):
            assert (await desk.refusal("completion/complete", **params))["code"] == -32602, params


@every_revision
async def test_a_read_can_be_cancelled_while_its_thread_hangs(tmp_path: Path, revision: str) -> None:
    entered, leave = trio.Event(), Mock(return_value=False)
    token = trio.lowlevel.current_trio_token()

    def hang(*_: Any) -> None:
        check = _[-1]
        token.run_sync_soon(entered.set)
        while not leave():
            check()  # raises when the caller is cancelled

    with patch("responses_mcp.manuals.service.read_resource", hang):
        async with reader(fill(tmp_path), revision) as desk:
            with trio.fail_after(WAIT):
                params = {"uri": "manual://guide/intro.md", **({"_meta": ENVELOPE} if revision == "modern" else {})}
                number = await desk.client.request("resources/read", params)
                await entered.wait()
                assert desk.client.server.in_flight == 1
                await desk.client.cancel(number)
                await desk.get("resources/templates/list")
            assert desk.client.server.in_flight == 0
            assert [message for message in desk.client.heard if message.get("id") == number] == []


async def test_a_server_with_problems_says_so_at_each_request(tmp_path: Path) -> None:
    async with reader(fill(tmp_path), problems=("openai.base_url: wrong; mend it.",)) as desk:
        error = await desk.refusal("resources/list")
    assert error["code"] == -32603
    assert "openai.base_url" in error["message"]


async def test_a_folder_that_cannot_be_read_is_left_out_of_the_list(tmp_path: Path) -> None:
    children = Folder.children

    def some(folder: Folder, manual_id: str, path: str, check: Any) -> Any:
        if path == "api/":
            raise ManualsError("conflict", "api cannot be read.") from PermissionError(13, "Permission denied")
        return children(folder, manual_id, path, check)

    async with reader(fill(tmp_path)) as desk:
        with patch.object(Folder, "children", some):
            found, _ = await desk.uris()
    assert found == ["manual://guide/", "manual://other/", *(f"manual://{path}" for path in READABLE)]


async def test_a_shortage_ends_the_list_rather_than_shortening_it(tmp_path: Path) -> None:
    failure = ManualsError("conflict", "No descriptors.")
    failure.__cause__ = OSError(24, "Too many open files")
    async with reader(fill(tmp_path)) as desk:
        with patch.object(Folder, "children", side_effect=failure):
            assert (await desk.refusal("resources/list"))["code"] == -32603
