"""Which messages a block tells of, by what they have in common: one pass at fixed offsets, nothing decoded.

Where a message is seen:

    nothing asked of state and peer   where it was accepted; where it was settled, if it was accepted before `since_ns`
    a state that is an end            where it was settled
    open                              where it was accepted, unless its end is seen too
    a client                          where it was accepted
    a worker                          where it was last given to that worker or settled by it

So a message is seen once in what is looked through together, and a block's own facts mostly say so.
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import read_i32_le, read_i64_le
from mypy_extensions import i64

from dragoman.limits import FIND_ENDED_MAX
from dragoman.model.decode import CLOSED_SHORT
from dragoman.model.peer import ANONYMOUS
from dragoman.model.records import ACCEPTED, ACCEPTED_FIXED, CHECKPOINT, CLOSED, LEASED

ANY: Final = -1
OPEN: Final = -2
ENDED: Final = -3
HOLDER_AT: Final = CLOSED_SHORT + 8


@final
class Sought:
    """What is looked for. `state`: ANY, OPEN, ENDED or the number of an outcome."""

    def __init__(self, state: int, dialect: int, has_queue: bool, has_peer: bool) -> None:
        self.state: i64 = state
        self.dialect: i64 = dialect  # of the client; ANY: any
        self.has_queue = has_queue
        self.has_peer = has_peer
        self.queue_nos: set[int] = set()
        self.identities: set[bytes] = set()  # of the client
        self.worker_nos: set[int] = set()
        self.since_ns: int = 0  # what was accepted before is not looked through together with this
        self.before_lsn: int = 0  # facts from here on are not looked at
        self.ended: set[int] = set()  # ends seen of messages that were accepted elsewhere

    def is_outcome(self, outcome: i64) -> bool:
        return self.state == ANY or self.state == ENDED or self.state == outcome

    def is_like(self, queue_no: int, dialect: i64) -> bool:
        if self.dialect != ANY and self.dialect != dialect:
            return False
        return not self.has_queue or queue_no in self.queue_nos


def find_sightings(records: bytes, first_lsn: int, sought: Sought, found: dict[int, int]) -> None:
    """Put into `found` the numbers of the messages seen in a block, each with the lsn of the fact it was seen by, and take out of it
    those that turn out to be others."""
    at: i64 = 0
    end: i64 = len(records)
    lsn: i64 = first_lsn
    before: i64 = sought.before_lsn
    while at < end and lsn < before:
        kind: i64 = records[at + 4]
        if kind == ACCEPTED:
            if sees_accepted(records, at, sought):
                found[read_i64_le(records, at + 8)] = lsn
        elif kind == CLOSED:
            see_closed(records, at, lsn, sought, found)
        elif kind == LEASED:
            if sought.has_peer and read_i64_le(records, at + 13) in sought.worker_nos:
                found[read_i64_le(records, at + 5)] = lsn
        if kind < CHECKPOINT:
            lsn += 1
        at += i64(read_i32_le(records, at))


def sees_accepted(records: bytes, at: i64, sought: Sought) -> bool:
    if sought.has_peer:
        if not is_from(records, at, sought.identities):
            return False
    elif sought.state >= 0 or sought.state == ENDED:
        return False
    return sought.is_like(read_i32_le(records, at + 16), records[at + 5])


def is_from(records: bytes, at: i64, identities: set[bytes]) -> bool:
    """Whether the client that an accepted record names has one of these identities."""
    size: i64 = records[at + 57]
    start: i64 = at + ACCEPTED_FIXED + records[at + 56]
    return size > 1 and records[start] < ANONYMOUS and records[start + 1 : start + size] in identities


def see_closed(records: bytes, at: i64, lsn: i64, sought: Sought, found: dict[int, int]) -> None:
    number: int = read_i64_le(records, at + 5)
    is_like = sought.is_like(read_i32_le(records, at + 25), records[at + 71])
    if not is_like or not sought.is_outcome(records[at + 69]):
        if number in found:
            del found[number]
        elif sought.state == OPEN and len(sought.ended) < FIND_ENDED_MAX:
            sought.ended.add(number)
    elif sought.has_peer:
        if is_by(records, at, sought.worker_nos):
            found[number] = lsn
    elif sought.state != ANY or read_i64_le(records, at + 29) < sought.since_ns:
        found[number] = lsn


def is_by(records: bytes, at: i64, worker_nos: set[int]) -> bool:
    """Whether one of these workers settled it, or had it in hand when somebody else did."""
    if read_i64_le(records, at + 13) in worker_nos:
        return True
    return i64(read_i32_le(records, at)) > HOLDER_AT and read_i64_le(records, at + HOLDER_AT) in worker_nos


def note_numbers(records: bytes, queue_nos: set[int], worker_nos: set[int]) -> None:
    """Note the queues and workers that a block's messages went through."""
    at: i64 = 0
    end: i64 = len(records)
    while at < end:
        kind: i64 = records[at + 4]
        if kind == ACCEPTED:
            queue_nos.add(read_i32_le(records, at + 16))
        elif kind == LEASED:
            worker_nos.add(read_i64_le(records, at + 13))
        elif kind == CLOSED:
            queue_nos.add(read_i32_le(records, at + 25))
            worker_nos.add(read_i64_le(records, at + 13))
            if i64(read_i32_le(records, at)) > HOLDER_AT:
                worker_nos.add(read_i64_le(records, at + HOLDER_AT))
        at += i64(read_i32_le(records, at))
