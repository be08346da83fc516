"""The interface of the core for dialects. `Core` implements it; dialects see nothing else of the core.

Commands return a refusal code of `model.enums` (0 is TAKEN: accepted). Time is `now_ns`, which does not change
while facts wait to be written (`Core.set_time`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from dragoman.model.message import Message
    from dragoman.model.peer import Peer
    from dragoman.model.topics import Topics
    from dragoman.model.wire_ids import WireIds


class Exchange:
    """The core as dialects see it."""

    now_ns: int
    ids: WireIds
    topics: Topics  # subscribers; a dialect publishes by `publish`, or as the broker by `Topics.publish`

    def hello(self, peer: Peer) -> None:
        """A peer with an address connected: answers to earlier requests of that address go to it, also those from before a restart."""
        raise NotImplementedError

    def submit(self, message: Message) -> int:
        """Accept a message from its client, or refuse it."""
        raise NotImplementedError

    def cancel(self, message: Message, reason: int) -> int:
        """Cancel a message that is not settled."""
        raise NotImplementedError

    def find(self, wire_id: bytes) -> Message | None:
        """The open message in memory with this id towards workers."""
        raise NotImplementedError

    def by_digits(self, peer: Peer, text: bytes, at: int) -> Message | None:
        """The open message in memory that a worker answers, by the sixteen digits (`WireIds`) at an offset. A worker that presents them was
        sent them, maybe before a restart of the broker or on another connection. Digits from before there was a key can be guessed: they
        count unless another worker holds the message."""
        raise NotImplementedError

    def by_number(self, number: int) -> Message | None:
        """The open message of this number, if it is in memory; every message that a worker holds or held is."""
        raise NotImplementedError

    def fetch(self, number: int) -> Message | None:
        """The open message of this number, loaded if it is on disk only: for numbers of messages that were open before."""
        raise NotImplementedError

    def body_of(self, message: Message) -> bytes:
        """A message's body, read from disk if it is there only."""
        raise NotImplementedError

    def open_messages(self, dialect: int) -> list[Message]:
        """The open messages that came from clients of a dialect, oldest first. Those on disk only are read, for which they must expire: copies
        without body, of the newest EXPIRING_MAX at most. For the start of the broker."""
        raise NotImplementedError

    def readdress(self, message: Message, client: Peer) -> None:
        """Send a message's answer to this client from now on: the requester, on a new connection."""
        raise NotImplementedError

    def cancel_all(self, client: Peer, reason: int) -> int:
        """Cancel every unsettled message of this connection that wants a reply; returns how many."""
        raise NotImplementedError

    def lookup(self, client_id: bytes) -> Message | None:
        """The open message with this id of its client, in memory or on disk only."""
        raise NotImplementedError

    def state_name(self, message: Message) -> str:
        raise NotImplementedError

    def settled_state(self, client_id: bytes) -> str:
        """How a request ended, if it had KEPT_WANTED or its client was away when it ended; "unknown" for any other."""
        raise NotImplementedError

    def join(self, peer: Peer, queues: list[tuple[int, bytes]]) -> int:
        """Have a worker serve these (weight, queue) pairs; a second call replaces the first."""
        raise NotImplementedError

    def consume(self, peer: Peer, queue: bytes, rank: int, is_exclusive: bool) -> int:
        """Have a worker serve this one queue; of a queue's idle workers the highest rank comes first. Afterwards `is_waiting` of its
        serving says whether the claim waits (until `Peer.promoted`): for an exclusive one to end, or, if it is exclusive itself, for
        all others to end. Rank 0 gets no messages, but counts as a worker of the queue."""
        raise NotImplementedError

    def ready(self, peer: Peer, slots: int) -> None:
        """A worker has this many more free slots."""
        raise NotImplementedError

    def busy(self, peer: Peer) -> None:
        """A worker has no free slots any more."""
        raise NotImplementedError

    def reply(self, peer: Peer, message: Message, value: bytes, is_failure: bool) -> None:
        """A worker answers a message it holds or held."""
        raise NotImplementedError

    def delivered(self, peer: Peer, message: Message) -> None:
        """A worker confirms a message it holds; the answer follows."""
        raise NotImplementedError

    def reject(self, peer: Peer, message: Message, value: bytes) -> None:
        """A worker rejects a message it holds or held: that settles it, without a retry."""
        raise NotImplementedError

    def give_back(self, peer: Peer, message: Message) -> None:
        """A worker returns a message it holds: another worker may try it, if its retries and the queue's workers allow."""
        raise NotImplementedError

    def late(self, peer: Peer, wire_id: bytes) -> None:
        """Drop a worker's answer to a message that is settled or unknown, and record it under this id (`WireIds.fact_id`)."""
        raise NotImplementedError

    def leave(self, peer: Peer) -> None:
        """Lease nothing more to a worker; it may still answer what it holds."""
        raise NotImplementedError

    def lose(self, peer: Peer, reason: int) -> None:
        """A worker is gone: end its leases."""
        raise NotImplementedError

    def goodbye(self, peer: Peer) -> None:
        """The connection ended, whatever its roles were."""
        raise NotImplementedError

    def unblock(self, peer: Peer) -> None:
        """A worker reads again: resume leasing to it."""
        raise NotImplementedError

    def schedule(self, template: Message, interval_ns: int, cron: str, runs: int) -> int:
        """Add a schedule that creates messages from `template`; its key is the template's `dedupe`. It replaces an earlier one of that key."""
        raise NotImplementedError

    def unschedule(self, key: bytes, reason: int) -> int:
        """Remove the schedule with this key; `reason` says who removed it."""
        raise NotImplementedError

    def is_cron(self, expression: str) -> bool:
        """Whether a cron expression is valid and ever comes due."""
        raise NotImplementedError

    def publish(self, peer: Peer, topic: bytes, body: bytes) -> int:
        """Send a peer's publish to the subscribers of its topic; returns how many there were."""
        raise NotImplementedError

    def note(self, peer: Peer, code: str) -> None:
        """Count odd behaviour of a peer (an unknown command, a late reply); recorded as a count per second, not as a fact each."""
        raise NotImplementedError

    def queue_counts(self) -> list[QueueCount]:
        raise NotImplementedError

    def all_workers(self) -> list[Peer]:
        raise NotImplementedError


@final
class QueueCount:
    """The counts of a queue, for the status commands of dialects."""

    def __init__(self, name: str, waiting: int, leased: int, settled: int, wait_mean_ms: int, wait_max_ms: int) -> None:
        self.name = name
        self.waiting = waiting
        self.leased = leased
        self.settled = settled
        self.wait_mean_ms = wait_mean_ms
        self.wait_max_ms = wait_max_ms
