"""What happened apart from messages? They are few, so whoever asks about queues and workers reads these and not the facts."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from dragoman_spark.tables import EVENTS
from dragoman_spark.transforms.kinds import LIFE


def events(facts: DataFrame) -> DataFrame:
    """One row per fact outside any message's life; kinds of a later version are kept here, so that none is lost."""
    return EVENTS.select(facts.where(~F.col("kind").isin(*LIFE)))
