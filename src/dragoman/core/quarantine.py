"""Quarantines messages: writes the fact, applies it, sends the client its one answer; and finds messages whose records are damaged."""

from __future__ import annotations

from typing import final

from dragoman.core.lifecycle import WAITING
from dragoman.core.routes import Routes
from dragoman.core.state.queue import Queue
from dragoman.core.state.state import State
from dragoman.core.storage.stored import find_row
from dragoman.model.enums import DAMAGED
from dragoman.model.facts.layout import NO_DIALECT
from dragoman.model.facts.records import FactLog
from dragoman.model.message import Message


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
        """Quarantine a waiting message whose record cannot be read; `m.damage` says where and why."""
        assert m.damage, "there is evidence of the damage"
        self.put(m, queue, 0, NO_DIALECT, DAMAGED, 0)

    def put_all_damaged(self) -> None:
        """At the start: quarantine the messages whose records the replay could not read."""
        for m in list(self.state.messages.values()):
            if m.damage and m.state == WAITING:
                self.put_damaged(m, self.state.queues_by_no[m.queue_no])

    def check(self, number: int) -> bool:
        """Read the record of a message whose body is on disk only and quarantine it if it is damaged; True when it was."""
        state = self.state
        m = state.messages.get(number)
        if m is None:
            row = find_row(state.queues, number)
            if row is None:
                return False
            m = state.stored.read_row(row.queue, row.lane, row.line, row.at, False)
            if not m.damage:
                return False
            state.take_out(row.line, row.at, m)
        elif m.state != WAITING or m.is_loaded or state.is_sound(m):
            return False
        self.put_damaged(m, state.queues_by_no[m.queue_no])
        return True
