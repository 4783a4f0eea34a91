"""The package's log, configured for a test and put back afterwards."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from responses_mcp import debuglog
from responses_mcp.debuglog import LogHandler, configure
from responses_mcp.secrets import Redactor

ROOT = logging.getLogger("responses_mcp")


@contextmanager
def configured(
    *, debug: bool = True, debug_file: Path | str | None = None, redact: Redactor | None = None, flush: float = 5
) -> Iterator[LogHandler]:
    """Configure as the command line does; leaving the block closes the handler, which writes what is queued.

    It has `flush` seconds for that, more than in earnest, because the machine may be busy.
    """
    before = ROOT.level, ROOT.propagate
    handler = configure(
        debug=debug, debug_file=None if debug_file is None else str(debug_file), redact=redact or Redactor()
    )
    try:
        yield handler
    finally:
        with patch.object(debuglog, "FLUSH_SECONDS", flush):
            handler.close()
        ROOT.setLevel(before[0])
        ROOT.propagate = before[1]


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
