"""The explorer's server: a page, and a session behind each of its tabs, for this machine alone.

It listens on 127.0.0.1; who may call is decided by `Guard`.  The table is read while its page comes
up: a browser needs a second for a page, Python three for pandas and scikit-learn.  Calls are
answered by streams of frames: progress, then the answer.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import socket
import struct
import tempfile
import threading
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from marginfold.errors import CancelledError
from marginfold.explorer.calls import MOST_BYTES, parsed
from marginfold.explorer.frames import Answer, answered, frame
from marginfold.explorer.jobs import TICK, Job, Workers

if TYPE_CHECKING:
    from marginfold.explorer.session import Session
    from marginfold.explorer.table import Table

MOST_BODY = 5_000_000
"""Bytes of the parameters of a call; a table that is sent may have `MOST_BYTES`."""

TOLD = 1.0
"""Seconds in which pages are told why there is no table, before the server ends."""

STATIC = Path(__file__).parent / "static"
FILES = {"page.html": "text/html", "page.js": "text/javascript", "page.css": "text/css"}
NO_PAGE = "<!doctype html><title>marginfold</title><p>The page was not built: run make web."

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "connect-src 'self'; img-src 'self' data: blob:; frame-ancestors 'none'; base-uri 'none'; "
    "form-action 'none'; require-trusted-types-for 'script'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
"""Sent with every answer: a page runs its own files, talks to its own host, and is in no frame."""

ENCODED = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]

WRONG_PLACE = "This server answers its own page only; open the address that the command printed."
WRONG_TOKEN = "The token is missing or wrong; open the address that the command printed."

Read = Callable[[], "Table | None"]
"""Returns the table that is looked at, or none."""

MOST_TABS, IDLE = 12, 6 * 3600.0
"""Tabs that have a session at once, and seconds without a call after which one is forgotten."""

THREADS = 16
"""Calls that are answered at once; fits among them wait for a worker."""


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


class Guard:
    """An ASGI application around another, which sees nothing that is not meant for it.

    The host must be one of the names of this machine: a page of another name that resolves to it is
    refused before anything else.  Then the page that calls, where a browser names it, must be ours;
    nothing is ever allowed to others (CORS).  Calls need the token.
    """

    def __init__(self, app: Any, port: int, token: str) -> None:
        self._app, self._token = app, token.encode()
        self._hosts = {f"{name}:{port}".encode() for name in ("127.0.0.1", "localhost")}
        self._pages = {b"http://" + host for host in self._hosts}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request, or refuse it."""

        async def send_guarded(message: Any) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", []), *ENCODED]
            await send(message)

        refusal = self._refusal(scope["path"], scope["headers"])
        app = PlainTextResponse(refusal, 403) if refusal else self._app
        await app(scope, receive, send_guarded)

    def _refusal(self, path: str, headers: list[tuple[bytes, bytes]]) -> str:
        """Return why a request is refused, or nothing."""

        def given(name: bytes) -> list[bytes]:
            return [value for key, value in headers if key == name]

        hosts, pages, tokens = given(b"host"), given(b"origin"), given(b"x-marginfold-token")
        if len(hosts) != 1 or hosts[0] not in self._hosts:
            return WRONG_PLACE
        if any(page not in self._pages for page in pages):
            return WRONG_PLACE
        if not path.startswith("/api/"):
            return ""
        right = len(tokens) == 1 and secrets.compare_digest(tokens[0], self._token)
        return "" if right else WRONG_TOKEN


class Opening:
    """The reading of a table, in a thread that nobody needs to wait for.

    Parameters
    ----------
    read : callable
        Returns a table or None; its error is the answer to every call.
    failed : callable, optional
        Called if there was one.

    Examples
    --------
    >>> from marginfold.explorer import Table, open_table
    >>> from marginfold.explorer.jobs import Job, Workers
    >>> from marginfold.explorer.server import Opening
    >>> opening = Opening(lambda: Table.of(open_table("iris")))
    >>> with Workers() as workers:
    ...     opening.session(workers, Job()).table.target
    'label'
    """

    def __init__(self, read: Read, failed: Callable[[], object] = lambda: None) -> None:
        self._table: Future[Table | None] = Future()
        self._failed = failed
        self._done = threading.Event()
        threading.Thread(target=self._run, args=(read,), daemon=True).start()

    @property
    def error(self) -> BaseException | None:
        """Why there is no table; None while it is read."""
        return self._table.exception() if self._table.done() else None

    def session(self, workers: Workers, job: Job) -> Session:
        """Return a new session of the table when it is there."""
        while not self._done.wait(TICK):
            if job.cancelled:
                raise CancelledError("cancelled before the table was read.")
        from marginfold.explorer.session import Session

        return Session(self._table.result(), workers=workers)

    def _run(self, read: Read) -> None:
        try:
            import marginfold.explorer.session  # noqa: F401  (what every call needs)

            self._table.set_result(read())
        except BaseException as error:
            self._table.set_exception(error)
            self._failed()
        finally:
            self._done.set()


class Tabs:
    """The sessions of tabs that were heard of lately.

    Parameters
    ----------
    make : callable
        Returns the session of a new tab for the job that asks for it first.

    Examples
    --------
    >>> from marginfold.explorer import Session
    >>> from marginfold.explorer.jobs import Job
    >>> from marginfold.explorer.server import Tabs
    >>> tabs = Tabs(lambda job: Session())
    >>> first = tabs.session("first", Job())
    >>> first is tabs.session("first", Job()), first is tabs.session("second", Job())
    (True, False)
    """

    def __init__(self, make: Callable[[Job], Session]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._kept: dict[str, tuple[Session, float]] = {}

    def session(self, tab: str, job: Job) -> Session:
        """Return the session of a tab; forget those that were not heard of for long."""
        now = time.monotonic()
        with self._lock:
            known = {name: kept for name, kept in self._kept.items() if now < kept[1] + IDLE}
            session = known.pop(tab)[0] if tab in known else self._make(job)
            latest = sorted(known, key=lambda name: known[name][1])[1 - MOST_TABS :]
            self._kept = {name: known[name] for name in latest} | {tab: (session, now)}
            return session


class Streams:
    """Calls in progress, each in a thread, each listened to by one stream."""

    def __init__(self) -> None:
        self._jobs: set[Job] = set()
        self._threads = ThreadPoolExecutor(THREADS)

    async def frames(self, work: Callable[[Job], Answer]) -> AsyncIterator[bytes]:
        """Yield progress and the answer, each with its length; who stops listening cancels."""
        loop = asyncio.get_running_loop()
        inbox: asyncio.Queue[tuple[bytes, bool]] = asyncio.Queue()

        def say(content: bytes, last: bool) -> None:
            if not loop.is_closed():
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

    def cancel(self) -> None:
        """Cancel whatever runs."""
        for job in list(self._jobs):
            job.cancel()

    def close(self) -> None:
        """Wait until what was cancelled has ended."""
        self._threads.shutdown(wait=True, cancel_futures=True)
