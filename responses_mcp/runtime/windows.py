"""What Windows is asked about the other end of a pipe."""

from __future__ import annotations

import sys

import trio

_LOOK = 2.0  # seconds between two looks at a pipe
_PIPE_LOCAL_INFORMATION = 24
_CLOSING = 4


async def wait_pipe_closed(fd: int) -> None:
    """Return when nobody holds the other end of the pipe `fd` any more; never, where that cannot be told."""
    while _state_of(fd) != _CLOSING:  # noqa: ASYNC110  # no event tells of it
        await trio.sleep(_LOOK)


def _state_of(fd: int) -> int:
    """Return the state of a pipe as `NtQueryInformationFile` has it; 0 for what is no pipe."""
    if sys.platform == "win32":
        import ctypes  # noqa: PLC0415  # 10 ms that only Windows needs
        import msvcrt  # noqa: PLC0415

        status, state = (ctypes.c_void_p * 2)(), (ctypes.c_ulong * 10)()  # of which the ninth is NamedPipeState
        try:
            handle = ctypes.c_void_p(msvcrt.get_osfhandle(fd))
        except OSError:
            return 0
        query = ctypes.windll.ntdll.NtQueryInformationFile
        if query(handle, status, state, ctypes.sizeof(state), _PIPE_LOCAL_INFORMATION) == 0:
            return state[8]
    return 0
