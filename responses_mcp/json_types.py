"""JSON of any shape: what is not there, or is something else, counts as empty; and text that can go into JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, TypeAlias, cast

JsonObject: TypeAlias = dict[str, Any]


def replace_lone_surrogates(text: str) -> str:
    """Return `text` with each half of a broken surrogate pair as U+FFFD, so that it can be written as UTF-8."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


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
    """Return the text at a key, as it is; what is to be shown is read with `joined_text` and `line_at`."""
    value = mapping.get(key)
    return value if isinstance(value, str) else ""


def unquoted(value: object) -> object:
    """Return what a JSON text says, as clients send objects and lists; text that is no JSON, and all else, as it is."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return value
