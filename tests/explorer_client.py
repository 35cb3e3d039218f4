"""Somebody who calls the explorer's server."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx

from marginfold.explorer.frames import read_frame
from marginfold.explorer.server import Server


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


def split(content: bytes) -> Iterator[tuple[str, dict, dict]]:
    """Yield the frames of an answer."""
    while content:
        (length,) = struct.unpack("<I", content[:4])
        yield read_frame(content[4 : 4 + length])
        content = content[4 + length :]


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
