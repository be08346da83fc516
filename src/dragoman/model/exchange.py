"""What a dialect may ask of the core. The core implements it; a dialect sees nothing else of it.

Commands answer with a refusal code of `model.words` (0 is "taken"). Time is `now_ns`, set once per tick.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from dragoman.model.message import Message
    from dragoman.model.peer import Peer
    from dragoman.model.wire_ids import WireIds


class Exchange:
    """The core's face towards dialects."""

    now_ns: int
    ids: WireIds

    def hello(self, peer: Peer) -> None:
        """A peer with an address arrived: answers to what that address asked before a restart may go to it."""
        raise NotImplementedError

    def submit(self, message: Message) -> int:
        """Take a message from its client."""
        raise NotImplementedError

    def cancel(self, message: Message, reason: int) -> int:
        """End a message that is not settled."""
        raise NotImplementedError

    def find(self, wire_id: bytes) -> Message | None:
        """The open message known to workers by this id."""
        raise NotImplementedError

    def by_digits(self, peer: Peer, text: bytes, at: int) -> Message | None:
        """The open message in memory that a worker answers, by the sixteen digits (`WireIds`) that stand at an offset. A worker that presents
        them was given them once, be it in another life of the broker or on another connection. Digits from before there was a key can be
        guessed: they count unless another worker holds the message."""
        raise NotImplementedError

    def by_number(self, number: int) -> Message | None:
        """The open message of this number, if it is in memory; whatever a worker holds or held lately is."""
        raise NotImplementedError

    def fetch(self, number: int) -> Message | None:
        """The open message of this number, brought into memory if it is on disk only: for numbers that were open once."""
        raise NotImplementedError

    def body_of(self, message: Message) -> bytes:
        """Its body, read from disk if it is there only."""
        raise NotImplementedError

    def open_messages(self, dialect: int) -> list[Message]:
        """The open messages in memory that came from clients of a dialect, oldest first."""
        raise NotImplementedError

    def readdress(self, message: Message, client: Peer) -> None:
        """From now on a message's answer goes to this client: it is the one that asked, come back on another connection."""
        raise NotImplementedError

    def cancel_all(self, client: Peer, reason: int) -> int:
        """End everything this connection asked for that is not settled and has not been promised to it; returns how many."""
        raise NotImplementedError

    def lookup(self, client_id: bytes) -> Message | None:
        """The open message its client knows by this id, on disk or not."""
        raise NotImplementedError

    def state_name(self, message: Message) -> str:
        raise NotImplementedError

    def settled_state(self, client_id: bytes) -> str:
        """How a request ended that asked to be told when it was kept; "unknown" for any other."""
        raise NotImplementedError

    def join(self, peer: Peer, queues: list[tuple[int, bytes]]) -> int:
        """A worker serves these (weight, queue) pairs from now on; a second call replaces the first."""
        raise NotImplementedError

    def consume(self, peer: Peer, queue: bytes, rank: int, is_exclusive: bool) -> int:
        """A worker serves this one queue; of the idle workers of a queue the highest rank comes first. Afterwards `is_waiting` of
        its serving tells whether its claim waits (`Peer.promoted` ends that): behind an exclusive one, or, if it is exclusive
        itself, until no other is left. Rank 0 gets no messages, but counts as a worker of the queue."""
        raise NotImplementedError

    def ready(self, peer: Peer, slots: int) -> None:
        """A worker has room for so many more messages."""
        raise NotImplementedError

    def reply(self, peer: Peer, message: Message, value: bytes, is_failure: bool) -> None:
        """A worker's answer to a message it holds or held."""
        raise NotImplementedError

    def delivered(self, peer: Peer, message: Message) -> None:
        """A worker confirms a message it holds; the answer follows."""
        raise NotImplementedError

    def reject(self, peer: Peer, message: Message, value: bytes) -> None:
        """A worker refuses a message it holds or held: that is its end, never a reason to try again."""
        raise NotImplementedError

    def give_back(self, peer: Peer, message: Message) -> None:
        """A worker returns a message it holds: another one may try, if its retries and the queue's workers allow."""
        raise NotImplementedError

    def late(self, peer: Peer, wire_id: bytes) -> None:
        """A worker's answer to something settled already, or never asked: recorded under this id (`WireIds.fact_id`), dropped."""
        raise NotImplementedError

    def leave(self, peer: Peer) -> None:
        """A worker takes nothing new; what it holds it may still answer."""
        raise NotImplementedError

    def lose(self, peer: Peer, reason: int) -> None:
        """A worker is gone: everything it holds goes back to the line."""
        raise NotImplementedError

    def goodbye(self, peer: Peer) -> None:
        """The connection ended, whatever its roles were."""
        raise NotImplementedError

    def unblock(self, peer: Peer) -> None:
        """A worker reads again: feed it."""
        raise NotImplementedError

    def schedule(self, template: Message, interval_ns: int, cron: str, runs: int) -> int:
        """Keep a schedule that makes messages like `template`; its key is the template's `dedupe`, and replaces an earlier one."""
        raise NotImplementedError

    def unschedule(self, key: bytes) -> int:
        """Forget the schedule with this key."""
        raise NotImplementedError

    def is_cron(self, expression: str) -> bool:
        """Whether a cron expression can be read and ever comes due."""
        raise NotImplementedError

    def publish(self, peer: Peer, topic: bytes, body: bytes) -> int:
        """Give what a peer says on a topic to its subscribers; returns how many there were."""
        raise NotImplementedError

    def reserve(self, topic: bytes) -> None:
        """What peers say on this topic is dropped: others act on what the broker says there."""
        raise NotImplementedError

    def announce(self, dialect: int, topic: bytes, body: bytes) -> int:
        """Say something on a topic as the broker, to the subscribers of one dialect: to others it would mean nothing."""
        raise NotImplementedError

    def subscribe(self, peer: Peer, prefix: bytes) -> None:
        raise NotImplementedError

    def unsubscribe(self, peer: Peer, prefix: bytes) -> None:
        raise NotImplementedError

    def subscribe_exactly(self, peer: Peer, topic: bytes) -> None:
        """Hear one topic, not those that begin like it."""
        raise NotImplementedError

    def unsubscribe_exactly(self, peer: Peer, topic: bytes) -> None:
        raise NotImplementedError

    def note(self, peer: Peer, code: str) -> None:
        """Count something odd a peer did (an unknown command, a late reply); kept as a count, not as a fact each."""
        raise NotImplementedError

    def queue_counts(self) -> list[QueueCount]:
        raise NotImplementedError

    def all_workers(self) -> list[Peer]:
        raise NotImplementedError


@final
class QueueCount:
    """A queue in numbers, for a dialect's own status words."""

    def __init__(self, name: str, waiting: int, leased: int, settled: int, wait_mean_ms: int, wait_max_ms: int) -> None:
        self.name = name
        self.waiting = waiting
        self.leased = leased
        self.settled = settled
        self.wait_mean_ms = wait_mean_ms
        self.wait_max_ms = wait_max_ms
