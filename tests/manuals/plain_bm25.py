"""Plain BM25, the measure of what a search must at least do: words, stems and pairs of Japanese characters, no more."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping

import bm25s
import snowballstemmer

_KANA_AND_KANJI = "\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff々〆"
_RUN = re.compile(rf"[a-z0-9]+|[{_KANA_AND_KANJI}]+")
_HIRAGANA = re.compile("[\u3040-\u309f]+")
_STEMMER = snowballstemmer.stemmer("porter")

# English words that say how something is asked, not what.
FUNCTION_WORDS = frozenset(
    re.findall(
        r"\w+",
        """
        a about an and any are as at be been being between but by can could did do does for from had has
        have he her his how i if in into is it its may me might my no nor not of on or our shall she
        should so some such than that the their them then there these they this those through to was we
        were what when where which who whom whose why will with would you your
        """,
    )
)


def words(text: str) -> Iterator[str]:
    """Yield words of letters and digits, and pairs of neighbours of what is written without blanks."""
    for run in _RUN.findall(unicodedata.normalize("NFKC", text).casefold()):
        if run.isascii() or len(run) == 1:
            yield run
        else:
            yield from (run[at : at + 2] for at in range(len(run) - 1))


class PlainBM25:
    """Texts by their names, ranked for a question; k1 is 1.2 and b .75."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._names = list(texts)
        self._stems: dict[str, str] = {}
        self._bm25 = bm25s.BM25(k1=1.2, b=0.75, method="lucene")
        self._bm25.index([self._terms(words(text)) for text in texts.values()], show_progress=False)

    def ranked(self, question: str) -> list[str]:
        """Return the names of the texts that have a word of the question, the best first."""
        asked = list(dict.fromkeys(words(question)))
        telling = [word for word in asked if word not in FUNCTION_WORDS and not _HIRAGANA.fullmatch(word)]
        if not asked:
            return []
        scores = self._bm25.get_scores(list(dict.fromkeys(self._terms(telling or asked)))).tolist()
        order = sorted((number for number, score in enumerate(scores) if score > 0), key=lambda number: -scores[number])
        return [self._names[number] for number in order]

    def _terms(self, given: Iterable[str]) -> list[str]:
        return [self._stems[word] if word in self._stems else self._stem(word) for word in given]

    def _stem(self, word: str) -> str:
        self._stems[word] = _STEMMER.stemWord(word) if word.isascii() else word
        return self._stems[word]
