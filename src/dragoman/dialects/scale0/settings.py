"""The Scale0 settings that an operator may change."""

from __future__ import annotations

from typing import final

from dragoman.dialects.scale0.configuration.tree import Node
from dragoman.model.units import SECOND_NS


@final
class Scale0Settings:
    """The settings; docs/reference/config.md explains each."""

    def __init__(self) -> None:
        self.tree = Node()
        self.heartbeat_ns: int = 10 * SECOND_NS
        self.heartbeats_missed: int = 3
        self.skew_ns: int = 30 * SECOND_NS
        self.offences_max: int = 10
        self.ban_ns: int = 60 * SECOND_NS
        self.broadcast_ns: int = SECOND_NS
