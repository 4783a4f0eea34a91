"""What holds for every test: whatever a server writes to a client of ours fits the schema of its revision."""

import gc
import importlib.util
import inspect
import os
import signal
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.profiles import PROFILE
from tests.wine import ARTEFACTS

# A shell that runs the tests in the background, or `nohup`, has them ignored, which processes started by tests inherit;
# there, a signal that a test sends would do nothing.
for _name, _usual in (("SIGINT", signal.default_int_handler), ("SIGHUP", signal.SIG_DFL)):
    _number = getattr(signal, _name, None)
    if _number is not None and signal.getsignal(_number) is signal.SIG_IGN:
        signal.signal(_number, _usual)


if importlib.util.find_spec("hypothesis") is not None:  # the smoke tests do without
    from hypothesis import HealthCheck, settings

    settings.register_profile(
        "ours",
        settings(),
        max_examples=PROFILE.examples,
        derandomize=PROFILE.same_examples,
        database=None,
        print_blob=True,  # what a failure is repeated with
        deadline=None,  # how long an example takes says how busy the machine is
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    )
    settings.load_profile("ours")


UNDER_WINE = bool(os.environ.get("UNDER_WINE"))


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out the laboratory unless an argument names it, what is not chosen, and files that Wine cannot import."""
    if "not once" in config.option.markexpr and says_once(collection_path):
        return True
    if collection_path == Path(__file__).parent / "lab" and not any("lab" in Path(arg).parts for arg in config.args):
        return True
    inside = collection_path.relative_to(Path(__file__).parent.parent)
    return True if UNDER_WINE and inside.as_posix() in ARTEFACTS else None


# The repository's own pages, files and tools, random schedules, texts in and out, words for people, files of others,
# runs in virtual time, what the system does with descriptors, and hostile upstreams by the hundred: what they show says
# the same on every Python.
ONCE = (
    *("commands", "hostile", "settings", "simulation", "manuals/embeddings", "manuals/requests", "manuals/results"),
    *("manuals/search", "responses_api/response"),
    *("manuals/index/test_spoilt_index.py", "manuals/index/test_survival.py"),
    *("manuals/search/test_contract.py", "manuals/test_ranking_promises.py", "manuals/test_retrieval.py"),
    "manuals/test_search_everywhere.py",
    *("research/test_hostile_runs.py", "research/test_leaving.py", "research/test_runs.py"),
    *("responses_api/test_background.py", "responses_api/test_failures.py", "responses_api/test_gate.py"),
    *("responses_api/test_parameter_fallback.py", "responses_api/test_parameters.py"),
    "responses_api/test_passed_on.py",
    "runtime/test_unread_answers.py",
    *("toolsets/test_answer.py", "toolsets/test_search.py", "toolsets/test_answer_sources.py"),
    *("toolsets/test_echoed_secrets.py", "toolsets/test_manual_search.py"),
    *("test_answers.py", "test_debug_file.py", "test_failed_calls.py", "test_outgoing.py", "test_redaction.py"),
    *("test_retries.py", "test_sanitization.py"),
    *("test_bundle.py", "test_distribution.py", "test_docs.py", "test_japanese_pages.py", "test_layers.py"),
    *("test_linear_scans.py", "test_linear_time.py", "test_picture.py", "test_plugins.py", "test_promises.py"),
    *("test_samples.py", "test_workflows.py"),
)


@cache
def says_once(path: Path) -> bool:
    """Tell whether a file or folder is within one of `ONCE`."""
    return any(path.is_relative_to(Path(__file__).parent / place) for place in ONCE)


def in_virtual_time(*work: Any, **options: Any) -> Any:
    """Run a test with a clock that jumps to the next deadline when nothing else is left to do."""
    import trio.testing

    return trio.run(*work, **{**options, "clock": trio.testing.MockClock(autojump_threshold=0)})


@pytest.hookimpl(tryfirst=True)  # before markers choose
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is in such folders and files with `once`, set the clocks, and leave out what Wine cannot do."""
    for item in items:
        if says_once(item.path):
            item.add_marker("once")
        clock = item.get_closest_marker("clock")
        if clock and clock.args == ("virtual",) and inspect.iscoroutinefunction(getattr(item, "function", None)):
            item.add_marker(pytest.mark.trio(run=in_virtual_time))
        reason = next((why for start, why in ARTEFACTS.items() if item.nodeid.startswith(start)), None)
        if reason and UNDER_WINE:
            item.add_marker(pytest.mark.skip(reason))


def pytest_collection_finish() -> None:
    """Freeze all that was imported and collected: a test that collects garbage would look through it each time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def every_message_fits_its_schema() -> Iterator[None]:
    """Check all that any `McpClient` hears in the test; nothing where the official schemas are not installed."""
    if importlib.util.find_spec("mcp_types") is None:
        yield
        return
    from tests.schemas import checked_clients

    with checked_clients():
        yield
