"""What all clients share: a fake API, a server command with a tap in it, and a record of what was found."""

import os
import select
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.lab.interop.fake import Fake, running_fake
from tests.lab.interop.node import Node, install
from tests.lab.interop.server import Server
from tests.processes import environment


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "check(name): the column of the table that the test fills for its client")


@pytest.fixture(scope="session")
def fake() -> Iterator[Fake]:
    with running_fake() as running:
        yield running


@pytest.fixture(scope="session")
def make_server(fake: Fake, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Server]:
    """Return what makes servers with folders of their own, over the fake, or another that it is given."""
    if not hasattr(select, "poll"):
        pytest.skip("the tap between clients and server needs poll(), which Windows does not have")

    def make(api: Fake = fake) -> Server:
        folder = tmp_path_factory.mktemp("server")
        # What a client must hand to the server: the SDKs pass on next to nothing of their own environment.
        env = environment(folder, api.url, NO_PROXY="127.0.0.1", PYTHONPATH="")  # the package that is installed
        tap = str(Path(__file__).parent / "tap.py")
        return Server(sys.executable, [tap, str(folder), sys.executable, "-m", "responses_mcp", "--stdio"], env, folder)

    return make


@pytest.fixture
def server(make_server: Callable[[], Server], record_property: Callable[[str, object], None]) -> Iterator[Server]:
    """Give out a server command; afterwards all that was written must fit the schemas, and nothing be left running."""
    made = make_server()
    yield made
    record_property("messages", made.check())


@pytest.fixture(scope="session")
def node(fake: Fake, tmp_path_factory: pytest.TempPathFactory) -> Node:
    """Give out Node with the clients of package.json, installed into the folder that INTEROP_NODE names."""
    folder = os.environ.get("INTEROP_NODE")
    if not folder:
        pytest.skip("INTEROP_NODE names no folder to install the clients into; `nox -s lab -- interop` does")
    return install(Path(folder), fake, home=tmp_path_factory.mktemp("home"))


@pytest.fixture(autouse=True)
def checked(request: pytest.FixtureRequest, record_property: Callable[[str, object], None]) -> None:
    """Note what a test checks in the report that `tests.lab.interop.table` reads."""
    if mark := request.node.get_closest_marker("check"):
        record_property("check", mark.args[0])
