"""Decides what happens to a message whose attempt failed.

| how the attempt ended      | the client set `retries: N`             | the client set no retries                      |
|----------------------------|-----------------------------------------|------------------------------------------------|
| the worker answered failed | one retry used, backoff; none left: end | end (with GUARANTEED: again, backoff)          |
| it timed out               | the same                                | end (with GUARANTEED: again, backoff)          |
| the worker was lost        | the same, the first time without backoff| again, for as long as it takes                 |
| the worker returned it     | one retry used, at once; none left: end | again, backoff                                 |
| the worker left, or the broker stopped | again at once, uncounted    | again at once, uncounted                       |

With FAILURE_FINAL a failed answer is the end, whatever the retries.

A message that `quarantine_after` distinct workers died holding is quarantined, whatever its client asked for: it may be the cause.
A guaranteed message that has used up its retries is quarantined too. It still ends without a success when it expires, when a worker
rejects it for good, or when it is cancelled.
A returned message with retries left ends (`Core.give_back`) if no other worker could take it, except a guaranteed one. If others could take it but
have no free slot, or if it is guaranteed, it waits for the initial backoff.
"""

from __future__ import annotations

from typing import Final, final

from dragoman.core.settings import CoreSettings
from dragoman.limits import BACKOFF_DOUBLINGS_MAX
from dragoman.model import enums
from dragoman.model.message import Message

AGAIN: Final = 0
END: Final = 1
TO_QUARANTINE: Final = 2


@final
class Verdict:
    def __init__(self, what: int, reason: int, retries_left: int, due_ns: int) -> None:
        self.what = what
        self.reason = reason
        self.retries_left = retries_left
        self.due_ns = due_ns


def judge(m: Message, reason: int, deaths: int, settings: CoreSettings, now_ns: int) -> Verdict:
    """Decide by the table above. `deaths`: distinct workers that died holding it, this one included."""
    if reason == enums.WORKER_LEFT or reason == enums.BROKER_STARTED:
        return Verdict(AGAIN, reason, m.retries_left, 0)
    is_death = reason == enums.WORKER_LOST
    if is_death and settings.quarantine_after > 0 and deaths >= settings.quarantine_after:
        return Verdict(TO_QUARANTINE, enums.WORKERS_DIED, m.retries_left, 0)
    if m.flags & enums.FAILURE_FINAL and reason == enums.FAILED:
        return Verdict(END, reason, m.retries_left, 0)
    due_ns = now_ns + backoff_ns(m.attempt, settings)
    if (is_death and deaths <= 1) or (reason == enums.RETURNED and m.retries_left > 0):
        due_ns = 0
    if m.retries_left > 0:
        return Verdict(AGAIN, reason, m.retries_left - 1, due_ns)
    if m.retries_left == 0:
        return Verdict(TO_QUARANTINE if m.flags & enums.GUARANTEED else END, reason, 0, 0)
    if is_death or reason == enums.RETURNED or m.flags & enums.GUARANTEED:
        return Verdict(AGAIN, reason, m.retries_left, due_ns)
    return Verdict(END, reason, m.retries_left, 0)


def backoff_ns(attempt: int, settings: CoreSettings) -> int:
    """The delay before the next attempt: doubles with each, up to the maximum. No jitter: a queue's messages are leased one by one anyway."""
    doublings = min(max(attempt - 1, 0), BACKOFF_DOUBLINGS_MAX)
    return min(settings.backoff_initial_ns << doublings, settings.backoff_max_ns)


def count_death(m: Message, worker_no: int) -> None:
    """Record that a worker died holding it."""
    if m.died_with is None:
        m.died_with = []
    if worker_no not in m.died_with:
        m.died_with.append(worker_no)
