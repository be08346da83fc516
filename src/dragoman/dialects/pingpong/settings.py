"""The pingpong settings that an operator may change."""

from __future__ import annotations

from typing import Final, final

from dragoman.dialects.pingpong.commands import FORM_NAMES, UNKNOWN
from dragoman.dialects.setting import DialectSetting
from dragoman.model.units import SECOND_NS


@final
class PingpongSettings:
    """The original's values are the defaults; docs/reference/config.md explains each."""

    def __init__(self) -> None:
        self.queue: bytes = b"pingpong"
        self.form: int = UNKNOWN  # UNKNOWN: detected from the worker's messages
        self.worker_expire_ns: int = 3 * SECOND_NS
        self.send_exit: bool = False


DEFAULTS: Final = PingpongSettings()
SETTINGS: Final = [
    DialectSetting("queue", "The queue of its clients and workers.", reloadable=False),
    DialectSetting(
        "form",
        "The form of jobs for workers; auto follows the form of a worker's messages, and is plain until then.",
        reloadable=False,
        codes={word: code for code, word in enumerate(FORM_NAMES)},
    ),
    DialectSetting(
        "worker_expire_s",
        "An idle worker silent for so long gets no job before it sends something. A busy one may be silent.",
        above_zero=True,
    ),
    DialectSetting(
        "send_exit",
        "Send workers EXIT when the broker drains or the operator dismisses one. Only workers that follow the document "
        "end then; the original's take it for a job.",
    ),
]
