"""A disk that can lose power before any operation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from dragoman.testing.disk import FakeDisk


class PowerCut(BaseException):
    """The broker's process ends here. Not an Exception, so that the broker cannot survive it by catching it."""


class SimDisk(FakeDisk):
    """Raises `PowerCut` when its allowance of operations is used up, and from then on, until `restore`."""

    def __init__(self) -> None:
        super().__init__()
        self._left: int | None = None
        self.is_cut = False
        self.operations = 0
        self.moved_size = 0  # bytes written and read
        self.pause_ms = 0  # delay that a slow disk adds to each task of a thread

    def flip(self, path: str, offset: int, xor: int) -> None:
        """Flip bits of one byte, in the stored and in the visible content; later writes overwrite it."""
        file = self._names[path]
        for content in (file.seen, file.durable):
            if offset < len(content):
                content[offset] ^= xor

    def cut_after(self, operations: int) -> None:
        self._left = operations

    def restore(self) -> None:
        self.is_cut = False
        self._left = None

    @contextmanager
    def unharmed(self) -> Iterator[None]:
        """Operations inside use up nothing and raise no `PowerCut`: they are the simulator's, not the broker's."""
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
