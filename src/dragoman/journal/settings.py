"""Journal settings that an operator chooses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from dragoman import limits

Durability = Literal["memory", "os", "disk"]
DURABILITIES: Final = ("memory", "os", "disk")


@dataclass(frozen=True, slots=True)
class JournalSettings:
    """`directory` is the journal's own, `<data>/journal`. With `age_max_s` 0, history is kept until `size_max` or `free_min` requires deleting it."""

    directory: str
    durability: Durability = "disk"
    segment_size: int = limits.SEGMENT_SIZE
    size_max: int = limits.JOURNAL_SIZE_MAX
    age_max_s: int = 0
    free_min: int = limits.JOURNAL_FREE_MIN
    # Bytes per second that the scrub verifies in the background (0: none), and the interval from the start of one pass to the next.
    scrub_rate: int = limits.SCRUB_RATE
    scrub_interval_s: int = limits.SCRUB_INTERVAL_S
    # Write zeros over the spare segment ahead of time: a sync then has no extent to convert and takes about a third less time.
    zero_fill: bool = True
    # A record up to this size is read whole even if the caller wants only a part of it.
    read_whole_size: int = limits.READ_WHOLE_SIZE

    def __post_init__(self) -> None:
        assert self.durability in DURABILITIES, self.durability
        assert self.segment_size >= limits.SEGMENT_SIZE_MIN, "settings are checked before they come here"
