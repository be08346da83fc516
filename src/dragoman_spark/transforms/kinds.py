"""Which kinds of fact tell of a message's life, and which of them end an attempt."""

from __future__ import annotations

from typing import Final

from dragoman_spark.schemas import kind

STARTED: Final = kind("started")
QUEUE_NAMED: Final = kind("queue_named")
WORKER_JOINED: Final = kind("worker_joined")
WORKER_LEFT: Final = kind("worker_left")
ACCEPTED: Final = kind("accepted")
LEASED: Final = kind("leased")
DELIVERED: Final = kind("delivered")
RELEASED: Final = kind("released")
CLOSED: Final = kind("closed")
QUARANTINED: Final = kind("quarantined")
REQUEUED: Final = kind("requeued")
PAUSED: Final = kind("paused")
RESUMED: Final = kind("resumed")

# `fired` names the message it made, but the message's life begins with its `accepted`.
LIFE: Final = (ACCEPTED, LEASED, DELIVERED, RELEASED, CLOSED, QUARANTINED, REQUEUED)
NAMING: Final = (QUEUE_NAMED, PAUSED, RESUMED)  # what the table of queues is made of
ATTEMPT_ENDS: Final = (RELEASED, CLOSED, QUARANTINED)
