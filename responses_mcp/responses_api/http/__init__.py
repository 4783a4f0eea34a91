"""HTTP: connections to the server, and the sockets below them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from responses_mcp.responses_api.http.network import ConnectionPool


async def open_connections(url: str, limit: int, *, trust_env: bool = True) -> ConnectionPool:
    """Import httpx, and prepare for requests to the server of `url`; nothing is connected yet.

    With `trust_env`, certificates and proxy are those that the usual environment variables name. Raises
    `ConnectionFailed` where these cannot be used.
    """

    def prepared() -> ConnectionPool:
        from responses_mcp.responses_api.http.network import pool_for  # noqa: PLC0415  # imports httpx

        return pool_for(url, limit, trust_env=trust_env)

    # In a thread: the import takes a tenth of a second, reading certificates a tenth of that; pings are answered.
    return await trio.to_thread.run_sync(prepared, abandon_on_cancel=True)
