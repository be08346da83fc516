"""A peer: one connection and the roles it plays, as the core sees it.

The core decides and calls the verbs below; a dialect turns each into bytes of its own protocol. A verb never blocks,
never fails and never calls back into the core: it only writes to the peer's outbox.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dragoman.model.words import NO_REASON

if TYPE_CHECKING:
    from dragoman.model.message import Message
    from dragoman.model.serving import Serving


# Kinds of workers that cannot take every body (`Peer.pickiness`).
TAKES_ANYTHING: Final = 0
TAKES_JSON_JOBS: Final = 1  # emqp: the original program
TAKES_NO_CONTROL_WORDS: Final = 2  # pingpong, plain and package
TAKES_TEXT: Final = 4  # pingpong, json
TAKES_NO_EMPTY_BODY: Final = 8  # rq: the original library

# Set in the first byte of an address (the listener's number) that no other connection can ever have.
ANONYMOUS: Final = 0x80
# The first byte of a lasting id: what it is made of.
BY_PROGRAM: Final = b"p"
BY_IDENTITY: Final = b"i"


class Peer:
    """One connection. Dialects subclass it; the worker's part stays unused for a peer that never serves a queue."""

    def __init__(self, dialect: int, listener: str) -> None:
        self.dialect = dialect
        self.listener = listener
        self.number: int = 0  # worker_no once it serves; unique for ever
        self.identity: bytes = b""
        # Listener and identity, or the connection itself for an anonymous peer: where answers go, and whose line its messages
        # stand in (fairness between clients).
        self.address: bytes = b""
        self.remote: str = ""
        # Of the configuration it was told last, or says it goes by; empty: it has none.
        self.config_version: bytes = b""
        self.takes_one_answer: bool = False  # a REQ peer: a second answer would be taken for that to its next question
        self.is_connected: bool = True
        self.joined_ns: int = 0
        self.last_sign_ns: int = 0

        self.is_worker: bool = False
        self.is_leaving: bool = False  # no new work; what it holds may still be answered
        self.leaving_reason: int = NO_REASON  # why it is, while it is
        self.is_dismissed: bool = (
            False  # the operator dismissed it: nothing new until it is admitted, what it holds it may answer
        )
        self.claims: list[Serving] = []  # while it is dismissed: what it serves when it is admitted
        self.lasting_id: bytes = b""  # the same when it connects again (`lasting_id_of`); empty: nothing is
        self.is_blocked: bool = False  # it does not read what we send: no new work until it does
        # A bit of its own for each kind of worker that cannot take every body; 0: it takes anything. Where it is set, `accepts` is
        # asked before a message is given to it, and its verdict is kept on the message under this bit.
        self.pickiness: int = TAKES_ANYTHING
        self.is_strict: bool = False  # what no worker of the queue can be told is refused at the door
        self.says_delivered: bool = False  # it confirms each message before it answers it
        # It passes messages on to workers elsewhere: when its connection ends it returns them, and none of them is what killed it.
        self.is_relay: bool = False
        self.is_chosen_by_load: bool = False  # the one that holds least comes first, else the one that was idle longest
        self.slots: int = 0
        self.is_hungry: bool = False  # it has free slots, and more waits for it than it was given in one go
        self.serves: list[Serving] = []
        self.turn: int = 0
        self.held: dict[int, Message] = {}
        self.lease_grace_ns: int = (
            0  # added to a message's own time bound: what this worker needs to say that it ran out
        )
        self.lease_ns: int = 0  # bound on a lease whose message has none; 0: the setting's
        self.timed_leases: int = 0  # how many of `held` have a time bound
        self.settled: int = 0
        self.failed: int = 0
        self.last_leased_ns: int = 0

    def near_end(self) -> Peer:
        """Our end of the connection it speaks through: itself, but where several workers share one."""
        return self

    # Towards a worker.
    def deliver(self, message: Message) -> None:
        """Give it a message: it has a lease on it now."""
        raise NotImplementedError

    def withdraw(self, message: Message, reason: int) -> None:
        """Its lease ended without its answer (cancelled, timed out, answered by another)."""
        raise NotImplementedError

    def accepts(self, message: Message) -> bool:
        """Whether a message can be said to it at all; asked only of a picky peer."""
        raise NotImplementedError

    def dismissed(self) -> None:
        """The operator dismissed it. Most dialects have no word for it that would not make it join again at once."""

    def admitted(self) -> None:
        """A dismissal ended: its claims count again."""

    def promoted(self, queue: bytes) -> None:
        """Its claim on a queue waited for an exclusive one to end, or for all others to leave: it counts from now on. Most dialects
        have no word for it."""

    # Towards a client.
    def kept(self, message: Message) -> None:
        """The message is accepted; said after the commit."""
        raise NotImplementedError

    def handed_over(self, message: Message) -> None:
        """A worker has the message: said once, when it is given to one, or when that one confirms it if it does such a thing."""
        raise NotImplementedError

    def answered(self, message: Message, value: bytes) -> None:
        """A worker's answer."""
        raise NotImplementedError

    def failed_for_good(self, message: Message, outcome: int, reason: int, value: bytes) -> None:
        """The message ended without an answer; `value` is what the worker said of it, if one did."""
        raise NotImplementedError

    # Towards a subscriber.
    def published(self, topic: bytes, body: bytes) -> None:
        """A topic it subscribed to has news."""
        raise NotImplementedError


def lasting_id_of(program: bytes, identity: bytes, remote: str) -> bytes:
    """What is the same when a peer connects again; empty where nothing is."""
    if program:
        return BY_PROGRAM + program
    return BY_IDENTITY + remote.rpartition(":")[0].encode() + b" " + identity if identity else b""
