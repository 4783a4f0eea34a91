"""Responses of a search, held against the official types."""

import json
from collections.abc import Iterable, Sequence
from typing import Any

from openai.types import responses as official

from responses_mcp.testing import bodies
from tests.testing.official_types import check_types

PEP, NEWS = bodies.PEP, bodies.NEWS


def found(
    listed: str | Sequence[dict[str, Any]],
    *,
    sources: Iterable[str] | None = (),
    cited: Iterable[tuple[str, str]] = (),
    searches: Iterable[dict[str, Any]] | None = None,
    **fields: Any,
) -> dict[str, Any]:
    """Return a response with a list (or any text), the sources of its search, and (url, title) pairs that it cites."""
    text = listed if isinstance(listed, str) else json.dumps(listed, ensure_ascii=False)
    calls = [bodies.web_search_call(["q"], sources)] if searches is None else searches
    annotations = [bodies.url_citation(url, title, 0, 0) for url, title in cited]
    body = bodies.answer(text, annotations=annotations, searches=calls, **fields)
    check_types(official.Response.model_validate(body))
    return body
