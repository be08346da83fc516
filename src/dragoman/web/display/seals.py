"""Signed values, so that the process keeps no session state: login cookies, form tokens, the message shown after an action.

A signature is bound to the broker's boot (`settings.key`) and to its purpose, so that a value signed for one purpose is invalid for another.
"""

from __future__ import annotations

import base64
import hmac
import secrets
import time
from collections.abc import Callable
from hashlib import sha256
from typing import Final

from dragoman.web.settings import WebSettings

SESSION_S: Final = 12 * 3600
NONCE_SIZE: Final = 16
TEXT_SIZE_MAX: Final = 1000  # of the message after an action, which is stored in a cookie

NOBODY: Final = ""
READER: Final = "reader"
OPERATOR: Final = "operator"
ROLES: Final = (READER, OPERATOR)


class Seals:
    """Creates and verifies signatures. `now_s` is wall-clock time; sessions expire by it."""

    def __init__(self, settings: WebSettings, now_s: Callable[[], float] = time.time) -> None:
        self._settings = settings
        self._now_s = now_s
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
        until_s = int(self._now_s()) + SESSION_S
        text = f"{role}.{until_s}.{secrets.token_hex(NONCE_SIZE)}"
        return f"{text}.{self._seal('session', text)}"

    def role_of_session(self, cookie: str) -> str:
        text, _, seal = cookie.rpartition(".")
        if not text or not hmac.compare_digest(seal.encode(), self._seal("session", text).encode()):
            return NOBODY
        role, until_s, _ = text.split(".")
        if role not in ROLES or int(until_s) < self._now_s():
            return NOBODY
        return role

    def form_seal(self, cookie: str) -> str:
        """The CSRF token of this session's forms, which another site can neither read nor guess."""
        return self._seal("form", cookie)

    def is_form_seal(self, cookie: str, seal: str) -> bool:
        return hmac.compare_digest(seal.encode("utf-8", "surrogateescape"), self.form_seal(cookie).encode())

    def wrap_said(self, text: str) -> str:
        packed = base64.urlsafe_b64encode(text[:TEXT_SIZE_MAX].encode("utf-8", "surrogatepass")).decode()
        return f"{packed}.{self._seal('said', packed)}"

    def unwrap_said(self, cookie: str) -> str:
        packed, _, seal = cookie.rpartition(".")
        if not packed or not hmac.compare_digest(seal.encode(), self._seal("said", packed).encode()):
            return ""
        return base64.urlsafe_b64decode(packed).decode("utf-8", "replace")

    def _seal(self, purpose: str, text: str) -> str:
        whole = f"{purpose}\0{text}".encode("utf-8", "surrogateescape")
        return hmac.new(self._key, whole, sha256).hexdigest()
