"""`web.samples` in the data directory: saved samples, so that charts and totals survive restarts of this process and of the broker.

    row         CRC-32 of the JSON as 8 hexadecimal digits, a space, JSON, a line feed
    first row   a checkpoint: charts, queue trails and totals as they were when the file was started
    next rows   samples; the first of them is in the checkpoint already and changes nothing

Damaged rows are skipped, the others count. A file whose first row is invalid is renamed to `web.samples.damaged`. A new file is written at
each start of this process and after APPENDED_SIZE_MAX bytes of samples: `web.samples.new` replaces the old one by rename, so that a kill
leaves the old or the new file. Nothing is synced: a sync would delay those of the journal, and after a power loss the complete rows count.

If saving fails (the disk is full), one line is logged, samples are dropped, and saving is retried after RETRY_SAMPLES samples.
"""

from __future__ import annotations

import errno
import logging
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from dragoman.crc import crc32
from dragoman.model.units import SECOND_NS
from dragoman.web.samples.history import ChartSample, Point, Trail
from dragoman.web.samples.samples import Sample, Totals

FILE_NAME: Final = "web.samples"
APPENDED_SIZE_MAX: Final = 1024 * 1024
# With 200 queues that have durations in every bucket, a checkpoint takes about 3 MB and a sample 2 MB.
FILE_SIZE_MAX: Final = 16 * 1024 * 1024
RETRY_SAMPLES: Final = 60
CRC_SIZE: Final = 9  # with its space

Row = TypeVar("Row", bound=msgspec.Struct)

log = logging.getLogger("dragoman.web")


class Checkpoint(msgspec.Struct, frozen=True, tag_field="format", tag="dragoman web samples 1"):
    """The state computed from all earlier samples; the tag is written first and identifies the format."""

    slots: dict[int, Point]
    slot_begin: ChartSample | None
    seconds: list[Point]
    trails: dict[int, Trail]  # by the queue's number
    pre_boot: Totals


class SampleFile:
    """The file: read once, then written. `past_s`: the maximum age of the last sample at which the saved history is continued."""

    def __init__(self, data: Path, past_s: float) -> None:
        self.path = data / FILE_NAME
        self._past_ns = int(past_s * SECOND_NS)
        self._fd = -1
        self._appended_size = 0
        self._skipped = 0  # samples since the last attempt, while saving fails
        self._is_failing = False

    def read(self, now: Sample) -> tuple[Checkpoint, list[Sample]] | None:
        """The saved state and samples, if `now` continues them; None if there is nothing to continue."""
        try:
            data = read_regular(self.path)
        except FileNotFoundError:
            return None
        except OSError as error:
            self._set_aside(error.strerror or str(error))
            return None
        first, *rest = data.split(b"\n")
        checkpoint = decoded(first, Checkpoint)
        if checkpoint is None:
            self._set_aside("its first row is not what this version writes")
            return None
        rows = [row for row in rest if row]
        samples = [sample for row in rows if (sample := decoded(row, Sample)) is not None]
        if len(samples) < len(rows):
            log.warning("%s: %d damaged rows are left out", self.path, len(rows) - len(samples))
        if not samples or not self._is_continued(samples[-1], now):
            return None
        return checkpoint, samples

    def add(self, sample: Sample, checkpoint: Callable[[], Checkpoint]) -> None:
        """Save a sample; `checkpoint` returns a checkpoint that already includes it."""
        if self._is_failing and self._skipped < RETRY_SAMPLES:
            self._skipped += 1
            return
        try:
            if self._fd < 0 or self._appended_size > APPENDED_SIZE_MAX:
                self._begin(checkpoint(), sample)
            else:
                self._append(encoded(sample))
        except OSError as error:
            self.close()
            if not self._is_failing:
                log.warning("%s cannot be written, samples are not saved: %s", self.path, error.strerror or error)
            self._is_failing, self._skipped = True, 0
        else:
            self._is_failing = False

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def _is_continued(self, last: Sample, now: Sample) -> bool:
        """Whether `now` continues the saved history: not after a pause of more than `past_s`, and not with another journal, whose boot
        numbers start anew."""
        if last.boot_no >= now.boot_no:
            return last.is_same_boot(now)
        return now.started_ns - last.now_ns <= self._past_ns

    def _begin(self, checkpoint: Checkpoint, sample: Sample) -> None:
        self.close()
        fresh = self.path.with_name(FILE_NAME + ".new")
        fresh.unlink(missing_ok=True)
        self._fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            self._append(encoded(checkpoint))
            self._append(encoded(sample))
            fresh.replace(self.path)
        except OSError:
            with suppress(OSError):  # free the disk space it takes
                fresh.unlink()
            raise
        self._appended_size = 0

    def _append(self, row: bytes) -> None:
        if os.write(self._fd, row) < len(row):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._appended_size += len(row)

    def _set_aside(self, reason: str) -> None:
        aside = self.path.with_name(FILE_NAME + ".damaged")
        try:
            self.path.replace(aside)
        except OSError as error:
            log.warning("%s cannot be read (%s) nor renamed: %s", self.path, reason, error.strerror or error)
        else:
            log.warning("%s cannot be read (%s) and is now %s; the page begins anew", self.path, reason, aside.name)


def read_regular(path: Path) -> bytes:
    """The whole file; raises for anything but a regular file, as reading a pipe might never end."""
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "it is no regular file")
    if found.st_size > FILE_SIZE_MAX:
        raise OSError(errno.EFBIG, f"it has more than {FILE_SIZE_MAX} bytes")
    return path.read_bytes()


def encoded(row: msgspec.Struct) -> bytes:
    data = msgspec.json.encode(row)
    return b"%08x %s\n" % (crc32(data), data)


def decoded(row: bytes, kind: type[Row]) -> Row | None:
    """Decode a row; None if it is damaged or from another version."""
    data = row[CRC_SIZE:]
    if row[:CRC_SIZE] != b"%08x " % crc32(data):
        return None
    try:
        return msgspec.json.decode(data, type=kind)
    except (ValueError, RecursionError):
        return None
