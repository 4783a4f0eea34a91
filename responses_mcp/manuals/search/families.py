"""Word families: manage, manager, management and manageable have one root, though they are not forms of one word."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from responses_mcp.manuals.words import beats, forms, is_short, without_final_e, without_inflection

_WORD: Final = re.compile("[a-z]{4,47}")
# The suffixes of Porter's stemmer (An algorithm for suffix stripping, 1980, steps 2 to 4): what each is made shorter to
# where a syllable comes before it; and those that are left out at last where two do.
_SHORTER: Final = tuple(
    (re.compile(rf"(?:{'|'.join(sorted(shorter, key=len, reverse=True))})\Z"), shorter)
    for shorter in (
        {
            "ability": "able", "ably": "able", "alism": "al", "ality": "al", "ally": "al", "ancy": "ance",
            "antly": "ant", "ately": "ate", "ation": "ate", "ational": "ate", "ator": "ate", "ely": "e",
            "ency": "ence", "ently": "ent", "fulness": "ful", "ibility": "ible", "ibly": "ible", "iveness": "ive",
            "ivity": "ive", "ization": "ize", "izer": "ize", "ously": "ous", "ousness": "ous", "tional": "tion",
        },
        {"alize": "al", "ative": "", "ful": "", "ical": "ic", "icate": "ic", "icity": "ic", "ness": ""},
    )
)  # fmt: skip
_LAST: Final = re.compile(
    r"(?:able|al|anc[ey]|ant|ate|ement|enc[ey]|ent|er|ible|ic|(?<=[st])ion|ism|ity|ive|ize|ment|ous)\Z"
)
_ENDINGS: Final = (
    "", "e", "s", "es", "ed", "ing", "ings", "y", "ies", "ied", "ying", "ion", "ions", "ful", "fulness", "ness", "ely",
    "ate", "ated", "ates", "ating", "ation", "ations", "ative", "ize", "ized", "izes", "izing", "ization",
)  # fmt: skip
_ENDINGS_OF_LONG: Final = (
    "able", "ably", "ability", "ational", "ator", "ators", "al", "als", "ally", "ality", "ance", "ances", "ancy", "ant",
    "ants", "antly", "ately", "ement", "ements", "ence", "ences", "ency", "ent", "ents", "ently", "er", "ers", "ible",
    "ibly", "ibility", "ic", "ics", "ical", "ically", "ication", "ications", "ional", "ism", "ity", "ities", "ive",
    "ives", "ively", "ivity", "izations", "izer", "izers", "ly", "ment", "ments", "ous", "ously",
)  # fmt: skip
_DOUBLING: Final = ("ed", "ing", "ings", "er", "ers", "able", "ence")
_MOST_REMEMBERED: Final = 4096


@lru_cache(_MOST_REMEMBERED)
def relatives(word: str) -> frozenset[str]:
    """Return the words that have the root of a folded one, but for its own `forms`.

    They are all that could be, whether there are such words or not; fewer than a hundred.
    """
    if not _WORD.fullmatch(word):
        return frozenset()
    shared = _root(word)
    bases = {shared, shared.removesuffix("e"), shared.removesuffix("y")}
    every = {base + ending for base in bases for ending in _ENDINGS}
    if beats(shared) > 1:
        every.update(shared + ending for ending in _ENDINGS_OF_LONG)
    if shared.endswith("l") or is_short(shared):
        every.update(shared + shared[-1] + ending for ending in _DOUBLING)
    return frozenset(each for each in every if len(each) > 3 and _root(each) == shared) - forms(word)


def _root(word: str) -> str:
    word = without_inflection(word)
    if word.endswith(("at", "bl", "iz")):
        word += "e"
    for pattern, shorter in _SHORTER:
        found = pattern.search(word)
        if found is not None and beats(word[: found.start()]):
            word = word[: found.start()] + shorter[found[0]]
    found = _LAST.search(word)
    before = "" if found is None else word[: found.start()]
    word = before if beats(before) > 1 else without_final_e(word)
    return word[:-1] if word.endswith("ll") and beats(word) > 1 else word
