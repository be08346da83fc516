"""The exporter as a child of the broker: `python -m dragoman.otel.process OPTIONS`, which are JSON.

    in    headers <json>                             sent with every request; on stdin, so that `ps` does not show them
          queue <no> <name as json>                  earlier names: the journal may not have them any more
          worker <no> <name as json>
    out   exported <lsn> <spans> <missed> <refused>  the collector has accepted; once at the start to report the position

journal/tools/child_loop documents the other lines of both directions. The exporter runs at the lowest scheduling priority, and the broker
never waits for it: while the collector is unavailable, facts stay in the journal.
"""

from __future__ import annotations

import logging
import sys
import time
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from dragoman import log_lines
from dragoman.errors import CollectorAway, DragomanError, ExporterBusy
from dragoman.journal.reader import JournalReader
from dragoman.journal.tools.child_loop import Loop, Parent, exclusive, run_child
from dragoman.otel.collector import Collector
from dragoman.otel.cursor import read_cursor
from dragoman.otel.exporter import Exporter
from dragoman.otel.otlp import Encoder
from dragoman.otel.tracer import Tracer

log = logging.getLogger("dragoman.otel")

RETRY_S: Final = 0.5
RETRY_S_MAX: Final = 30.0
IDLE_S: Final = 60.0
KEEP_S: Final = 1.0  # how often the cursor is written: it is synced, and the broker needs the disk
LOCK_NAME: Final = "otel.lock"


@dataclass(frozen=True, slots=True)
class Options:
    """The broker's settings for it."""

    data: str
    endpoint: str
    service_name: str
    sample_ratio: float
    interval_s: float
    spans_max: int
    open_max: int
    compression: str

    @property
    def journal(self) -> str:
        return str(Path(self.data) / "journal")


class ExportLoop(Loop):
    """Reads facts and sends spans."""

    def __init__(self, options: Options, parent: Parent) -> None:
        super().__init__(parent, options.data)
        self._options = options
        self._exporter: Exporter | None = None
        self._headers: dict[str, str] = {}
        self._queues: dict[int, str] = {}
        self._workers: dict[int, str] = {}
        self._oldest_s = 0.0  # when the oldest unsent span was made
        self._kept_s = 0.0
        self._retry_s = RETRY_S

    def pause_s(self, error: DragomanError) -> float:
        """Exponential backoff, or the collector's own time if that is longer."""
        pause_s = self._retry_s
        self._retry_s = min(self._retry_s * 2, RETRY_S_MAX)
        return max(pause_s, error.wait_s if isinstance(error, CollectorAway) else 0.0)

    def end_trouble(self) -> None:
        """Does nothing here: only a successful `_send` shows that the collector is back."""

    def wait_s(self, now_s: float) -> float:
        exporter = self._exporter
        if exporter is None:
            return IDLE_S
        due_s = now_s + IDLE_S
        if exporter.spans:
            due_s = self._oldest_s + self._options.interval_s
        elif exporter.is_ahead_of_cursor:
            due_s = self._kept_s + KEEP_S
        return due_s - now_s

    def on_command(self, command: str, rest: str) -> None:
        names = {"queue": self._queues, "worker": self._workers}.get(command)
        try:
            if command == "headers":
                self._headers = msgspec.json.decode(rest, type=dict[str, str])
            elif names is not None:
                number, _, name = rest.partition(" ")
                names[int(number)] = msgspec.json.decode(name, type=str)
            else:
                super().on_command(command, rest)
        except (ValueError, msgspec.DecodeError):
            log.warning("%s: not understood", command)  # the rest may be secret

    def work(self, now_s: float) -> None:
        exporter = self._exporter or self._begin()
        if exporter is None:
            return
        had_spans = exporter.spans > 0
        while exporter.take(self.synced_lsn) or exporter.is_full:
            self._send(exporter)
            self.receive(0)
            had_spans = False
        if not had_spans:
            self._oldest_s = now_s
        is_due = now_s >= self._oldest_s + self._options.interval_s
        if is_due or not exporter.spans or self.parent.has_ended:
            self._send(exporter)

    def _begin(self) -> Exporter | None:
        """The exporter, once the broker has reported a synced lsn."""
        if self.synced_lsn == 0:
            return None
        options = self._options
        directory = Path(options.data)
        reader = JournalReader(options.journal)
        cursor = read_cursor(directory)
        broker_id = reader.broker_id()
        if cursor is None or broker_id is None:
            return None  # the broker creates both before it sends anything
        tracer = Tracer(broker_id, options.sample_ratio, options.open_max)
        tracer.queues |= self._queues
        tracer.workers |= self._workers
        encoder = Encoder(options.service_name, broker_id)
        collector = Collector(options.endpoint, self._headers, options.compression)
        self._exporter = Exporter(directory, cursor, reader, tracer, encoder, collector, options.spans_max)
        self._report(self._exporter)
        return self._exporter

    def _send(self, exporter: Exporter) -> None:
        before_lsn = exporter.exported_lsn
        exporter.send()
        now_s = time.monotonic()
        if now_s >= self._kept_s + KEEP_S or self.parent.has_ended:
            exporter.keep()
            self._kept_s = now_s
        if exporter.exported_lsn != before_lsn or self._retry_s != RETRY_S:
            self._report(exporter)
        self._retry_s = RETRY_S

    def _report(self, exporter: Exporter) -> None:
        self.parent.send(f"exported {exporter.exported_lsn} {exporter.sent} {exporter.missed} {exporter.refused}")


def run(options: Options) -> int:
    """Export until the parent ends; return the exit code."""
    return run_child(exporting_alone(options.data), lambda parent: ExportLoop(options, parent))


def exporting_alone(directory: str) -> AbstractContextManager[None]:
    """Take the lock that allows one exporter per data directory."""
    return exclusive(directory, LOCK_NAME, ExporterBusy)


if __name__ == "__main__":
    log_lines.configure("WARNING", "%(asctime)s %(levelname)s exporter: %(message)s")
    sys.exit(run(msgspec.json.decode(sys.argv[1], type=Options)))
