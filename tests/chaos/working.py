"""Workers of the other four dialects: they answer what they are asked, and count it."""

from __future__ import annotations

import asyncio
import itertools
import json

from dragoman_lab.sim.machine import risp
from tests.chaos.daemon import Daemon
from tests.chaos.link import RETRY_S, Link, token_of, value_of
from tests.chaos.tally import QUEUE, Tally

SLOTS = 10
BEAT_S = 0.4


class Working:
    listener = ""

    def __init__(self, name: str, daemon: Daemon, tally: Tally) -> None:
        self.name, self.daemon, self.tally = name, daemon, tally
        self.lives = itertools.count(1)

    async def run(self) -> None:
        while True:
            try:
                await self._connection()
            except ConnectionError:
                await asyncio.sleep(RETRY_S)

    async def _connection(self) -> None:
        identity = None if self.listener == "rq" else f"{self.name}.{next(self.lives)}".encode()
        link = await Link.open(self.daemon.port(self.listener), identity)
        clock = asyncio.get_running_loop().time
        try:
            self.arrive(link)
            beat_s = clock() + BEAT_S
            while True:
                for frames in await link.hear(BEAT_S):
                    self.hear(link, frames)
                if clock() > beat_s:
                    beat_s = clock() + BEAT_S
                    self.beat(link)
        finally:
            link.close()

    def did(self, body: bytes) -> bytes:
        """The answer to a job."""
        token = token_of(body)
        self.tally.executed[token] += 1
        return value_of(token)

    def arrive(self, link: Link) -> None:
        raise NotImplementedError

    def beat(self, link: Link) -> None:
        """A sign of life."""

    def hear(self, link: Link, frames: list[bytes]) -> None:
        raise NotImplementedError


class Scale0Working(Working):
    listener = "scale0.worker"

    def arrive(self, link: Link) -> None:
        link.say(b"PING", json.dumps({"services": [QUEUE.decode()], "heartbeat_interval": 2}).encode())

    def beat(self, link: Link) -> None:
        self.arrive(link)

    def hear(self, link: Link, frames: list[bytes]) -> None:
        if frames[0] == b"TASK":
            header = json.dumps({"id": json.loads(frames[1])["id"]}).encode()
            link.say(b"TASKREPLY", header, self.did(frames[2]))
            self.arrive(link)


class PingpongWorking(Working):
    listener = "pingpong.worker"

    def arrive(self, link: Link) -> None:
        link.say(b"", b"READY")

    def beat(self, link: Link) -> None:
        link.say(b"", b"PING")

    def hear(self, link: Link, frames: list[bytes]) -> None:
        if len(frames) == 2 and frames[1] != b"PONG":
            link.say(b"", self.did(frames[1]))


class EbusWorking(Working):
    listener = "ebus.worker"

    def arrive(self, link: Link) -> None:
        link.say(b"EBW01", b"READY", b"null", QUEUE)

    def beat(self, link: Link) -> None:
        link.say(b"EBW01", b"HEARTBEAT")

    def hear(self, link: Link, frames: list[bytes]) -> None:
        if frames[1] == b"REQ":
            link.say(b"EBW01", b"REPLY", frames[2], self.did(frames[3]))
        elif frames[1] == b"DISCONNECT":
            raise ConnectionError


class RqWorking(Working):
    listener = "rq"

    def arrive(self, link: Link) -> None:
        link.say(risp.CLEAR, risp.queue(QUEUE), risp.most(SLOTS), risp.priority(20), risp.CONSUME)

    def hear(self, link: Link, frames: list[bytes]) -> None:
        if frames[0] == b"PING":
            link.say(risp.PONG)
        elif frames[0] == b"CLOSING":
            raise ConnectionError
        elif frames[0] == b"REQUEST":
            number = risp.request_id(int(frames[1]))
            value = self.did(frames[4])
            link.say(risp.CLEAR, number, risp.DELIVERED)
            if b"NOREPLY" not in frames[5:]:
                link.say(risp.CLEAR, number, risp.payload(value), risp.REPLY)


WORKING: tuple[type[Working], ...] = (Scale0Working, PingpongWorking, EbusWorking, RqWorking)
