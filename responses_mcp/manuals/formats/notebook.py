"""Jupyter notebooks: cells of Markdown as they are, those of code and the text that they put out in code fences."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final, cast

from responses_mcp.manuals.cancellation import CancellationCheck
from responses_mcp.manuals.formats import markdown
from responses_mcp.manuals.formats.document import TOO_LONG, Document, Unserved, checked_lines

_MOST_CONTAINERS: Final = 1_000_000  # lists and objects, each of which takes 64 bytes
_LONGEST_OUTPUT: Final = 2000  # characters of one output that are shown


def convert(text: str, check: CancellationCheck) -> Document:
    """Return the cells as Markdown. Raises `Unserved` for what is no notebook."""
    if text.count("[") + text.count("{") > _MOST_CONTAINERS:
        raise Unserved(TOO_LONG)
    try:
        notebook: Any = json.loads(text, strict=False)  # a tab is no reason to serve nothing
    except (ValueError, RecursionError) as error:
        raise Unserved("not_a_notebook") from error
    check()
    parts: list[str] = []
    for cell in _cells(notebook):
        source = _joined(cell.get("source") or cell.get("input"))
        if cell.get("cell_type") == "code":
            parts += [_fenced(each) for each in (source, *_outputs(cell)) if each.strip()]
        else:
            parts.append(source)
    shown = "\n\n".join(part.rstrip("\n") for part in parts)
    return Document(shown, markdown.outline(checked_lines(shown, check)))


def _cells(notebook: object) -> Iterator[dict[str, Any]]:
    given = _object(notebook)
    sheets = _objects(given.get("worksheets"))  # of old ones
    cells = (sheets[0] if sheets else given).get("cells")
    if not isinstance(cells, list):
        raise Unserved("not_a_notebook")
    yield from _objects(cast("object", cells))


def _outputs(cell: dict[str, Any]) -> Iterator[str]:
    for output in _objects(cell.get("outputs")):
        text = output.get("text") or _object(output.get("data")).get("text/plain")
        yield _joined(text)[:_LONGEST_OUTPUT]


def _object(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _objects(value: object) -> list[dict[str, Any]]:
    items = cast("list[object]", value) if isinstance(value, list) else []
    return [cast("dict[str, Any]", each) for each in items if isinstance(each, dict)]


def _joined(source: object) -> str:
    if isinstance(source, list):
        return "".join(each for each in cast("list[object]", source) if isinstance(each, str))
    return source if isinstance(source, str) else ""


def _fenced(code: str) -> str:
    fence = "```"
    while fence in code:
        fence += "`"
    return f"{fence}\n{code.rstrip()}\n{fence}"
