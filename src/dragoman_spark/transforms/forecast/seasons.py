"""Hours since 1970, UTC, and their seasons. An hour's place in the day or the week is its remainder by 24 or 168.

Only full hours are comparable: a queue's history runs from the first full hour after its first minute to the last
one before now.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

DAY_HOURS: Final = 24
WEEK_HOURS: Final = 168
_HOUR_US: Final = 3_600_000_000


def hour_no(instant: Column) -> Column:
    """The hour of an instant."""
    return F.floor(F.unix_micros(instant) / F.lit(_HOUR_US))


def next_hour_no(instant: Column) -> Column:
    """The first hour that begins at or after an instant."""
    return F.ceil(F.unix_micros(instant) / F.lit(_HOUR_US))


def hour_begin(number: Column) -> Column:
    """The instant at which an hour begins."""
    return F.timestamp_seconds(number * 3600)


def hours_of_season(begin: Column, end: Column, place: Column, season_hours: int) -> Column:
    """The number of hours from `begin` to before `end` at this place of the season, also those without a message."""
    return F.floor((end - 1 - place) / season_hours) - F.floor((begin - 1 - place) / season_hours)
