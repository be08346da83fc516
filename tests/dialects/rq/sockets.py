"""Nodes of a running broker: plain sockets that say what is spelt out for them."""

from __future__ import annotations

import re
import socket
import time
from pathlib import Path

from dragoman.runtime.config.listeners import LISTENERS
from tests.dialects.rq.spelling import next_operation, risp
from tests.runtime.daemon import FREE, Daemon

WAIT_S = 60.0


def rq_broker(data: Path, *settings: str, durability: str = "os") -> Daemon:
    """A broker process with its rq and eMQP ports open, not started yet."""
    listen = dict.fromkeys(LISTENERS, "off")
    listen |= {"rq": FREE, "emqp.client": FREE, "emqp.worker": FREE}
    return Daemon(data, *settings, durability=durability, listen=listen)


class SocketNode:
    """One TCP connection to the rq port."""

    def __init__(self, broker: Daemon) -> None:
        self.socket = socket.create_connection(broker.place("rq"), WAIT_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.unheard = b""
        self.queue_id = 0  # of the queue it began to consume last

    def hear_consuming(self, queue: str) -> None:
        """The controller's answer to CONSUME; which number the queue has there depends on what was consumed before."""
        found = re.fullmatch(rf"QUEUEID=(\d+) QUEUE={queue} CONSUMING", self.hear())
        assert found is not None
        self.queue_id = int(found[1])

    def say(self, *texts: str) -> None:
        self.socket.sendall(b"".join(risp(text) for text in texts))

    def give(self, data: bytes) -> None:
        self.socket.sendall(data)

    def hear(self, wait_s: float = WAIT_S) -> str:
        """The next operation; an assertion error when none comes in time."""
        end_s = time.monotonic() + wait_s
        while True:
            found = next_operation(self.unheard)
            if found is not None:
                self.unheard = self.unheard[found[1] :]
                return found[0]
            self.socket.settimeout(max(end_s - time.monotonic(), 0.001))
            try:
                data = self.socket.recv(1 << 20)
            except TimeoutError as error:
                raise AssertionError(f"nothing came within {wait_s:g} s") from error
            assert data, "the connection ended"
            self.unheard += data

    def hears_end(self, wait_s: float = WAIT_S) -> bytes:
        """Read up to the end of the connection; what there was before it."""
        self.socket.settimeout(wait_s)
        heard, self.unheard = self.unheard, b""
        try:
            while data := self.socket.recv(1 << 20):
                heard += data
        except ConnectionError:
            return heard
        except TimeoutError as error:
            raise AssertionError("the connection stays open") from error
        return heard

    def is_answered(self) -> bool:
        """Whether it is sent PONG for its PING; False when the connection has ended instead."""
        try:
            self.say("PING")
            return self.socket.recv(1) == b"\x06"
        except ConnectionError:
            return False

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> SocketNode:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class Bystanders:
    """A source and a consumer of their own queue, who must notice nothing of what others do."""

    def __init__(self, broker: Daemon) -> None:
        self.worker, self.client = SocketNode(broker), SocketNode(broker)
        self.worker.say("CLEAR QUEUE=bystanders MAX=1 PRIORITY=20 CONSUME")
        self.worker.hear_consuming("bystanders")
        self.count = 0

    def notice_nothing(self) -> None:
        """Their next request takes the way that every one took."""
        self.count += 1
        self.client.say(f"CLEAR ID={self.count} QUEUE=bystanders PAYLOAD=b{self.count} REQUEST")
        assert self.worker.hear() == f"QUEUEID={self.worker.queue_id} PAYLOAD=b{self.count} ID=0 REQUEST"
        self.worker.say("CLEAR ID=0 DELIVERED", "CLEAR ID=0 PAYLOAD=fine REPLY")
        assert self.client.hear() == f"ID={self.count} DELIVERED"
        assert self.client.hear() == f"ID={self.count} PAYLOAD=fine REPLY"

    def close(self) -> None:
        self.worker.close()
        self.client.close()
