"""Looking into a Response object that may have any shape: what is not there, or is something else, counts as empty."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat
from typing import Any, cast

from responses_mcp.protocol.jsonrpc import JsonObject, replace_lone_surrogates
from responses_mcp.redaction import Redact

_LONGEST_TEXT = 1_100_000  # characters: more than an answer may have, so that what is too long is seen
_LONGEST_SECRET = 4 * 1024  # characters at the end of a text that was cut, which may be half of one
_LONGEST_LINE = 8 * 1024  # characters; few servers take a longer address


def answer_parts(items: list[JsonObject], most: int) -> Iterator[JsonObject]:
    """Yield the content parts of the final answer, or of all messages where none is marked as final."""
    messages = [item for item in items if item.get("type") == "message"]
    final = [message for message in messages if message.get("phase") == "final_answer"]
    looks = repeat(None, most)
    for message in final or messages:
        yield from objects(message.get("content"), looks)


def joined(parts: list[JsonObject], kind: str, member: str, redact: Redact) -> str:
    """Join one member of all parts of a kind, such as the `text` of `output_text`, to a text that may be shown."""
    # Joined first: a secret may have been cut between two parts, and a character into its two surrogates.
    text = "".join(text_at(part, member) for part in parts if part.get("type") == kind)
    shown = redact(replace_lone_surrogates(text[:_LONGEST_TEXT]))
    return shown if len(text) <= _LONGEST_TEXT else shown[:-_LONGEST_SECRET]


def as_object(value: Any) -> JsonObject:
    """Return an object as it is, and the empty one for anything else."""
    return cast(JsonObject, value) if isinstance(value, dict) else {}


def objects(value: Any, looks: Iterator[None]) -> Iterator[JsonObject]:
    """Yield the objects in a list. Each member that is looked at, whatever it is, takes one of `looks`.

    So `repeat(None, most)` bounds the work on all the lists that it is passed to.
    """
    if isinstance(value, list):
        for each, _ in zip(cast(list[object], value), looks, strict=False):
            if isinstance(each, dict):
                yield cast(JsonObject, each)


def text_at(mapping: JsonObject, key: str) -> str:
    """Return the text at a key, as it is; what is to be shown is read with `joined` and `line_at`."""
    value = mapping.get(key)
    return value if isinstance(value, str) else ""


def line_at(mapping: JsonObject, key: str, redact: Redact) -> str:
    """Return the text at a key on one line: a line break in a URL would forge a line of the `Sources:` block."""
    return " ".join(replace_lone_surrogates(redact(text_at(mapping, key))[:_LONGEST_LINE]).split())
