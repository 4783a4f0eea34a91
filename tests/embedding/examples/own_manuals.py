from pathlib import Path
from tempfile import TemporaryDirectory

import trio

from responses_mcp.manuals.errors import ManualsError
from responses_mcp.manuals.requests import FindRequest, HitsRequest, ReadRequest, SearchRequest
from responses_mcp.manuals.service import open_manuals
from responses_mcp.settings import ManualsSettings


async def look_up(settings: ManualsSettings) -> None:
    async with open_manuals(settings) as manuals:
        for row in (await manuals.search(SearchRequest("How long may a pump run dry?"))).rows:
            print(row.manual_id, row.path, row.line, row.snippet.text if row.snippet is not None else "")
        found = await manuals.find(FindRequest("How long may a pump run dry?", "pumps", required_terms=("dry",)))
        for hit in manuals.hits(HitsRequest(found["trace_id"]), compact=True)["items"]:
            print(hit)
        section, _ = await manuals.read(ReadRequest("pumps", "care.md", start_line=3))
        print(section["text"])
        try:
            await manuals.read(ReadRequest("pumps", "missing.md"))
        except ManualsError as error:
            print(error.code, error.message)


def main() -> None:
    with TemporaryDirectory() as root:
        folder = Path(root, "pumps")
        folder.mkdir()
        care = "# Care\n\n## Running dry\n\nA pump may run dry for ten seconds.\n"
        (folder / "care.md").write_text(care, encoding="utf-8")
        trio.run(look_up, ManualsSettings(root=root, in_memory=True))


if __name__ == "__main__":
    main()
