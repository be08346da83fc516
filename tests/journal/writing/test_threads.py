"""Appending goes on while a sync waits in another thread."""

from __future__ import annotations

import threading
from pathlib import Path

from dragoman.journal.disk import Disk
from tests.journal.small_journals import append_numbers, opened, read_numbers, record, replayed_numbers


class GatedDisk(Disk):
    """Holds every file sync until told to let it through."""

    def __init__(self) -> None:
        self.gate, self.waiting = threading.Event(), threading.Event()
        self.gate.set()

    def sync(self, fd: int) -> None:
        self.waiting.set()
        assert self.gate.wait(10)
        super().sync(fd)


def test_an_append_does_not_wait_for_a_sync_and_is_not_covered_by_it(tmp_path: Path) -> None:
    disk = GatedDisk()
    journal = opened(disk, "disk", str(tmp_path / "journal"))
    append_numbers(journal, 1, 1)
    disk.gate.clear()
    disk.waiting.clear()
    committed: list[int] = []
    thread = threading.Thread(target=lambda: committed.append(journal.commit()))
    thread.start()
    assert disk.waiting.wait(10)
    append_numbers(journal, 2, 1)
    journal.roll([record(2, 50, kind=200)])
    append_numbers(journal, 3, 1)
    disk.gate.set()
    thread.join(10)
    assert committed == [1]
    assert journal.commit() == 3
    journal.close()
    assert read_numbers(str(tmp_path / "journal")) == [1, 2, 3]


def test_appends_rolls_commits_and_upkeep_in_three_threads_keep_every_fact_in_order(tmp_path: Path) -> None:
    directory = str(tmp_path / "journal")
    journal = opened(Disk(), "disk", directory)
    done = threading.Event()
    failures: list[BaseException] = []

    def repeat(act: object) -> None:
        try:
            while not done.is_set():
                assert callable(act)
                act()
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=repeat, args=(act,)) for act in (journal.commit, lambda: journal.upkeep(0))]
    for thread in threads:
        thread.start()
    for number in range(1, 1201, 3):
        if journal.wants_roll():
            journal.roll()
        append_numbers(journal, number, 3, size=300)
    done.set()
    for thread in threads:
        thread.join(20)
    assert failures == []
    journal.close()
    journal = opened(Disk(), "disk", directory)
    assert replayed_numbers(journal) == list(range(1, 1201))
    journal.close()
