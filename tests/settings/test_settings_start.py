"""What a start costs: nothing is imported that this start does not need."""

import subprocess
import sys
from pathlib import Path

import pytest

from .loading import usual_place

HEAVY = ("yaml", "difflib", "hashlib", "httpx", "trio", "importlib.resources", "responses_mcp.settings.system_policy")


def heavy_modules(home: Path, *environ: str) -> set[str]:
    """Load in a fresh interpreter and return which of the heavy modules it imported."""
    code = """
import sys
before = set(sys.modules)
from pathlib import Path
from responses_mcp.settings import load_settings
home, *environ = sys.argv[1:]
loaded = load_settings(dict(text.split("=", 1) for text in environ), home=Path(home), windows=True)
assert not loaded.problems, loaded.problems
print(*sorted(set(sys.modules) - before), sep="\\n")
"""
    command = [sys.executable, "-c", code, str(home), *environ]
    root = Path(__file__).parents[2]
    found = subprocess.run(command, capture_output=True, text=True, check=True, cwd=root, timeout=60)
    return set(found.stdout.split()) & set(HEAVY)


@pytest.mark.parametrize(
    "environ",
    [
        (),
        ("OPENAI_API_KEY=x", "MODEL_ANSWER=gpt-5.4", "MAX_CITATIONS=5", "DEBUG=1", "APPDATA=/nowhere"),
        ("OPENAI_BASE_URL=http://localhost:1234/v1", "MODEL_QUICK=x"),
    ],
)
def test_without_a_file_nothing_heavy_is_imported(environ: tuple[str, ...], tmp_path: Path) -> None:
    assert heavy_modules(tmp_path, *environ) == set()


@pytest.mark.parametrize(("key", "more"), [("max_retries", set()), ("max_retry", {"difflib"})])
def test_a_file_costs_yaml_and_a_mistyped_key_the_comparison(key: str, more: set[str], tmp_path: Path) -> None:
    path = usual_place(tmp_path)
    path.parent.mkdir(parents=True)
    path.write_text(f"request: {{{key}: 1}}\n", encoding="utf-8")
    # PyYAML itself may bring modules of the standard library.
    assert heavy_modules(tmp_path) - {"hashlib"} == {"yaml", *more}
