"""Saved samples: read back they make the charts and totals that were; damage costs what it hit, and nothing ends the page."""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from dragoman.model.units import SECOND_NS
from dragoman.web.samples.sample_file import APPENDED_SIZE_MAX, FILE_SIZE_MAX, RETRY_SAMPLES, SampleFile, encoded
from dragoman.web.samples.samples import Sample, sample_of
from dragoman.web.samples.sampling import QUEUES_FOLLOWED, Sampler
from tests.web.samples.brokers import FakeBroker

HOUR_S = 3600.0


class Page:
    """The sampler of one process of the page; a kill is its end without `stop`."""

    def __init__(self, broker: FakeBroker, data: Path, past_s: float = HOUR_S) -> None:
        self.broker = broker
        self.file = SampleFile(data, past_s)
        self.sampler = Sampler(broker, self.file)  # type: ignore[arg-type]
        self.look()

    def look(self) -> None:
        asyncio.run(self.sampler.sample())

    def watch(self, looks: int, span_s: float = 1.0) -> None:
        for _ in range(looks):
            self.broker.work(span_s)
            self.look()

    def stop(self) -> None:
        asyncio.run(self.sampler.stop())

    def drawn(self) -> list[Any]:
        """All that its charts, lines and tables show."""
        sampler = self.sampler
        trails = {number: (trail.waiting, trail.in_rate) for number, trail in sampler.trails.items()}
        return [sampler.history.hour(), sampler.history.recent(), trails, sampler.totals]


def now_of(broker: FakeBroker) -> Sample:
    return sample_of(asyncio.run(broker.ask("tallies")), asyncio.run(broker.ask("queue_tallies")))


def saved(data: Path, broker: FakeBroker) -> list[Sample]:
    found = SampleFile(data, HOUR_S).read(now_of(broker))
    return found[1] if found is not None else []


class Lines(logging.Handler):
    """What was logged."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


@pytest.fixture
def warnings() -> Iterator[list[str]]:
    handler, log = Lines(), logging.getLogger("dragoman.web")
    log.addHandler(handler)
    yield handler.lines
    log.removeHandler(handler)


# -- what comes back --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(10))
def test_a_killed_page_comes_back_with_what_it_showed(tmp_path: Path, seed: int) -> None:
    broker = FakeBroker(seed)
    page = Page(broker, tmp_path)
    for looks, span_s in ((40, 5.0), (90, 1.0), (3, 0.2), (7, 11.0)):
        page.watch(looks, span_s)
        again = Page(broker, tmp_path)
        assert again.drawn() == page.drawn()
        page = again


@pytest.mark.parametrize("seed", range(10))
def test_totals_are_counted_on_across_boots_and_nothing_twice(tmp_path: Path, seed: int) -> None:
    broker, page = FakeBroker(seed), None
    accepted, times = dict.fromkeys(broker.accepted, 0), 0
    for boot_no in range(1, 5):
        assert broker.boot_no == boot_no
        page = Page(broker, tmp_path)
        page.watch(15)
        page = Page(broker, tmp_path)  # the page's own death, in the same boot
        page.watch(15)
        accepted = {name: count + broker.accepted[name] for name, count in accepted.items()}
        times += sum(broker.times[2].values())
        totals = page.sampler.totals
        assert {one.dialect: one.accepted for one in totals.dialects} == accepted
        assert sum(one.count for one in totals.crossings) == sum(queue["accepted"] for queue in broker.queues)
        assert sum(totals.queues[2].total.values()) == times
        assert totals.since_ns == totals.queues[2].since_ns == FakeBroker().started_ns
        broker.restart()


def test_the_hour_has_a_gap_where_the_broker_was_away(tmp_path: Path) -> None:
    broker = FakeBroker()
    Page(broker, tmp_path).watch(10, 10.0)
    broker.restart(pause_s=300.0)
    page = Page(broker, tmp_path)
    page.watch(10, 10.0)
    known = [point is not None for point in page.sampler.history.hour()]
    assert known.count(True) == 20
    assert known.count(False) == 30


def test_a_page_that_stops_takes_a_last_look(tmp_path: Path) -> None:
    broker = FakeBroker()
    page = Page(broker, tmp_path)
    broker.work()
    page.stop()
    assert saved(tmp_path, broker)[-1] == now_of(broker)


def test_a_page_stops_without_an_answer(tmp_path: Path) -> None:
    broker = FakeBroker()
    page = Page(broker, tmp_path)
    before = now_of(broker)
    broker.is_away = True
    page.stop()
    broker.is_away = False
    assert saved(tmp_path, broker) == [before]


def test_a_data_directory_of_an_older_version_has_no_past(tmp_path: Path, warnings: list[str]) -> None:
    broker = FakeBroker()
    broker.work(1000.0)
    page = Page(broker, tmp_path)
    assert page.sampler.totals.since_ns == broker.started_ns, "the broker itself has counted from then on"
    assert not any(page.sampler.history.hour())
    assert warnings == []


# -- what is not continued --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("pause_s", "is_continued"), [(59.0, True), (61.0, False), (-7200.0, True)])
def test_only_a_short_pause_is_bridged(tmp_path: Path, pause_s: float, is_continued: bool) -> None:
    broker = FakeBroker()
    Page(broker, tmp_path, past_s=60.0).watch(30)
    broker.restart(pause_s)
    page = Page(broker, tmp_path, past_s=60.0)
    began_ns = min(FakeBroker().started_ns, broker.started_ns) if is_continued else broker.started_ns
    assert page.sampler.totals.since_ns == began_ns
    assert any(page.sampler.history.hour()) == (is_continued and pause_s > 0), "none are drawn ahead of the clock"
    page.watch(30)
    assert Page(broker, tmp_path, past_s=60.0).drawn() == page.drawn()


def test_samples_of_another_journal_are_not_continued(tmp_path: Path) -> None:
    broker = FakeBroker()
    broker.restart()
    Page(broker, tmp_path).watch(30)
    for boot_no in (1, 2):
        other = FakeBroker()
        other.now_ns = other.started_ns = broker.now_ns
        other.boot_no = boot_no
        assert saved(tmp_path, other) == []
    assert saved(tmp_path, broker)


# -- damage -----------------------------------------------------------------------------------------------------------------


def small_file(data: Path) -> tuple[FakeBroker, bytes, list[Sample]]:
    broker = FakeBroker(queues=1)
    Page(broker, data).watch(3)
    samples = saved(data, broker)
    assert len(samples) == 4
    return broker, (data / "web.samples").read_bytes(), samples


def test_a_flipped_bit_costs_the_row_it_is_in(tmp_path: Path, warnings: list[str]) -> None:
    broker, data, samples = small_file(tmp_path)
    path, aside = tmp_path / "web.samples", tmp_path / "web.samples.damaged"
    ends = [at for at, byte in enumerate(data) if byte == 10]
    for at in range(len(data)):
        warnings.clear()
        path.write_bytes(data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1 :])
        found = saved(tmp_path, broker)
        if at <= ends[0]:
            assert found == []
            assert aside.exists()
            aside.unlink()
        else:
            row = sum(end < at for end in ends) - 1
            hit = {row, row + 1} if at in ends else {row}
            assert found == [sample for number, sample in enumerate(samples) if number not in hit], at
            assert not aside.exists()
        is_only_its_end = at == len(data) - 1
        assert len(warnings) == 1 or is_only_its_end, at


def test_a_file_cut_at_any_place_keeps_the_rows_before(tmp_path: Path) -> None:
    broker, data, samples = small_file(tmp_path)
    ends = [at for at, byte in enumerate(data) if byte == 10]
    for size in range(len(data) + 1):
        (tmp_path / "web.samples").write_bytes(data[:size])
        found = saved(tmp_path, broker)
        assert found == samples[: max(sum(end <= size for end in ends) - 1, 0)], size


def test_a_page_goes_on_behind_a_torn_row(tmp_path: Path, warnings: list[str]) -> None:
    broker, data, _ = small_file(tmp_path)
    (tmp_path / "web.samples").write_bytes(data[:-7])
    page = Page(broker, tmp_path)
    page.watch(2)
    assert Page(broker, tmp_path).drawn() == page.drawn()
    assert len(warnings) == 1, "the file was begun anew without it"


def put_foreign(path: Path, kind: str) -> None:
    if kind == "directory":
        (path / "inside").mkdir(parents=True)
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "huge":
        with path.open("wb") as file:
            file.truncate(FILE_SIZE_MAX + 1)
    elif kind == "loop":
        path.symlink_to(path)
    else:
        contents = {
            "empty": b"",
            "noise": os.urandom(5000),
            "zeros": bytes(5000),
            "json": b"{}\n",
            "sample first": encoded(now_of(FakeBroker())),
            "later version": encoded_text(b'{"format":"dragoman web samples 2","slots":{}}'),
            "other types": encoded_text(b'{"format":"dragoman web samples 1","slots":[]}'),
            "not UTF-8": encoded_text(b'{"format":"\xff"}'),
            "deep": encoded_text(b'{"format":"dragoman web samples 1","else":' + b"[" * 100_000),
        }
        path.write_bytes(contents[kind])


def encoded_text(text: bytes) -> bytes:
    import zlib

    return b"%08x %s\n" % (zlib.crc32(text), text)


KINDS = ["directory", "pipe", "huge", "loop", "empty", "noise", "zeros", "json", "deep"]


@pytest.mark.parametrize("kind", [*KINDS, "sample first", "later version", "other types", "not UTF-8"])
def test_a_foreign_file_is_set_aside_with_one_line(tmp_path: Path, warnings: list[str], kind: str) -> None:
    broker = FakeBroker()
    put_foreign(tmp_path / "web.samples", kind)
    page = Page(broker, tmp_path)
    page.watch(5)
    assert Page(broker, tmp_path).drawn() == page.drawn()
    assert len(warnings) == 1
    assert "is now web.samples.damaged; the page begins anew" in warnings[0]
    assert os.path.lexists(tmp_path / "web.samples.damaged")


def test_a_foreign_file_that_cannot_be_renamed_ends_nothing(tmp_path: Path, warnings: list[str]) -> None:
    (tmp_path / "web.samples" / "inside").mkdir(parents=True)
    (tmp_path / "web.samples.damaged").write_bytes(b"")
    page = Page(FakeBroker(), tmp_path)
    page.watch(3)
    assert "nor renamed" in warnings[0]
    assert "samples are not saved" in warnings[1]
    assert len(warnings) == 2


# -- bounds, modes, full disks ----------------------------------------------------------------------------------------------


def test_the_file_stays_small_however_long_it_is_watched(tmp_path: Path) -> None:
    broker = FakeBroker(queues=40)
    page = Page(broker, tmp_path)
    sizes = []
    for _ in range(400):
        page.watch(1)
        sizes.append((tmp_path / "web.samples").stat().st_size)
    assert APPENDED_SIZE_MAX < max(sizes) < 2 * APPENDED_SIZE_MAX
    assert sum(later < earlier for earlier, later in pairwise(sizes)) >= 2
    assert Page(broker, tmp_path).drawn() == page.drawn()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["web.samples"]


def test_a_file_of_the_busiest_queues_is_read_back(tmp_path: Path) -> None:
    broker = FakeBroker(queues=QUEUES_FOLLOWED)
    page = Page(broker, tmp_path)
    for _ in range(3):
        page.watch(3)
        broker.fill_buckets()
        page.watch(3)
        broker.restart()
        page = Page(broker, tmp_path)
    assert (tmp_path / "web.samples").stat().st_size < FILE_SIZE_MAX / 2
    assert Page(broker, tmp_path).drawn() == page.drawn()


def test_the_file_is_for_its_user_alone(tmp_path: Path) -> None:
    fresh = tmp_path / "web.samples.new"
    fresh.write_bytes(b"of a page that was killed")
    fresh.chmod(0o666)
    before = os.umask(0)
    try:
        Page(FakeBroker(), tmp_path).watch(2)
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "web.samples").stat().st_mode) == 0o600
    assert not fresh.exists()


@contextmanager
def full_disk(free_size: int) -> Iterator[None]:
    """No file of this process grows beyond so many bytes."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (free_size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_is_logged_once_and_saving_goes_on_when_there_is_space(tmp_path: Path, warnings: list[str]) -> None:
    broker = FakeBroker()
    page = Page(broker, tmp_path)
    page.watch(5)
    size = (tmp_path / "web.samples").stat().st_size
    with full_disk(size + 100):
        page.watch(RETRY_SAMPLES + 10)
    assert len(warnings) == 1
    assert "samples are not saved" in warnings[0]
    assert not (tmp_path / "web.samples.new").exists(), "it takes nothing of a full disk"
    assert len(saved(tmp_path, broker)) == 6, "what was saved before is still there"
    page.watch(RETRY_SAMPLES)
    assert Page(broker, tmp_path).drawn() == page.drawn()


def test_a_full_disk_at_the_start_ends_nothing(tmp_path: Path, warnings: list[str]) -> None:
    with full_disk(100):
        page = Page(FakeBroker(), tmp_path)
        page.watch(5)
    assert len(warnings) == 1
    assert list(tmp_path.iterdir()) == []
    assert page.sampler.history.seconds


def test_a_look_ahead_of_the_clock_is_no_past(tmp_path: Path) -> None:
    """The clock was a year ahead, then it was set right: nothing of the wrong year is drawn, and all counts go on."""
    broker = FakeBroker()
    right_ns = broker.now_ns
    broker.now_ns += 365 * 86_400 * SECOND_NS
    broker.started_ns = broker.now_ns
    Page(broker, tmp_path).watch(20, 5.0)
    broker.now_ns = right_ns
    broker.restart()
    page = Page(broker, tmp_path)
    page.watch(20, 5.0)
    assert len([point for point in page.sampler.history.hour() if point is not None]) in (9, 10)
    assert page.sampler.totals.since_ns == broker.started_ns
    assert sum(one.accepted for one in page.sampler.totals.dialects) == sum(q["accepted"] for q in broker.queues)
