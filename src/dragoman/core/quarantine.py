"""Setting a message aside: the fact, the mutator, and the client's one answer."""

from __future__ import annotations

from typing import final

from dragoman.core.kept import find_row
from dragoman.core.lifecycle import WAITING
from dragoman.core.queue import Queue
from dragoman.core.routes import Routes
from dragoman.core.state import State
from dragoman.model.message import Message
from dragoman.model.records import NO_DIALECT, FactLog
from dragoman.model.words import DAMAGED


@final
class Quarantine:
    """Puts messages into quarantine; an operator takes them out (core/operator)."""

    def __init__(self, state: State, log: FactLog, routes: Routes) -> None:
        self.state = state
        self.log = log
        self.routes = routes

    def put(self, m: Message, queue: Queue, worker_no: int, worker_dialect: int, reason: int, died_with: int) -> None:
        client = self.routes.client_of(m) if m.is_answerable else None
        self.log.quarantined(m, worker_no, worker_dialect, reason, died_with)
        self.state.on_quarantined(m, queue, reason, died_with, m.damage)
        if client is not None:
            client.failed_for_good(m, m.state, reason, b"")

    def put_damaged(self, m: Message, queue: Queue) -> None:
        """The record of a message that waits cannot be read: `m.damage` says where and why."""
        assert m.damage, "there is evidence of the damage"
        self.put(m, queue, 0, NO_DIALECT, DAMAGED, 0)

    def put_all_damaged(self) -> None:
        """At the start: what the replay could not read."""
        for m in list(self.state.messages.values()):
            if m.damage and m.state == WAITING:
                self.put_damaged(m, self.state.queues_by_no[m.queue_no])

    def check(self, number: int) -> bool:
        """Read the record of a message that waits on disk only; one that is damaged is set aside. True when it was."""
        state = self.state
        m = state.messages.get(number)
        if m is None:
            row = find_row(state.queues, number)
            if row is None:
                return False
            m = state.kept.read_row(row.queue, row.lane, row.line, row.at, False)
            if not m.damage:
                return False
            state.take_out(row.line, row.at, m)
        elif m.state != WAITING or m.is_loaded or state.kept.is_sound(m):
            return False
        self.put_damaged(m, state.queues_by_no[m.queue_no])
        return True
