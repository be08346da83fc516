"""A message: an opaque body, its client's options, and its state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, final

if TYPE_CHECKING:
    from dragoman.model.peer import Peer

# `Message.where`: where the valid entry of a message is. Entries elsewhere are stale and skipped.
NOWHERE: Final = 0
IN_FRESH: Final = 1
IN_RETURNED: Final = 2
IN_DELAYED: Final = 3
POSITION_SHIFT: Final = 32  # a position (`Message.position`) is segment number << 32 | offset


@final
class Message:
    """One message. A dialect sets the fields that come from the client; after that only the core changes it."""

    def __init__(self, dialect: int, queue: bytes, client_id: bytes, body: bytes) -> None:
        self.dialect = dialect
        self.queue = queue
        self.client_id = client_id
        self.body = body
        self.body_size: int = len(body)
        self.headers: bytes = b""
        self.flags: int = 0
        self.priority: int = 0
        # Retries left after a failed attempt; -1: the client set none (see core/retries).
        self.retries_left: int = -1
        self.timeout_ns: int = 0  # timeout of one attempt; 0: none
        self.expires_ns: int = 0  # instant after which it is not delivered; 0: never
        self.due_ns: int = 0  # not before this instant; 0: at once
        self.asked_due_ns: int = 0  # `due_ns` as its client asked, not changed by retries
        self.dedupe: bytes = b""
        self.schedule_no: int = 0  # the schedule that created it; 0: a client sent it

        self.client: Peer | None = None
        self.address: bytes = b""  # listener and identity: finds the client after a restart

        self.number: int = 0
        self.key: Any = None  # its number as an int object, once it is indexed: the key in dicts by number
        self.queue_no: int = 0
        self.wire_id: bytes = b""  # its id towards workers, unique among open messages; read it by `WireIds.of`
        self.is_named: bool = False  # `Exchange.find` finds it by its client's id
        self.position: int = 0  # of its record in the journal, segment << 32 | offset; 0: none
        self.is_loaded: bool = True  # False: the body is on disk only
        self.damage: bytes = b""  # why its record cannot be read (`RecordDamaged.evidence`); empty: no damage is known
        self.is_unreadable: bool = (
            False  # its record is damaged: only its number, queue, priority and instants are known
        )
        self.fit: int = 0  # kinds of workers known to accept its body, as bits (`Peer.body_constraint`)
        self.unfit: int = 0  # and those known not to

        self.state: int = 0
        self.where: int = NOWHERE
        self.line: object = None  # its line while `where` is IN_FRESH or IN_RETURNED
        self.entry_no: int = 0  # its valid entry in the returned end of that line, while `where` is IN_RETURNED
        self.attempt: int = 0
        self.worker: Peer | None = None
        self.worker_no: int = 0  # worker of its latest lease; known after a restart, too
        self.lease_until_ns: int = 0  # when this attempt times out; 0: never
        self.accepted_ns: int = 0
        self.first_leased_ns: int = 0
        self.leased_ns: int = 0
        self.delivered_ns: int = 0
        self.last_reason: int = 0
        self.died_with: list[int] | None = None  # the distinct workers that died holding it
        self.is_handed_over: bool = False  # the client was notified that a worker has it
        self.is_answerable: bool = True  # False once the client was sent its one answer


OWN_SHAPE: Final = b"00000000-0000-0000-"  # prefix of the broker's own ids


def in_own_shape(digits: bytes) -> bytes:
    """Sixteen digits formatted as a UUID: some workers require text of that length."""
    return b"%s%s-%s" % (OWN_SHAPE, digits[:4], digits[4:])


def is_own_id(wire_id: bytes) -> bool:
    """Whether an id has the form of the broker's own."""
    # The first byte alone rules out most of the others.
    return len(wire_id) == 36 and wire_id[0] == 48 and wire_id.startswith(OWN_SHAPE) and wire_id[23] == 45


def own_digits(wire_id: bytes) -> bytes:
    """The sixteen digits of one of the broker's own ids; empty for any other id."""
    if not is_own_id(wire_id):
        return b""
    return wire_id[19:23] + wire_id[24:]


def fact_id(number: int) -> bytes:
    """The id in facts of a message that is not identified by its client's id: its plain number as a UUID. It is never sent to workers."""
    return in_own_shape(b"%016x" % number)


def fact_id_of(m: Message) -> bytes:
    return m.wire_id if m.is_named else fact_id(m.number)
