"""An embedder of a host's own: what it may get wrong is told as that, and nothing wrong is kept."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from responses_mcp.errors import ResponsesMcpError
from responses_mcp.manuals.embeddings.embedder import EmbeddingFailed
from responses_mcp.manuals.service import open_manuals
from responses_mcp.settings.model import ManualsSettings
from tests.manuals.embeddings.stub import StubEmbedder

SPOILT: list[Callable[[Any], Any]] = [
    lambda right: right[1:],
    lambda right: [*right, right[0]],
    lambda right: [],
    lambda right: None,
    lambda right: [right[0], [math.nan] * 64],
    lambda right: [right[0], [math.inf] * 64],
    lambda right: [right[0], ["1"] * 64],
    lambda right: [right[0], None],
    lambda right: [[], []],
]


class Wrong(StubEmbedder):
    """Gives what `spoil` makes of what is right."""

    def __init__(self, spoil: Callable[[Any], Any]) -> None:
        super().__init__(name="mine")
        self.spoil = spoil

    async def embed(self, texts: Sequence[str], /) -> Sequence[Sequence[float]]:
        spoilt: Sequence[Sequence[float]] = self.spoil(await super().embed(texts))
        return spoilt


@pytest.mark.parametrize("spoil", SPOILT)
async def test_what_is_no_vector_for_each_text_is_told_with_the_name_of_who_gave_it(
    spoil: Callable[[Any], Any], tmp_path: Path
) -> None:
    (tmp_path / "pumps").mkdir()
    for name in ("care", "parts"):
        (tmp_path / f"pumps/{name}.md").write_text(f"# {name}\n\nText about {name}.\n", encoding="utf-8")
    async with open_manuals(ManualsSettings(root=str(tmp_path)), embedder=Wrong(spoil)) as manuals:
        await manuals.index("pumps")
        with pytest.raises(ResponsesMcpError) as caught:  # who catches all of this package's errors has it, too
            await manuals.embed("pumps")
        assert isinstance(caught.value, EmbeddingFailed)
        assert "'mine' must give one vector of finite numbers for each of 2 texts" in str(caught.value)
        assert (await manuals.outstanding("pumps")).sections == 2
