"""Reading waiting messages that are on disk only, without moving them: a question must not change when one is served."""

from __future__ import annotations

from dragoman.core.lifecycle import WAITING
from dragoman.core.queue import Queue
from dragoman.core.state import State
from dragoman.core.tail import Tail, id_hash
from dragoman.model.message import Message
from dragoman.model.records import accepted_body, carried_at, read_accepted


def peek_by_number(state: State, number: int) -> Message | None:
    for queue in state.queues.values():
        for lane in queue.lanes:
            for line in lane.lines.values():
                at = line.tail.find(number) if line.tail.live > 0 else -1
                if at >= 0:
                    return peek(state, queue, line.tail, at)
    return None


def peek_by_id(state: State, client_id: bytes) -> Message | None:
    hash_ = id_hash(client_id)
    for queue in state.queues.values():
        for lane in queue.lanes:
            for line in lane.lines.values():
                tail = line.tail
                at = tail.find_hash(hash_, 0) if tail.live > 0 else -1
                while at >= 0:
                    m = peek(state, queue, tail, at)
                    if m.client_id == client_id:
                        return m
                    at = tail.find_hash(hash_, at + 1)
    return None


def peek(state: State, queue: Queue, tail: Tail, at: int) -> Message:
    """A copy of a message that is on disk only; it is in no index and in no line."""
    record = state.load(tail.places[at])
    m = read_accepted(record, carried_at(record), queue.name, False)
    m.place = tail.places[at]
    m.accepted_ns = tail.accepted[at]
    m.state = WAITING
    return m


def peek_body(state: State, m: Message) -> bytes:
    """A message's body; one that is on disk only is read and not kept."""
    if m.is_loaded:
        return m.body
    record = state.load(m.place)
    return accepted_body(record[carried_at(record) :])
