"""The endpoint where no C++ compiler is there: the same dialogue, flags and line of JSON as `peer.cpp`, much slower.

It is itself the bottleneck, so its figures compare contenders only roughly; the report says so.
"""

from __future__ import annotations

import argparse
import json
import os
import select
import socket
import time
import uuid
from pathlib import Path

READ_SIZE = 256 * 1024
STALL_S = 20.0
BEAT_S = 2.0
VALUE = b'{"value": 1}'


def pack(*frames: bytes) -> bytes:
    """Return one message's frames in ZMTP's wire form."""
    wire = []
    for left, frame in zip(range(len(frames) - 1, -1, -1), frames, strict=True):
        more = 1 if left else 0
        size = len(frame)
        wire.append(bytes((more, size)) if size < 256 else bytes((more | 2,)) + size.to_bytes(8, "big"))
        wire.append(frame)
    return b"".join(wire)


def say(command: bytes, *frames: bytes) -> bytes:
    return pack(b"", b"eMQP/1.0", command, new_id(), *frames)


def new_id() -> bytes:
    return str(uuid.uuid4()).encode()


class Connection:
    """One DEALER connection; `feed` turns bytes into messages."""

    def __init__(self, address: str, is_worker: bool) -> None:
        host, _, port = address.removeprefix("tcp://").rpartition(":")
        self.socket = socket.create_connection((host, int(port)))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.is_worker = is_worker
        self.is_greeted = self.is_shaken = self.is_informed = self.is_acknowledged = False
        self.have, self.out = bytearray(), bytearray()
        greeting = b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32)
        body = b"\5READY" + b"\x0bSocket-Type" + b"\0\0\0\6DEALER" + b"\x08Identity" + b"\0\0\0\x24" + new_id()
        self.out += greeting + bytes((4, len(body))) + body

    def flush(self) -> None:
        # Blocking is right here: what the broker does not take now it cannot answer either.
        self.socket.sendall(self.out)
        self.out.clear()

    def feed(self) -> list[list[bytes]]:
        data = self.socket.recv(READ_SIZE)
        if not data:
            raise SystemExit("peer: connection closed by the broker")
        self.have += data
        have, at, messages, frames = bytes(self.have), 0, [], []
        if not self.is_greeted:
            if len(have) < 64:
                return []
            self.is_greeted, at = True, 64
        done, end = at, len(have)
        while at + 2 <= end:
            flags, size, head = have[at], have[at + 1], 2
            if flags & 2:
                if at + 9 > end:
                    break
                size, head = int.from_bytes(have[at + 1 : at + 9], "big"), 9
            if at + head + size > end:
                break
            frame = have[at + head : at + head + size]
            at += head + size
            if flags & 4:
                self.is_shaken |= frame.startswith(b"\5READY")
                done = at
                continue
            frames.append(frame)
            if not flags & 1:
                messages.append(frames)
                frames, done = [], at
        del self.have[:done]
        return messages


class Peer:
    """Clients and workers of one broker in one thread."""

    def __init__(self, given: argparse.Namespace) -> None:
        self.given = given
        self.body = (b"x" * given.body)[: given.body]
        self.queue = given.queue.encode()
        self.headers = b"ack-requested" if given.mode == "fill" else b"reply-requested"
        worker_count = 0 if given.mode == "fill" else given.workers
        client_count = 0 if given.mode == "drain" else given.clients
        self.clients = [Connection(given.client_addr, False) for _ in range(client_count)]
        self.connections = [Connection(given.worker_addr, True) for _ in range(worker_count)] + self.clients
        self.begun_s: dict[bytes, float] = {}
        self.latencies_s: list[float] = []
        self.seen: set[bytes] = set()
        self.sent = self.results = self.handed = self.trips = self.duplicates = self.turn = 0
        self.is_measuring = self.is_ended = False
        self.first: tuple[float, ...] = ()
        self.last: tuple[float, ...] = ()

    def run(self) -> dict[str, object]:
        poll = select.epoll()
        by_fd = {connection.socket.fileno(): connection for connection in self.connections}
        for connection in self.connections:
            poll.register(connection.socket, select.EPOLLIN)
            connection.flush()
        moved_s = beat_s = time.perf_counter()
        start_s = 0.0
        while not (self.is_ended and self.is_settled()):
            events = poll.poll(0.1)
            now_s = time.perf_counter()
            for fd, _ in events:
                moved_s = now_s
                connection = by_fd[fd]
                for frames in connection.feed():
                    self.on_message(connection, frames, now_s)
                self.inform_once(connection)
            if not start_s and self.is_ready():
                start_s = now_s
                for number in range(self.given.in_flight if self.clients else 0):
                    self.ask(self.clients[number % len(self.clients)])
            if start_s and not self.is_ended:
                self.step_window(now_s, start_s)
            if now_s - beat_s > BEAT_S and self.given.mode != "proxy":
                beat_s = now_s
                for connection in self.connections:
                    if connection.is_worker and connection.is_informed:
                        connection.out += say(b"HEARTBEAT", b"0.0")
            if now_s - moved_s > STALL_S:
                raise SystemExit(f"peer: stalled: sent {self.sent}, handed over {self.handed}, results {self.results}")
            for connection in self.connections:
                if connection.out:
                    connection.flush()
        return self.result()

    def is_ready(self) -> bool:
        needs_ack = self.given.mode != "proxy"
        return all(c.is_shaken and (c.is_acknowledged or not (c.is_worker and needs_ack)) for c in self.connections)

    def is_settled(self) -> bool:
        mode = self.given.mode
        return mode == "drain" or (self.results == self.sent and (mode == "fill" or self.handed == self.sent))

    def inform_once(self, connection: Connection) -> None:
        if connection.is_worker and connection.is_shaken and not connection.is_informed and self.given.mode != "proxy":
            connection.is_informed = True
            connection.out += say(b"INFORM", b'[[10, "%s"]]' % self.queue, b"worker", b"bytes")

    def step_window(self, now_s: float, start_s: float) -> None:
        if not self.is_measuring and now_s - start_s >= self.given.warmup:
            self.is_measuring, self.trips = True, 0
            self.first = (now_s, time.process_time(), processes_s(self.given.watch), processes_s(0))
        is_over = 0 < self.given.seconds <= now_s - self.first[0] if self.is_measuring else False
        if self.is_measuring and (is_over or 0 < self.given.trips <= self.trips):
            ours = (time.perf_counter(), time.process_time(), processes_s(self.given.watch), processes_s(0))
            self.last, self.is_ended, self.trips_at_end = ours, True, self.trips

    def ask(self, connection: Connection) -> None:
        if not self.given.seconds and self.sent >= self.given.trips:
            return
        request_id = new_id()
        connection.out += pack(b"", b"eMQP/1.0", b"REQUEST", request_id, self.queue, self.headers, self.body)
        self.begun_s[request_id] = time.perf_counter()
        self.sent += 1

    def on_message(self, connection: Connection, frames: list[bytes], now_s: float) -> None:
        envelope = frames[:1] if self.given.mode == "proxy" and connection.is_worker else []
        command = frames[len(envelope) + 2]
        if connection.is_worker and command == b"REQUEST":
            self.answer(connection, envelope, frames[len(envelope) + 3])
        elif command == b"ACK" and connection.is_worker:
            connection.is_acknowledged = True
            for _ in range(self.given.slots):
                connection.out += say(b"READY")
        elif command == b"REPLY" and len(frames) == 5:
            self.handed += 1
        elif command in (b"REPLY", b"ACK"):
            self.on_result(connection, frames[-1], now_s)
        elif command != b"HEARTBEAT":
            raise SystemExit(f"peer: unexpected {command!r}")

    def answer(self, connection: Connection, envelope: list[bytes], request_id: bytes) -> None:
        if envelope:
            for frames in ([request_id], [VALUE, request_id]):
                connection.out += pack(*envelope, b"", b"eMQP/1.0", b"REPLY", new_id(), *frames)
            return
        connection.out += say(b"REPLY", VALUE, request_id) + say(b"READY")
        if self.given.mode == "drain":
            if request_id in self.seen:
                self.duplicates += 1
                return
            self.seen.add(request_id)
            self.trips += 1

    def on_result(self, connection: Connection, request_id: bytes, now_s: float) -> None:
        begun_s = self.begun_s.pop(request_id, None)
        if begun_s is None:
            self.duplicates += 1
            return
        if self.is_measuring and not self.is_ended:
            self.latencies_s.append(now_s - begun_s)
        self.results += 1
        self.trips += 1
        if not self.is_ended:
            self.turn += 1
            goes_round = self.given.in_flight < len(self.clients)
            self.ask(self.clients[self.turn % len(self.clients)] if goes_round else connection)

    def result(self) -> dict[str, object]:
        if self.given.mode != "proxy":
            for connection in self.connections:
                if connection.is_worker:
                    connection.out += say(b"KBYE")
                    connection.flush()
        seconds, own_s, broker_s, all_s = (last - first for first, last in zip(self.first, self.last, strict=True))
        times_us = sorted(latency * 1e6 for latency in self.latencies_s) or [0.0]
        others_s = max(0.0, all_s - own_s - broker_s)
        return {
            "peer": "python",
            "mode": self.given.mode,
            "trips": self.trips_at_end,
            "seconds": seconds,
            "trips_per_s": self.trips_at_end / seconds,
            "p50_us": times_us[len(times_us) // 2],
            "p99_us": times_us[len(times_us) * 99 // 100],
            "broker_cpu_s": broker_s,
            "peer_cpu_s": own_s,
            "others_share": others_s / (seconds * (os.cpu_count() or 1)),
            "duplicates": self.duplicates,
        }


def processes_s(pid: int) -> float:
    """Processor time of one process, or with pid 0 of all of them and the children they have outlived."""
    total = 0
    for name in [str(pid)] if pid else filter(str.isdigit, os.listdir("/proc")):
        try:
            fields = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it ended meanwhile
        total += sum(map(int, fields[11:13] if pid else fields[11:15]))
    return total / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mode", choices=("emqp", "proxy", "fill", "drain"), default="emqp")
    for name in ("clients", "workers", "in-flight", "slots"):
        parser.add_argument(f"--{name}", type=int, default=1)
    for name in ("trips", "watch", "processes"):
        parser.add_argument(f"--{name}", type=int, default=0)
    for name in ("seconds", "warmup"):
        parser.add_argument(f"--{name}", type=float, default=0.0)
    parser.add_argument("--body", type=int, default=100)
    parser.add_argument("--queue", default="benchqueue")
    parser.add_argument("--client-addr", default="")
    parser.add_argument("--worker-addr", default="")
    print(json.dumps(Peer(parser.parse_args()).run()))


if __name__ == "__main__":
    main()
