"""Every dialect, and every listener: its number (part of reply addresses, kept for ever) and the session that speaks there."""

from __future__ import annotations

from typing import Final, final

from dragoman.dialects.contract import Dialect
from dragoman.dialects.ebus.dialect import EbusDialect, EbusSettings
from dragoman.dialects.ebus.publisher import EbusPublisher
from dragoman.dialects.ebus.session import EbusSession
from dragoman.dialects.emqp.dialect import EmqpDialect, EmqpSettings, id_prefix_of
from dragoman.dialects.emqp.session import EmqpSession
from dragoman.dialects.pingpong.client_session import PingpongClient
from dragoman.dialects.pingpong.dialect import PingpongDialect, PingpongSettings
from dragoman.dialects.pingpong.worker_session import PingpongWorker
from dragoman.dialects.rq.dialect import RQ_LINK_NO, RqDialect, RqSettings
from dragoman.dialects.rq.link import RqLink
from dragoman.dialects.rq.session import RqSession
from dragoman.dialects.scale0.dialect import Scale0Dialect, Scale0Settings
from dragoman.dialects.scale0.session import Scale0Session
from dragoman.dialects.scale0.subscriber import Scale0Subscriber
from dragoman.dialects.session import Hub, Session
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
# No listener: a connection of ours to another rq controller. Its number in addresses is RQ_LINK_NO.
RQ_LINK: Final = "rq.link"


@final
class Dialects:
    """One of each, for one broker."""

    def __init__(self, hub: Hub, id_seed: bytes) -> None:
        self.hub = hub
        self.emqp = EmqpDialect(hub, EmqpSettings(), id_prefix_of(id_seed))
        self.scale0 = Scale0Dialect(hub, Scale0Settings())
        self.pingpong = PingpongDialect(hub, PingpongSettings())
        self.ebus = EbusDialect(hub, EbusSettings())
        self.rq = RqDialect(hub, RqSettings())
        self.all: list[Dialect] = [self.scale0, self.pingpong, self.emqp, self.ebus, self.rq]

    def of(self, listener: str) -> Dialect:
        """The dialect spoken at a listener."""
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
        """The session for a new connection to a listener, or for one of our own to another controller."""
        if listener == RQ_LINK:
            return RqLink(listener, RQ_LINK_NO, self.hub, self.rq)
        number = LISTENER_NUMBERS[listener]
        if listener == "emqp.subscribe":
            return TopicSubscriber(EMQP, listener, number, self.hub, b"PUB")
        if listener.startswith("emqp."):
            return EmqpSession(listener, number, self.hub, self.emqp)
        if listener == "pingpong.client":
            return PingpongClient(listener, number, self.hub, self.pingpong)
        if listener == "pingpong.worker":
            return PingpongWorker(listener, number, self.hub, self.pingpong)
        if listener == "rq":
            return RqSession(listener, number, self.hub, self.rq)
        if listener == "ebus.subscribe":
            return TopicSubscriber(EBUS, listener, number, self.hub, b"XPUB")
        if listener == "ebus.publish":
            return EbusPublisher(listener, number, self.hub)
        if listener.startswith("ebus."):
            return EbusSession(listener, number, self.hub, self.ebus)
        if listener == "scale0.publish":
            return Scale0Subscriber(listener, number, self.hub, self.scale0)
        if listener.startswith("scale0."):
            return Scale0Session(listener, number, self.hub, self.scale0)
        raise NotImplementedError
