"""Records the facts of a replay: which message is which, which worker has leased what, and the history of each message.

Numbers are the replayed broker's own; names are the story's. A worker's hands are its leases in order: it receives messages in the same
order, so its n-th arrival belongs to its n-th hand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dragoman_lab.replay.play.stage import Fact
from dragoman_lab.replay.telling import TOLD, Told, tell


@dataclass
class Hand:
    """One lease, from its worker's view."""

    message: str
    is_open: bool = True
    is_answered: bool = False


class Notebook:
    """`on_lease` is called for each lease. Until `has_begun` only acceptances are part of a history."""

    def __init__(self, has_begun: bool, on_lease: Callable[[str, str], None]) -> None:
        self.told = Told()
        self.has_begun = has_begun
        self.coming = ""  # the worker of the next worker_joined fact
        self.asking = ""  # the message of the next accepted fact
        self.numbers: dict[str, int] = {}  # of messages
        self.worker_numbers: dict[str, int] = {}  # of connected workers
        self.gives: dict[str, int] = {}  # how often a message was given out
        self._on_lease = on_lease
        self._names: dict[int, str] = {}
        self._worker_names: dict[int, str] = {}
        self._hands: dict[str, list[Hand]] = {}
        self._open: dict[str, Hand] = {}  # message → its open lease

    def on_fact(self, fact: Fact) -> None:
        name = fact["fact"]
        if name == "worker_joined" and fact["worker_no"] not in self._worker_names:
            self._worker_names[fact["worker_no"]] = self.coming
            self.worker_numbers[self.coming] = fact["worker_no"]
        elif name == "worker_left":
            self.worker_numbers.pop(self._worker_names.get(fact["worker_no"], ""), None)
        elif name == "accepted" and self.asking:
            self._names[fact["message_no"]] = self.asking
            self.numbers[self.asking] = fact["message_no"]
            self.asking = ""
        if name in TOLD and fact["message_no"] in self._names:
            self._note(self._names[fact["message_no"]], name, fact)

    def _note(self, message: str, name: str, fact: Fact) -> None:
        worker = self._worker_names.get(fact.get("worker_no", 0), "")
        if name == "leased" and worker:
            self._open[message] = hand = Hand(message)
            self._hands.setdefault(worker, []).append(hand)
        elif name in ("released", "closed", "quarantined") and message in self._open:
            self._open.pop(message).is_open = False
        if name == "leased" and self.has_begun:
            self.gives[message] = self.gives.get(message, 0) + 1
            self.told.leases.append((message, worker))
        if name == "leased" and worker:
            self._on_lease(message, worker)
        if self.has_begun or name == "accepted":
            self.told.lives.setdefault(message, []).append(tell(fact, worker))

    def hands_of(self, worker: str, arrivals: list[bytes]) -> list[tuple[Hand, bytes]]:
        """A worker's leases, each with the key that its reply must contain."""
        return list(zip(self._hands.get(worker, []), arrivals, strict=False))

    def is_held(self, message: str) -> bool:
        return message in self._open

    def is_over(self, message: str) -> bool:
        return self.told.lives.get(message, [""])[-1].startswith("closed")
