"""Responses with a page: finds the page by the request's path, renders it, and explains failures."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from dragoman.errors import AdminRefused, AdminUnreachable
from dragoman.web.dashboard import NOT_FOUND, Context, Dashboard, Page, Query
from dragoman.web.guard import OPERATOR, cookies_of
from dragoman.web.pages import PAGES

STATUS_OF: Final = {NOT_FOUND: 404, "BAD_ARGUMENT": 400, "UNKNOWN_OPERATION": 501}
ACTION_PATH: Final = "/do/"


class BadForm(Exception):
    """A form that is not accepted: the sentence for its sender, and the HTTP status."""

    code = "BAD_FORM"

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


async def show(request: Request) -> Response:
    page, key = found_page(request.scope["path"])
    if page is None:
        raise AdminRefused(NOT_FOUND, "there is no such page")
    dashboard: Dashboard = request.app.state.dashboard
    context = await page.context(dashboard, request.query_params, key)
    if page.make_once is not None:
        context |= await page.make_once(dashboard, request.query_params)
    return render(request, page.template, {**context, "address": address_of(request), "is_live": True})


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


def address_of(request: Request) -> str:
    """The path and query as requested, still percent-encoded."""
    path, query = request.scope["raw_path"].decode("latin-1"), request.scope["query_string"].decode("latin-1")
    return f"{path}?{query}" if query else path


def render(request: Request, template: str, context: Context, status: int = 200) -> Response:
    state: Any = request.state
    shared: Any = request.app.state
    notice_name = f"{shared.cookie_name}-notice"
    notice = cookies_of(request.headers).get(notice_name, "")
    whole = {
        "section": "",
        "notice": shared.signer.read_notice(notice) if notice else "",
        "is_operator": state.role == OPERATOR,
        "role": state.role,
        "is_guarded": shared.settings.is_guarded,
        "csrf_token": shared.signer.csrf_token(state.session),
        "is_live": False,
        "address": "",
        **context,
    }
    response = HTMLResponse(shared.renderer.page(template, whole), status_code=status)
    if notice:
        response.delete_cookie(notice_name, path="/", httponly=True, samesite="strict")
    return response


async def failed(request: Request, error: Exception) -> Response:
    """Respond to a request that raised one of these errors: a page that says why, or JSON for an API client's action."""
    assert isinstance(error, BadForm | AdminRefused | AdminUnreachable)
    is_action = request.scope["path"].startswith(ACTION_PATH)
    if isinstance(error, AdminUnreachable) and not is_action:
        text = "The broker does not answer. It may be starting; this page asks again."
        return render(request, "failure.html", {"title": "No answer", "text": text, "back": "/", "is_away": True}, 503)
    status, code = 503, error.code
    if isinstance(error, BadForm):
        status = error.status
    elif isinstance(error, AdminRefused):
        status, code = STATUS_OF.get(error.refusal, 409), error.refusal
    text = str(error)
    text = text[:1].upper() + text[1:] + ("" if text.endswith(".") else ".")
    if is_action and wants_json(request):
        return JSONResponse({"error": {"code": code, "message": text}}, status_code=status)
    context = {"title": "Not possible", "text": text, "back": getattr(request.state, "back", "/"), "is_away": False}
    return render(request, "failure.html", context, status)


def wants_json(request: Request) -> bool:
    return bool(request.state.is_bearer) or request.headers.get("accept", "").startswith("application/json")
