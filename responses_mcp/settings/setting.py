"""What a setting is: where it sits, what it may be, which environment variable sets it, and what it means."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Literal, NamedTuple, cast

from responses_mcp.settings.model import Settings

Kind = Literal[
    "integer",
    "number",
    "boolean",
    "choice",
    "text",
    "env_name",
    "url",
    "path",
    "folder",
    "domains",
    "headers",
    "toolsets",
    "debug",
]

TOOLSETS: Final = ("answer", "manuals", "search")
"""Names that `server.toolsets` may hold."""

MAX_DOMAINS: Final = 100
"""The web search tool takes no more allowed domains than this."""

DEFAULTS: Final = Settings()


class Setting(NamedTuple):
    """One row of the table. `low` and `high` bound integers and numbers; `wording` is for a value unlike its kind."""

    key: str
    kind: Kind
    doc: str
    env: str | None = None
    low: int = 0
    high: int = 0
    choices: tuple[str, ...] = ()
    wording: str = ""

    @property
    def default(self) -> object:
        """The value without any configuration; None where the value comes from elsewhere (see `doc`)."""
        return value_of(DEFAULTS, self.key)

    @property
    def expected(self) -> str:
        """What a value has to be, as the words after "expected" in a message."""
        if self.wording:
            return self.wording
        if self.kind in {"integer", "number"}:
            return f"{'an integer' if self.kind == 'integer' else 'a number'} from {self.low} to {self.high}"
        if self.kind == "choice":
            return f"one of {', '.join(self.choices)}"
        if self.kind == "toolsets":
            return f"a list of toolset names ({', '.join(TOOLSETS)})"
        return _EXPECTED[self.kind]


_EXPECTED: Final[dict[str, str]] = {
    "boolean": "true or false",
    "debug": "true or false",
    "text": "text without blanks",
    "env_name": "the name of an environment variable",
    "url": "an absolute https URL with a host and without query or fragment",
    "path": "the path of a file",
    "folder": "the path of a folder",
    "domains": f"a list of at most {MAX_DOMAINS} domain names",
    "headers": "a mapping of header names to names of environment variables",
}


def integer(key: str, low: int, high: int, doc: str, env: str | None = None) -> Setting:
    """Return the row of an integer."""
    return Setting(key, "integer", doc, env, low, high)


def number(key: str, high: int, doc: str) -> Setting:
    """Return the row of a number that is not negative."""
    return Setting(key, "number", doc, high=high)


def switch(key: str, doc: str, env: str | None = None) -> Setting:
    """Return the row of what is on or off."""
    return Setting(key, "boolean", doc, env)


def choice(key: str, choices: tuple[str, ...], doc: str, env: str | None = None) -> Setting:
    """Return the row of one word out of a few."""
    return Setting(key, "choice", doc, env, choices=choices)


def section(name: str, variables: str, *rows: Setting) -> Iterator[Setting]:
    """Yield the rows of a section, each with the variable that is named after its key, if it has no other."""
    for row in rows:
        yield row._replace(key=f"{name}.{row.key}", env=row.env or f"{variables}_{row.key.upper()}")


def value_of(settings: Settings, key: str) -> object:
    """Return the value at a dotted key of a tree; None when a profile on the way is absent."""
    value: object = settings
    for part in key.split("."):
        if isinstance(value, Mapping):
            value = cast("Mapping[str, object]", value).get(part)
        else:
            value = getattr(value, part, None)
    return value
