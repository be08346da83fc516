"""The broker's side of Scale0."""

from __future__ import annotations

from dragoman.dialects.scale0.dialect import Scale0Dialect
from dragoman.dialects.scale0.session import Scale0Session
from dragoman.dialects.scale0.settings import Scale0Settings
from dragoman.dialects.scale0.subscriber import Scale0Subscriber
from dragoman.dialects.session import Outboxes, Session


def new_dialect(outboxes: Outboxes, id_seed: bytes) -> Scale0Dialect:
    return Scale0Dialect(outboxes, Scale0Settings())


def new_session(dialect: Scale0Dialect, listener: str, listener_no: int) -> Session:
    if listener == "scale0.publish":
        return Scale0Subscriber(listener, listener_no, dialect.outboxes, dialect)
    return Scale0Session(listener, listener_no, dialect.outboxes, dialect)
