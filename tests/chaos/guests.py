"""eMQP: clients that count what they are promised, and workers that count what they are given, through any number of broker deaths."""

from __future__ import annotations

import asyncio
import itertools
import json

from dragoman.dialects.emqp.client_side import ANSWERED, ClientSide, MessageIds, RequestForm
from dragoman.dialects.emqp.worker_side import WorkerSide
from dragoman.limits import MESSAGE_SIZE_MAX
from dragoman.wire.zmtp.connection import ZmtpConnection
from tests.chaos.daemon import Daemon
from tests.chaos.tally import QUEUE, Tally

RETRY_S = 0.02
READ_SIZE = 65536
IN_FLIGHT_MAX = 40
SLOTS = 20
BEAT_S = 1.0


async def talk(zmtp: ZmtpConnection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """The handshake."""
    writer.write(zmtp.greeting())
    while not zmtp.is_ready:
        data = await reader.read(READ_SIZE)
        if not data:
            raise ConnectionError
        early = zmtp.receive(data)
        assert not early, "nothing is said before it is asked"
        writer.write(zmtp.take_outgoing())


class ChaosClient:
    """Keeps some requests under way; half of them want a result. What has no ACK when the broker dies is not asked again."""

    def __init__(self, name: str, daemon: Daemon, tally: Tally) -> None:
        self.identity = f"client-{name}".encode()
        self.daemon, self.tally = daemon, tally
        self.ids = MessageIds(f"chaos-{name}".encode().ljust(24, b"-")[:24])
        self.forms = itertools.cycle(
            (RequestForm(QUEUE, b"ack-requested,reply-requested"), RequestForm(QUEUE, b"ack-requested"))
        )
        self.waiting: set[bytes] = set()

    async def run(self) -> None:
        while True:
            try:
                await self._connection()
            except (ConnectionError, asyncio.IncompleteReadError):
                await asyncio.sleep(RETRY_S)

    async def _connection(self) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.daemon.port("emqp.client"))
        side = ClientSide(self.identity, MESSAGE_SIZE_MAX)
        try:
            await talk(side.zmtp, reader, writer)
            self.waiting.clear()
            self._ask(writer)
            while data := await reader.read(READ_SIZE):
                for kind, request_id, value in side.receive(data):
                    self._hear(kind, request_id, value)
                self._ask(writer)
        finally:
            writer.close()

    def _ask(self, writer: asyncio.StreamWriter) -> None:
        while len(self.waiting) < IN_FLIGHT_MAX and not self.tally.is_closing:
            request_id = self.ids.take()
            body = json.dumps(["run", {"token": request_id.decode()}]).encode()
            self.tally.attempted.add(request_id)
            self.waiting.add(request_id)
            writer.write(next(self.forms).encode(request_id, body))

    def _hear(self, kind: int, request_id: bytes, value: bytes) -> None:
        tally = self.tally
        if request_id not in tally.attempted or not request_id.startswith(self.ids.prefix):
            tally.unexpected.append(f"{self.identity!r} got an answer to {request_id!r}")
        elif kind != ANSWERED:
            tally.acknowledged.add(request_id)
            self.waiting.discard(request_id)
        else:
            tally.answer(request_id)
            self.waiting.discard(request_id)
            if json.loads(value) != {"value": request_id.decode()}:
                tally.unexpected.append(f"{request_id!r} was answered with {value!r}")


class ChaosWorker:
    """Answers with what it was asked, and counts it."""

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
        reader, writer = await asyncio.open_connection("127.0.0.1", self.daemon.port("emqp.worker"))
        identity = f"worker-{self.name}-{next(self.lives)}".encode()
        side = WorkerSide(identity, MESSAGE_SIZE_MAX, MessageIds(identity.ljust(24, b"-")[:24]))
        try:
            await talk(side.zmtp, reader, writer)
            side.inform(b'[[10,"chaos"]]')
            writer.write(side.take_out())
            beat_s = asyncio.get_running_loop().time() + BEAT_S
            is_ready = False
            while True:
                try:
                    async with asyncio.timeout(BEAT_S):  # `wait_for` may swallow a cancel in Python 3.11
                        data = await reader.read(READ_SIZE)
                except TimeoutError:
                    data = b""
                else:
                    if not data:
                        return
                for request_id, _, body in side.receive(data) if data else ():
                    token = json.loads(body)[1]["token"]
                    self.tally.executed[token.encode()] += 1
                    side.reply(request_id, json.dumps({"value": token}).encode())
                    side.ready(1)
                if side.is_acknowledged and not is_ready:
                    is_ready = True
                    side.ready(SLOTS)
                if side.is_sent_away:
                    return
                if asyncio.get_running_loop().time() > beat_s:
                    beat_s += BEAT_S
                    side.heartbeat(b"1.0")
                writer.write(side.take_out())
        finally:
            writer.close()
