"""A schedule: makes messages like its template, every interval or by a cron expression."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final, final
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError

from dragoman.limits import CRON_SIZE_MAX
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
