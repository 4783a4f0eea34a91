"""Room for answers that the client has not read yet."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Protocol


class Room(Protocol):
    """The bytes that may still wait for the client."""

    async def wait(self) -> None:
        """Return when there is any."""
        ...

    def reserve(self, size: int) -> AbstractAsyncContextManager[None]:
        """Wait for `size` bytes, in order of arrival, and keep them until the end of the block."""
        ...
