"""Who may call the explorer's server, and what its pages may do."""

from __future__ import annotations

import secrets
from typing import Any

from starlette.responses import PlainTextResponse

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
