"""Reading of submitted forms: limits on size and fields, and the check of the CSRF token. And the simplest form: login with a token, where
tokens are set, and logout."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from dragoman.web.display.showing import answer, trouble
from dragoman.web.guard import SESSION_S

FORM_SIZE_MAX: Final = 64 * 1024
FIELDS_MAX: Final = 200
SEAL: Final = "seal"
WRONG_S: Final = 0.5  # delay of the response to a wrong token


class BadForm(Exception):
    """A form that is not accepted: the sentence for its sender, and the HTTP status."""

    def __init__(self, status: int, words: str) -> None:
        super().__init__(words)
        self.status, self.words = status, words


async def read_form(request: Request) -> Mapping[str, str]:
    """Read the form's fields; of a repeated field the last value counts."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > FORM_SIZE_MAX:
            raise BadForm(413, f"a form has at most {FORM_SIZE_MAX} bytes")
    try:
        pairs = parse_qsl(body.decode("ascii"), keep_blank_values=True, max_num_fields=FIELDS_MAX, errors="replace")
    except (ValueError, UnicodeDecodeError) as error:
        raise BadForm(400, "the form cannot be read") from error
    return dict(pairs)


def check_seal(request: Request, form: Mapping[str, str]) -> None:
    state: Any = request.state
    if state.is_bearer:
        return
    if not request.app.state.seals.is_form_seal(state.session, form.get(SEAL, "")):
        raise BadForm(
            403, "the form is not ours, or older than this broker's start: go back, load the page again, and repeat"
        )


def our_path(text: str) -> str:
    """The path to redirect to after an action: a local path, or the overview if the text is not one."""
    is_ours = text.startswith("/") and not text.startswith("//") and "\\" not in text and text.isprintable()
    return text if is_ours and text.isascii() else "/"


async def show_login(request: Request) -> Response:
    to = our_path(request.query_params.get("to", "/"))
    return answer(request, "login.html", {"title": "Log in", "to": to, "is_wrong": False})


async def log_in(request: Request) -> Response:
    try:
        form = await read_form(request)
    except BadForm as bad:
        return trouble(request, bad.status, bad.words, [])
    seals = request.app.state.seals
    role = seals.role_of_token(form.get("token", ""))
    to = our_path(form.get("to", "/"))
    if not role:
        await asyncio.sleep(WRONG_S)
        return answer(request, "login.html", {"title": "Log in", "to": to, "is_wrong": True}, 403)
    response = RedirectResponse(to, status_code=303)
    name = request.app.state.cookie_name
    response.set_cookie(name, seals.new_session(role), max_age=SESSION_S, path="/", httponly=True, samesite="strict")
    return response


async def log_out(request: Request) -> Response:
    try:
        check_seal(request, await read_form(request))
    except BadForm as bad:
        return trouble(request, bad.status, bad.words, [])
    response = RedirectResponse("/login", status_code=303)
    response.delete_cookie(request.app.state.cookie_name, path="/", httponly=True, samesite="strict")
    return response
