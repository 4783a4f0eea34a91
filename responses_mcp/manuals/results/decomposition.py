"""Take a question about several things apart: each part is searched for itself, beside the whole (M4.35)."""

from __future__ import annotations

import re
from typing import Final

from responses_mcp.manuals.words import is_hiragana, normalise

_MOST_PARTS: Final = 2  # which leaves time for the whole
_LONGEST: Final = 300  # characters; more is pasted text rather than a question, and its と may be anything

_KANJI: Final = "々〆一-鿿"
# A noun: kanji with the kana that go with them (読み取り), katakana, names. Plain hiragana is mostly grammar.
_LATIN: Final = r"[a-z0-9_][\w.+#/-]{0,60}"
_NAME: Final = rf"(?a:{_LATIN}(?: {_LATIN}){{0,2}})"
_NOUN: Final = (
    rf"(?:[{_KANJI}ァ-ヺーa-z0-9_.+#/-]|(?<=[{_KANJI}])(?:わ[せし]|[いきぎしちびみりえけげせねべめれ])){{1,40}}"
)
_ITEM: Final = f"(?:{_NAME}(?![{_KANJI}ァ-ヺー])|{_NOUN})"
# と between nouns, not before a verb (同じ, 呼ぶ, 比べる). In とは, という, として, とき no noun follows.
_VERB: Final = (
    r"同じ|同様|同時|同等|同一|言[うわいえっ]|思[うわいっ]|考え|呼[ばびぶん]|共に|異な|違[うわいっ]|比[べ較]|並[びぶん]|見な|書[くかい]"
    r"|一緒|一致|等し"
)
_AND: Final = rf" ?(?:と|及び|および|又は|または|もしくは) ?(?!{_VERB})"
# Each item with what follows it is taken once and for all: names are nouns too, and lists would be read in 2**n ways.
_LISTED: Final = re.compile(rf"(?P<items>(?>{_ITEM}(?:、 ?|{_AND}))*{_ITEM}{_AND}{_ITEM})(?P<rest>.*)")
_BETWEEN: Final = re.compile(rf"{_AND}|、 ?")

_QUOTES: Final = re.compile("[「」『』]")
_CONTRAST: Final = re.compile(
    r"違い|ちがい|相違|差異|(?:の|間の?)差(?![一-鿿ぁ-ん])|比較|比べ|区別|使い分け|優劣|どちら|どっち"
    r"|\b(?:vs\.?(?! code\b)|versus|compar(?:e[ds]?|ing|ison)|differ(?:s|ences?)?|distinction)\b"
)
_AFTER_ITEMS: Final = re.compile(r" ?(?:[のはをがで、間]|って| |$)")

_ARTICLE: Final = re.compile(r"^(?:an?|the) ")
_VERSUS: Final = re.compile(r"^(?P<a>.+?) (?:vs\.?(?! (?:code|studio|20\d\d)\b)|versus) (?P<b>.+)$")
_DIFFERENCE: Final = re.compile(
    r"\b(?:differences?|distinction|comparison) (?:between|of) (?P<a>.+?) (?:and|vs\.?) (?P<b>.+?)"
    r"(?= (?:in|on|for|when|with|under) |$)"
)
_COMPARE: Final = re.compile(r"\bcompar(?:e|ing) (?P<a>.+?) (?:and|with|to|against) (?P<b>.+)$")
_EITHER: Final = re.compile(r"(?<![\w.+#/-])(?P<a>[\w.+#/-]+),? or (?P<b>[\w.+#/-]+)", re.ASCII)


def sub_queries(query: str) -> list[str]:
    """Return the first two parts of a question, normalised; none when there is nothing to take apart.

    「AとBの違い」 has the parts A and B, 「AとBの設定」 has 「Aの設定」 and 「Bの設定」; "A vs B" and "use A or B"
    likewise.
    """
    text = _QUOTES.sub("", normalise(query)).rstrip("?。.! ")
    if len(text) > _LONGEST:
        return []
    parts = dict.fromkeys(part for part in _japanese(text) or _english(text) if part and part != text)
    return list(parts)[:_MOST_PARTS] if len(parts) > 1 else []


def compares(query: str) -> bool:
    """Tell whether a question asks for a comparison."""
    return _CONTRAST.search(normalise(query)) is not None


def _japanese(text: str) -> list[str]:
    found = _LISTED.search(text)
    if found is None:
        return []
    before, rest = text[: found.start()], found["rest"]
    items = _BETWEEN.split(found["items"])
    if not _AFTER_ITEMS.match(rest):
        return []
    if _CONTRAST.search(before) or _CONTRAST.search(rest):
        # "どちらがよい AとB": what the question asks is no part of what its parts are about.
        context = [word for word in _CONTRAST.sub(" ", before).split() if not is_hiragana(word)]
        return [" ".join([*context, item]) for item in items]
    if re.match(" ?の", rest):
        return [f"{before}{item}{rest}" for item in items]
    return []


def _english(text: str) -> list[str]:
    for pattern in (_DIFFERENCE, _COMPARE, _VERSUS):
        found = pattern.search(text)
        if found is not None:
            return [_ARTICLE.sub("", found[side]).strip(" ,") for side in "ab"]
    found = _EITHER.search(text)
    if found is None:
        return []
    return [text[: found.start()] + found[side] + text[found.end() :] for side in "ab"]
