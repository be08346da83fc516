"""The broker's side of RQ."""

from __future__ import annotations

from dragoman.dialects.rq.description import LINK
from dragoman.dialects.rq.dialect import RqDialect
from dragoman.dialects.rq.link import RqLink
from dragoman.dialects.rq.session import RqSession
from dragoman.dialects.rq.settings import RqSettings
from dragoman.dialects.session import Outboxes, Session


def new_dialect(outboxes: Outboxes, id_seed: bytes) -> RqDialect:
    return RqDialect(outboxes, RqSettings())


def new_session(dialect: RqDialect, listener: str, listener_no: int) -> Session:
    if listener == LINK:
        return RqLink(listener, listener_no, dialect.outboxes, dialect)
    return RqSession(listener, listener_no, dialect.outboxes, dialect)
