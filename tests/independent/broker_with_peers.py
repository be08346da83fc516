"""A running broker with every listener open, and the peers that a test brings to it."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

from dragoman.runtime.config.listeners import LISTENERS
from tests.independent.all_peers import PEERS
from tests.runtime.daemon import FREE, Daemon
from tests.waiting import wait_for


class BrokerWithPeers:
    """The broker's process. Peers are closed by `clear`, which ends every test."""

    def __init__(self, data: Path, *settings: str) -> None:
        self.daemon = Daemon(data, *settings, listen=dict.fromkeys(LISTENERS, FREE)).start()
        self.peers: list[Any] = []
        self.numbers = itertools.count(1)

    @property
    def listeners(self) -> dict[str, str]:
        return self.daemon.listen

    def client(self, dialect: str) -> Any:
        return self.add(PEERS[dialect].Client(self.listeners))

    def worker(self, dialect: str, queue: str) -> Any:
        return self.add(PEERS[dialect].Worker(self.listeners, queue))

    def publisher(self, dialect: str) -> Any:
        return self.add(PEERS[dialect].Publisher(self.listeners))

    def subscriber(self, dialect: str, topic: str) -> Any:
        return self.add(PEERS[dialect].Subscriber(self.listeners, topic))

    def add(self, peer: Any) -> Any:
        self.peers.append(peer)
        return peer

    def queue(self, *dialects: str) -> str:
        """A queue of the test's own; the ping-pong dialogue knows only one."""
        return "pingpong" if "pingpong" in dialects else f"queue-{next(self.numbers)}"

    def wait_waiting(self, queue: str, count: int) -> None:
        """Until so many messages stand in a line."""

        def is_so() -> bool:
            return any(q["queue"] == queue and q["waiting"] == count for q in self.daemon.ask("queues")["queues"])

        wait_for(f"{count} messages in {queue}", is_so)

    def clear(self) -> None:
        """Everybody leaves, and what nobody will do any more is thrown away."""
        for peer in self.peers:
            peer.close()
        self.peers.clear()
        wait_for("all workers to be gone", lambda: self.daemon.ask("workers")["total"] == 0)
        for queue in self.daemon.ask("queues")["queues"]:
            if queue["waiting"]:
                self.daemon.ask("purge", queue=queue["queue"])

    def end(self) -> None:
        self.daemon.kill()
