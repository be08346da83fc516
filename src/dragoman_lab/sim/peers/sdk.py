"""Clients and workers of any dialect, by its SDK endpoints: for dialects that have no simulated peers of their own.

`kind` and `shape` are the dialect's name. A peer's messages are the calls of its endpoint, and the endpoint's reports.
"""

from __future__ import annotations

from dragoman.dialects.description import CLIENT, WORKER
from dragoman.dialects.emqp.dialect import id_prefix_of
from dragoman.dialects.endpoint import (
    ANSWERED,
    KEPT,
    CallOptions,
    ClientEndpoint,
    Endpoint,
    EndpointSetup,
    MessageIds,
    WorkerEndpoint,
)
from dragoman.dialects.registry import DIALECTS_BY_NAME
from dragoman.model.units import SECOND_NS
from dragoman_lab.sim.checks.facts import token_in
from dragoman_lab.sim.checks.ledger import Request
from dragoman_lab.sim.machine.net import Wire
from dragoman_lab.sim.peers.client import SimClient
from dragoman_lab.sim.peers.worker import SimWorker

REPLY, READY, GOODBYE = b"reply", b"ready", b"goodbye"


class SdkEnd:
    """An endpoint as the protocol of a wire."""

    def __init__(self, endpoint: Endpoint, hello: bytes) -> None:
        self._endpoint, self._hello = endpoint, hello
        self.take_outgoing = endpoint.data_to_send

    @property
    def is_ready(self) -> bool:
        return self._endpoint.is_ready

    def greeting(self) -> bytes:
        return self._endpoint.opening() + self._hello + self._endpoint.data_to_send()


class SdkClientEnd(SdkEnd):
    """Messages to the broker: token, queue, body; from it: kind, token, value."""

    def __init__(self, endpoint: ClientEndpoint, hello: bytes) -> None:
        super().__init__(endpoint, hello)
        self._client = endpoint

    def encode(self, frames: list[bytes]) -> bytes:
        self._client.request(frames[0], CallOptions(frames[1]), frames[2])
        return self._client.data_to_send()

    def receive(self, data: bytes) -> list[list[bytes]]:
        return [[b"%d" % kind, token, value] for kind, token, value in self._client.receive(data)]


class SdkWorkerEnd(SdkEnd):
    """Messages to the broker: a command, id and value of a reply; from it: id, body."""

    def __init__(self, endpoint: WorkerEndpoint, hello: bytes) -> None:
        super().__init__(endpoint, hello)
        self._worker = endpoint

    def encode(self, frames: list[bytes]) -> bytes:
        if frames[0] == REPLY:
            self._worker.reply(frames[1], frames[2])
        elif frames[0] == READY:
            self._worker.ready(1)
        else:
            self._worker.goodbye()
        return self._worker.data_to_send()

    def receive(self, data: bytes) -> list[list[bytes]]:
        return [[request_id, body] for request_id, _, body in self._worker.receive(data)]


def setup_of(name: str, number: int) -> EndpointSetup:
    return EndpointSetup(name.encode(), MessageIds(id_prefix_of(number.to_bytes(10, "big"))))


class SdkClient(SimClient):
    """A client."""

    def connect(self) -> Wire:
        dialect = DIALECTS_BY_NAME[self.kind]
        endpoint = dialect.endpoints().client(setup_of(self.name, self.count))
        end = SdkClientEnd(endpoint, dialect.hello)
        return Wire(self.world, self, dialect.by_role[CLIENT].name, self.name.encode(), end=end)

    def ask(self, token: str, queue: bytes, body: bytes) -> None:
        self.say_request(Request(token, self.name), [token.encode(), queue, body])

    def on_left(self, wire: Wire, frames: list[bytes]) -> None:
        kind, token, ledger = int(frames[0]), frames[1].decode(), self.world.ledger
        if kind == KEPT:
            ledger.acked(self.name, token)
        elif kind == ANSWERED:
            ledger.answered(self.name, token, frames[2])
        else:
            ledger.refused(self.name, token, frames[2])


class SdkWorker(SimWorker):
    """A worker, with as many slots as it has."""

    def prepare(self) -> None:
        self._dialect = DIALECTS_BY_NAME[self.shape]
        self.forgets_share = 0.5 if self._dialect.answers_survive else 1.0
        self._endpoint: WorkerEndpoint | None = None

    def connect(self) -> Wire:
        name = f"{self.name}.{self.lives}"
        self._endpoint = self._dialect.endpoints().worker(setup_of(name, self.lives))
        self._endpoint.serve([(10, queue) for queue in self.queues], 1 if self._dialect.one_job else self.slots)
        end = SdkWorkerEnd(self._endpoint, self._dialect.hello)
        return Wire(self.world, self, self._dialect.by_role[WORKER].name, name.encode(), end=end)

    def arrive(self) -> None:
        """It has said what it serves."""

    def beat(self, wire: Wire) -> None:
        assert self._endpoint is not None
        self._endpoint.beat(self.world.timeline.now_ns / SECOND_NS)
        wire.send(self._endpoint.data_to_send())

    def job_in(self, frames: list[bytes]) -> bytes | None:
        return frames[1]

    def receive(self, wire: Wire, frames: list[bytes]) -> None:
        self.take_job(wire, frames[0], token_in(frames[1]))

    def reply(self, wire: Wire, key: bytes, token: str, how: str) -> None:
        wire.say([REPLY, key, b"done " + token.encode()])

    def freed(self) -> None:
        if self.wire is not None:
            self.wire.say([READY])

    def part(self, wire: Wire) -> None:
        wire.say([GOODBYE])

    def give_up(self, wire: Wire, key: bytes) -> None:
        wire.cut()
