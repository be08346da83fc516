"""The rq settings that an operator may change."""

from __future__ import annotations

from typing import final

from dragoman.model.units import SECOND_NS


@final
class RqSettings:
    """The original's values are the defaults; docs/reference/config.md explains each."""

    def __init__(self) -> None:
        self.ping_ns: int = 15 * SECOND_NS
        self.pong_ns: int = 15 * SECOND_NS
        self.greeting_ns: int = 10 * SECOND_NS
        self.retries: int = 3
        self.consumer_messages_max: int = 10_000
        self.librq_safe: bool = False
