"""The ebus settings that an operator may change."""

from __future__ import annotations

from typing import Final, final

from dragoman.dialects.setting import SIZE, DialectSetting
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


DEFAULTS: Final = EbusSettings()
SETTINGS: Final = [
    DialectSetting(
        "stales_s",
        "A request without `stales ms` expires after so long, waiting or running.",
        above_zero=True,
    ),
    DialectSetting("heartbeat_s", "The broker sends its workers HEARTBEAT this often. 0 = only in answer to PING."),
    DialectSetting("ping_s", "A silent worker is sent PING this often.", above_zero=True),
    DialectSetting(
        "pings_max",
        'A worker that did not answer so many PINGs is disconnected ("no heartbeat") and its requests go to others.',
        most=10**6,
    ),
    DialectSetting(
        "worker_requests_max",
        "The most requests one worker holds. A smaller number in its READY counts instead.",
        least=1,
        most=100_000,
    ),
    DialectSetting(
        "data",
        "The form of the broker's own data: zlib over BSON `{l: value}` as the newest original, or JSON as the document.",
        attribute="is_json",
        codes={"bson": False, "json": True},
    ),
    DialectSetting(
        "answers_kept_s",
        "How a request ended is remembered for so long, or three times its `stales ms` if that is longer: the same rid "
        "sent again is answered from memory, never run again.",
    ),
    DialectSetting(
        "answers_max",
        "Ended requests remembered at most. The oldest are forgotten first, up to half of them at once.",
    ),
    DialectSetting("answers_size_max", "Bytes of data, asked and answered, that those may hold.", kind=SIZE),
]
