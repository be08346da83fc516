"""Scale0 from its page alone: pyzmq, JSON, and nothing of dragoman.

Frames: COMMAND, header (one JSON object), body. A worker CONNECTs, is told its CONFIG, and buys each task with one PING.
"""

from __future__ import annotations

import itertools
import json
import time
from typing import Any

import zmq

WAIT_S = 60.0
_numbers = itertools.count(1)


class Peer:
    """A DEALER that sends and hears commands; hearing fails when nothing comes in time."""

    def __init__(self, address: str) -> None:
        self.socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.DEALER)
        self.socket.linger = 0
        self.socket.connect(address)

    def say(self, command: str, header: dict[str, Any], body: bytes = b"") -> None:
        self.socket.send_multipart([command.encode(), json.dumps(header).encode(), body])

    def hear(self, wait_s: float = WAIT_S) -> tuple[str, dict[str, Any], bytes]:
        if not self.socket.poll(max(int(wait_s * 1000), 1)):
            raise TimeoutError(f"nothing heard for {wait_s:g} s")
        frames = self.socket.recv_multipart()
        header = json.loads(frames[1]) if len(frames) > 1 and frames[1] else {}
        return frames[0].decode(), header, frames[2] if len(frames) > 2 else b""

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class Client(Peer):
    """Sends TASKs and is told TASKREPLY or ERROR."""

    def __init__(self, listeners: dict[str, str]) -> None:
        super().__init__(listeners["scale0.client"])
        self.outcomes: dict[str, tuple[str, bytes]] = {}

    def ask(self, queue: str, body: bytes, *members: str) -> str:
        """`members`: further ones of the header, as `name:value`."""
        task_id = f"task-{next(_numbers)}"
        header = {"id": task_id, "service": queue, "time": time.time()}
        self.say("TASK", header | dict(member.split(":", 1) for member in members), body)
        return task_id

    def outcome(self, task_id: str, wait_s: float = WAIT_S) -> tuple[str, bytes]:
        """("answered", value) or ("refused", reason)."""
        ends = time.monotonic() + wait_s
        while task_id not in self.outcomes:
            command, header, body = self.hear(ends - time.monotonic())
            if command == "TASKREPLY":
                self.outcomes[header["id"]] = ("answered", body)
            elif command == "ERROR":
                self.outcomes[header["id"]] = ("refused", header["reason"].encode())
        return self.outcomes.pop(task_id)


class Worker(Peer):
    """One task at a time: it PINGs when it is asked to take one."""

    def __init__(self, listeners: dict[str, str], queue: str) -> None:
        super().__init__(listeners["scale0.worker"])
        self.services = [queue]
        self.is_in_line = False
        self.headers: list[str] = []  # of the last task
        self.say("CONNECT", {"config_type": "JSON", "identity": f"worker-{next(_numbers)}", "services": self.services})
        command, header, document = self.hear()
        assert command == "CONFIG", command
        json.loads(document)
        self.version = header["config_version"]
        self.stand_in_line()

    def stand_in_line(self) -> None:
        if not self.is_in_line:
            header = {"heartbeat_interval": 20, "time": time.time(), "config_version": self.version}
            self.say("PING", header | {"services": self.services})
            self.is_in_line = True
            command, header, _ = self.hear()
            assert command == "PONG", command

    def take(self, wait_s: float = WAIT_S) -> tuple[str, bytes]:
        """The next task: its id and its body."""
        ends = time.monotonic() + wait_s
        self.stand_in_line()
        while True:
            command, header, body = self.hear(ends - time.monotonic())
            if command == "TASK":
                self.is_in_line = False
                self.headers = [f"{name}:{value}" for name, value in header.items()]
                return header["id"], body
            if command == "CONFIG":
                self.version = header["config_version"]

    def answer(self, task_id: str, value: bytes) -> None:
        self.say("TASKREPLY", {"id": task_id, "time": time.time(), "config_version": self.version}, value)
