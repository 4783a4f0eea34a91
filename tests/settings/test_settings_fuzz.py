"""Whatever is written, loading gives usable settings and printable sentences, and never an exception."""

import json
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from responses_mcp.settings import LoadedSettings, load_settings, show_config
from responses_mcp.settings.forms import Number, Switch, Text
from responses_mcp.settings.forms import Path as PathForm
from responses_mcp.settings.model import EFFORTS, VERBOSITIES
from responses_mcp.settings.schema import SETTINGS
from tests.settings.loading import value_of

NAMES = [setting.env for setting in SETTINGS if setting.env]
VARIABLES = [*NAMES, "OPENAI_API_KEY", "REQUERY_ATTEMPTS", "A_NAME", "APPDATA", "LOCALAPPDATA", "XDG_CACHE_HOME"]
words = ["1", "0", "0.5", "true", "answer", "manuals", "high", "https://h", "http://[", "~", "~/x", "*", "${A}"]
words += ["sk-abcdefghijk"]
texts = st.one_of(st.text(max_size=40), st.integers().map(str), st.sampled_from(words))
environs = st.dictionaries(st.sampled_from(VARIABLES), texts, max_size=6)

scalars = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20), st.dates(), st.sampled_from(EFFORTS)
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=8), inner, max_size=3)),
    max_leaves=5,
)
keys = sorted({part for setting in SETTINGS for part in setting.key.split(".")} | {"<<", "x", "api_key", "A_NAME"})
snippets = st.lists(
    st.one_of(
        st.sampled_from(
            [*keys, ": ", "\n", "  ", "- ", "{", "}", "[", "]", ", ", "&a ", "*a", "<<", "!!int ", "|", "'", '"']
        ),
        st.sampled_from(["1", "true", "~", "2026-01-01", "\t", "---\n", "#", "%", "? ", "\\x", "0x1", "1:2", ".inf"]),
        st.text(max_size=4),
    ),
    max_size=30,
).map("".join)


@st.composite
def nested(draw: st.DrawFn) -> str:
    """A document with known keys and values of any kind, in YAML that is also JSON."""
    tree: dict[str, object] = {}
    for setting in draw(st.lists(st.sampled_from(SETTINGS), max_size=6)):
        *path, last = setting.key.split(".")
        node: dict[str, object] = tree
        for part in path[: draw(st.integers(0, len(path)))] if draw(st.booleans()) else path:
            inner = node.setdefault(part, {})
            assert isinstance(inner, dict)
            node = inner
        node.setdefault(last, draw(values))
    return json.dumps(tree, default=str, ensure_ascii=draw(st.booleans()))


def check(loaded: LoadedSettings) -> None:
    """Assert what holds for every load."""
    found = loaded.settings
    assert found.problems == loaded.problems
    for text in (*loaded.problems, *loaded.warnings):
        assert text.isprintable()
        assert text.endswith((".", "?"))
        assert len(text) < 1_500
        text.encode()
    json.loads(show_config(loaded, "1")).keys()
    show_config(loaded, "1").encode()
    for setting in SETTINGS:
        value = value_of(found, setting.key)
        form = setting.form
        if isinstance(form, Number) and value is not None:
            assert isinstance(value, int if form.whole else float)
            assert form.low <= value <= form.high
        if isinstance(form, PathForm) and value not in {None, "-"}:
            assert isinstance(value, str)
            assert Path(value).is_absolute()
        if isinstance(form, Switch) and value is not None:
            assert type(value) is bool
        if isinstance(form, Text) and form.choices and not setting.key.startswith("model_profiles."):
            assert value in form.choices
    for profile in found.model_profiles.values():
        assert profile.model.strip()
        assert profile.reasoning_effort in EFFORTS
        assert profile.verbosity in VERBOSITIES
    assert found.openai.base_url.lower().startswith(("https://", "http://"))
    assert not found.openai.base_url.endswith("/")
    assert found.server.toolsets is None or set(found.server.toolsets) <= {"answer", "manuals", "search", "research"}
    assert ("manuals" in found.toolsets) <= (found.manuals.root is not None)
    assert found.server.toolsets is None or found.toolsets == found.server.toolsets
    assert set(found.openai.headers) == set(found.openai.headers_env)


@given(environ=environs, debug=st.one_of(st.none(), st.booleans(), texts), toolsets=st.one_of(st.none(), texts))
def test_any_environment_and_command_line_load(
    tmp_path: Path, environ: dict[str, str], debug: bool | str | None, toolsets: str | None
) -> None:
    check(load_settings(environ, debug=debug, toolsets=toolsets, home=tmp_path, windows=True))


@pytest.mark.parametrize("home", ["", "x\0y", "\udcff", "~", "relative"])
def test_any_home_loads(home: str) -> None:
    check(load_settings({"HOME": home, "USERPROFILE": home, "APPDATA": home}, windows=True))


@given(yaml=st.one_of(st.text(), snippets, nested(), st.binary(max_size=200)), environ=environs)
@example(yaml="? a\n? a", environ={})
@example(yaml="&a {*a : b}", environ={})
@example(yaml="? &a [*a]\n: b", environ={})
@example(yaml='"\\ud800": 1\n"\\ud800": 1', environ={})
@example(yaml="openai: {headers_env: {[a]: b, <<: {c: A_NAME}}}", environ={"A_NAME": "\udcff"})
def test_any_yaml_file_loads(tmp_path: Path, yaml: str | bytes, environ: dict[str, str]) -> None:
    path = tmp_path / "config.yaml"
    path.write_bytes(yaml if isinstance(yaml, bytes) else yaml.encode("utf-8", "surrogatepass"))
    check(load_settings(environ, config_path=str(path), home=tmp_path, windows=False))


@given(path=st.text(max_size=30))
def test_any_path_of_a_file_loads(tmp_path: Path, path: str) -> None:
    check(load_settings({}, config_path=f"{tmp_path}/{path}", home=tmp_path, windows=False))


@given(content=st.binary(max_size=50), merge=st.sampled_from(["replace", "prepend", "append", "x"]), path=texts)
def test_any_policy_file_loads(tmp_path: Path, content: bytes, merge: str, path: str) -> None:
    (tmp_path / "p.md").write_bytes(content)
    config = tmp_path / "config.yaml"
    for chosen in ("p.md", path):
        system = {"source": "file", "path": chosen, "merge": merge}
        config.write_text(json.dumps({"policy": {"system": system}}), encoding="utf-8")
        check(load_settings({}, config_path=str(config), home=tmp_path, windows=False))
