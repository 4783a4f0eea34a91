"""The pages of a PDF, read by a process of its own, because the file may be hostile and the library is not Python.

Started as a script with the folder of that library and the seconds that it has. The PDF comes on stdin, JSON goes to
stdout: `{"pages": [text], "marks": [[level, title, page]]}`, with pages counted from 0, or `{"reason": why there is
nothing}`.
`MEMORY`, `MOST_PAGES` and `MOST_CHARACTERS` bound what else it takes. It knows nothing of the package.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from importlib import import_module
from itertools import islice
from typing import Any, Final

MEMORY: Final = 1024 * 1024 * 1024  # bytes
MOST_PAGES: Final = 5_000
MOST_CHARACTERS: Final = 16 * 1024 * 1024
OUT_OF_TIME, OUT_OF_MEMORY = 43, 44
"""How the process ends where it says nothing."""

_MOST_MARKS: Final = 10_000
_LIMIT_OF_A_PROCESS: Final = 0x100  # of Windows' job objects
_EXTENDED_LIMITS: Final = 9


def main() -> None:
    """Read a PDF from stdin and write what is in it to stdout."""
    threading.Thread(target=_end_in_time, daemon=True).start()
    content = sys.stdin.buffer.read()
    sys.path.append(sys.argv[1])
    try:
        library: Any = import_module("pypdfium2")
        _limit_memory()
        told = _read(library, content)
    except MemoryError:
        os._exit(OUT_OF_MEMORY)
    sys.stdout.buffer.write(json.dumps(told).encode())


def _read(library: Any, content: bytes) -> dict[str, Any]:
    try:
        document = library.PdfDocument(content)
    except library.PdfiumError as error:
        return {"reason": "needs_a_password" if "password" in str(error).lower() else "not_a_pdf"}
    if len(document) > MOST_PAGES:
        return {"reason": "too_many_pages"}
    pages: list[str] = []
    left = MOST_CHARACTERS
    for number in range(len(document)):
        try:
            page = document[number]
            text = page.get_textpage()
            if text.count_chars() > left:
                return {"reason": "unpacks_to_too_much"}
            pages.append(text.get_text_bounded())
            text.close()
            page.close()
        except library.PdfiumError:  # of this page alone
            pages.append("")
        left -= len(pages[-1])
    return {"pages": pages, "marks": list(islice(_marks(document), _MOST_MARKS))}


def _marks(document: Any) -> Iterator[tuple[int, str, int]]:
    """Yield the bookmarks that lead to a page."""
    for mark in document.get_toc():
        target = mark.get_dest()
        page = None if target is None else target.get_index()
        if page is not None:
            yield mark.level, mark.get_title(), page


def _end_in_time() -> None:
    time.sleep(float(sys.argv[2]))
    os._exit(OUT_OF_TIME)


def _limit_memory() -> None:
    if sys.platform == "win32":
        import ctypes  # noqa: PLC0415
        import struct  # noqa: PLC0415

        basic = struct.pack("<qqI4xQQI4xQII", 0, 0, _LIMIT_OF_A_PROCESS, 0, 0, 0, 0, 0, 0)
        limits = basic + bytes(48) + struct.pack("<QQQQ", MEMORY, 0, 0, 0)
        windows = ctypes.windll.kernel32
        windows.CreateJobObjectW.restype = ctypes.c_void_p
        job = ctypes.c_void_p(windows.CreateJobObjectW(None, None))
        windows.SetInformationJobObject(job, _EXTENDED_LIMITS, limits, len(limits))
        windows.AssignProcessToJobObject(job, ctypes.c_void_p(-1))
    else:
        import resource  # noqa: PLC0415  # which Windows lacks

        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # it may crash


if __name__ == "__main__":
    main()
