"""The eMQP settings that an operator may change."""

from __future__ import annotations

from typing import Final, final

from dragoman.dialects.setting import DialectSetting
from dragoman.model.units import SECOND_NS


@final
class EmqpSettings:
    """The original's values are the defaults; docs/reference/config.md explains each."""

    def __init__(self) -> None:
        self.heartbeat_ns: int = 3 * SECOND_NS
        self.worker_lost_ns: int = 5 * SECOND_NS
        self.json_only: bool = True
        self.external_scheduler: bool = False
        self.remote_stop: bool = False
        self.default_queue: bytes = b"default"
        self.default_weight: int = 10
        # The original's worker reports a timeout up to a second late, and its REPLY takes up to another.
        self.timeout_grace_ns: int = 3 * SECOND_NS
        # The original ends every job after this time by itself; a lease without a limit would outlast a crashed process.
        self.original_timeout_ns: int = 300 * SECOND_NS


DEFAULTS: Final = EmqpSettings()
SETTINGS: Final = [
    DialectSetting("heartbeat_s", "The broker sends HEARTBEAT this often.", above_zero=True),
    DialectSetting(
        "worker_lost_s",
        "A worker silent for so long is lost and its jobs go elsewhere. More than heartbeat_s.",
        above_zero=True,
        more_than="heartbeat_s",
    ),
    DialectSetting(
        "json_only",
        "Offer workers that INFORMed in EventMQ's own shape only bodies that are UTF-8 JSON; any other body resets "
        "EventMQ's job manager.",
    ),
    DialectSetting(
        "scheduler",
        "Who keeps schedules: the broker, or EventMQ's scheduler program that has INFORMed.",
        reloadable=False,
        attribute="external_scheduler",
        codes={"builtin": False, "external": True},
    ),
    DialectSetting(
        "remote_stop",
        "DISCONNECT on the admin port (EventMQ's `emq-cli shutdown`) stops the broker. false = it is answered with the name of this "
        "setting. Every peer that can reach the port may send it.",
    ),
    DialectSetting("default_queue", "The queue meant by an empty name.", reloadable=False),
    DialectSetting("default_weight", "The weight of a queue that INFORM gives none.", reloadable=False, most=10**9),
    DialectSetting(
        "timeout_grace_s",
        "Added to a job's own timeout on EventMQ's workers, which report a timeout up to 2 s late.",
    ),
    DialectSetting(
        "original_timeout_s",
        "Bound on a job without a timeout on EventMQ's workers, which end every job by then themselves; a crashed one "
        "of theirs is never answered. 0 = queues.timeout_s.",
    ),
]
