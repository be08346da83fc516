"""The broker's side of EBUS."""

from __future__ import annotations

from dragoman.dialects.ebus.dialect import EbusDialect
from dragoman.dialects.ebus.publisher import EbusPublisher
from dragoman.dialects.ebus.session import EbusSession
from dragoman.dialects.ebus.settings import EbusSettings
from dragoman.dialects.session import Outboxes, Session
from dragoman.dialects.subscriber import TopicSubscriber
from dragoman.model.words import EBUS


def new_dialect(outboxes: Outboxes, id_seed: bytes) -> EbusDialect:
    return EbusDialect(outboxes, EbusSettings())


def new_session(dialect: EbusDialect, listener: str, listener_no: int) -> Session:
    if listener == "ebus.subscribe":
        return TopicSubscriber(EBUS, listener, listener_no, dialect.outboxes, b"XPUB")
    if listener == "ebus.publish":
        return EbusPublisher(listener, listener_no, dialect.outboxes)
    return EbusSession(listener, listener_no, dialect.outboxes, dialect)
