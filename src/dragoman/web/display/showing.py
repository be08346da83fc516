"""Handles page requests: finds the page by its path, renders it, and explains failures."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from dragoman.errors import AdminRefused, AdminUnreachable
from dragoman.web.desk import NOT_FOUND, Context, Desk, Page, Query
from dragoman.web.guard import OPERATOR, cookies_of
from dragoman.web.pages import PAGES

STATUS_OF: Final = {NOT_FOUND: 404, "BAD_ARGUMENT": 400, "UNKNOWN_OPERATION": 501}


async def show(request: Request) -> Response:
    page, key = found_page(request.scope["path"])
    if page is None:
        return trouble(request, 404, "There is no such page.", [])
    desk: Desk = request.app.state.desk
    try:
        context = await page.make(desk, request.query_params, key)
        if page.make_once is not None:
            context |= await page.make_once(desk, request.query_params)
    except AdminRefused as refused:
        return trouble(request, STATUS_OF.get(refused.refusal, 409), sentence_of(refused), [])
    except AdminUnreachable:
        return away(request)
    return answer(request, page.template, page_context(request, page, context))


def found_page(path: str) -> tuple[Page | None, str]:
    """The page of a path and the rest of the path after its first segment; only pages about one object have a rest."""
    word, slash, key = path.removeprefix("/").partition("/")
    page = PAGES.get(word)
    if page is None or (word == "message") != bool(key) or (slash and not key):
        return None, ""
    return page, key


def split_address(address: str) -> tuple[Page | None, str, Query]:
    """As `found_page`, for a relative URL with a query; returns the query too."""
    try:
        parts = urlsplit(address)
    except ValueError:  # an IPv6 host without a closing bracket
        return None, "", {}
    if parts.scheme or parts.netloc:
        return None, "", {}
    page, key = found_page(unquote(parts.path))
    return page, key, dict(parse_qsl(parts.query, keep_blank_values=True))


def page_context(request: Request, page: Page, context: Context) -> Context:
    return {"title": page.title, "section": page.section, **context, "address": address_of(request), "is_live": True}


def address_of(request: Request) -> str:
    """The path and query as requested, still percent-encoded."""
    path, query = request.scope["raw_path"].decode("latin-1"), request.scope["query_string"].decode("latin-1")
    return f"{path}?{query}" if query else path


def answer(request: Request, template: str, context: Context, status: int = 200) -> Response:
    state: Any = request.state
    said_name = f"{request.app.state.cookie_name}-said"
    said = cookies_of(request.headers).get(said_name, "")
    whole = {
        "section": "",
        "said": request.app.state.seals.unwrap_said(said) if said else "",
        "is_operator": state.role == OPERATOR,
        "role": state.role,
        "is_guarded": request.app.state.settings.is_guarded,
        "form_seal": request.app.state.seals.form_seal(state.session),
        "is_live": False,
        "address": "",
        **context,
    }
    response = HTMLResponse(request.app.state.renderer.page(template, whole), status_code=status)
    if said:
        response.delete_cookie(said_name, path="/", httponly=True, samesite="strict")
    return response


def trouble(request: Request, status: int, words: str, lines: list[str], back: str = "/") -> Response:
    context = {"title": "Not possible", "words": words, "lines": lines, "back": back, "is_away": False}
    return answer(request, "trouble.html", context, status)


def away(request: Request) -> Response:
    words = "The broker does not answer. It may be starting; this page asks again."
    context = {"title": "No answer", "words": words, "lines": [], "back": "/", "is_away": True}
    return answer(request, "trouble.html", context, 503)


def sentence_of(error: Exception) -> str:
    text = str(error)
    return text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")
