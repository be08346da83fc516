"""One look at the broker a second for everybody who watches; one in ten seconds when nobody does.

A watcher waits for the next beat and renders from what was seen. What was before the first look is read from the journal meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from dragoman.errors import AdminRefused, AdminUnreachable
from dragoman.limits import ADMIN_PAGE_MAX
from dragoman.model.units import SECOND_NS
from dragoman.web.before import NOTHING
from dragoman.web.history import SLOT_NS, SLOT_S, History, look_of
from dragoman.web.link import Link
from dragoman.web.refill import Now, read_past
from dragoman.web.trails import Trail

BEAT_S: Final = 1.0
QUEUES_FOLLOWED: Final = 200  # those with the most to do

Answer = dict[str, Any]


class Sampler:
    """Runs for the life of the page's process."""

    def __init__(self, link: Link, journal: Path, past_s: float) -> None:
        self._link = link
        self._journal = journal
        self._past_s = past_s
        self._task: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._beat = asyncio.Condition()
        self._looking = asyncio.Lock()
        self.beats = 0
        self.watchers = 0
        self.history = History()
        self.tallies: Answer = {}
        self.queues: list[Answer] = []
        self.queues_total = 0
        self.findings: list[Answer] = []
        self.trails: dict[int, Trail] = {}
        self.before = NOTHING
        self._looked_s = float("-inf")
        self._answered_s = 0.0
        self.is_away = True  # the broker did not answer the last time

    def start(self) -> None:
        self._task = asyncio.ensure_future(self._run())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    @contextmanager
    def watching(self) -> Iterator[None]:
        self.watchers += 1
        self._wake.set()
        try:
            yield
        finally:
            self.watchers -= 1

    async def next_beat(self, after: int) -> int:
        """Wait for a beat later than `after`; its number."""
        async with self._beat:
            await self._beat.wait_for(lambda: self.beats > after)
            return self.beats

    @property
    def now_ns(self) -> int:
        """The broker's clock: as it was at the last look, and what has passed since."""
        if not self.tallies:
            return 0
        since_s = min(asyncio.get_running_loop().time() - self._answered_s, SLOT_S)
        return int(self.tallies["now_ns"]) + int(since_s * SECOND_NS)

    async def look(self) -> None:
        """See the broker as it is now; `AdminUnreachable` when it does not answer."""
        try:
            tallies = await self._link.ask("tallies")
            page = await self._link.ask("queue_tallies", order="depth", limit=QUEUES_FOLLOWED)
            stuck = await self._link.ask("stuck")
        except AdminUnreachable:
            self.is_away = True
            raise
        self.is_away = False
        self.tallies = tallies
        if tallies["boot_no"] != self.before.boot_no:
            self.before = NOTHING
        self._answered_s = asyncio.get_running_loop().time()
        self.queues, self.queues_total = page["queues"], page["total"]
        self.findings = stuck["findings"]
        self.history.add(look_of(tallies))
        known = {queue["queue_no"] for queue in self.queues}
        self.trails = {number: trail for number, trail in self.trails.items() if number in known}
        for queue in self.queues:
            self.trails.setdefault(queue["queue_no"], Trail()).add(tallies["now_ns"], queue)

    async def fresh(self) -> None:
        """For a page that is asked for: what was seen within the last beat will do."""
        await self._look_unless(BEAT_S)

    def outdate(self) -> None:
        """Something was changed: who looks next must see it."""
        self._looked_s = float("-inf")

    async def _look_unless(self, younger_than_s: float) -> None:
        loop = asyncio.get_running_loop()
        async with self._looking:
            if self.is_away or loop.time() - self._looked_s >= younger_than_s:
                await self.look()
                self._looked_s = loop.time()

    async def _run(self) -> None:
        refiller: asyncio.Task[None] | None = None
        try:
            while True:
                with suppress(AdminUnreachable, AdminRefused):
                    await self._look_unless(BEAT_S / 2 if self.watchers else SLOT_S / 2)
                if refiller is None and self.tallies:
                    refiller = asyncio.ensure_future(self._refill())
                async with self._beat:
                    self.beats += 1
                    self._beat.notify_all()
                await self._rest(BEAT_S if self.watchers else SLOT_S)
        finally:
            if refiller is not None:
                refiller.cancel()

    async def _refill(self) -> None:
        """What nobody saw, from the journal; what was seen meanwhile stays."""
        tallies, queues = self.tallies, self.queues
        held: list[Answer] = []
        with suppress(AdminUnreachable, AdminRefused):
            held = (await self._link.ask("messages", state="leased", limit=ADMIN_PAGE_MAX))["messages"]
        found = await read_past(self._journal, Now(look_of(tallies), tallies["started_ns"], queues, held), self._past_s)
        for point in found.points:
            self.history.put(point.at_ns // SLOT_NS, point)
        if found.before.boot_no == self.tallies["boot_no"]:
            self.before = found.before
        for number, past in found.trails.items():
            if number in self.trails:
                self.trails[number].fill(past)

    async def _rest(self, rest_s: float) -> None:
        """Until the next beat; a first watcher is not kept waiting."""
        self._wake.clear()
        if self.watchers:
            await asyncio.sleep(rest_s)
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(rest_s):
                await self._wake.wait()
