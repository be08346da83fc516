"""Clients of a replay: each says in its dialect what the journal says it asked for, and reads what it is told."""

from __future__ import annotations

import json

from dragoman.dialects.traceparent import leading, without_traceparent
from dragoman.testing.replay.stage import Stage
from dragoman.testing.replay.tables import Asked, Guest
from dragoman.testing.sim import risp
from dragoman.testing.sim.ebus import FROM_CLIENT
from dragoman.testing.sim.emqp import VERSION
from dragoman.testing.sim.net import StillWire, Wire


class ReplayClient:
    """Connected from its first word on, until the story takes it away."""

    listener = ""
    is_rude = False

    def __init__(self, stage: Stage, guest: Guest) -> None:
        self.stage, self.guest = stage, guest
        self.name = guest.name
        self.wire: Wire | None = None

    def come(self) -> Wire:
        if self.wire is None or not self.wire.is_up:
            self.wire = StillWire(self.stage, self, self.listener, self.guest.identity, self.guest.socket)
            self.stage.settle()
        return self.wire

    def go(self) -> None:
        if self.wire is not None:
            self.wire.cut()
            self.stage.settle()

    def ask(self, asked: Asked) -> None:
        self.come().say(self.frames(asked))
        self.stage.settle()

    def cancel(self, asked: Asked) -> bool:
        """Take it back; False where the dialect has no word for it."""
        frames = self.cancel_frames(asked)
        if frames:
            self.come().say(frames)
            self.stage.settle()
        return bool(frames)

    # -- a dialect's own ------------------------------------------------------------------------------------------------

    def frames(self, asked: Asked) -> list[bytes]:
        raise NotImplementedError

    def cancel_frames(self, asked: Asked) -> list[bytes]:
        return []

    # -- what it hears --------------------------------------------------------------------------------------------------

    def on_left(self, wire: Wire, frames: list[bytes]) -> None:
        """Answers are the client's business; a replay looks at facts."""

    def on_message(self, wire: Wire, frames: list[bytes]) -> None:
        pass

    def on_lost(self, wire: Wire) -> None:
        if self.wire is wire:
            self.wire = None


class EmqpClient(ReplayClient):
    listener = "emqp.client"

    def frames(self, asked: Asked) -> list[bytes]:
        return [b"", VERSION, b"REQUEST", asked.client_id, asked.queue, asked.headers, asked.body]

    def cancel_frames(self, asked: Asked) -> list[bytes]:
        return [b"", VERSION, b"CANCEL", b"cancel", asked.client_id]


class Scale0Client(ReplayClient):
    """An id that is no plain text stands in the headers as it was written, behind a `traceparent` if there is one."""

    listener = "scale0.client"

    def frames(self, asked: Asked) -> list[bytes]:
        token = without_traceparent(asked.headers).decode() or json.dumps(asked.client_id.decode())
        traceparent = leading(asked.headers).decode()
        trace = f', "traceparent": "{traceparent}"' if traceparent else ""
        header = f'{{"id": {token}, "service": {json.dumps(asked.queue.decode())}{trace}}}'
        return [b"TASK", header.encode(), asked.body]


class PingpongClient(ReplayClient):
    listener = "pingpong.client"

    def frames(self, asked: Asked) -> list[bytes]:
        return [b'{"order":%s}' % asked.body] if asked.headers else [b"", asked.body]


class EbusClient(ReplayClient):
    """Its headers are how long the request is worth anything, in milliseconds."""

    listener = "ebus.client"

    def frames(self, asked: Asked) -> list[bytes]:
        return [b"", FROM_CLIENT, b"REQ", asked.queue, asked.client_id, asked.body, asked.headers]

    def cancel_frames(self, asked: Asked) -> list[bytes]:
        return [b"", FROM_CLIENT, b"CANCEL", asked.queue, asked.client_id]

    def on_message(self, wire: Wire, frames: list[bytes]) -> None:
        if b"PING" in frames[1:3]:
            wire.say([b"", FROM_CLIENT, b"HEARTBEAT"])


class RqClient(ReplayClient):
    listener = "rq"

    def frames(self, asked: Asked) -> list[bytes]:
        pieces = [risp.CLEAR, risp.request_id(int(asked.client_id)), risp.queue(asked.queue), risp.payload(asked.body)]
        if asked.is_noreply:
            pieces.append(risp.NOREPLY)
        if asked.retries >= 0:
            pieces.append(risp.retries(asked.retries))
        if asked.timeout_s:
            pieces.append(risp.timeout(int(asked.timeout_s)))
        return [*pieces, risp.REQUEST]

    def on_message(self, wire: Wire, frames: list[bytes]) -> None:
        if frames[0] == b"PING":
            wire.say([risp.PONG])


CLIENTS: dict[str, type[ReplayClient]] = {
    "emqp": EmqpClient,
    "scale0": Scale0Client,
    "pingpong": PingpongClient,
    "ebus": EbusClient,
    "rq": RqClient,
}
