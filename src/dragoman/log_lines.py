"""Log format of the programs that use `logging`: one bounded line per record, followed by a bounded traceback if there is one."""

from __future__ import annotations

import logging
import sys
from typing import Final

from dragoman.limits import LOG_LINE_SIZE_MAX
from dragoman.printable import printable_lines, traceback_text

WORKER_FORM: Final = "%(asctime)s %(levelname)s %(process)d %(message)s"


class PrintableFormatter(logging.Formatter):
    """Escapes unprintable characters and cuts long lines: jobs and peers may log anything."""

    def format(self, record: logging.LogRecord) -> str:
        error = record.exc_info[1] if record.exc_info else None
        plain = logging.makeLogRecord(record.__dict__ | {"exc_info": None, "exc_text": None, "stack_info": None})
        line = printable_lines(super().format(plain), LOG_LINE_SIZE_MAX)
        return f"{line}\n{traceback_text(error)}" if error is not None else line


def configure(level: int | str, text: str) -> None:
    """Log to stderr in the format `text`."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(PrintableFormatter(text))
    logging.basicConfig(level=level, handlers=[handler])
