"""The usual home-grown broker: two ROUTER sockets of pyzmq, one poll loop, dicts and deques.

It speaks just enough eMQP for the dialogue (INFORM, READY, REQUEST, REPLY, one queue per message) and keeps nothing:
no leases, no retries, no timeouts, no trace. It takes many messages from a socket between two polls, which is
the fast way to write such a loop.
"""

from __future__ import annotations

import json
import uuid
from collections import deque

import zmq

VERSION = b"eMQP/1.0"
TURN_MAX = 200  # messages taken from one socket before the other gets its turn


class Loop:
    """One poll loop between a client and a worker socket."""

    def __init__(self, clients: zmq.Socket[bytes], workers: zmq.Socket[bytes]) -> None:
        self.clients, self.workers = clients, workers
        self.queues: dict[bytes, list[bytes]] = {}
        self.slots: dict[bytes, deque[bytes]] = {}
        self.waiting: dict[bytes, deque[tuple[bytes, list[bytes]]]] = {}
        self.askers: dict[bytes, bytes] = {}
        self.stem, self.count = uuid.uuid4().hex, 0

    def run(self) -> None:
        poller = zmq.Poller()
        poller.register(self.clients, zmq.POLLIN)
        poller.register(self.workers, zmq.POLLIN)
        while True:
            for socket, _ in poller.poll():
                take = self.on_client if socket is self.clients else self.on_worker
                try:
                    for _ in range(TURN_MAX):
                        take(socket.recv_multipart(zmq.NOBLOCK))
                except zmq.Again:
                    pass

    def new_id(self) -> bytes:
        # A uuid4 per message would cost this loop another 2 µs; a counter of the same length is enough here.
        self.count += 1
        return b"%s%016x" % (self.stem[:20].encode(), self.count)

    def on_client(self, frames: list[bytes]) -> None:
        if frames[3] == b"REQUEST":
            queue = frames[5]
            slots = self.slots.setdefault(queue, deque())
            if slots:
                self.hand_over(slots.popleft(), frames[0], frames[1:])
            else:
                self.waiting.setdefault(queue, deque()).append((frames[0], frames[1:]))

    def on_worker(self, frames: list[bytes]) -> None:
        worker, command = frames[0], frames[3]
        if command == b"REPLY":
            client = self.askers.pop(frames[6], None)
            if client is not None:
                self.clients.send_multipart([client, b"", VERSION, b"REPLY", self.new_id(), frames[5], frames[6]])
        elif command == b"READY":
            for queue in self.queues.get(worker, []):
                waiting = self.waiting.get(queue)
                if waiting:
                    client, request = waiting.popleft()
                    self.hand_over(worker, client, request)
                else:
                    self.slots.setdefault(queue, deque()).append(worker)
        elif command == b"INFORM":
            self.queues[worker] = [name.encode() for _, name in json.loads(frames[5])]
            self.workers.send_multipart([worker, b"", VERSION, b"ACK", self.new_id(), frames[4]])
        elif command == b"KBYE":
            for queue in self.queues.pop(worker, []):
                self.slots[queue] = deque(slot for slot in self.slots.get(queue, ()) if slot != worker)

    def hand_over(self, worker: bytes, client: bytes, request: list[bytes]) -> None:
        self.askers[request[3]] = client
        self.workers.send_multipart([worker, *request])
        self.clients.send_multipart([client, b"", VERSION, b"REPLY", self.new_id(), request[3]])


def main() -> None:
    context = zmq.Context()
    clients, workers = context.socket(zmq.ROUTER), context.socket(zmq.ROUTER)
    for socket in (clients, workers):
        socket.set_hwm(0)
        socket.setsockopt(zmq.LINGER, 0)
        socket.bind("tcp://127.0.0.1:0")
    addresses = {
        "client": clients.getsockopt_string(zmq.LAST_ENDPOINT),
        "worker": workers.getsockopt_string(zmq.LAST_ENDPOINT),
    }
    print(json.dumps(addresses), flush=True)
    Loop(clients, workers).run()


if __name__ == "__main__":
    main()
