"""The exporter: sends every span of a journal to the collector, once by its id.

It continues at the cursor (otel/cursor); the state of messages that were open there is read again from the
journal, from the oldest of them on. It never goes beyond what is synced: a power loss may cut off a later block, and its lsns would
then be reused for other facts.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

from dragoman.errors import CollectorAway, SpansRefused
from dragoman.journal.format import Block
from dragoman.journal.reader import JournalReader
from dragoman.otel.collector import Collector
from dragoman.otel.cursor import Cursor, write_cursor
from dragoman.otel.otlp import Encoder, rejected_spans
from dragoman.otel.spans import Span
from dragoman.otel.tracer import Tracer

log = logging.getLogger("dragoman.otel")

# Consecutive refusals of single spans, with none accepted, before the collector itself is considered broken.
REFUSED_MAX: Final = 16


class Exporter:
    """Exports one journal to one collector. `take` reads, `send` sends; the caller decides when to do which."""

    def __init__(
        self,
        directory: Path,
        cursor: Cursor,
        reader: JournalReader,
        tracer: Tracer,
        encoder: Encoder,
        collector: Collector,
        spans_max: int,
    ) -> None:
        self._directory = directory
        self._reader, self._tracer, self._encoder, self._collector = reader, tracer, encoder, collector
        self._spans_max = spans_max
        self._broker = cursor.broker
        self._last_block: Block | None = None
        self._exported_before_lsn = cursor.lsn  # spans of facts up to it were accepted before this process began
        # First read again what was open at the cursor.
        self._next_lsn = min(cursor.open_lsn, cursor.lsn + 1) if cursor.open_lsn else cursor.lsn + 1
        self._written_cursor = cursor
        self.exported_lsn = cursor.lsn
        self.missed = cursor.missed
        self.refused = cursor.refused
        self.sent = 0  # spans accepted since this process began
        self._spans: list[Span] = []

    @property
    def spans(self) -> int:
        """Spans made and not yet accepted."""
        return len(self._spans)

    @property
    def is_full(self) -> bool:
        return len(self._spans) >= self._spans_max

    def take(self, upto_lsn: int) -> bool:
        """Read facts up to `upto_lsn` until there are enough spans for a request; return True if there may be more."""
        if self._next_lsn > upto_lsn:
            return False
        for block in self._reader.read(self._next_lsn, self._last_block):
            if block.last_lsn > upto_lsn:
                return False
            if self.is_full:
                return True
            self._count_gap(block.first_lsn)
            self._spans += self._tracer.take(block, self._exported_before_lsn + 1)
            self._next_lsn = block.last_lsn + 1
            self._last_block = block
        return False

    def send(self) -> None:
        """Send all pending spans. May be retried after a failure: accepted spans are not sent twice."""
        while self._spans:
            self._offer(self._spans[: self._spans_max])
        self.exported_lsn = max(self._next_lsn - 1, self._exported_before_lsn)

    def keep(self) -> None:
        """Write the cursor; only right after `send`, when all remembered messages come from exported facts."""
        assert not self._spans, "what is not accepted must not be passed over"
        open_lsn = self._tracer.oldest_lsn()
        cursor = Cursor(self._broker, self.exported_lsn, open_lsn, self.missed, self.refused)
        if cursor != self._written_cursor:
            write_cursor(self._directory, cursor)
            self._written_cursor = cursor

    @property
    def is_ahead_of_cursor(self) -> bool:
        return self.exported_lsn != self._written_cursor.lsn

    def _offer(self, batch: list[Span]) -> None:
        """Send a batch; if it is refused, send its halves, so that one bad span costs no other. A collector that refuses all of them is
        probably the wrong endpoint: that raises an error, and nothing is skipped."""
        accepted = decided = refused = 0
        parts = [batch]
        while parts:
            part = parts.pop()
            try:
                response = self._collector.post(self._encoder.request(part))
            except SpansRefused as error:
                if len(part) > 1:
                    middle = len(part) // 2
                    parts += [part[middle:], part[:middle]]
                    continue
                refused += 1
                if accepted == 0 and len(batch) > 1 and refused >= min(REFUSED_MAX, len(batch)):
                    raise CollectorAway(self._collector.endpoint, f"every span is refused, {error.problem}") from error
                log.warning("%s", error)
            else:
                rejected, text = rejected_spans(response)
                accepted += len(part)
                self.sent += len(part) - min(rejected, len(part))
                refused += min(rejected, len(part))
                if rejected:
                    log.warning("the collector rejected %d spans: %s", rejected, text)
            decided += len(part)
            if accepted or not parts:
                # The oldest spans need not be sent again: parts are sent in order.
                del self._spans[:decided]
                self.refused += refused
                decided = refused = 0

    def _count_gap(self, found_lsn: int) -> None:
        wanted_lsn = max(self._next_lsn, self._exported_before_lsn + 1)
        if found_lsn > wanted_lsn:
            self.missed += found_lsn - wanted_lsn
            log.warning("facts %d to %d left the journal before they were exported", wanted_lsn, found_lsn - 1)
