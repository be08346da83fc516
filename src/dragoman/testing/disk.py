"""An in-memory disk that can lose power, fill up and fail, deterministically for a seed.

It models what a journal must not rely on. Written is not durable: until a file is synced a crash may lose, store or tear each
write on its own, and until a directory is synced its newest entries may vanish. A failed sync is final: no later sync makes its
data durable, although reads still show it.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple


class _Change(NamedTuple):
    """A write (`data` at `offset`), or with `data` None a new file size of `offset`."""

    offset: int
    data: bytes | None


@dataclass
class _File:
    """`durable` survives a crash, `seen` is what reads return; `changes` lead from one to the other; `doomed` changes failed to sync and
    never become durable."""

    durable: bytearray = field(default_factory=bytearray)
    seen: bytearray = field(default_factory=bytearray)
    changes: list[_Change] = field(default_factory=list)
    doomed: list[_Change] = field(default_factory=list)


class FakeDisk:
    """Same interface as `dragoman.journal.disk.Disk`. `capacity` bounds the sum of all file sizes (None: no bound)."""

    def __init__(self, capacity: int | None = None) -> None:
        self.capacity = capacity
        self.syncs = 0
        self.writes = 0
        self._sync_failures = 0
        self._write_failures = 0
        self._names: dict[str, _File] = {}
        self._durable_names: dict[str, _File] = {}
        # Directory changes not yet synced: (path, new file, or None if removed), oldest first.
        self._name_changes: list[tuple[str, _File | None]] = []
        self._directories: set[str] = set()
        self._open: dict[int, _File] = {}
        self._next_fd = 1000

    def fail_syncs(self, count: int) -> None:
        """Make the next `count` file syncs fail."""
        self._sync_failures = count

    def fail_writes(self, count: int) -> None:
        """Make the next `count` writes fail as on a broken device."""
        self._write_failures = count

    def kill(self) -> None:
        """End the process: its descriptors are closed, all it wrote is still there."""
        self._open.clear()

    def crash(self, rng: Random) -> None:
        """Lose power: of all unsynced changes some survive, some are lost, some torn."""
        self._open.clear()
        for path, file in self._name_changes[: rng.randint(0, len(self._name_changes))]:
            _set_name(self._durable_names, path, file)
        self._names = dict(self._durable_names)
        self._name_changes = []
        for file in {id(file): file for file in self._names.values()}.values():
            _crash_file(file, rng)

    def lose_tail(self, path: str, size: int) -> None:
        """Cut a file to `size` bytes permanently, as a broken file system does."""
        file = self._names[path]
        del file.seen[size:]
        _make_durable(file)

    def damage(self, path: str, offset: int, xor: int = 0xFF) -> None:
        """Flip bits of one byte permanently."""
        file = self._names[path]
        file.seen[offset] ^= xor
        _make_durable(file)

    def content(self, path: str) -> bytes:
        return bytes(self._names[path].seen)

    def put(self, path: str, content: bytes) -> None:
        """Add a file as if it had always existed."""
        file = _File(bytearray(content), bytearray(content))
        self._names[path] = self._durable_names[path] = file
        self._directories.add(os.path.dirname(path))  # noqa: PTH120 - paths are strings here

    def used(self) -> int:
        return sum(len(file.seen) for file in {id(file): file for file in self._names.values()}.values())

    def make_directory(self, path: str) -> None:
        self._directories.add(path)

    def list_names(self, path: str) -> list[str]:
        if path not in self._directories:
            raise FileNotFoundError(errno.ENOENT, "no such directory", path)
        lead = path + "/"
        return sorted(
            name[len(lead) :] for name in self._names if name.startswith(lead) and "/" not in name[len(lead) :]
        )

    def exists(self, path: str) -> bool:
        return path in self._names or path in self._directories

    def open(self, path: str, *, create: bool = False, write: bool = True) -> int:
        if create and path not in self._names:
            self._change_name(path, _File())
        if path not in self._names:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        self._next_fd += 1
        self._open[self._next_fd] = self._names[path]
        if create:
            self.truncate(self._next_fd, 0)
        return self._next_fd

    def close(self, fd: int) -> None:
        self._file(fd)
        del self._open[fd]

    def write(self, fd: int, parts: Sequence[bytes], offset: int) -> None:
        file, data = self._file(fd), b"".join(parts)
        self.writes += 1
        if self._write_failures > 0:
            self._write_failures -= 1
            raise OSError(errno.EIO, "the device refuses to write")
        room = self._room_for(offset + len(data) - len(file.seen))
        if room is not None:
            # Like a real disk: the bytes that fit are written before the error.
            data = data[: max(0, len(file.seen) + room - offset)]
        change = _Change(offset, data)
        file.changes.append(change)
        _apply(file.seen, change)
        if room is not None:
            raise OSError(errno.ENOSPC, "no space left on device")

    def read(self, fd: int, size: int, offset: int) -> bytes:
        return bytes(self._file(fd).seen[offset : offset + size])

    def read_into(self, fd: int, buffer: memoryview, offset: int) -> int:
        data = self.read(fd, len(buffer), offset)
        buffer[: len(data)] = data
        return len(data)

    def size(self, fd: int) -> int:
        return len(self._file(fd).seen)

    def sync(self, fd: int) -> None:
        file = self._file(fd)
        self.syncs += 1
        if self._sync_failures > 0:
            self._sync_failures -= 1
            file.doomed += file.changes
            file.changes = []
            raise OSError(errno.EIO, "the device refuses to sync")
        for change in file.changes:
            _apply(file.durable, change)
        # Data that an earlier sync failed to store is not stored by this one either.
        file.changes, file.doomed = [], []

    def allocate(self, fd: int, offset: int, size: int) -> None:
        file = self._file(fd)
        if self._room_for(offset + size - len(file.seen)) is not None:
            raise OSError(errno.ENOSPC, "no space left on device")
        if offset + size > len(file.seen):
            self._resize(file, offset + size)

    def truncate(self, fd: int, size: int) -> None:
        self._resize(self._file(fd), size)

    def rename(self, source: str, target: str) -> None:
        file = self._names[source]
        self._change_name(target, file)
        self._change_name(source, None)
        # A rename is atomic: neither half of it can be lost alone.
        halves = self._name_changes[-2:]
        self._name_changes[-2:] = [(f"{source}\0{target}", halves[0][1])]

    def link(self, source: str, target: str) -> None:
        if target in self._names:
            raise FileExistsError(errno.EEXIST, "file exists", target)
        self._change_name(target, self._names[source])

    def unlink(self, path: str) -> None:
        if path not in self._names:
            raise FileNotFoundError(errno.ENOENT, "no such file", path)
        self._change_name(path, None)

    def sync_directory(self, path: str) -> None:
        for name, file in self._name_changes:
            _set_name(self._durable_names, name, file)
        self._name_changes = []

    def free_space(self, path: str) -> int:
        return 1 << 50 if self.capacity is None else max(0, self.capacity - self.used())

    def _file(self, fd: int) -> _File:
        if fd not in self._open:
            raise OSError(errno.EBADF, "bad file descriptor")
        return self._open[fd]

    def _room_for(self, growth: int) -> int | None:
        """None if there is space, else the bytes that are left."""
        free = self.free_space("")
        return None if growth <= 0 or growth <= free else free

    def _resize(self, file: _File, size: int) -> None:
        change = _Change(size, None)
        file.changes.append(change)
        _apply(file.seen, change)

    def _change_name(self, path: str, file: _File | None) -> None:
        self._name_changes.append((path, file))
        _set_name(self._names, path, file)


def _set_name(names: dict[str, _File], path: str, file: _File | None) -> None:
    source, renamed, target = path.partition("\0")
    if renamed:
        names.pop(source, None)
        path = target
    if file is None:
        names.pop(path, None)
    else:
        names[path] = file


def _make_durable(file: _File) -> None:
    file.durable, file.changes, file.doomed = bytearray(file.seen), [], []


def _apply(content: bytearray, change: _Change) -> None:
    offset, data = change
    if data is None:
        del content[offset:]
        content.extend(bytes(offset - len(content)))
        return
    if offset > len(content):
        content.extend(bytes(offset - len(content)))
    content[offset : offset + len(data)] = data


def _crash_file(file: _File, rng: Random) -> None:
    unsynced = file.doomed + file.changes
    # Half of all crashes lose a tail, the others lose scattered writes: pages are written back in any order.
    survivors = rng.randint(0, len(unsynced)) if rng.random() < 0.5 else len(unsynced)
    scattered = survivors == len(unsynced)
    for index, change in enumerate(unsynced[: survivors + 1]):
        if change.data is None:
            if index < survivors:
                _apply(file.durable, change)
            continue
        if index == survivors or (scattered and rng.random() < 0.4):
            start = rng.randint(0, len(change.data))
            stop = rng.randint(start, len(change.data))
            change = rng.choice([
                _Change(change.offset, change.data[:start]),
                _Change(change.offset + start, change.data[start:stop]),
            ])  # fmt: skip
        _apply(file.durable, change)
    file.seen, file.changes, file.doomed = bytearray(file.durable), [], []
