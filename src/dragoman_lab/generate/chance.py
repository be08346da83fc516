"""Seeded randomness. Exponential and normal values come from tables of their quantiles, ten times as fast as drawing them."""

from __future__ import annotations

import math
import random
from statistics import NormalDist
from typing import Final, TypeVar

T = TypeVar("T")

BITS: Final = 12
COUNT: Final = 1 << BITS
EXPONENTIALS: Final = [-math.log(1 - (i + 0.5) / COUNT) for i in range(COUNT)]
NORMALS: Final = [NormalDist().inv_cdf((i + 0.5) / COUNT) for i in range(COUNT)]


class Chance:
    """All random values of one run."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)
        self.unit = self._random.random  # 0 ≤ x < 1
        self.bits = self._random.getrandbits
        self.between = self._random.uniform

    def exponential(self) -> float:
        """An exponential value with mean 1."""
        return EXPONENTIALS[self.bits(BITS)]

    def normal(self) -> float:
        return NORMALS[self.bits(BITS)]

    def below(self, count: int) -> int:
        return self._random.randrange(count)

    def one_of(self, things: list[T]) -> T:
        return things[self._random.randrange(len(things))]

    def mix(self, shares: dict[T, float], count: int) -> list[T]:
        """A shuffled list of about `count` things in these shares, each at least once."""
        total = sum(shares.values())
        mixed: list[T] = []
        for thing, share in shares.items():
            mixed += [thing] * max(round(count * share / total), 1)
        self._random.shuffle(mixed)
        return mixed
