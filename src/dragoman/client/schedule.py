"""A durable schedule: the broker enqueues the job, every so many seconds or by a cron expression.

A schedule is identified by its job and arguments; sending the same again changes nothing (`keep-same`), so that a worker may declare its
schedules at each start without shifting them. The first run waits for the first due instant (`nohaste`).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from dragoman.client.call_options import call_options
from dragoman.client.caller import Question, too_long
from dragoman.client.features import SCHEDULES, require
from dragoman.dialects.endpoint import ClientEndpoint
from dragoman.errors import Refused

if TYPE_CHECKING:
    from dragoman.client.job import Job


class Schedule:
    """When to run which job, and with which arguments."""

    def __init__(
        self, when: str | float, job: Job[..., Any, Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        if not isinstance(when, str) and not math.isfinite(when):
            raise ValueError(f"an interval wants seconds, not {when}")
        if isinstance(when, str) and not when.strip():
            raise ValueError("a cron expression is not empty")
        self.job = job
        self.cron = when if isinstance(when, str) else ""
        self.interval_s = -1.0 if isinstance(when, str) else float(when)
        self.body = job.arguments.body(args, kwargs)

    async def send(self) -> None:
        """Declare the schedule; returns once the broker has stored it; raises Refused."""
        if not self.cron and self.interval_s <= 0:
            raise ValueError(f"an interval wants more than 0 seconds, not {self.interval_s:g}")
        await self._ask(self._schedule)

    async def withdraw(self) -> bool:
        """Remove the schedule; False when the broker has no such schedule; raises Refused."""
        try:
            await self._ask(self._unschedule)
        except Refused as refused:
            if refused.refusal != "NOT_FOUND":
                raise
            return False
        return True

    async def _ask(self, question: Question) -> None:
        app = self.job.app
        require(app.address.profile.name, SCHEDULES)
        self._options = call_options(app.address, self.job.opts.queue, self.job.opts, False, app.wait_s)
        if len(self.body) > self._options.body_size_max:
            raise too_long(len(self.body))
        await app.connections().caller.ask(question, False, app.wait_s)

    def _schedule(self, endpoint: ClientEndpoint, call_id: bytes) -> None:
        endpoint.schedule(call_id, self._options, self.interval_s, self.cron.encode(), self.body)

    def _unschedule(self, endpoint: ClientEndpoint, call_id: bytes) -> None:
        endpoint.unschedule(call_id, self._options, self.interval_s, self.cron.encode(), self.body)
