"""pyzmq's sockets in the ping-pong dialogue, against a broker process."""

from __future__ import annotations

import time

import zmq

from tests.runtime.daemon import FREE, Daemon

WAIT_S = 60.0
PONG = [b"", b"PONG"]
LISTEN = {
    "pingpong.client": FREE,
    "pingpong.worker": FREE,
    "emqp.client": FREE,
    "emqp.worker": FREE,
    **dict.fromkeys(
        [
            "scale0.client",
            "scale0.worker",
            "scale0.publish",
            "emqp.admin",
            "emqp.publish",
            "emqp.subscribe",
            "ebus.client",
            "ebus.worker",
            "ebus.publish",
            "ebus.subscribe",
            "rq",
        ],
        "off",
    ),
}


class Socket:
    """One pyzmq socket; `hear` fails when nothing comes in time, so that no test hangs."""

    def __init__(self, broker: Daemon, listener: str, kind: int = zmq.DEALER, identity: bytes = b"") -> None:
        self.socket: zmq.Socket[bytes] = zmq.Context.instance().socket(kind)
        self.socket.linger = 0
        if identity:
            self.socket.routing_id = identity
        self.socket.connect(broker.address(listener))

    def send(self, *frames: bytes) -> None:
        self.socket.send_multipart(list(frames))

    def hear(self, wait_s: float = WAIT_S) -> list[bytes]:
        assert self.socket.poll(wait_s * 1000), f"nothing came within {wait_s:g} s"
        return self.socket.recv_multipart()

    def hears_nothing(self, wait_s: float) -> bool:
        return not self.socket.poll(wait_s * 1000)

    def close(self) -> None:
        self.socket.close()


class ZmqWorker(Socket):
    def __init__(self, broker: Daemon, identity: bytes = b"") -> None:
        super().__init__(broker, "pingpong.worker", identity=identity)
        self.send(b"", b"READY")
        assert self.hear() == PONG

    def job(self, wait_s: float = WAIT_S) -> list[bytes]:
        """The next message that is not PONG; it PINGs every second until then."""
        end_s = time.monotonic() + wait_s
        while True:
            remaining_s = end_s - time.monotonic()
            assert remaining_s > 0, f"no job within {wait_s:g} s"
            if not self.socket.poll(min(remaining_s, 1.0) * 1000):
                self.send(b"", b"PING")
                continue
            frames = self.socket.recv_multipart()
            if frames != PONG:
                return frames

    def serve(self, count: int) -> None:
        """Answer so many jobs with their own body."""
        for _ in range(count):
            self.send(b"", self.job()[1])


class ZmqClient(Socket):
    def __init__(self, broker: Daemon, kind: int = zmq.DEALER, identity: bytes = b"") -> None:
        super().__init__(broker, "pingpong.client", kind, identity)

    def order(self, body: bytes) -> None:
        self.send(b"", body)
