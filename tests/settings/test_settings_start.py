"""What a start costs: nothing is imported that this start does not need."""

import subprocess
import sys
from pathlib import Path

import pytest

from .loading import usual_place

HEAVY = {"yaml", "difflib", "hashlib", "httpx", "trio", "importlib.resources", "responses_mcp.settings.system_policy"}
CODE = """
import sys
before = set(sys.modules)
from responses_mcp.settings import load_settings
home, *environ = sys.argv[1:]
loaded = load_settings(dict(text.split("=", 1) for text in environ), home=home, windows=True)
assert not loaded.problems, loaded.problems
print(*sorted(set(sys.modules) - before), sep="\\n")
"""


@pytest.mark.parametrize(
    ("environ", "yaml", "heavy"),
    [
        ("", None, set()),
        ("OPENAI_API_KEY=x MODEL_ANSWER=gpt-5.4 MAX_CITATIONS=5 DEBUG=1 APPDATA=/nowhere", None, set()),
        ("OPENAI_BASE_URL=http://localhost:1234/v1 MODEL_QUICK=x", None, set()),
        ("", "request: {max_retries: 1}\n", {"yaml"}),
        ("", "request: {max_retry: 1}\n", {"yaml", "difflib"}),
    ],
)
def test_only_what_is_configured_is_imported(environ: str, yaml: str | None, heavy: set[str], tmp_path: Path) -> None:
    if yaml is not None:
        usual_place(tmp_path).parent.mkdir(parents=True)
        usual_place(tmp_path).write_text(yaml, encoding="utf-8")
    command = [sys.executable, "-c", CODE, str(tmp_path), *environ.split()]
    root = Path(__file__).parents[2]
    found = subprocess.run(command, capture_output=True, text=True, check=True, cwd=root, timeout=60)
    # PyYAML itself may bring modules of the standard library.
    assert (set(found.stdout.split()) & HEAVY) - ({"hashlib"} if yaml else set()) == heavy
