"""Clients and workers of any dialect, by its SDK endpoints: for dialects that have no simulated peers of their own.

`kind` and `shape` are the dialect's name.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from dragoman.dialects.description import CLIENT, WORKER
from dragoman.dialects.emqp.dialect import id_prefix_of
from dragoman.dialects.endpoint import ANSWERED, KEPT, CallOptions, EndpointSetup, MessageIds
from dragoman.dialects.registry import DIALECTS_BY_NAME
from dragoman.model.units import SECOND_NS
from dragoman_lab.sim.checks.facts import token_in
from dragoman_lab.sim.checks.ledger import Request
from dragoman_lab.sim.machine.net import Wire
from dragoman_lab.sim.machine.risp import BareEnd
from dragoman_lab.sim.peers.sim_peers import SimClient, SimWorker


class SdkEnd(BareEnd):
    """An endpoint as the protocol of a wire: it buffers output itself, and its peer has it decode what the broker sends."""

    def __init__(self, endpoint: Any, hello: bytes) -> None:
        self.endpoint, self._hello = endpoint, hello

    def greeting(self) -> bytes:
        return bytes(self.endpoint.opening() + self._hello + self.endpoint.data_to_send())

    def received(self, wire: Wire, frames: list[bytes]) -> list[Any]:
        """The endpoint's reports or jobs in the broker's bytes; sends what it answers at once."""
        found: list[Any] = self.endpoint.receive(frames[0])
        wire.send(self.endpoint.data_to_send())
        return found


def end_of(wire: Wire) -> SdkEnd:
    assert isinstance(wire.end, SdkEnd)
    return wire.end


def setup_of(name: str, number: int) -> EndpointSetup:
    return EndpointSetup(name.encode(), MessageIds(id_prefix_of(number.to_bytes(10, "big"))))


class SdkClient(SimClient):
    def connect(self) -> Wire:
        dialect = DIALECTS_BY_NAME[self.kind]
        end = SdkEnd(dialect.endpoints().client(setup_of(self.name, self.count)), dialect.hello)
        return Wire(self.world, self, dialect.by_role[CLIENT].name, self.name.encode(), end=end)

    def ask(self, token: str, queue: bytes, body: bytes) -> None:
        endpoint = end_of(self.open_wire).endpoint
        endpoint.request(token.encode(), CallOptions(queue), body)
        self.send_request(Request(token, self.name), [endpoint.data_to_send()])

    def on_left(self, wire: Wire, frames: list[bytes]) -> None:
        ledger = self.world.ledger
        for kind, token, value in end_of(wire).received(wire, frames):
            if kind == KEPT:
                ledger.acked(self.name, token.decode())
            elif kind == ANSWERED:
                ledger.answered(self.name, token.decode(), value)
            else:
                ledger.refused(self.name, token.decode(), value)


class SdkWorker(SimWorker):
    """A worker, with as many slots as it has."""

    def prepare(self) -> None:
        self._dialect = DIALECTS_BY_NAME[self.shape]
        self.forgets_share = 0.5 if self._dialect.answers_survive else 1.0
        # By connection: of each piece of data that the peer has not read yet.
        self._jobs: dict[int, deque[list[Any]]] = {}

    def connect(self) -> Wire:
        name = f"{self.name}.{self.lives}"
        endpoint = self._dialect.endpoints().worker(setup_of(name, self.lives))
        endpoint.serve([(10, queue) for queue in self.queues], 1 if self._dialect.one_job else self.slots)
        end = SdkEnd(endpoint, self._dialect.hello)
        return Wire(self.world, self, self._dialect.by_role[WORKER].name, name.encode(), end=end)

    def arrive(self) -> None:
        """It has sent which queues it serves."""

    def beat(self, wire: Wire) -> None:
        self._do(wire, "beat", self.world.timeline.now_ns / SECOND_NS)

    def _do(self, wire: Wire, call: str, *args: Any) -> None:
        """Call the endpoint, and send what it wrote."""
        endpoint = end_of(wire).endpoint
        getattr(endpoint, call)(*args)
        wire.send(endpoint.data_to_send())

    def on_left(self, wire: Wire, frames: list[bytes]) -> None:
        jobs = end_of(wire).received(wire, frames)
        for _, _, body in jobs:
            self.world.ledger.given(body)
        self._jobs.setdefault(wire.number, deque()).append(jobs)

    def receive(self, wire: Wire, frames: list[bytes]) -> None:
        for request_id, _, body in self._jobs[wire.number].popleft():
            self.take_job(wire, request_id, token_in(body))

    def reply(self, wire: Wire, key: bytes, token: str, how: str) -> None:
        self._do(wire, "reply", key, b"done " + token.encode())

    def freed(self) -> None:
        if self.wire is not None:
            self._do(self.wire, "ready", 1)

    def part(self, wire: Wire) -> None:
        self._do(wire, "goodbye")

    def give_up(self, wire: Wire, key: bytes) -> None:
        wire.cut()
