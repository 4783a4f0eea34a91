"""Words that a long question of prose may mean beside its own: those that its best sections share (after RM3).

A short question, and one that a section answers word by word, means what it says.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from responses_mcp.manuals.search.query import Term, is_grammar, term
from responses_mcp.manuals.words import LETTER, stem

MOST_SECTIONS: Final = 5
"""Sections, the best, that are looked at."""
_FEWEST: Final = 2  # of them that have a word
_MOST_WORDS: Final = 15
_MOST_WEIGHED: Final = 40  # words, for each of which the index is asked
_WORD: Final = re.compile(f"{LETTER.replace('0-9', '')}{{3,30}}")


def related(
    texts: Sequence[tuple[str, float]], said: AbstractSet[str], rarity: Callable[[str], float]
) -> list[tuple[Term, float]]:
    """Return words of folded texts that are not among the `said`, with shares that make 1 together.

    Each text comes with its weight. `rarity` is what a word is worth where it occurs.
    """
    shares = defaultdict[str, float](float)
    texts_with = Counter[str]()
    written: dict[str, str] = {}
    for text, weight in texts:
        found = Counter(word for word in _WORD.findall(text) if word not in said)
        for root, many in _by_root(found, written).items():
            shares[root] += weight * many / found.total()
            texts_with[root] += 1
    common = [root for root in shares if texts_with[root] >= _FEWEST and not is_grammar(written[root])]
    common.sort(key=lambda root: -shares[root])
    worth = {written[root]: shares[root] * rarity(written[root]) for root in common[:_MOST_WEIGHED]}
    best = sorted(worth, key=lambda word: -worth[word])[:_MOST_WORDS]
    total = sum(worth[word] for word in best)
    return [(term(word), worth[word] / total) for word in best if total]


def _by_root(found: Counter[str], written: dict[str, str]) -> Counter[str]:
    roots = Counter[str]()
    for word, many in found.items():
        root = stem(word)
        written.setdefault(root, word)
        roots[root] += many
    return roots
