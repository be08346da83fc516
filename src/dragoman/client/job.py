"""A job: a function that can also be asked of a worker, now or later.

Called directly it is the function it was. `delay` returns once the broker keeps it, `ask` once a worker has answered; both have a
sync twin. A `delay` carries its own id as dedupe key unless it has a better one, so that sending it again after a lost connection
never runs it twice; an `ask` does so only when it is asked to (`once`), for the key costs the broker as much as the call.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

from dragoman.client.address import Address
from dragoman.client.body import Answers, Arguments, problem_of
from dragoman.client.handle import Handle
from dragoman.client.options import Options
from dragoman.client.side_caller import SideCaller
from dragoman.client.wishes import wish_of
from dragoman.dialects.emqp.client_side import RequestForm
from dragoman.dialects.sides import Wish

if TYPE_CHECKING:
    from dragoman.client.app import App

P = ParamSpec("P")
R = TypeVar("R")  # what the job results in
C = TypeVar("C")  # what a direct call returns: R, or a coroutine of it


class Job(Generic[P, R, C]):
    """One function of an App. `options(…)` gives the same job with other options for some calls."""

    def __init__(
        self, app: App, function: Callable[P, C], options: Options, shared: Job[P, R, C] | None = None
    ) -> None:
        self.app = app
        self.function = function
        self.path, self.name = path_of(function), function.__qualname__
        self.is_async = inspect.iscoroutinefunction(function)
        self.opts = options
        self.arguments: Arguments = shared.arguments if shared else Arguments(function, self.path, self.name)
        self.answers: Answers = shared.answers if shared else Answers(function)
        said = options.headers()
        queue = options.queue.encode()
        self.ask_form = RequestForm(queue, ",".join(["reply-requested", *said]).encode())
        self.delay_form = RequestForm(queue, ",".join(["ack-requested", *said]).encode())
        self.ask_wait_s = app.answer_s if options.wait_s is None else options.wait_s
        self.delay_wait_s = app.wait_s if options.wait_s is None else options.wait_s
        self._is_safe = options.once or options.dedupe is not None
        self._wishes: dict[bool, Wish] = {}  # by whether a reply is wanted
        self._wishes_at: Address | None = None
        functools.update_wrapper(self, function)

    def __repr__(self) -> str:
        return f"<Job {self.path}:{self.name} on {self.opts.queue}>"

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> C:
        """Run the function here and now."""
        return self.function(*args, **kwargs)

    def options(self, **changes: Any) -> Job[P, R, C]:
        """The same job with some of its options changed: `job.options(priority=9, delay_s=60).delay(…)`."""
        return Job(self.app, self.function, replace(self.opts, **changes), self)

    async def ask(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Have a worker run it and return its result. Raises JobFailed, Refused, NoAnswer or BrokerUnreachable."""
        desk = self.app.desk()
        if desk.side_caller is not None:
            return await self._ask_side(desk.side_caller, args, kwargs)
        caller = desk.caller
        if caller.is_full:
            await caller.room()
        call_id = caller.ids.take()
        message = self._message(self.ask_form, call_id, args, kwargs, self._is_safe)
        answer = caller.call(call_id, message, True, self.ask_wait_s, self._is_safe, self.opts.repeatable)
        result: R = self.answers.read(await answer)
        return result

    async def delay(self, *args: P.args, **kwargs: P.kwargs) -> Handle:
        """Leave it with the broker; returns once it is kept there at the broker's durability."""
        desk = self.app.desk()
        if desk.side_caller is not None:
            return await self._delay_side(desk.side_caller, args, kwargs)
        caller = desk.caller
        if caller.is_full:
            await caller.room()
        call_id = caller.ids.take()
        message = self._message(self.delay_form, call_id, args, kwargs, True)
        refusal = await caller.call(call_id, message, False, self.delay_wait_s)
        if refusal:
            raise problem_of(refusal, "not kept")
        return Handle(self.app, call_id.decode())

    def ask_sync(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.app.background.run(self.ask(*args, **kwargs))

    def delay_sync(self, *args: P.args, **kwargs: P.kwargs) -> Handle:
        return self.app.background.run(self.delay(*args, **kwargs))

    async def _ask_side(self, caller: SideCaller, args: tuple[Any, ...], kwargs: dict[str, Any]) -> R:
        wish = self._wish(True, self.ask_wait_s)
        body = self.arguments.body(args, kwargs)
        if caller.is_full:
            await caller.room()
        answer = caller.call(caller.ids.take(), wish, body, self.ask_wait_s, self.opts.repeatable)
        result: R = self.answers.read(await answer)
        return result

    async def _delay_side(self, caller: SideCaller, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Handle:
        wish = self._wish(False, self.delay_wait_s)
        body = self.arguments.body(args, kwargs)
        if caller.is_full:
            await caller.room()
        call_id = caller.ids.take()
        await caller.call(call_id, wish, body, self.delay_wait_s, self.opts.repeatable)
        return Handle(self.app, call_id.decode())

    def _wish(self, wants_reply: bool, wait_s: float) -> Wish:
        """What the App's dialect can say of this job's options; the same for each call, so it is made once."""
        address = self.app.address
        if self._wishes_at is not address:
            self._wishes_at = address
            self._wishes.clear()
        wish = self._wishes.get(wants_reply)
        if wish is None:
            wish = self._wishes[wants_reply] = wish_of(address, self.opts, wants_reply, wait_s)
        return wish

    def _message(
        self, form: RequestForm, call_id: bytes, args: tuple[Any, ...], kwargs: dict[str, Any], is_safe: bool
    ) -> bytes:
        body = self.arguments.body(args, kwargs)
        if not is_safe:
            return form.encode(call_id, body)
        if self.opts.dedupe is None:
            return form.encode_deduped(call_id, body)
        headers = form.headers + b",dedupe:" + self.opts.dedupe_key(args, kwargs)
        return form.encode_with(call_id, headers, body)


def path_of(function: Callable[..., Any]) -> str:
    """The module a worker finds the function in, also when this process runs it as a script."""
    module = function.__module__
    if module != "__main__":
        return module
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None:
        return str(spec.name).removesuffix(".__main__")
    file = getattr(main, "__file__", None)
    return Path(file).stem if file else module
