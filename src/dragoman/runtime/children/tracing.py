"""The exporter's child process, which sends synced facts as spans to an OpenTelemetry collector; restarted whenever it ends.

Without `otel.endpoint` there is none, and none of its code is imported, including this module. The broker sends it the synced lsn, one line
per second while that changes and, at its start, the names of queues and workers, which facts refer to by number only. The journal does not
wait for it: facts deleted before the export are counted as missed. otel/process.py lists the lines of both directions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import structlog

from dragoman.errors import DataDirectoryUnusable
from dragoman.model.enums import shown
from dragoman.otel.cursor import CURSOR_NAME, Cursor, read_cursor, write_cursor
from dragoman.runtime.children.followers import JournalFollower, as_json

if TYPE_CHECKING:
    from dragoman.core.core import Core
    from dragoman.journal.journal import Journal
    from dragoman.runtime.config import Config
    from dragoman.runtime.process.home import Home

NAMES_AT_ONCE: Final = 500  # lines per write

log = structlog.get_logger("dragoman.otel")


class Tracing(JournalFollower):
    """Created before the boot's first fact, with which a new exporter begins."""

    report_word, trouble_event = "exported", "traces cannot be exported"
    finish_s = 15.0  # longer than the exporter's timeout for connecting and an answer (otel/collector)

    def __init__(self, config: Config, home: Home, journal: Journal, core: Core) -> None:
        otel = config.otel
        self._core = core
        self._headers = dict(otel.headers)
        self.endpoint = otel.endpoint
        cursor = start_cursor(home, journal)
        self.exported_lsn, self.missed_facts, self.refused_spans = cursor.lsn, cursor.missed, cursor.refused
        self.spans = 0
        names = ("endpoint", "service_name", "sample_ratio", "interval_s", "spans_max", "open_max", "compression")
        options = {"data": str(home.path)} | {name: getattr(otel, name) for name in names}
        super().__init__("exporter of traces", "dragoman.otel.process", [as_json(options)], journal)

    def start(self) -> None:
        super().start()
        log.info("traces are exported", endpoint=self.endpoint)

    def on_report(self, rest: str) -> None:
        numbers = [int(number) for number in rest.split()]
        self.exported_lsn, self.spans, self.missed_facts, self.refused_spans = numbers

    def on_unfinished(self) -> None:
        log.warning("the collector lags behind; the next start goes on there", exported_lsn=self.exported_lsn)

    def view(self) -> dict[str, Any]:
        return {
            "endpoint": self.endpoint,
            "exported_lsn": self.exported_lsn,
            "behind": max(self.journal.synced_lsn - self.exported_lsn, 0),
            "spans": self.spans,
            "missed_facts": self.missed_facts,
            "refused_spans": self.refused_spans,
            **super().view(),
        }

    async def introduce(self) -> None:
        lines = list(self._names())
        await self.child.send(f"headers {as_json(self._headers)}")
        for start in range(0, len(lines), NAMES_AT_ONCE):
            await self.child.send("\n".join(lines[start : start + NAMES_AT_ONCE]))

    def _names(self) -> Iterator[str]:
        for number, queue in self._core.state.queues_by_no.items():
            yield f"queue {number} {as_json(shown(queue.name))}"
        for number, peer in self._core.workers.items():
            yield f"worker {number} {as_json(shown(peer.identity) or peer.remote)}"  # as in the `worker_joined` fact


def start_cursor(home: Home, journal: Journal) -> Cursor:
    """Where the exporter continues. A new one begins with this boot; so does one whose journal was restored to an earlier state."""
    broker, last_lsn = journal.broker_id.hex(), journal.next_lsn - 1
    try:
        cursor = read_cursor(home.path)
        if cursor is None or cursor.broker != broker or cursor.lsn > last_lsn:
            cursor = Cursor(broker, last_lsn)
            write_cursor(home.path, cursor)
    except OSError as error:
        raise DataDirectoryUnusable(f"{home.path} (its {CURSOR_NAME})", error) from error
    return cursor
