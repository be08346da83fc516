"""Stand-ins for a broker, one per dialect: they know one worker, one shape of each message, and fail on any other.

Written from the protocols alone, with a raw socket or libzmq's ROUTER, so that the endpoint is judged by something that is
neither the broker nor itself.
"""

from __future__ import annotations

import json
import selectors
import socket
import struct
import threading
import time
from collections import deque
from collections.abc import Callable

import zmq

LOOK_MS = 20


class StandIn:
    """A thread between start and stop; `faults` holds what it did not expect."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self.client_address = self.worker_address = ""
        self._is_stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> StandIn:
        self.listen()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_stopping.set()
        self._thread.join(10)
        self.close()

    def _run(self) -> None:
        while not self._is_stopping.is_set():
            try:
                self.turn()
            except AssertionError as fault:
                self.faults.append(str(fault))
                return

    def listen(self) -> None: ...
    def turn(self) -> None: ...
    def close(self) -> None: ...


class RouterStandIn(StandIn):
    """Two ROUTER sockets; a dialect says what it does with a client's and a worker's message."""

    def listen(self) -> None:
        self.context = zmq.Context()
        self.clients, self.workers = (self.context.socket(zmq.ROUTER) for _ in range(2))
        for side in (self.clients, self.workers):
            side.setsockopt(zmq.LINGER, 0)
            side.bind("tcp://127.0.0.1:0")
        self.client_address = self.clients.getsockopt_string(zmq.LAST_ENDPOINT)
        self.worker_address = self.workers.getsockopt_string(zmq.LAST_ENDPOINT)
        self.poller = zmq.Poller()
        self.poller.register(self.clients, zmq.POLLIN)
        self.poller.register(self.workers, zmq.POLLIN)
        self.waiting: deque[tuple[bytes, list[bytes]]] = deque()
        self.free: deque[bytes] = deque()
        self.begin()

    def turn(self) -> None:
        for side, _ in self.poller.poll(LOOK_MS):
            take = self.on_client if side is self.clients else self.on_worker
            take(*self.split(side.recv_multipart()))
        while self.waiting and self.free:
            self.hand_over(self.free.popleft(), *self.waiting.popleft())

    @staticmethod
    def split(frames: list[bytes]) -> tuple[bytes, list[bytes]]:
        return frames[0], frames[1:]

    def close(self) -> None:
        for side in (self.clients, self.workers):
            side.close()
        self.context.term()

    def begin(self) -> None: ...
    def on_client(self, client: bytes, said: list[bytes]) -> None: ...
    def on_worker(self, worker: bytes, said: list[bytes]) -> None: ...
    def hand_over(self, worker: bytes, client: bytes, asked: list[bytes]) -> None: ...


class EbusStandIn(RouterStandIn):
    """rids of its own towards the worker."""

    def begin(self) -> None:
        self.askers: dict[bytes, tuple[bytes, bytes]] = {}
        self.slots: dict[bytes, int] = {}

    def on_client(self, client: bytes, said: list[bytes]) -> None:
        assert said[:2] == [b"", b"EBC01"], said
        if said[2] == b"REQ":
            assert (said[3], len(said[4]), said[6:]) == (b"benchqueue", 36, [b"3000"]), said
            self.waiting.append((client, said))
        else:
            assert said[2:] == [b"HEARTBEAT"], said

    def on_worker(self, worker: bytes, said: list[bytes]) -> None:
        assert said[0] == b"EBW01", said
        if said[1] == b"READY":
            assert said[2:] == [b"null", b"benchqueue"], said
            self.free.extend([worker] * 1005)
        elif said[1] == b"REPLY":
            client, rid = self.askers.pop(said[2])
            self.clients.send_multipart([client, b"", b"EBW01", b"REPLY", rid, *said[3:]])
            self.free.append(worker)
        else:
            assert said[1:] == [b"HEARTBEAT"] or said[1:3] == [b"DISCONNECT", b"benchqueue"], said

    def hand_over(self, worker: bytes, client: bytes, asked: list[bytes]) -> None:
        rid = b"r%d" % len(self.askers)
        while rid in self.askers:
            rid += b"+"
        self.askers[rid] = (client, asked[4])
        self.workers.send_multipart([worker, b"EBC01", b"REQ", rid, *asked[5:]])


class Scale0StandIn(RouterStandIn):
    """One PING = one task: a worker that is in the line already gains nothing by another."""

    def begin(self) -> None:
        self.askers: dict[str, tuple[bytes, str]] = {}
        self.count = 0

    def on_client(self, client: bytes, said: list[bytes]) -> None:
        assert (len(said), said[0]) == (3, b"TASK"), said
        header = json.loads(said[1])
        assert header["service"] == "benchqueue", said
        assert abs(header["time"] - time.time()) < 30, said
        self.waiting.append((client, said))

    def on_worker(self, worker: bytes, said: list[bytes]) -> None:
        header = json.loads(said[1])
        if said[0] == b"CONNECT":
            assert header == {"config_type": "JSON", "services": ["benchqueue"]}, said
            config = b'{"config_type": "JSON", "config_version": "v1"}'
            self.workers.send_multipart([worker, b"CONFIG", config, b"{}"])
        elif said[0] == b"PING":
            assert (header["config_version"], header["heartbeat_interval"]) == ("v1", 5), said
            assert abs(header["time"] - time.time()) < 30, said
            self.workers.send_multipart([worker, b"PONG", b'{"time": 1, "config_version": "v1"}'])
            if worker not in self.free:
                self.free.append(worker)
        else:
            assert (len(said), said[0]) == (3, b"TASKREPLY"), said
            client, task_id = self.askers.pop(header["id"])
            answer = json.dumps({"id": task_id, "time": 1, "config_version": "v1"}).encode()
            self.clients.send_multipart([client, b"TASKREPLY", answer, said[2]])

    def hand_over(self, worker: bytes, client: bytes, asked: list[bytes]) -> None:
        self.count += 1
        header = json.loads(asked[1])
        self.askers[f"origin/{self.count}"] = (client, header["id"])
        header |= {"id": f"origin/{self.count}", "time": 1, "config_version": "v1"}
        self.workers.send_multipart([worker, b"TASK", json.dumps(header).encode(), asked[2]])


class PingpongStandIn(RouterStandIn):
    """The plain form; results go to a client in the order it asked."""

    def begin(self) -> None:
        self.holds: dict[bytes, list[bytes | None]] = {}  # worker: the place its result belongs to
        self.due: dict[bytes, deque[list[bytes | None]]] = {}

    def on_client(self, client: bytes, said: list[bytes]) -> None:
        assert (said[0], len(said[1]), len(said)) == (b"", 100, 2), said
        self.waiting.append((client, said))

    def on_worker(self, worker: bytes, said: list[bytes]) -> None:
        assert (len(said), said[0]) == (2, b""), said
        if said[1] == b"READY":
            self.free.append(worker)
        elif said[1] != b"PING":
            place = self.holds.pop(worker)
            place[1] = said[1]
            self.send_due(place[0] or b"")
            self.free.append(worker)
        self.workers.send_multipart([worker, b"", b"PONG"])

    def hand_over(self, worker: bytes, client: bytes, asked: list[bytes]) -> None:
        place: list[bytes | None] = [client, None]
        self.due.setdefault(client, deque()).append(place)
        self.holds[worker] = place
        self.workers.send_multipart([worker, b"", asked[1]])

    def send_due(self, client: bytes) -> None:
        line = self.due[client]
        while line and line[0][1] is not None:
            result = line.popleft()[1]
            assert result is not None
            self.clients.send_multipart([client, b"", result])


class RqStandIn(StandIn):
    """One port for both sides; operations are told apart by their bytes, as the originals send them."""

    def listen(self) -> None:
        self.server = socket.create_server(("127.0.0.1", 0))
        self.client_address = self.worker_address = f"tcp://127.0.0.1:{self.server.getsockname()[1]}"
        self.ready = selectors.DefaultSelector()
        self.ready.register(self.server, selectors.EVENT_READ)
        self.bytes: dict[socket.socket, bytes] = {}
        self.askers: dict[int, tuple[socket.socket, bytes]] = {}
        self.consumers: deque[socket.socket] = deque()

    def turn(self) -> None:
        for key, _ in self.ready.select(LOOK_MS / 1000):
            if key.fileobj is self.server:
                peer, _ = self.server.accept()
                peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self.ready.register(peer, selectors.EVENT_READ)
                self.bytes[peer] = b""
            elif isinstance(key.fileobj, socket.socket):
                self.take(key.fileobj)

    def take(self, peer: socket.socket) -> None:
        data = peer.recv(65536)
        if not data:
            self.ready.unregister(peer)
            peer.close()
            return
        have = self.bytes[peer] + data
        while (size := self.operation(peer, have)) > 0:
            have = have[size:]
        self.bytes[peer] = have

    def operation(self, peer: socket.socket, have: bytes) -> int:
        """Act on the first operation; 0 when it is not whole yet."""
        consume = b"\x01\xa0\x0abenchqueue\x62"
        if have[:1] == b"\x16":
            peer.shutdown(socket.SHUT_WR)
            return 1
        if have[:1] in (b"", b"\x01") and len(have) < 18:
            return self.short_operation(have)
        if have.startswith(consume):
            assert have[16:19] == b"\x40\x14\x14", have
            self.consumers.append(peer)
            peer.sendall(b"\x01\x60\x00\x01\xa0\x0abenchqueue\x18")
            return 19
        return self.with_id(peer, have)

    def short_operation(self, have: bytes) -> int:
        return 7 if have[1:2] == b"\x80" and have[6:7] == b"\x0d" and self.delivered(have[2:6]) else 0

    def with_id(self, peer: socket.socket, have: bytes) -> int:
        assert have[:2] == b"\x01\x80", have[:40]
        number, kind = have[2:6], have[6]
        if kind == 0x0D:
            return 7 if self.delivered(number) else 0
        at = 6
        if kind == 0xA0:
            assert have[7:18] == b"\x0abenchqueue", have[:40]
            at = 18
        if len(have) < at + 5:
            return 0
        assert have[at] == 0xE0, have[:40]
        end = at + 5 + int.from_bytes(have[at + 1 : at + 5], "big")
        if len(have) <= end:
            return 0
        body = have[at:end]
        if kind == 0xA0:
            assert have[end] == 0x0A, have[: end + 1]
            self.hand_over(peer, number, body)
        else:
            assert have[end] == 0x0B, have[: end + 1]
            source, asked = self.askers.pop(int.from_bytes(number, "big"))
            source.sendall(b"\x01\x80" + asked + body + b"\x0b")
        return end + 1

    def delivered(self, number: bytes) -> bool:
        source, asked = self.askers[int.from_bytes(number, "big")]
        source.sendall(b"\x01\x80" + asked + b"\x0d")
        return True

    def hand_over(self, source: socket.socket, asked: bytes, body: bytes) -> None:
        number = next(n for n in range(65536) if n not in self.askers)
        self.askers[number] = (source, asked)
        self.consumers.rotate(-1)
        self.consumers[0].sendall(b"\x01\x60\x00\x01" + body + b"\x80" + struct.pack(">I", number) + b"\x0a")

    def close(self) -> None:
        for key in list(self.ready.get_map().values()):
            if isinstance(key.fileobj, socket.socket):
                key.fileobj.close()
        self.ready.close()


STAND_INS: dict[str, Callable[[], StandIn]] = {
    "rq": RqStandIn,
    "ebus": EbusStandIn,
    "scale0": Scale0StandIn,
    "pingpong": PingpongStandIn,
}
