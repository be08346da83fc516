"""A schedule: creates messages from its template, at an interval or by a cron expression."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final, final
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from dragoman.limits import CRON_REPEAT_NS, CRON_SIZE_MAX
from dragoman.model.message import Message
from dragoman.model.units import SECOND_NS

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
# Names that crontab(5) and the parser of the original EventMQ accept.
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
    """A durable schedule; it ends when it is unscheduled or has used up its runs."""

    def __init__(self, number: int, template: Message, interval_ns: int, cron: str, runs_left: int) -> None:
        self.number = number
        self.template = template
        self.interval_ns = interval_ns  # 0: by cron
        self.cron = cron
        self.runs_left = runs_left  # -1: unlimited
        self.next_due_ns: int = 0
        self.last_due_ns: int = 0
        self.fired: int = 0
        # Not durable: for a wall clock that is set back.
        self.run_from_ns: int = 0  # first of the consecutive due instants up to the last; 0: unknown
        self.sooner_ns: int = 0  # an instant before `next_due_ns` that is due since the clock was set back; 0: none

    def due_ns(self) -> int:
        """The instant at which it fires next."""
        return self.sooner_ns if self.sooner_ns != 0 else self.next_due_ns

    def forget_rewind(self, wall_ns: int) -> None:
        """Drop `sooner_ns` if the clock was set forward again, past the last or the next due instant, before that instant fired."""
        if wall_ns >= self.next_due_ns or 0 < self.last_due_ns <= wall_ns:
            self.sooner_ns = 0

    def had_its_turn(self, due_ns: int, next_due_ns: int, runs_left: int) -> None:
        if self.last_due_ns == 0 or due_ns != self.next_due_ns:  # instants were missed, or the clock was set back
            self.run_from_ns = due_ns
        self.sooner_ns = 0
        self.last_due_ns = due_ns
        self.next_due_ns = next_due_ns
        self.runs_left = runs_left
        self.fired += 1

    def is_like(self, template: Message, interval_ns: int, cron: str, runs: int) -> bool:
        """Whether another declaration equals this schedule; runs already used up are added back."""
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
    """The first due instant after `after_ns`. Cron uses the wall clock of its time zone."""
    if schedule.interval_ns > 0:
        return after_ns + schedule.interval_ns
    after = (EPOCH + timedelta(microseconds=after_ns // 1000)).astimezone(ZoneInfo(zone))
    due: datetime = next(CronSim(cron_fields(schedule.cron), after))
    return int((due - EPOCH).total_seconds()) * SECOND_NS


def latest_due(schedule: Schedule, due_ns: int, now_ns: int, zone: str) -> int:
    """The last due instant up to `now_ns`, at least `due_ns`: computed without stepping through the instants between."""
    if schedule.interval_ns > 0:
        return due_ns + (now_ns - due_ns) // schedule.interval_ns * schedule.interval_ns
    behind = (EPOCH + timedelta(microseconds=now_ns // 1000 + 1)).astimezone(ZoneInfo(zone))
    latest: datetime = next(CronSim(cron_fields(schedule.cron), behind, reverse=True))
    return max(int((latest - EPOCH).total_seconds()) * SECOND_NS, due_ns)


def rewind(schedule: Schedule, wall_ns: int, zone: str) -> None:
    """Recompute a cron schedule after the wall clock was set back, maybe between two boots: it follows the clock as it is now. An instant
    that fired in the current run (`run_from_ns` to `last_due_ns`) is not due again; one before that run is, when its time comes."""
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
    """A cron expression as fields; names such as `@daily` are expanded."""
    return NAMED_CRONS.get(expression.strip().lower(), expression)


def is_cron(expression: str) -> bool:
    """Whether a cron expression is valid and ever comes due."""
    if len(expression) > CRON_SIZE_MAX:
        return False
    try:
        next(CronSim(cron_fields(expression), EPOCH))
    except (CronSimError, StopIteration, ValueError, OverflowError):
        return False
    return True
