"""Access control, applied before any page handles a request.

    Host                  loopback, or a name in `web.hosts`: a foreign site cannot reach us under its own name (DNS rebinding)
    role                  operator if no tokens are set; else by session cookie or `Authorization: Bearer`
    GET                   from another site only as a followed link: its scripts and images get nothing
    POST                  operators only; `Origin`, where it is sent, must be our own; the form carries its session's CSRF token
    response              strict Content-Security-Policy: only our own files, no inline script or style, no frame

Bearer requests need no CSRF token: no browser sends that header by itself.
"""

from __future__ import annotations

import base64
import hmac
import re
import secrets
import time
from hashlib import sha256
from ipaddress import ip_address
from typing import Any, Final
from urllib.parse import quote

import msgspec
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY: Final = (
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; object-src 'none'; "
    "base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Not `no-referrer`: browsers would then send `Origin: null` with our own forms.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
OPEN_PATHS: Final = ("/login", "/livez", "/readyz")  # allowed without a role: a probe has no token
ANYBODYS_POSTS: Final = ("/login", "/logout")
PROBE_PATHS: Final = ("/metrics", "/livez", "/readyz")  # for programs, whichever site started them
MACHINE_PATHS: Final = ("/metrics", "/stream")  # answered with a status code, not with the login page
METHODS: Final = ("GET", "HEAD", "POST")
READ_ONLY: Final = "the read token sees everything and changes nothing; log in with the operator's token to do this\n"
HOST_SHAPE: Final = re.compile(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(:[0-9]{1,5})?")
SESSION_S: Final = 12 * 3600
NONCE_SIZE: Final = 16
TEXT_SIZE_MAX: Final = 1000  # of the message after an action, which is stored in a cookie

NOBODY: Final = ""
READER: Final = "reader"
OPERATOR: Final = "operator"
ROLES: Final = (READER, OPERATOR)


class WebSettings(msgspec.Struct, frozen=True):
    """What the broker sends to its web process at start. `key` signs cookies and forms for one boot of the broker; a token is empty if its role is not configured."""

    key: str
    token: str = ""
    read_token: str = ""
    hosts: tuple[str, ...] = ()
    metrics_queues_max: int = 200
    past_s: float = 3600.0
    request_s: float = 10.0

    @property
    def is_guarded(self) -> bool:
        return bool(self.token or self.read_token)


class Signer:
    """Signed values, so that the process keeps no session state: login cookies, form tokens, the message shown after an action.

    A signature is bound to the broker's boot (`settings.key`) and to its purpose, so that a value signed for one purpose is invalid for
    another. Sessions expire by wall-clock time.
    """

    def __init__(self, settings: WebSettings) -> None:
        self._settings = settings
        # The key includes the tokens: changing a token ends all sessions.
        secret = "\0".join((settings.key, settings.token, settings.read_token))
        self._key = sha256(secret.encode("utf-8", "surrogateescape")).digest()

    def role_of_token(self, token: str) -> str:
        """The role of a bearer token. Both tokens are always compared in constant time, so timing reveals nothing."""
        given = token.encode("utf-8", "surrogateescape")
        is_operator = hmac.compare_digest(given, self._settings.token.encode()) and bool(self._settings.token)
        is_reader = hmac.compare_digest(given, self._settings.read_token.encode()) and bool(self._settings.read_token)
        return OPERATOR if is_operator else READER if is_reader else NOBODY

    def new_session(self, role: str) -> str:
        """A new session cookie's value; without tokens every user is an operator and the cookie only distinguishes browsers."""
        until_s = int(time.time()) + SESSION_S
        return self._signed("session", f"{role}.{until_s}.{secrets.token_hex(NONCE_SIZE)}")

    def role_of_session(self, cookie: str) -> str:
        text = self._verified("session", cookie)
        if not text:
            return NOBODY
        role, until_s, _ = text.split(".")
        return role if role in ROLES and int(until_s) >= time.time() else NOBODY

    def csrf_token(self, cookie: str) -> str:
        """The CSRF token of this session's forms, which another site can neither read nor guess."""
        return self._signature("form", cookie)

    def is_csrf_token(self, cookie: str, token: str) -> bool:
        return hmac.compare_digest(token.encode("utf-8", "surrogateescape"), self.csrf_token(cookie).encode())

    def sign_notice(self, text: str) -> str:
        packed = base64.urlsafe_b64encode(text[:TEXT_SIZE_MAX].encode("utf-8", "surrogatepass")).decode()
        return self._signed("notice", packed)

    def read_notice(self, cookie: str) -> str:
        return base64.urlsafe_b64decode(self._verified("notice", cookie)).decode("utf-8", "replace")

    def _signed(self, purpose: str, text: str) -> str:
        return f"{text}.{self._signature(purpose, text)}"

    def _verified(self, purpose: str, signed: str) -> str:
        """The signed text; empty if the signature is wrong."""
        text, _, signature = signed.rpartition(".")
        return text if hmac.compare_digest(signature.encode(), self._signature(purpose, text).encode()) else ""

    def _signature(self, purpose: str, text: str) -> str:
        whole = f"{purpose}\0{text}".encode("utf-8", "surrogateescape")
        return hmac.new(self._key, whole, sha256).hexdigest()


class Guard:
    """Middleware around the whole app. It sets `role`, `session` and `is_bearer` in the request's state."""

    def __init__(self, app: ASGIApp, settings: WebSettings, signer: Signer, port: int) -> None:
        self._app = app
        self._settings = settings
        self._signer = signer
        # Browsers send a host's cookies to all its ports: brokers on one machine must not end each other's sessions.
        self.cookie_name = f"dragoman-{port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        state: dict[str, Any] = scope.setdefault("state", {})
        headers = Headers(scope=scope)
        is_new = self._recognise(headers, state)

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                response = MutableHeaders(scope=message)
                response.update(HEADERS)
                # Browsers revalidate static files on every request, and get them again only if they changed (ETag).
                response.setdefault("Cache-Control", "no-cache" if scope["path"].startswith("/static/") else "no-store")
                if is_new:
                    cookie = f"{self.cookie_name}={state['session']}; Path=/; HttpOnly; SameSite=Strict"
                    response.append("Set-Cookie", cookie)
            await send(message)

        await (self._refusal(scope, headers, state) or self._app)(scope, receive, send_guarded)

    def _recognise(self, headers: Headers, state: dict[str, Any]) -> bool:
        """Set the role and session of a request; return whether a new session begins, as with a browser's first request if no tokens are
        set."""
        kind, _, token = headers.get("authorization", "").partition(" ")
        state["is_bearer"] = kind.lower() == "bearer"
        session = cookies_of(headers).get(self.cookie_name, "")
        role = self._signer.role_of_session(session)
        if state["is_bearer"]:
            role, session = self._signer.role_of_token(token.strip()), ""
        is_new = not self._settings.is_guarded and not role
        if is_new:
            role, session = OPERATOR, self._signer.new_session(OPERATOR)
        state["role"], state["session"] = role, session
        return is_new and not state["is_bearer"]

    def _refusal(self, scope: Scope, headers: Headers, state: dict[str, Any]) -> Response | None:
        host, path, method = headers.get("host", ""), scope["path"], scope["method"]
        if not self._is_our_host(host):
            return PlainTextResponse("this name is not served here; web.hosts can allow it\n", 421)
        if method not in METHODS:
            return PlainTextResponse("only GET, HEAD and POST are understood\n", 405)
        if not state["role"] and path not in OPEN_PATHS and not path.startswith("/static/"):
            return login_required(scope, state)
        if method == "POST":
            origin = headers.get("origin")
            if is_foreign(headers) or (origin is not None and origin.partition("://")[2] != host):
                return PlainTextResponse("this form comes from another site\n", 403)
            if path not in ANYBODYS_POSTS and state["role"] != OPERATOR:
                return PlainTextResponse(READ_ONLY, 403)
        elif path not in PROBE_PATHS and is_foreign(headers) and headers.get("sec-fetch-mode") != "navigate":
            return PlainTextResponse("another site may link here and no more\n", 403)
        return None

    def _is_our_host(self, header: str) -> bool:
        match = HOST_SHAPE.fullmatch(header)
        if match is None:
            return False
        name = match[1].lower()
        return is_loopback(name) or name in self._settings.hosts or name.strip("[]") in self._settings.hosts


def login_required(scope: Scope, state: dict[str, Any]) -> Response:
    path: str = scope["path"]
    if state["is_bearer"] or path in MACHINE_PATHS or scope["method"] == "POST":
        text = "a token is needed: Authorization: Bearer TOKEN, or log in at /login\n"
        return PlainTextResponse(text, 401, {"WWW-Authenticate": "Bearer"})
    query = scope["query_string"].decode("latin-1")
    return RedirectResponse(f"/login?to={quote(f'{path}?{query}' if query else path, safe='')}", 303)


def is_loopback(name: str) -> bool:
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ip_address(name.strip("[]")).is_loopback
    except ValueError:
        return False


def is_foreign(headers: Headers) -> bool:
    """Whether the browser reports a request from another site; `same-site` is another port of this machine."""
    return headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none")


def cookies_of(headers: Headers) -> dict[str, str]:
    """All cookies of a request. `http.cookies` stops at the first malformed cookie, and other programs on this machine may set such ones."""
    return cookie_parser(headers.get("cookie", ""))
