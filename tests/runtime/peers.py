"""Peers of a running broker: pyzmq's sockets for what programs do, plain TCP for what only broken ones do."""

from __future__ import annotations

import itertools
import json
import socket
import time
from typing import Any

import zmq

from dragoman.wire.zmtp.frames import encode_message
from tests.runtime.daemon import Daemon
from tests.wire.zmtp.dialogue import opening

WAIT_S = 60.0
LINGER_MS = 2000
VERSION = b"eMQP/1.0"
_ids = itertools.count(1)


def new_id() -> bytes:
    return b"id-%d" % next(_ids)


class Peer:
    """A pyzmq socket that speaks eMQP. `hear` fails when nothing comes in time, so that no test hangs."""

    def __init__(self, broker: Daemon, listener: str, kind: int = zmq.DEALER, identity: bytes = b"") -> None:
        self.socket: zmq.Socket[bytes] = zmq.Context.instance().socket(kind)
        # Not 0: libzmq aborts the process if the connection ends while it drops the rest of a message (session_base.cpp).
        self.socket.linger = LINGER_MS
        self.socket.sndhwm = self.socket.rcvhwm = 0
        if identity:
            self.socket.routing_id = identity
        self.socket.connect(broker.address(listener))

    def say(self, *frames: bytes) -> None:
        # A REQ socket brings its own empty frame.
        envelope = [] if self.socket.type == zmq.REQ else [b""]
        self.socket.send_multipart([*envelope, VERSION, *frames])

    def hear(self, wait_s: float = WAIT_S) -> list[bytes]:
        """The next message from the command on."""
        assert self.socket.poll(wait_s * 1000), f"nothing came within {wait_s:g} s"
        frames = self.socket.recv_multipart()
        return frames[frames.index(VERSION) + 1 :]

    def hear_word(self, *commands: bytes, wait_s: float = WAIT_S) -> list[bytes]:
        """The next message that says one of these; heartbeats and the like are passed over."""
        end_s = time.monotonic() + wait_s
        while True:
            frames = self.hear(max(end_s - time.monotonic(), 0.001))
            if frames[0] in commands:
                return frames

    def hears_nothing(self, wait_s: float) -> bool:
        return not self.socket.poll(wait_s * 1000)

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class Client(Peer):
    def __init__(self, broker: Daemon, kind: int = zmq.DEALER, identity: bytes = b"") -> None:
        super().__init__(broker, "emqp.client", kind, identity)

    def __enter__(self) -> Client:
        return self

    def request(self, queue: bytes, headers: bytes = b"", body: bytes = b"{}", request_id: bytes = b"") -> bytes:
        request_id = request_id or new_id()
        self.say(b"REQUEST", request_id, queue, headers, body)
        return request_id

    def keep(self, queue: bytes, body: bytes = b"{}") -> bytes:
        """A request that the broker has kept when this returns."""
        request_id = self.request(queue, b"ack-requested", body)
        self.wait_kept(request_id)
        return request_id

    def wait_kept(self, request_id: bytes) -> None:
        while self.hear_word(b"ACK")[2] != request_id:
            pass

    def result(self, request_id: bytes, wait_s: float = WAIT_S) -> bytes:
        """The raw value of the answer to a request."""
        end_s = time.monotonic() + wait_s
        while True:
            frames = self.hear_word(b"REPLY", wait_s=max(end_s - time.monotonic(), 0.001))
            if len(frames) == 4 and frames[3] == request_id:
                return frames[2]

    def refusal(self, request_id: bytes) -> str:
        """The code of the error that answers a request."""
        return error_of(self.result(request_id))

    def settled_id(self) -> bytes:
        """The id of the next request that is answered."""
        while True:
            frames = self.hear_word(b"REPLY")
            if len(frames) == 4:
                return frames[3]


class Worker(Peer):
    """Takes anything; says HEARTBEAT whenever it hears one, which is only while a test listens to it."""

    def __init__(self, broker: Daemon, queue: bytes, slots: int = 1, identity: bytes = b"") -> None:
        super().__init__(broker, "emqp.worker", zmq.DEALER, identity)
        self.say(b"INFORM", new_id(), b'[[10,"%s"]]' % queue, b"worker", b"bytes")
        self.hear_word(b"ACK")
        self.ready(slots)

    def __enter__(self) -> Worker:
        return self

    def ready(self, slots: int = 1) -> None:
        for _ in range(slots):
            self.say(b"READY", new_id())

    def take(self, wait_s: float = WAIT_S) -> tuple[bytes, bytes]:
        """The next request: id and body."""
        end_s = time.monotonic() + wait_s
        while True:
            frames = self.hear(max(end_s - time.monotonic(), 0.001))
            if frames[0] == b"REQUEST":
                return frames[1], frames[4]
            if frames[0] == b"HEARTBEAT":
                self.say(b"HEARTBEAT", new_id(), b"1.0")

    def answer(self, request_id: bytes, value: bytes = b'{"value":1}') -> None:
        self.say(b"REPLY", new_id(), value, request_id)

    def serve(self, count: int) -> list[bytes]:
        """Take and answer so many requests; their ids."""
        done = []
        for _ in range(count):
            request_id, _ = self.take()
            self.answer(request_id)
            self.ready()
            done.append(request_id)
        return done


class RawPeer:
    """A TCP connection that says whatever bytes it is given."""

    def __init__(self, broker: Daemon, listener: str, receive_buffer: int = 0, source: str = "") -> None:
        self.socket = socket.socket()
        if source:
            self.socket.bind((source, 0))
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(WAIT_S)
        self.socket.connect(broker.place(listener))

    def greet(self, kind: bytes = b"DEALER", identity: bytes = b"") -> None:
        """The whole ZMTP opening; what the broker says to it is left unread."""
        self.socket.sendall(opening(30, kind, identity))

    def say(self, *frames: bytes) -> None:
        self.socket.sendall(encode_message([b"", VERSION, *frames]))

    def inform(self, queue: bytes, slots: int) -> None:
        self.say(b"INFORM", new_id(), b'[[10,"%s"]]' % queue, b"worker", b"bytes")
        self.socket.sendall(encode_message([b"", VERSION, b"READY", b"r"]) * slots)

    def hear_text(self, text: bytes) -> bytes:
        """Read until these bytes have come; all there was."""
        heard = b""
        while text not in heard:
            data = self.socket.recv(1000)
            assert data, "the connection ended"
            heard += data
        return heard

    def is_ended(self) -> bool:
        """Reads up to the end of the connection; an assertion error when there is none in time."""
        try:
            while self.socket.recv(1 << 20):
                pass
        except ConnectionError:
            return True
        except TimeoutError as error:
            raise AssertionError("the connection stays open") from error
        return True

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> RawPeer:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def error_of(value: bytes) -> str:
    answer: Any = json.loads(value)
    assert isinstance(answer, dict)
    assert "error" in answer, answer
    return str(answer["error"]["type"])


def round_trip_ms(client: Client, worker: Worker, queue: bytes) -> float:
    """How long one request takes to a worker and back."""
    began_s = time.monotonic()
    request_id = client.request(queue, b"reply-requested")
    worker.serve(1)
    client.result(request_id)
    return (time.monotonic() - began_s) * 1000


def exchange(client: Client, worker: Worker, queue: bytes, count: int, body_size: int) -> None:
    """So many round trips at once."""
    for _ in range(count):
        client.request(queue, b"reply-requested", b"x" * body_size)
    worker.serve(count)
    for _ in range(count):
        client.settled_id()
