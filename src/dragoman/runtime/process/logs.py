"""Logging to stderr: text on a terminal, JSON otherwise; lifecycle and faults, never single messages."""

from __future__ import annotations

import json
import logging
import sys
from contextlib import suppress

import structlog

from dragoman.limits import LOG_VALUE_SIZE_MAX, LOG_VALUES_MAX
from dragoman.printable import error_text, printable, printable_json, traceback_text
from dragoman.runtime.config import Config


class LineLogger:
    """Writes one line at a time to the current stderr. A closed stderr (`| head`) must not harm the broker."""

    def msg(self, message: str) -> None:
        with suppress(OSError, ValueError):
            print(message, file=sys.stderr, flush=True)  # noqa: T201 - the broker's only print

    log = debug = info = warning = error = critical = msg


def json_line(logger: object, method: str, event: structlog.typing.EventDict) -> str:
    return printable_json(json.dumps(event))


def with_traceback(logger: object, method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Replace `exc_info` by a text of bounded size under `exception`."""
    given = event.pop("exc_info", None)
    error = given if isinstance(given, BaseException) else sys.exception() if given is True else None
    if isinstance(given, tuple):
        error = given[1]
    if error is not None:
        event["exception"] = traceback_text(error)
    return event


def with_printable_values(logger: object, method: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
    """Make values safe to print. Text may come from a peer or a job: it must not control the terminal, forge a line or fill the disk."""
    for name, value in event.items():
        event[name] = value if name == "exception" else loggable(value)
    return event


def loggable(value: object) -> object:
    if isinstance(value, str):
        return printable(value, LOG_VALUE_SIZE_MAX)
    if isinstance(value, int | float | None):
        return value
    if isinstance(value, list | tuple):
        return [loggable(one) for one in value[:LOG_VALUES_MAX]]
    if isinstance(value, dict):
        return {str(loggable(str(key))): loggable(one) for key, one in list(value.items())[:LOG_VALUES_MAX]}
    return error_text(value) if isinstance(value, BaseException) else printable(str(value), LOG_VALUE_SIZE_MAX)


def configure(config: Config) -> None:
    is_text = config.log.format == "text" or (config.log.format == "auto" and sys.stderr.isatty())
    renderer: structlog.typing.Processor = (
        structlog.dev.ConsoleRenderer(pad_event_to=32, colors=sys.stderr.isatty()) if is_text else json_line
    )
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            with_traceback,
            with_printable_values,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[config.log.level.upper()]),
        logger_factory=lambda *_: LineLogger(),
        cache_logger_on_first_use=False,
    )
