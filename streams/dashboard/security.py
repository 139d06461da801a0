"""Who may ask the web pages for what: which names they answer to, who may change something, and what a browser may do.

A page of somebody else must not reach a worker through its visitor's browser: not under a name that leads here (DNS
rebinding), not by a form (a body must be JSON, which no form sends), and not in a frame.
"""

from __future__ import annotations

import hmac
import socket
from collections.abc import Awaitable, Callable
from enum import Enum
from ipaddress import ip_address
from typing import Any, TypeVar
from urllib.parse import urlsplit

import structlog
from aiohttp import web

from adatkg_core.errors import AdatkgError, InputError, without_credentials
from streams.client import NoAnswer
from streams.dashboard.http import Problem, as_json
from streams.settings import StreamSettings

OPEN = frozenset(("/health", "/ready", "/metrics"))  # for machines, which come under any name
WILDCARDS = frozenset(("", "0.0.0.0", "::", "[::]"))
HEADERS = {
    # Plotly writes styles into elements, and shows images of its own making; it needs no eval for what we draw.
    "Content-Security-Policy": (
        "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; object-src 'none'; "
        "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Method = TypeVar("Method", bound=Callable[..., Awaitable[web.StreamResponse]])


class Access(Enum):
    """Who may call a route."""

    OPEN = "anyone, under any name, also from other sites"
    NAMES = "anyone who asks under one of the worker's names, from no other site"
    TOKEN = "who knows `web_token`, under one of the worker's names, from no other site"


log = structlog.get_logger()


class Security:
    """The rules of one worker's settings."""

    def __init__(self, settings: StreamSettings) -> None:
        self._token = settings.web_token.encode()
        # A wildcard leads here by every address of the machine. A page elsewhere can make its name lead here too, but
        # it cannot make an address of its name.
        self._any_address = settings.web_host in WILDCARDS and not settings.web_names
        own = f"[{settings.web_host}]" if ":" in settings.web_host else settings.web_host
        names = ("localhost", "127.0.0.1", "[::1]", socket.gethostname(), own, *settings.web_names)
        self._names = {name.lower() for name in names} - WILDCARDS

    def authorize(self, request: web.Request) -> None:
        """Let those pass who know the token."""
        if not self._token:
            raise Problem(
                403,
                "changes from the web page are switched off: set ADATKG_STREAM_WEB_TOKEN for the worker and start it "
                "anew, or use `adatkg models` and `adatkg deadletters`",
            )
        kind, _, given = request.headers.get("Authorization", "").partition(" ")
        if kind.lower() != "bearer" or not hmac.compare_digest(given.strip().encode(), self._token):
            raise Problem(401, "token missing or wrong: give the worker's web_token as `Authorization: Bearer TOKEN`")

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Check where a request comes from, and turn what goes wrong into an answer."""
        if request.path in OPEN:
            return await handler(request)
        try:
            self._check_origin(request)
            if request.method == "POST" and request.content_type != "application/json":
                raise Problem(400, f"body of {request.content_type}: send JSON with `Content-Type: application/json`")
            if access_of(request.match_info.handler, request.path) is Access.TOKEN:
                self.authorize(request)
            response = await handler(request)
        except Exception as error:
            response = _answer_to(request, error)
        if not response.prepared:
            response.headers.update(HEADERS)
        return response

    def _check_origin(self, request: web.Request) -> None:
        host = request.headers.get("Host", "")
        name = _name_of(host)
        if name not in self._names and not (self._any_address and _is_address(name)):
            known = ", ".join(sorted(self._names))
            raise Problem(403, f"Host {host!r}: this worker answers to {known}; add the name to the setting web_names")
        origin = request.headers.get("Origin")
        if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
            raise Problem(403, f"Origin {origin!r}: another site's page may not ask this worker ({host})")


def needs_token(handler: Method) -> Method:
    """Declare that a route changes something: only who knows the token may call it."""
    handler.needs_token = True  # type: ignore[attr-defined]
    return handler


def access_of(handler: Any, path: str) -> Access:
    """Who may call a route, by its declaration."""
    if path in OPEN:
        return Access.OPEN
    return Access.TOKEN if getattr(handler, "needs_token", False) else Access.NAMES


def _is_address(name: str) -> bool:
    try:
        ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return False
    return True


def _name_of(host: str) -> str:
    """A Host header without its port."""
    name, colon, port = host.rpartition(":")
    return (name if colon and port.isdecimal() else host).lower().rstrip(".")


def _answer_to(request: web.Request, error: Exception) -> web.Response:
    status, text = 500, f"{request.method} {request.path}: it failed here; see the worker's log"
    if isinstance(error, Problem):
        status, text = error.status, error.text
    elif isinstance(error, InputError):
        status, text = 400, str(error)
    elif isinstance(error, NoAnswer):
        status, text = 504, str(error)
    elif isinstance(error, AdatkgError):
        status, text = 502, str(error)
    elif isinstance(error, web.HTTPRequestEntityTooLarge):
        status, text = 400, f"{request.path}: the body is too large; nothing here takes more than a few lines"
    elif isinstance(error, web.HTTPException):
        status, text = error.status, f"{request.method} {request.path}: {error.reason}; see the paths in the docs"
    else:
        log.error("web_failed", path=request.path, problem=repr(error))
    answer = as_json({"error": without_credentials(text)}, status)
    if status == 401:
        answer.headers["WWW-Authenticate"] = "Bearer"
    return answer
