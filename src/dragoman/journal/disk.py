"""The journal's only calls to the operating system. `dragoman.testing.disk.FakeDisk` has the same interface.

Every call completes in full or raises OSError. Paths are plain strings, files are descriptors.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final, Protocol

from mypy_extensions import mypyc_attr

from dragoman.errors import JournalMisplaced

# One pwritev takes at most this many parts on Linux.
_PARTS_MAX = 1024


class DiskFace(Protocol):
    """The disk operations that the journal uses."""

    def make_directory(self, path: str) -> None: ...
    def list_names(self, path: str) -> list[str]: ...
    def exists(self, path: str, /) -> bool: ...
    def open(self, path: str, *, create: bool = False, write: bool = True) -> int: ...
    def close(self, fd: int, /) -> None: ...
    def write(self, fd: int, parts: Sequence[bytes], offset: int) -> None: ...
    def read(self, fd: int, size: int, offset: int) -> bytes: ...
    def read_into(self, fd: int, buffer: memoryview, offset: int) -> int: ...
    def size(self, fd: int) -> int: ...
    def sync(self, fd: int) -> None: ...
    def allocate(self, fd: int, offset: int, size: int, /) -> None: ...
    def truncate(self, fd: int, size: int, /) -> None: ...
    def rename(self, source: str, target: str, /) -> None: ...
    def link(self, source: str, target: str, /) -> None: ...
    def unlink(self, path: str, /) -> None: ...
    def sync_directory(self, path: str) -> None: ...
    def free_space(self, path: str) -> int: ...


@mypyc_attr(allow_interpreted_subclasses=True)
class Disk:
    """The real disk."""

    exists = staticmethod(os.path.exists)
    close = staticmethod(os.close)
    allocate = staticmethod(os.posix_fallocate)
    truncate = staticmethod(os.ftruncate)
    rename = staticmethod(os.rename)
    link = staticmethod(os.link)
    unlink = staticmethod(os.unlink)

    def make_directory(self, path: str) -> None:
        """Create the directory and its missing parents, synced so that they survive power loss."""
        if os.path.isdir(path):
            return
        parent = os.path.dirname(os.path.abspath(path))
        self.make_directory(parent)
        os.mkdir(path, 0o700)
        self.sync_directory(parent)

    def list_names(self, path: str) -> list[str]:
        return sorted(os.listdir(path))

    def open(self, path: str, *, create: bool = False, write: bool = True) -> int:
        flags = os.O_CLOEXEC | (os.O_RDWR if write else os.O_RDONLY)
        if create:
            flags |= os.O_CREAT | os.O_TRUNC
        return os.open(path, flags, 0o600)

    def write(self, fd: int, parts: Sequence[bytes], offset: int) -> None:
        """Write all parts one after the other, continuing after a short write."""
        for first in range(0, len(parts), _PARTS_MAX):
            some = parts if len(parts) <= _PARTS_MAX else parts[first : first + _PARTS_MAX]
            size, done = sum(map(len, some)), os.pwritev(fd, some, offset)
            if done < size:
                rest = memoryview(b"".join(some))[done:]
                while rest:
                    done = os.pwrite(fd, rest, offset + size - len(rest))
                    rest = rest[done:]
            offset += size

    def read(self, fd: int, size: int, offset: int) -> bytes:
        """Up to `size` bytes; fewer only at the end of the file."""
        data = os.pread(fd, size, offset)
        if len(data) == size or not data:
            return data
        parts, got = [data], len(data)
        while got < size and (data := os.pread(fd, size - got, offset + got)):
            parts.append(data)
            got += len(data)
        return b"".join(parts)

    def read_into(self, fd: int, buffer: memoryview, offset: int) -> int:
        """Fill the buffer without allocating memory. Return the number of bytes read, fewer only at the end of the file."""
        got = os.preadv(fd, [buffer], offset)
        while 0 < got < len(buffer) and (more := os.preadv(fd, [buffer[got:]], offset + got)):
            got += more
        return got

    def size(self, fd: int) -> int:
        return os.fstat(fd).st_size

    def sync(self, fd: int) -> None:
        os.fdatasync(fd)

    def sync_directory(self, path: str) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def free_space(self, path: str) -> int:
        stat = os.statvfs(path)
        return stat.f_bavail * stat.f_frsize


REAL_DISK: Final[DiskFace] = Disk()


@contextmanager
def opened(disk: DiskFace, path: str, *, write: bool = False, create: bool = False) -> Iterator[int]:
    """The descriptor of a file that is closed afterwards."""
    fd = disk.open(path, create=create, write=write or create)
    try:
        yield fd
    finally:
        disk.close(fd)


def refuse_inside(target: str, source: str) -> None:
    """Raise if `target` is inside `source`: the copy would be read as part of the original, now or at the next start."""
    real_target, real_source = os.path.realpath(target), os.path.realpath(source)
    if real_target == real_source or real_target.startswith(real_source + os.sep):
        raise JournalMisplaced(f"{target} lies inside {source}, which is to be copied: name a directory outside of it")
