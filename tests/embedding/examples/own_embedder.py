from collections.abc import Sequence
from pathlib import Path
from string import ascii_lowercase
from tempfile import TemporaryDirectory

import trio

from responses_mcp.manuals.requests import SearchRequest
from responses_mcp.manuals.service import open_manuals
from responses_mcp.settings import ManualsSettings


class Letters:
    """Count letters, in place of a model."""

    name = "letters 1"
    few = 16
    rest = 10.0

    async def embed(self, texts: Sequence[str], /) -> Sequence[Sequence[float]]:
        await trio.lowlevel.checkpoint()  # here a model would be asked; raise EmbeddingFailed if it cannot be
        return [[float(text.lower().count(letter)) for letter in ascii_lowercase] for text in texts]

    async def aclose(self) -> None:
        """Hold nothing, close nothing."""


async def look_up(settings: ManualsSettings) -> None:
    async with open_manuals(settings, embedder=Letters()) as manuals:
        await manuals.index("pumps")
        print("sections with vectors:", await manuals.embed("pumps"))
        for row in (await manuals.search(SearchRequest("How long may a pump run dry?"))).rows:
            print(row.path, row.line)


def main() -> None:
    with TemporaryDirectory() as root:
        folder = Path(root, "pumps")
        folder.mkdir()
        (folder / "care.md").write_text("# Care\n\nA pump may run dry for ten seconds.\n", encoding="utf-8")
        trio.run(look_up, ManualsSettings(root=root, in_memory=True))


if __name__ == "__main__":
    main()
