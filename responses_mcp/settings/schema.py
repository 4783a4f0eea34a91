"""The table of settings, one row each: what loading, `--show-config` and the reference page read.

The rows are the annotated fields of `model`; to add a setting, add one there. Keys are dotted paths through the tree of
`Settings`. The keys and variables of contract 5.3 and 5.4 are among them; the others are ours.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, Field, fields, is_dataclass
from types import NoneType
from typing import Any, Final, NamedTuple, get_args

from responses_mcp.settings.address import NETWORK_VARIABLES
from responses_mcp.settings.forms import SWITCH, Env, Form, Path, Text
from responses_mcp.settings.model import SEARCH_EFFORT, Profile, Settings

PROFILES: Final = ("answer", "answer_detailed", "answer_quick", "search")
"""Names that `model_profiles` may hold (spec 3.0, and ours); the others take what they lack from the first."""


class Setting(NamedTuple):
    """One row of the table: the dotted key, what a value must be, what it is for, its variable and its default.

    `above` is the key of the profile `answer` whose value stands in for a missing one.
    """

    key: str
    form: Form
    doc: str
    env: str | None = None
    default: object = None
    above: str = ""


def section_of(annotation: Any) -> Any:
    """Return the dataclass that a field holds, None if it holds none."""
    bare = getattr(annotation, "__origin__", annotation)
    return bare if is_dataclass(bare) else None


def _rows(section: Any, at: str = "", variables: str | None = None) -> Iterator[Setting]:
    for each in fields(section):
        key, marks = f"{at}{each.name}", getattr(each.type, "__metadata__", ())
        env = next((mark for mark in marks if isinstance(mark, Env)), None)
        if (inner := section_of(each.type)) is not None:
            yield from _rows(inner, f"{key}.", env.name if env is not None else variables)
        elif key == "model_profiles":
            of_first = [*_rows(Profile, f"{key}.{PROFILES[0]}.")]
            yield from of_first
            yield from (_of_profile(name, row) for name in PROFILES[1:] for row in of_first)
        elif marks:
            usual = variables and f"{variables}_{each.name.upper()}"
            yield _row(key, env.name if env is not None else usual, each)


def _of_profile(name: str, of_first: Setting) -> Setting:
    """Return a row of the first profile as that of another."""
    field = of_first.key.rpartition(".")[2]
    key, env = f"model_profiles.{name}.{field}", f"MODEL_{name.rpartition('_')[2].upper()}"
    if key == "model_profiles.search.reasoning_effort":
        return of_first._replace(key=key, env=None, default=SEARCH_EFFORT)
    return of_first._replace(key=key, env=env if field == "model" else None, above=of_first.key)


def _row(key: str, env: str | None, field: Field[Any]) -> Setting:
    """Return the row of a field: what its type says, and what the marks beside it do."""
    whole, *marks = get_args(field.type)
    bare = next((each for each in get_args(whole) if each is not NoneType), whole)
    marks += getattr(bare, "__metadata__", ())
    form = next((mark for mark in marks if isinstance(mark, Form)), None)
    form = form or (SWITCH if bare is bool else Text("one of", choices=get_args(whole)))
    doc = next(mark for mark in marks if isinstance(mark, str))
    default = field.default if field.default_factory is MISSING else field.default_factory()
    return Setting(key, form, doc, env, default)


SETTINGS: Final = tuple(_rows(Settings))
BY_KEY: Final = {setting.key: setting for setting in SETTINGS}

READ_BY_SERVER: Final = tuple(dict.fromkeys((*(row.env for row in SETTINGS if row.env), *NETWORK_VARIABLES)))
"""The variables that a server reads: those of settings, of proxies and of certificates."""

PATHS: Final = frozenset(
    {*(row.env for row in SETTINGS if row.env and isinstance(row.form, Path)), "SSL_CERT_FILE", "SSL_CERT_DIR"}
)
"""Those of them that hold paths; the last one may hold several."""

SECTIONS: Final = dict.fromkeys(
    setting.key.rsplit(".", depth)[0] for setting in SETTINGS for depth in range(setting.key.count("."), 0, -1)
)
"""Keys that hold further keys."""
