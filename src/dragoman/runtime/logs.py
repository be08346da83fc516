"""Logs on stderr: text on a terminal, JSON otherwise; lifecycle and faults, never single messages."""

from __future__ import annotations

import logging
import sys
from contextlib import suppress

import structlog

from dragoman.runtime.config import Config


class LineLogger:
    """One line at a time to what stderr is now. A line nobody can read any more (`| head`) must not harm the broker."""

    def msg(self, message: str) -> None:
        with suppress(OSError, ValueError):
            print(message, file=sys.stderr, flush=True)  # noqa: T201 - the one place where the broker speaks

    log = debug = info = warning = error = critical = msg


def new_logger(*_: object) -> LineLogger:
    return LineLogger()


def configure(config: Config) -> None:
    is_text = config.log.format == "text" or (config.log.format == "auto" and sys.stderr.isatty())
    renderer: structlog.typing.Processor = (
        structlog.dev.ConsoleRenderer(pad_event_to=32, colors=sys.stderr.isatty())
        if is_text
        else structlog.processors.JSONRenderer()
    )
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[config.log.level.upper()]),
        logger_factory=new_logger,
        cache_logger_on_first_use=False,
    )
