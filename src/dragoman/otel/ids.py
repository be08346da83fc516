"""Ids of traces and spans, made of what the journal says for ever: the broker's id, the message's number, the attempt.

The same fact makes the same ids, whoever reads it and however often. So spans sent again after a crash are the same spans to every
collector, and the link to an attempt before needs no memory of it.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

TRACE_ID_SIZE: Final = 16
SPAN_ID_SIZE: Final = 8

# What a span tells of; part of its id, so never renumber.
MESSAGE: Final = 0
WAIT: Final = 1
WORK: Final = 2
REPLY: Final = 3
LEASE: Final = 4


class Ids:
    """Of one broker."""

    def __init__(self, broker_id: bytes) -> None:
        self._trace = blake2b(broker_id, digest_size=TRACE_ID_SIZE, person=b"dragoman trace")
        self._span = blake2b(broker_id, digest_size=SPAN_ID_SIZE, person=b"dragoman span")

    def trace_id(self, message_no: int) -> bytes:
        """For a message whose client brought none."""
        made = self._trace.copy()
        made.update(message_no.to_bytes(8, "little"))
        return made.digest()

    def span_id(self, message_no: int, kind: int, attempt: int = 0) -> bytes:
        made = self._span.copy()
        made.update(message_no.to_bytes(8, "little") + bytes([kind]) + attempt.to_bytes(4, "little"))
        return made.digest()
