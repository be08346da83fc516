"""The pingpong settings that an operator may change."""

from __future__ import annotations

from typing import final

from dragoman.dialects.pingpong.words import UNKNOWN
from dragoman.model.units import SECOND_NS


@final
class PingpongSettings:
    """The original's values are the defaults; docs/reference/config.md explains each."""

    def __init__(self) -> None:
        self.queue: bytes = b"pingpong"
        self.form: int = UNKNOWN  # UNKNOWN: detected from the worker's messages
        self.worker_expire_ns: int = 3 * SECOND_NS
        self.send_exit: bool = False
