"""Response objects for tests: some answers, an echo of the request's query, and the parts of `items` to make others."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any, cast

from .items import Body as Body
from .items import answer as answer
from .items import cite as cite
from .items import file_citation as file_citation
from .items import find_in_page as find_in_page
from .items import message as message
from .items import open_page as open_page
from .items import output_text as output_text
from .items import reasoning as reasoning
from .items import refusal_part as refusal_part
from .items import response as response
from .items import url_citation as url_citation
from .items import usage as usage
from .items import web_search_call as web_search_call

if TYPE_CHECKING:
    from collections.abc import Mapping

PEP = "https://peps.python.org/pep-0745/"
NEWS = "https://docs.python.org/3/whatsnew/3.14.html"
SEARCHED_TEXT = (
    f"Python 3.14 came out on 7 October 2025 ([peps.python.org]({PEP})). "
    f"It brought template strings ([docs.python.org]({NEWS}))."
)


def echo(request: Mapping[str, Any]) -> Body:
    """Return the answer to a request: searched, citing a page of its own, repeating the query's first line.

    The query is the text of the last user message, and only its first line counts. A query with "404" in it
    finds nothing: its answer is unsearched. Sources are listed only if the request's ``include`` asks for
    them.
    """
    query = query_of(request)
    model = request.get("model")
    named: Body = {"model": model} if isinstance(model, str) else {}
    if "404" in query:
        return answer(f"Nothing was found about: {query}", **named)
    url = f"https://example.com/{zlib.crc32(query.encode(errors='surrogatepass')):08x}"
    text = f"The answer to: {query} ([example.com]({url}))"
    included: Any = request.get("include")
    asked = isinstance(included, list) and "web_search_call.action.sources" in included
    search = web_search_call([query], [url, "https://example.org/"] if asked else None)
    return answer(text, annotations=[cite(text, url, f"About {query}")], searches=[search], **named)


def query_of(request: Mapping[str, Any]) -> str:
    """Return the first line of the text of a request's last user message."""
    given: Any = request.get("input")
    text = ""
    if isinstance(given, str):
        text = given
    elif isinstance(given, list):
        for item in cast("list[object]", given):
            if isinstance(item, dict) and cast("Body", item).get("role") == "user":
                text = _text_of(cast("Body", item).get("content"))
    return text.strip().partition("\n")[0].strip()


def _text_of(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = cast("list[object]", content) if isinstance(content, list) else []
    return "".join(str(cast("Body", part).get("text", "")) for part in parts if isinstance(part, dict))


def models(*ids: str) -> Body:
    """Return the body of ``GET /models``; without ids, a few that exist."""
    names = ids or ("gpt-5.2", "gpt-5.4", "gpt-5.4-mini")
    entries = [{"id": name, "object": "model", "created": 1765000000, "owned_by": "system"} for name in names]
    return {"object": "list", "data": entries}


def unsearched() -> Body:
    """Return an answer from the model's own knowledge."""
    return answer("A nursery owns the tasks that were started in it.")


def searched() -> Body:
    """Return an answer that rests on a search and cites two pages."""
    return answer(
        SEARCHED_TEXT,
        annotations=[
            cite(SEARCHED_TEXT, PEP, "PEP 745 – Python 3.14 Release Schedule"),
            cite(SEARCHED_TEXT, NEWS, "What’s new in Python 3.14"),
        ],
        searches=[reasoning(), web_search_call(["python 3.14 release date"], [PEP, NEWS])],
    )


def refusal() -> Body:
    """Return a completed response in which the model declines."""
    return response([message([refusal_part("I can’t help with that.")])])


def failed(code: str = "server_error", message: str = "The model could not finish its answer.") -> Body:
    """Return a response that failed after the request had been accepted with status 200."""
    return response([], status="failed", error={"code": code, "message": message}, usage=None)
