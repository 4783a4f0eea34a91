"""Where neither `doctor` nor `--show-config` reports a problem, a call reaches the API."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import trio
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from responses_mcp.cli import configuration_shown
from responses_mcp.commands.doctor.configuration import check_configuration
from responses_mcp.errors import KeyUnusable
from responses_mcp.responses_api.request.credentials import credential_headers
from responses_mcp.settings import LoadedSettings, load_settings
from responses_mcp.settings.model import EFFORTS
from responses_mcp.settings.schema import SETTINGS
from responses_mcp.testing import open_fake_api
from responses_mcp.testing.client import connected_client

KEY = "sk-test-0123456789"
WAIT = 10.0
NAMES = [setting.env for setting in SETTINGS if setting.env and setting.env not in ("OPENAI_BASE_URL", "DEBUG")]
words = st.sampled_from(
    [
        "1",
        "0",
        "-1",
        "20",
        "0.5",
        "9" * 25,
        "true",
        "answer",
        "search",
        "manuals",
        "high",
        "~",
        "/",
        "$A",
        "${A}",
        "gpt-5",
    ]
)
keys = st.one_of(
    st.just(KEY),
    st.sampled_from(
        ["", " ", "$A", "${A}", "${env:A}", "{env:A}", "%A%", "$(pass show key)", "'sk-x'", "sk- x", "sk-あ"]
    ),
    st.text(alphabet=st.characters(exclude_categories=["Cs", "Cc"]), max_size=10),
)
environs = st.dictionaries(st.sampled_from(NAMES), st.one_of(words, st.text(max_size=12)), max_size=4)
profiles = st.one_of(
    st.none(),
    st.fixed_dictionaries({}, optional={"model": words, "reasoning_effort": st.sampled_from([*EFFORTS, "x"])}),
)
values = st.one_of(st.none(), st.booleans(), st.integers(), words, st.lists(words, max_size=2), st.text(max_size=9))


LEFT_OUT = ("openai.base_url", "server.debug", "server.debug_file", "prices")


@st.composite
def files(draw: st.DrawFn) -> dict[str, Any]:
    """A file that names some profiles and some other settings."""
    tree: dict[str, Any] = {}
    names = st.sampled_from(["answer", "answer_detailed", "answer_quick", "search"])
    if draw(st.booleans()):
        tree["model_profiles"] = draw(st.dictionaries(names, profiles, max_size=3))
    for setting in draw(st.lists(st.sampled_from(SETTINGS), max_size=4)):
        *path, last = setting.key.split(".")
        if setting.key.startswith(("model_profiles.", "limits.", "research.")) or setting.key in LEFT_OUT:
            continue
        node = tree
        for part in path:
            node = node.setdefault(part, {})
        node[last] = (
            draw(st.dictionaries(words, words, max_size=2)) if setting.key == "openai.headers_env" else draw(values)
        )
    return tree


def key_problem(loaded: LoadedSettings) -> list[str]:
    try:
        credential_headers(loaded.settings.openai)
    except KeyUnusable as error:
        return [str(error)]
    return []


async def reaches(base: str, loaded: LoadedSettings) -> bool:
    async with open_fake_api(path=base) as api:
        there = replace(loaded.settings.openai, base_url=f"http://{urlsplit(api.base_url).netloc}{base}")
        async with connected_client(replace(loaded.settings, openai=there)) as client:
            with trio.fail_after(WAIT):
                await client.ask("tools/call", {"name": "answer", "arguments": {"query": "q"}})
        return bool(api.requests)


@pytest.mark.rule("spec 5.3")
@given(key=keys, environ=environs, file=files(), path=st.one_of(st.just("/v1"), st.text(max_size=12).map("/{}".format)))
@example(key=KEY, environ={}, file={"model_profiles": {"answer": None}}, path="/v1")
@example(key=KEY, environ={"MODEL_QUICK": "m"}, file={"model_profiles": {"answer": None}}, path="/v1")
@example(key="$OPENAI_API_KEY", environ={}, file={}, path="/v1")
@example(key=KEY, environ={"OPENAI_MAX_RETRIES": "20", "MCP_MAX_MESSAGE_BYTES": "1"}, file={}, path="/v1")
@settings(suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.function_scoped_fixture])
def test_where_no_problem_is_reported_a_call_reaches_the_api(
    tmp_path: Path, key: str, environ: dict[str, str], file: dict[str, Any], path: str
) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(json.dumps(file), encoding="utf-8")
    asked = {**environ, "OPENAI_API_KEY": key, "OPENAI_BASE_URL": f"http://127.0.0.1:9{path}"}
    loaded = load_settings(asked, config_path=str(config), home=tmp_path, windows=False)
    assume(loaded.settings.request.timeout_ms >= 1000)  # `doctor` warns of less
    shown = json.loads(configuration_shown(loaded))
    by_document = shown.get("problems", []) + key_problem(loaded)
    by_doctor = [finding for finding in check_configuration(loaded) if finding.status == "FAIL"]
    assert bool(by_document) == bool(by_doctor)
    if not by_document:
        assert trio.run(reaches, urlsplit(loaded.settings.openai.base_url).path, loaded)
