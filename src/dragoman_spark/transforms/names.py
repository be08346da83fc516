"""Names of queues. Rows are counted by queue number and only the few counts are named, because grouping millions of strings is slow."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def named(frame: DataFrame, queues: DataFrame) -> DataFrame:
    """The frame with `queue`, the name of its (broker_id, queue_no); `#3` if no fact of the lake names queue 3."""
    names = F.broadcast(queues.select("broker_id", "queue_no", "queue"))
    number = F.concat(F.lit("#"), F.col("queue_no").cast("string"))
    return frame.join(names, ["broker_id", "queue_no"], "left").withColumn("queue", F.coalesce("queue", number))
