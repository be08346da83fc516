"""Reading waiting messages that are on disk only, without moving them: a question must not change when one is served."""

from __future__ import annotations

from dragoman.core.kept import find_row
from dragoman.core.state import State
from dragoman.core.tail import id_hash
from dragoman.model.message import Message
from dragoman.model.records import accepted_body, carried_at


def peek_by_number(state: State, number: int) -> Message | None:
    row = find_row(state.queues, number)
    return state.kept.read_row(row.queue, row.lane, row.line, row.at, False) if row is not None else None


def peek_by_id(state: State, client_id: bytes) -> Message | None:
    hash_ = id_hash(client_id)
    for queue in state.queues.values():
        for lane in queue.lanes:
            for line in lane.lines.values():
                tail = line.tail
                at = tail.find_hash(hash_, 0) if tail.live > 0 else -1
                while at >= 0:
                    m = state.kept.read_row(queue, lane, line, at, False)
                    if m.client_id == client_id:
                        return m
                    at = tail.find_hash(hash_, at + 1)
    return None


def peek_body(state: State, m: Message) -> bytes:
    """A message's body; one that is on disk only is read and not kept. Raises `RecordDamaged`."""
    if m.is_loaded:
        return m.body
    record = state.kept.load(m.place, m.number)
    return accepted_body(record[carried_at(record) :])
