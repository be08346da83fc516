"""Clients of a replay: each sends its messages in its dialect, as the journal records them."""

from __future__ import annotations

import json

from dragoman.dialects.traceparent import leading, without_traceparent
from dragoman_lab.replay.play.stage import Stage
from dragoman_lab.replay.tables import Asked, ReplayedPeer
from dragoman_lab.sim.machine import risp
from dragoman_lab.sim.machine.net import StillWire, Wire
from dragoman_lab.sim.peers.ebus import FROM_CLIENT
from dragoman_lab.sim.peers.emqp import VERSION


class ReplayClient:
    """One client: connects with its first message and stays until the story disconnects it."""

    listener = ""
    is_rude = False

    def __init__(self, stage: Stage, peer: ReplayedPeer) -> None:
        self.stage, self.peer = stage, peer
        self.name = peer.name
        self.wire: Wire | None = None

    def come(self) -> Wire:
        if self.wire is None or not self.wire.is_up:
            self.wire = StillWire(self.stage, self, self.listener, self.peer.identity, self.peer.socket)
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
        """Cancel the message; False if the dialect has no command for it."""
        frames = self.cancel_frames(asked)
        if frames:
            self.come().say(frames)
            self.stage.settle()
        return bool(frames)

    # -- specific to the dialect ----------------------------------------------------------------------------------------

    def frames(self, asked: Asked) -> list[bytes]:
        raise NotImplementedError

    def cancel_frames(self, asked: Asked) -> list[bytes]:
        return []

    # -- received messages ----------------------------------------------------------------------------------------------

    def on_left(self, wire: Wire, frames: list[bytes]) -> None:
        """Ignored: a replay checks facts, not replies."""

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
    """An id that is not plain text is in the headers as it was sent, after a `traceparent` if there is one."""

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
    """Its headers are the request's expiry in milliseconds."""

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
