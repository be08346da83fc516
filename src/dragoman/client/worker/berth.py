"""One worker connection in any dialect with a worker side, made again when it is lost.

    connect ──► serve ──► the broker has taken us on ──► jobs and answers ──► lost, silent or sent away ──► the same again

Request ids mean something on their own connection only: an answer whose connection is lost is of no use to anybody, for the broker
has given the job to another worker by then. A broker that sends its workers away may still want what they hold (rq, scale0): the old
connection is kept until that is answered.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import Final

from dragoman.client import sides
from dragoman.client.address import WORKER, Address
from dragoman.client.line import Line
from dragoman.client.link import Link
from dragoman.client.side_link import SideLink
from dragoman.dialects.sides import WorkerSide

SILENT_S: Final = 5.0  # a broker that has not said a word by then is left for the next one

log = logging.getLogger("dragoman.worker")


class Stand:
    """One connection's share of the jobs under way."""

    __slots__ = ("holds", "is_leaving", "is_lost", "link", "side")

    def __init__(self, side: WorkerSide) -> None:
        self.side = side
        self.link: SideLink | None = None
        self.holds = 0  # jobs that came by it and are not answered
        self.is_leaving = False
        self.is_lost = False

    def reply(self, request_id: bytes, value: bytes) -> None:
        self.side.reply(request_id, value)
        self.push()

    def push(self) -> None:
        if self.link is not None:
            self.link.push()

    def release(self) -> None:
        """A job that came by it is answered, withdrawn or of no more use."""
        self.holds -= 1
        if self.is_leaving and self.holds <= 0 and self.link is not None:
            self.link.close()


class Berth:
    """Keeps one connection; `begin` gets the jobs, `withdrawn` what the broker wants no more, `changed` that it came or went."""

    def __init__(
        self,
        address: Address,
        queues: list[tuple[int, bytes]],
        slots: int,
        begin: Callable[[Stand, list[tuple[bytes, float, bytes]]], None],
        withdrawn: Callable[[Stand, list[bytes]], None],
        changed: Callable[[], None],
    ) -> None:
        self.is_serving = False
        self._address = address
        self._queues = queues
        self._slots = slots
        self._begin = begin
        self._withdrawn = withdrawn
        self._changed = changed
        self._stand: Stand | None = None
        self._old: set[Stand] = set()
        self._is_leaving = False
        self._program = sides.new_identity()  # the same on every connection, so that a dismissal outlasts one
        self._line = Line(address, WORKER, self._make, self._up, self._down)

    def start(self) -> None:
        self._line.start()

    @property
    def problem(self) -> str:
        return self._line.problem

    def _make(self) -> Link:
        side = sides.worker_side(self._address.tongue.name, self._line.is_alternate, self._program)
        stand = Stand(side)
        side.serve(self._queues, self._slots)
        link = SideLink(
            side,
            functools.partial(self._hear, stand),
            functools.partial(self._over, stand),
            self._gone,
            self._readied,
            self._address.tongue.hello,
        )
        stand.link = link
        self._stand = stand
        return link

    def _up(self, link: Link) -> None:
        assert isinstance(link, SideLink)
        link.loop.call_later(SILENT_S, self._check, link)

    def _check(self, link: SideLink) -> None:
        if not link.has_heard and not link.lost.is_set():
            link.abort(f"the broker said nothing for {SILENT_S:g} s")

    def _readied(self) -> None:
        self.is_serving = True
        self._changed()
        if self._is_leaving and self._stand is not None:
            self._leave(self._stand)

    def _down(self) -> None:
        if self.is_serving:
            self.is_serving = False
            if not self._is_leaving:
                log.warning("lost the broker: %s", self._line.problem)
            self._changed()

    def _hear(self, stand: Stand, data: bytes) -> None:
        jobs = stand.side.receive(data)
        if jobs:
            stand.holds += len(jobs)
            self._begin(stand, jobs)
        cancelled = stand.side.take_cancelled()
        if cancelled:
            self._withdrawn(stand, cancelled)

    def _over(self, stand: Stand, link: SideLink, is_silent: bool) -> None:
        if is_silent:
            link.abort(link.reason)
        elif self._address.tongue.stays and stand.holds > 0:
            stand.is_leaving = True
            self._old.add(stand)
            link.left.set()
        else:
            link.leave()

    def _gone(self, link: SideLink) -> None:
        for stand in [self._stand, *self._old]:
            if stand is not None and stand.link is link:
                stand.is_lost = True
                self._old.discard(stand)

    def _leave(self, stand: Stand) -> None:
        stand.is_leaving = True
        stand.side.goodbye()
        stand.push()
        if stand.holds <= 0 and self._address.tongue.one_job and stand.link is not None:
            stand.link.close()  # there is no word for goodbye: the next job would come

    def leave(self) -> None:
        """Take nothing new; what runs is still answered, where its connection lives."""
        self._is_leaving = True
        self._line.end_with_link()
        if self._stand is not None and self.is_serving:
            self._leave(self._stand)

    async def close(self) -> None:
        for stand in list(self._old):
            if stand.link is not None:
                stand.link.close()
        await self._line.close()
