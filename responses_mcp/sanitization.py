"""Sanitization: what comes from the API or a file is text to be read, and nothing in it acts on who shows or reads it.

Taken out are control characters, whole sequences for terminals, and characters that nobody sees. An invisible character
stays where writing needs it: joiners in emoji and in Arabic or Indic words, selectors that choose the form of a
character, flags, marks of direction in a text that has Hebrew or Arabic. Nothing moves and no line ends elsewhere.
"""

from __future__ import annotations

import re
from typing import Any, Final, cast

from responses_mcp.json_types import JsonObject, replace_lone_surrogates, text_at
from responses_mcp.secrets import Redact, redacted_beginning

_LONGEST_LINE: Final = 8 * 1024  # characters; few servers take a longer address

# Sequences for terminals, as ECMA-48 has them. What has begun and does not end loses its first character alone: where
# text was decoded wrongly, C1 characters stand for quotation marks.
_CSI: Final = r"(?:\x1b\[|\x9b)[0-?]*+[ -/]*+[@-~]"
_STRING: Final = r"(?:\x1b[PX\]^_]|[\x90\x98\x9d-\x9f])[^\x00-\x08\x0a-\x1f\x7f-\x9f]*+(?:\x07|\x1b\\|\x9c)"
_SHORT: Final = r"\x1b(?: [FGLMN]|[!-/]++[0-~]|(?![PX\[\]^_])[0-~])"
_CONTROL: Final = r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f-\x8f\x91-\x97\x99\x9a\x9c]++|[\x1b\x90\x98\x9b\x9d-\x9f]"

# In blocks, not by category: what a text means should not change with the tables of a Python.
_EMOJI: Final = (
    r"\xa9\xae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u24c2\u25a0-\u27bf\u2900-\u297f\u2b00-\u2bff"
    r"\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
)
_HAN: Final = r"\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd"
# Scripts whose letters join, or stay apart, by a joiner: from Arabic to the Indic ones and those of South-East Asia.
_JOINED: Final = (
    r"\u0620-\u06dc\u06de-\u077f\u07ca-\u07f5\u0840-\u085b\u0860-\u088e\u08a0-\u08e1\u08e3-\u0eff\u0f00-\u109f"
    r"\u1700-\u17b3\u17b6-\u180a\u1810-\u18aa\u1900-\u1cff\ua800-\ua82f\ua840-\uaa7f\uaae0-\uabff\ufb50-\ufdcf"
    r"\ufdf0-\ufdff\ufe70-\ufefc\U00010a00-\U00010a7f\U00011000-\U00011fff\U0001e900-\U0001e95f"
)
_WITHOUT_BLANKS: Final = r"\u0e00-\u0eff\u0f00-\u0fff\u1000-\u109f\u1780-\u17b3\u17b6-\u17ff\u1980-\u1aaf\uaa60-\uaa7f"
_RIGHT_TO_LEFT: Final = (
    r"\u0590-\u05f4\u0620-\u06dc\u06de-\u08e1\ufb1d-\ufdcf\ufdf0-\ufdff\ufe70-\ufefc\U00010800-\U00010fff"
    r"\U0001e800-\U0001efff"
)
# Symbols that have two forms in mathematics, and the characters whose place in their square varies.
_WITH_FORMS: Final = (
    r"0\u1000-\u109f\u2200-\u22ff\u2a00-\u2aff\u3000-\u303f\ua840-\ua87f\uff01-\uff9e\U00010ac0-\U00010aff"
)

_JOINER: Final = (
    rf"\u200c(?<![{_JOINED}]\u200c)"
    rf"|\u200d(?<![{_JOINED}]\u200d)(?!(?<=[{_EMOJI}]\u200d)[{_EMOJI}])(?!(?<=[{_EMOJI}]\ufe0f\u200d)[{_EMOJI}])"
)
_BREAK: Final = rf"(?<=[\u200b-\u200d])[\u200b-\u200d]++|\u200b(?<![{_WITHOUT_BLANKS}]\u200b)"
_SELECTOR: Final = (
    rf"[\ufe00-\ufe02](?<![{_HAN}{_WITH_FORMS}][\ufe00-\ufe02])|[\ufe03-\ufe0d]"
    rf"|[\ufe0e\ufe0f](?<![{_EMOJI}][\ufe0e\ufe0f])(?!(?<=[0-9#*][\ufe0e\ufe0f])\u20e3)"
    rf"|[\U000e0100-\U000e01ef](?<![{_HAN}][\U000e0100-\U000e01ef])"
    r"|[\u180b-\u180f](?<![\u1820-\u18aa][\u180b-\u180f])"
)
_FILLER: Final = (
    r"\u115f(?![\u1161-\u11a7\ud7b0-\ud7c6])|\u1160(?<![\u1100-\u115e\ua960-\ua97c]\u1160)|[\u3164\uffa0]"
    r"|\u034f(?<![\u0591-\u05f4]\u034f)|[\u17b4\u17b5]"
)
_UNSEEN: Final = (
    r"[\xad\u202a-\u202e\u2060-\u206f\ufeff\ufff0-\ufffc\ufdd0-\ufdef\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    r"\U000e0000-\U000e00ff\U000e01f0-\U000e0fff"
    + "".join(f"{chr(16**4 * n - 2)}{chr(16**4 * n - 1)}" for n in range(1, 18))
    + "]"
)
# The flags of England, Scotland, Wales and other parts of countries: the one use of these characters.
_FLAG: Final = r"(\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f)"
_DIRECTION: Final = r"[\u200e\u200f\u061c]"
_MARK: Final = r"[\u0300-\u034e\u0350-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]"

# Looked for first, because most texts have none of it.
_SUSPECT: Final = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u0300-\u036f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u1ab0-\u1aff\u1dc0-\u1dff"
    r"\u200b-\u200f\u20d0-\u20ff\u3164\ufe00-\ufe0f\ufe20-\ufe2f\uffa0\U000e0100-\U000e01ef" + _UNSEEN[1:]
)
_TAKEN_OUT: Final = (
    rf"{_FLAG}|{_CSI}|{_STRING}|{_SHORT}|{_CONTROL}|{_UNSEEN}++|{_BREAK}|{_JOINER}|{_SELECTOR}|{_FILLER}"
)
_IN_RIGHT_TO_LEFT: Final = re.compile(_TAKEN_OUT)
_ELSEWHERE: Final = re.compile(rf"{_TAKEN_OUT}|{_DIRECTION}++")
_HAS_RIGHT_TO_LEFT: Final = re.compile(f"[{_RIGHT_TO_LEFT}]")
# Afterwards, because what stood between is gone. Of marks of direction the last counts; of marks above and below a
# letter eight are more than any language writes, and thousands cover the lines around.
_TOO_MANY: Final = re.compile(rf"{_DIRECTION}(?={_DIRECTION})|(?<={_MARK}{{8}}){_MARK}++")
_LINE_END: Final = re.compile(r"\r\n?|[\x0b\x0c\x85]")


def sanitized(text: str) -> str:
    """Return `text` as it may be shown; one without anything to take out is the same object.

    All line ends become newlines, and lone surrogates U+FFFD. To sanitize twice is to sanitize once. Secrets are to be
    looked for afterwards: without what stood inside, one is whole again.
    """
    if text.isascii() and text.isprintable():  # as most texts are
        return text
    text = replace_lone_surrogates(text)
    if not _SUSPECT.search(text):
        return text
    taken_out = _IN_RIGHT_TO_LEFT if _HAS_RIGHT_TO_LEFT.search(text) else _ELSEWHERE
    return _TOO_MANY.sub("", taken_out.sub(r"\1", _LINE_END.sub("\n", text)))


def sanitized_json(value: Any, redact: Redact = str) -> Any:
    """Return a JSON value with each text in it sanitized, keys included, and passed through `redact`."""
    if isinstance(value, str):
        return redact(sanitized(value))
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value).items()
        return {redact(sanitized(key)): sanitized_json(each, redact) for key, each in members}
    if isinstance(value, list):
        return [sanitized_json(each, redact) for each in cast("list[object]", value)]
    return value


def line_at(mapping: JsonObject, key: str, redact: Redact) -> str:
    """Return the text at a key on one line: a line break in a URL would forge a line of the `Sources:` block."""
    text = text_at(mapping, key)
    clean = sanitized(text[: 2 * _LONGEST_LINE])
    line = redacted_beginning(clean, 2 * _LONGEST_LINE, redact, cut=len(text) > 2 * _LONGEST_LINE)
    return " ".join(line[:_LONGEST_LINE].split())
