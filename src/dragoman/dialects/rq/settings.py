"""The rq settings that an operator may change."""

from __future__ import annotations

from typing import Final, final

from dragoman.dialects.setting import PLACES, DialectSetting
from dragoman.limits import RQ_IDS_MAX
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
        self.upstreams: tuple[str, ...] = ()
        self.upstream_retry_ns: int = 5 * SECOND_NS


DEFAULTS: Final = RqSettings()
SETTINGS: Final = [
    DialectSetting("ping_s", "A node that is silent for so long is sent PING.", above_zero=True),
    DialectSetting(
        "pong_s",
        "A node that sends nothing for so long after PING is idle: it keeps its leases and gets no new work until it sends something.",
        above_zero=True,
    ),
    DialectSetting(
        "retries",
        "How many more consumers may try a request without RETRIES after one died or gave it back. -1 = as many as it takes.",
        least=-1,
        most=255,
    ),
    DialectSetting(
        "consumer_messages_max",
        "Messages one consumer of a queue holds at a time, whatever MAX it asks for; the bound of one that asks for none.",
        least=1,
        most=RQ_IDS_MAX,
    ),
    DialectSetting(
        "upstreams",
        "Other controllers to consume from what workers serve here: with MAX 1 and low priority, answers go back to them.",
        reloadable=False,
        kind=PLACES,
        least=13700,
    ),
    DialectSetting(
        "upstream_retry_s",
        "How long to wait before connecting again to one that is full, refuses, is silent or has closed.",
        above_zero=True,
    ),
    DialectSetting(
        "librq_safe",
        "Spare programs built on the original's library what aborts them: broadcasts are skipped, a connection over the "
        "limit is closed without SERVER_FULL, empty bodies are refused. Each is counted.",
        reloadable=False,
    ),
]
