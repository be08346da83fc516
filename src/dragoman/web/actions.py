"""The forms that the pages submit: operator actions, login and logout.

Actions that cannot be undone ask for confirmation first, with a message count where there is one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from dragoman.errors import AdminRefused
from dragoman.web.dashboard import NOT_FOUND, Dashboard
from dragoman.web.formatting import count, joined, plural
from dragoman.web.guard import SESSION_S
from dragoman.web.pages.quarantine import FILTER_KEYS, filter_arguments
from dragoman.web.pages.queues import one_queue
from dragoman.web.responses import BadForm, render, wants_json

FORM_SIZE_MAX: Final = 64 * 1024
FIELDS_MAX: Final = 200
CSRF_TOKEN: Final = "csrf_token"
WRONG_S: Final = 0.5  # delay of the response to a wrong token
NOTICE_S: Final = 60

Fields = Mapping[str, str]
Arguments = dict[str, Any]


async def queue_values(dashboard: Dashboard, fields: Fields) -> Fields:
    queue = await one_queue(dashboard, fields["queue"])
    number = queue["waiting"] + (queue["delayed"] if fields.get("delayed") == "1" else 0)
    return {"messages": plural(number, "message"), "leased": count(queue["leased"])}


async def message_values(dashboard: Dashboard, fields: Fields) -> Fields:
    message = await dashboard.link.ask("message", id=fields["id"])
    return {**message, "lease": f" {message['worker']} loses its lease." if message["worker"] else ""}


async def worker_values(dashboard: Dashboard, fields: Fields) -> Fields:
    worker = await dashboard.link.ask("worker", worker=fields["worker"])
    name = f"{worker['id']} ({worker['name'] or worker['remote']})"
    return {"worker": name, "messages": plural(worker["leased"], "message")}


async def quarantine_values(dashboard: Dashboard, fields: Fields) -> Fields:
    arguments = quarantine_arguments(fields)
    if "ids" in arguments:
        number, which = len(arguments["ids"]), "by id"
    else:
        number = (await dashboard.link.ask("quarantine_list", limit=0, **filter_arguments(fields)))["total"]
        chosen = [f"{name} {fields[name]}" for name in FILTER_KEYS if fields.get(name)]
        which = f"with {joined(chosen)}" if chosen else "all there are"
    return {"quarantined": plural(number, "quarantined message"), "messages": plural(number, "message"), "which": which}


def quarantine_arguments(fields: Fields) -> Arguments:
    """Select quarantined messages by ids, by a filter, or all of them if the form has `all=1`."""
    ids = fields.get("ids", "").split()
    if ids:
        return {"ids": ids}
    chosen = filter_arguments(fields)
    if chosen:
        return chosen
    if fields.get("all") == "1":
        return {"all": True}
    raise BadForm(400, "say which messages: by a filter, or all of them")


@dataclass(frozen=True, slots=True)
class Action:
    """One operator action. Its texts name form fields in braces; the question and its button also name `values`, and the notice that is shown
    after success the messages that the broker counted, under the key `counted` of its result."""

    notice: str
    subject: str = ""  # the form field that it needs
    question: str = ""  # empty: there is none
    button: str = ""
    values: Callable[[Dashboard, Fields], Awaitable[Fields]] | None = None
    arguments: Callable[[Fields], Arguments] | None = None  # of the broker; None: the subject
    counted: str = ""

    def arguments_of(self, fields: Fields) -> Arguments:
        if self.subject and not fields.get(self.subject):
            raise BadForm(400, f"the form lacks {self.subject}")
        return self.arguments(fields) if self.arguments is not None else {self.subject: fields[self.subject]}


ACTIONS: Final[dict[str, Action]] = {
    "pause": Action("{queue} is paused: it takes messages and gives none out.", "queue"),
    "resume": Action("{queue} goes on.", "queue"),
    "drain_queue": Action(
        "{queue} is draining: it accepts nothing new.",
        "queue",
        "Drain {queue}? New messages are refused; waiting ones still go to workers. Resume ends it.",
        "Drain the queue",
    ),
    "purge": Action(
        "{messages} of {queue} cancelled.",
        "queue",
        "Cancel {messages} that wait in {queue}? Their clients are notified that there will be no reply. "
        "The {leased} that are leased to workers go on.",
        "Purge {messages}",
        queue_values,
        lambda fields: {"queue": fields["queue"], "delayed": fields.get("delayed") == "1"},
        "purged",
    ),
    "cancel": Action(
        "Message {id} is cancelled.",
        "id",
        "Cancel message {id} of {queue}? It is {state}.{lease}",
        "Cancel the message",
        message_values,
    ),
    "retry": Action("Message {id} is tried again.", "id"),
    "dismiss": Action(
        "{worker} is dismissed: it gets nothing new.",
        "worker",
        "Dismiss {worker}? It gets nothing new until it is admitted or restarted. "
        "It may still reply to the {messages} that it leases.",
        "Dismiss the worker",
        worker_values,
    ),
    "admit": Action("{worker} is admitted.", "worker"),
    "disconnect": Action(
        "{worker} is disconnected.",
        "worker",
        "End the connection of {worker} now? The {messages} it leases go back to their queues. It may connect again.",
        "Disconnect the worker",
        worker_values,
    ),
    "unschedule": Action(
        "Schedule {id} is removed.",
        "id",
        "Remove schedule {id}? Messages it has already made go on.",
        "Remove the schedule",
    ),
    "quarantine_retry": Action(
        "{messages} tried again.",
        "",
        "Retry {quarantined} ({which})?",
        "Retry {messages}",
        quarantine_values,
        quarantine_arguments,
        "retried",
    ),
    "quarantine_drop": Action(
        "{messages} dropped.",
        "",
        "Drop {quarantined} ({which})?",
        "Drop {messages}",
        quarantine_values,
        quarantine_arguments,
        "dropped",
    ),
}


def found_action(request: Request) -> tuple[str, Action]:
    name = request.path_params["name"]
    if name not in ACTIONS:
        raise AdminRefused(NOT_FOUND, "there is no such action")
    return name, ACTIONS[name]


async def confirm(request: Request) -> Response:
    """Show the confirmation page of an action. It changes nothing, so GET is safe."""
    name, action = found_action(request)
    if not action.question:
        raise AdminRefused(NOT_FOUND, "there is no such action")
    fields = dict(request.query_params)
    back = request.state.back = our_path(fields.pop("back", "/"))
    action.arguments_of(fields)
    values = await action.values(request.app.state.dashboard, fields) if action.values is not None else {}
    question, button = (text.format_map({**fields, **values}) for text in (action.question, action.button))
    context = {"title": "Sure?", "name": name, "question": question, "button": button, "fields": fields, "back": back}
    return render(request, "confirm.html", context)


async def do(request: Request) -> Response:
    """Run an action, then redirect to the page that the form came from; API clients get JSON."""
    name, action = found_action(request)
    shared: Any = request.app.state
    form = await read_form(request)
    check_csrf_token(request, form)
    # The action's arguments are in the form's URL because a form field would normalise their line ends.
    fields = {key: value for key, value in {**form, **request.query_params}.items() if key not in (CSRF_TOKEN, "back")}
    back = request.state.back = our_path(form.get("back", "/"))
    result = await shared.dashboard.link.change(name, **action.arguments_of(fields))
    shared.dashboard.sampler.outdate()
    messages = plural(result[action.counted], "message") if action.counted else ""
    notice = action.notice.format_map({**fields, "messages": messages})
    if wants_json(request):
        return JSONResponse({"said": notice, "result": result})
    response = RedirectResponse(back, status_code=303)
    cookie, value = f"{shared.cookie_name}-notice", shared.signer.sign_notice(notice)
    response.set_cookie(cookie, value, max_age=NOTICE_S, path="/", httponly=True, samesite="strict")
    return response


async def read_form(request: Request) -> Fields:
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


def check_csrf_token(request: Request, form: Fields) -> None:
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
