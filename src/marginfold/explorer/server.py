"""The explorer's server: a page, and a session behind each of its tabs, for this machine alone.

It listens on 127.0.0.1; who may call is decided by `marginfold.explorer.guard`.
"""

from __future__ import annotations

import re
import secrets
import socket
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from marginfold.explorer.answers import Answer
from marginfold.explorer.calls import MOST_BYTES, parsed
from marginfold.explorer.guard import Guard
from marginfold.explorer.jobs import Job, Workers
from marginfold.explorer.opening import Opening, Read
from marginfold.explorer.streams import Streams
from marginfold.explorer.tabs import Tabs

if TYPE_CHECKING:
    from marginfold.explorer.session import Session

MOST_BODY = 5_000_000
"""Bytes of the parameters of a call; a table that is sent may have `MOST_BYTES`."""

TOLD = 1.0
"""Seconds in which pages are told why there is no table, before the server ends."""

STATIC = Path(__file__).parent / "static"
FILES = {"page.html": "text/html", "page.js": "text/javascript", "page.css": "text/css"}
NO_PAGE = "<!doctype html><title>marginfold</title><p>The page was not built: run make web."


class Server:
    """One explorer: ``with Server(read) as server: server.run()``; `address` is for the browser.

    Parameters
    ----------
    read : callable
        Returns the table that new tabs look at, or None; called by `run`, while pages come up.
    port : int, default=0
        Any that is free by default.
    """

    def __init__(self, read: Read = lambda: None, port: int = 0) -> None:
        self.workers, self._read = Workers(), read
        self._tabs: Tabs | None = None
        self._streams = Streams()
        tcp = socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP  # known as such: no delay
        self._socket = socket.socket(*tcp)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind(("127.0.0.1", port))
        self._socket.listen()  # a browser that comes before `run` waits
        self.port, token = int(self._socket.getsockname()[1]), secrets.token_urlsafe(32)
        self.address = f"http://127.0.0.1:{self.port}/#token={token}"
        routes = [Route("/api/{call}", self._api, methods=["POST"])]
        routes += [Route(path, self._file) for path in ("/", *(f"/{name}" for name in FILES))]
        app = Starlette(routes=routes)
        app.router.redirect_slashes = False
        config = uvicorn.Config(
            Guard(app, self.port, token),
            log_level="critical",
            lifespan="off",
            server_header=False,
            timeout_graceful_shutdown=0,
            ws="none",
        )
        self._uvicorn = uvicorn.Server(config)
        self._folder = tempfile.TemporaryDirectory(prefix="marginfold-")

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self._streams.cancel()
        self.workers.close()
        self._streams.close()
        self._socket.close()
        self._folder.cleanup()

    def run(self) -> None:
        """Serve until `stop` or Ctrl-C; a table that cannot be read is an error."""
        opening = Opening(self._read, lambda: threading.Timer(TOLD, self.stop).start())
        self._tabs = Tabs(lambda job: opening.session(self.workers, job))
        self.workers.warm()
        self._uvicorn.run(sockets=[self._socket])
        if opening.error is not None:
            raise opening.error

    def stop(self) -> None:
        """End `run`, from any thread."""
        self._uvicorn.should_exit = True

    async def _file(self, request: Request) -> Response:
        name = request.url.path.lstrip("/") or "page.html"
        if not (STATIC / name).is_file():
            return HTMLResponse(NO_PAGE, 200 if name == "page.html" else 404)
        return Response((STATIC / name).read_bytes(), media_type=FILES[name])

    async def _api(self, request: Request) -> Response:
        tab, call = request.headers.get("x-marginfold-tab", ""), request.path_params["call"]
        if not re.fullmatch("[0-9a-f]{16}", tab):
            return PlainTextResponse("X-Marginfold-Tab must be 16 hexadecimal digits.", 400)
        content = await _body(request, MOST_BYTES if call == "open" else MOST_BODY)
        if content is None:
            return PlainTextResponse("This is too large.", 413)
        name = request.query_params.get("name", "table.csv")[:200]

        def work(job: Job) -> Answer:
            assert self._tabs is not None  # nobody calls before `run`
            session = self._tabs.session(tab, job)
            if call == "open":
                return self._open(session, name, content, job)
            return session.handle(call, parsed(content), job)

        return StreamingResponse(self._streams.frames(work), media_type="application/octet-stream")

    def _open(self, session: Session, name: str, content: bytes, job: Job) -> Answer:
        """Open a table that was sent: a file under a name of ours, there while it is read."""
        from marginfold.data.tables import SUFFIXES

        ending = next((end for end in SUFFIXES if name.lower().endswith(end)), ".csv")
        file = Path(self._folder.name) / f"{secrets.token_hex(8)}{ending}"
        try:
            file.write_bytes(content)
            return session.open_file(str(file), name, job)
        finally:
            file.unlink(missing_ok=True)


async def _body(request: Request, most: int) -> bytes | None:
    """Return what was sent, None if it is too much."""
    content = bytearray()
    async for part in request.stream():
        content += part
        if len(content) > most:
            return None
    return bytes(content)
