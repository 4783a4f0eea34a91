"""The workflows of CI: what they install, and that their steps run what they say."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parent.parent
WORKFLOWS = ROOT / ".github/workflows"
LOCKED = ["ci", "nightly", "release"]

pytestmark = [
    pytest.mark.skipif(not WORKFLOWS.exists(), reason="workflows are of the checkout"),
    pytest.mark.rule("spec 17"),
]


def workflow(name: str) -> Any:
    return yaml.safe_load((WORKFLOWS / f"{name}.yml").read_text(encoding="utf-8"))


def steps(name: str) -> list[dict[str, Any]]:
    return [step for job in workflow(name)["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize("name", LOCKED)
def test_what_checks_and_releases_installs_from_the_lock_file(name: str) -> None:
    lines = [line.strip() for step in steps(name) for line in step.get("run", "").splitlines()]
    with_nox = [line for line in lines if re.search(r"\bnox -s\b", line)]
    assert with_nox
    assert [line for line in with_nox if not line.startswith("uv run --locked --only-group nox nox -s ")] == []
    assert [line for line in lines if re.search(r"\b(pip|pipx|uvx) ", line) and "install uv==" not in line] == []
    assert not [step for step in steps(name) if "NEWEST" in step.get("env", {})]


def test_every_push_and_every_pull_request_is_checked() -> None:
    # Without a filter there are pushes of tags too, which are released.
    assert workflow("ci")[True] == {
        "push": {"branches": ["**"]},
        "pull_request": None,
    }  # `on` is a truth value in YAML 1.1


def test_the_checks_run_in_a_folder_with_a_blank_and_japanese_in_its_path() -> None:
    job = workflow("ci")["jobs"]["checks"]
    folder = job["defaults"]["run"]["working-directory"]
    assert " " in folder
    assert not folder.isascii()
    [checkout] = [step["with"] for step in job["steps"] if "actions/checkout" in step.get("uses", "")]
    assert checkout["path"] == folder


def test_uv_itself_is_the_one_of_the_lock_file_wherever_it_is_installed() -> None:
    packages = tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8"))["package"]
    [version] = [package["version"] for package in packages if package["name"] == "uv"]
    files = [ROOT / "Dockerfile", *(WORKFLOWS / f"{name}.yml" for name in LOCKED)]
    found = {file.name: set(re.findall(r"\buv==(\S+)", file.read_text(encoding="utf-8"))) for file in files}
    assert found == {file.name: {version} for file in files}


def test_one_job_a_week_takes_the_newest() -> None:
    [when] = workflow("newest")[True]["schedule"]
    assert re.fullmatch(r"\d+ \d+ \* \* [0-6]", when["cron"])
    [session] = [step for step in steps("newest") if "nox -s" in step.get("run", "")]
    assert session["env"] == {"NEWEST": "1"}
    assert 'os.environ.get("NEWEST")' in (ROOT / "noxfile.py").read_text(encoding="utf-8")


@pytest.mark.skipif(not (ROOT / "tests/lab").exists(), reason="the laboratory is of the checkout")
def test_every_part_of_the_laboratory_runs_each_night_and_so_do_the_tests_with_their_large_profile() -> None:
    jobs = workflow("nightly")["jobs"]
    [sessions] = [step for step in jobs["tests"]["steps"] if "nox -s tests" in step.get("run", "")]
    assert sessions["env"] == {"TEST_PROFILE": "nightly"}
    page = (ROOT / "docs/verification.md").read_text(encoding="utf-8")
    section = page.partition("\n## The laboratory\n")[2].partition("\n## ")[0]
    parts = re.findall(r"^\| `([\w.]+)` \|", section, re.MULTILINE)
    nightly = [part.split()[0] for part in jobs["lab"]["strategy"]["matrix"]["part"]]
    assert sorted([*nightly, "retrieval"]) == sorted(parts)  # which needs a corpus
    modules = [ROOT / "tests/lab" / part.replace(".", "/") for part in parts if part not in ("tools", "interop")]
    assert [path for path in modules if not (path.with_suffix(".py").exists() or (path / "__main__.py").exists())] == []


def test_the_step_that_cancels_a_real_call_runs_the_test_that_does() -> None:
    [step] = [step for step in steps("ci") if step.get("name") == "Cancel a real call"]
    chosen = re.search(r"nox -s smoke -- --real -k (\w+)", step["run"])
    assert chosen is not None
    smoke = (ROOT / "tests/smoke/test_cancel_over_tls.py").read_text(encoding="utf-8")
    assert len(re.findall(rf"^async def {chosen[1]}", smoke, re.MULTILINE)) == 1
