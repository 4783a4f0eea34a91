"""Prompts on the wire: when they are offered, what they say, and what they refuse."""

from pathlib import Path

import pytest

from responses_mcp.serving import configured_toolsets
from responses_mcp.settings.model import ManualsSettings, ServerSettings, Settings
from responses_mcp.testing.client import connected_client
from tests.toolsets.manuals_harness import REVISIONS, ask, fill, settings_for

every_revision = pytest.mark.parametrize("revision", REVISIONS)
ON = ServerSettings(prompts=True)


@pytest.mark.parametrize(
    ("prompts", "legacy", "modern"), [(None, False, True), (True, True, True), (False, False, False)]
)
async def test_prompts_are_offered_in_the_newer_revision_unless_the_setting_decides(
    prompts: bool | None, legacy: bool, modern: bool
) -> None:
    async with connected_client(Settings(server=ServerSettings(prompts=prompts)), initialize=False) as client:
        handshake = (await client.initialize())["result"]["capabilities"]
        discovered = (await ask(client, "modern", "server/discover"))["result"]["capabilities"]
        for offered, revision, there in ((handshake, "legacy", legacy), (discovered, "modern", modern)):
            assert offered == ({"tools": {}, "prompts": {}} if there else {"tools": {}})
            answer = await ask(client, revision, "prompts/list")
            assert ("result" in answer) is there
            assert there or answer["error"]["code"] == -32601


@every_revision
async def test_each_prompt_is_listed_with_its_arguments_and_names_only_tools_that_there_are(
    tmp_path: Path, revision: str
) -> None:
    settings = settings_for(fill(tmp_path), server=ON)
    tools = {tool.name for toolset in configured_toolsets(settings) for tool in toolset.tools}
    async with connected_client(settings) as client:
        listed = (await ask(client, revision, "prompts/list"))["result"]
        assert ("ttlMs" in listed) is (revision == "modern")
        assert [
            (row["name"], [(each["name"], each["required"]) for each in row["arguments"]]) for row in listed["prompts"]
        ] == [
            ("research", [("question", True)]),
            ("compare", [("items", True), ("criteria", False)]),
            ("fact_check", [("claim", True)]),
            ("ask_manual", [("question", True), ("manual_id", False)]),
        ]
        for row in listed["prompts"]:
            arguments = {each["name"]: f"<{each['name']}>" for each in row["arguments"]}
            result = (await ask(client, revision, "prompts/get", name=row["name"], arguments=arguments))["result"]
            assert "ttlMs" not in result
            [message] = result["messages"]
            assert (message["role"], message["content"]["type"]) == ("user", "text")
            text = message["content"]["text"]
            assert all(value in text for value in arguments.values())
            assert "quote" in text.lower()
            assert "only the first word" in text  # Claude Code cuts what a user typed
            words = {word.strip(".,;:") for word in text.split()}
            assert words & tools
            assert {word for word in words if word.startswith(("answer_", "manual_"))} <= tools


async def test_the_prompt_about_manuals_comes_with_the_tool_that_searches_them_all(tmp_path: Path) -> None:
    root = str(fill(tmp_path))
    for settings in (Settings(server=ON), Settings(server=ON, manuals=ManualsSettings(root=root, search_tool=False))):
        async with connected_client(settings) as client:
            names = [row["name"] for row in (await client.ask("prompts/list"))["result"]["prompts"]]
            assert "ask_manual" not in names
    async with connected_client(settings_for(tmp_path, server=ON)) as client:
        completed = await client.ask(
            "completion/complete",
            {"ref": {"type": "ref/prompt", "name": "ask_manual"}, "argument": {"name": "manual_id", "value": "g"}},
        )
        assert completed["result"]["completion"]["values"] == ["guide"]


@every_revision
async def test_wrong_names_and_arguments_are_refused_and_the_refusal_says_what_is_meant(revision: str) -> None:
    async with connected_client(Settings(server=ON)) as client:
        for params, said in (
            ({}, "research, compare, fact_check"),
            ({"name": "none"}, "research, compare, fact_check"),
            ({"name": ["research"]}, "research, compare, fact_check"),
            ({"name": "research"}, "question is missing"),
            ({"name": "research", "arguments": []}, "question is missing"),
            ({"name": "research", "arguments": {"question": "  "}}, "question is missing"),
            ({"name": "research", "arguments": {"question": 5}}, "question is missing"),
        ):
            error = (await ask(client, revision, "prompts/get", **params))["error"]
            assert error["code"] == -32602
            assert said in error["message"]
        arguments = {"question": "Why\ud800?", "criteria": {}, "other": 1}
        result = await ask(client, revision, "prompts/get", name="research", arguments=arguments)
        assert result["result"]["messages"][0]["content"]["text"].endswith("Question: Why\ufffd?")
