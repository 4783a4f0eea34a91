"""openai-responses-mcp: search-backed answers from OpenAI's Responses API for MCP clients, on Trio.

For programs of one's own (docs/embedding.md):
  load_settings: read environment, file and defaults
  open_answers: ask, and get answers with citations; search, and get lists of pages
  open_research: begin research that outlives a call
  open_manuals: search a folder of manuals
  serve: serve MCP on two streams
"""

__version__ = "0.9.0"

# Imported when they are asked for: a start needs the version alone. `__init__.pyi` tells type checkers of them.
_HOMES = {
    "load_settings": "settings",
    "open_answers": "asking",
    "open_manuals": "manuals.service",
    "open_research": "research.runs",
    "serve": "serving",
}

__all__ = [*_HOMES]  # noqa: PLE0604  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> object:
    """Return what the package offers by that name."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415  # not at a start

    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return [*globals(), *_HOMES]
