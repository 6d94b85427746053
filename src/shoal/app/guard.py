"""Who may talk to the page: the browser that was given the address, on this machine, from the page itself."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Awaitable, Callable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

__all__ = ["MOST_UPLOADED", "Guard"]

MOST_UPLOADED = 2_000_000_000  # bytes of a file that is dragged in

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

# Nothing is loaded from elsewhere, and no other site may show the page. Vue's templates are compiled in the browser.
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
# Not a redirect: a page that the browser opens by itself sends the cookie, wherever the first address was clicked.
WELCOME = b'<!doctype html><html lang="en"><meta http-equiv="refresh" content="0;url=/"><title>shoal</title></html>'
REFUSED = b"shoal: this address is not open to you. Take the address that `shoal app` has printed; it works once."
TOO_LARGE = b"shoal: a file that is sent may have 2 GB at most. Open a larger one by its path."


class Guard:
    """Hand on to an ASGI application what comes from the browser that used the token, and refuse all else.

    Parameters
    ----------
    app
        The application.
    port
        The port of the server, a part of the only host name and origin that are answered.

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
        """The address that opens the page, once."""
        return f"http://{self._host}/?token={self._token}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
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
        """Whether the host is this machine by its number, and the origin, if one is told, this page."""
        told = dict(scope["headers"])
        origin = told.get(b"origin")
        at_home = told.get(b"host", b"").decode("latin-1") == self._host
        return at_home and (origin is None or origin.decode("latin-1") == f"http://{self._host}")

    def _has_cookie(self, scope: Scope) -> bool:
        try:
            cookies = SimpleCookie(dict(scope["headers"]).get(b"cookie", b"").decode("latin-1"))
        except CookieError:
            return False
        found = cookies.get(self._name)
        return found is not None and hmac.compare_digest(found.value.encode(), self._cookie.encode())

    def _takes_token(self, scope: Scope) -> bool:
        """Whether the token is told; it is not taken a second time."""
        if self._token is None or scope["path"] != "/" or scope["method"] != "GET":
            return False
        told = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if not hmac.compare_digest(told.encode(), self._token.encode()):
            return False
        self._token = None
        return True


def _is_too_large(scope: Scope) -> bool:
    """Whether more is sent than a file may have, or not told how much; a form around a file takes a little."""
    if scope["type"] != "http" or scope["method"] in ("GET", "HEAD"):
        return False
    told = dict(scope["headers"]).get(b"content-length", b"")
    return not told.isdigit() or int(told) > MOST_UPLOADED + 10_000


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
