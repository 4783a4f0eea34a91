"""What holds for every test: whatever a server writes to a client of ours fits the schema of its revision."""

import importlib.util
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def every_message_fits_its_schema() -> Iterator[None]:
    """Check all that any `McpClient` hears in the test; nothing where the official schemas are not installed."""
    if importlib.util.find_spec("mcp_types") is None:
        yield
        return
    from tests.schemas import checked_clients

    with checked_clients():
        yield
