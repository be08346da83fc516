"""The Scale0 settings that an operator may change."""

from __future__ import annotations

from typing import Final, final

from dragoman.dialects.scale0.configuration.tree import Node
from dragoman.dialects.setting import DOCUMENT, DialectSetting
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
        self.look_ns: int = 5 * SECOND_NS


DEFAULTS: Final = Scale0Settings()
SETTINGS: Final = [
    DialectSetting(
        "config_file",
        "The configuration that peers are sent, in JSON, XML or ZPL by the file's suffix; read again at each reload, and when it "
        "was edited. "
        "Empty = none but the interval below.",
        attribute="tree",
        kind=DOCUMENT,
    ),
    DialectSetting(
        "heartbeat_s",
        "The heartbeat interval of workers that give none, unless the configuration has default_heartbeat_interval.",
        above_zero=True,
    ),
    DialectSetting(
        "heartbeats_missed", "A worker silent for so many of its intervals gets no work.", least=1, most=1000
    ),
    DialectSetting("skew_s", "A peer whose `time` is further than this from the broker's clock is refused (503)."),
    DialectSetting(
        "offences_max",
        "Invalid messages within ban_s after which their sender counts as hostile (444).",
        least=1,
        most=10**9,
    ),
    DialectSetting("ban_s", "How long messages of a hostile peer are ignored."),
    DialectSetting("broadcast_s", "How often PING is broadcast, as by the newest original.", above_zero=True),
    DialectSetting(
        "look_s",
        "How often the other brokers of the configuration are probed: one that does not answer is not recommended, and a "
        "reported load is used. 0 = never.",
    ),
]
