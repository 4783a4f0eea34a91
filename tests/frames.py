"""A client's reading of the server's output, in both framings. It shares no code with the server."""

import re


class Frames:
    """Cuts output into messages. `framed` and `lines` count them; `rest` begins one that is not complete."""

    def __init__(self) -> None:
        self.rest = b""
        self.framed = self.lines = 0

    def feed(self, data: bytes | bytearray) -> list[bytes]:
        """Return the messages that `data` completes. Raises ValueError for what is neither a frame nor a line."""
        self.rest += data
        found: list[bytes] = []
        while self.rest:
            if self.rest[:1] == b"{":
                body, end, after = self.rest.partition(b"\n")
                if not end:
                    break
                self.lines += 1
            else:
                head, end, after = self.rest.partition(b"\r\n\r\n")
                if not end and len(head) < 40:
                    break
                length = re.fullmatch(rb"Content-Length: ([0-9]+)", head)
                if length is None:
                    raise ValueError(f"no header: {head[:60]!r}")
                if len(after) < int(length[1]):
                    break
                body, after = after[: int(length[1])], after[int(length[1]) :]
                self.framed += 1
            self.rest = after
            found.append(body)
        return found
