"""A schedule: makes messages like its template, every interval or by a cron expression."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final, final
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from dragoman.limits import CRON_REPEAT_NS, CRON_SIZE_MAX
from dragoman.model.message import Message
from dragoman.model.units import SECOND_NS

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# Words that crontab(5) and the original's own parser know.
NAMED_CRONS: Final[dict[str, str]] = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}


@final
class Schedule:
    """Kept until it is unscheduled or has used up its runs."""

    def __init__(self, number: int, template: Message, interval_ns: int, cron: str, runs_left: int) -> None:
        self.number = number
        self.template = template
        self.interval_ns = interval_ns  # 0: by cron
        self.cron = cron
        self.runs_left = runs_left  # -1: for ever
        self.next_due_ns: int = 0
        self.last_due_ns: int = 0
        self.fired: int = 0
        # Not durable: what a wall clock that is set back needs to know.
        self.run_from_ns: int = 0  # the first of the unbroken run of due instants up to the last; 0: not known
        self.sooner_ns: int = 0  # an instant before `next_due_ns` that is due by the clock as it was set back; 0: none

    def due_ns(self) -> int:
        """The instant at which it fires next."""
        return self.sooner_ns if self.sooner_ns != 0 else self.next_due_ns

    def forget_rewind(self, wall_ns: int) -> None:
        """The clock was set back and is forward again, before the instant in between was due: what is between did not happen."""
        if wall_ns >= self.next_due_ns or 0 < self.last_due_ns <= wall_ns:
            self.sooner_ns = 0

    def had_its_turn(self, due_ns: int, next_due_ns: int, runs_left: int) -> None:
        if self.last_due_ns == 0 or due_ns != self.next_due_ns:  # some were missed, or the clock was set back
            self.run_from_ns = due_ns
        self.sooner_ns = 0
        self.last_due_ns = due_ns
        self.next_due_ns = next_due_ns
        self.runs_left = runs_left
        self.fired += 1

    def is_like(self, template: Message, interval_ns: int, cron: str, runs: int) -> bool:
        """Whether another declaration says the same; runs already used up count."""
        mine = self.template
        return (
            mine.queue == template.queue
            and mine.headers == template.headers
            and mine.body == template.body
            and self.interval_ns == max(interval_ns, 0)
            and self.cron == cron
            and self.runs_left + self.fired == (runs if runs >= 0 else self.fired - 1)
        )


def next_due(schedule: Schedule, after_ns: int, zone: str) -> int:
    """The first due instant after another one. Cron runs on the wall clock of its time zone."""
    if schedule.interval_ns > 0:
        return after_ns + schedule.interval_ns
    after = (EPOCH + timedelta(microseconds=after_ns // 1000)).astimezone(ZoneInfo(zone))
    due: datetime = next(CronSim(cron_fields(schedule.cron), after))
    return int((due - EPOCH).total_seconds()) * SECOND_NS


def latest_due(schedule: Schedule, due_ns: int, now_ns: int, zone: str) -> int:
    """The last due instant up to `now_ns`, at which or before which it was due at `due_ns`: found without a look at each between."""
    if schedule.interval_ns > 0:
        return due_ns + (now_ns - due_ns) // schedule.interval_ns * schedule.interval_ns
    behind = (EPOCH + timedelta(microseconds=now_ns // 1000 + 1)).astimezone(ZoneInfo(zone))
    latest: datetime = next(CronSim(cron_fields(schedule.cron), behind, reverse=True))
    return max(int((latest - EPOCH).total_seconds()) * SECOND_NS, due_ns)


def rewind(schedule: Schedule, wall_ns: int, zone: str) -> None:
    """The wall clock was set back, maybe between two boots: a cron schedule is due by the clock as it is now, not as it was. An
    instant that had its turn right before is not due again; one that had it under a clock far ahead is due when its time comes."""
    schedule.sooner_ns = 0
    due_ns = next_due(schedule, wall_ns, zone)
    if due_ns >= schedule.next_due_ns:
        return
    run_from_ns = schedule.run_from_ns
    if run_from_ns == 0:
        run_from_ns = schedule.last_due_ns - CRON_REPEAT_NS
    if not run_from_ns <= due_ns <= schedule.last_due_ns:
        schedule.sooner_ns = due_ns


def cron_fields(expression: str) -> str:
    """The fields of a cron expression that may be one of the words."""
    return NAMED_CRONS.get(expression.strip().lower(), expression)


def is_cron(expression: str) -> bool:
    """Whether a cron expression can be read and ever comes due."""
    if len(expression) > CRON_SIZE_MAX:
        return False
    try:
        next(CronSim(cron_fields(expression), EPOCH))
    except (CronSimError, StopIteration, ValueError, OverflowError):
        return False
    return True
