"""Polars' part: every table as a lazy frame over the lake's files, run by the streaming engine and sunk to Parquet. Two threads."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from bench.pipeline import polars_answers as answers
from bench.pipeline import polars_gold as gold
from bench.pipeline import polars_silver as silver


class Polars:
    """One run over one lake."""

    def __init__(self, lake: Path, out: Path) -> None:
        self.out = out
        self.facts = pl.scan_parquet(f"{lake}/facts/history/*/*.parquet", hive_partitioning=False)

    def sink(self, **frames: pl.LazyFrame) -> None:
        """Write tables in one go, so that frames over the same files share their scan."""
        sinks = []
        for name, frame in frames.items():
            (self.out / name).mkdir(parents=True)
            sinks.append(frame.sink_parquet(self.out / name / "part.parquet", compression="zstd", lazy=True))
        pl.collect_all(sinks, engine="streaming")

    def read(self, name: str) -> pl.LazyFrame:
        return pl.scan_parquet(self.out / name / "part.parquet")

    def run(self) -> None:
        now_us = self.facts.select(pl.col("at").max().dt.epoch("us")).collect(engine="streaming").item()
        now = self.facts.select(pl.col("at").max()).collect(engine="streaming").item()
        facts = self.facts
        self.sink(events=silver.events(facts))
        events = self.read("events")
        self.sink(queues=silver.queues(events), peers=silver.peers(events, now))
        queues, peers = self.read("queues"), self.read("peers")
        self.sink(messages=silver.messages(facts), attempts=silver.attempts(facts))
        self.sink(throughput=gold.throughput(facts, queues), funnel=gold.funnel(facts, queues))
        lives = silver.lives(facts).collect(engine="streaming").lazy()
        self.sink(open=silver.open_messages(lives), orphans=silver.orphans(lives))
        messages = self.read("messages")
        self.sink(latency=gold.latency(messages, queues), crossings=gold.crossings(messages))
        self.sink(workers=gold.workers(self.read("attempts"), peers))
        self.sink(stuck=answers.stuck(self.read("open"), peers, queues, now))
        orphans = self.read("orphans").select(pl.len()).collect().item()
        self.sink(quality=silver.quality(facts, orphans).lazy(), slo=gold.slo(messages, queues, now).lazy())
        hours = gold.hours(self.read("throughput"))
        self.sink(capacity=answers.capacity(hours, now_us).lazy(), anomalies=answers.anomalies(hours, now_us).lazy())


def run(lake: Path, out: Path) -> None:
    """Make every table."""
    Polars(lake, out).run()
