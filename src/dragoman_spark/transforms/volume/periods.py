"""Minutes, hours and days of UTC as whole numbers, for grouping counts, and their conversion back to instants.

Spark's date_trunc and to_date use the session's time zone, row by row; these periods do not depend on it.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

MINUTE_S: Final = 60
HOUR_S: Final = 3_600
DAY_S: Final = 86_400


def period_no(instant: str, length_s: int) -> Column:
    """The number of the instant's period since 1970, as an int."""
    return F.floor(F.unix_seconds(F.col(instant)) / length_s).cast("int")


def period_begin(number: str, length_s: int) -> Column:
    """The instant at which the period of that number begins."""
    return F.timestamp_seconds(F.col(number).cast("long") * length_s)


def day(number: str) -> Column:
    """The date of the day of that number."""
    return F.date_from_unix_date(F.col(number))
