"""The filter of a message search, and the scan of a block for messages that may match: one pass at fixed offsets, without decoding.

The fact at which a message is listed, by what is searched for:

    no state and no peer              its accepted fact; its closed fact, if it was accepted before `since_ns`
    a final state                     its closed fact
    open messages                     its accepted fact, unless its closed fact is found, too
    a client                          its accepted fact
    a worker                          its last leased fact of that worker, or its closed fact by that worker

So each message is listed once among the segments searched together, mostly by the facts of one block alone. Only `Filter` decides this: for
records here, and for decoded facts (runtime/search/finding) if one block was not enough.
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import read_i64_le
from mypy_extensions import i64

from dragoman.limits import FIND_ENDED_MAX
from dragoman.model.facts import fields, layout
from dragoman.model.peer import is_client_in

ANY: Final = -1
OPEN: Final = -2
ENDED: Final = -3


@final
class Filter:
    """The conditions of a search. `state`: ANY, OPEN, ENDED or the number of an outcome."""

    def __init__(self, state: int, dialect: int, has_queue: bool, has_peer: bool) -> None:
        self.state: i64 = state
        self.dialect: i64 = dialect  # of the client; ANY: any
        self.has_queue = has_queue
        self.has_peer = has_peer
        self.queue_nos: set[int] = set()
        self.identities: set[bytes] = set()  # of the client
        self.worker_nos: set[int] = set()
        self.since_ns: int = 0  # a message accepted before this is listed at its closed fact
        self.before_lsn: int = 0  # facts from this lsn on are ignored
        self.ended: set[int] = set()  # settled messages whose accepted facts were not found yet

    def has_origin(self, queue_no: int, dialect: int) -> bool:
        """Whether the queue and the client's dialect of a message match."""
        if self.dialect != ANY and self.dialect != dialect:
            return False
        return not self.has_queue or queue_no in self.queue_nos

    def has_state(self, state: int) -> bool:
        """Whether a state matches: OPEN, or the outcome of a settled message."""
        if self.state == ENDED:
            return state != OPEN
        return self.state == ANY or self.state == state

    def lists_accepted(self, is_client: bool) -> bool:
        """Whether a message is listed at its accepted fact. `is_client`: its client is searched for."""
        return is_client if self.has_peer else self.state == ANY or self.state == OPEN

    def lists_leased(self, worker_no: int) -> bool:
        return self.has_peer and worker_no in self.worker_nos

    def lists_closed(self, worker_no: int, holder_no: int, accepted_ns: int, since_ns: int) -> bool:
        """Whether a message is listed at its closed fact: settled by `worker_no`, or while leased to `holder_no`."""
        if self.has_peer:
            return worker_no in self.worker_nos or holder_no in self.worker_nos
        return self.state != ANY or accepted_ns < since_ns


def find_listed(records: bytes, first_lsn: int, wanted: Filter, found: dict[int, int]) -> None:
    """Add the messages listed in a block to `found`: number → lsn of the fact it is listed at. Removes those that turn out not to match."""
    walk = fields.RecordWalk(records)
    first: i64 = first_lsn
    before: i64 = wanted.before_lsn
    while walk.step() and first + walk.facts < before:
        at = walk.at
        if walk.kind == layout.ACCEPTED:
            if is_accepted_wanted(records, at, wanted):
                found[fields.accepted_message_no(records, at)] = first + walk.facts
        elif walk.kind == layout.CLOSED:
            find_closed(records, at, first + walk.facts, wanted, found)
        elif walk.kind == layout.LEASED:
            if wanted.lists_leased(fields.leased_worker_no(records, at)):
                found[fields.record_number(records, at)] = first + walk.facts


def is_accepted_wanted(records: bytes, at: i64, wanted: Filter) -> bool:
    is_client = wanted.has_peer and is_client_in(fields.accepted_address(records, at), wanted.identities)
    if not wanted.lists_accepted(is_client):
        return False
    return wanted.has_origin(fields.accepted_queue_no(records, at), fields.accepted_dialect(records, at))


def find_closed(records: bytes, at: i64, lsn: i64, wanted: Filter, found: dict[int, int]) -> None:
    number: int = fields.record_number(records, at)
    is_like = wanted.has_origin(fields.closed_queue_no(records, at), fields.closed_dialect(records, at))
    if not is_like or not wanted.has_state(fields.closed_outcome(records, at)):
        if number in found:
            del found[number]
        elif wanted.state == OPEN and len(wanted.ended) < FIND_ENDED_MAX:
            wanted.ended.add(number)
        return
    worker_no = fields.closed_worker_no(records, at)
    holder_no = fields.closed_holder_no(records, at)
    accepted_ns = read_i64_le(records, at + layout.CLOSED_ACCEPTED_NS)
    if wanted.lists_closed(worker_no, holder_no, accepted_ns, wanted.since_ns):
        found[number] = lsn


def note_numbers(records: bytes, queue_nos: set[int], worker_nos: set[int]) -> None:
    """Collect the queues and workers of the messages in a block."""
    walk = fields.RecordWalk(records)
    while walk.step():
        at = walk.at
        if walk.kind == layout.ACCEPTED:
            queue_nos.add(fields.accepted_queue_no(records, at))
        elif walk.kind == layout.LEASED:
            worker_nos.add(fields.leased_worker_no(records, at))
        elif walk.kind == layout.CLOSED:
            queue_nos.add(fields.closed_queue_no(records, at))
            worker_nos.add(fields.closed_worker_no(records, at))
            if fields.reaches(records, at, layout.CLOSED_HOLDER_NO):
                worker_nos.add(fields.closed_holder_no(records, at))


def find_matches(records: bytes, numbers: set[int], client_id: bytes, found: list[tuple[int, int]]) -> None:
    """Add the records of these messages in a block to `found`: the offset of each, and how many facts precede it.

    An accepted (or carried) record with `client_id`, if that is not empty, adds its message to `numbers`. Some other facts that the
    history of a message may need are found, too: starts of the broker, workers that join, names of queues, late answers. Nothing is decoded, so
    that a trace scans millions of facts in seconds."""
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
