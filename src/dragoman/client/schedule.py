"""A durable schedule: the broker makes the job, every so many seconds or by a cron expression.

A schedule is known by its job and arguments; sending the same again changes nothing (`keep-same`), so that a worker may declare its
schedules at each start without shifting them. The first run waits for the first due instant (`nohaste`).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from dragoman.client.body import problem_of
from dragoman.client.features import SCHEDULES, require
from dragoman.dialects.emqp.client_side import encode_schedule
from dragoman.errors import Refused

if TYPE_CHECKING:
    from dragoman.client.job import Job


class Schedule:
    """When, what, and with which arguments."""

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
        """Returns once the broker keeps it; raises Refused."""
        if not self.cron and self.interval_s <= 0:
            raise ValueError(f"an interval wants more than 0 seconds, not {self.interval_s:g}")
        headers = ["ack-requested", "nohaste", "keep-same", *self.job.opts.headers()]
        refusal = await self._say(True, headers)
        if refusal:
            raise problem_of(refusal, "not scheduled")

    async def withdraw(self) -> bool:
        refusal = await self._say(False, ["ack-requested"])
        if not refusal:
            return True
        problem = problem_of(refusal, "not unscheduled")
        if isinstance(problem, Refused) and problem.refusal == "NOT_FOUND":
            return False
        raise problem

    async def _say(self, is_new: bool, headers: list[str]) -> bytes:
        app = self.job.app
        require(app.address.tongue.name, SCHEDULES)
        caller = app.desk().caller
        call_id = caller.ids.take()
        interval_s = f"{self.interval_s:.9g}".encode() if not self.cron else b"-1"
        queue = self.job.opts.queue.encode()
        text = ",".join(headers).encode()
        message = encode_schedule(is_new, call_id, queue, text, interval_s, self.body, self.cron.encode())
        return await caller.call(call_id, message, False, app.wait_s)
