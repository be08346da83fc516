"""The ping-pong dialogue from its page alone, in the document's plain form and, for workers, the json one: pyzmq and nothing of dragoman.

Frames: an empty one, then a word or a body. Everybody shares one queue; results carry no id and come in the order of asking.
"""

from __future__ import annotations

import json
import time
from typing import Any

import zmq

WAIT_S = 60.0
PING_S = 1.0


class Peer:
    """A DEALER with the empty frame in front."""

    def __init__(self, address: str) -> None:
        self.socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.DEALER)
        self.socket.linger = 0
        self.socket.connect(address)

    def say(self, *frames: bytes) -> None:
        self.socket.send_multipart([b"", *frames])

    def hear(self, wait_s: float = WAIT_S) -> list[bytes]:
        if not self.socket.poll(max(int(wait_s * 1000), 1)):
            raise TimeoutError(f"nothing heard for {wait_s:g} s")
        frames = self.socket.recv_multipart()
        assert frames[0] == b"", frames
        return frames[1:]

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class Client(Peer):
    """Sends orders and counts: the n-th result is that of the n-th order."""

    def __init__(self, listeners: dict[str, str]) -> None:
        super().__init__(listeners["pingpong.client"])
        self.asked = 0
        self.heard = 0
        self.outcomes: dict[int, tuple[str, bytes]] = {}

    def ask(self, queue: str, body: bytes) -> int:
        assert queue == "pingpong", "there is one queue"
        self.say(body)
        self.asked += 1
        return self.asked

    def outcome(self, order_no: int, wait_s: float = WAIT_S) -> tuple[str, bytes]:
        """("answered", value) or ("refused", reason)."""
        ends = time.monotonic() + wait_s
        while order_no not in self.outcomes:
            frames = self.hear(ends - time.monotonic())
            self.heard += 1
            is_error = len(frames) == 2 and frames[0] == b"ERROR"
            self.outcomes[self.heard] = ("refused", frames[1]) if is_error else ("answered", frames[0])
        return self.outcomes.pop(order_no)


class Worker(Peer):
    """READY, then a job at a time; PINGs each second while it waits for one."""

    def __init__(self, listeners: dict[str, str], queue: str = "pingpong") -> None:
        assert queue == "pingpong", "there is one queue"
        super().__init__(listeners["pingpong.worker"])
        self.jobs: list[bytes] = []
        self.say(b"READY")
        while not self.hear_one():
            pass

    def hear_one(self) -> bool:
        """Hear one message, keep it if it is a job, and tell whether it was a PONG."""
        frames = self.hear()
        # More than one frame: the same job once more, in the package form that this worker does not speak.
        if len(frames) == 1 and frames[0] != b"PONG":
            self.jobs.append(frames[0])
        return frames == [b"PONG"]

    def take(self, wait_s: float = WAIT_S) -> tuple[int, bytes]:
        """The next job: no id, and its body."""
        ends = time.monotonic() + wait_s
        next_ping = time.monotonic() + PING_S
        while not self.jobs:
            now = time.monotonic()
            if now >= ends:
                raise TimeoutError(f"no job for {wait_s:g} s")
            if now >= next_ping:
                self.ping()
                next_ping = now + PING_S
            if self.socket.poll(max(int((min(ends, next_ping) - now) * 1000), 1)):
                self.hear_one()
        return 0, self.jobs.pop(0)

    def ping(self) -> None:
        self.say(b"PING")

    def answer(self, _: int, value: bytes) -> None:
        self.say(value)


class JsonWorker(Peer):
    """The json form: one frame and no delimiter. It can say that a job failed, which the plain form cannot."""

    def __init__(self, listeners: dict[str, str], queue: str = "pingpong") -> None:
        super().__init__(listeners["pingpong.worker"])
        self.tell(status="PING")

    def tell(self, **fields: str) -> None:
        self.socket.send(json.dumps(fields).encode())

    def take(self, wait_s: float = WAIT_S) -> tuple[str, bytes]:
        """The next job: its token and its text."""
        ends = time.monotonic() + wait_s
        while time.monotonic() < ends:
            if self.socket.poll(int(PING_S * 1000)):
                told = json.loads(self.socket.recv())
                if told["status"] == "WORK":
                    return told["token"], told["job"].encode()
            else:
                self.tell(status="PING")
        raise TimeoutError(f"no job for {wait_s:g} s")

    def answer(self, token: str, value: bytes) -> None:
        self.tell(status="SUCCESS", token=token, result=value.decode())

    def refuse(self, token: str, reason: bytes) -> None:
        self.tell(status="ERROR", token=token, msg=reason.decode())
