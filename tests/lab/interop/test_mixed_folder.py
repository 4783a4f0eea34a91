"""A session of the official Python SDK over a folder of mixed formats: each question is answered with two calls.

It promises: what is found in each format is read at the place found, and what is not served is told.
"""

import asyncio
import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.lab.interop.python_clients import FASTMCP, SDK
from tests.lab.interop.server import Server

pytestmark = pytest.mark.skipif(SDK < (1,) or bool(FASTMCP), reason="the official Python SDK asks")

PAGE = "<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>"
TEXT = "BT /F 12 Tf 50 700 Td (The impeller has seven blades.) Tj ET"
OBJECTS = (
    "<</Type/Catalog/Pages 2 0 R>>",
    "<</Type/Pages/Count 1/Kids[3 0 R]>>",
    PAGE,
    f"<</Length {len(TEXT)}>>stream\n{TEXT}\nendstream",
    "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
)
PDF = "%PDF-1.4\n" + "".join(f"{number} 0 obj\n{each}\nendobj\n" for number, each in enumerate(OBJECTS, 1))
API = {"openapi": "3.0.0", "paths": {"/pumps": {"post": {"summary": "Start a pump", "description": "Spins it up."}}}}
CELLS = [{"cell_type": "markdown", "source": "# Curves\n\n## Head against flow\n\nThe curve falls with the square."}]
FILES: dict[str, str | bytes] = {
    "guide/care.rst": "Care\n====\n\nSeals\n-----\n\n.. note:: Grease the seals each spring.\n",
    "guide/curves.ipynb": json.dumps({"cells": CELLS}),
    "guide/blades.pdf": f"{PDF}trailer<</Root 1 0 R/Size 6>>\n%%EOF",
    "guide/old.vsdx": "x",
    "site/index.html": "<nav><h2>Menu</h2></nav><h1>Noise</h1><h2>At night</h2><p>At most forty decibels.</p>",
    "api/pumps.json": json.dumps(API),
    "市役所/ごみ.md": "# ごみの出し方\n\n## 粗大ごみ\n\n手数料券を貼って出します。\n".encode("cp932"),
}
QUESTIONS = {
    "When are the seals greased?": "Grease the seals each spring.",
    "How does head depend on flow?": "falls with the square",
    "How many blades has the impeller?": "seven blades",
    "How loud may it be at night?": "forty decibels",
    "How do I start a pump by the API?": "Spins it up.",
    "粗大ごみの出し方": "手数料券を貼って",
}


async def asked(server: Server, root: Path) -> tuple[dict[str, str], dict[str, Any]]:
    """Return what was read for each question with two calls, and the search for what nobody has."""
    stdio, client = import_module("mcp.client.stdio"), import_module("mcp")
    env = {**server.env, "MANUALS_ROOT": str(root)}
    start = stdio.StdioServerParameters(command=server.command, args=server.arguments, env=env)
    answers: dict[str, str] = {}
    async with asyncio.timeout(60), stdio.stdio_client(start) as streams, client.ClientSession(*streams) as session:
        await session.initialize()

        async def call(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
            shown: dict[str, Any] = json.loads((await session.call_tool(tool, arguments)).content[0].text)
            return shown

        for question in QUESTIONS:
            ref = (await call("manual_search", {"query": question}))["results"][0]["ref"]
            tool = ref.get("tool", "manual_read")
            answers[question] = (await call(tool, ref if tool == "manual_scan" else {"ref": ref}))["text"]
        return answers, await call("manual_search", {"query": "chromodynamics"})


def test_each_question_is_answered_with_two_calls_and_what_is_not_served_is_told(
    server: Server, tmp_path: Path
) -> None:
    for path, content in FILES.items():
        file = tmp_path / path
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)
    answers, nothing = asyncio.run(asked(server, tmp_path))
    assert {question: QUESTIONS[question] in text for question, text in answers.items()} == dict.fromkeys(
        QUESTIONS, True
    )
    assert nothing["results"] == []
    assert (nothing["complete"], nothing["reason"]) == (False, "1 file of another format is not served (1 .vsdx)")
