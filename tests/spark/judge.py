"""The same questions answered by DuckDB, the long way: every fact of a life is joined, where the pipeline trusts the closing one.

Written from the meaning of the facts, not from the transforms. Instants are compared as Arrow has them, so both sides agree to the
microsecond or not at all.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from pyspark.sql import DataFrame

from tests.spark.lives_by_chance import KIND, REASON


def judged(sql: str, facts: Path) -> pa.Table:
    """The answer of a query over the view `facts`; `{leased}` and the like stand for the numbers of kinds,
    `{why[answered]}` for those of reasons."""
    with duckdb.connect() as database:
        database.execute("set timezone = 'UTC'")
        database.execute(f"create view facts as select * from read_parquet('{facts}')")
        return database.sql(sql.format(**KIND, why=REASON)).to_arrow_table()


def differences(frame: DataFrame, answer: pa.Table) -> list[tuple[Any, ...]]:
    """Rows that only one of the two has, each with whose it is; empty when they agree."""
    ours, theirs = frame.toArrow(), answer
    assert ours.column_names == theirs.column_names
    with duckdb.connect() as database:
        database.execute("set timezone = 'UTC'")
        database.register("ours", ours)
        database.register("theirs", theirs)
        return database.execute(
            "(select 'Spark' as only, * from (from ours except all from theirs)) union all "
            "(select 'DuckDB' as only, * from (from theirs except all from ours)) order by 2, 3, 1"
        ).fetchall()


MESSAGES = """
with leases as (
    select broker_id, message_no, count(*) as attempts, min("at") as first_leased_at from facts where kind = {leased} group by all
), last_step as (
    select c.broker_id, c.lsn, max_by(f.kind, f.lsn) as kind, max_by(f.at, f.lsn) filter (f.kind = {leased}) as leased_at,
        max(f.at) filter (f.kind = {delivered}) as delivered_at
    from facts c join facts f using (broker_id, message_no) where c.kind = {closed} and f.lsn < c.lsn
    group by c.broker_id, c.lsn
), told as (
    select c.broker_id, c.message_no, a.queue_no, a.client_dialect, c.worker_dialect, c.worker_no,
        coalesce(l.attempts, 0)::int as attempts, c.outcome, c.reason, a.at as accepted_at, a.due_at, l.first_leased_at,
        case when s.kind in ({leased}, {delivered}) then s.leased_at end as leased_at,
        case when s.delivered_at >= s.leased_at then s.delivered_at end as delivered_at,
        c.at as closed_at, a.body_size, c.reply_size, c.lsn,
        case when a.due_at > c.at then c.at when a.due_at > a.at then a.due_at else a.at end as ready_at
    from facts c join facts a on a.kind = {accepted} and c.broker_id = a.broker_id and c.message_no = a.message_no
        left join leases l on c.broker_id = l.broker_id and c.message_no = l.message_no
        left join last_step s on s.broker_id = c.broker_id and s.lsn = c.lsn
    where c.kind = {closed}
)
select * exclude (ready_at, body_size, reply_size, lsn),
    (epoch_us(first_leased_at) - epoch_us(ready_at)) / 1000.0 as wait_ms,
    case when worker_no is not null then (epoch_us(closed_at) - epoch_us(leased_at)) / 1000.0 end as work_ms,
    (epoch_us(closed_at) - epoch_us(ready_at)) / 1000.0 as total_ms,
    body_size, reply_size, lsn, closed_at::date as date
from told
"""

ATTEMPTS = """
with steps as (
    select broker_id, message_no, lsn, lead(lsn) over life as end_lsn, kind, "at", worker_no
    from facts where kind in ({leased}, {released}, {closed}, {quarantined})
    window life as (partition by broker_id, message_no order by lsn)
), dialects as (
    select broker_id, worker_no, any_value(worker_dialect) as spoke from facts where kind = {worker_joined} group by all
)
select s.broker_id, s.message_no, (row_number() over (partition by s.broker_id, s.message_no order by s.lsn))::int as attempt,
    a.queue_no, s.worker_no, a.client_dialect,
    case when e.worker_no = s.worker_no and not (e.kind = {released} and e.reason = {why[broker_started]})
        then d.spoke end as worker_dialect,
    s.at as leased_at, e.at as ended_at, (epoch_us(e.at) - epoch_us(s.at)) / 1000.0 as held_ms, e.kind as ended_by, e.outcome,
    e.reason, coalesce(e.is_death, e.kind = {quarantined} and e.reason = {why[workers_died]}) as is_death, e.lsn, e.at::date as date
from steps s join facts e on e.broker_id = s.broker_id and e.lsn = s.end_lsn
    join facts a on a.kind = {accepted} and a.broker_id = s.broker_id and a.message_no = s.message_no
    left join dialects d on d.broker_id = s.broker_id and d.worker_no = s.worker_no
where s.kind = {leased}
"""

OPEN = """
with life as (select * from facts where kind between {accepted} and {requeued})
select a.broker_id, a.message_no, a.queue_no, a.client_dialect, a.at as accepted_at,
    arg_max_null(f.due_at, f.lsn) filter (f.kind in ({accepted}, {released}, {requeued})) as due_at,
    a.expires_at,
    case when max_by(f.kind, f.lsn) in ({leased}, {delivered}) then 'leased'
        when max_by(f.kind, f.lsn) = {quarantined} then 'quarantined' else 'waiting' end as state,
    (count(*) filter (f.kind = {leased}))::int as attempts,
    max_by(f.worker_no, f.lsn) filter (f.kind = {leased}) as worker_no,
    max_by(f.reason, f.lsn) filter (f.kind in ({released}, {quarantined})) as last_reason,
    max_by(f.at, f.lsn) as last_at, a.priority, a.body_size, a.lsn as accepted_lsn, max(f.lsn) as last_lsn
from life a join life f using (broker_id, message_no)
where a.kind = {accepted}
    and not exists (from life c where c.kind = {closed} and c.broker_id = a.broker_id and c.message_no = a.message_no)
group by all
"""

ORPHANS = """
with lives as (
    select broker_id, message_no, count(*) as facts, min(lsn) as first_lsn, max(lsn) as last_lsn, min("at") as first_at,
        count(*) filter (kind = {accepted}) as begins, count(*) filter (kind = {closed}) as ends,
        min(lsn) filter (kind = {accepted}) as accepted_lsn, min(lsn) filter (kind = {closed}) as closed_lsn
    from facts where kind between {accepted} and {requeued} group by all
), faults as (
    select *, case when begins = 0 then 'no_accepted' when begins > 1 then 'accepted_twice' when ends > 1 then 'closed_twice'
        when last_lsn > closed_lsn then 'after_closed' when first_lsn < accepted_lsn then 'before_accepted' end as why
    from lives
)
select broker_id, message_no, why, facts, first_lsn, last_lsn, first_at from faults where why is not null
"""
