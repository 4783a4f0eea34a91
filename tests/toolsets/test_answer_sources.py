"""The sources of an answer, as a client of the tools gets them: who writes them, which dates they have, where they come from."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from responses_mcp.asking import Asker
from responses_mcp.settings.model import PolicySettings, Settings
from responses_mcp.testing import bodies, items, stream_events
from responses_mcp.toolsets.answer import AnswerToolset
from responses_mcp.toolsets.base import CallContext, ToolSuccess
from tests.responses_api.stub import Reply, ok, stub_api

TODAY = "2026-11-22"
SAID = "Note that this only holds for 3.12."
A, B = "https://a.jp/x", "https://b.jp/y"
OURS = f"Sources:\n- {A} (2026-11-20)"


async def called(reply: Reply, most_characters: int = 60_000) -> dict[str, Any]:
    api, _ = stub_api(reply)
    answers = Asker(Settings(policy=PolicySettings(max_citations=10)), api=api, today=lambda: TODAY)
    [tool, *_] = AnswerToolset(lambda: answers, most_characters=most_characters).tools
    found = await tool.handler(CallContext(1), {"query": "q"})
    assert isinstance(found, ToolSuccess)
    assert found.structured == json.loads(found.text)
    return json.loads(found.text)


async def answered(text: str, *urls: str) -> str:
    body = bodies.answer(text, annotations=[items.url_citation(url, "", 0, 1) for url in urls])
    return (await called(ok(body)))["answer"]


# The block


@pytest.mark.rule("spec 6")
@pytest.mark.parametrize("header", [
    "Sources", "Sources:", "Source:", "## Sources", "## Sources:", "### **Sources**", "**Sources**", "**Sources:**", "**Sources**:",
    "__Sources__", "*Sources:*", "> Sources:", "References", "## References", "📚 Sources:", "## 4. Sources", "SOURCES:", "Sources used:", "出典", "出典:",
    "出典：", "**出典**", "## 出典：", "【出典】", "■出典", "情報源：", "主な情報源", "参考", "参考文献", "参考リンク：", "引用元：", "出典一覧",
    "出典（閲覧日つき）：", "Key sources:", "Sources and dates:", "Sources & references", "List of sources:", "Sources / 出典:", "情報源（Sources）",
    "出典・参考文献：", "参照した情報源：", "Sources\n-------", "<summary>Sources</summary>", "（出典）",
    "Bronnen:", "Fontes", "參考資料：", "引用文献",
    "## Quellen", "**Fuentes:**", "Références :", "Источники:", "参考资料：", "## 資料來源", "**参考链接**", "출처:", "Works cited", "Sources (read today):", "### Sources (2)", "Sources, accessed 2026-11-21:",
])  # fmt: skip
@pytest.mark.parametrize("listed", [f"- {A} (2026-11-20)", f"1. [The forecast]({A}), 2026-11-20\n"])
async def test_a_block_of_the_model_gives_way_to_ours_whatever_its_header_is(header: str, listed: str) -> None:
    assert await answered(f"Rain.\n\n{header}\n{listed}", A) == f"Rain.\n\n{OURS}"
    assert await answered(f"Rain.\n\n{header}\n\n{listed}", A) == f"Rain.\n\n{OURS}"


@pytest.mark.rule("spec 6")
@pytest.mark.parametrize("header", [
    "Sources:", "## 出典", "**References**", "## 資料來源", "Sources consulted:", "参考URL：", "**Sources (accessed 2026-11-22):**",
])  # fmt: skip
async def test_a_source_of_the_model_without_a_date_stands_once(header: str) -> None:
    text = f"Rain.\n\n{header}\n- {A}\n- [b]({B}) (2026-11-20)"
    assert await answered(text, A, B) == f"Rain.\n\nSources:\n- {A} ({TODAY})\n- {B} (2026-11-20)"


@pytest.mark.rule("spec 6")
@pytest.mark.parametrize("text", [
    "Sources: the report of 2024-05-01 says so.", "A pipeline has\n\n## Sources\n- Kafka\n- Kinesis\n\n## Sinks\n- S3",
    "A pipeline has\n\n## Sinks\n- S3\n\n## Sources\n- Kafka\n- Kinesis", "It has\n- Sinks\n- Sources", "Sources of the Nile",
    f"```yaml\nSources:\n- {A} (2026-11-20)\n```", f"Sources: the report at {A} says so.", f"出典：{A} の報告です。", "参考までに\n- 昨日は晴れ",
    f"Sources:\n- {A} (2026-11-20)\n\nAsk me for more.\n\nOr do not.", f"## Sources\n- {A} (2026-11-20)\n\n## Answer\n\nIt rains.",
    f"Sources:\n- {A} says it rains, https://z.jp/ says it does not.", "Sources:\n- Fish\n- Eggs", f"Sources\n- {A} {SAID}", "Sources:\n- x\n- y\n\nSee you on 2026-11-23.",
    f"Data sources that you can use:\n- {A} (2026-11-20)\n- https://z.jp/ (2026-11-21)", f"自由に使えるデータソース：\n- {A}", f"The sources agree.\n- {A}",
    "It draws on three sources of income:\n- rent\n- wages (2026-11-20)", "1. Sources", "| Sources |\n| --- |\n| Kafka |",
    f"Sources:\n```\n{A} (2026-11-20)\n```",
])  # fmt: skip
async def test_prose_stays_whatever_it_looks_like(text: str) -> None:
    answer = await answered(f"Rain.\n\n{text}", A)
    assert answer.startswith(f"Rain.\n\n{text}\n\nSources:\n- {A} (")
    assert len(answer) == len(f"Rain.\n\n{text}\n\n{OURS}")
    assert await answered(f"Rain.\n\n{text}\n\n---", A) == answer


@pytest.mark.rule("spec 6")
@pytest.mark.parametrize("header", ["Sources:", "## 出典"])
async def test_an_answer_that_is_too_long_is_cut_before_its_sources_are_added(header: str) -> None:
    text = f"{'The pump runs dry. ' * 200}\n\n{header}\n- {A} (2026-11-20)"
    body = bodies.answer(text, annotations=[items.url_citation(A, "", 0, 1)])
    found = await called(ok(body), 1_500)
    assert len(found["answer"]) <= 1_500
    assert found["answer"].endswith(f" server.max_result_chars sets how many.]\n\n{OURS}")
    assert "[Cut here: the first " in found["answer"]
    assert found["citations"] == [{"url": A, "published_at": "2026-11-20"}]


@pytest.mark.rule("spec 6")
@pytest.mark.parametrize("item", [
    f"- {A} (2026-11-20). {SAID}", f"- [Rain]({A}), 2026-11-20: {SAID}", f"1. {SAID} {A} (2026-11-20)", f"- {A}. Valid on Linux.", f"- {A} (2026-11-20): {SAID}[b]({B})", f"- {A} (2026-11-20)\n  {SAID}", f"- {A}（2026-11-20）は3.12のみの話です。",
])  # fmt: skip
async def test_a_sentence_in_the_list_of_the_model_is_kept(item: str) -> None:
    for pure in ("", f"- {B} (2026-11-19)\n"):
        for block in (f"Sources:\n{pure}{item}", f"## 出典\n{item}\n{pure}"):
            text, _, ours = (await answered(f"Rain.\n\n{block}", A, B)).rpartition("\n\nSources:\n")
            assert item.rpartition("\n")[2].strip() in text
            assert [line.split(" ")[1] for line in ours.split("\n")] == [A, B]


@pytest.mark.rule("spec 6")
@pytest.mark.parametrize("said", ["（2026年11月20日公開）", "(November 20, 2026; viewed 2026-11-21)", "| 20 Nov 2026"])
async def test_a_date_is_read_in_the_forms_that_models_write(said: str) -> None:
    assert await answered(f"Rain.\n\nSources:\n- {A} {said}", A) == f"Rain.\n\n{OURS}"


@pytest.mark.rule("spec 6")
@pytest.mark.parametrize(
    "remark", ["Let me know if you need more!", "ご参考になれば幸いです。", f"**Next:**\n- Look at {B}."]
)
async def test_a_block_with_anything_behind_it_is_text_and_not_read(remark: str) -> None:
    text = f"Rain.\n\nSources:\n- {A} (2026-11-20)\n\n{remark}"
    assert await answered(text, A) == f"{text}\n\nSources:\n- {A} ({TODAY})"


@pytest.mark.rule("spec 6")
@pytest.mark.parametrize(
    "drawn", ["---", "***", "-----\n", "<details>", "<details open>\n", "---\n\n<details>", "* * *"]
)
@pytest.mark.parametrize("header", ["Sources:", "<summary>Sources</summary>\n", "<summary><b>Sources</b></summary>"])
@pytest.mark.parametrize("end", ["", "\n</details>", "\n\n</details>\n\n---"])
async def test_no_line_that_was_drawn_around_the_block_of_the_model_is_left(drawn: str, header: str, end: str) -> None:
    assert await answered(f"Rain.\n\n{drawn}\n{header}\n- {A} (2026-11-20){end}", A) == f"Rain.\n\n{OURS}"


# Where they come from

Events = list[dict[str, Any]]


def without_annotations(events: Events, *kinds: str) -> Events:
    """Take the annotations and searches out of the last event, and those of the kinds of events that are named."""
    kept: Events = []
    for event in json.loads(json.dumps(events)):
        if event["type"] in kinds and event.get("item", {}).get("type", "message") == "message":
            if event["type"].endswith("annotation.added"):
                continue
            for part in event["item"]["content"]:
                part["annotations"] = []
        if event["type"] == "response.completed":
            messages = [item for item in event["response"]["output"] if item["type"] == "message"]
            for part in (part for message in messages for part in message["content"]):
                part.pop("annotations")
            event["response"]["output"] = messages
        kept.append(event)
    return kept


def as_stream(body: Mapping[str, Any]) -> Reply:
    return streamed(stream_events(body))


def streamed(events: Events) -> Reply:
    data = b"".join(b"data: %b\n\n" % json.dumps(event).encode() for event in events)
    return Reply(200, {"content-type": "text/event-stream"}, [data])


@pytest.mark.rule("spec 6")
@pytest.mark.parametrize("lost", [[], ["response.output_item.done"], ["response.output_text.annotation.added"]])
async def test_citations_that_only_the_events_before_the_last_have_are_kept(lost: list[str]) -> None:
    whole = await called(ok(bodies.searched()))
    found = await called(streamed(without_annotations(stream_events(bodies.searched()), *lost)))
    assert found == whole
    assert found["used_search"]
    assert len(found["citations"]) == 2


@pytest.mark.rule("spec 6")
@pytest.mark.parametrize("event", [
    {"type": "response.content_part.done", "part": items.output_text("Rain.", [items.url_citation(A, "", 0, 1)])},
    {"type": "response.output_text.done", "text": "Rain.", "annotations": [items.url_citation(A, "", 0, 1)]},
    {"type": "response.output_text_annotation.added", "annotation": items.url_citation(A, "", 0, 1)},
], ids=["part", "text", "older name"])  # fmt: skip
@pytest.mark.parametrize("output", [
    [items.message([items.output_text("Rain.")])], [items.message([])], [],
    [items.web_search_call(["q"], [A]), items.message([items.output_text("Rain.")])],
])  # fmt: skip
async def test_citations_of_a_part_or_a_text_that_was_finished_are_kept(event: Any, output: list[Any]) -> None:
    delta = {"type": "response.output_text.delta", "delta": "Rain."}
    end = {"type": "response.completed", "response": items.response(output)}
    found = await called(streamed([delta, event, end]))
    assert found["answer"] == f"Rain.\n\nSources:\n- {A} ({TODAY})"


async def test_citations_of_one_message_are_kept_where_the_last_event_has_those_of_another() -> None:
    first, second = ([items.output_text("Rain.", [items.url_citation(url, "", 0, 1)])] for url in (A, B))
    done = {"type": "response.output_item.done", "item": items.message(first)}
    output = [items.message([items.output_text("Rain.")]), items.message(second)]
    found = await called(streamed([done, {"type": "response.completed", "response": items.response(output)}]))
    assert [citation["url"] for citation in found["citations"]] == [A, B]


async def test_citations_of_a_remark_stay_out_also_where_the_last_event_lacks_those_of_the_answer() -> None:
    remark, final = (
        items.message([items.output_text("Hm.")], "commentary"),
        items.message([items.output_text("Rain.")], "final_answer"),
    )
    remark["id"], final["id"] = "m1", "m2"
    added = [
        {
            "type": "response.output_text.annotation.added",
            "item_id": name,
            "annotation": items.url_citation(url, "", 0, 1),
        }
        for name, url in (("m1", A), ("m2", B))
    ]
    found = await called(
        streamed([*added, {"type": "response.completed", "response": items.response([remark, final])}])
    )
    assert [citation["url"] for citation in found["citations"]] == [B]


@pytest.mark.parametrize("content", ["Rain.", [{"type": "text", "text": "Rain."}]])
@pytest.mark.parametrize("as_reply", [ok, lambda body: streamed([{"type": "response.completed", "response": body}])])
async def test_a_text_is_read_in_the_other_forms_that_servers_give_it(
    content: Any, as_reply: Callable[[Any], Reply]
) -> None:
    message = {"type": "message", "role": "assistant", "content": content}
    assert (await called(as_reply(items.response([message]))))["answer"] == "Rain."


async def test_a_search_that_only_the_events_before_the_last_have_was_used() -> None:
    body = bodies.answer("Rain.", searches=[items.web_search_call(["q"], [A])])
    found = await called(streamed(without_annotations(stream_events(body))))
    assert (found["used_search"], found["answer"]) == (True, f"Rain.\n\nSources:\n- {A} ({TODAY})")


@pytest.mark.parametrize("as_reply", [ok, as_stream])
async def test_a_citation_within_a_member_of_its_own_is_understood(as_reply: Callable[[Any], Reply]) -> None:
    nested = {
        "type": "url_citation",
        "url_citation": {"url": A, "title": "The forecast", "start_index": 0, "end_index": 1},
    }
    found = await called(as_reply(bodies.answer("Rain.", annotations=[nested])))
    assert found["citations"] == [{"url": A, "title": "The forecast", "published_at": TODAY}]


@pytest.mark.rule("spec 6")
async def test_two_messages_are_two_paragraphs() -> None:
    messages = [items.message([items.output_text(text)]) for text in ("It rains.", "It is windy.")]
    assert (await called(ok(items.response(messages))))["answer"] == "It rains.\n\nIt is windy."
