"""eMQP: clients that count what they are promised, and workers that count what they are given, through any number of broker deaths."""

from __future__ import annotations

import asyncio
import itertools
import json

from dragoman.dialects.emqp.endpoints import EmqpClientEndpoint, EmqpWorkerEndpoint
from dragoman.dialects.endpoint import KEPT, CallOptions, Endpoint, EndpointSetup, MessageIds
from tests.chaos.daemon import Daemon
from tests.chaos.tally import QUEUE, Tally

RETRY_S = 0.02
READ_SIZE = 65536
IN_FLIGHT_MAX = 40
SLOTS = 20
BEAT_S = 1.0


async def open_endpoint(endpoint: Endpoint, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(endpoint.opening())
    return reader, writer


def options_of(wants_reply: bool) -> CallOptions:
    options = CallOptions(QUEUE)
    options.wants_reply = wants_reply
    options.headers = b"ack-requested"
    return options


class ChaosClient:
    """Keeps some requests under way; half of them want a result. What has no ACK when the broker dies is not asked again."""

    def __init__(self, name: str, daemon: Daemon, tally: Tally) -> None:
        self.identity = f"client-{name}".encode()
        self.daemon, self.tally = daemon, tally
        self.ids = MessageIds(f"chaos-{name}".encode().ljust(24, b"-")[:24])
        self.options = itertools.cycle((options_of(True), options_of(False)))
        self.waiting: set[bytes] = set()

    async def run(self) -> None:
        while True:
            try:
                await self._connection()
            except (ConnectionError, asyncio.IncompleteReadError):
                await asyncio.sleep(RETRY_S)

    async def _connection(self) -> None:
        endpoint = EmqpClientEndpoint(EndpointSetup(self.identity, MessageIds(b"-" * 24)))
        reader, writer = await open_endpoint(endpoint, self.daemon.port("emqp.client"))
        try:
            self.waiting.clear()
            while data := await reader.read(READ_SIZE):
                for kind, request_id, value in endpoint.receive(data):
                    self._hear(kind, request_id, value)
                if endpoint.is_ready:
                    self._ask(endpoint)
                writer.write(endpoint.data_to_send())
        finally:
            writer.close()

    def _ask(self, endpoint: EmqpClientEndpoint) -> None:
        while len(self.waiting) < IN_FLIGHT_MAX and not self.tally.is_closing:
            request_id = self.ids.take()
            body = json.dumps(["run", {"token": request_id.decode()}]).encode()
            self.tally.attempted.add(request_id)
            self.waiting.add(request_id)
            endpoint.request(request_id, next(self.options), body)

    def _hear(self, kind: int, request_id: bytes, value: bytes) -> None:
        tally = self.tally
        if request_id not in tally.attempted or not request_id.startswith(self.ids.prefix):
            tally.unexpected.append(f"{self.identity!r} got an answer to {request_id!r}")
        elif kind == KEPT:
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
        identity = f"worker-{self.name}-{next(self.lives)}".encode()
        setup = EndpointSetup(identity, MessageIds(identity.ljust(24, b"-")[:24]))
        setup.heartbeat_s = BEAT_S
        endpoint = EmqpWorkerEndpoint(setup)
        endpoint.serve([(10, QUEUE)], SLOTS)
        reader, writer = await open_endpoint(endpoint, self.daemon.port("emqp.worker"))
        clock = asyncio.get_running_loop().time
        try:
            while not endpoint.is_over:
                try:
                    async with asyncio.timeout(BEAT_S):  # `wait_for` may swallow a cancel in Python 3.11
                        data = await reader.read(READ_SIZE)
                except TimeoutError:
                    data = b""
                else:
                    if not data:
                        return
                for request_id, _, body in endpoint.receive(data) if data else ():
                    token = json.loads(body)[1]["token"]
                    self.tally.executed[token.encode()] += 1
                    endpoint.reply(request_id, json.dumps({"value": token}).encode())
                    endpoint.ready(1)
                endpoint.beat(clock())
                writer.write(endpoint.data_to_send())
        finally:
            writer.close()
