"""Loads a record in parts, so that a large one does not block the event loop: the interface for the core, and a load from memory.

Allocating the memory of a large body takes longer than reading it: each page costs time when it is first touched.
"""

from __future__ import annotations

from io import BytesIO
from typing import final

from mypy_extensions import mypyc_attr

from dragoman.model.facts.fields import body_at, body_end
from dragoman.model.facts.records import carried_at


@mypyc_attr(allow_interpreted_subclasses=True)
class RecordLoad:
    """The load of one message's accepted (or carried) record. Call `step` until it returns True; then `head` and `taken` are complete and verified."""

    def __init__(self) -> None:
        self.head: bytes = b""  # the record up to the body

    def step(self, size: int) -> bool:
        """Read up to `size` more bytes; True when the load is complete. Raises `RecordDamaged`."""
        raise NotImplementedError

    def taken(self) -> bytes:
        """The body; or, if that was requested, the accepted record without the header of a carried one. Call it once: ownership passes to the caller."""
        raise NotImplementedError


@final
class RecordInMemory(RecordLoad):
    """A load from a verified record in memory, copied in steps, too."""

    def __init__(self, record: bytes, is_whole: bool) -> None:
        """`is_whole`: load the accepted record, not only its body."""
        at = carried_at(record)
        begin: int = body_at(record, at)
        self.record = record
        self.head = record[:begin]
        self.at: int = at if is_whole else begin
        self.end: int = len(record) if is_whole else body_end(record, at)
        self.copy = BytesIO()

    def step(self, size: int) -> bool:
        stop = min(self.at + size, self.end)
        self.copy.write(self.record[self.at : stop])
        self.at = stop
        return stop == self.end

    def taken(self) -> bytes:
        return self.copy.getvalue()
