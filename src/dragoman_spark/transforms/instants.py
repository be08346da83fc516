"""Arithmetic of instants: microseconds and UTC, whatever the session's time zone is."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

DAY_US: Final = 86_400_000_000


def span_ms(begin: Column, end: Column) -> Column:
    """The time from one instant to another, in milliseconds with a fraction; null if either is."""
    return (F.unix_micros(end) - F.unix_micros(begin)) / F.lit(1000.0)


def utc_day(instant: Column) -> Column:
    """The day of an instant, as in the lake's `date=` folders."""
    return F.date_from_unix_date(F.floor(F.unix_micros(instant) / F.lit(DAY_US)).cast("int"))
