"""The manuals as tools (`manual_ls`, `manual_search` and five more), as resources, and as what names are completed to.

Their definitions are in `toolsets.manual_definitions`, their work in `toolsets.manual_calls`, which the first call
imports. Errors of tools are results with `{code, message, details?}` in every revision of the protocol.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from responses_mcp.errors import ConfigError, ResponsesMcpError
from responses_mcp.manuals.errors import ManualsError
from responses_mcp.protocol.jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, RpcError
from responses_mcp.protocol.revisions import Fetched, Missing
from responses_mcp.sanitization import sanitized_json
from responses_mcp.toolsets.base import CallContext, Feature, Method, Resources, Tool, ToolFailure, Toolset
from responses_mcp.toolsets.calls import Done, tool_of
from responses_mcp.toolsets.manual_definitions import DEFINITIONS, TEMPLATE

if TYPE_CHECKING:
    from responses_mcp.manuals.embeddings.embedder import Embedder
    from responses_mcp.manuals.service import Manuals
    from responses_mcp.responses_api.api import ResponsesApi
    from responses_mcp.settings.model import Settings


class ManualsToolset(Toolset):
    """The manual tools. `api` gives the connections of the answer tools, for embeddings."""

    def __init__(
        self, settings: Settings, *, manuals: Manuals | None = None, api: Callable[[], ResponsesApi] | None = None
    ) -> None:
        self._settings = settings
        self._manuals = manuals
        self._api = api
        self._embedder: Embedder | None = None

    @property
    def tools(self) -> Sequence[Tool]:
        """Return the six tools in the contract's order, and ours unless it is turned off."""
        return [
            tool_of(shown, partial(self._work, shown.name), _failed)
            for shown in DEFINITIONS
            if shown.name != "manual_search" or self._settings.manuals.search_tool
        ]

    @property
    def resources(self) -> Resources:
        """Return the manuals, which are listed page by page."""
        return Resources("manual", TEMPLATE, self._read, partial(self._fetch, "resources/list"))

    @property
    def features(self) -> Sequence[Feature]:
        """Return the completion of names of manuals and their files."""
        completing = {"completion/complete": Method(handler=partial(self._fetch, "completion/complete"))}
        return (Feature(capability="completions", methods=completing),)

    async def aclose(self) -> None:
        """Stop what still runs and close the index, if one was opened."""
        if self._manuals is not None:
            await self._manuals.aclose()
        if self._embedder is not None:
            await self._embedder.aclose()

    async def _work(self, name: str, context: CallContext, arguments: Mapping[str, Any]) -> Done:
        from responses_mcp.toolsets.manual_calls import answer  # noqa: PLC0415  # a start should not wait for it

        return await answer(name, self._opened(), context, arguments)

    async def _read(self, uri: str) -> Fetched | Missing | RpcError:
        return await self._fetch("resources/read", None, {"uri": uri})

    async def _fetch(self, name: str, _: CallContext | None, params: Mapping[str, Any]) -> Fetched | Missing | RpcError:
        """Answer a method of resources; what does not exist is refused as the client's revision says."""
        from responses_mcp.toolsets.manual_calls import fetch  # noqa: PLC0415  # a start should not wait for it

        try:
            return await fetch(name, self._opened(), params)
        except ManualsError as error:
            if error.code == "not_found" and "uri" in params:
                return Missing(params["uri"], error.message)
            return RpcError(INTERNAL_ERROR if error.code == "conflict" else INVALID_PARAMS, error.message)

    def _opened(self) -> Manuals:
        if self._settings.problems:
            raise ManualsError("conflict", str(ConfigError(self._settings.problems)))
        if self._manuals is None:
            from responses_mcp.manuals.embeddings.provider import open_embedder  # noqa: PLC0415
            from responses_mcp.manuals.service import Manuals  # noqa: PLC0415  # SQLite can wait for the first call

            self._embedder = open_embedder(self._settings, self._api)
            self._manuals = Manuals(self._settings.manuals, embedder=self._embedder)
        return self._manuals


def _failed(error: ResponsesMcpError | None, text: str) -> ToolFailure:
    known = error if isinstance(error, ManualsError) else ManualsError("conflict", text)
    return ToolFailure(json.dumps(sanitized_json(known.as_json()), ensure_ascii=False))
