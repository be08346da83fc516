"""Clients of the other four dialects, through any number of broker deaths. What each may count on is in its own words below."""

from __future__ import annotations

import asyncio
import json
from collections import deque

from dragoman_lab.sim.machine import risp
from tests.chaos.daemon import Daemon
from tests.chaos.link import RETRY_S, Link, body_of, value_of
from tests.chaos.tally import QUEUE, Tally

IN_FLIGHT_MAX = 10
BEAT_S = 0.5


class Asking:
    """Keeps some requests under way. What was under way on a connection that ended is forgotten, unless a dialect says otherwise."""

    listener = ""
    identity: bytes | None = b""

    def __init__(self, name: str, daemon: Daemon, tally: Tally) -> None:
        self.name, self.daemon, self.tally = name, daemon, tally
        self.count = 0
        self.waiting: set[bytes] = set()

    async def run(self) -> None:
        while True:
            try:
                await self._connection()
            except ConnectionError:
                await asyncio.sleep(RETRY_S)

    async def _connection(self) -> None:
        link = await Link.open(self.daemon.port(self.listener), self.identity)
        try:
            self.connected(link)
            while True:
                while len(self.waiting) < IN_FLIGHT_MAX and not self.tally.is_closing:
                    self.count += 1
                    token = f"{self.name}-{self.count}".encode()
                    self.tally.attempted.add(token)
                    self.waiting.add(token)
                    self.ask(link, token)
                for frames in await link.hear(BEAT_S):
                    self.hear(link, frames)
        finally:
            link.close()

    def connected(self, link: Link) -> None:
        self.waiting.clear()

    def ask(self, link: Link, token: bytes) -> None:
        raise NotImplementedError

    def hear(self, link: Link, frames: list[bytes]) -> None:
        raise NotImplementedError

    def answered(self, token: bytes | None, value: bytes) -> None:
        """Its own token, its own value, and never twice."""
        if token is None or token not in self.tally.attempted:
            self.tally.unexpected.append(f"{self.name} got an answer to {token!r}, which it never asked")
        elif value != value_of(token):
            self.tally.unexpected.append(f"{token!r} was answered with {value!r}")
        else:
            self.waiting.discard(token)
            self.tally.answer(token)

    def refused(self, token: bytes | None, words: bytes) -> None:
        self.tally.unexpected.append(f"{self.name} was refused {token!r}: {words!r}")
        self.waiting.discard(token or b"")


class Scale0Asking(Asking):
    """It comes back under its name, so the answers to what it asked before a death may still come: each once."""

    listener = "scale0.client"

    def __init__(self, name: str, daemon: Daemon, tally: Tally) -> None:
        super().__init__(name, daemon, tally)
        self.identity = name.encode()

    def ask(self, link: Link, token: bytes) -> None:
        header = json.dumps({"id": token.decode(), "service": QUEUE.decode()}).encode()
        link.say(b"TASK", header, body_of(token))

    def hear(self, link: Link, frames: list[bytes]) -> None:
        header = json.loads(frames[1])
        if frames[0] == b"TASKREPLY":
            self.answered(str(header["id"]).encode(), frames[2])
        elif frames[0] == b"ERROR":
            self.refused(str(header.get("id", "")).encode(), frames[1])


class PingpongAsking(Asking):
    """It has no name: with a connection all its orders are forgotten, and on one connection answers come in order."""

    listener = "pingpong.client"

    def __init__(self, name: str, daemon: Daemon, tally: Tally) -> None:
        super().__init__(name, daemon, tally)
        self.asked: deque[bytes] = deque()

    def connected(self, link: Link) -> None:
        super().connected(link)
        self.asked.clear()

    def ask(self, link: Link, token: bytes) -> None:
        self.asked.append(token)
        link.say(b"", body_of(token))

    def hear(self, link: Link, frames: list[bytes]) -> None:
        token = self.asked.popleft() if self.asked else None
        if frames[1] == b"ERROR":
            self.refused(token, frames[2])
        else:
            self.answered(token, frames[1])


class EbusAsking(Asking):
    """As the original: a new identity each time, and everything without an answer is sent again. So everything is answered in the
    end, however often the broker dies."""

    listener = "ebus.client"

    def __init__(self, name: str, daemon: Daemon, tally: Tally) -> None:
        super().__init__(name, daemon, tally)
        self.lives = 0

    async def _connection(self) -> None:
        self.lives += 1
        self.identity = f"{self.name}.{self.lives}".encode()
        await super()._connection()

    def connected(self, link: Link) -> None:
        for token in sorted(self.waiting):
            self.ask(link, token)

    def ask(self, link: Link, token: bytes) -> None:
        link.say(b"", b"EBC01", b"REQ", QUEUE, token, body_of(token), b"600000")

    def hear(self, link: Link, frames: list[bytes]) -> None:
        if frames[2] == b"REPLY":
            self.answered(frames[3], frames[4])
        elif frames[2] == b"REJECT":
            self.refused(frames[3], b"".join(frames[4:]))


class RqAsking(Asking):
    """Half want no reply: their DELIVERED is the broker's promise that the message is kept."""

    listener = "rq"
    identity = None

    def __init__(self, name: str, daemon: Daemon, tally: Tally) -> None:
        super().__init__(name, daemon, tally)
        self.live: dict[int, tuple[bytes, bool]] = {}  # id → token, and whether it wants a reply
        self.delivered: set[bytes] = set()

    def connected(self, link: Link) -> None:
        super().connected(link)
        self.live.clear()

    def ask(self, link: Link, token: bytes) -> None:
        number = min(set(range(len(self.live) + 1)) - set(self.live))
        wants_reply = self.count % 2 == 0
        self.live[number] = (token, wants_reply)
        flag = b"" if wants_reply else risp.NOREPLY
        link.say(
            risp.CLEAR, risp.request_id(number), risp.queue(QUEUE), risp.payload(body_of(token)), flag, risp.REQUEST
        )

    def hear(self, link: Link, frames: list[bytes]) -> None:
        name = frames[0]
        if name == b"PING":
            link.say(risp.PONG)
        if name not in (b"DELIVERED", b"REPLY", b"UNDELIVERED"):
            return
        token, wants_reply = self.live.get(int(frames[1]), (None, False))
        if token is None:
            self.tally.unexpected.append(f"{self.name} heard {name!r} of id {frames[1]!r}, which is not in use")
        elif name == b"DELIVERED":
            self._delivered(int(frames[1]), token, wants_reply)
        else:
            del self.live[int(frames[1])]
            if name == b"REPLY" and token in self.delivered:
                self.answered(token, frames[4])
            else:
                self.refused(token, name)

    def _delivered(self, number: int, token: bytes, wants_reply: bool) -> None:
        if token in self.delivered:
            self.tally.unexpected.append(f"{token!r} was DELIVERED twice")
        self.delivered.add(token)
        if not wants_reply:
            del self.live[number]
            self.waiting.discard(token)
            self.tally.acknowledged.add(token)


ASKING: tuple[type[Asking], ...] = (Scale0Asking, PingpongAsking, EbusAsking, RqAsking)
