"""A broker in memory (tests/core/harness) whose facts go to a real journal: on a fake disk that can be damaged, or on a real one."""

from __future__ import annotations

import itertools

from dragoman.core.settings import CoreSettings
from dragoman.core.storage.snapshot import encode
from dragoman.core.timers import Timers
from dragoman.dialects.registry import Dialects
from dragoman.dialects.session import Outboxes
from dragoman.journal.disk import DiskFace
from dragoman.journal.journal import Journal
from dragoman.journal.settings import JournalSettings
from dragoman.limits import MESSAGE_SIZE_MAX, SEGMENT_SIZE_MIN
from dragoman.model.facts.decode import decode_block
from dragoman.runtime.recovery import begin_boot, recover
from tests.core.harness import START_NS, InMemoryBroker, Worker

DIRECTORY = "/data/journal"
BROKER_ID = bytes(range(16))


class JournaledBroker(InMemoryBroker):
    """One boot of a broker without a process. Few messages stay in memory, so that what waits is read back from the disk."""

    def __init__(self, disk: DiskFace, directory: str = DIRECTORY, now_ns: int = START_NS, head_max: int = 1) -> None:
        self.disk, self.directory, self.now_ns = disk, directory, now_ns
        self.journal = Journal.open(
            JournalSettings(directory, "os", segment_size=SEGMENT_SIZE_MIN),
            disk,
            now_ns=now_ns,
            new_broker_id=BROKER_ID,
        )
        settings = CoreSettings()
        settings.head_max = head_max
        self.core, _ = recover(self.journal, settings)
        begin_boot(self.core, self.journal, now_ns)
        self.core.log.base_position = self.journal.next_position()
        self.timers, self.outboxes = Timers(self.core), Outboxes(self.core)
        self.outboxes.message_size_max = MESSAGE_SIZE_MAX
        self.outboxes.boot_no = self.core.state.boot_no
        self.dialects = Dialects(self.outboxes, b"\x07" * 10)
        self.emqp = self.dialects.emqp
        self.ids = itertools.count(1)
        self.kept: list[bytes] = []  # the blocks of this boot

    def commit(self) -> None:
        log = self.core.log
        if log.count or log.size():
            count = log.count
            self.kept.append(log.take())
            self.journal.append([self.kept[-1]], count, self.core.now_ns)
            log.base_position = self.journal.next_position()

    def checkpoint(self) -> None:
        """Begin a new segment with what is known now."""
        self.commit()
        self.journal.roll(encode(self.core.state, None))
        self.journal.sync()
        self.core.log.base_position = self.journal.next_position()

    def restarted(self) -> JournaledBroker:
        self.commit()
        self.journal.close()
        return JournaledBroker(self.disk, self.directory, self.now_ns, self.core.settings.head_max)

    def facts_kept(self, name: str) -> list[dict[str, object]]:
        """The facts of one name since this boot has begun."""
        self.commit()
        return [fact for records in self.kept for fact in decode_block(records) if fact["fact"] == name]

    def segment(self, number: int) -> str:
        return f"{self.directory}/{number:010d}.seg"

    def serve(self, queue: bytes = b"mail", slots: int = 20) -> Worker:
        worker = self.worker(b"worker %d" % next(self.ids))
        worker.inform((10, queue))
        worker.ready(slots)
        return worker


def bodies(worker: Worker) -> list[bytes]:
    """What a worker was given since the last look."""
    return [frames[3] for frames in worker.take(b"REQUEST")]
