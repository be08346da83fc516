"""The bars the product holds itself to, and how a measured figure compares."""

from __future__ import annotations

from dataclasses import dataclass

from bench.dialogues import EMQP, LOOP, MANY, ONE, PROXY, WIDE, Dialogue
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


def wire_bars(dialogue: Dialogue, figures: Figures) -> list[Bar]:
    """The dialogue's own bar, and eMQP's further ones."""
    point = dialogue.bar_point
    found = [
        Bar(f"{dialogue.name}: os to zmq.proxy, {point.name}", figures.ratio(point, "os", PROXY), dialogue.bar, True)
    ]
    if dialogue is EMQP:
        found += [
            Bar("emqp: disk to zmq.proxy, 1000 in flight", figures.ratio(MANY, "disk", PROXY), 0.7, True),
            Bar("emqp: os to zmq.proxy, 1000 in flight, 50 conn", figures.ratio(WIDE, "os", PROXY), 1.2, True),
            Bar("emqp: os p50 to zmq.proxy's, 1 in flight", figures.ratio(ONE, "os", PROXY, "p50_us"), 1.3, False),
            Bar("emqp: os to the pyzmq loop, 1000 in flight", figures.ratio(MANY, "os", LOOP), 8.0, True),
        ]
    return found
