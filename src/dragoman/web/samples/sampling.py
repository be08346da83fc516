"""Samples the broker once a second for all viewers together, or every five seconds without viewers.

A viewer waits for the next beat and renders from its sample. Each sample is saved; saved samples of an earlier process are replayed by the
same code before the first new one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final

from dragoman.errors import AdminRefused, AdminUnreachable
from dragoman.model.units import SECOND_NS
from dragoman.web.link import Link
from dragoman.web.samples.history import History, Trail, chart_sample
from dragoman.web.samples.sample_file import Checkpoint, SampleFile
from dragoman.web.samples.samples import Sample, Totals, sample_of

BEAT_S: Final = 1.0
IDLE_S: Final = 5.0  # between two samples without viewers: this much history is lost on a kill
START_NS: Final = 30 * SECOND_NS  # the first sample is taken sooner than this after the broker's start
LAST_SAMPLE_S: Final = 1.0  # a stopping broker still responds, a hanging one does not
QUEUES_FOLLOWED: Final = 200  # the deepest ones

Answer = dict[str, Any]


class Sampler:
    """Takes samples while the process runs. Without a file nothing is saved or restored."""

    def __init__(self, link: Link, file: SampleFile | None) -> None:
        self._link = link
        self._file = file
        self._task: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._beat = asyncio.Condition()
        self._sampling = asyncio.Lock()
        self.beats = 0
        self.watchers = 0
        self.history = History()
        self.tallies: Answer = {}
        self.queues: list[Answer] = []
        self.findings: list[Answer] = []
        self.trails: dict[int, Trail] = {}
        self.pre_boot = Totals()  # of the boots before this one
        self.totals = Totals()
        self._last: Sample | None = None
        self._sampled_s = float("-inf")
        self._answered_s = 0.0
        self.is_away = True  # the broker did not answer the last request

    def start(self) -> None:
        self._task = asyncio.ensure_future(self._run())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
        if self._file is not None:
            with suppress(AdminUnreachable, AdminRefused, TimeoutError):
                async with asyncio.timeout(LAST_SAMPLE_S):
                    await self.sample()
            self._file.close()

    @contextmanager
    def watching(self) -> Iterator[None]:
        self.watchers += 1
        self._wake.set()
        try:
            yield
        finally:
            self.watchers -= 1

    async def next_beat(self, after: int) -> int:
        """Wait for a beat later than `after`; return its number."""
        async with self._beat:
            await self._beat.wait_for(lambda: self.beats > after)
            return self.beats

    @property
    def now_ns(self) -> int:
        """The broker's clock: its value in the last sample plus the time since."""
        if not self.tallies:
            return 0
        since_s = min(asyncio.get_running_loop().time() - self._answered_s, IDLE_S)
        return int(self.tallies["now_ns"]) + int(since_s * SECOND_NS)

    async def sample(self) -> None:
        """Take a sample now; raises `AdminUnreachable` if the broker does not respond."""
        try:
            tallies = await self._link.ask("tallies")
            page = await self._link.ask("queue_tallies", order="depth", limit=QUEUES_FOLLOWED)
            stuck = await self._link.ask("stuck")
        except AdminUnreachable:
            self.is_away = True
            raise
        self.is_away = False
        self.tallies = tallies
        self._answered_s = asyncio.get_running_loop().time()
        self.queues = page["queues"]
        self.findings = stuck["findings"]
        sample = sample_of(tallies, page)
        if self._last is None:
            self._restore(sample)
        if self._last is None and 0 < sample.now_ns - sample.started_ns < START_NS:
            self._add_and_save(sample.at_start())  # charts include what the broker did before this process started
        self._add_and_save(sample)

    def _add_and_save(self, sample: Sample) -> None:
        self._add(sample)
        if self._file is not None:
            self._file.add(sample, self._checkpoint)

    def _restore(self, now: Sample) -> None:
        saved = self._file.read(now) if self._file is not None else None
        if saved is None:
            return
        checkpoint, samples = saved
        self.history.slots, self.history.slot_begin = dict(checkpoint.slots), checkpoint.slot_begin
        self.history.seconds.extend(checkpoint.seconds)
        self.trails = dict(checkpoint.trails)
        self.pre_boot = checkpoint.pre_boot
        for sample in samples:
            self._add(sample)

    def _add(self, sample: Sample) -> None:
        """Add a sample, live or saved, to charts, trails and totals."""
        if self._last is not None and not self._last.is_same_boot(sample):
            self.pre_boot = self.totals
        self._last = sample
        self.totals = self.pre_boot.plus(sample)
        self.history.add(chart_sample(sample))
        known = {queue.queue_no for queue in sample.queues}
        self.trails = {number: trail for number, trail in self.trails.items() if number in known}
        for queue in sample.queues:
            self.trails.setdefault(queue.queue_no, Trail()).add(sample.now_ns, queue)

    def _checkpoint(self) -> Checkpoint:
        history = self.history
        return Checkpoint(history.slots, history.slot_begin, list(history.seconds), self.trails, self.pre_boot)

    def outdate(self) -> None:
        """Mark the last sample as outdated after a change, so that the next page shows it."""
        self._sampled_s = float("-inf")

    async def fresh(self, age_s_max: float = BEAT_S) -> None:
        """Take a sample unless the last one is recent enough."""
        loop = asyncio.get_running_loop()
        async with self._sampling:
            if self.is_away or loop.time() - self._sampled_s >= age_s_max:
                await self.sample()
                self._sampled_s = loop.time()

    async def _run(self) -> None:
        while True:
            with suppress(AdminUnreachable, AdminRefused):
                await self.fresh(BEAT_S / 2 if self.watchers else IDLE_S / 2)
            async with self._beat:
                self.beats += 1
                self._beat.notify_all()
            await self._rest(BEAT_S if self.watchers else IDLE_S)

    async def _rest(self, rest_s: float) -> None:
        """Sleep until the next beat; the first viewer to arrive ends the sleep."""
        self._wake.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(rest_s):
                await (asyncio.sleep(rest_s) if self.watchers else self._wake.wait())
