"""What an admin operation is, and what operations share.

Queries read the core between ticks. Changes go through `act`, which returns once their facts are durable.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar, get_type_hints

import msgspec

from dragoman.core.core import Core
from dragoman.core.queries import lookup
from dragoman.core.queries.matching import ANY, STATES, Wanted
from dragoman.core.state.queue import Queue
from dragoman.dialects.registry import DESCRIPTIONS
from dragoman.errors import DragomanError
from dragoman.limits import ADMIN_PAGE_MAX
from dragoman.model.enums import INTERNAL, REASON_NAMES, REFUSAL_CODES, REFUSAL_TEXTS, TAKEN
from dragoman.model.message import Message
from dragoman.model.peer import Peer, identities_of
from dragoman.model.units import SECOND_NS

if TYPE_CHECKING:
    from dragoman.runtime.server import Server as Server
else:
    Server = Any  # its annotations are evaluated by `operation`

ACT_PATIENCE_S: Final = 30.0
DIALECTS: Final = {"": ANY, "internal": INTERNAL} | {described.name: described.number for described in DESCRIPTIONS}
REASONS: Final = {"": ANY} | {name: number for number, name in enumerate(REASON_NAMES)}

T = TypeVar("T")
Progress = Callable[[int, int], None]  # done, total
SendEvent = Callable[[dict[str, object]], None]
Offset = Annotated[int, msgspec.Meta(ge=0)]
Limit = Annotated[int, msgspec.Meta(ge=0, le=ADMIN_PAGE_MAX)]
Name = Annotated[str, msgspec.Meta(min_length=1)]
Age = Annotated[float, msgspec.Meta(ge=0, le=1e9)]


class OperationRefused(DragomanError):
    """An operation was refused; `code` says why."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code  # type: ignore[misc]  # one class carries every refusal of the core


@dataclass(frozen=True, slots=True)
class Operation:
    """A function of the broker process and of the request's arguments; `arguments` checks those."""

    name: str
    arguments: type[msgspec.Struct]
    function: Callable[..., Any]
    parameters: tuple[str, ...]

    @property
    def is_stream(self) -> bool:
        """Whether it sends events until its client ends it."""
        return "send" in self.parameters

    async def run(self, server: Server, given: msgspec.Struct, send: Progress | SendEvent) -> object:
        values: dict[str, Any] = {"server": server, "send": send, "progress": send, "which": given}
        values |= {name: getattr(given, name.rstrip("_")) for name in self.parameters if name not in values}
        result = self.function(**{name: values[name] for name in self.parameters})
        return await result if inspect.isawaitable(result) else result


def operation(function: Callable[..., object]) -> Operation:
    """An operation with the function's name. The request's arguments are its keyword-only parameters (`id_` is `id`) and the fields of `which`. `progress`
    reports how far it is; a stream has `send` instead."""
    parameters = inspect.signature(function).parameters
    types = get_type_hints(function, include_extras=True)
    fields = [
        (name.rstrip("_"), types[name], msgspec.NODEFAULT if one.default is one.empty else one.default)
        for name, one in parameters.items()
        if one.kind is one.KEYWORD_ONLY
    ]
    bases = (types["which"],) if "which" in types else ()
    name = function.__name__
    arguments = msgspec.defstruct(name, fields, bases=bases, forbid_unknown_fields=True)
    return Operation(name, arguments, function, tuple(parameters))


class Filter(msgspec.Struct):
    """Every given field must match; an empty text, or an age of 0, matches any."""

    queue: str = ""
    dialect: str = ""
    older_than_s: Age = 0.0

    def wanted(self, core: Core) -> Wanted:
        found = Wanted()
        if self.queue:
            found.queue_no = known_queue(core, self.queue).number
        found.dialect = _number_of(self.dialect, DIALECTS, "dialect")
        if self.older_than_s:
            found.accepted_before_ns = core.now_ns - int(self.older_than_s * SECOND_NS)
        return found


class QuarantineFilter(Filter):
    reason: str = ""

    def wanted(self, core: Core) -> Wanted:
        found = super().wanted(core)
        found.reason = _number_of(self.reason, REASONS, "reason")
        return found


class MessageFilter(Filter):
    state: str = ""
    worker: str = ""
    client: str = ""
    newer_than_s: Age = 0.0

    def wanted(self, core: Core) -> Wanted:
        found = super().wanted(core)
        if self.worker:
            found.worker = known_worker(core, self.worker)
        found.clients = identities_of(self.client)
        found.state = _number_of(self.state, STATES, "state")
        if self.newer_than_s:
            found.accepted_from_ns = core.now_ns - int(self.newer_than_s * SECOND_NS)
        return found


def _number_of(word: str, numbers: dict[str, int], what: str) -> int:
    if word not in numbers:
        known = ", ".join(name for name in numbers if name)
        raise OperationRefused("BAD_ARGUMENT", f"there is no {what} {word!r}; there are: {known}")
    return numbers[word]


def check(refusal: int) -> None:
    if refusal != TAKEN:
        raise OperationRefused(REFUSAL_CODES[refusal], REFUSAL_TEXTS[refusal])


async def act(server: Server, change: Callable[[Core], T]) -> T:
    """Run a change and wait until it is durable, with a timeout, so that a failing journal does not block the client."""
    try:
        async with asyncio.timeout(ACT_PATIENCE_S):
            return await server.broker.act(change)
    except TimeoutError as error:
        message = f"done, but the journal has not kept it within {ACT_PATIENCE_S:g} s: a crash now would undo it"
        raise OperationRefused("NOT_YET_KEPT", message) from error


def found(value: T | None, what: str, key: str) -> T:
    """`value`, or the refusal that there is none."""
    if value is None:
        raise OperationRefused("NOT_FOUND", f"there is no {what} {key!r}")
    return value


def open_message(core: Core, key: str) -> Message:
    return found(lookup.find_message(core, key), "open message", key)


def known_queue(core: Core, key: str) -> Queue:
    return found(lookup.find_queue(core, key), "queue", key)


def known_worker(core: Core, key: str) -> Peer:
    return found(lookup.find_worker(core, key), "worker", key)
