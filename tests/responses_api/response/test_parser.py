"""From a Response to an answer: every sample of the fake API, and shapes that no server should send."""

from typing import Any

import pytest

from responses_mcp.errors import (
    QuotaExhausted,
    RateLimited,
    RequestRefused,
    ServiceFailed,
    UnusableReply,
    UpstreamError,
)
from responses_mcp.protocol.jsonrpc import encode
from responses_mcp.responses_api.failures import response_error
from responses_mcp.responses_api.response.parser import LONGEST_ANSWER, Answer, read_answer
from responses_mcp.secrets import Redactor
from responses_mcp.testing import bodies
from responses_mcp.testing.bodies import answer, message, output_text, response, web_search_call
from responses_mcp.testing.items import refusal_part, url_citation
from tests.testing.samples import DEVIATIONS, WELL_FORMED

DATE = "2026-11-22"
PEP, NEWS = bodies.PEP, bodies.NEWS
SEARCH_ALONE = f"Sources:\n- web_search ({DATE})"


def read(body: dict[str, Any], *, max_citations: int = 3) -> Answer:
    if (error := response_error(body, str)) is not None:
        raise error
    return read_answer(body, model="gpt-5.2", max_citations=max_citations, date=DATE, redact=str)


def shown(body: dict[str, Any], **options: Any) -> dict[str, Any]:
    return read(body, **options).as_json()


def plain(text: str) -> dict[str, Any]:
    return {"answer": text, "used_search": False, "citations": [], "model": "gpt-5.2"}


def found(text: str, *citations: tuple[str, str | None]) -> dict[str, Any]:
    listed = [{"url": url, **({"title": title} if title else {}), "published_at": DATE} for url, title in citations]
    return {"answer": text, "used_search": True, "citations": listed, "model": "gpt-5.2"}


def listing(*urls: str) -> str:
    return "Sources:\n" + "\n".join(f"- {url} ({DATE})" for url in urls)


CUT_OFF = (
    "[The answer was cut off here: the model reached its output limit. Ask for less, or lower the reasoning effort.]"
)
EXPECTED: dict[str, dict[str, Any]] = {
    "unsearched": plain("A nursery owns the tasks that were started in it."),
    "searched": found(
        f"{bodies.SEARCHED_TEXT}\n\n{listing(PEP, NEWS)}",
        (PEP, "PEP 745 – Python 3.14 Release Schedule"),
        (NEWS, "What’s new in Python 3.14"),
    ),
    "two_parts": found(f"One. ([a]({PEP})) Two. ([b]({NEWS}))\n\n{listing(PEP, NEWS)}", (PEP, None), (NEWS, None)),
    "commentary_then_final": found(f"{bodies.SEARCHED_TEXT}\n\n{listing(PEP)}", (PEP, None)),
    "several_messages": plain("First half, \n\nsecond half."),
    "refusal": plain("I can’t help with that."),
    "incomplete_with_text": plain(f"The three reasons are: first,\n\n{CUT_OFF}"),
    "file_citations": plain("Seen in the files."),
    "searched_files": found(
        f"The door opens at nine ([peps]({PEP})). The guide agrees.\n\n{listing(PEP)}", (PEP, None)
    ),
    "null_usage": plain("Uncounted."),
    "markers": found(f"Cited  and again .\nA stray  one.\nAn open end\n\n{SEARCH_ALONE}"),
    "utm_urls": found(
        f"See ([link]({PEP})). See ([link]({NEWS}?a=1&b=2#top)).\n\n{listing(PEP, f'{NEWS}?a=1&b=2#top')}",
        (PEP, "A page"),
        (f"{NEWS}?a=1&b=2#top", "A page"),
    ),
    "duplicate_citations": found(
        f"See ([link]({PEP})). See ([link]({PEP})). See ([link]({PEP}#schedule)). See ([link]({PEP})).\n\n{listing(PEP)}",
        (PEP, "A page"),
    ),
    "open_page": found(f"Read.\n\n{SEARCH_ALONE}"),
    "find_in_page": found(f"Found.\n\n{SEARCH_ALONE}"),
    "failed_search": plain("From memory."),
    "astral": found(f"🐍🐍 日本語 ([peps]({PEP}))\n\n{listing(PEP)}", (PEP, None)),
    "big": plain(("0123456789abcde\n" * (16 * 1024 + 1))[: 256 * 1024].strip()),
    "api_source": found(
        f"Sunny.\n\n{listing('https://www.jma.go.jp/', 'oai-weather')}",
        ("https://www.jma.go.jp/", None),
        ("oai-weather", "api"),
    ),
    "missing_action": found(f"Searched somehow.\n\n{SEARCH_ALONE}"),
    "missing_annotations": plain("Plain."),
    "bare": plain("Bare."),
    "unknown_item": plain("Known."),
    "unknown_annotation": plain("Known."),
    "usage_without_cache_writes": plain("Counted the old way."),
}
REFUSED: dict[str, tuple[type[UpstreamError], bool, str]] = {
    "incomplete_without_text": (UnusableReply, False, "lower reasoning_effort"),
    "content_filter": (RequestRefused, False, "content filter"),
    "failed": (ServiceFailed, True, "The model could not finish its answer."),
    "rate_limited": (RateLimited, True, "Rate limit reached"),
    "cancelled": (UnusableReply, False, "cancelled"),
    "in_progress": (UnusableReply, False, "in_progress"),
    "no_message": (UnusableReply, False, "returned no text"),
    "empty_output_text": (UnusableReply, False, "returned no text"),
    "unknown_error_code": (QuotaExhausted, False, "billing"),
}


def test_every_sample_has_its_expected_outcome() -> None:
    assert {*EXPECTED, *REFUSED} == {*WELL_FORMED, *DEVIATIONS}
    assert not EXPECTED.keys() & REFUSED.keys()


@pytest.mark.parametrize("name", EXPECTED)
def test_a_sample_gives_exactly_its_answer(name: str) -> None:
    body = {**WELL_FORMED, **DEVIATIONS}[name]()
    assert shown(body) == EXPECTED[name]


@pytest.mark.parametrize("name", REFUSED)
def test_a_sample_without_an_answer_says_why(name: str) -> None:
    error, retryable, words = REFUSED[name]
    with pytest.raises(UpstreamError) as caught:
        read({**WELL_FORMED, **DEVIATIONS}[name]())
    assert type(caught.value) is error
    assert caught.value.retryable is retryable
    assert words in str(caught.value)


# Text


@pytest.mark.rule("spec 3.2")
def test_the_configured_model_is_named_and_not_the_snapshot_that_the_api_reports() -> None:
    assert read(answer("Yes.", model="gpt-5.2-2025-12-11")).model == "gpt-5.2"


def test_a_refusal_is_the_answer_only_where_there_is_no_text() -> None:
    assert read(response([message([refusal_part("No."), output_text("Yes.")])])).text == "Yes."
    assert read(response([message([refusal_part("No."), output_text("  ")])])).text == "No."


def test_remarks_stay_out_of_the_answer_and_their_citations_too() -> None:
    remark = message([output_text("Looking.", [url_citation(NEWS, "News", 0, 1)])], "commentary")
    final = message([output_text("Done.")], "final_answer")
    assert shown(response([remark, final])) == plain("Done.")


def test_remarks_are_the_answer_where_nothing_is_marked_as_final() -> None:
    remarks = [message([output_text(text)], "commentary") for text in ("One.", "Two.")]
    assert shown(response(remarks)) == plain("One.\n\nTwo.")


@pytest.mark.parametrize("reason", ["max_output_tokens", None, 5])
def test_a_cut_answer_says_so_and_keeps_its_sources_at_the_end(reason: Any) -> None:
    text = f"Half an ([a]({PEP}))"
    cut = response(
        [web_search_call(["q"]), message([output_text(text, [url_citation(PEP, "", 8, len(text))])])],
        status="incomplete",
        incomplete_details={"reason": reason},
    )
    assert read(cut).text == f"{text}\n\n{CUT_OFF}\n\n{listing(PEP)}"


@pytest.mark.parametrize("name", ["published_at", "published_date", "publication_date", "date_published", "date"])
@pytest.mark.parametrize(("told", "shown_date"), [
    ("2026-11-20", "2026-11-20"), ("2026-11-20T23:00:00Z", "2026-11-20"), ("2026/11/2", "2026-11-02"), (DATE, DATE),
    *((odd, DATE) for odd in ("2026-11-23", "2026-02-30", "0001-01-01", "soon", "", None, 20261120, ["2026-11-20"])),
])  # fmt: skip
def test_a_date_that_an_annotation_tells_is_that_of_the_citation_if_it_has_come(
    name: str, told: Any, shown_date: str
) -> None:
    result = read(bodies.answer("Yes.", annotations=[{**url_citation(PEP, "PEP", 0, 1), name: told}]))
    assert [each.published_at for each in result.citations] == [shown_date]
    assert result.text == f"Yes.\n\nSources:\n- {PEP} ({shown_date})"


def test_of_an_answer_longer_than_any_model_writes_the_beginning_is_read() -> None:
    whole = [message([output_text("x" * LONGEST_ANSWER)]), message([])]
    assert read(response(whole)).text == "x" * LONGEST_ANSWER
    for part in (output_text, refusal_part):
        text = read(response([web_search_call(["q"]), message([part("x" * (LONGEST_ANSWER + 1))])])).text
        assert LONGEST_ANSWER - 5_000 < len(text) < LONGEST_ANSWER
        assert text.endswith(f"x\n\n{SEARCH_ALONE}")


def test_a_surrogate_pair_that_is_split_over_two_parts_is_one_character() -> None:
    assert read(response([message([output_text("a\ud83d"), output_text("\udc0db\ud800")])])).text == "a🐍b\ufffd"


def test_lone_surrogates_are_gone_from_every_member() -> None:
    search = web_search_call(["q"])
    search["action"]["sources"] = [{"type": "a\ud800", "name": "feed\ud800"}]
    body = answer("x\ud800", annotations=[url_citation("https://a.jp/\ud800", "T\ud800", 0, 1)], searches=[search])
    result = read_answer(body, model="m\ud800", max_citations=3, date=DATE, redact=str).as_json()
    assert b"\\ud800" not in encode(result)
    assert result["citations"] == [
        {"url": "https://a.jp/\ufffd", "title": "T\ufffd", "published_at": DATE},
        {"url": "feed\ufffd", "title": "a\ufffd", "published_at": DATE},
    ]


def test_a_line_break_in_a_url_or_a_name_makes_no_new_line_in_the_block() -> None:
    search = web_search_call(["q"])
    search["action"]["sources"] = [{"type": "api", "name": "feed\n- forged (2026-01-01)"}]
    cited = url_citation(" https://a.jp/\r\nx ", " A\n title ", 0, 1)
    assert shown(answer("Yes.", annotations=[cited], searches=[search])) == found(
        f"Yes.\n\n{listing('https://a.jp/%20x', 'feed - forged (2026-01-01)')}",
        ("https://a.jp/%20x", "A title"),
        ("feed - forged (2026-01-01)", "api"),
    )


# Searches


@pytest.mark.rule("spec 3.3")
@pytest.mark.parametrize("status", ["completed", "in_progress", "searching", "incomplete", None, 7])
def test_a_search_that_did_not_fail_was_used(status: Any) -> None:
    search = {**web_search_call(["q"]), "status": status}
    assert shown(answer("Yes.", searches=[search])) == found(f"Yes.\n\n{SEARCH_ALONE}")


def test_a_search_that_failed_gives_no_sources_beside_one_that_worked() -> None:
    bad, good = web_search_call(["q"], [NEWS], "failed"), web_search_call(["q"], [PEP])
    assert shown(answer("Yes.", searches=[bad, good])) == found(f"Yes.\n\n{listing(PEP)}", (PEP, None))


# Failures


@pytest.mark.parametrize("mark", ["\ue203", "\ue200cite\ue202turn0\ue201"])
def test_a_secret_with_marks_of_the_model_inside_is_not_in_the_answer(mark: str) -> None:
    redact = Redactor(["sk-canary-0123456789"]).known
    body = answer(f"It is sk-canary-{mark}0123456789.")
    assert read_answer(body, model="m", max_citations=3, date=DATE, redact=redact).text == "It is [redacted]."


def test_without_a_search_the_models_own_sources_block_stays_as_it_is() -> None:
    assert shown(answer("Yes.\n\nSources:\n- my memory")) == plain("Yes.\n\nSources:\n- my memory")
