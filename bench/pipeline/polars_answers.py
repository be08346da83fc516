"""The answers that look at a few thousand rows: Polars frames for what is grouped, plain Python for what goes row by row."""

from __future__ import annotations

from datetime import UTC, datetime
from statistics import median

import polars as pl

from bench.pipeline.erlang import staffing
from bench.pipeline.numbers import DAY_HOURS, DIALECTS, REASONS, STUCK_MAX, WEEK_HOURS
from bench.pipeline.polars_gold import HOUR_US, named, people_see, season_of, worded
from bench.pipeline.polars_silver import span_ms
from dragoman_spark.transforms.checks.objectives import DEFAULTS, mean_waits_ms

LINE = ["broker_id", "queue_no"]


def stuck(open_: pl.LazyFrame, peers: pl.LazyFrame, queues: pl.LazyFrame, now: datetime) -> pl.LazyFrame:
    is_delayed = (pl.col("due_at") > now).fill_null(False)
    since = pl.when(pl.col("attempts") > 0).then("accepted_at").otherwise(pl.max_horizontal("accepted_at", "due_at"))
    age_ms = pl.max_horizontal(span_ms(since, pl.lit(now)), 0.0)
    order = ["age_ms", "accepted_at", "broker_id", "message_no"]
    oldest = (
        open_.with_columns(age_ms.alias("age_ms"), is_delayed.alias("is_delayed"))
        .sort(order, descending=[True, False, False, False])
        .head(STUCK_MAX)
    )
    holders = peers.select("broker_id", "worker_no", pl.coalesce("identity", "remote").alias("holder"))
    service = (
        peers.explode("queues")
        .group_by("broker_id", pl.col("queues").alias("queue"))
        .agg(
            pl.col("left_at").is_null().sum().alias("workers_now"),
            pl.col("left_at").max().alias("last_left_at"),
            pl.col("reason").sort_by("left_at", nulls_last=False).last().alias("left_reason"),
        )
    )
    line = (
        open_.filter((pl.col("state") == "waiting") & ~is_delayed)
        .sort(pl.col("priority").fill_null(0), "accepted_lsn", descending=[True, False])
        .select("broker_id", "message_no", (pl.int_range(pl.len()).over(LINE)).alias("ahead"))
    )
    known = (
        named(oldest, queues)
        .join(queues.select(*LINE, "is_paused"), on=LINE, how="left")
        .join(holders, on=["broker_id", "worker_no"], how="left")
        .join(service, on=["broker_id", "queue"], how="left")
        .join(line, on=["broker_id", "message_no"], how="left")
        .with_columns(worded("last_reason", REASONS), worded("left_reason", REASONS))
    )
    return known.select(
        "broker_id", "message_no", people_see("message_no").alias("message"), "queue", worded("client_dialect", DIALECTS),
        "state", "age_ms", "attempts",
        pl.struct(pl.all()).map_elements(lambda row: _why(row, now), return_dtype=pl.String).alias("why"),
    )  # fmt: skip


def _why(row: dict[str, object], now: datetime) -> str:
    state, attempts = row["state"], int(str(row["attempts"]))
    reason = row["last_reason"] or "none"
    if state == "quarantined":
        return f"quarantined ({reason}) after {_plural(attempts, 'attempt')}"
    if state == "waiting" and row["is_delayed"]:
        due = f"delayed until {_utc(row['due_at'])}"
        return f"attempt {attempts} ended ({reason}); {due}" if attempts else due
    if state != "waiting":
        number = row["worker_no"]
        worker = "unknown" if number is None else f"w{int(str(number)) >> 40}.{int(str(number)) & (2**40 - 1)}"
        holder = f" ({row['holder']})" if row["holder"] is not None else ""
        last_at = row["last_at"]
        assert isinstance(last_at, datetime)
        return f"held by worker {worker}{holder} for {_span((now - last_at).total_seconds())}, attempt {attempts}"
    if row["is_paused"]:
        return "the queue is paused"
    if row["workers_now"] is None:
        return "no worker ever served the queue"
    if row["workers_now"] == 0:
        because = f" ({row['left_reason']})" if row["left_reason"] is not None else ""
        return f"no worker serves the queue now: the last one left at {_utc(row['last_left_at'])}{because}"
    serve = "1 worker serves" if row["workers_now"] == 1 else f"{row['workers_now']} workers serve"
    return f"{serve} the queue: waits for its turn behind {_plural(int(str(row['ahead'] or 0)), 'other')}"


def _plural(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _utc(instant: object) -> str:
    assert isinstance(instant, datetime)
    return f"{instant.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _span(seconds: float) -> str:
    for least, unit_s, unit in ((172_800, 86_400, "d"), (7_200, 3_600, "h"), (120, 60, "min")):
        if seconds >= least:
            return f"{int(seconds // unit_s)} {unit}"
    return f"{int(max(seconds, 0))} s"


def _begins(hours: pl.DataFrame) -> pl.DataFrame:
    first = pl.col("first_minute").min().dt.epoch("us")
    return hours.group_by("queue").agg((-(-first // HOUR_US)).alias("begin_no"), first.alias("first_us"))


def capacity(hours: pl.DataFrame, now_us: int) -> pl.DataFrame:
    now_no, next_no = now_us // HOUR_US, -(-now_us // HOUR_US)
    wanted = mean_waits_ms(DEFAULTS)
    recent = (
        hours.filter(pl.col("hour_no") >= now_no - WEEK_HOURS)
        .group_by("queue")
        .agg(pl.col("worked").sum().alias("recent_worked"), pl.col("work_ms").sum().alias("recent_ms"))
    )
    known = (
        _begins(hours)
        .join(hours.group_by("queue").agg(pl.col("accepted", "worked", "work_ms").sum()), on="queue")
        .join(recent, on="queue", how="left")
    )
    by_week, by_day = (
        {
            (queue, place): count
            for queue, place, count in hours.join(known.select("queue", "begin_no"), on="queue")
            .filter((pl.col("hour_no") >= pl.col("begin_no")) & (pl.col("hour_no") < now_no))
            .group_by("queue", pl.col("hour_no") % season)
            .agg(pl.col("accepted").sum())
            .iter_rows()
        }
        for season in (WEEK_HOURS, DAY_HOURS)
    )
    rows = []
    for one in known.iter_rows(named=True):
        queue, begin_no, end_no = one["queue"], one["begin_no"], max(now_no, one["begin_no"])
        if (one["recent_worked"] or 0) >= 100:
            service_ms = one["recent_ms"] / one["recent_worked"]
        else:
            service_ms = one["work_ms"] / one["worked"] if one["worked"] else None
        mean_per_s = one["accepted"] / (max(now_us - one["first_us"], 60_000_000) / 1e6)
        for hour_no in range(next_no, next_no + WEEK_HOURS):
            weeks = _seen(begin_no, end_no, hour_no, WEEK_HOURS)
            days = _seen(begin_no, end_no, hour_no, DAY_HOURS)
            if weeks > 0:
                arrivals = by_week.get((queue, hour_no % WEEK_HOURS), 0) / weeks / 3600.0
            elif days > 0:
                arrivals = by_day.get((queue, hour_no % DAY_HOURS), 0) / days / 3600.0
            else:
                arrivals = mean_per_s
            load = None if service_ms is None else arrivals * service_ms / 1000
            wait_ms = wanted.get(queue, wanted["*"])
            staffed = staffing(load, service_ms, wait_ms)
            rows.append((hour_no, queue, arrivals, service_ms, load, wait_ms, *staffed, weeks))
    names = ("arrivals_per_s", "service_ms", "load_erlangs", "wait_objective_ms")
    schema: dict[str, type[pl.DataType]] = {"hour_no": pl.Int64, "queue": pl.String} | dict.fromkeys(names, pl.Float64)
    schema |= {"workers_needed": pl.Int32, "wait_ms": pl.Float64, "wait_probability": pl.Float64, "weeks": pl.Int32}
    return _with_hour(pl.DataFrame(rows, schema=schema, orient="row"))


def _seen(begin_no: int, end_no: int, hour_no: int, season: int) -> int:
    place = hour_no % season
    return (end_no - 1 - place) // season - (begin_no - 1 - place) // season


def _with_hour(frame: pl.DataFrame) -> pl.DataFrame:
    hour = pl.from_epoch(pl.col("hour_no") * HOUR_US, time_unit="us").dt.replace_time_zone("UTC")
    return frame.select(hour.alias("hour"), pl.exclude("hour_no"))


def anomalies(hours: pl.DataFrame, now_us: int) -> pl.DataFrame:
    now_no = now_us // HOUR_US
    spine = []
    for queue, first_no, _ in _begins(hours).iter_rows():
        begin_no = max(first_no, now_no - 12 * WEEK_HOURS)
        season = season_of(now_no - begin_no)
        if season is not None:
            spine += [(queue, season, hour_no) for hour_no in range(begin_no, now_no)]
    schema: dict[str, type[pl.DataType]] = {"queue": pl.String, "season_hours": pl.Int64, "hour_no": pl.Int64}
    members = (
        pl.DataFrame(spine, schema=schema, orient="row")
        .join(hours, on=["queue", "hour_no"], how="left")
        .select(
            *schema,
            pl.col("accepted").fill_null(0).cast(pl.Float64),
            pl.col("failed").fill_null(0).cast(pl.Float64),
            pl.when(pl.col("waited") > 0).then(pl.col("wait_ms") / pl.col("waited")).alias("wait_ms"),
        )
        .unpivot(on=["accepted", "failed", "wait_ms"], index=list(schema), variable_name="metric")
        .filter(pl.col("value").is_not_null())
        .group_by("queue", "metric", "season_hours", (pl.col("hour_no") % pl.col("season_hours")).alias("place"))
        .agg("hour_no", "value")
        .filter(pl.col("value").list.len() >= 4)
    )
    rows = []
    for queue, metric, season, _, hour_nos, values in members.iter_rows():
        name = "hour_of_week" if season == WEEK_HOURS else "hour_of_day"
        for n, (hour_no, value) in enumerate(zip(hour_nos, values, strict=True)):
            others = values[:n] + values[n + 1 :]
            expected = median(others)
            deviation = median(abs(other - expected) for other in others)
            least = max(0.1 * expected, 10.0) if metric == "wait_ms" else max(expected**0.5, 0.05 * expected, 1.0)
            spread = max(1.4826 * deviation, least)
            score = (value - expected) / spread
            if abs(score) >= 4:
                rows.append((hour_no, queue, metric, value, expected, spread, score, name))
    numbers = ("value", "expected", "spread", "score")
    found: dict[str, type[pl.DataType]] = {"hour_no": pl.Int64, "queue": pl.String, "metric": pl.String}
    found |= dict.fromkeys(numbers, pl.Float64) | {"season": pl.String}
    return _with_hour(pl.DataFrame(rows, schema=found, orient="row"))
