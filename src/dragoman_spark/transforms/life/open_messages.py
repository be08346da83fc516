"""Messages that are not settled yet, and their state."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from dragoman_spark.tables import OPEN
from dragoman_spark.transforms.life.kinds import DELIVERED, LEASED, QUARANTINED


def open_messages(lives: DataFrame) -> DataFrame:
    """One row per message without its closing fact. The next batch continues from it."""
    last_kind = F.col("last_kind")
    state = (
        F.when(last_kind.isin(LEASED, DELIVERED), "leased")
        .when(last_kind == QUARANTINED, "quarantined")
        .otherwise("waiting")
    )
    return OPEN.select(lives.where("is_open").withColumn("state", state))
