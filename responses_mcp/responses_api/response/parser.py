"""The response parser: from a Response object of any shape to an answer (spec 6, steps 5 to 7).

The official types say what a Response should be. Servers send sources without URL, calls without action, messages in
several parts and phases, and statuses other than success with HTTP 200, so each member is looked at before it is used.
"""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice, repeat

from responses_mcp.errors import UnusableReply, UpstreamError
from responses_mcp.json_types import JsonObject, as_object, objects, replace_lone_surrogates, text_at
from responses_mcp.responses_api.response.sources import Citation, choose_citations, read_date, without_block, written
from responses_mcp.responses_api.response.web_pages import address, closing_nothing, is_within, without_marks
from responses_mcp.sanitization import beginning_of, line_at
from responses_mcp.secrets import Redact
from responses_mcp.usage.models import Usage

# What is looked at, of what an API may send without end: items, and parts of all messages together; annotations of all
# parts, and sources of all searches. A search consults a hundred, and an answer names ten.
MOST_ITEMS = 10_000
MOST_SOURCES = 500

LONGEST_ANSWER = 1_000_000  # characters; twice of what models write at most

_CUT_OFF = (
    "[The answer was cut off here: the model reached its output limit. Ask for less, or lower the reasoning effort.]"
)
_SHORTENED = "[Cut here: the first {shown:,} of {all:,} characters are shown. server.max_result_chars sets how many.]"
_SENTENCE_ENDS = ("\n", ". ", "! ", "? ", "。", "！", "？")
# The names under which an annotation may tell when its page was published; the API's own tells nothing.
_DATES = ("published_at", "published_date", "publication_date", "date_published", "date")


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer as the output contract has it (3.2): its `body` and, when a search was used, its `Sources:` block.

    `usage` is what it took; None where nobody counted. `masked` counts the secrets, by kind, that were masked in the
    question before it was sent. `run_id` is the run that goes on in place of an answer that takes long.
    """

    body: str
    used_search: bool
    citations: tuple[Citation, ...]
    model: str
    sources: str = ""
    usage: Usage | None = field(default=None, compare=False)
    masked: Mapping[str, int] = field(default_factory=dict[str, int], compare=False)
    run_id: str | None = field(default=None, compare=False)

    @property
    def text(self) -> str:
        """Return the whole text, which ends in the sources."""
        return "\n\n".join(filter(None, (self.body, self.sources)))

    def as_json(self, most: int | None = None) -> JsonObject:
        """Return exactly the four members of the output contract; a text of more than `most` characters is cut."""
        text = self.text
        return {
            "answer": text if most is None or len(text) <= most else _shortened(self.body, self.sources, most),
            "used_search": self.used_search,
            "citations": [citation.as_json() for citation in self.citations],
            "model": self.model,
        }


def read_answer(
    response: JsonObject,
    *,
    model: str,
    max_citations: int,
    date: str,
    redact: Redact,
    blocked: Collection[str] = (),
    files: bool = False,
) -> Answer:
    """Read the answer out of a finished Response, whose texts pass `redact`.

    `model` is the configured id, which the answer names; `date` is the access date. Pages of `blocked`
    domains are not cited; with `files` those of vector stores are, by their names. Raises `UpstreamError` when there is
    no answer in it, retryable when asking again may help.
    """
    items = output_items(response)
    messages = answer_messages(items)
    text = without_marks(joined_text(messages, "output_text", "text", redact), redact).strip()
    text = text or joined_text(messages, "refusal", "refusal", redact).strip()
    truncated = response.get("status") == "incomplete"
    if not text:
        raise no_text(truncated=truncated)
    today = datetime.date.fromisoformat(date)
    cited = [each for each in _cited(messages, redact, today, files=files) if not is_within(each.url, blocked)]
    searches = search_actions(items)
    citations: tuple[Citation, ...] = ()
    block = ""
    if used_search := bool(searches or cited):
        found = _consulted(searches, redact, with_pages=not any(each.is_page for each in cited))
        consulted = (each for each in found if not is_within(each.url, blocked))
        text, citations = without_block(text, choose_citations(cited, consulted, limit=max_citations), today)
        block = written(citations, date)
    if truncated:
        text = f"{text}\n\n{_CUT_OFF}".strip()
    # The environment may hold lone surrogates.
    return Answer(text, used_search, citations, replace_lone_surrogates(model), block)


def _shortened(body: str, sources: str, most: int) -> str:
    """Return an answer with `most` characters: a beginning of its body, a mark that says so, and its sources.

    The body ends with a sentence, if one ends in the second half; code that is open is closed. Sources that take more
    than half of the room are cut, too, at a line.
    """
    if len(sources) > most // 2:
        sources = sources[: max(sources.rfind("\n", 0, most // 2 + 1), 0)]
    room = max(most - len(sources) - len(_SHORTENED) - 30, 0)  # with the numbers, line ends and a fence
    shown = body[:room]
    if len(body) > room:
        sentence = max(shown.rfind(end, room // 2) for end in _SENTENCE_ENDS) + 1
        shown = shown[: sentence or room].rstrip()
    mark = _SHORTENED.format(shown=len(shown), all=len(body))
    fence = "\n```" if f"\n{shown}".count("\n```") % 2 else ""
    return "\n\n".join(filter(None, (shown + fence, mark, sources)))[:most]


def no_text(*, truncated: bool) -> UpstreamError:
    """Return the error for a Response without text; `truncated` tells that it was cut off."""
    said = "The model returned no text; ask again, or choose another model in the profile."
    if truncated:
        said = "The model reached its output limit before it wrote an answer; lower reasoning_effort, or ask for less."
    return UnusableReply(said, code="max_output_tokens" if truncated else None, maybe_paid=True)


def _cited(
    messages: list[list[JsonObject]], redact: Redact, today: datetime.date, *, files: bool
) -> Iterator[Citation]:
    """Yield the pages that annotations cite, and with `files` those of vector stores by their names."""
    for annotation in annotations_of(messages):
        if annotation.get("type") == "url_citation" and (url := address(line_at(annotation, "url", redact))):
            dates = (read_date(annotation[name], today) for name in _DATES if name in annotation)
            title = _name_at(annotation, "title", redact)
            yield Citation(url, title or None, next(filter(None, dates), ""))
        elif files and annotation.get("type") == "file_citation":
            names = (_name_at(annotation, member, redact) for member in ("filename", "file_id"))
            yield from (Citation(name, "file") for name in islice(filter(None, names), 1))


def _consulted(searches: list[JsonObject], redact: Redact, *, with_pages: bool) -> Iterator[Citation]:
    """Yield the sources of searches that have a name, and those that have a URL `with_pages`."""
    looks = repeat(None, MOST_SOURCES)
    for source in (each for action in searches for each in objects(action.get("sources"), looks)):
        if text_at(source, "url").strip():
            if with_pages and (url := address(line_at(source, "url", redact))):
                yield Citation(url)
        elif name := _name_at(source, "name", redact) or _name_at(source, "id", redact):
            yield Citation(name, _name_at(source, "type", redact) or "source")


def _name_at(mapping: JsonObject, key: str, redact: Redact) -> str:
    return redact(closing_nothing(line_at(mapping, key, redact)))


def output_items(response: JsonObject) -> list[JsonObject]:
    """Return the items of a Response, of which only so many are looked at."""
    return list(objects(response.get("output"), repeat(None, MOST_ITEMS)))


def search_actions(items: list[JsonObject]) -> list[JsonObject]:
    """Return the actions of the searches of the web that did not fail, {} for one that tells none."""
    searches = (item for item in items if item.get("type") == "web_search_call" and item.get("status") != "failed")
    return [as_object(search.get("action")) for search in searches]


def answer_messages(items: list[JsonObject]) -> list[list[JsonObject]]:
    """Return the content parts of each message of the final answer; of all messages where none is marked as final."""
    messages = [item for item in items if item.get("type") == "message"]
    final = [message for message in messages if message.get("phase") == "final_answer"]
    looks = repeat(None, MOST_ITEMS)
    contents = (message.get("content") for message in final or messages)
    return [
        [{"type": "output_text", "text": content}] if isinstance(content, str) else list(objects(content, looks))
        for content in contents
    ]


def annotations_of(messages: Iterable[Iterable[JsonObject]]) -> Iterator[JsonObject]:
    """Yield the annotations of all parts, and what is in a member around their own: `{"type": t, t: {…}}`."""
    looks = repeat(None, MOST_SOURCES)
    for part in (part for parts in messages for part in parts):
        for each in objects(part.get("annotations"), looks):
            inner = as_object(each.get(text_at(each, "type")))
            yield {**each, **inner, "type": each["type"]} if inner else each


def joined_text(messages: Iterable[Iterable[JsonObject]], kind: str, member: str, redact: Redact) -> str:
    """Join one member of all parts of a kind, such as the `text` of `output_text`, to a text that may be shown.

    Between two messages is a blank line. What is behind `LONGEST_ANSWER` characters is lost.
    """
    kinds = (kind, member)  # some servers name a part after its member
    texts = ["".join(text_at(part, member) for part in parts if part.get("type") in kinds) for parts in messages]
    # Joined first: a secret may have been cut between two parts, and a character into its two surrogates.
    text = "".join(texts)
    if len(texts) > 1 and redact(text[:LONGEST_ANSWER]) == text[:LONGEST_ANSWER]:  # none between two messages
        text = "\n\n".join(filter(None, texts))
    return beginning_of(text, LONGEST_ANSWER, redact)
