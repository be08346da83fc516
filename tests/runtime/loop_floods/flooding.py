"""What the floods of all dialects have in common: sizes, and peers that say many messages in one write."""

from __future__ import annotations

import threading
from contextlib import suppress

from dragoman.wire.zmtp.frames import encode_message
from tests.runtime.daemon import SOCKET_TYPES, Daemon
from tests.runtime.peers import RawPeer
from tests.waiting import wait_for

LARGE = 8 * 1024 * 1024
# To look through the JSON of 8 MiB takes more than a callback may (docs/decisions/0041).
LARGE_JSON = 4 * 1024 * 1024
WAIT_S = 120.0


class Flood(RawPeer):
    """A ZMTP peer that has greeted. `pour` says one message many times in one write."""

    def __init__(self, broker: Daemon, listener: str, identity: bytes = b"", kind: bytes = b"") -> None:
        super().__init__(broker, listener)
        self.socket.settimeout(WAIT_S)
        self.greet(kind or SOCKET_TYPES.get(listener, b"DEALER"), identity)

    def __enter__(self) -> Flood:
        return self

    def pour(self, *frames: bytes, times: int = 1) -> None:
        self.socket.sendall(encode_message(list(frames)) * times)

    def pour_all(self, messages: list[list[bytes]]) -> None:
        self.socket.sendall(b"".join([encode_message(frames) for frames in messages]))

    def swallow(self) -> None:
        """Read whatever comes from now on, beside what is said: one that does not read is not read from, either."""
        threading.Thread(target=self._read_all, daemon=True).start()

    def _read_all(self) -> None:
        with suppress(OSError):
            while self.socket.recv(1 << 20):
                pass

    def drain(self, text: bytes) -> None:
        """Read until a text has come: everything before it has been answered by then."""
        tail = b""
        while text not in tail:
            data = self.socket.recv(1 << 20)
            assert data, "the connection ended"
            tail = tail[-len(text) :] + data


def settle(broker: Daemon, accepted: int) -> None:
    wait_for("everything to be taken", lambda: broker.ask("counters")["accepted"] >= accepted, WAIT_S)


def wait_count(broker: Daemon, name: str, count: int) -> None:
    """Until a counter has exactly this value."""
    wait_for(f"{count} {name}", lambda: broker.ask("counters")[name] == count, WAIT_S)


def wait_open(broker: Daemon, count: int) -> None:
    """Until so many messages, or fewer, are not settled."""

    def is_done() -> bool:
        counters = broker.ask("counters")
        return bool(counters["accepted"] - counters["settled"] <= count)

    wait_for(f"{count} open messages", is_done, WAIT_S)
