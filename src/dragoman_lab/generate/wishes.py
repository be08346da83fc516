"""Makes the clients' messages as each dialect would: ids, flags, bounds and bodies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from dragoman.model.message import Message
from dragoman.model.units import SECOND_NS
from dragoman.model.words import (
    EBUS,
    EMQP,
    EXPIRES_HELD,
    FAILURE_FINAL,
    GUARANTEED,
    HANDOVER_WANTED,
    KEPT_WANTED,
    PINGPONG,
    REPLY_WANTED,
    RQ,
    SCALE0,
)
from dragoman_lab.generate.chance import BITS, NORMALS, Chance
from dragoman_lab.generate.services import Service

POOL_SIZE: Final = 1 << 16
BODY_SIZE_MIN, BODY_SIZE_MAX = 20, 8_000
EBUS_STALES_S: Final = 3600.0
DELAY_MEDIAN_S: Final = 900.0


class Wishes:
    """Makes messages. Bodies are pieces of one long random text."""

    def __init__(self, chance: Chance) -> None:
        self.chance = chance
        size = POOL_SIZE + BODY_SIZE_MAX
        self.pool = b"%0*x" % (size, chance.bits(4 * size))
        self.ids = 0
        self.sizes = [_size(normal) for normal in NORMALS]
        self._by_dialect: dict[int, Callable[[Service, bytes, int], Message]] = {
            SCALE0: self._scale0,
            PINGPONG: self._pingpong,
            EMQP: self._emqp,
            EBUS: self._ebus,
            RQ: self._rq,
        }

    def message(self, dialect: int, service: Service, queue: bytes, now_ns: int) -> Message:
        self.ids += 1
        return self._by_dialect[dialect](service, queue, now_ns)

    def piece(self, size: int) -> bytes:
        at = self.chance.bits(16)
        return self.pool[at : at + size]

    def _body(self, service: Service) -> bytes:
        bits = self.chance.bits
        at = bits(16)
        return self.pool[at : at + min(int(self.sizes[bits(BITS)] * service.body_size), BODY_SIZE_MAX)]

    def _scale0(self, service: Service, queue: bytes, now_ns: int) -> Message:
        m = Message(SCALE0, queue, b"task-%d" % self.ids, self._body(service))
        m.flags = REPLY_WANTED
        return m

    def _pingpong(self, service: Service, queue: bytes, now_ns: int) -> Message:
        m = Message(PINGPONG, queue, b"", self._body(service))
        m.flags = REPLY_WANTED
        return m

    def _emqp(self, service: Service, queue: bytes, now_ns: int) -> Message:
        chance = self.chance
        digits = b"%032x" % chance.bits(128)
        wire_id = b"-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
        m = Message(EMQP, queue, wire_id, self._body(service))
        kind = chance.unit()
        if kind < 0.5:
            m.flags = REPLY_WANTED
        elif kind < 0.75:
            m.flags = KEPT_WANTED
        else:
            m.flags = HANDOVER_WANTED
        if kind * 10 % 1 < 0.3:
            m.flags |= GUARANTEED
        m.retries_left = service.retries
        m.timeout_ns = int(service.timeout_s * SECOND_NS)
        self._bounds(m, service, now_ns)
        return m

    def _ebus(self, service: Service, queue: bytes, now_ns: int) -> Message:
        m = Message(EBUS, queue, b"%x" % self.ids, self._body(service))
        m.flags = REPLY_WANTED | EXPIRES_HELD
        m.expires_ns = now_ns + int((service.expires_s or EBUS_STALES_S) * SECOND_NS)
        return m

    def _rq(self, service: Service, queue: bytes, now_ns: int) -> Message:
        m = Message(RQ, queue, (self.ids & 0x7FFF).to_bytes(4, "big"), self._body(service))
        m.flags = FAILURE_FINAL | (KEPT_WANTED if self.chance.unit() < 0.3 else REPLY_WANTED | HANDOVER_WANTED)
        m.retries_left = service.retries
        self._bounds(m, service, now_ns)
        return m

    def _bounds(self, m: Message, service: Service, now_ns: int) -> None:
        """Set a delay, a priority or an expiry: rare, and never more than one of them."""
        odds = self.chance.unit()
        if odds < service.is_delayed:
            m.due_ns = now_ns + int(DELAY_MEDIAN_S * 2 ** (2 * self.chance.normal()) * SECOND_NS)
        elif odds < service.is_delayed + service.is_urgent:
            m.priority = 1 + self.chance.bits(3)
        elif service.expires_s != 0 and odds > 0.7:
            m.expires_ns = now_ns + int(service.expires_s * SECOND_NS)


def _size(normal: float) -> float:
    """A factor on a body's usual size."""
    return float(2.0**normal)
