"""Access control: only the browser on this machine that used the token may load the page and send requests."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

__all__ = ["MOST_UPLOADED", "Guard"]

MOST_UPLOADED = 2_000_000_000  # maximum size of a dragged-in file in bytes

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

# Load nothing from other sites, and let no other site embed the page. Vue needs eval to compile its templates.
POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self' ws://127.0.0.1:*; "
    "frame-ancestors 'self'; form-action 'self'; base-uri 'self'"
)
HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"referrer-policy", b"no-referrer"),
    (b"x-content-type-options", b"nosniff"),
)
# A page, not a redirect: after a click in another program, browsers send a strict cookie only if a page navigates.
WELCOME = b'<!doctype html><html lang="en"><meta http-equiv="refresh" content="0;url=/"><title>shoal</title></html>'
REFUSED = b"shoal: access denied. Use the address that `shoal app` printed; it works once."
TOO_LARGE = b"shoal: files of at most 2 GB can be dragged in. Open a larger one by its path."


class Guard:
    """ASGI middleware that passes requests from the browser that used the token and refuses all others.

    Examples
    --------
    >>> guard = Guard(app=None, port=8000)
    >>> guard.address.startswith("http://127.0.0.1:8000/?token=")
    True
    """

    def __init__(self, app: App | Any, port: int) -> None:
        self.app = app
        self._host = f"127.0.0.1:{port}"
        self._name = f"shoal-{port}"  # cookies are shared by all ports
        self._token: str | None = secrets.token_urlsafe(32)
        self._cookie = secrets.token_urlsafe(32)

    @property
    def address(self) -> str:
        """The address that opens the page; it works once."""
        return f"http://{self._host}/?token={self._token}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass, answer or refuse a request."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif not self._is_at_home(scope):
            await _refuse(scope, receive, send)
        elif self._has_cookie(scope) and _is_too_large(scope):
            await _answer(send, 413, TOO_LARGE, b"text/plain; charset=utf-8")
        elif self._has_cookie(scope):
            await self.app(scope, receive, _with_headers(send))
        elif scope["type"] == "http" and self._takes_token(scope):
            cookie = f"{self._name}={self._cookie}; Path=/; HttpOnly; SameSite=Strict"
            await _answer(send, 200, WELCOME, b"text/html; charset=utf-8", (b"set-cookie", cookie.encode()))
        else:
            await _refuse(scope, receive, send)

    def _is_at_home(self, scope: Scope) -> bool:
        """Return True if the host is this server's numeric address and the origin, if present, is this page."""
        headers = dict(scope["headers"])
        origin = headers.get(b"origin")
        at_home = headers.get(b"host", b"").decode("latin-1") == self._host
        return at_home and (origin is None or origin.decode("latin-1") == f"http://{self._host}")

    def _has_cookie(self, scope: Scope) -> bool:
        try:
            cookies = SimpleCookie(dict(scope["headers"]).get(b"cookie", b"").decode("latin-1"))
        except CookieError:
            return False
        cookie = cookies.get(self._name)
        return cookie is not None and hmac.compare_digest(cookie.value.encode(), self._cookie.encode())

    def _takes_token(self, scope: Scope) -> bool:
        """Return whether the token of a request is valid. Tokens are single-use."""
        if self._token is None or scope["path"] != "/" or scope["method"] != "GET":
            return False
        token = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if not hmac.compare_digest(token.encode(), self._token.encode()):
            return False
        self._token = None
        return True


def _is_too_large(scope: Scope) -> bool:
    """Return True if a request exceeds the limit for a file and its form, or does not state its size."""
    if scope["type"] != "http" or scope["method"] in ("GET", "HEAD"):
        return False
    length = dict(scope["headers"]).get(b"content-length", b"")
    return not length.isdigit() or int(length) > MOST_UPLOADED + 10_000


def _with_headers(send: Send) -> Send:
    async def answer(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", []), *HEADERS]}
        await send(message)

    return answer


async def _refuse(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.close", "code": 1008})
    else:
        await _answer(send, 403, REFUSED, b"text/plain; charset=utf-8")


async def _answer(send: Send, status: int, body: bytes, kind: bytes, *headers: tuple[bytes, bytes]) -> None:
    start = [(b"content-type", kind), (b"cache-control", b"no-store"), *HEADERS, *headers]
    await send({"type": "http.response.start", "status": status, "headers": start})
    await send({"type": "http.response.body", "body": body})
