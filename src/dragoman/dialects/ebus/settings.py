"""The ebus settings that an operator may change."""

from __future__ import annotations

from typing import final

from dragoman.model.units import SECOND_NS


@final
class EbusSettings:
    """The original's values are the defaults; docs/reference/config.md explains each."""

    def __init__(self) -> None:
        self.stales_ns: int = 3 * SECOND_NS
        self.heartbeat_ns: int = SECOND_NS // 2
        self.ping_ns: int = SECOND_NS
        self.pings_max: int = 5
        self.worker_requests_max: int = 1005
        self.is_json: bool = False
        self.answers_kept_ns: int = 5 * SECOND_NS
        self.answers_max: int = 40_000
        self.answers_size_max: int = 64 * 1024 * 1024
