"""What waits to be written, and the one moment at which an answer counts as given.

Every entry is a whole framed message. Until the writer takes an entry it can still be withdrawn: a cancel withdraws
everything of its call, and the answer of a call withdraws the progress before it. Once taken, an entry is written
whole, and cancels for it come too late. Taking is a single step, so there is no race to lose.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from itertools import count

ENTRY_BYTES = 300  # what a waiting message costs beside its bytes, roughly; millions of short ones add up


class Outbox:
    """A queue of framed messages with removal, counting the bytes that the peer has not accepted yet."""

    def __init__(self) -> None:
        self._entries: OrderedDict[int, tuple[bytes, Callable[[], None] | None]] = OrderedDict()
        self._tickets = count()
        self._waiting_bytes = 0
        self._bytes_in_hand = 0

    @property
    def unsent_bytes(self) -> int:
        """Return the memory of what is queued, plus the bytes that the writer has taken and not yet written."""
        return self._waiting_bytes + ENTRY_BYTES * len(self._entries) + self._bytes_in_hand

    def put(self, data: bytes, on_taken: Callable[[], None] | None = None) -> int:
        """Queue one message; the ticket returned can withdraw it. `on_taken` runs in the step that takes it."""
        ticket = next(self._tickets)
        self._entries[ticket] = (data, on_taken)
        self._waiting_bytes += len(data)
        return ticket

    def withdraw(self, ticket: int) -> None:
        """Remove a message that has not been taken; one that has been taken is left alone."""
        entry = self._entries.pop(ticket, None)
        if entry is not None:
            self._waiting_bytes -= len(entry[0])

    def take(self, batch_bytes: int) -> bytes:
        """Hand over the oldest messages, as many as fit `batch_bytes` and at least one; b"" when there is none."""
        batch: list[bytes] = []
        size = 0
        while self._entries:
            ticket, (data, on_taken) = next(iter(self._entries.items()))
            if batch and size + len(data) > batch_bytes:
                break
            del self._entries[ticket]
            batch.append(data)
            size += len(data)
            if on_taken is not None:
                on_taken()
        self._waiting_bytes -= size
        self._bytes_in_hand += size
        return batch[0] if len(batch) == 1 else b"".join(batch)

    def written(self) -> None:
        """Say that all that was taken has been written."""
        self._bytes_in_hand = 0
