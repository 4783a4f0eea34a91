"""What was said in a run that the API does not keep, so that another can follow it up: items for the next input.

Reasoning comes encrypted, where it was asked for, and is sent back as it came. Where some did not, the API would miss
it behind the items that came of it; then only the texts are sent.
"""

from __future__ import annotations

import json
from itertools import groupby, repeat
from typing import Any, Final, TypeAlias, cast

from responses_mcp.json_types import JsonObject, objects
from responses_mcp.redaction import Redact
from responses_mcp.responses_api.response.parser import MOST_ITEMS, answer_parts, joined_text

Conversation: TypeAlias = list[JsonObject]
"""Items of an input, from the first question to the last answer."""

LARGEST: Final = 2 * 1024 * 1024  # characters of JSON
ENCRYPTED: Final = "reasoning.encrypted_content"  # of `include`
_REPEATED, _TOO_SHORT = 16, 8  # characters that are a part of the question, and no accident
_MOST_COMPARED: Final = 100_000  # characters of it
_OURS: Final = ("reasoning", "web_search_call", "file_search_call", "message")


def conversation_of(body: JsonObject, response: JsonObject, redact: Redact) -> Conversation | None:
    """Return what was asked and answered; None where that is too much to be kept."""
    items = list(objects(response.get("output"), repeat(None, MOST_ITEMS)))
    said = [item for item in items if item.get("type") in _OURS]
    if any(item.get("type") == "reasoning" and not item.get("encrypted_content") for item in said):
        text = joined_text(list(answer_parts(items, MOST_ITEMS)), "output_text", "text", redact)
        said = [{"role": "assistant", "content": text}]
    whole = [*_items(body), *said]
    return whole if len(json.dumps(whole)) <= LARGEST else None


def followed_up(body: JsonObject, before: Conversation) -> JsonObject:
    """Return the body of a request whose question follows up a conversation."""
    return {**body, "input": [*before, *_items(body)]}


def without_question(message: str, body: JsonObject) -> str:
    """Return a message without what it repeats of the question that `body` asks: it is written down."""
    items = [each.get("content") for each in _items(body)] if "input" in body else []
    asked = " ".join(str(items[-1])[:_MOST_COMPARED].split()) if items else ""
    asked = asked.partition(" [Hints] ")[0]
    width = min(_REPEATED, len(asked))
    if width < _TOO_SHORT:
        return message
    repeated = bytearray(len(message))
    for at in range(len(message) - width + 1):
        if message[at : at + width] in asked:
            repeated[at : at + width] = b"\1" * width
    pieces = (
        (hidden, "".join(letter for letter, _ in each))
        for hidden, each in groupby(zip(message, repeated, strict=True), lambda each: each[1])
    )
    return "".join("…" if hidden else piece for hidden, piece in pieces)


def _items(body: JsonObject) -> Conversation:
    given: Any = body["input"]
    return [{"role": "user", "content": given}] if isinstance(given, str) else cast(Conversation, given)
