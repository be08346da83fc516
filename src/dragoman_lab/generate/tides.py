"""The load profile of a queue: a rate for every five minutes of the run, with day and night, weekends, surges and lulls."""

from __future__ import annotations

import math
from typing import Final

from dragoman.model.units import SECOND_NS
from dragoman_lab.generate.chance import Chance
from dragoman_lab.generate.plan import DAY_NS, Plan
from dragoman_lab.generate.services import Service

SLOT_S: Final = 300
SLOT_NS: Final = SLOT_S * SECOND_NS
WEEKDAY_OF_1970: Final = 3  # the epoch was a Thursday; Monday is 0
SURGES: Final = (0.05, 2.5, 4.0, 7.0)  # factors on the usual rate
SURGE_EVERY_DAYS: Final = 3.0
SURGE_SLOTS_MAX: Final = 6


class Tide:
    """Messages per second of one queue, slot by slot; after the end of the run the last slot's rate applies."""

    def __init__(self, service: Service, plan: Plan, chance: Chance) -> None:
        self.start_ns = plan.start_ns
        count = max(math.ceil(plan.span_ns / SLOT_NS), 1)
        usual = [usual_rate(service, plan.start_ns + i * SLOT_NS) for i in range(count)]
        per_unit = plan.messages * service.share / sum(usual) / SLOT_S
        self.peak = max(usual) * per_unit  # of an ordinary day
        self.rates = [rate * per_unit for rate in usual]
        for _ in range(max(round(count * SLOT_NS / DAY_NS / SURGE_EVERY_DAYS), 1)):
            first, factor = chance.below(count), SURGES[chance.below(len(SURGES))]
            for i in range(first, min(first + 1 + chance.below(SURGE_SLOTS_MAX), count)):
                self.rates[i] *= factor
        planned = 0.0
        self.rest = [0.0] * (count + 1)  # messages still to come from this slot on
        for i in range(count - 1, -1, -1):
            planned += self.rates[i] * SLOT_S
            self.rest[i] = planned

    def at(self, now_ns: int) -> tuple[float, int]:
        """The rate now, and the instant until which it holds."""
        slot = (now_ns - self.start_ns) // SLOT_NS
        return self.rates[min(slot, len(self.rates) - 1)], self.start_ns + (slot + 1) * SLOT_NS

    def to_come(self, now_ns: int) -> float:
        """The number of messages from now to the end of the run."""
        slot, into_ns = divmod(now_ns - self.start_ns, SLOT_NS)
        if slot >= len(self.rates):
            return 0.0
        return self.rest[slot] - self.rates[slot] * into_ns / SECOND_NS


def usual_rate(service: Service, at_ns: int) -> float:
    """The rate of an ordinary week, relative to the busiest hour of a weekday."""
    hour = at_ns % DAY_NS / (DAY_NS / 24)
    weekday = (at_ns // DAY_NS + WEEKDAY_OF_1970) % 7
    away_h = abs(hour - service.peak_hour)
    away_h = min(away_h, 24 - away_h)
    bump = math.exp(-((away_h / service.width_h) ** 2) / 2)
    return (service.night + (1 - service.night) * bump) * (service.weekend if weekday >= 5 else 1.0)
