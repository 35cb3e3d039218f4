"""Workers and a server that all tests of the explorer share: a process is slow to begin."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest
from browsers import browsers
from explorer_client import Client, client_of

from marginfold.explorer import Session, Table, open_table
from marginfold.explorer.jobs import Workers
from marginfold.explorer.server import Server


@pytest.fixture(scope="session")
def workers() -> Iterator[Workers]:
    with Workers(2) as found:
        found.warm()
        yield found


@pytest.fixture
def wine(workers: Workers) -> Session:
    return Session(Table.of(open_table("wine")), workers=workers)


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    with Server(lambda: Table.of(open_table("iris"))) as found:
        thread = threading.Thread(target=found.run)
        thread.start()
        yield found
        found.stop()
        thread.join(10)
        assert not thread.is_alive()


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    with client_of(server) as found:
        yield found


@pytest.fixture(scope="module")
def launch() -> Iterator[Any]:
    """Give a function that launches browsers; the tests of one module share them."""
    with browsers() as found:
        yield found


@pytest.fixture(scope="module")
def browser(launch: Any) -> Any:
    """A browser that has WebGL2 in software."""
    return launch()
