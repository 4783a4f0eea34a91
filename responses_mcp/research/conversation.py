"""What was said in a run that the API does not keep, so that another can follow it up: items for the next input.

Reasoning comes encrypted, where it was asked for, and is sent back as it came. Where some did not, the API would miss
it behind the items that came of it; then only the texts are sent.
"""

from __future__ import annotations

import json
from typing import Any, Final, TypeAlias, cast

from responses_mcp.json_types import JsonObject
from responses_mcp.responses_api.response.parser import answer_messages, joined_text, output_items
from responses_mcp.secrets import Redact

Conversation: TypeAlias = list[JsonObject]
"""Items of an input, from the first question to the last answer."""

LARGEST: Final = 2 * 1024 * 1024  # characters of JSON
ENCRYPTED: Final = "reasoning.encrypted_content"  # of `include`
_OURS: Final = ("reasoning", "web_search_call", "file_search_call", "message")


def conversation_of(
    body: JsonObject, response: JsonObject, redact: Redact, before: Conversation | None
) -> Conversation | None:
    """Return what was asked and answered, from the first question on; None where that is too much to be kept.

    `before` is what was said in the response that the request goes on from; where that is not known, it is None, too.
    """
    if "previous_response_id" in body and before is None:
        return None
    items = output_items(response)
    said = [item for item in items if item.get("type") in _OURS]
    if any(item.get("type") == "reasoning" and not item.get("encrypted_content") for item in said):
        text = joined_text(answer_messages(items), "output_text", "text", redact)
        said = [{"role": "assistant", "content": text}]
    whole = [*(before or ()), *_items(body), *said]
    return whole if len(json.dumps(whole)) <= LARGEST else None


def followed_up(body: JsonObject, before: Conversation) -> JsonObject:
    """Return the body of a request whose question follows up a conversation."""
    return {**body, "input": [*before, *_items(body)]}


def _items(body: JsonObject) -> Conversation:
    given: Any = body["input"]
    return [{"role": "user", "content": given}] if isinstance(given, str) else cast(Conversation, given)
