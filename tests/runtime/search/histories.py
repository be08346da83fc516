"""Journals made by chance, with all that makes a life hard to find: on a disk that fails, loses power and is written again."""

from __future__ import annotations

from random import Random

from dragoman import limits
from dragoman.errors import JournalUnavailable
from dragoman.journal.journal import Journal
from dragoman.journal.segment_views import segment_views
from dragoman.journal.settings import JournalSettings
from dragoman.journal.tools.indexer import Indexer
from dragoman.journal.tools.verify import Progress, no_progress
from dragoman.model import enums
from dragoman.model.facts import layout, records
from dragoman.model.facts.records import FactLog
from dragoman.model.message import Message, fact_id
from dragoman.runtime.search.lives import FactCollector, MessageHistory
from dragoman.runtime.search.naming import stored_ids
from dragoman.runtime.search.trace import look_through
from dragoman.testing.disk import FakeDisk

DIRECTORY = "/data/journal"
BROKER_ID = bytes(range(16))
START_NS = 1_700_000_000_000_000_000
IDS = [b"", b"", b"again", b"\xff\xfe", b"7", *(b"job-%d" % n for n in range(40))]
STEP_SIZE = 4096


class History:
    """One seed, one journal; `go` lets something happen to it."""

    def __init__(self, seed: int) -> None:
        self.chance = Random(seed)
        self.disk = FakeDisk()
        self.durability = self.chance.choice(["os", "disk"])
        self.messages: list[Message] = []
        self.boot = 0
        self.time_ns = START_NS
        self.keys = {"again", "nobody", "999"}
        self.start()

    def start(self) -> None:
        settings = JournalSettings(DIRECTORY, self.durability, segment_size=limits.SEGMENT_SIZE_MIN, zero_fill=False)
        self.journal = Journal.open(settings, self.disk, now_ns=self.time_ns, new_broker_id=BROKER_ID)
        self.indexer = Indexer(DIRECTORY, self.disk, STEP_SIZE)
        self.log = FactLog()
        self.boot += 1
        self.count = 0
        self.log.numbered(layout.STARTED, self.boot, 0, b"0.1.0")
        for queue_no in (1, 2):
            self.log.numbered(layout.QUEUE_NAMED, queue_no, 0, b"queue-%d" % queue_no)
        self.workers = [self.number() for _ in range(3)]
        for worker in self.workers:
            text = b"emqp.worker\t127.0.0.1:9\t" + b"bob".hex().encode()
            self.log.numbered(layout.WORKER_JOINED, worker, enums.EMQP, text)

    def number(self) -> int:
        self.count += 1
        return self.boot << 40 | self.count

    def go(self, steps: int) -> None:
        for _ in range(steps):
            for _ in range(self.chance.randint(1, 6)):
                self.chance.choice([self.accept, self.accept, self.move, self.move, self.move, self.rarer])()
            self.keep()
            if self.chance.random() < 0.08:
                self.chance.choice([self.roll, self.fail, self.restart, self.lose_power, self.spoil_an_index])()
            if self.chance.random() < 0.2:
                self.indexer.work(is_last=self.chance.random() < 0.3)

    def accept(self) -> None:
        m = Message(enums.EMQP, b"queue", self.chance.choice(IDS), b"body" * self.chance.randint(0, 60))
        m.number, m.queue_no = self.number(), self.chance.choice([1, 2, 3])
        if self.chance.random() < 0.1:
            m.client_id, m.schedule_no = b"", 5
            text = records.fired_text(m.number, START_NS, -1)
            self.log.numbered(layout.FIRED, 5, START_NS, text)
        self.log.accepted(m)
        self.messages = [*self.messages[-60:], m]
        self.keys |= {str(m.number), fact_id(m.number).decode()}
        if m.client_id:
            self.keys.add(m.client_id.decode("utf-8", "surrogateescape"))

    def move(self) -> None:
        if not self.messages:
            return
        m, worker = self.chance.choice(self.messages), self.chance.choice(self.workers)
        kind = self.chance.randint(0, 5)
        if kind <= 1:
            m.attempt += 1
            self.log.leased(m, worker)
        elif kind == 2:
            reason = self.chance.choice([enums.WORKER_LOST, enums.BROKER_STARTED])
            self.log.released(m, worker, enums.EMQP, 2, 0, reason, False)
        elif kind == 3:
            self.log.closed(m, worker, enums.EMQP, 9, 3, enums.ANSWERED, worker)
        elif kind == 4:
            self.log.quarantined(m, worker, enums.EMQP, enums.WORKERS_DIED, worker)
        else:
            self.log.numbered(layout.DELIVERED, m.number, worker, b"")

    def rarer(self) -> None:
        if self.messages and self.chance.random() < 0.7:
            m = self.chance.choice(self.messages)
            named = self.chance.choice([fact_id(m.number), m.client_id or b"nobody", b"\\xff\\xfe", b"\xff\xfe"])
            self.log.numbered(layout.LATE, self.chance.choice(self.workers), enums.EMQP, named)
        elif self.messages:
            m, log = self.chance.choice(self.messages), FactLog()
            if self.chance.random() < 0.5:  # as if its acceptance had been trimmed away
                m = Message(enums.EMQP, b"queue", self.chance.choice(IDS), b"")
                m.number, m.queue_no = self.number(), 1
                self.messages.append(m)
                self.keys.add(str(m.number))
            log.accepted(m)
            self.log.carried(log.take(), START_NS)
        else:  # a due instant that was skipped
            self.log.numbered(layout.FIRED, 5, START_NS, records.fired_text(0, START_NS, -1))

    def keep(self) -> None:
        self.time_ns += 1_000_000
        count = self.log.count
        if self.journal.wants_roll(self.log.size()):
            self.roll()
        data = self.log.take()
        if data:
            self.journal.append([data], count, self.time_ns)
        if self.durability == "disk" or self.chance.random() < 0.2:
            self.sync()

    def sync(self) -> None:
        try:
            self.journal.sync()
        except JournalUnavailable:
            pass

    def roll(self) -> None:
        self.journal.roll()

    def fail(self) -> None:
        self.disk.fail_syncs(1)
        self.sync()

    def restart(self) -> None:
        self.journal.close()
        self.disk.kill()
        self.start()

    def lose_power(self) -> None:
        self.disk.crash(self.chance)
        self.messages.clear()
        self.start()

    def spoil_an_index(self) -> None:
        paths = [f"{DIRECTORY}/{name}" for name in self.disk.list_names(DIRECTORY) if name.endswith(".idx")]
        paths = [path for path in paths if self.disk.content(path)]
        if paths:
            path = self.chance.choice(paths)
            size = len(self.disk.content(path))
            if self.chance.random() < 0.5:
                self.disk.damage(path, self.chance.randrange(size))
            else:
                self.disk.lose_tail(path, self.chance.randrange(size))

    def lives(self, key: str, *, with_indexes: bool) -> list[MessageHistory]:
        segments = segment_views(DIRECTORY, self.disk)
        if not with_indexes:
            for view in segments:
                view.index = None
        return look_through(segments, FactCollector(key))

    def covered(self) -> tuple[int, int]:
        """Segments with an index that is trusted, and segments in all."""
        segments = segment_views(DIRECTORY, self.disk)
        return sum(view.index is not None for view in segments), len(segments)


def trace(directory: str, key: str, progress: Progress = no_progress) -> list[MessageHistory]:
    """Like `find_lives`, from the journal only and without its indexes: reads every block."""
    segments = segment_views(directory)
    for view in segments:
        view.index = None
    return look_through(segments, FactCollector(key, stored_ids(segments)), progress)
