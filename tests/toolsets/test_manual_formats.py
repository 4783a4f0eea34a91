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
