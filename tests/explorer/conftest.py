"""Workers and a server that all tests of the explorer share: a process is slow to begin."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from browsers import browsers, split

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


@dataclass
class Client:
    """Somebody who calls a server; each has a tab of its own."""

    url: str
    token: str
    tab: str
    http: httpx.Client

    def call(self, name: str, params: Any = None, **more: Any) -> tuple[str, dict, dict]:
        """Return kind, body and arrays of the last frame."""
        return self.frames(f"/api/{name}", json.dumps(params or {}).encode(), **more)[-1]

    def upload(self, name: str, content: bytes) -> tuple[str, dict, dict]:
        return self.frames("/api/open", content, params={"name": name})[-1]

    def frames(self, path: str, content: bytes, **more: Any) -> list[tuple[str, dict, dict]]:
        answer = self.post(path, content, **more)
        assert answer.status_code == 200, answer.text
        return list(split(answer.content))

    def post(self, path: str, content: bytes, **more: Any) -> httpx.Response:
        headers = {"X-Marginfold-Token": self.token, "X-Marginfold-Tab": self.tab}
        headers |= more.pop("headers", {})
        return self.http.post(self.url + path, content=content, headers=headers, **more)


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    with Server(Table.of(open_table("iris"))) as found:
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


class client_of:  # noqa: N801  (used like a function)
    """A new tab of a server."""

    number = 0

    def __init__(self, server: Server) -> None:
        client_of.number += 1
        url, token = server.address.split("/#token=")
        http = httpx.Client(timeout=60.0, trust_env=False)
        self.client = Client(url, token, f"{client_of.number:016x}", http)

    def __enter__(self) -> Client:
        return self.client

    def __exit__(self, *_: object) -> None:
        self.client.http.close()


@pytest.fixture(scope="module")
def launch() -> Iterator[Any]:
    """Give a function that launches browsers; the tests of one module share them."""
    with browsers() as found:
        yield found


@pytest.fixture(scope="module")
def browser(launch: Any) -> Any:
    """A browser that has WebGL2 in software."""
    return launch()
