"""Finds the records of given messages in a block, at fixed offsets, so that a trace scans millions of facts in seconds."""

from __future__ import annotations

from mypy_extensions import i64

from dragoman.model.facts import fields, layout


def find_matches(records: bytes, numbers: set[int], client_id: bytes, found: list[tuple[int, int]]) -> None:
    """Add the records of these messages in a block to `found`: the offset of each, and how many facts precede it.

    An accepted (or carried) record with `client_id`, if that is not empty, adds its message to `numbers`. Some other facts that the
    history of a message may need are found, too: starts of the broker, workers that join, names of queues, late answers."""
    walk = fields.RecordWalk(records)
    while walk.step():
        if is_match(records, walk.at, walk.kind, numbers, client_id):
            found.append((walk.at, walk.facts))


def is_match(records: bytes, at: i64, kind: i64, numbers: set[int], client_id: bytes) -> bool:
    if kind == layout.ACCEPTED:
        return is_accepted_match(records, at, numbers, client_id)
    if kind == layout.LEASED or kind == layout.CLOSED or kind == layout.RELEASED or is_rarer_move(kind):
        return fields.record_number(records, at) in numbers
    if kind == layout.CARRIED:
        return is_accepted_match(records, at + layout.CARRIED_RECORD, numbers, client_id)
    if kind == layout.WORKER_LEFT:  # for a search for a worker
        return fields.record_number(records, at) in numbers
    if kind == layout.FIRED:  # a schedule's message has no client id: it can only be found by number
        return fields.fired_message_no(records, at) in numbers
    return kind == layout.STARTED or kind == layout.WORKER_JOINED or kind == layout.QUEUE_NAMED or kind == layout.LATE


def is_rarer_move(kind: i64) -> bool:
    return kind == layout.DELIVERED or kind == layout.QUARANTINED or kind == layout.REQUEUED


def is_accepted_match(records: bytes, at: i64, numbers: set[int], client_id: bytes) -> bool:
    number: int = fields.accepted_message_no(records, at)
    if number in numbers:
        return True
    size: i64 = len(client_id)
    if (
        size == 0
        or fields.accepted_client_id_size(records, at) != size
        or fields.accepted_client_id(records, at) != client_id
    ):
        return False
    numbers.add(number)
    return True
