"""openai-responses-mcp: search-backed answers from OpenAI's Responses API for MCP clients, on Trio."""

__version__ = "0.9.0"

# Imported when they are asked for: a start needs the version alone. `__init__.pyi` tells type checkers of them.
_HOMES = {
    "load_settings": "settings",
    "open_answers": "answers",
    "open_manuals": "manuals.service",
    "open_research": "research.service",
    "open_search": "websearch",
    "serve": "serving",
}


def __getattr__(name: str) -> object:
    """Return what the package offers by that name."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415  # not at a start

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return [*globals(), *_HOMES]
