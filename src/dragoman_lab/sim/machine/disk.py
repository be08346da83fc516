"""A disk that can lose power before any operation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

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

    def write(self, fd: int, parts: Sequence[bytes], offset: int) -> None:
        self._use()
        self.moved_size += sum(map(len, parts))
        super().write(fd, parts, offset)

    def read(self, fd: int, size: int, offset: int) -> bytes:
        data = super().read(fd, size, offset)
        self.operations += 1
        self.moved_size += len(data)
        return data


def _limited(name: str) -> Callable[..., Any]:
    """A method of the disk that uses up an operation."""

    def use(self: SimDisk, *args: Any, **options: Any) -> Any:
        self._use()
        return getattr(FakeDisk, name)(self, *args, **options)  # looked up now: a test may replace it

    return use


for _name in ("open", "sync", "allocate", "truncate", "rename", "unlink", "sync_directory"):
    setattr(SimDisk, _name, _limited(_name))
