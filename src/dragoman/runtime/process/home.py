"""The data directory: locked by one broker at a time, with a file that names its listeners."""

from __future__ import annotations

import errno
import fcntl
import os
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec

from dragoman.errors import DataDirectoryBusy, DataDirectoryUnusable
from dragoman.version import VERSION

# Bytes reserved for broker.json before anything else is written: one block of most file systems.
CARD_SIZE: Final = 4096
# Mode of a new data directory: its content is only for its own user, except the lake.
PASSED_BY_GROUP: Final = 0o710


class Home:
    """Holds the lock for the lifetime of the process."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.journal = path / "journal"
        self.admin_socket = path / "admin.sock"
        self._card = path / "broker.json"
        self._fresh = path / "broker.json.new"
        self._lock_fd = -1
        self.is_after_crash = False  # broker.json of a killed broker was found

    def enter(self) -> None:
        try:
            check_name(self.path)
            self._make()
            self._lock_fd = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise DataDirectoryUnusable(self.path, error) from error
        try:
            fcntl.flock(self._lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._lock_fd)
            raise DataDirectoryBusy(self.path) from error
        self._reserve_card()

    def _make(self) -> None:
        """Create it for its own user only; the group may traverse it, to reach the lake."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            self.path.mkdir(mode=0o700)
            self.path.chmod(PASSED_BY_GROUP)
        if not self.path.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))

    def _reserve_card(self) -> None:
        """Remove the broker.json of a killed broker but keep its disk space: the journal may use the last of a full disk before `announce`."""
        try:
            self._card.rename(self._fresh)
            self.is_after_crash = True
        except FileNotFoundError:
            with suppress(OSError):  # if the disk is full already, `announce` raises
                self._fresh.write_bytes(bytes(CARD_SIZE))

    def announce(self, listeners: dict[str, str]) -> None:
        """Write broker.json atomically: from then on readers of it can connect."""
        card = {"pid": os.getpid(), "version": VERSION, "listeners": listeners}
        text = msgspec.json.format(msgspec.json.encode(card)) + b"\n"
        with os.fdopen(os.open(self._fresh, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "wb") as file:
            file.write(text)
            file.truncate()
        self._fresh.rename(self._card)

    def leave(self) -> None:
        self._fresh.unlink(missing_ok=True)
        self._card.unlink(missing_ok=True)
        self.admin_socket.unlink(missing_ok=True)
        os.close(self._lock_fd)


def check_name(path: Path) -> None:
    """Raise unless the path is UTF-8: answers, logs and the lake's files are UTF-8 and contain it."""
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        raise OSError(errno.EILSEQ, "its name is not UTF-8") from error
