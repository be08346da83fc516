"""The kinds of facts that belong to a message's life, and those that end an attempt."""

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
NAMING: Final = (QUEUE_NAMED, PAUSED, RESUMED)  # the source of the table of queues
ATTEMPT_ENDS: Final = (RELEASED, CLOSED, QUARANTINED)
