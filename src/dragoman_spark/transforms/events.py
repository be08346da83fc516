"""Facts that are not part of a message's life. They are few, so queries about queues and workers read these and not all facts."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from dragoman_spark.tables import EVENTS
from dragoman_spark.transforms.life.kinds import LIFE


def events(facts: DataFrame) -> DataFrame:
    """One row per fact outside any message's life; unknown kinds of a later version are kept here, so that none is lost."""
    return EVENTS.select(facts.where(~F.col("kind").isin(*LIFE)))
