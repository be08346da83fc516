"""The broker's side of eMQP."""

from __future__ import annotations

from dragoman.dialects.emqp.dialect import EmqpDialect, id_prefix_of
from dragoman.dialects.emqp.session import EmqpSession
from dragoman.dialects.emqp.settings import EmqpSettings
from dragoman.dialects.session import Outboxes, Session
from dragoman.dialects.subscriber import TopicSubscriber
from dragoman.model.words import EMQP


def new_dialect(outboxes: Outboxes, id_seed: bytes) -> EmqpDialect:
    return EmqpDialect(outboxes, EmqpSettings(), id_prefix_of(id_seed))


def new_session(dialect: EmqpDialect, listener: str, listener_no: int) -> Session:
    if listener == "emqp.subscribe":
        return TopicSubscriber(EMQP, listener, listener_no, dialect.outboxes, b"PUB")
    return EmqpSession(listener, listener_no, dialect.outboxes, dialect)
