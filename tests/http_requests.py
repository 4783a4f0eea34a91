"""The requests in the bytes of an HTTP connection, for upstreams that send what no library would."""

import re

LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


class Requests:
    """Takes the bytes of a connection apart into requests: head and body, which has to have a Content-Length."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._head = bytearray()
        self._whole = 0  # bytes of the request that the data begins with, once its head has come

    def feed(self, data: bytes) -> list[tuple[bytes, bytes]]:
        """Take what the socket gave and return the requests that are whole with it."""
        self._data += data
        whole: list[tuple[bytes, bytes]] = []
        while True:
            if not self._whole:
                self._head, blank_line, _ = self._data[: 64 * 1024].partition(b"\r\n\r\n")
                if not blank_line:
                    return whole
                length = LENGTH.search(self._head)
                self._whole = len(self._head) + len(blank_line) + (int(length[1]) if length else 0)
            if len(self._data) < self._whole:
                return whole
            whole.append((bytes(self._head), bytes(self._data[len(self._head) + 4 : self._whole])))
            del self._data[: self._whole]
            self._whole = 0
