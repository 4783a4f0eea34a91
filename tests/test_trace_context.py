"""Traces of a client go to the API if they are asked for, and nothing that is no trace does."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trio

from responses_mcp.settings.model import OpenAISettings, RequestSettings, Settings
from responses_mcp.testing import open_fake_api
from responses_mcp.testing.client import connected_client
from responses_mcp.trace_context import trace_of
from tests.processes import WAIT

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
META = {"traceparent": PARENT, "tracestate": "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE", "baggage": "user=a%20b;p=1"}


def read(**meta: object) -> dict[str, str]:
    return trace_of({"_meta": meta})


@pytest.mark.parametrize(
    ("meta", "headers"),
    [
        (META, META),
        ({"traceparent": PARENT}, {"traceparent": PARENT}),
        *(
            ({"traceparent": parent}, {"traceparent": parent})
            for parent in (f"01{PARENT[2:]}", f"cc{PARENT[2:]}-what.comes")
        ),
        ({"tracestate": "a=b"}, {}),
        ({"baggage": " a = b ; c , d=e;f=g "}, {"baggage": "a=b;c,d=e;f=g"}),
        ({"traceparent": PARENT, "tracestate": "a=b,, c@d=e "}, {"traceparent": PARENT, "tracestate": "a=b,c@d=e"}),
    ],
)
def test_what_the_standards_allow_is_passed_on(meta: dict[str, str], headers: dict[str, str]) -> None:
    assert read(**meta) == headers


@pytest.mark.parametrize(
    "parent",
    [
        PARENT.upper(),
        f"{PARENT}\r\nx-evil: 1",
        f"{PARENT}\n",
        f" {PARENT}",
        PARENT[:-1],
        f"{PARENT}-00",
        f"ff{PARENT[2:]}",
        f"01{PARENT[2:]}.more",
        f"01{PARENT[2:]}-a b",
        f"01{PARENT[2:]}-a\r\nx: 1",
        PARENT.replace("0af7651916cd43dd8448eb211c80319c", "0" * 32),
        PARENT.replace("b7ad6b7169203331", "0" * 16),
        "",
        7,
        None,
        [PARENT],
    ],
)
def test_a_parent_that_is_none_takes_its_state_with_it(parent: object) -> None:
    assert read(traceparent=parent, tracestate="a=b") == {}


@pytest.mark.parametrize(
    "state",
    [
        "a",
        "a=",
        "A=b",
        "a=1,a=2",
        "a=b\r\nx: 1",
        "a=é",
        "=b",
        ",".join(f"a{n}=b" for n in range(33)),
        "a=" + "b" * 600,
        3,
    ],
)
def test_a_state_that_is_none_is_left_out(state: object) -> None:
    assert read(traceparent=PARENT, tracestate=state) == {"traceparent": PARENT}


@pytest.mark.parametrize(
    "baggage",
    ["a", "a=b,", "a=b\r\nx: 1", "a=é", "a=b c", 'a="b"', "a=b;c=d e", "a=" + "b" * 8_192, "a=b," * 64 + "a=b", {}],
)
def test_baggage_that_is_none_is_left_out(baggage: object) -> None:
    assert read(baggage=baggage) == {}


@pytest.mark.parametrize("params", [{}, {"_meta": None}, {"_meta": [PARENT]}, {"_meta": {}}])
def test_requests_without_a_trace_have_none(params: dict[str, Any]) -> None:
    assert trace_of(params) == {}


@pytest.mark.parametrize("wanted", [True, False])
async def test_each_call_sends_its_own_trace_and_only_if_that_is_asked_for(wanted: bool, tmp_path: Path) -> None:
    async with open_fake_api() as api:
        settings = Settings(
            openai=OpenAISettings(base_url=api.base_url, api_key="sk-test"),
            request=replace(RequestSettings(), propagate_trace=wanted),
        )
        async with connected_client(settings) as client:
            with trio.fail_after(WAIT):
                for number, meta in enumerate((META, {}, {"traceparent": PARENT.replace("b7", "c8")})):
                    arguments = {"query": str(number)}
                    await client.ask("tools/call", {"name": "answer", "arguments": arguments, "_meta": meta})
    sent = [{name: each.headers[name] for name in META if name in each.headers} for each in api.requests]
    assert sent == ([META, {}, {"traceparent": PARENT.replace("b7", "c8")}] if wanted else [{}, {}, {}])
