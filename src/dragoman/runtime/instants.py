"""Instants as people type them: `2026-03-02T14:03:00+01:00`, `2026-03-02 14:03` (UTC), `14:03` (the latest one, UTC), `-15m` (ago)."""

from __future__ import annotations

import re
from datetime import UTC, datetime, time, timedelta
from typing import Final

from dragoman.errors import BadInstant

AGO: Final = re.compile(r"-(\d+(?:\.\d+)?)(s|m|h|d)")
UNIT_S: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def read_instant(text: str, now_ns: int) -> int:
    """Nanoseconds since the epoch; `BadInstant` when it is none."""
    now = EPOCH + timedelta(microseconds=now_ns // 1000)
    ago = AGO.fullmatch(text)
    if ago:
        span = timedelta(seconds=float(ago[1]) * UNIT_S[ago[2]])
        if span > now - EPOCH:
            raise BadInstant(text, "so long ago there was no clock")
        return in_ns(now - span)
    try:
        clock = time.fromisoformat(text) if ":" in text[:3] else None
        moment = datetime.combine(now.date(), clock) if clock is not None else datetime.fromisoformat(text)
    except ValueError as error:
        raise BadInstant(text, "no instant") from error
    moment = moment.astimezone(UTC) if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    if clock is not None and moment > now:
        moment -= timedelta(days=1)
    if moment < EPOCH:
        raise BadInstant(text, "before all journals")
    return in_ns(moment)


def in_ns(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1) * 1000


def written(at_ns: int) -> str:
    """An instant for a file: to the microsecond, UTC."""
    return (EPOCH + timedelta(microseconds=at_ns // 1000)).isoformat()
