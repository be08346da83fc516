"""Reading of submitted forms: limits on size and fields, and the check of the CSRF token. And the simplest form: login with a token, where
tokens are set, and logout."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from dragoman.web.guard import SESSION_S
from dragoman.web.responses import BadForm, render

FORM_SIZE_MAX: Final = 64 * 1024
FIELDS_MAX: Final = 200
CSRF_TOKEN: Final = "csrf_token"
WRONG_S: Final = 0.5  # delay of the response to a wrong token


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


def check_csrf_token(request: Request, form: Mapping[str, str]) -> None:
    state: Any = request.state
    if not state.is_bearer and not request.app.state.signer.is_csrf_token(state.session, form.get(CSRF_TOKEN, "")):
        text = "the form is not ours, or older than this broker's start: go back, load the page again, and repeat"
        raise BadForm(403, text)


def our_path(text: str) -> str:
    """The path to redirect to after an action: a local path, or the overview if the text is not one."""
    is_ours = text.startswith("/") and not text.startswith("//") and "\\" not in text and text.isprintable()
    return text if is_ours and text.isascii() else "/"


async def show_login(request: Request) -> Response:
    to = our_path(request.query_params.get("to", "/"))
    return render(request, "login.html", {"title": "Log in", "to": to, "is_wrong": False})


async def log_in(request: Request) -> Response:
    form = await read_form(request)
    signer = request.app.state.signer
    role = signer.role_of_token(form.get("token", ""))
    to = our_path(form.get("to", "/"))
    if not role:
        await asyncio.sleep(WRONG_S)
        return render(request, "login.html", {"title": "Log in", "to": to, "is_wrong": True}, 403)
    response = RedirectResponse(to, status_code=303)
    name = request.app.state.cookie_name
    response.set_cookie(name, signer.new_session(role), max_age=SESSION_S, path="/", httponly=True, samesite="strict")
    return response


async def log_out(request: Request) -> Response:
    check_csrf_token(request, await read_form(request))
    response = RedirectResponse("/login", status_code=303)
    response.delete_cookie(request.app.state.cookie_name, path="/", httponly=True, samesite="strict")
    return response
