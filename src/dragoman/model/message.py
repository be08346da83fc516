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
        self.wire_id: bytes = b""  # its id towards workers, unique among the open ones; ask `WireIds.of` for it
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


OWN_SHAPE: Final = b"00000000-0000-0000-"  # how ids of the broker's own begin


def in_own_shape(digits: bytes) -> bytes:
    """Sixteen digits in the shape of a uuid: some workers insist on text of that length."""
    return b"%s%s-%s" % (OWN_SHAPE, digits[:4], digits[4:])


def own_digits(wire_id: bytes) -> bytes:
    """The sixteen digits of an id of the broker's own; empty for any other."""
    if len(wire_id) != 36 or not wire_id.startswith(OWN_SHAPE) or wire_id[23] != 45:
        return b""
    return wire_id[19:23] + wire_id[24:]


def fact_id(number: int) -> bytes:
    """How facts name a message that its client's id does not name: its number, in the same shape. No worker is told it."""
    return in_own_shape(b"%016x" % number)


def fact_id_of(m: Message) -> bytes:
    return m.wire_id if m.is_named else fact_id(m.number)
