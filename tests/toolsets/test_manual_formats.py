"""Files as people have them, as a client sees them: each format is found, read at the place found, and listed."""

from pathlib import Path
from typing import Any

import pytest

from tests.toolsets.manuals_harness import Desk, desk, settings_for


def write(root: Path, path: str, content: str | bytes) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content.encode() if isinstance(content, str) else content)


async def first(here: Desk, query: str) -> dict[str, Any]:
    """Return the best row for a question."""
    row: dict[str, Any] = (await here.call("manual_search", query=query))["results"][0]
    return row


@pytest.mark.parametrize(
    ("path", "text", "line", "above"),
    [
        ("m/a.md", "Pumps\n=====\n\nIntro.\n\nRunning dry\n-----------\n\nTen seconds.\n", 6, "Pumps"),
        ("m/a.md", "<h1>Pumps</h1>\n\nIntro.\n\n<h2 id='x'>Running dry</h2>\n\nTen seconds.\n", 5, "Pumps"),
        ("m/a.markdown", "# Pumps\n\nIntro.\n\n## Running dry\n\nTen seconds.\n", 5, "Pumps"),
    ],
)
async def test_a_section_is_found_by_its_heading_and_read(
    tmp_path: Path, path: str, text: str, line: int, above: str
) -> None:
    write(tmp_path, path, text)
    async with desk(settings_for(tmp_path)) as here:
        row = await first(here, "running dry")
        assert (row["title"], row["above"], row["line"], row["snippet"]) == ("Running dry", above, line, "Ten seconds.")
        read = await here.call("manual_read", ref=row["ref"])
        assert "Ten seconds." in read["text"]
        assert "Intro." not in read["text"]


@pytest.mark.parametrize("front", ["search:\n  exclude: true\n", "search: {exclude: true}\n"])
async def test_a_page_that_its_author_excludes_is_read_and_not_found(tmp_path: Path, front: str) -> None:
    write(tmp_path, "m/a.md", f"---\ntitle: Old\n{front}---\n\n# Seals\n\nTen seconds.\n")
    write(tmp_path, "m/b.md", "---\nsearch:\n  boost: 2\nexclude: true\n---\n\n# Seals of today\n\nTwo seconds.\n")
    async with desk(settings_for(tmp_path)) as here:
        found = await here.call("manual_search", query="seals seconds")
        assert [row["path"] for row in found["results"]] == ["b.md"]
        assert found["complete"] is True
        read = await here.call("manual_read", ref={"manual_id": "m", "path": "a.md"})
        assert "Ten seconds." in read["text"]


# Any folder


async def test_files_in_the_root_itself_are_found_and_read(tmp_path: Path) -> None:
    write(tmp_path, "guide/care.md", "# Care\n\nThe gasket lasts ten years.\n")
    write(tmp_path, "guide/sub/more.md", "# More\n\nThe impeller lasts two years.\n")
    async with desk(settings_for(tmp_path / "guide")) as here:
        assert [item["id"] for item in (await here.call("manual_ls"))["items"]] == ["guide", "sub"]
        row = await first(here, "gasket")
        assert (row["manual_id"], row["path"]) == ("guide", "care.md")
        assert "ten years" in (await here.call("manual_read", ref=row["ref"]))["text"]
        assert (await first(here, "impeller"))["manual_id"] == "sub"
        listed = await here.call("manual_ls", id="guide")
        assert [item["name"] for item in listed["items"]] == ["care.md"]
        assert (await here.call("manual_toc", manual_id="guide"))["total_files"] == 1


# What is not read


async def test_what_is_not_served_is_counted_and_named_where_little_is_found(tmp_path: Path) -> None:
    write(tmp_path, "m/a.md", "# Seals\n\nTwo seconds.\n")
    write(tmp_path, "m/b.xyz", "gaskets")
    write(tmp_path, "m/c.png", b"\x89PNG")
    told = "1 file of another format is not served (1 .xyz)"
    async with desk(settings_for(tmp_path)) as here:
        nothing = await here.call("manual_search", query="gaskets")
        assert (nothing["results"], nothing["complete"], nothing["reason"]) == ([], False, told)
        found = await here.call("manual_search", query="seals")
        assert (found["complete"], "reason" in found) == (True, False)
        await here.call("manual_ls")
        found = await here.call("manual_find", query="gaskets", manual_id="m", required_terms=["gaskets"])
        assert found["note"] == f"{told}."


async def test_a_document_that_is_not_served_leaves_a_search_incomplete(tmp_path: Path) -> None:
    write(tmp_path, "m/a.md", "# Seals\n\nTwo seconds.\n")
    write(tmp_path, "m/sub/old.doc", b"\xd0\xcf")
    async with desk(settings_for(tmp_path)) as here:
        found = await here.call("manual_search", query="seals")
        assert (found["complete"], found["reason"]) == (False, "m: 1 file not searched (format_not_served)")
        await here.call("manual_ls")
        find = await here.call("manual_find", query="seals", manual_id="m", required_terms=["gaskets"])
        hits = await here.call("manual_hits", trace_id=find["trace_id"], kind="unscanned")
        assert [(item["path"], item["reason"]) for item in hits["items"]] == [("sub/old.doc", "format_not_served")]
        assert find["failure_reason"].startswith("incomplete:1_files_not_searched")
