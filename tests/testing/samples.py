"""Bodies of the Responses API by name, and what all readers of them are tried with.

`WELL_FORMED` holds what the official types admit. `DEVIATIONS` holds what they do not admit and servers send
all the same; the first line of each docstring says what is deviant, the rest who sends it.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import count

from responses_mcp.testing.bodies import (
    NEWS,
    PEP,
    SEARCHED_TEXT,
    Body,
    answer,
    cite,
    failed,
    file_citation,
    message,
    output_text,
    reasoning,
    refusal,
    response,
    searched,
    unsearched,
    url_citation,
    usage,
    web_search_call,
)
from responses_mcp.testing.items import find_in_page as find_in_page_call
from responses_mcp.testing.items import open_page as open_page_call

_SERIAL = count(1)


def container_file_citation(container_id: str, file_id: str, filename: str, start: int, end: int) -> Body:
    """Return an annotation that cites a file of a code interpreter's container."""
    return {
        "type": "container_file_citation",
        "container_id": container_id,
        "file_id": file_id,
        "filename": filename,
        "start_index": start,
        "end_index": end,
    }


def file_path(file_id: str, index: int) -> Body:
    """Return an annotation that names a file the model made."""
    return {"type": "file_path", "file_id": file_id, "index": index}


def file_search_call(
    queries: Sequence[str], results: Iterable[tuple[str, str]] | None = None, status: str = "completed"
) -> Body:
    """Return a search of vector stores; `results` are ids and names of files, None unless ``include`` asks for them."""
    found = None if results is None else [{"file_id": at, "filename": name, "score": 0.9} for at, name in results]
    return {
        "id": f"fs_{next(_SERIAL):048x}",
        "type": "file_search_call",
        "status": status,
        "queries": list(queries),
        "results": found,
    }


def two_parts() -> Body:
    """Return a message of two text parts; the indices of the second count from its own start."""
    first, second = f"One. ([a]({PEP})) ", f"Two. ([b]({NEWS}))"
    parts = [output_text(first, [cite(first, PEP)]), output_text(second, [cite(second, NEWS)])]
    return response([web_search_call(["one", "two"]), message(parts)])


def commentary_then_final() -> Body:
    """Return what newer models do: a remark before the search, the answer after it, told apart by `phase`."""
    remark = message([output_text("I will look that up.")], "commentary")
    final = message([output_text(SEARCHED_TEXT, [cite(SEARCHED_TEXT, PEP)])], "final_answer")
    return response([remark, web_search_call(["python 3.14"]), final], model="gpt-5.4")


def several_messages() -> Body:
    """Return two messages without a phase; both belong to the answer."""
    return response([message([output_text("First half, ")]), message([output_text("second half.")])])


def incomplete_with_text() -> Body:
    """Return a response that ran out of output tokens amid its text."""
    cut = message([output_text("The three reasons are: first, ")], status="incomplete")
    return response([cut], status="incomplete", incomplete_details={"reason": "max_output_tokens"})


def incomplete_without_text() -> Body:
    """Return a response that spent all its output tokens on reasoning."""
    return response([reasoning()], status="incomplete", incomplete_details={"reason": "max_output_tokens"})


def content_filter() -> Body:
    """Return a response that was stopped by the content filter."""
    cut = message([output_text("The")], status="incomplete")
    return response([cut], status="incomplete", incomplete_details={"reason": "content_filter"})


def rate_limited() -> Body:
    """Return a response that failed because of a rate limit, told with status 200."""
    return failed("rate_limit_exceeded", "Rate limit reached while the answer was being written.")


def cancelled() -> Body:
    """Return a response that was cancelled on the server's side."""
    return response([], status="cancelled", usage=None)


def in_progress() -> Body:
    """Return a response that is still being made, as background mode answers at first."""
    return response([], status="in_progress", background=True, usage=None)


def no_message() -> Body:
    """Return a completed response without any message."""
    return response([reasoning(), web_search_call(["a query"])])


def empty_output_text() -> Body:
    """Return a completed response whose only text is empty."""
    return answer("")


def file_citations() -> Body:
    """Return the annotations that cite files and no URL, all three kinds."""
    kinds = [
        file_citation("file-1", "handbook.pdf", 4),
        container_file_citation("cntr_1", "cfile_1", "table.csv", 0, 4),
        file_path("file-2", 0),
    ]
    return answer("Seen in the files.", annotations=kinds)


def searched_files() -> Body:
    """Return an answer that rests on a search of the web and of vector stores, and cites a page and two files."""
    text = f"The door opens at nine ([peps]({PEP})). The guide agrees."
    cited = [cite(text, PEP), file_citation("file-1", "guide.md", 50), file_citation("file-2", "予定.pdf", 60)]
    return answer(
        text, annotations=cited, searches=[web_search_call(["door"], [PEP]), file_search_call(["door", "opening"])]
    )


def null_usage() -> Body:
    """Return a completed response that does not tell its tokens."""
    return response([message([output_text("Uncounted.")])], usage=None)


def markers() -> Body:
    """Return text with citation markers in private-use characters: whole, lone and unterminated ones."""
    text = (
        "Cited \ue200cite\ue202turn0search0\ue201 and "
        "again \ue200cite\ue202turn0search1\ue202turn0search2\ue201.\n"
        "A stray \ue204 one.\nAn open end \ue200cite\ue202turn0sea"
    )
    return answer(text, searches=[web_search_call(["markers"])])


def utm_urls() -> Body:
    """Return URLs with the tracking parameter that the search tool adds, alone and among others."""
    return _links(f"{PEP}?utm_source=openai", f"{NEWS}?a=1&utm_source=chatgpt.com&b=2#top")


def duplicate_citations() -> Body:
    """Return one page cited four ways: plain, with tracking, with a fragment, and plain again."""
    return _links(PEP, f"{PEP}?utm_source=openai", f"{PEP}#schedule", PEP)


def _links(*urls: str) -> Body:
    text, annotations = "", list[Body]()
    for url in urls:
        start = len(text) + len("See ")
        text += f"See ([link]({url})). "
        annotations.append(url_citation(url, "A page", start, len(text) - 2))
    return answer(text, annotations=annotations, searches=[web_search_call(["pages"])])


def open_page() -> Body:
    """Return a search followed by the opening of one page, and of one whose URL is not told."""
    return answer("Read.", searches=[web_search_call(["page"]), open_page_call(PEP), open_page_call(None)])


def find_in_page() -> Body:
    """Return a search followed by a look for a pattern in a page."""
    return answer("Found.", searches=[web_search_call(["page"]), find_in_page_call(PEP, "release")])


def failed_search() -> Body:
    """Return an answer although its only search failed."""
    return answer("From memory.", searches=[web_search_call(["a query"], status="failed")])


def astral() -> Body:
    """Return a citation behind characters of two UTF-16 units, so that indices in a wrong unit show."""
    text = f"🐍🐍 日本語 ([peps]({PEP}))"
    return answer(text, annotations=[cite(text, PEP)], searches=[web_search_call(["🐍"])])


def big(n_bytes: int = 256 * 1024) -> Body:
    """Return an answer whose text has `n_bytes` characters, all ASCII."""
    return answer(("0123456789abcde\n" * (n_bytes // 16 + 1))[:n_bytes])


WELL_FORMED: dict[str, Callable[[], Body]] = {
    sample.__name__: sample
    for sample in (
        unsearched,
        searched,
        two_parts,
        commentary_then_final,
        several_messages,
        refusal,
        incomplete_with_text,
        incomplete_without_text,
        content_filter,
        failed,
        rate_limited,
        cancelled,
        in_progress,
        no_message,
        empty_output_text,
        file_citations,
        searched_files,
        null_usage,
        markers,
        utm_urls,
        duplicate_citations,
        open_page,
        find_in_page,
        failed_search,
        astral,
        big,
    )
}
"""Samples by name that the official types admit."""


def api_source() -> Body:
    """Return a source without a URL.

    The API lists its own data feeds (weather, sports, finance) among a search's sources.
    """
    body = answer("Sunny.", searches=[web_search_call(["weather tokyo"], ["https://www.jma.go.jp/"])])
    body["output"][0]["action"]["sources"].insert(0, {"type": "api", "name": "oai-weather"})
    return body


def missing_action() -> Body:
    """Return a search without its action.

    Compatible servers report that a search took place and nothing of what was searched.
    """
    body = answer("Searched somehow.", searches=[web_search_call()])
    del body["output"][0]["action"]
    return body


def missing_annotations() -> Body:
    """Return a text part without the list of annotations.

    Local model servers have no citations and leave the list out.
    """
    body = answer("Plain.")
    del body["output"][0]["content"][0]["annotations"]
    return body


def bare() -> Body:
    """Return only what carries the answer: no object, time, tools or usage, and a foreign id.

    Bridges from chat completions fill in no more than this.
    """
    part = {"type": "output_text", "text": "Bare."}
    item = {"type": "message", "role": "assistant", "content": [part]}
    return {"id": "chatcmpl-1", "model": "local-model", "output": [item]}


def unknown_item() -> Body:
    """Return an output item of a kind that the types do not know.

    The API gains kinds of items faster than its clients are updated.
    """
    body = answer("Known.")
    body["output"].insert(0, {"id": "nw_1", "type": "newly_invented_call", "status": "completed"})
    return body


def unknown_annotation() -> Body:
    """Return an annotation of a kind that the types do not know.

    Kinds of annotations grow as kinds of items do.
    """
    return answer("Known.", annotations=[{"type": "newly_invented_citation", "ref": "x"}])


def unknown_error_code() -> Body:
    """Return a failure whose code is not among the listed ones.

    The list of codes is open; an exhausted quota has been reported this way.
    """
    error = {"code": "insufficient_quota", "message": "You exceeded your current quota."}
    return response([], status="failed", error=error, usage=None)


def usage_without_cache_writes() -> Body:
    """Return token counts without `cache_write_tokens`.

    The types require the field since caches can be written on purpose; older servers do not know it.
    """
    counts = usage()
    del counts["input_tokens_details"]["cache_write_tokens"]
    return answer("Counted the old way.", usage=counts)


DEVIATIONS: dict[str, Callable[[], Body]] = {
    sample.__name__: sample
    for sample in (
        api_source,
        missing_action,
        missing_annotations,
        bare,
        unknown_item,
        unknown_annotation,
        unknown_error_code,
        usage_without_cache_writes,
    )
}
"""Samples by name that the official types do not admit, though servers send them."""
