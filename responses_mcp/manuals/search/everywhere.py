"""`manual_search`: one ranking of what several manuals have, without required terms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from responses_mcp.manuals.search.meaning import MOST_COMPARED
from responses_mcp.manuals.search.ranking import Search, rank, spread

if TYPE_CHECKING:
    from responses_mcp.manuals.cancellation import CancellationCheck
    from responses_mcp.manuals.search.meaning import Meaning
    from responses_mcp.manuals.search.query import Query
    from responses_mcp.manuals.search.reader import Reader, Row
    from responses_mcp.settings.model import LexicalSettings

_LOWEST: Final = 0.03  # what scores less is not shown beside what scores several times as much
_LOWEST_SHARE: Final = 0.25  # of the best score; what has so much is shown, however little that is
_FIRST: Final = 5  # sections, of which one should have what was asked for


class Everything(NamedTuple):
    """What manuals have: the rows that fit best with their scores, and the manuals that there was no time for.

    `unknown` are words of the question that none has; `covered` is what part of it one of the first sections has.
    """

    rows: Sequence[tuple[Row, float]] = ()
    late: Sequence[str] = ()
    unknown: Sequence[str] = ()
    covered: float = 1.0


def search_all(
    asked: Query,
    readers: Sequence[Reader],
    lexical: LexicalSettings,
    most: int,
    check: CancellationCheck,
    *,
    meaning: Meaning | None = None,
) -> Everything:
    """Return the `most` sections that fit best; further ones of a file sink a little, as in a find.

    A long question has low scores altogether, so what scores little is left out only beside what scores much more.
    """
    ranking = rank(asked, Search(readers, lexical, check, MOST_COMPARED, compared=meaning is not None))
    by_meaning = meaning is not None and not ranking.late and meaning.rerank(ranking, readers)
    best = spread(ranking.order, ranking.fused, most)
    least = min(_LOWEST, _LOWEST_SHARE * best[0][1]) if best else 0.0
    rows = [(ranking.scored[key].row, score) for key, score in best if score >= least and score > 0]
    coverage = max((ranking.scored[key].coverage for key, _ in best[:_FIRST]), default=1.0)
    return Everything(rows, ranking.late, ranking.unknown, 1.0 if by_meaning else ranking.known * coverage)
