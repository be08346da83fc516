"""Parses instants as people type them: `2026-03-02T14:03:00+01:00`, `2026-03-02 14:03` (UTC), `14:03` (the latest one, UTC), `-15m` (ago)."""

from __future__ import annotations

import re
from datetime import UTC, datetime, time, timedelta
from typing import Final

from dragoman.errors import BadInstant
from dragoman.model.phrases import EPOCH

AGO: Final = re.compile(r"-(\d+(?:\.\d+)?)(s|m|h|d)")
UNIT_S: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def read_instant(text: str, now_ns: int) -> int:
    """Nanoseconds since the epoch; raises `BadInstant` if the text is not an instant."""
    now = EPOCH + timedelta(microseconds=now_ns // 1000)
    ago = AGO.fullmatch(text)
    if ago:
        span_s = float(ago[1]) * UNIT_S[ago[2]]
        if span_s > (now - EPOCH).total_seconds():
            raise BadInstant(text, "so long ago there was no clock")
        return in_ns(now - timedelta(seconds=span_s))
    try:
        moment = latest(time.fromisoformat(text), now) if ":" in text[:3] else datetime.fromisoformat(text)
        moment = moment.astimezone(UTC) if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise BadInstant(text, "no instant") from error
    if moment < EPOCH:
        raise BadInstant(text, "before all journals")
    return in_ns(moment)


def latest(clock: time, now: datetime) -> datetime:
    """The last time a clock in its zone showed this."""
    zone = clock.tzinfo or UTC
    moment = datetime.combine(now.astimezone(zone).date(), clock, zone)
    return moment if moment <= now else moment - timedelta(days=1)


def in_ns(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1) * 1000


def written(at_ns: int) -> str:
    """An instant for a file: to the microsecond, UTC."""
    return (EPOCH + timedelta(microseconds=at_ns // 1000)).isoformat()
