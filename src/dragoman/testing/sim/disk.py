"""A disk whose power can go out between, or right before, any two operations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from dragoman.testing.disk import FakeDisk


class PowerCut(BaseException):
    """The broker is gone from here on. Not an Exception: no broker survives this by catching it."""


class SimDisk(FakeDisk):
    """Raises `PowerCut` when its allowance of operations is used up, and from then on, until `restore`."""

    def __init__(self) -> None:
        super().__init__()
        self._left: int | None = None
        self.is_cut = False
        self.operations = 0
        self.moved_size = 0  # bytes written and read
        self.pause_ms = 0  # what a slow disk adds to every piece of work of a thread

    def flip(self, path: str, offset: int, xor: int) -> None:
        """Turn bits of one byte over, on the platter and in the cache; what is written there later is written."""
        file = self._names[path]
        for content in (file.seen, file.kept):
            if offset < len(content):
                content[offset] ^= xor

    def cut_after(self, operations: int) -> None:
        self._left = operations

    def restore(self) -> None:
        self.is_cut = False
        self._left = None

    @contextmanager
    def unharmed(self) -> Iterator[None]:
        """What is done here uses up nothing and meets no cut: it is the simulator that looks, not the broker."""
        left, self._left = self._left, None
        try:
            yield
        finally:
            self._left = left

    def _use(self) -> None:
        self.operations += 1
        if self._left is not None:
            self._left -= 1
            self.is_cut = self.is_cut or self._left < 0
        if self.is_cut:
            raise PowerCut

    def open(self, path: str, *, create: bool = False, write: bool = True) -> int:
        self._use()
        return super().open(path, create=create, write=write)

    def write(self, fd: int, parts: Sequence[bytes], offset: int) -> None:
        self._use()
        self.moved_size += sum(map(len, parts))
        super().write(fd, parts, offset)

    def read(self, fd: int, size: int, offset: int) -> bytes:
        data = super().read(fd, size, offset)
        self.operations += 1
        self.moved_size += len(data)
        return data

    def sync(self, fd: int) -> None:
        self._use()
        super().sync(fd)

    def allocate(self, fd: int, offset: int, size: int) -> None:
        self._use()
        super().allocate(fd, offset, size)

    def truncate(self, fd: int, size: int) -> None:
        self._use()
        super().truncate(fd, size)

    def rename(self, source: str, target: str) -> None:
        self._use()
        super().rename(source, target)

    def unlink(self, path: str) -> None:
        self._use()
        super().unlink(path)

    def sync_directory(self, path: str) -> None:
        self._use()
        super().sync_directory(path)
