"""What definitions of tools are made of: schemas, each with one plain type.

Clients and models' APIs refuse lists of types, and combinators at the root. So an argument is optional by being left
out, though null is taken too.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from responses_mcp.json_types import JsonObject

STRING: Final[JsonObject] = {"type": "string"}
STRINGS: Final[JsonObject] = {"type": "array", "items": STRING}
NUMBER: Final[JsonObject] = {"type": "number"}
INTEGER: Final[JsonObject] = {"type": "integer"}
BOOLEAN: Final[JsonObject] = {"type": "boolean"}
OBJECT: Final[JsonObject] = {"type": "object"}
READS: Final[JsonObject] = {"readOnlyHint": True, "openWorldHint": True}
"""Without `readOnlyHint` Codex refuses a call, and Claude Code runs calls one after the other."""


def object_of(required: str = "", /, **properties: JsonObject) -> JsonObject:
    """Return the schema of an object; `required` names members, separated by blanks."""
    schema: JsonObject = {"type": "object", "properties": properties}
    return {**schema, "required": required.split()} if required else schema


def list_of(items: JsonObject) -> JsonObject:
    """Return the schema of a list."""
    return {"type": "array", "items": items}


def one_of(words: str) -> JsonObject:
    """Return the schema of a choice between words."""
    return {**STRING, "enum": words.split()}


def members(schema: JsonObject, names: str) -> dict[str, JsonObject]:
    """Return members of the same schema, by their names, which blanks separate."""
    return dict.fromkeys(names.split(), schema)


def described(schema: JsonObject, description: str) -> JsonObject:
    """Return a schema with a description."""
    return {**schema, "description": description}


CITATIONS: Final = list_of(object_of("url", **members(STRING, "url title published_at")))


class Definition(NamedTuple):
    """A tool without what does it."""

    name: str
    title: str
    description: str
    input_schema: JsonObject
    output_schema: JsonObject
    annotations: JsonObject = READS
