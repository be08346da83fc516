"""Copies a journal while it is written, and restores a copy.

Everything committed before `backup` began is in the copy. A copy is a directory with `journal/` and a `backup.json` that is written
last: without it the copy is incomplete and `restore` refuses it.
"""

from __future__ import annotations

import json
from collections import deque
from contextlib import ExitStack
from dataclasses import asdict, dataclass

from dragoman.errors import JournalDamaged, JournalMisplaced, JournalTooNew
from dragoman.journal.disk import REAL_DISK, DiskFace, opened, refuse_inside
from dragoman.journal.format import FORMAT_VERSION, segment_name
from dragoman.journal.recovery.scan import SegmentFile, SegmentWalk, list_segments
from dragoman.journal.recovery.superblock_checks import write_superblock
from dragoman.journal.tools.verify import Progress, Report, no_progress, verify

MANIFEST_NAME = "backup.json"
JOURNAL_NAME = "journal"
_COPY_SIZE = 1024 * 1024
_TRIES_MAX = 8


@dataclass(frozen=True, slots=True)
class Manifest:
    """The content of `backup.json`."""

    format_version: int
    broker_id: str
    segments: int
    size: int
    first_lsn: int
    last_lsn: int


def backup(data_dir: str, target_dir: str, progress: Progress = no_progress, disk: DiskFace = REAL_DISK) -> Manifest:
    """Copy the journal of `data_dir`, whose broker may be running, into the new or empty directory `target_dir`. Sealed segments become
    hard links if source and target are on the same file system, so such a backup costs almost nothing (and does not protect
    from the loss of that disk)."""
    source, target = f"{data_dir}/{JOURNAL_NAME}", f"{target_dir}/{JOURNAL_NAME}"
    refuse_inside(target_dir, source)
    _refuse_used(disk, target_dir)
    if not disk.exists(source):
        raise JournalMisplaced(f"{data_dir} holds no journal")
    with ExitStack() as stack:
        files, fds = _open_all(disk, source, stack)
        disk.make_directory(target)
        _copy_all(disk, files, fds, target, progress, links=True)
    report = _verified(target, disk)
    write_superblock(disk, target)
    numbers = (report.segments, report.size, report.first_lsn, report.last_lsn)
    manifest = Manifest(FORMAT_VERSION, (report.broker_id or b"").hex(), *numbers)
    with opened(disk, f"{target_dir}/{MANIFEST_NAME}", create=True) as fd:
        disk.write(fd, [json.dumps(asdict(manifest), indent=2).encode() + b"\n"], 0)
        disk.sync(fd)
    disk.sync_directory(target_dir)
    return manifest


def restore(backup_dir: str, data_dir: str, progress: Progress = no_progress, disk: DiskFace = REAL_DISK) -> Manifest:
    """Verify the backup, then copy it into `data_dir`, which must be empty or missing. The journal appears there whole or not at all."""
    refuse_inside(data_dir, backup_dir)
    manifest = read_manifest(backup_dir, disk)
    _refuse_used(disk, data_dir)
    source, target = f"{backup_dir}/{JOURNAL_NAME}", f"{data_dir}/{JOURNAL_NAME}"
    report = _verified(source, disk)
    if (report.last_lsn, report.segments) != (manifest.last_lsn, manifest.segments):
        raise JournalMisplaced(
            f"{backup_dir} holds {report.segments} segments up to fact {report.last_lsn}; "
            f"its {MANIFEST_NAME} promises {manifest.segments} up to fact {manifest.last_lsn}"
        )
    with ExitStack() as stack:
        files, fds = _open_all(disk, source, stack)
        disk.make_directory(f"{target}.partial")
        _copy_all(disk, files, fds, f"{target}.partial", progress, links=False)
    write_superblock(disk, f"{target}.partial")
    disk.rename(f"{target}.partial", target)
    disk.sync_directory(data_dir)
    return manifest


def read_manifest(backup_dir: str, disk: DiskFace) -> Manifest:
    path = f"{backup_dir}/{MANIFEST_NAME}"
    try:
        with opened(disk, path) as fd:
            fields = json.loads(disk.read(fd, 64 * 1024, 0))
        if fields["format_version"] > FORMAT_VERSION:
            raise JournalTooNew(path, fields["format_version"], FORMAT_VERSION)
        return Manifest(**fields)
    except FileNotFoundError:
        raise JournalMisplaced(f"{backup_dir} is no finished backup: it has no {MANIFEST_NAME}") from None
    except (KeyError, TypeError, ValueError) as error:
        raise JournalMisplaced(f"{path} cannot be read: {error}") from error


def _refuse_used(disk: DiskFace, directory: str) -> None:
    if disk.exists(directory) and disk.list_names(directory):
        raise JournalMisplaced(f"{directory} is not empty")


def _open_all(disk: DiskFace, directory: str, stack: ExitStack) -> tuple[list[SegmentFile], list[int]]:
    """Open every segment of one listing: an open file stays readable if the broker deletes it during the copy."""
    for _ in range(_TRIES_MAX):
        files = list_segments(disk, directory)
        try:
            fds = [stack.enter_context(opened(disk, file.path)) for file in files]
        except FileNotFoundError:
            stack.close()
            continue
        if files:
            return files, fds
        break
    raise JournalMisplaced(f"{directory} holds no journal")


def _copy_all(
    disk: DiskFace, files: list[SegmentFile], fds: list[int], target: str, progress: Progress, *, links: bool
) -> None:
    total, done = sum(file.size for file in files), 0
    for file, fd in zip(files, fds, strict=True):
        name, is_newest = f"{target}/{segment_name(file.segment_no)}", file is files[-1]
        if is_newest or not links or not _linked(disk, file.path, name, fd):
            with opened(disk, name, create=True) as out:
                end = _whole_end(disk, file, fd) if is_newest else file.size
                for offset in range(0, end, _COPY_SIZE):
                    disk.write(out, [disk.read(fd, min(_COPY_SIZE, end - offset), offset)], offset)
                    progress(done + offset, total)
                disk.sync(out)
        done += file.size
        progress(done, total)
    disk.sync_directory(target)


def _linked(disk: DiskFace, source: str, target: str, fd: int) -> bool:
    try:
        disk.link(source, target)
    except OSError:
        return False  # another file system, or deleted in the meantime: copy the open file
    disk.sync(fd)
    return True


def _whole_end(disk: DiskFace, file: SegmentFile, fd: int) -> int:
    """The offset after the last whole block of the newest segment."""
    if file.header is None:
        return file.size
    walk = SegmentWalk(disk, fd, file.seed)
    deque(walk, maxlen=0)
    return walk.end


def _verified(directory: str, disk: DiskFace) -> Report:
    report = verify(directory, disk=disk)
    for flaw in report.flaws:
        if not flaw.is_torn_tail:
            raise JournalDamaged(flaw.file, flaw.offset, flaw.lsn, flaw.reason)
    return report
