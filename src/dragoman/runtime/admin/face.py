"""The interface between admin operations and the broker, and what all operations share.

Read-only operations read the core between ticks. Changes go through `act`, which returns once their facts are durable.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final, Protocol, TypeVar

import msgspec

from dragoman.core.core import Core
from dragoman.core.queries import lookup
from dragoman.core.state.queue import Queue
from dragoman.errors import DragomanError
from dragoman.journal.journal import Journal
from dragoman.limits import ADMIN_PAGE_MAX
from dragoman.model.message import Message
from dragoman.model.peer import Peer
from dragoman.model.words import REFUSAL_CODES, REFUSAL_TEXTS, TAKEN
from dragoman.runtime.children.followers import Indexing, Sealing
from dragoman.runtime.children.webpage import Webpage
from dragoman.runtime.config import Config
from dragoman.runtime.memory import MemoryBudget
from dragoman.runtime.upkeep import Upkeep
from dragoman.runtime.watchdog import Watchdog

if TYPE_CHECKING:
    from dragoman.runtime.children.tracing import Tracing

ACT_PATIENCE_S: Final = 30.0

T = TypeVar("T")
Tell = Callable[[int, int], None]  # done, total
Offset = Annotated[int, msgspec.Meta(ge=0)]
Limit = Annotated[int, msgspec.Meta(ge=0, le=ADMIN_PAGE_MAX)]
Name = Annotated[str, msgspec.Meta(min_length=1)]


class Acting(Protocol):
    """The part of a broker that runs changes."""

    @property
    def connections(self) -> Mapping[Any, Any]: ...
    @property
    def upkeep(self) -> Upkeep: ...
    @property
    def memory(self) -> MemoryBudget: ...
    @property
    def watchdog(self) -> Watchdog: ...

    def act(self, change: Callable[[Core], T], /) -> Awaitable[T]: ...


class BrokerFace(Protocol):
    """What the admin socket can access of a broker process."""

    config: Config
    version: str
    listeners: dict[str, str]

    @property
    def indexing(self) -> Indexing | None: ...
    @property
    def sealing(self) -> Sealing | None: ...
    @property
    def tracing(self) -> Tracing | None: ...
    @property
    def webpage(self) -> Webpage | None: ...
    @property
    def core(self) -> Core: ...
    @property
    def journal(self) -> Journal: ...
    @property
    def broker(self) -> Acting: ...

    def request_stop(self) -> None: ...
    def reload(self) -> dict[str, list[str]]: ...


class OperationRefused(DragomanError):
    """An operation was refused; `code` says why."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code  # type: ignore[misc]  # one class carries every refusal of the core


def not_found(what: str, key: str) -> OperationRefused:
    return OperationRefused("NOT_FOUND", f"there is no {what} {key!r}")


def check(refusal: int) -> None:
    if refusal != TAKEN:
        raise OperationRefused(REFUSAL_CODES[refusal], REFUSAL_TEXTS[refusal])


async def act(face: BrokerFace, change: Callable[[Core], T]) -> T:
    """Run a change and wait until it is durable, with a timeout, so that a failing journal does not block the client."""
    try:
        async with asyncio.timeout(ACT_PATIENCE_S):
            return await face.broker.act(change)
    except TimeoutError as error:
        message = f"done, but the journal has not kept it within {ACT_PATIENCE_S:g} s: a crash now would undo it"
        raise OperationRefused("NOT_YET_KEPT", message) from error


def open_message(core: Core, key: str) -> Message:
    m = lookup.find_message(core, key)
    if m is None:
        raise not_found("open message", key)
    return m


def known_queue(core: Core, key: str) -> Queue:
    queue = lookup.find_queue(core, key)
    if queue is None:
        raise not_found("queue", key)
    return queue


def known_worker(core: Core, key: str) -> Peer:
    peer = lookup.find_worker(core, key)
    if peer is None:
        raise not_found("worker", key)
    return peer


def held_message(core: Core, key: str) -> Message:
    """The message itself, loaded into memory if it was on disk only, because it is about to change."""
    m = core.state.take(open_message(core, key).number)
    assert m is not None, "found a moment ago"
    return m


class Operation(msgspec.Struct, forbid_unknown_fields=True):
    """One admin operation: its fields are the request's arguments, `run` returns the answer."""

    async def run(self, face: BrokerFace, tell: Tell) -> object:
        raise NotImplementedError


Say = Callable[[dict[str, object]], None]


class Stream(Operation):
    """An operation that sends events until its client ends it."""

    async def stream(self, face: BrokerFace, say: Say) -> object:
        raise NotImplementedError
