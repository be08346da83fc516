"""Trace and span ids, derived from values that never change in the journal: the broker's id, the message's number, the attempt.

The same fact always gives the same ids. So spans sent again after a crash are the same spans to every
collector, and the link to an earlier attempt needs no stored state.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

TRACE_ID_SIZE: Final = 16
SPAN_ID_SIZE: Final = 8

# The kind of a span; part of its id, so never renumber.
MESSAGE: Final = 0
WAIT: Final = 1
WORK: Final = 2
REPLY: Final = 3
LEASE: Final = 4


class Ids:
    """The ids of one broker."""

    def __init__(self, broker_id: bytes) -> None:
        self._trace = blake2b(broker_id, digest_size=TRACE_ID_SIZE, person=b"dragoman trace")
        self._span = blake2b(broker_id, digest_size=SPAN_ID_SIZE, person=b"dragoman span")

    def trace_id(self, message_no: int) -> bytes:
        """The trace id of a message whose client sent none."""
        made = self._trace.copy()
        made.update(message_no.to_bytes(8, "little"))
        return made.digest()

    def span_id(self, message_no: int, kind: int, attempt: int = 0) -> bytes:
        made = self._span.copy()
        made.update(message_no.to_bytes(8, "little") + bytes([kind]) + attempt.to_bytes(4, "little"))
        return made.digest()
