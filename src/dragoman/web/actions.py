"""The table of operator actions. Actions that cannot be undone ask for confirmation first, with a message count where there is one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from dragoman.errors import AdminRefused, AdminUnreachable
from dragoman.web.desk import Desk
from dragoman.web.display.showing import STATUS_OF, answer, away, sentence_of, trouble
from dragoman.web.display.words import count, joined, plural
from dragoman.web.forms import SEAL, BadForm, check_seal, our_path, read_form
from dragoman.web.pages.quarantine import FILTER_KEYS, filter_of
from dragoman.web.pages.queues import one_queue

SAID_S: Final = 60

Fields = Mapping[str, str]
Arguments = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Action:
    """One operator action. `ask` returns the confirmation question and its button's label; `said` returns the sentence shown after success."""

    arguments: Callable[[Fields], Arguments]
    said: Callable[[Fields, Arguments], str]
    ask: Callable[[Desk, Fields], Awaitable[tuple[str, str]]] | None = None


def only(*names: str) -> Callable[[Fields], Arguments]:
    """Build a function that picks the named form fields unchanged; each must be present and not empty."""

    def pick(fields: Fields) -> Arguments:
        missing = [name for name in names if not fields.get(name)]
        if missing:
            raise BadForm(400, f"the form lacks {joined(missing)}")
        return {name: fields[name] for name in names}

    return pick


def purge_arguments(fields: Fields) -> Arguments:
    return {**only("queue")(fields), "delayed": fields.get("delayed") == "1"}


def quarantine_arguments(fields: Fields) -> Arguments:
    """Select quarantined messages by ids, by a filter, or all of them if the form has `all=1`."""
    ids = fields.get("ids", "").split()
    if ids:
        return {"ids": ids}
    chosen = filter_of(fields)
    if chosen:
        return chosen
    if fields.get("all") == "1":
        return {"all": True}
    raise BadForm(400, "say which messages: by a filter, or all of them")


async def ask_purge(desk: Desk, fields: Fields) -> tuple[str, str]:
    name = fields.get("queue", "")
    queue = await one_queue(desk, name)
    number = queue["waiting"] + (queue["delayed"] if fields.get("delayed") == "1" else 0)
    question = (
        f"Cancel {plural(number, 'message')} that wait in {name}? Their clients are told that there will be no answer. "
        f"{count(queue['leased'])} in workers' hands go on."
    )
    return question, f"Purge {plural(number, 'message')}"


async def ask_drain(desk: Desk, fields: Fields) -> tuple[str, str]:
    question = f"Let {fields.get('queue', '')} run dry? New messages are refused; what waits is still given to workers. Resume ends it."
    return question, "Drain the queue"


async def ask_cancel(desk: Desk, fields: Fields) -> tuple[str, str]:
    message = await desk.link.ask("message", id=fields.get("id", ""))
    held = f" {message['worker']} holds it and loses its lease." if message["worker"] else ""
    return (
        f"Cancel message {message['id']} of {message['queue']}? It is {message['state']}.{held}",
        "Cancel the message",
    )


async def ask_dismiss(desk: Desk, fields: Fields) -> tuple[str, str]:
    worker = await desk.link.ask("worker", worker=fields.get("worker", ""))
    question = (
        f"Dismiss {worker['id']} ({worker['name'] or worker['remote']})? It gets nothing new until it is admitted or restarted. "
        f"The {plural(worker['leased'], 'message')} it holds it may still answer."
    )
    return question, "Dismiss the worker"


async def ask_disconnect(desk: Desk, fields: Fields) -> tuple[str, str]:
    worker = await desk.link.ask("worker", worker=fields.get("worker", ""))
    question = (
        f"End the connection of {worker['id']} ({worker['name'] or worker['remote']}) now? "
        f"The {plural(worker['leased'], 'message')} it holds go back to their queues. It may connect again."
    )
    return question, "Disconnect the worker"


async def ask_unschedule(desk: Desk, fields: Fields) -> tuple[str, str]:
    return f"Forget schedule {fields.get('id', '')}? Messages it has made already go on.", "Remove the schedule"


async def ask_quarantine(desk: Desk, fields: Fields, verb: str) -> tuple[str, str]:
    arguments = quarantine_arguments(fields)
    if "ids" in arguments:
        number, which = len(arguments["ids"]), "by id"
    else:
        number = (await desk.link.ask("quarantine_list", limit=0, **filter_of(fields)))["total"]
        chosen = [f"{name} {fields[name]}" for name in FILTER_KEYS if fields.get(name)]
        which = f"with {joined(chosen)}" if chosen else "all there are"
    return f"{verb} {plural(number, 'quarantined message')} ({which})?", f"{verb} {plural(number, 'message')}"


async def ask_quarantine_drop(desk: Desk, fields: Fields) -> tuple[str, str]:
    return await ask_quarantine(desk, fields, "Drop")


async def ask_quarantine_retry(desk: Desk, fields: Fields) -> tuple[str, str]:
    return await ask_quarantine(desk, fields, "Retry")


ACTIONS: Final[dict[str, Action]] = {
    "pause": Action(only("queue"), lambda f, r: f"{f['queue']} is paused: it takes messages and gives none out."),
    "resume": Action(only("queue"), lambda f, r: f"{f['queue']} goes on."),
    "drain_queue": Action(only("queue"), lambda f, r: f"{f['queue']} takes nothing new and runs dry.", ask_drain),
    "purge": Action(
        purge_arguments, lambda f, r: f"{plural(r['purged'], 'message')} of {f['queue']} cancelled.", ask_purge
    ),
    "cancel": Action(only("id"), lambda f, r: f"Message {f['id']} is cancelled.", ask_cancel),
    "retry": Action(only("id"), lambda f, r: f"Message {f['id']} is tried again."),
    "dismiss": Action(only("worker"), lambda f, r: f"{f['worker']} is dismissed: it gets nothing new.", ask_dismiss),
    "admit": Action(only("worker"), lambda f, r: f"{f['worker']} is admitted."),
    "disconnect": Action(only("worker"), lambda f, r: f"{f['worker']} is disconnected.", ask_disconnect),
    "unschedule": Action(only("id"), lambda f, r: f"Schedule {f['id']} is removed.", ask_unschedule),
    "quarantine_retry": Action(
        quarantine_arguments, lambda f, r: f"{plural(r['retried'], 'message')} tried again.", ask_quarantine_retry
    ),
    "quarantine_drop": Action(
        quarantine_arguments, lambda f, r: f"{plural(r['dropped'], 'message')} dropped.", ask_quarantine_drop
    ),
}


async def confirm(request: Request) -> Response:
    """Show the confirmation page of an action. It changes nothing, so GET is safe."""
    name = request.path_params["name"]
    action = ACTIONS.get(name)
    if action is None or action.ask is None:
        return trouble(request, 404, "There is no such action.", [])
    fields = dict(request.query_params)
    back = our_path(fields.pop("back", "/"))
    try:
        action.arguments(fields)
        question, button = await action.ask(request.app.state.desk, fields)
    except BadForm as bad:
        return trouble(request, bad.status, sentence_of(bad), [], back)
    except AdminRefused as refused:
        return trouble(request, STATUS_OF.get(refused.refusal, 409), sentence_of(refused), [], back)
    except AdminUnreachable:
        return away(request)
    context = {"title": "Sure?", "name": name, "question": question, "button": button, "fields": fields, "back": back}
    return answer(request, "confirm.html", context)


async def do(request: Request) -> Response:
    """Run an action, then redirect to the page that the form came from; API clients get JSON."""
    name = request.path_params["name"]
    action = ACTIONS.get(name)
    if action is None:
        return refuse(request, 404, "NOT_FOUND", "There is no such action.")
    back = "/"
    try:
        form = await read_form(request)
        check_seal(request, form)
        # The action's arguments are in the form's URL because a form field would normalise their line ends.
        given = {**form, **request.query_params}
        fields = {key: value for key, value in given.items() if key not in (SEAL, "back")}
        back = our_path(form.get("back", "/"))
        result = await request.app.state.link.change(name, **action.arguments(fields))
    except BadForm as bad:
        return refuse(request, bad.status, "BAD_FORM", sentence_of(bad), back)
    except AdminRefused as refused:
        return refuse(request, STATUS_OF.get(refused.refusal, 409), refused.refusal, sentence_of(refused), back)
    except AdminUnreachable as unreachable:
        return refuse(request, 503, unreachable.code, sentence_of(unreachable), back)
    request.app.state.desk.sampler.outdate()
    said = action.said(fields, result)
    if wants_json(request):
        return JSONResponse({"said": said, "result": result})
    response = RedirectResponse(back, status_code=303)
    cookie, value = f"{request.app.state.cookie_name}-said", request.app.state.seals.wrap_said(said)
    response.set_cookie(cookie, value, max_age=SAID_S, path="/", httponly=True, samesite="strict")
    return response


def refuse(request: Request, status: int, code: str, words: str, back: str = "/") -> Response:
    if wants_json(request):
        return JSONResponse({"error": {"code": code, "message": words}}, status_code=status)
    return trouble(request, status, words, [], back)


def wants_json(request: Request) -> bool:
    return bool(request.state.is_bearer) or request.headers.get("accept", "").startswith("application/json")
