"""A disk that only settled history fills: a checkpoint is written from what is left, the history goes, and work goes on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dragoman import limits
from dragoman.core.core import Core
from dragoman.core.settings import CoreSettings
from dragoman.errors import JournalFull, JournalUnavailable
from dragoman.journal.journal import Journal
from dragoman.journal.settings import JournalSettings
from dragoman.runtime.upkeep import Upkeep
from dragoman.testing.disk import FakeDisk
from tests.journal.small_journals import DIRECTORY, append_numbers, segment_path
from tests.runtime.conftest import NewBroker
from tests.runtime.peers import Client, Worker, error_of
from tests.waiting import wait_for

SECOND_NS = 1_000_000_000
SEGMENT_SIZE = 4 * limits.SEGMENT_SIZE_MIN


class InlineThread:
    """Does its work when it is started."""

    def __init__(self, target: Callable[..., None], args: tuple[int, ...], name: str, daemon: bool) -> None:
        self._work = lambda: target(*args)

    def start(self) -> None:
        self._work()

    def is_alive(self) -> bool:
        return False

    def join(self) -> None:
        pass


class SmallBroker:
    """A journal and its upkeep on a small disk, with a core in which nothing is ever open: all that is written is settled at once."""

    def __init__(self, capacity: int, *, free_min: int = 0, copied_lsn: int | None = None) -> None:
        self.disk = FakeDisk(capacity)
        settings = JournalSettings(DIRECTORY, "disk", segment_size=SEGMENT_SIZE, free_min=free_min)
        self.journal = Journal.open(settings, self.disk, new_broker_id=bytes(16))
        self.core = Core(CoreSettings(), self.journal.read_record)
        self.upkeep = Upkeep(self.core, self.journal, set(), InlineThread)  # type: ignore[arg-type]
        self.upkeep.copied_lsn = copied_lsn
        self.now_ns = SECOND_NS
        self.number = 0
        self.refused_ns = 0  # the longest time that new work was refused without a break

    def tick(self, size: int) -> bool:
        """A tenth of a second with one block of new work; whether it was taken."""
        self.now_ns += SECOND_NS // 10
        try:
            append_numbers(self.journal, self.number + 1, 1, size)
            self.number += 1
            is_taken = True
        except JournalFull:
            is_taken = False
        self.upkeep.on_appended()
        try:
            self.journal.commit()
        except JournalUnavailable:
            is_taken = False
        self.upkeep.sweep(self.now_ns)
        return is_taken

    def work(self, ticks: int, size: int = 20_000) -> None:
        since_ns = 0
        for _ in range(ticks):
            if self.tick(size):
                since_ns = 0
            else:
                since_ns = since_ns or self.now_ns
                self.refused_ns = max(self.refused_ns, self.now_ns - since_ns + SECOND_NS // 10)


@pytest.mark.parametrize("quarters", [6, 9, 12, 13, 14, 15, 16, 20, 40])
def test_settled_history_never_keeps_a_disk_full(quarters: int) -> None:
    """Disks of one and a half to ten segments, filled many times over."""
    broker = SmallBroker(quarters * SEGMENT_SIZE // 4)
    broker.work(1000)
    assert broker.refused_ns <= 3 * SECOND_NS
    assert broker.number > 800, "most of it is taken"
    assert broker.number * 20_000 > 5 * broker.disk.capacity  # type: ignore[operator]
    broker.journal.close()
    broker.disk.kill()
    again = Journal.open(broker.journal.settings, broker.disk)
    assert again.next_lsn == broker.number + 1
    assert not any(finding.is_loss for finding in again.findings)


def test_what_others_take_of_the_disk_is_given_back_by_the_journal() -> None:
    broker = SmallBroker(20 * SEGMENT_SIZE)
    broker.work(180)
    assert broker.journal.size() > 10 * SEGMENT_SIZE
    broker.disk.put("/elsewhere/ballast", bytes(broker.disk.capacity - broker.disk.used()))  # type: ignore[operator]
    broker.work(100)
    assert broker.refused_ns <= 3 * SECOND_NS
    assert broker.tick(20_000)


def test_below_the_watermark_history_goes_before_the_disk_is_full() -> None:
    broker = SmallBroker(20 * SEGMENT_SIZE, free_min=8 * SEGMENT_SIZE)
    broker.work(1000)
    assert broker.refused_ns == 0
    assert broker.journal.size() <= 13 * SEGMENT_SIZE
    assert broker.disk.free_space("") >= 6 * SEGMENT_SIZE


def test_a_watermark_that_cannot_be_met_refuses_nothing() -> None:
    broker = SmallBroker(10 * SEGMENT_SIZE, free_min=1 << 40)
    broker.work(500)
    assert broker.refused_ns == 0


def test_below_the_watermark_nothing_goes_that_the_lake_does_not_have() -> None:
    broker = SmallBroker(20 * SEGMENT_SIZE, free_min=16 * SEGMENT_SIZE, copied_lsn=0)
    broker.work(150)
    assert broker.disk.exists(segment_path(1))
    broker.upkeep.copied_lsn = broker.number
    broker.work(100)
    assert not broker.disk.exists(segment_path(1))


def test_a_lake_that_takes_nothing_keeps_a_disk_full_for_ten_seconds_and_no_longer() -> None:
    broker = SmallBroker(5 * SEGMENT_SIZE, copied_lsn=0)
    broker.work(400)
    assert limits.LAKE_FULL_PATIENCE_NS <= broker.refused_ns <= limits.LAKE_FULL_PATIENCE_NS + 3 * SECOND_NS
    assert not broker.disk.exists(segment_path(1))


@pytest.mark.long
@pytest.mark.parametrize("durability", ["disk", "os"])
def test_a_served_queue_goes_on_when_its_history_has_filled_a_real_disk(
    new_broker: NewBroker, small_disk: Path, durability: str
) -> None:
    """2 MiB with segments of 640 KiB: as 200 MB with those of 64 MiB."""
    broker = new_broker("journal.segment_size=640KiB", data=small_disk / "data", durability=durability).start()
    with Client(broker) as client, Worker(broker, b"jobs") as worker:

        def is_served() -> bool:
            client.request(b"jobs", b"ack-requested", b"x" * 20_000)
            while (frames := client.hear_word(b"ACK", b"REPLY"))[0] != b"ACK":
                if frames[2].startswith(b"{"):
                    assert error_of(frames[2]) == "JOURNAL_FULL"
                    return False
            worker.serve(1)
            return True

        for _ in range(400):  # four times the disk
            wait_for("new work to be taken", is_served)
    assert broker.lines("segments dropped")
    assert broker.stop() == 0
    broker.start()
    assert broker.stop() == 0
