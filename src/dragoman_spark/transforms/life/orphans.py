"""Facts that fit no life. There are none, unless a fact was lost, duplicated or invented on the way."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from dragoman_spark.tables import ORPHANS


def orphans(lives: DataFrame, begins: DataFrame) -> DataFrame:
    """One row per message whose facts fit no life. `begins` has the beginning of each broker's lake (`broker_id, first_lsn, first_at`): if
    that is not its first fact, a message may have been accepted before, and rightly lacks its beginning."""
    lake = begins.select("broker_id", F.col("first_lsn").alias("lake_lsn"), F.col("first_at").alias("lake_at"))
    accepted_in_lake = F.coalesce(F.col("said_accepted_at") > F.col("lake_at"), F.lit(False))
    is_older = (F.col("why") == "no_accepted") & (F.col("lake_lsn") > 1) & ~accepted_in_lake
    faulty = lives.where(F.col("why").isNotNull()).join(F.broadcast(lake), "broker_id", "left")
    return ORPHANS.select(faulty.withColumn("why", F.when(is_older, "before_lake").otherwise(F.col("why"))))
