"""The package's log, configured for a test and put back afterwards."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest.mock import patch

from responses_mcp import logs
from responses_mcp.logs import configure
from responses_mcp.secrets import Redactor


@contextmanager
def configured(
    *, debug: bool = True, debug_file: Path | str | None = None, redact: Redactor | None = None, flush: float = 5
) -> Iterator[ExitStack]:
    """Configure as the command line does; leaving the block closes the log, which writes what is queued.

    It has `flush` seconds for that, more than in earnest, because the machine may be busy.
    """
    closing = configure(
        debug=debug, debug_file=None if debug_file is None else str(debug_file), redact=redact or Redactor()
    )
    try:
        yield closing
    finally:
        with patch.object(logs, "FLUSH_SECONDS", flush):
            closing.close()


@contextmanager
def stderr_as(descriptor: int) -> Iterator[None]:
    """Point descriptor 2 elsewhere for a while."""
    saved = os.dup(2)
    os.dup2(descriptor, 2)
    try:
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
