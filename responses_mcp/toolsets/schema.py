"""What definitions of tools are made of: schemas in the one form that every client takes (docs/tools.md).

Each has one plain type, or is an `anyOf` of such schemas and nothing else; an `anyOf` never stands at the root.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from responses_mcp.json_types import JsonObject

STRING: Final[JsonObject] = {"type": "string"}
STRINGS: Final[JsonObject] = {"type": "array", "items": STRING}
NUMBER: Final[JsonObject] = {"type": "number"}
INTEGER: Final[JsonObject] = {"type": "integer"}
BOOLEAN: Final[JsonObject] = {"type": "boolean"}
NULL: Final[JsonObject] = {"type": "null"}
OPEN: Final[JsonObject] = {"type": "object"}
"""An object of a result whose members depend on the call. No argument is one: Gemini refuses it."""
READS: Final[JsonObject] = {"readOnlyHint": True, "openWorldHint": True}
"""Without `readOnlyHint` Codex refuses a call, and Claude Code runs calls one after the other."""


def object_of(required: str = "", /, **properties: JsonObject) -> JsonObject:
    """Return the schema of an object; `required` names members, separated by blanks."""
    schema: JsonObject = {"type": "object", "properties": properties}
    return {**schema, "required": required.split()} if required else schema


def arguments_of(required: str = "", /, **properties: JsonObject) -> JsonObject:
    """Return the schema of an object as `object_of` does, in which all that is not required may be null."""
    must = required.split()
    return object_of(required, **{name: each if name in must else or_null(each) for name, each in properties.items()})


def any_of(*schemas: JsonObject) -> JsonObject:
    """Return the schema of what fits one of `schemas`. Descriptions belong to these: Vertex AI wants nothing beside."""
    return {"anyOf": [each for schema in schemas for each in schema.get("anyOf", [schema])]}


def or_null(schema: JsonObject) -> JsonObject:
    """Return the schema of what fits `schema`, or is null."""
    return any_of(schema, NULL)


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
