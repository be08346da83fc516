"""The journal passes the checks that every journal must pass, in each durability that keeps anything."""

from __future__ import annotations

from random import Random

import pytest

from dragoman.journal.journal import Journal
from dragoman.testing.disk import FakeDisk
from tests.journal.journal_checks import JournalChecks
from tests.journal.small_journals import opened


class TestOnDisk(JournalChecks):
    @pytest.fixture(autouse=True)
    def _fresh_disk(self) -> None:
        self.fake_disk = FakeDisk()

    def open_log(self) -> Journal:
        return opened(self.fake_disk, "disk")

    def crash(self) -> None:
        self.fake_disk.crash(Random(11))


class TestInOs(JournalChecks):
    @pytest.fixture(autouse=True)
    def _fresh_disk(self) -> None:
        self.fake_disk = FakeDisk()

    def open_log(self) -> Journal:
        return opened(self.fake_disk, "os")

    def crash(self) -> None:
        self.fake_disk.kill()
