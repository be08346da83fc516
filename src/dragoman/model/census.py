"""Facts counted block by block, for whoever wants the past in numbers: what was accepted, leased, released and settled, and how long
that took. One pass over the records, nothing decoded."""

from __future__ import annotations

from typing import final

from librt.strings import read_i32_le, read_i64_le
from mypy_extensions import i64

from dragoman.model.buckets import BUCKETS, bucket_of
from dragoman.model.records import ACCEPTED, CLOSED, LEASED, QUARANTINED, RELEASED, REQUEUED
from dragoman.model.words import DIALECT_NAMES, DROPPED


@final
class Census:
    """The counts of some blocks. `wait` is from acceptance (or its due instant, if later) to the first lease, `total` to the end."""

    def __init__(self) -> None:
        self.accepted: i64 = 0
        self.settled: i64 = 0
        self.waiting: i64 = 0  # by how many more wait (or are delayed) at the end than at the beginning
        self.leased: i64 = 0
        self.wait: list[int] = [0] * BUCKETS
        self.total: list[int] = [0] * BUCKETS
        self.dialects: list[int] = [0] * len(DIALECT_NAMES)  # accepted, by the client's dialect

    def add(self, records: bytes, time_ns: int) -> None:
        at_ns: i64 = time_ns
        at: i64 = 0
        end: i64 = len(records)
        while at < end:
            kind: i64 = records[at + 4]
            if kind == LEASED:
                self.waiting -= 1
                self.leased += 1
            elif kind == ACCEPTED:
                self.accepted += 1
                self.waiting += 1
                dialect: i64 = records[at + 5]
                if dialect < len(self.dialects):
                    self.dialects[dialect] += 1
            elif kind == CLOSED:
                self._add_closed(records, at, at_ns)
            elif kind == RELEASED:
                self.waiting += 1
                self.leased -= 1
            elif kind == QUARANTINED:
                self.leased -= 1
            elif kind == REQUEUED:
                if not records[at + 21 : at + i64(read_i32_le(records, at))].endswith(b" 1"):  # those waited already
                    self.waiting += 1
            at += i64(read_i32_le(records, at))

    def _add_closed(self, records: bytes, at: i64, at_ns: i64) -> None:
        self.settled += 1
        accepted_ns: i64 = read_i64_le(records, at + 29)
        first_leased_ns: i64 = read_i64_le(records, at + 37)
        size: i64 = i64(read_i32_le(records, at))
        if read_i64_le(records, at + 13) != 0 or (size >= 89 and read_i64_le(records, at + 81) != 0):
            self.leased -= 1
        elif records[at + 70] != DROPPED:  # what was quarantined waited no more
            self.waiting -= 1
        if accepted_ns == 0:
            return
        self.total[bucket_of(at_ns - accepted_ns)] += 1
        if first_leased_ns != 0:
            due_ns: i64 = read_i64_le(records, at + 73) if size >= 81 else 0
            self.wait[bucket_of(first_leased_ns - max(accepted_ns, due_ns))] += 1
