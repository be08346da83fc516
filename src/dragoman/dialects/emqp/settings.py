"""The eMQP settings that an operator may change."""

from __future__ import annotations

from typing import final

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
