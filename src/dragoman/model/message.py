"""A message: an opaque body, what its client asked for, and where it is in its life."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

if TYPE_CHECKING:
    from dragoman.model.peer import Peer

# `Message.where`: which line of its queue holds an entry for it. A line's entry that no longer agrees is stale and skipped.
NOWHERE: Final = 0
IN_FRESH: Final = 1
IN_RETURNED: Final = 2
IN_DELAYED: Final = 3


@final
class Message:
    """One message. A dialect fills in what the client said; from then on only the core's mutators change it."""

    def __init__(self, dialect: int, queue: bytes, client_id: bytes, body: bytes) -> None:
        self.dialect = dialect
        self.queue = queue
        self.client_id = client_id
        self.body = body
        self.body_size: int = len(body)
        self.headers: bytes = b""
        self.flags: int = 0
        self.priority: int = 0
        # More tries after a failed one; -1: the client did not say (see core/retries).
        self.retries_left: int = -1
        self.timeout_ns: int = 0  # bound on one attempt; 0: none
        self.expires_ns: int = 0  # wall instant after which it is not worth delivering; 0: never
        self.due_ns: int = 0  # not before this instant; 0: at once
        self.asked_due_ns: int = 0  # the same as its client asked, whatever retries made of it
        self.dedupe: bytes = b""
        self.schedule_no: int = 0  # the schedule that made it; 0: a client did

        self.client: Peer | None = None
        self.address: bytes = b""  # listener and identity: finds the client again after a restart

        self.number: int = 0
        self.queue_no: int = 0
        self.wire_id: bytes = b""  # its id towards workers, unique among the open ones; ask `wire_id_of` for it
        self.is_named: bool = False  # `Exchange.find` knows it by its client's id
        self.place: int = 0  # where the journal keeps its record; 0: nowhere
        self.is_loaded: bool = True  # False: the body is on disk only
        self.damage: bytes = (
            b""  # why its record cannot be read (`RecordDamaged.evidence`); empty: nobody knows of any damage
        )
        self.is_bare: bool = (
            False  # nothing but its number, queue, priority and instants is known: the record told the rest
        )
        self.fit: int = 0  # kinds of picky workers that can take it, by their bit (`Peer.pickiness`)
        self.unfit: int = 0  # and those that cannot

        self.state: int = 0
        self.where: int = NOWHERE
        self.line: object = None  # the line that holds it while `where` is IN_FRESH or IN_RETURNED
        self.entry_no: int = 0  # of its place in the returned end of that line, while `where` is IN_RETURNED
        self.attempt: int = 0
        self.worker: Peer | None = None
        self.worker_no: int = 0  # of its latest lease; known after a restart, too
        self.lease_until_ns: int = 0  # 0: this attempt has no time bound
        self.accepted_ns: int = 0
        self.first_leased_ns: int = 0
        self.leased_ns: int = 0
        self.delivered_ns: int = 0
        self.last_reason: int = 0
        self.died_with: list[int] | None = None  # the distinct workers that died holding it
        self.is_handed_over: bool = False  # the client has been told that a worker has it
        self.is_answerable: bool = True  # False once the client has had its one answer


def wire_id_of(m: Message) -> bytes:
    """Its id towards workers that are told one as text: its client's own where that is unique, else made from its number."""
    if not m.wire_id:
        m.wire_id = own_wire_id(m.number)
    return m.wire_id


def own_wire_id(number: int) -> bytes:
    """An id of the broker's own, in the shape of a uuid: some workers insist on text of that length."""
    digits = b"%032x" % number
    return b"-".join([digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]])


def own_number(wire_id: bytes) -> int:
    """The number in an id of the broker's own; -1 for any other id."""
    if len(wire_id) != 36 or not wire_id.startswith(b"00000000-0000-0000-"):
        return -1
    try:
        number = int(wire_id[19:23] + wire_id[24:], 16)
    except ValueError:
        return -1
    return number if own_wire_id(number) == wire_id else -1
