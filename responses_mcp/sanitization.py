"""Sanitization: what comes from the API or a file is text to be read, and nothing in it acts on who shows or reads it.

Taken out are control characters, sequences for terminals, and characters that nobody sees. One of these stays where
writing needs it: in emoji and flags, in scripts whose letters join, behind Han. Nothing moves, no line ends elsewhere.
"""

from __future__ import annotations

import re
from typing import Any, Final, cast

from responses_mcp.json_types import JsonObject, replace_lone_surrogates, text_at
from responses_mcp.secrets import UNSEEN, UNSEEN_AT_TIMES, Redact

_LONGEST_SECRET: Final = 4 * 1024  # characters at the end of a text that is cut there, which may be half of one
_LONGEST_LINE: Final = 8 * 1024  # characters; few servers take a longer address
# With what stays, too: for a character that is missing here, `translate` has an error to catch.
_CONTROLS: Final = {code: code if code in (9, 10) or 32 <= code < 127 else None for code in range(128)}
# Emoji and symbols; scripts from Hebrew to Mongolian, whose letters join or run to the left; Han and its punctuation.
_EMOJI: Final = r"\xa9\xae\u203c-\u2bff\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
_JOINED: Final = r"\u0590-\u109f\u1700-\u1cff\ua800-\uabff\ufb1d-\ufefc\U00010800-\U00011fff\U0001e800-\U0001efff"
_WIDE: Final = r"\u2200-\u22ff\u2a00-\u2aff\u3000-\u9fff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003fffd"
_MARK: Final = r"\u0300-\u034e\u0350-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
_FAR: Final = (  # controls of music and shorthand, and no characters; a class of these alone is slow
    r"[\U0001bca0-\U000dffff\U000e1000-\U0010ffff](?<![\U0001bca4-\U0001d172\U0001d17b-\U0001fffd\U00020000-\U0002fffd"
    r"\U00030000-\U0003fffd\U000f0000-\U000ffffd\U00100000-\U0010fffd])"
)
_DIRECTION: Final = r"\u061c\u200e\u200f"

# As texts, because a start has no time for patterns.
_SUSPECT: Final = f"[{UNSEEN}{UNSEEN_AT_TIMES}{_MARK}\U0001bca0-\U0010ffff]"
# As ECMA-48 has them: CSI, strings, short ones. One without an end loses its first character alone: where text was
# decoded wrongly, C1 characters stand for quotation marks.
_SEQUENCE: Final = (
    r"[\x1b\x90\x98\x9b\x9d-\x9f](?:(?:(?<=\x9b)|(?<=\x1b)\[)[0-?]*+[ -/]*+[@-~]"
    r"|(?:(?<=[\x90\x98\x9d-\x9f])|(?<=\x1b)[PX\]^_])[^\x00-\x08\x0a-\x1f\x7f-\x9f]*+(?:\x07|\x1b\\|\x9c)"
    r"|(?<=\x1b)(?: [FGLMN]|[!-/]++[0-~]|(?![PX\[\]^_])[0-~]))"
)
_NEEDED: Final = (  # at the beginning of a run; the rest of it says something to nobody but a model
    rf"(?<=[{_EMOJI}])(?:\ufe0f?\u200d(?=[{_EMOJI}])|[\ufe0e\ufe0f])|(?<=[0-9#*])[\ufe0e\ufe0f](?=\u20e3)"
    rf"|(?<=[{_WIDE}])[\ufe00-\ufe02\U000e0100-\U000e01ef]|(?<=[{_JOINED}])[\u200b-\u200d\u034f\u180b-\u180f]"
    rf"|[{_DIRECTION}]|\u115f(?=[\u1161-\u11a7])|(?<=[\u1100-\u115e])\u1160"
    r"|(?<=\U0001f3f4)[\U000e0030-\U000e0039\U000e0061-\U000e007a]{3,6}\U000e007f"  # Scotland, Texas
)


def sanitized(text: str) -> str:
    """Return `text` as it may be shown; one without anything to take out is the same object.

    All line ends become newlines, and lone surrogates U+FFFD. To sanitize twice is to sanitize once. Secrets are to be
    looked for afterwards: without what stood inside, one is whole again.
    """
    if text.isascii() and text.translate(_CONTROLS) == text:  # as most texts are
        return text
    text = replace_lone_surrogates(text)
    if not re.search(_SUSPECT, text):
        return text
    text = re.sub(_SEQUENCE, "", re.sub(r"\r\n?|[\x0b\x0c\x85]", "\n", text))
    text = re.sub(_FAR, "", re.sub(f"[{UNSEEN}]++", "", text))
    if not re.search(f"[{_JOINED}](?<!\u061c)", text):
        text = re.sub(f"[{_DIRECTION}\u200b\u200c]++", "", text)
    needed = re.compile(_NEEDED).match
    text = re.sub(f"[{UNSEEN_AT_TIMES}]++", lambda run: (needed(run.string, run.start()) or [""])[0], text)
    return re.sub(f"([{_MARK}]{{8}})[{_MARK}]++", r"\1", text)  # more than any language writes


def beginning_of(text: str, most: int, redact: Redact, *, cut: bool = False) -> str:
    """Return the first `most` characters as they may be shown, without half a secret where the text is, or was, cut."""
    shown = redact(sanitized(text[:most]))
    return shown[:-_LONGEST_SECRET] if cut or len(text) > most else shown


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
    line = beginning_of(text_at(mapping, key), 2 * _LONGEST_LINE, redact)
    return " ".join(line[:_LONGEST_LINE].split())
