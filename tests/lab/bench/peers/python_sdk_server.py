"""The three answer tools on the official Python SDK and OpenAI's Python client: `python python_sdk_server.py SETTINGS`.

It runs in an environment of its own, beside `mcp` and `openai`. The SDK cancels the task of a call that its client
has cancelled, and with it goes the connection. The base URL and the key come from OPENAI_BASE_URL and OPENAI_API_KEY.
"""

from __future__ import annotations

import asyncio
import json
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from openai import AsyncOpenAI, OpenAIError
from openai.types.responses import Response

TOKYO = timezone(timedelta(hours=9))


class AnswerServer:
    """What the tools do. `settings` is the object that `tests.lab.bench.peers` has written."""

    def __init__(self, settings: dict[str, Any], client: AsyncOpenAI) -> None:
        self._settings = settings
        self._client = client
        self._listed = types.ListToolsResult.model_validate({"tools": settings["tools"]})

    async def list_tools(self, context: object, params: object) -> types.ListToolsResult:
        return self._listed

    async def call_tool(self, context: object, params: types.CallToolRequestParams) -> types.CallToolResult:
        arguments = params.arguments or {}
        query = arguments.get("query")
        profile = self._settings["profiles"].get(params.name)
        if profile is None:
            return failure(f"there is no tool {params.name}")
        if not isinstance(query, str) or not query.strip():
            return failure("query is missing or empty")
        today = datetime.now(TOKYO).date().isoformat()
        try:
            response = await self._client.responses.create(
                model=profile["model"],
                instructions=self._settings["policy"],
                input=self._input(query, arguments, today),
                tools=[{"type": "web_search"}],
                include=["web_search_call.action.sources"],
                text={"verbosity": profile["verbosity"]},
                reasoning={"effort": profile["reasoning_effort"]},
            )
        except OpenAIError as error:
            return failure(str(error))
        answer = self._read(response, profile["model"], today)
        text = json.dumps(answer, ensure_ascii=False)
        return types.CallToolResult(content=[types.TextContent(text=text)], structured_content=answer)

    def _input(self, query: str, arguments: dict[str, Any], today: str) -> str:
        days = arguments.get("recency_days", self._settings["recency_days"])
        results = arguments.get("max_results", self._settings["max_results"])
        hints = [f"today={today} (Asia/Tokyo)", f"recency_days={days}", f"max_results={results}"]
        if domains := arguments.get("domains"):
            hints.append("domains=" + " ".join(domains))
        return f"{query}\n\n[Hints] {', '.join(hints)}"

    def _read(self, response: Response, model: str, today: str) -> dict[str, Any]:
        """Return an answer with its sources, as the tools' output schema has it."""
        searched = False
        cited: dict[str, str] = {}
        for item in response.output:
            if item.type == "web_search_call":
                searched = True
            elif item.type == "message":
                for part in item.content:
                    if part.type == "output_text":
                        for note in part.annotations:
                            if note.type == "url_citation":
                                cited.setdefault(note.url, note.title)
        chosen = list(cited.items())[: self._settings["max_citations"]]
        text = response.output_text.strip()
        if searched:
            lines = [f"- {url} ({today})" for url, _ in chosen] or [f"- web_search ({today})"]
            text = "\n".join([text, "", "Sources:", *lines])
        return {
            "answer": text,
            "used_search": searched,
            "citations": [{"url": url, "title": title, "published_at": today} for url, title in chosen],
            "model": model,
        }


def failure(text: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=True)


async def main(settings: dict[str, Any]) -> None:
    async with AsyncOpenAI(timeout=300) as client, stdio_server() as (read_stream, write_stream):
        answers = AnswerServer(settings, client)
        server: Server[Any] = Server(
            "python-sdk",
            version="1.0.0",
            instructions=settings["instructions"],
            on_list_tools=answers.list_tools,
            on_call_tool=answers.call_tool,
        )
        await server.run(read_stream, write_stream, server.create_initialization_options())


if __name__ == "__main__":
    asyncio.run(main(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))))
