"""The data directory: one broker at a time, and the file that tells where it listens."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

import msgspec

from dragoman.errors import DataDirectoryBusy, DataDirectoryUnusable
from dragoman.version import VERSION


class Home:
    """Holds the lock for life."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.journal = path / "journal"
        self.admin_socket = path / "admin.sock"
        self._card = path / "broker.json"
        self._lock_fd = -1

    def enter(self) -> None:
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            self._lock_fd = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise DataDirectoryUnusable(self.path, error) from error
        try:
            fcntl.flock(self._lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._lock_fd)
            raise DataDirectoryBusy(self.path) from error
        self._card.unlink(missing_ok=True)  # a predecessor's that was killed

    def announce(self, listeners: dict[str, str]) -> None:
        """Write broker.json, whole: who reads it can connect."""
        card = {"pid": os.getpid(), "version": VERSION, "listeners": listeners}
        fresh = self.path / "broker.json.new"
        fresh.write_bytes(msgspec.json.format(msgspec.json.encode(card)) + b"\n")
        fresh.rename(self._card)

    def leave(self) -> None:
        self._card.unlink(missing_ok=True)
        self.admin_socket.unlink(missing_ok=True)
        os.close(self._lock_fd)
