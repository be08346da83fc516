"""The gold tables in DuckDB's SQL, from the silver ones where they say enough. Counts are by number, and named when they are few."""

from __future__ import annotations

from typing import Final

LATENCY: Final = """
with buckets as (
    select (epoch_us(closed_at) // 3_600_000_000)::int as hour_no, broker_id, queue_no, client_dialect, worker_dialect,
        bucket(wait_ms) as wait, bucket(work_ms) as work, bucket(total_ms) as total
    from messages
), counts as (
    select * exclude (wait, work, total), 'wait' as measure, wait as bucket, count(*) as messages
    from buckets where wait is not null group by all
    union all by name
    select * exclude (wait, work, total), 'work' as measure, work as bucket, count(*) as messages
    from buckets where work is not null group by all
    union all by name
    select * exclude (wait, work, total), 'total' as measure, total as bucket, count(*) as messages
    from buckets where total is not null group by all
)
select make_timestamptz(hour_no * 3_600_000_000) as hour, named(queue, queue_no) as queue, dialect(client_dialect) as client_dialect,
    dialect(worker_dialect) as worker_dialect, measure, bucket, messages
from counts left join queues using (broker_id, queue_no)
"""

# One pass; a closing fact has all it needs.
THROUGHPUT: Final = """
with steps as (
    select (epoch_us("at") // 60_000_000)::int as minute_no, broker_id, queue_no, client_dialect, kind, outcome, body_size, reply_size,
        epoch_us(first_leased_at) - epoch_us(greatest(accepted_at, due_at)) as wait_us,
        case when kind = {closed} and worker_no is not null then epoch_us("at") - epoch_us(leased_at) end as work_us
    from facts where kind in ({accepted}, {released}, {closed}, {quarantined})
), counts as (
    select minute_no, broker_id, queue_no, client_dialect,
        count(*) filter (kind = {accepted}) as accepted, count(*) filter (outcome = {done}) as done,
        count(*) filter (outcome = {rejected}) as rejected, count(*) filter (outcome = {expired}) as expired,
        count(*) filter (outcome = {cancelled}) as cancelled, count(*) filter (kind = {released}) as released,
        count(*) filter (kind = {quarantined}) as quarantined, count(wait_us) as waited,
        coalesce(sum(wait_us), 0)::bigint / 1000 as wait_ms, count(work_us) as worked,
        coalesce(sum(work_us), 0)::bigint / 1000 as work_ms,
        coalesce(sum(body_size) filter (kind = {accepted}), 0)::bigint as body_bytes,
        coalesce(sum(reply_size), 0)::bigint as reply_bytes
    from steps group by minute_no, broker_id, queue_no, client_dialect
)
select make_timestamptz(minute_no::bigint * 60_000_000) as minute, named(queue, queue_no) as queue,
    dialect(client_dialect) as client_dialect, accepted, done, rejected, expired, cancelled, released, quarantined, waited, wait_ms,
    worked, work_ms, body_bytes, reply_bytes
from counts left join queues using (broker_id, queue_no)
"""

FUNNEL: Final = """
with counts as (
    select (epoch_us("at") // 86_400_000_000)::int as day_no, broker_id, queue_no, client_dialect,
        count(*) filter (kind = {accepted}) as accepted, count(first_leased_at) as leased, count(delivered_at) as delivered,
        count(*) filter (outcome = {done}) as done, count(*) filter (outcome = {rejected}) as rejected,
        count(*) filter (outcome = {expired}) as expired, count(*) filter (outcome = {cancelled}) as cancelled,
        count(*) filter (kind = {quarantined}) as quarantined, count(*) filter (kind = {requeued}) as requeued,
        count(*) filter (kind = {closed} and attempt > 1) as retried,
        coalesce(sum(attempt - 1) filter (kind = {closed} and attempt > 1), 0)::bigint as retries
    from facts where kind in ({accepted}, {closed}, {quarantined}, {requeued})
    group by day_no, broker_id, queue_no, client_dialect
)
select date '1970-01-01' + day_no as date, named(queue, queue_no) as queue, dialect(client_dialect) as client_dialect,
    counts.* exclude (day_no, broker_id, queue_no, client_dialect)
from counts left join queues using (broker_id, queue_no)
"""

CROSSINGS: Final = """
select date, dialect(client_dialect) as client_dialect, dialect(worker_dialect) as worker_dialect, count(*) as messages,
    count(*) filter (outcome = {done}) as done, coalesce(sum(round(wait_ms * 1000)::bigint), 0)::bigint / 1000 as wait_ms,
    coalesce(sum(round(work_ms * 1000)::bigint), 0)::bigint / 1000 as work_ms,
    coalesce(sum(round(total_ms * 1000)::bigint), 0)::bigint / 1000 as total_ms,
    coalesce(sum(body_size), 0)::bigint as body_bytes, coalesce(sum(reply_size), 0)::bigint as reply_bytes
from messages group by date, messages.client_dialect, messages.worker_dialect
"""

WORKERS: Final = """
with spans as (
    select broker_id, worker_no, epoch_us(joined_at) as joined_us,
        epoch_us(joined_at) + round(connected_ms * 1000)::bigint as left_us
    from peers
), held as (
    select broker_id, worker_no, greatest(epoch_us(leased_at), joined_us) as begin_us, least(epoch_us(ended_at), left_us) as end_us,
        epoch_us(ended_at) - epoch_us(leased_at) as held_us,
        coalesce(outcome = {done}, false) and worker_dialect is not null as is_done,
        reason in ({failures}) and not is_death as is_failed, is_death, worker_dialect
    from attempts left join spans using (broker_id, worker_no)
), beyond as (
    select *, greatest(end_us - greatest(begin_us, max(end_us) over (
        partition by broker_id, worker_no order by begin_us rows between unbounded preceding and 1 preceding)), 0) as busy_us
    from held
), did as (
    select broker_id, worker_no, sum(busy_us)::bigint as busy_us, sum(greatest(end_us - begin_us, 0))::bigint as clipped_us,
        sum(held_us)::bigint as held_us, count(*) as attempts, count(*) filter (is_done) as done,
        count(*) filter (is_failed) as failed, count(*) filter (is_death) as deaths, max(worker_dialect) as dialect_seen
    from beyond group by broker_id, worker_no
), known as (
    select broker_id, worker_no, peers.* exclude (broker_id, worker_no), did.* exclude (broker_id, worker_no),
        coalesce(busy_us, 0) / 1000 as busy_ms, case when connected_ms > 0 then connected_ms end as lasted_ms
    from peers full join did using (broker_id, worker_no)
)
select broker_id, worker_no, coalesce(nullif(identity, ''), nullif(remote, ''), 'w' || people_see(worker_no)) as worker,
    dialect(coalesce(worker_dialect, dialect_seen)) as worker_dialect, joined_at, left_at, reason_word(reason) as left_because,
    connected_ms, busy_ms, connected_ms - busy_ms as idle_ms, busy_ms / lasted_ms as utilisation,
    coalesce(clipped_us, 0) / 1000 / lasted_ms as held_mean, coalesce(attempts, 0) as attempts, coalesce(done, 0) as done,
    coalesce(failed, 0) as failed, coalesce(deaths, 0) as deaths, held_us / 1000 / attempts as work_ms_mean
from known
"""

SLO: Final = """
with ended as (
    select queue, closed_at, outcome = {done} as is_done, wait_ms as wait, work_ms as work, total_ms as total
    from messages left join (select broker_id, queue_no, queue from queues) using (broker_id, queue_no)
    where closed_at > {now} - interval 72 hours and closed_at <= {now}
), counts as (
    select o.objective, o.queue, w.window, o.measure, o.threshold_ms, o.target, count(closed_at) as messages,
        count(*) filter (is_done and (o.measure = 'success'
            or case o.measure when 'wait' then wait when 'work' then work else total end <= o.threshold_ms)) as good
    from objectives as o cross join windows as w
        left join ended on (o.queue = '*' or o.queue = ended.queue) and closed_at > {now} - to_hours(w.hours)
    group by all
)
select *, case when messages > 0 then good / messages end as share, (1 - share) / (1 - target) as burn_rate, share >= target as is_met
from counts
"""

STUCK: Final = """
with aged as (
    select *, greatest((epoch_us({now}) - epoch_us(case when attempts > 0 then accepted_at else greatest(accepted_at, due_at) end))
        / 1000, 0) as age_ms, coalesce(due_at > {now}, false) as is_delayed
    from open
), oldest as (
    from aged order by age_ms desc, accepted_at, broker_id, message_no limit 100
), service as (
    select broker_id, queue, count(*) filter (left_at is null) as workers_now, max(left_at) as last_left_at,
        arg_max(reason, left_at) as left_reason
    from (select broker_id, unnest(queues) as queue, left_at, reason from peers) group by broker_id, queue
), line as (
    select *, row_number() over (
        partition by broker_id, queue_no order by coalesce(priority, 0) desc, accepted_lsn) - 1 as before
    from open where state = 'waiting' and not coalesce(due_at > {now}, false)
), known as (
    select o.*, named(q.queue, o.queue_no) as queue, q.is_paused, coalesce(p.identity, p.remote) as holder, s.workers_now,
        s.last_left_at, s.left_reason, l.before as ahead
    from oldest as o left join queues as q using (broker_id, queue_no)
        left join peers as p using (broker_id, worker_no)
        left join service as s on s.broker_id = o.broker_id and s.queue = named(q.queue, o.queue_no)
        left join line as l on l.broker_id = o.broker_id and l.message_no = o.message_no
)
select broker_id, message_no, people_see(message_no) as message, queue, dialect(client_dialect) as client_dialect, state, age_ms,
    attempts, case
        when state = 'quarantined' then 'quarantined (' || coalesce(reason_word(last_reason), 'none') || ') after '
            || plural(attempts, 'attempt')
        when state = 'waiting' and is_delayed and attempts > 0 then 'attempt ' || attempts || ' ended ('
            || coalesce(reason_word(last_reason), 'none') || '); delayed until ' || said_utc(due_at)
        when state = 'waiting' and is_delayed then 'delayed until ' || said_utc(due_at)
        when state <> 'waiting' then 'held by worker ' || coalesce('w' || people_see(worker_no), 'unknown')
            || coalesce(' (' || holder || ')', '') || ' for ' || said_span((epoch_us({now}) - epoch_us(last_at)) / 1e6)
            || ', attempt ' || coalesce(attempts, 1)
        when is_paused then 'the queue is paused'
        when workers_now is null then 'no worker ever served the queue'
        when workers_now = 0 then 'no worker serves the queue now: the last one left at ' || said_utc(last_left_at)
            || coalesce(' (' || reason_word(left_reason) || ')', '')
        else case when workers_now = 1 then '1 worker serves' else workers_now || ' workers serve' end
            || ' the queue: waits for its turn behind ' || plural(coalesce(ahead, 0), 'other') end as why
from known
"""

HOURS: Final = """
select queue, epoch_us(minute) // 3_600_000_000 as hour_no, min(minute) as first_minute, sum(accepted)::bigint as accepted,
    sum(rejected + expired + quarantined)::bigint as failed, sum(waited)::bigint as waited, sum(wait_ms) as wait_ms,
    sum(worked)::bigint as worked, sum(work_ms) as work_ms
from throughput group by queue, hour_no
"""

# Without the workers needed: Erlang's recursion is left to the host language, which fills `staffed`.
FORECAST: Final = """
with known as (
    select queue, next_hour(min(first_minute)) as begin_no, greatest({now_no}, next_hour(min(first_minute))) as end_no,
        sum(accepted) / (greatest(epoch_us({now}) - epoch_us(min(first_minute)), 60_000_000) / 1e6) as mean_per_s,
        sum(worked) filter (hour_no >= {now_no} - 168) as recent_worked, sum(work_ms) filter (hour_no >= {now_no} - 168) as recent_ms,
        case when recent_worked >= 100 then recent_ms / recent_worked else sum(work_ms) / nullif(sum(worked), 0) end as service_ms
    from hours group by queue
), seen as (
    select h.queue, h.hour_no % 168 as place, sum(h.accepted) as accepted
    from hours as h join known as k on k.queue = h.queue and h.hour_no >= begin_no and h.hour_no < end_no
    group by h.queue, place
), days as (
    select queue, place % 24 as place, sum(accepted) as accepted from seen group by queue, place % 24
), ahead as (
    select *, unnest(range({next_no}, {next_no} + 168)) as hour_no from known
), counted as (
    select *, of_season(begin_no, end_no, hour_no, 168) as by_week, of_season(begin_no, end_no, hour_no, 24) as by_day from ahead
)
select to_timestamp(c.hour_no * 3600) as hour, c.queue,
    case when by_week > 0 then coalesce(w.accepted, 0) / by_week / 3600.0
        when by_day > 0 then coalesce(d.accepted, 0) / by_day / 3600.0 else mean_per_s end as arrivals_per_s,
    service_ms, arrivals_per_s * service_ms / 1000 as load_erlangs, by_week::int as weeks
from counted as c left join seen as w on w.queue = c.queue and w.place = c.hour_no % 168
    left join days as d on d.queue = c.queue and d.place = c.hour_no % 24
"""

CAPACITY: Final = """
select hour, queue, arrivals_per_s, service_ms, load_erlangs, wait_objective_ms, workers_needed, wait_ms, wait_probability, weeks
from forecast join staffed using (hour, queue)
"""

ANOMALIES: Final = """
with spans as (
    select queue, greatest(next_hour(min(first_minute)), {now_no} - 12 * 168) as begin_no,
        case when {now_no} - begin_no >= 4 * 168 then 168 when {now_no} - begin_no >= 4 * 24 then 24 end as season_hours
    from hours group by queue having season_hours is not null
), spine as (
    select queue, season_hours, unnest(range(begin_no, {now_no})) as hour_no from spans
), seen as (
    select queue, season_hours, hour_no, coalesce(accepted, 0)::double as accepted, coalesce(failed, 0)::double as failed,
        wait_ms / nullif(waited, 0) as wait_ms
    from spine left join hours using (queue, hour_no)
), values_ as (
    unpivot seen on accepted, failed, wait_ms into name metric value value
), members as (
    select *, hour_no % season_hours as place from values_ where value is not null
    qualify count(*) over (partition by queue, metric, season_hours, hour_no % season_hours) >= 4
), others as (
    select m.queue, m.metric, m.season_hours, m.hour_no, m.value, list(o.value) as others
    from members as m join members as o on o.queue = m.queue and o.metric = m.metric and o.season_hours = m.season_hours
        and o.place = m.place and o.hour_no <> m.hour_no
    group by all
), scored as (
    select *, list_median(others) as expected, list_median(list_transform(others, lambda other: abs(other - expected))) as deviation,
        greatest(1.4826::double * deviation, case when metric = 'wait_ms' then greatest(0.1::double * expected, 10.0)
            else greatest(sqrt(expected), 0.05::double * expected, 1.0) end) as spread,
        (value - expected) / spread as score
    from others
)
select to_timestamp(hour_no * 3600) as hour, queue, metric, value, expected, spread, score,
    case season_hours when 168 then 'hour_of_week' else 'hour_of_day' end as season
from scored where abs(score) >= 4
"""
