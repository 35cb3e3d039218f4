"""The explorer's server: a page, and a session behind each of its tabs, for this machine alone.

It listens on 127.0.0.1.  Whoever calls needs a token of 256 bits, which is in the fragment of the
address and sent as a header; the names of the host and of the page that calls are checked first.
"""

from __future__ import annotations

import asyncio
import json
import re
import secrets
import socket
import struct
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from marginfold.data.tables import SUFFIXES
from marginfold.errors import InvalidInputError
from marginfold.explorer.frames import frame
from marginfold.explorer.guard import Guard
from marginfold.explorer.jobs import Job, Workers
from marginfold.explorer.session import Answer, Session, answered

MOST_UPLOAD, MOST_BODY = 200_000_000, 5_000_000
"""Bytes of a table that is sent, and of the parameters of a call."""

MOST_TABS, IDLE = 12, 6 * 3600.0
"""Tabs that have a session at once, and seconds without a call after which one is forgotten."""

STATIC = Path(__file__).parent / "static"
FILES = {"page.html": "text/html", "page.js": "text/javascript", "page.css": "text/css"}
NO_PAGE = "<!doctype html><title>marginfold</title><p>The page was not built: run make web."


class Server:
    """One explorer: ``with Server(make) as server: server.run()``; `address` is for the browser.

    ``make`` returns a session for a new tab, given the workers that all tabs share.
    """

    def __init__(self, make: Callable[[Workers], Session], port: int = 0) -> None:
        self.token = secrets.token_urlsafe(32)
        self.workers = Workers()
        self._make, self._tabs = make, dict[str, tuple[Session, float]]()
        self._jobs, self._threads = set[Job](), ThreadPoolExecutor(16)
        self._folder = tempfile.TemporaryDirectory(prefix="marginfold-")
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind(("127.0.0.1", port))
        self.port = int(self._socket.getsockname()[1])
        self.address = f"http://127.0.0.1:{self.port}/#token={self.token}"
        routes = [Route("/api/{call}", self._api, methods=["POST"]), Route("/", self._file)]
        routes += [Route(f"/{name}", self._file) for name in FILES]
        config = uvicorn.Config(
            Guard(Starlette(routes=routes), self.port, self.token),
            log_level="critical",
            lifespan="off",
            server_header=False,
            timeout_graceful_shutdown=0,
            ws="none",
        )
        self.uvicorn = uvicorn.Server(config)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        for job in list(self._jobs):
            job.cancel()
        self.workers.close()
        self._threads.shutdown(wait=True, cancel_futures=True)
        self._socket.close()
        self._folder.cleanup()

    def run(self) -> None:
        """Serve until Ctrl-C."""
        self.workers.warm()
        self.uvicorn.run(sockets=[self._socket])

    async def _file(self, request: Request) -> Response:
        name = request.url.path.lstrip("/") or "page.html"
        if not (STATIC / name).is_file():
            return HTMLResponse(NO_PAGE, 200 if name == "page.html" else 404)
        return Response((STATIC / name).read_bytes(), media_type=FILES[name])

    async def _api(self, request: Request) -> Response:
        tab, call = request.headers.get("x-marginfold-tab", ""), request.path_params["call"]
        if not re.fullmatch("[0-9a-f]{16}", tab):
            return PlainTextResponse("X-Marginfold-Tab must be 16 hexadecimal digits.", 400)
        upload = call == "open"
        content = await _body(request, MOST_UPLOAD if upload else MOST_BODY)
        if content is None:
            return PlainTextResponse("This is too large.", 413)

        def work(job: Job) -> Answer:
            session = self._session(tab)
            if not upload:
                return session.handle(call, _parameters(content), job)
            name = request.query_params.get("name", "table.csv")[:200]
            ending = next((end for end in SUFFIXES if name.lower().endswith(end)), ".csv")
            file = Path(self._folder.name) / f"{secrets.token_hex(8)}{ending}"
            try:
                file.write_bytes(content)
                return session.open_file(str(file), name, job)
            finally:
                file.unlink(missing_ok=True)

        return StreamingResponse(self._frames(work), media_type="application/octet-stream")

    async def _frames(self, work: Callable[[Job], Answer]) -> AsyncIterator[bytes]:
        """Yield progress and the answer, each with its length; who stops listening cancels."""
        loop, inbox = asyncio.get_running_loop(), asyncio.Queue[tuple[bytes, bool]]()

        def say(content: bytes, last: bool) -> None:
            loop.call_soon_threadsafe(inbox.put_nowait, (content, last))

        def tell(stage: str, done: int, total: int | None) -> None:
            say(frame("progress", {"stage": stage, "done": done, "total": total}), False)

        job, last = Job(tell), False
        self._jobs.add(job)
        try:
            self._threads.submit(lambda: say(answered(lambda: work(job)), True))
            while not last:
                content, last = await inbox.get()
                yield struct.pack("<I", len(content)) + content
        finally:
            job.cancel()
            self._jobs.discard(job)

    def _session(self, tab: str) -> Session:
        now = time.monotonic()
        known = {name: kept for name, kept in self._tabs.items() if now < kept[1] + IDLE}
        session = known.pop(tab)[0] if tab in known else self._make(self.workers)
        latest = sorted(known, key=lambda name: known[name][1])[-MOST_TABS + 1 :]
        self._tabs = {name: known[name] for name in latest} | {tab: (session, now)}
        return session


async def _body(request: Request, most: int) -> bytes | None:
    """Return what was sent, None if it is too much."""
    parts, size = [], 0
    async for part in request.stream():
        parts.append(part)
        size += len(part)
        if size > most:
            return None
    return b"".join(parts)


def _parameters(content: bytes) -> Any:
    try:
        return json.loads(content or b"{}", parse_constant=lambda name: None)
    except (ValueError, RecursionError) as error:
        raise InvalidInputError(f"the parameters are no JSON ({error}).") from None
