"""Every dialect, and every listener: its number (part of reply addresses, so it never changes) and its session class."""

from __future__ import annotations

from typing import Final, final

from dragoman.dialects.contract import Dialect
from dragoman.dialects.ebus.dialect import EbusDialect
from dragoman.dialects.ebus.publisher import EbusPublisher
from dragoman.dialects.ebus.session import EbusSession
from dragoman.dialects.ebus.settings import EbusSettings
from dragoman.dialects.emqp.dialect import EmqpDialect, id_prefix_of
from dragoman.dialects.emqp.session import EmqpSession
from dragoman.dialects.emqp.settings import EmqpSettings
from dragoman.dialects.pingpong.client_session import PingpongClient
from dragoman.dialects.pingpong.dialect import PingpongDialect
from dragoman.dialects.pingpong.settings import PingpongSettings
from dragoman.dialects.pingpong.worker_session import PingpongWorker
from dragoman.dialects.rq.dialect import RQ_LINK_NO, RqDialect
from dragoman.dialects.rq.link import RqLink
from dragoman.dialects.rq.session import RqSession
from dragoman.dialects.rq.settings import RqSettings
from dragoman.dialects.scale0.dialect import Scale0Dialect
from dragoman.dialects.scale0.session import Scale0Session
from dragoman.dialects.scale0.settings import Scale0Settings
from dragoman.dialects.scale0.subscriber import Scale0Subscriber
from dragoman.dialects.session import Outboxes, Session
from dragoman.dialects.subscriber import TopicSubscriber
from dragoman.model.words import EBUS, EMQP

LISTENER_NUMBERS: Final = {
    "emqp.client": 1,
    "emqp.worker": 2,
    "emqp.admin": 3,
    "emqp.publish": 4,
    "emqp.subscribe": 5,
    "scale0.client": 6,
    "scale0.worker": 7,
    "scale0.publish": 8,
    "pingpong.client": 9,
    "pingpong.worker": 10,
    "ebus.client": 11,
    "ebus.worker": 12,
    "ebus.publish": 13,
    "ebus.subscribe": 14,
    "rq": 15,
}
# Not a listener: our own connection to another rq controller. Its number in addresses is RQ_LINK_NO.
RQ_LINK: Final = "rq.link"


@final
class Dialects:
    """One instance of each dialect, for one broker."""

    def __init__(self, outboxes: Outboxes, id_seed: bytes) -> None:
        self.outboxes = outboxes
        self.emqp = EmqpDialect(outboxes, EmqpSettings(), id_prefix_of(id_seed))
        self.scale0 = Scale0Dialect(outboxes, Scale0Settings())
        self.pingpong = PingpongDialect(outboxes, PingpongSettings())
        self.ebus = EbusDialect(outboxes, EbusSettings())
        self.rq = RqDialect(outboxes, RqSettings())
        self.all: list[Dialect] = [self.scale0, self.pingpong, self.emqp, self.ebus, self.rq]

    def of(self, listener: str) -> Dialect:
        """The dialect of a listener."""
        if listener.startswith("emqp."):
            return self.emqp
        if listener.startswith("ebus."):
            return self.ebus
        if listener.startswith("scale0."):
            return self.scale0
        if listener.startswith("pingpong."):
            return self.pingpong
        return self.rq

    def session(self, listener: str) -> Session:
        """Create the session for a new connection to a listener, or for our own connection to another controller."""
        if listener == RQ_LINK:
            return RqLink(listener, RQ_LINK_NO, self.outboxes, self.rq)
        number = LISTENER_NUMBERS[listener]
        if listener == "emqp.subscribe":
            return TopicSubscriber(EMQP, listener, number, self.outboxes, b"PUB")
        if listener.startswith("emqp."):
            return EmqpSession(listener, number, self.outboxes, self.emqp)
        if listener == "pingpong.client":
            return PingpongClient(listener, number, self.outboxes, self.pingpong)
        if listener == "pingpong.worker":
            return PingpongWorker(listener, number, self.outboxes, self.pingpong)
        if listener == "rq":
            return RqSession(listener, number, self.outboxes, self.rq)
        if listener == "ebus.subscribe":
            return TopicSubscriber(EBUS, listener, number, self.outboxes, b"XPUB")
        if listener == "ebus.publish":
            return EbusPublisher(listener, number, self.outboxes)
        if listener.startswith("ebus."):
            return EbusSession(listener, number, self.outboxes, self.ebus)
        if listener == "scale0.publish":
            return Scale0Subscriber(listener, number, self.outboxes, self.scale0)
        if listener.startswith("scale0."):
            return Scale0Session(listener, number, self.outboxes, self.scale0)
        raise NotImplementedError
