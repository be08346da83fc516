"""A job: a function that a worker can also run, now or later; and a `Handle`, the reference to a job that was enqueued.

Called directly, it is the plain function. `delay` returns once the broker has stored it, `ask` once a worker has answered; both have a
`*_sync` variant. A `delay` carries its own id as dedupe key unless it has another, so that sending it again after a lost connection never
runs it twice; an `ask` does so only with `once`, because the key costs the broker as much as the call.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

from dragoman.client import features
from dragoman.client.address import Address
from dragoman.client.body import Answers, Arguments, plain_value
from dragoman.client.caller import Question
from dragoman.client.options import Options, call_options
from dragoman.dialects.endpoint import CallOptions

if TYPE_CHECKING:
    from dragoman.client.app import App

P = ParamSpec("P")
R = TypeVar("R")  # the job's result
C = TypeVar("C")  # the return type of a direct call: R, or a coroutine of it


class State(str):
    """The name of a state (`waiting`, `leased`, `done`, …, `unknown`) with the attempt and the queue."""

    attempt: int
    queue: str

    def __new__(cls, name: str, attempt: int = 0, queue: str = "") -> State:
        state = super().__new__(cls, name)
        state.attempt, state.queue = attempt, queue
        return state


class Handle:
    """A reference to an enqueued job."""

    __slots__ = ("_app", "id")

    def __init__(self, app: App, id: str) -> None:  # noqa: A002 - its name in the API
        self._app = app
        self.id = id

    def __repr__(self) -> str:
        return f"<Handle {self.id}>"

    async def state(self) -> State:
        """The job's current state. An id that the broker does not know, or no longer knows, is `unknown`."""
        job_id = self.id.encode()
        answer = await self._ask(features.STATE, lambda endpoint, call_id: endpoint.ask_state(call_id, job_id))
        found = answer if isinstance(answer, dict) else {}
        return State(str(found.get("state", "unknown")), int(found.get("attempt") or 0), str(found.get("queue") or ""))

    async def cancel(self) -> bool:
        """Cancel the job if it is not settled; False when it is settled or unknown. A worker that runs it is not interrupted."""
        job_id = self.id.encode()
        return await self._ask(features.CANCEL, lambda endpoint, call_id: endpoint.ask_cancel(call_id, job_id)) is True

    def state_sync(self) -> State:
        return self._app.background.run(self.state())

    def cancel_sync(self) -> bool:
        return self._app.background.run(self.cancel())

    async def _ask(self, feature: features.Feature, question: Question) -> Any:
        features.require(self._app.address.profile.name, feature)
        return plain_value(await self._app.connections().caller.query(question, True, self._app.wait_s))


class Job(Generic[P, R, C]):
    """One function of an App. `options(…)` returns the same job with other options for some calls."""

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
        self.ask_wait_s = app.answer_s if options.wait_s is None else options.wait_s
        self.delay_wait_s = app.wait_s if options.wait_s is None else options.wait_s
        self._has_own_key = options.dedupe is not None
        self._address: Address | None = None  # for which the two below were made
        self._ask_options: CallOptions | None = None
        self._delay_options: CallOptions | None = None
        functools.update_wrapper(self, function)

    def __repr__(self) -> str:
        return f"<Job {self.path}:{self.name} on {self.opts.queue}>"

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> C:
        """Run the function directly, in this process."""
        return self.function(*args, **kwargs)

    def options(self, **changes: Any) -> Job[P, R, C]:
        """The same job with some of its options changed: `job.options(priority=9, delay_s=60).delay(…)`."""
        return Job(self.app, self.function, replace(self.opts, **changes), self)

    async def ask(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Have a worker run the job and return its result. Raises JobFailed, Refused, NoAnswer, AnswerLost or BrokerUnreachable."""
        options = self._ask_options
        if options is None or self._address is not self.app.address or self._has_own_key:
            options = self._options_for(True, args, kwargs)
        body = self.arguments.body(args, kwargs)
        caller = self.app.connections().caller
        if caller.limit.is_full:
            await caller.limit.room()
        answer = caller.call(caller.ids.take(), options, body, self.ask_wait_s, self.opts.repeatable)
        result: R = self.answers.read(await answer)
        return result

    async def delay(self, *args: P.args, **kwargs: P.kwargs) -> Handle:
        """Enqueue the job; returns once the broker has stored it at its durability."""
        options = self._delay_options
        if options is None or self._address is not self.app.address or self._has_own_key:
            options = self._options_for(False, args, kwargs)
        body = self.arguments.body(args, kwargs)
        caller = self.app.connections().caller
        if caller.limit.is_full:
            await caller.limit.room()
        call_id = caller.ids.take()
        await caller.call(call_id, options, body, self.delay_wait_s, self.opts.repeatable)
        return Handle(self.app, call_id.decode())

    def ask_sync(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.app.background.run(self.ask(*args, **kwargs))

    def delay_sync(self, *args: P.args, **kwargs: P.kwargs) -> Handle:
        return self.app.background.run(self.delay(*args, **kwargs))

    def _options_for(self, wants_reply: bool, args: tuple[Any, ...], kwargs: dict[str, Any]) -> CallOptions:
        """The options of a call for the App's broker. Without a dedupe key they are the same for each call, so they are built once."""
        address = self.app.address
        if self._address is not address:
            self._address, self._ask_options, self._delay_options = address, None, None
        wait_s = self.ask_wait_s if wants_reply else self.delay_wait_s
        key = self.opts.dedupe_key(args, kwargs)
        made = call_options(address, self.opts.queue, self.opts, wants_reply, wait_s, dedupe=key)
        if wants_reply:
            self._ask_options = made
        else:
            self._delay_options = made
        return made


def path_of(function: Callable[..., Any]) -> str:
    """The module in which a worker finds the function, also when this process runs it as a script."""
    module = function.__module__
    if module != "__main__":
        return module
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None:
        return str(spec.name).removesuffix(".__main__")
    file = getattr(main, "__file__", None)
    return Path(file).stem if file else module
