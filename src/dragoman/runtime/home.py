"""The data directory: one broker at a time, and the file that tells where it listens."""

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

# Bytes held for broker.json before anything else takes them: one block of most file systems.
CARD_SIZE: Final = 4096
# The data directory's mode when it is made: what is inside is for its own user alone, but for the lake.
PASSED_BY_GROUP: Final = 0o710


class Home:
    """Holds the lock for life."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.journal = path / "journal"
        self.admin_socket = path / "admin.sock"
        self._card = path / "broker.json"
        self._fresh = path / "broker.json.new"
        self._lock_fd = -1
        self.is_after_crash = False  # a predecessor's card was left behind

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
        """For its own user, and passed through by the group: on the way to the lake."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            self.path.mkdir(mode=0o700)
            self.path.chmod(PASSED_BY_GROUP)
        if not self.path.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))

    def _reserve_card(self) -> None:
        """A killed predecessor's card goes, but not its room: the journal may take the last of a full disk before `announce`."""
        try:
            self._card.rename(self._fresh)
            self.is_after_crash = True
        except FileNotFoundError:
            with suppress(OSError):  # if there is no room even now, `announce` will say so
                self._fresh.write_bytes(bytes(CARD_SIZE))

    def announce(self, listeners: dict[str, str]) -> None:
        """Write broker.json, whole: who reads it can connect."""
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
    """Answers, logs and the lake's files are UTF-8 and name the directory."""
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        raise OSError(errno.EILSEQ, "its name is not UTF-8") from error
