"""The background scrub proves sealed segments, and quarantines what waits in damaged bytes before a worker asks for it."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from dragoman.journal.scrub import STEP_NS, Scrub
from dragoman.model.enums import DAMAGED
from dragoman.runtime.upkeep import Upkeep
from dragoman.testing.disk import FakeDisk
from dragoman_lab.sim.checks.recount import recount
from tests.runtime.journaled_broker import JournaledBroker, bodies

COUNT = 30
BODIES = [b"body %d " % n + bytes([n]) * 300 for n in range(COUNT)]
SECOND_NS = 1_000_000_000


class AtOnce:
    """A thread that has done its work when `start` returns."""

    def __init__(self, target: Callable[[int], None], args: tuple[int], name: str, daemon: bool) -> None:
        self._target, self._args = target, args

    def start(self) -> None:
        self._target(*self._args)

    def is_alive(self) -> bool:
        return False

    def join(self) -> None:
        """It has ended."""


def filled(disk: FakeDisk | None = None) -> JournaledBroker:
    broker = JournaledBroker(disk or FakeDisk())
    client = broker.client()
    for n, body in enumerate(BODIES):
        client.request(b"mail", body, b"", b"job-%d" % n)
        if n % 10 == 9:
            broker.checkpoint()
    return broker


def fake_disk(broker: JournaledBroker) -> FakeDisk:
    assert isinstance(broker.disk, FakeDisk)
    return broker.disk


def offset_in(broker: JournaledBroker, segment_no: int, body: bytes) -> int:
    return fake_disk(broker).content(broker.segment(segment_no)).index(body)


def swept(broker: JournaledBroker, seconds: int = 5) -> Upkeep:
    """The broker's upkeep, ten times a second."""
    upkeep = Upkeep(broker.core, broker.journal, set(), AtOnce)  # type: ignore[arg-type]  # it has the face of a thread
    for tenth in range(seconds * 10):
        upkeep.sweep(broker.now_ns + tenth * SECOND_NS // 10)
        broker.commit()
    return upkeep


def whole_pass(scrub: Scrub, now_ns: int) -> int:
    """Step until the pass has ended; the number of steps."""
    for step in range(1, 1000):
        scrub.step(now_ns + step * STEP_NS)
        if scrub.proved_ns:
            return step
    raise AssertionError("a pass ends")


def test_a_sound_journal_is_proved_and_nothing_is_found() -> None:
    broker = filled()
    swept(broker)
    scrub = broker.journal.scrub
    assert scrub.proved_ns > 0
    assert (scrub.damaged_blocks, list(scrub.found)) == (0, [])
    assert bodies(broker.serve(slots=COUNT)) == BODIES


def test_a_waiting_message_in_a_damaged_block_is_quarantined_before_a_worker_asks() -> None:
    broker = filled()
    fake_disk(broker).damage(broker.segment(1), offset_in(broker, 1, BODIES[5]) + 20)
    swept(broker)
    (m,) = broker.core.state.quarantine.values()
    assert (m.last_reason, m.damage.startswith(b"0000000001.seg at byte ")) == (DAMAGED, True)
    assert broker.journal.scrub.damaged_blocks == 1
    recount(broker.core)
    assert bodies(broker.serve(slots=COUNT)) == [body for body in BODIES if body != BODIES[5]]


@pytest.mark.parametrize("harm", ["zeros", "cut", "removed"])
def test_what_is_missing_is_found_too(harm: str) -> None:
    broker = filled()
    disk = fake_disk(broker)
    path, at = broker.segment(2), offset_in(broker, 2, BODIES[15])
    if harm == "zeros":
        for offset in range(at - 100, at + 200):
            byte = disk.content(path)[offset]
            if byte:
                disk.damage(path, offset, byte)
    elif harm == "cut":
        disk.lose_tail(path, at)
    else:
        disk.unlink(path)
    swept(broker)
    lost = {"zeros": BODIES[15:16], "cut": BODIES[15:20], "removed": BODIES[10:20]}[harm]
    assert len(broker.core.state.quarantine) == len(lost)
    assert bodies(broker.serve(slots=COUNT)) == [body for body in BODIES if body not in lost]


def test_one_changed_byte_anywhere_in_a_sealed_segment_is_found() -> None:
    chance = Random(7)
    broker = filled()
    disk = fake_disk(broker)
    sealed = [info for info in broker.journal.segments() if info.sealed]
    for trial in range(150):
        info = chance.choice(sealed)
        offset = chance.randrange(info.size)
        disk.damage(info.path, offset, 1 << chance.randrange(8))
        scrub = Scrub(disk, broker.journal._store, 2**20, SECOND_NS)
        whole_pass(scrub, 0)
        found = list(scrub.found)
        assert len(found) == 1, f"seed 7, trial {trial}: {info.path} byte {offset}: {found}"
        assert (found[0].path, found[0].begin <= offset < found[0].end) == (info.path, True), f"seed 7, trial {trial}"
        disk.put(info.path, mended(disk.content(info.path), offset, info.path, broker))


def mended(content: bytes, offset: int, path: str, broker: JournaledBroker) -> bytes:
    """The segment as a broker that is filled in the same way once more has it."""
    sound = fake_disk(filled()).content(path)
    return content[:offset] + sound[offset : offset + 1] + content[offset + 1 :]


def test_damage_is_reported_once_and_a_dropped_segment_counts_no_more() -> None:
    broker = filled()
    fake_disk(broker).damage(broker.segment(1), 500)
    scrub = broker.journal.scrub
    whole_pass(scrub, 0)
    scrub.proved_ns = 0
    whole_pass(scrub, 10**15)
    assert len(scrub.found) == scrub.damaged_blocks == 1
    broker.journal.drop([1])
    assert scrub.damaged_blocks == 0


def test_blocks_that_a_failed_sync_left_behind_are_no_damage() -> None:
    disk = FakeDisk()
    broker = filled(disk)
    client = broker.client(b"other")
    client.request(b"mail", b"unsynced")
    disk.fail_syncs(1)
    broker.journal.sync()
    broker.core.log.base_position = broker.journal.next_position()
    client.request(b"mail", b"synced")
    broker.checkpoint()
    scrub = broker.journal.scrub
    whole_pass(scrub, 0)
    assert list(scrub.found) == []


def test_a_step_reads_no_more_than_its_share_and_one_block() -> None:
    broker = filled()
    scrub = Scrub(broker.disk, broker.journal._store, 1000, SECOND_NS)
    sealed = sum(info.size for info in broker.journal.segments() if info.sealed)
    assert whole_pass(scrub, 0) >= sealed // 2000


def test_no_rate_is_no_scrub() -> None:
    broker = filled()
    assert not Scrub(broker.disk, broker.journal._store, 0, SECOND_NS).wants_step(10**18)
