"""The original controller (rqd) as the recordings show it, as far as a link to it goes: what aborts it aborts this one.

It keeps one message a consumer, registers no UNDELIVERED, and loses what a consumer held when its connection ends.
"""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable

from tests.dialects.rq.spelling import next_operation, risp

ABORTS_ON = ("CANCEL_QUEUE", "BROADCAST")


class OriginalController:
    """Pure: operations in, operations out."""

    def __init__(self) -> None:
        self.queue_ids: dict[str, int] = {}
        self.waiting: dict[str, list[tuple[int, str]]] = {}
        self.held: dict[int, str] = {}  # message id → its queue
        self.delivered: set[int] = set()
        self.answers: dict[str, str] = {}  # body of the request → the answer
        self.bodies: dict[int, str] = {}
        self.consumed: list[str] = []
        self.next_id = 0
        self.links = 0  # connections so far
        self.aborted_by = ""

    def request(self, queue: str, body: str) -> list[str]:
        self.waiting.setdefault(queue, []).append((self.next_id, body))
        self.bodies[self.next_id] = body
        self.next_id += 1
        return self.give(queue)

    def give(self, queue: str) -> list[str]:
        """The next request for the link's one slot of a queue, if that is free."""
        if queue not in self.consumed or queue in self.held.values() or not self.waiting.get(queue):
            return []
        number, body = self.waiting[queue].pop(0)
        self.held[number] = queue
        return [f"CLEAR QUEUEID={self.queue_ids[queue]} PAYLOAD={body} ID={number} REQUEST"]

    def take(self, operation: str) -> list[str]:
        """What the link says; the answer to it."""
        word = operation.rpartition(" ")[2]
        number = int(found[1]) if (found := re.search(r"\bID=(\d+)", operation)) else -1
        if word in ABORTS_ON or (word == "CLOSING" and self.held) or (word == "REPLY" and number not in self.delivered):
            self.aborted_by = operation
        elif word == "PING":
            return ["PONG"]
        elif word == "CONSUME":
            queue = operation.split()[0].removeprefix("QUEUE=")
            self.consumed.append(queue)
            queue_id = self.queue_ids.setdefault(queue, len(self.queue_ids) + 1)
            return [f"CLEAR QUEUEID={queue_id} QUEUE={queue} CONSUMING", *self.give(queue)]
        elif word == "DELIVERED":
            self.delivered.add(number)
        elif word == "REPLY":
            body = re.search(r"PAYLOAD=(.*) REPLY", operation)
            assert body is not None
            self.answers[self.bodies[number]] = body[1]
            return self.give(self.held.pop(number))
        return []

    def connection_ended(self) -> None:
        self.consumed.clear()
        self.held.clear()


class OriginalProcess:
    """The same behind a socket. An abort ends every connection, and it accepts none afterwards."""

    def __init__(self) -> None:
        self.controller = OriginalController()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.place = "{}:{}".format(*self.listener.getsockname())
        self.changed = threading.Condition()
        self.link: socket.socket | None = None
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def request(self, queue: str, body: str) -> None:
        with self.changed:
            self._send(self.controller.request(queue, body))

    def wait_for(self, is_so: Callable[[OriginalController], bool], wait_s: float = 15.0) -> None:
        with self.changed:
            found = self.changed.wait_for(lambda: bool(self.controller.aborted_by) or is_so(self.controller), wait_s)
            assert not self.controller.aborted_by, f"the original aborted on {self.controller.aborted_by}"
            assert found, f"not so within {wait_s:g} s"

    def close(self) -> None:
        with self.changed:
            self.listener.close()
            if self.link is not None:
                self.link.close()

    def _send(self, operations: list[str]) -> None:
        if self.link is not None and operations:
            self.link.sendall(b"".join(risp(operation) for operation in operations))

    def _run(self) -> None:
        while True:
            try:
                link, _ = self.listener.accept()
            except OSError:
                return
            with self.changed:
                self.link = link
                self.controller.links += 1
                self.changed.notify_all()
            self._serve(link)
            with self.changed:
                self.link = None
                self.controller.connection_ended()
                link.close()
                self.changed.notify_all()
                if self.controller.aborted_by:
                    self.listener.close()
                    return

    def _serve(self, link: socket.socket) -> None:
        unheard = b""
        while not self.controller.aborted_by:
            try:
                data = link.recv(1 << 16)
            except OSError:
                return
            if not data:
                return
            unheard += data
            with self.changed:
                while (found := next_operation(unheard)) is not None:
                    unheard = unheard[found[1] :]
                    self._send(self.controller.take(found[0]))
                self.changed.notify_all()
