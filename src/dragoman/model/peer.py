"""A peer: one connection and its roles (client, worker, subscriber), as the core sees it.

The core decides and calls the methods of `Peer`; a dialect implements each in its own protocol. These methods never block, never fail
and decide nothing: they write to the peer's outbox, and at most note an event or read a body.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final, final

from dragoman.model.enums import NO_REASON

if TYPE_CHECKING:
    from dragoman.model.message import Message


# Kinds of workers that cannot take every body (`Peer.body_constraint`).
TAKES_ANYTHING: Final = 0
TAKES_JSON_JOBS: Final = 1  # emqp: the original program
TAKES_NO_CONTROL_WORDS: Final = 2  # pingpong, plain and package
TAKES_TEXT: Final = 4  # pingpong, json
TAKES_NO_EMPTY_BODY: Final = 8  # rq: the original library

# Ranks of a serving.
RANK_NONE: Final = 0  # gets no messages
RANK_NORMAL: Final = 20  # of workers whose dialect has no ranks
# Prefix of a byte that is not UTF-8 in the text form of an identity.
ESCAPE: Final = "\\x"
# Set in the first byte of an address (the listener's number) that belongs to this connection only.
ANONYMOUS: Final = 0x80
# The first byte of an address with a shortened identity, before the listener's number, which is never 0.
SHORTENED: Final = 0
# The longest identity that an address contains as it is: the accepted record has one byte for the address's size.
WHOLE_IDENTITY_SIZE_MAX: Final = 254
# Bytes of a longer identity that its address contains before the hash: 255 with the two first bytes and 32 of the hash.
SHORTENED_SIZE: Final = 221
# The first byte of a lasting id: what the id consists of.
BY_PROGRAM: Final = b"p"
BY_IDENTITY: Final = b"i"


@final
class Serving:
    """A worker's claim on a queue. `weight` orders the queues of a worker, `rank` the workers of a queue; the highest comes first."""

    def __init__(self, peer: Peer, queue_no: int, queue: bytes, weight: int, rank: int, is_exclusive: bool) -> None:
        self.peer = peer
        self.queue_no = queue_no
        self.queue = queue
        self.weight = weight
        self.rank = rank
        self.is_exclusive = is_exclusive
        # Not active yet: an exclusive claim is active, or this one is exclusive and others are active.
        self.is_waiting: bool = False
        self.is_idle: bool = False  # it is in an idle line of the queue
        self.is_active: bool = True  # False once the claim ended
        self.last_turn: int = 0  # the worker's turn (`WorkerState.turn`) in which it was last served
        self.passed_over: int = 0  # turns lost to other queues while messages waited here; -1: none of them fits

    def takes(self) -> bool:
        """Whether the worker takes messages of this queue."""
        return not self.is_waiting and self.rank != RANK_NONE


@final
class WorkerState:
    """What a peer does as a worker. The core owns it: sessions read it and ask the core to change it (`Exchange`)."""

    def __init__(self) -> None:
        self.slots: int = 0  # free ones
        self.serves: list[Serving] = []
        self.turn: int = 0
        self.leases: dict[int, Message] = {}  # its leases by message number
        self.timed_leases: int = 0  # how many of `leases` have a timeout
        self.is_leaving: bool = False  # no new work; what it holds may still be answered
        self.leaving_reason: int = NO_REASON  # why it is leaving
        # By the operator: no new work until it is admitted; its leases may still be answered.
        self.is_dismissed: bool = False
        self.claims: list[Serving] = []  # while dismissed: its servings once it is admitted
        self.is_feeding_interrupted: bool = False  # it is in `Dispatch.unfed_workers`: feeding it was interrupted
        self.settled: int = 0
        self.failed: int = 0
        self.last_leased_ns: int = 0


class Peer:
    """One connection, and what its session states about it. Dialects subclass it."""

    def __init__(self, dialect: int, listener: str) -> None:
        self.dialect = dialect
        self.listener = listener
        self.number: int = 0  # worker_no once it serves a queue; never reused
        self.identity: bytes = b""
        # Listener and identity, or the connection itself for an anonymous peer: where answers go, and which line its messages
        # wait in (fairness between clients).
        self.address: bytes = b""
        self.remote: str = ""
        # Version of the configuration it was last sent, or reported to use; empty: none.
        self.config_version: bytes = b""
        self.takes_one_answer: bool = False  # a REQ peer: it would take a second answer for that to its next request
        self.is_connected: bool = True
        self.joined_ns: int = 0
        self.last_sign_ns: int = 0

        self.is_worker: bool = False
        self.lasting_id: bytes = b""  # recognises it when it reconnects (`lasting_id_of`); empty: impossible
        self.is_blocked: bool = False  # it does not read, or too much output is pending: no new work meanwhile
        # One bit (TAKES_…) for a kind of worker that cannot take every body; 0: it takes anything. If set, `accepts` is called
        # before a message is leased to it, and stores its result on the message under this bit (`fit`, `unfit`).
        self.body_constraint: int = TAKES_ANYTHING
        self.is_strict: bool = False  # a body that no worker of the queue can take is refused on submit
        self.says_delivered: bool = False  # it confirms each message before the answer
        # It forwards messages to other workers: when its connection ends, its messages are returned and none counts a worker's death.
        self.is_relay: bool = False
        self.is_chosen_by_load: bool = False  # the worker with the fewest leases comes first, not the longest idle
        self.lease_grace_ns: int = 0  # added to every timeout: the time this worker needs to report a timeout itself
        self.lease_ns: int = 0  # timeout of a lease whose message has none; 0: the setting's
        self.work = WorkerState()

    def connection_peer(self) -> Peer:
        """The peer of its connection: itself, unless several workers share a connection."""
        return self

    # Towards a worker.
    def deliver(self, message: Message) -> None:
        """Send it a message that it has leased."""
        raise NotImplementedError

    def withdraw(self, message: Message, reason: int) -> None:
        """Its lease ended without its answer (cancelled, timed out, answered by another worker)."""
        raise NotImplementedError

    def accepts(self, message: Message) -> bool:
        """Whether it can take a message's body; called only if `body_constraint` is set."""
        raise NotImplementedError

    def dismissed(self) -> None:
        """The operator dismissed it. Most dialects send nothing: what they could send would make the worker rejoin at once."""

    def admitted(self) -> None:
        """A dismissal ended: its claims are active again."""

    def promoted(self, queue: bytes) -> None:
        """Its claim on a queue, which waited for an exclusive one or for all others to end, is active now. Most dialects have no command
        for it."""

    # Towards a client.
    def kept(self, message: Message) -> None:
        """The message is accepted; sent after the commit."""
        raise NotImplementedError

    def handed_over(self, message: Message) -> None:
        """A worker has the message. Called once: on delivery, or on the worker's confirmation if its dialect has one."""
        raise NotImplementedError

    def answered(self, message: Message, value: bytes) -> None:
        """A worker answered the message."""
        raise NotImplementedError

    def failed_for_good(self, message: Message, outcome: int, reason: int, value: bytes) -> None:
        """The message ended without an answer; `value` is the worker's error text, if any."""
        raise NotImplementedError

    # Towards a subscriber.
    def published(self, topic: bytes, body: bytes) -> None:
        """A message was published on a topic it subscribed to."""
        raise NotImplementedError


def lasting_id_of(program: bytes, identity: bytes, remote: str) -> bytes:
    """The id that recognises a peer when it reconnects; empty if it gave neither a program id nor an identity."""
    if program:
        return BY_PROGRAM + program
    return BY_IDENTITY + remote.rpartition(":")[0].encode() + b" " + identity if identity else b""


def address_of(listener_no: int, identity: bytes, boot_no: int, connection_no: int) -> bytes:
    """The address for answers to a peer: its identity at its listener, or, for an anonymous one, just this connection."""
    if not identity:
        # A listener number of its own: a peer may claim any identity, and must not receive an anonymous peer's answers by it.
        return b"%c%d.%d" % (listener_no | ANONYMOUS, boot_no, connection_no)
    if len(identity) > WHOLE_IDENTITY_SIZE_MAX:
        return b"%c%c%s" % (SHORTENED, listener_no, shortened(identity))
    return b"%c%s" % (listener_no, identity)


def shortened(identity: bytes) -> bytes:
    """The form of an over-long identity in an address: two different identities never have the same."""
    return identity[:SHORTENED_SIZE] + hashlib.sha256(identity).digest()


def identity_in(address: bytes) -> bytes:
    """The identity in a reply address, shortened if it is over-long; empty for an anonymous client."""
    if not address or address[0] >= ANONYMOUS:
        return b""
    return address[2:] if address[0] == SHORTENED else address[1:]


def client_of(address: str) -> str:
    """The client's identity in the text form of a reply address; empty for an anonymous client (ANONYMOUS)."""
    if address.startswith(ESCAPE):
        return ""
    return address[2:] if address.startswith(chr(SHORTENED)) else address[1:]


def is_client_in(address: bytes, identities: set[bytes]) -> bool:
    """Whether a reply address is that of a client with one of these identities."""
    identity = identity_in(address)
    return len(identity) > 0 and identity in identities


def identities_of(text: str) -> set[bytes]:
    """The identities that a text may denote, as they are and as an address contains them: the text itself, bytes as hex digits, and bytes as
    escapes; none for an empty text."""
    found = identities_in(text)
    for identity in list(found):
        if len(identity) > WHOLE_IDENTITY_SIZE_MAX:
            found.add(shortened(identity))
    return found


def identities_in(text: str) -> set[bytes]:
    found: set[bytes] = set()
    if not text:
        return found
    found.add(text.encode("utf-8", "surrogateescape"))
    if len(text) % 2 == 0 and not text.strip("0123456789abcdefABCDEF"):
        found.add(bytes.fromhex(text))
    parts = text.split(ESCAPE)
    if len(parts) > 1:
        identity = parts[0].encode("utf-8", "surrogateescape")
        for part in parts[1:]:
            if len(part) < 2 or part[:2].strip("0123456789abcdef"):
                return found
            identity += bytes.fromhex(part[:2]) + part[2:].encode("utf-8", "surrogateescape")
        found.add(identity)
    return found
