"""The bars the product holds itself to, and how a measured figure compares."""

from __future__ import annotations

from dataclasses import dataclass

from bench.endpoint import Point
from bench.rounds import Figures


@dataclass(frozen=True)
class Bar:
    """One promise in numbers; `value` is None when it was not measured in this run."""

    text: str
    value: float | None
    limit: float
    is_floor: bool  # at least `limit`, else at most
    unit: str = "×"

    @property
    def verdict(self) -> str:
        if self.value is None:
            return "not measured"
        return "met" if (self.value >= self.limit) == self.is_floor or self.value == self.limit else "missed"

    @property
    def wanted(self) -> str:
        return f"{'≥' if self.is_floor else '≤'} {self.limit:g} {self.unit}"

    def to_json(self) -> dict[str, object]:
        return {"bar": self.text, "value": self.value, "wanted": self.wanted, "verdict": self.verdict}


def wire_bars(figures: Figures) -> list[Bar]:
    one, many, wide = Point(1, 1), Point(1000, 1), Point(1000, 50)
    proxy, loop = "zmq.proxy", "pyzmq loop"
    return [
        Bar("os to zmq.proxy, 1000 in flight", figures.ratio(many, "os", proxy), 1.0, True),
        Bar("disk to zmq.proxy, 1000 in flight", figures.ratio(many, "disk", proxy), 0.7, True),
        Bar("os to zmq.proxy, 1000 in flight, 50 connections", figures.ratio(wide, "os", proxy), 1.2, True),
        Bar("os p50 to zmq.proxy's, 1 in flight", figures.ratio(one, "os", proxy, "p50_us"), 1.3, False),
        Bar("os to the pyzmq loop, 1000 in flight", figures.ratio(many, "os", loop), 8.0, True),
    ]
