"""The dialogues: what is measured in each dialect, at which loads, and the bar it holds itself to.

Every dialogue is compared with libzmq's proxy moving messages of the same frames: `proxy_mode` is what the endpoint says
through it. rq has no ZMTP form and as many messages per job as eMQP, so it is compared with eMQP's run through the proxy.
"""

from __future__ import annotations

from dataclasses import dataclass

from bench.endpoint import Point

PROXY, LOOP = "zmq.proxy", "pyzmq loop"
DURABILITIES = ("memory", "os", "disk")


@dataclass(frozen=True)
class Dialogue:
    """One dialect as the bench speaks it."""

    name: str
    client: str  # listener
    worker: str
    proxy_mode: str
    points: tuple[Point, ...]
    bar_point: Point
    bar: float  # the least of `os` ÷ proxy in round trips at that load
    contenders: tuple[str, ...] = (PROXY, "os")

    @property
    def mode(self) -> str:
        return self.name

    @property
    def listeners(self) -> tuple[str, ...]:
        return (self.client, self.worker)


ONE, MANY, WIDE = Point(1, 1), Point(1000, 1), Point(1000, 50)
TWENTY, TWENTY_EACH = Point(20, 1, 20), Point(20, 20)

EMQP = Dialogue(
    "emqp",
    "emqp.client",
    "emqp.worker",
    "proxy",
    (ONE, MANY, Point(1, 50), WIDE),
    MANY,
    1.0,
    (PROXY, LOOP, *DURABILITIES),
)
RQ = Dialogue("rq", "rq", "rq", "proxy", (ONE, MANY, WIDE), MANY, 2.5, (PROXY, *DURABILITIES))
EBUS = Dialogue("ebus", "ebus.client", "ebus.worker", "ebus-proxy", (MANY, WIDE), MANY, 1.0)
SCALE0 = Dialogue("scale0", "scale0.client", "scale0.worker", "scale0-proxy", (MANY, WIDE), MANY, 1.0)
PINGPONG = Dialogue(
    "pingpong", "pingpong.client", "pingpong.worker", "pingpong-proxy", (TWENTY, TWENTY_EACH), TWENTY, 1.0
)
DIALOGUES = {dialogue.name: dialogue for dialogue in (EMQP, RQ, EBUS, SCALE0, PINGPONG)}
NAMES = EMQP.contenders


def names_of(dialogue: Dialogue, wanted: list[str] | None) -> tuple[str, ...]:
    """Which contenders to measure: the dialogue's own, or those asked for that speak it."""
    if not wanted:
        return dialogue.contenders
    speakers = NAMES if dialogue is EMQP else (PROXY, *DURABILITIES)
    return tuple(name for name in speakers if name in wanted)
