"""Login with a token, where tokens are set, and logout."""

from __future__ import annotations

import asyncio
from typing import Final

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from dragoman.web.display.seals import SESSION_S
from dragoman.web.display.showing import answer, trouble
from dragoman.web.forms import BadForm, check_seal, our_path, read_form

WRONG_S: Final = 0.5  # delay of the response to a wrong token


async def show(request: Request) -> Response:
    to = our_path(request.query_params.get("to", "/"))
    return answer(request, "login.html", {"title": "Log in", "to": to, "is_wrong": False})


async def enter(request: Request) -> Response:
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


async def leave(request: Request) -> Response:
    try:
        check_seal(request, await read_form(request))
    except BadForm as bad:
        return trouble(request, bad.status, bad.words, [])
    response = RedirectResponse("/login", status_code=303)
    response.delete_cookie(request.app.state.cookie_name, path="/", httponly=True, samesite="strict")
    return response
