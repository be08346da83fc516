"""The sides of each dialect but eMQP, by its name. A dialect's code is imported when it is first spoken."""

from __future__ import annotations

import asyncio
import time
import uuid

from dragoman.dialects.sides import ClientSide, PublisherSide, SubscriberSide, WorkerSide
from dragoman.limits import MESSAGE_SIZE_MAX


def client_side(dialect: str, identity: bytes, is_alternate: bool = False) -> ClientSide:
    """`is_alternate`: it is not the broker that was to be used, so where brokers know of each other it is asked which to use."""
    if dialect == "rq":
        from dragoman.dialects.rq.client_side import RqClientSide

        return RqClientSide(MESSAGE_SIZE_MAX)
    if dialect == "ebus":
        from dragoman.dialects.ebus.client_side import EbusClientSide

        return EbusClientSide(identity, MESSAGE_SIZE_MAX)
    if dialect == "scale0":
        from dragoman.dialects.scale0.client_side import Scale0ClientSide

        return Scale0ClientSide(identity, MESSAGE_SIZE_MAX, is_alternate, wall_s())
    if dialect == "pingpong":
        from dragoman.dialects.pingpong.client_side import PingpongClientSide

        return PingpongClientSide(MESSAGE_SIZE_MAX)
    raise AssertionError(dialect)


def worker_side(dialect: str, is_alternate: bool = False, program: bytes = b"") -> WorkerSide:
    """Every connection of a worker has an identity of its own: a broker must not take it for the one before. `program` names the
    worker over all its connections; rq has no word for it."""
    if dialect == "rq":
        from dragoman.dialects.rq.worker_side import RqWorkerSide

        return RqWorkerSide(MESSAGE_SIZE_MAX)
    if dialect == "ebus":
        from dragoman.dialects.ebus.worker_side import EbusWorkerSide

        ebus = EbusWorkerSide(new_identity(), MESSAGE_SIZE_MAX)
        ebus.zmtp.program = program
        return ebus
    if dialect == "scale0":
        from dragoman.dialects.scale0.worker_side import Scale0WorkerSide

        scale0 = Scale0WorkerSide(new_identity(), MESSAGE_SIZE_MAX, is_alternate, wall_s())
        scale0.accord.zmtp.program = program
        return scale0
    if dialect == "pingpong":
        from dragoman.dialects.pingpong.worker_side import PingpongWorkerSide

        pingpong = PingpongWorkerSide(MESSAGE_SIZE_MAX)
        pingpong.zmtp.program = program
        return pingpong
    raise AssertionError(dialect)


def publisher_side(dialect: str) -> ClientSide | PublisherSide:
    if dialect == "rq":
        return client_side(dialect, b"")
    if dialect == "ebus":
        from dragoman.dialects.ebus.news_sides import EbusPublisherSide

        return EbusPublisherSide(MESSAGE_SIZE_MAX)
    raise AssertionError(dialect)


def subscriber_side(dialect: str) -> SubscriberSide:
    if dialect == "rq":
        from dragoman.dialects.rq.subscriber_side import RqSubscriberSide

        return RqSubscriberSide(MESSAGE_SIZE_MAX)
    if dialect == "ebus":
        from dragoman.dialects.ebus.news_sides import EbusSubscriberSide

        return EbusSubscriberSide(MESSAGE_SIZE_MAX)
    raise AssertionError(dialect)


def new_identity() -> bytes:
    return str(uuid.uuid4()).encode()


def wall_s() -> float:
    """The wall clock less the loop's, which is the one a side is told."""
    return time.time() - asyncio.get_running_loop().time()
