"""The broker's side of the ping-pong dialogue."""

from __future__ import annotations

from dragoman.dialects.pingpong.client_session import PingpongClient
from dragoman.dialects.pingpong.dialect import PingpongDialect
from dragoman.dialects.pingpong.settings import PingpongSettings
from dragoman.dialects.pingpong.worker_session import PingpongWorker
from dragoman.dialects.session import Outboxes, Session


def new_dialect(outboxes: Outboxes, id_seed: bytes) -> PingpongDialect:
    return PingpongDialect(outboxes, PingpongSettings())


def new_session(dialect: PingpongDialect, listener: str, listener_no: int) -> Session:
    if listener == "pingpong.client":
        return PingpongClient(listener, listener_no, dialect.outboxes, dialect)
    return PingpongWorker(listener, listener_no, dialect.outboxes, dialect)
