"""Frame prefixes: the leading frames that most messages of a dialect share, recognised as one run of bytes.

Three native comparisons replace parsing, allocating and comparing as many frames: a tenth of the broker's hot path. A message whose
prefix arrived complete in one buffer has the prefix's `bytes` object itself as its first frame; a prefix cut between two buffers is read
frame by frame. A peer cannot forge it: the session compares identity, and a peer's bytes are never that object.
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import read_i64_be
from mypy_extensions import i64

SIZE_MIN: Final = 9
SIZE_MAX: Final = 24


@final
class FramePrefix:
    """A run of complete frames, all with MORE, in the form of 2.0 and 3.x: 9 to 24 bytes."""

    def __init__(self, frames: bytes, body_size: int) -> None:
        assert SIZE_MIN <= len(frames) <= SIZE_MAX, "three reads of eight bytes cover it"
        self.frames = frames
        self.size: i64 = len(frames)
        self.body_size: i64 = body_size  # without the frames' headers: counts towards the message's size
        self.head: i64 = read_i64_be(frames, 0)
        self.middle_at: i64 = 8 if len(frames) >= 16 else len(frames) - 8
        self.middle: i64 = read_i64_be(frames, int(self.middle_at))
        self.tail: i64 = read_i64_be(frames, len(frames) - 8)

    def is_at(self, data: bytes, at: i64) -> bool:
        """Whether the prefix occurs in `data` at `at`; at least SIZE_MAX bytes must follow `at`."""
        return (
            read_i64_be(data, at) == self.head
            and read_i64_be(data, at + self.middle_at) == self.middle
            and read_i64_be(data, at + self.size - 8) == self.tail
        )
