"""Jupyter notebooks: cells of Markdown as they are, those of code and the text that they put out in code fences."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final, cast

from responses_mcp.manuals.cancellation import CancellationCheck
from responses_mcp.manuals.formats.document import TOO_LONG, Document, Unserved
from responses_mcp.manuals.formats.markdown import Markdown

_MOST_CONTAINERS: Final = 1_000_000  # lists and objects, each of which takes 64 bytes
_LONGEST_OUTPUT: Final = 2000  # characters of one output that are shown


def convert(text: str, check: CancellationCheck) -> Document:
    """Return the cells as Markdown. Raises `Unserved` for what is no notebook."""
    if text.count("[") + text.count("{") > _MOST_CONTAINERS:
        raise Unserved(TOO_LONG)
    try:
        notebook: Any = json.loads(text, strict=False)  # a tab is no reason to serve nothing
        cells = notebook.get("cells") or notebook["worksheets"][0]["cells"]  # of new ones and of old ones
        parts = [part.rstrip("\n") for cell in filter(_is_object, cells) for part in _parts(cell)]
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError) as error:
        raise Unserved("not_a_notebook") from error
    return Markdown.convert("\n\n".join(parts), check)


def _parts(cell: Any) -> Iterator[str]:
    source = _joined(cell.get("source") or cell.get("input"))
    if cell.get("cell_type") != "code":
        yield source
        return
    outputs = map(_output, filter(_is_object, cell.get("outputs") or ()))
    for code in (source, *(_joined(each)[:_LONGEST_OUTPUT] for each in outputs)):
        if code.strip():
            fence = "```"
            while fence in code:
                fence += "`"
            yield f"{fence}\n{code.rstrip()}\n{fence}"


def _is_object(part: object) -> bool:
    return isinstance(part, dict)


def _output(output: Any) -> object:
    data: Any = output.get("data")
    return output.get("text") or (data.get("text/plain") if data else None)


def _joined(source: object) -> str:
    return "".join(map(str, cast("list[object]", source))) if isinstance(source, list) else str(source or "")
