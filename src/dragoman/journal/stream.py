"""Reads one large record in pieces through a reused buffer; the CRC at the end verifies it, and only the requested part is kept.

Only an accepted record (or a carried one, which wraps it) with a CRC of its own is read this way. The store may close the segment's file
between two pieces, so every read refers to the file by segment number.
"""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from typing import TYPE_CHECKING, Final

from dragoman.crc import crc32
from dragoman.journal.format import split_position
from dragoman.limits import HEADERS_SIZE_MAX, ID_SIZE_MAX
from dragoman.model.facts.fields import accepted_message_no, body_at
from dragoman.model.facts.layout import ACCEPTED_FIXED, CARRIED_RECORD, CRC_SIZE
from dragoman.model.facts.record_load import RecordInMemory, RecordLoad
from dragoman.model.facts.records import CRC_RESIDUE, carried_at

if TYPE_CHECKING:
    from dragoman.journal.segment_store import SegmentStore

# Bytes per read: large enough for few system calls, small enough to be in the CPU cache when the CRC is computed.
PIECE_SIZE: Final = 1024 * 1024
# Upper bound of a head: client id, address, dedupe key and headers.
HEAD_SIZE_MAX: Final = CARRIED_RECORD + ACCEPTED_FIXED + 3 * ID_SIZE_MAX + HEADERS_SIZE_MAX


class RecordStream:
    """`head` is the part before the body. Nothing read is valid before `is_whole`."""

    def __init__(self, store: SegmentStore, segment_no: int, offset: int, message_no: int, size: int) -> None:
        """`size`: of the record, from its own head, and not more than the file has."""
        self._store, self._segment_no, self._offset, self._message_no = store, segment_no, offset, message_no
        beginning = bytes(self._piece(0, min(HEAD_SIZE_MAX, size)))
        self._at = carried_at(beginning)
        self.size, self.body_at = size, body_at(beginning, self._at)
        if self.body_at > min(size - CRC_SIZE, HEAD_SIZE_MAX):
            raise store.damaged(segment_no, offset, "the record's CRC does not match")
        self.head = beginning[: self.body_at]
        self.body_end = size - CRC_SIZE
        self._position = self.body_at
        self._crc = crc32(self.head[self._at :])
        self._sink, self._keep_end = BytesIO(), 0

    @property
    def is_whole(self) -> bool:
        return self._position == self.size

    def keep_body(self, most: int) -> None:
        """Keep the first `most` bytes of the body."""
        self._keep_end = min(self.body_at + most, self.body_end)

    def keep_accepted(self) -> None:
        """Keep the whole accepted record."""
        self._sink.write(self.head[self._at :])
        self._keep_end = self.size

    def step(self, most: int) -> bool:
        """Read at most `most` more bytes. True when the record is complete and verified. Raises `RecordDamaged` and the disk's own errors."""
        stop = min(self._position + most, self.size)
        while self._position < stop:
            piece = self._piece(self._position, min(stop - self._position, PIECE_SIZE))
            self._crc = crc32(piece, self._crc)
            if self._position < self._keep_end:
                self._sink.write(piece[: self._keep_end - self._position])
            self._position += len(piece)
        if self.is_whole:
            self._prove()
        return self.is_whole

    def taken(self) -> bytes:
        """The kept bytes, without a copy."""
        return self._sink.getvalue()

    def _piece(self, position: int, size: int) -> memoryview:
        piece = self._store.piece(self._segment_no, self._offset + position, size)
        if len(piece) < size:
            raise self._store.damaged(self._segment_no, self._offset, "the file ends inside the record")
        return piece

    def _prove(self) -> None:
        if self._crc != CRC_RESIDUE:
            raise self._store.damaged(self._segment_no, self._offset, "the record's CRC does not match")
        number = accepted_message_no(self.head, self._at)
        if self._message_no > 0 and number != self._message_no:
            raise self._store.damaged(self._segment_no, self._offset, "the record of another message is here")


class DiskLoad(RecordLoad):
    """The record of a message, loaded in steps. A failed sync may move the record between two steps: then it is read again from the start."""

    def __init__(
        self, store: SegmentStore, position_now: Callable[[int], int], position: int, message_no: int, is_whole: bool
    ) -> None:
        super().__init__()
        self._store, self._position_now, self._promised = store, position_now, position
        self._message_no, self._is_whole = message_no, is_whole
        self._position = 0
        self._source: RecordStream | RecordInMemory | None = None

    def step(self, size: int) -> bool:
        position = self._position_now(self._promised)
        segment_no, offset = split_position(position)
        try:
            if self._source is None or position != self._position:
                self._position = position
                self._source = self._open(segment_no, offset)
            is_done = self._source.step(size)
        except OSError as error:
            raise self._store.unreadable(segment_no, offset, error) from error
        self.head = self._source.head
        return is_done

    def taken(self) -> bytes:
        assert self._source is not None, "asked for when it is whole"
        return self._source.taken()

    def _open(self, segment_no: int, offset: int) -> RecordStream | RecordInMemory:
        stream = self._store.stream(segment_no, offset, self._message_no)
        if stream is None:
            return RecordInMemory(self._store.read_record(segment_no, offset, self._message_no), self._is_whole)
        if self._is_whole:
            stream.keep_accepted()
        else:
            stream.keep_body(stream.size)
        return stream
