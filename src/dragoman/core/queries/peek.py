"""Reads waiting messages that are on disk only, without moving them: a query must not affect when a message is served."""

from __future__ import annotations

from array import array

from dragoman.core.state.state import State
from dragoman.core.state.tail import id_hash
from dragoman.core.storage.kept import find_row
from dragoman.limits import EXPIRING_MAX, EXPIRING_READ_SIZE, EXPIRING_STEP
from dragoman.model.facts.fields import body_at, body_end
from dragoman.model.facts.records import carried_at
from dragoman.model.message import Message


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


def peek_expiring(state: State, dialect: int) -> list[Message]:
    """The messages of a dialect on disk only that expire, the newest first: EXPIRING_MAX of them at most, within EXPIRING_READ_SIZE bytes of
    records, because only the record says which dialect it is of. A damaged one is left out."""
    numbers: array[int] = array("q")
    for queue in state.queues.values():
        for lane in queue.lanes:
            for line in lane.lines.values():
                tail = line.tail
                for at in range(tail.head, len(tail.numbers)):
                    if tail.numbers[at] > 0 and tail.expires[at] > 0:
                        numbers.append(tail.numbers[at])
    newest = sorted(numbers, reverse=True)
    effort_max = state.kept.effort + EXPIRING_READ_SIZE
    found: list[Message] = []
    for begin in range(0, len(newest), EXPIRING_STEP):
        if len(found) >= EXPIRING_MAX or state.kept.effort > effort_max:
            break
        add_expiring(state, dialect, newest[min(begin + EXPIRING_STEP, len(newest)) - 1], newest[begin], found)
    return found


def add_expiring(state: State, dialect: int, first_no: int, last_no: int, found: list[Message]) -> None:
    for queue in state.queues.values():
        for lane in queue.lanes:
            for line in lane.lines.values():
                tail = line.tail
                for at in range(tail.after(first_no - 1), len(tail.numbers)):
                    if tail.numbers[at] > last_no:
                        break
                    if tail.numbers[at] > 0 and tail.expires[at] > 0:
                        m = state.kept.read_row(queue, lane, line, at, False)
                        if not m.is_bare and m.dialect == dialect:
                            found.append(m)


def peek_body(state: State, m: Message, most: int) -> bytes:
    """The first bytes of a message's body. If it is on disk only, its whole record is read and verified, but not kept. Raises `RecordDamaged`."""
    if m.is_loaded:
        return m.body[:most]
    record = state.kept.prove(m.place, m.number, most)
    at = carried_at(record)
    begin: int = body_at(record, at)
    end: int = body_end(record, at)  # beyond the bytes read, if those are only the beginning
    return record[begin : min(begin + most, end)]
