"""The silver tables in DuckDB's SQL. Written for DuckDB: scans of what is needed, filters in aggregates, no step it could do itself.

`{closed}` and the like stand for the numbers of kinds, `{why[…]}` for those of reasons, `{now}` for the lake's latest instant.
"""

from __future__ import annotations

from typing import Final

EVENTS: Final = """
select broker_id, lsn, kind, "at", worker_no, queue_no, schedule_no, message_no, worker_dialect, reason, due_at, count, text
from facts where kind not in ({life})
"""

QUEUES: Final = """
select broker_id, queue_no,
    coalesce(arg_min(text, lsn) filter (kind = {queue_named}), '#' || queue_no) as queue,
    min("at") filter (kind = {queue_named}) as named_at,
    coalesce(arg_max(kind, lsn) filter (kind in ({paused}, {resumed})) = {paused}, false) as is_paused
from events where kind in ({queue_named}, {paused}, {resumed}) group by broker_id, queue_no
"""

PEERS: Final = """
with spans as (
    select broker_id, worker_no, min(lsn) filter (kind = {worker_joined}) as joined_lsn,
        arg_min("at", lsn) filter (kind = {worker_joined}) as joined_at,
        arg_max(worker_dialect, lsn) filter (kind = {worker_joined}) as worker_dialect,
        string_split(arg_max(text, lsn) filter (kind = {worker_joined}), chr(9)) as parts,
        arg_min("at", lsn) filter (kind = {worker_left}) as said_left_at,
        arg_min(reason, lsn) filter (kind = {worker_left}) as said_reason
    from events where kind in ({worker_joined}, {worker_left}) group by broker_id, worker_no having joined_lsn is not null
), ended as (
    select spans.*, starts."at" as start_at
    from spans asof left join (from events where kind = {started}) as starts
        on spans.broker_id = starts.broker_id and spans.joined_lsn < starts.lsn
), told as (
    select *, coalesce(said_left_at, start_at) as left_at, try(decode(unhex(parts[3]))) as identity_text,
        case when said_left_at is not null then said_reason when start_at is not null then {why[broker_started]} end as reason
    from ended
)
select broker_id, worker_no, worker_dialect, parts[1] as listener, parts[2] as remote,
    case when parts[3] <> '' then
        case when regexp_matches(identity_text, '^\\P{{C}}+$') then identity_text else parts[3] end end as identity,
    list_transform(parts[4:], lambda part: regexp_replace(part, '^-?\\d+ ', '')) as queues,
    joined_at, left_at, reason::tinyint as reason,
    (epoch_us(coalesce(left_at, {now})) - epoch_us(joined_at)) / 1000 as connected_ms
from told
"""

MESSAGES: Final = """
with ended as (
    select *, greatest(accepted_at, least(due_at, case when due_at is not null then "at" end)) as ready_at
    from facts where kind = {closed}
)
select broker_id, message_no, queue_no, client_dialect, worker_dialect, worker_no, attempt as attempts, outcome, reason, accepted_at,
    due_at, first_leased_at, leased_at, delivered_at, "at" as closed_at,
    (epoch_us(first_leased_at) - epoch_us(ready_at)) / 1000 as wait_ms,
    case when worker_no is not null then (epoch_us("at") - epoch_us(leased_at)) / 1000 end as work_ms,
    (epoch_us("at") - epoch_us(ready_at)) / 1000 as total_ms,
    body_size, reply_size, lsn, date '1970-01-01' + (epoch_us("at") // 86_400_000_000)::int as date
from ended
"""

ATTEMPTS: Final = """
select broker_id, message_no, attempt, queue_no, coalesce(holder_no, worker_no) as worker_no, client_dialect,
    case when holder_no is null then worker_dialect end as worker_dialect, leased_at, "at" as ended_at,
    (epoch_us("at") - epoch_us(leased_at)) / 1000 as held_ms, kind as ended_by, outcome, reason,
    coalesce(is_death, kind = {quarantined} and reason = {why[workers_died]}) as is_death, lsn,
    date '1970-01-01' + (epoch_us("at") // 86_400_000_000)::int as date
from facts where kind in ({ends}) and leased_at is not null
"""

# Lives that are not plainly accepted … closed: found by what is cheap to count, told from all their facts.
LIVES: Final = """
with odd as (
    select broker_id, message_no, count(*) as facts, min(lsn) as first_lsn, max(lsn) as last_lsn,
        count(*) filter (kind = {accepted}) as begins, count(*) filter (kind = {closed}) as ends,
        min(lsn) filter (kind = {accepted}) as accepted_lsn, min(lsn) filter (kind = {closed}) as closed_lsn
    from facts where kind in ({life}) and message_no is not null
    group by broker_id, message_no
    having begins <> 1 or ends <> 1 or last_lsn <> closed_lsn or first_lsn <> accepted_lsn
)
select broker_id, message_no, any_value(odd.facts) as facts, any_value(first_lsn) as first_lsn, any_value(last_lsn) as last_lsn,
    any_value(begins) as begins, any_value(odd.ends) as ends, any_value(accepted_lsn) as accepted_lsn,
    any_value(closed_lsn) as closed_lsn, arg_min(f.queue_no, lsn) filter (kind = {accepted}) as queue_no,
    arg_min(client_dialect, lsn) filter (kind = {accepted}) as client_dialect,
    arg_min_null(expires_at, lsn) filter (kind = {accepted}) as expires_at,
    arg_min(priority, lsn) filter (kind = {accepted}) as priority, arg_min(body_size, lsn) filter (kind = {accepted}) as body_size,
    min("at") filter (kind = {accepted}) as accepted_at,
    arg_max_null(due_at, lsn) filter (kind in ({accepted}, {released})) as due_at,
    arg_max(worker_no, lsn) filter (kind = {leased}) as worker_no,
    arg_max(reason, lsn) filter (kind in ({released}, {quarantined})) as last_reason,
    arg_max(kind, lsn) as last_kind, coalesce(max(attempt), 0) as attempts, min("at") as first_at, max("at") as last_at
from facts as f join odd using (broker_id, message_no) where kind in ({life})
group by broker_id, message_no
"""

OPEN: Final = """
select broker_id, message_no, queue_no, client_dialect, accepted_at, due_at, expires_at,
    case when last_kind in ({leased}, {delivered}) then 'leased' when last_kind = {quarantined} then 'quarantined'
        else 'waiting' end as state,
    attempts, worker_no, last_reason, last_at, priority, body_size, accepted_lsn, last_lsn
from lives where begins > 0 and ends = 0
"""

ORPHANS: Final = """
with faults as (
    select *, case when begins = 0 then 'no_accepted' when begins > 1 then 'accepted_twice' when ends > 1 then 'closed_twice'
        when last_lsn > closed_lsn then 'after_closed' when first_lsn < accepted_lsn then 'before_accepted' end as why
    from lives
)
select broker_id, message_no, why, facts, first_lsn, last_lsn, first_at from faults where why is not null
"""

# Name, whether it is fatal, and what breaks it.
OF_FACTS: Final = (
    ("unknown_kind", True, "kind not in ({kinds})"),
    ("unknown_outcome", True, "kind = {closed} and outcome not in ({outcomes})"),
    ("unknown_reason", False, "reason not in ({reasons})"),
    ("unknown_dialect", False, "client_dialect not in ({dialects}) or worker_dialect not in ({dialects})"),
    (
        "missing_value",
        True,
        (
            'broker_id is null or lsn is null or kind is null or "at" is null or (kind in ({life}) and message_no is null) '
            "or (kind in ({accepted}, {closed}) and (queue_no is null or client_dialect is null)) "
            "or (kind in ({leased}, {delivered}, {released}, {worker_joined}, {worker_left}) and worker_no is null) "
            "or (kind in ({leased}, {released}, {closed}) and attempt is null) or (kind = {closed} and outcome is null) "
            "or (kind in ({ends}) and reason is null) or (kind = {queue_named} and (queue_no is null or text is null))"
        ),
    ),
    ("closed_without_accepted_at", True, "kind = {closed} and accepted_at is null"),
    ("attempt_without_begin", False, "kind in ({released}, {quarantined}) and leased_at is null"),
    (
        "attempt_zero",
        True,
        "attempt < 1 and (kind in ({leased}, {released}, {quarantined}) or leased_at is not null)",
    ),
    (
        "ended_before_begun",
        True,
        '"at" < accepted_at or "at" < first_leased_at or "at" < leased_at or "at" < delivered_at',
    ),
    (
        "negative_duration",
        True,
        (
            'first_leased_at < greatest(accepted_at, if(due_at > "at", "at", due_at)) or leased_at < first_leased_at '
            "or delivered_at < leased_at"
        ),
    ),
)

# Runs of 1024 facts, as the pipeline has it: sorting all facts to hold each against the one before would be more work.
TIME_BACKWARDS: Final = """
with runs as (
    select broker_id, lsn >> 10 as run, min("at") as earliest_at, max("at") as latest_at, arg_min("at", lsn) as first_at,
        arg_max("at", lsn) as last_at
    from facts group by broker_id, run
), steps as (
    select *, lag(latest_at) over (partition by broker_id order by run) as before_at from runs
)
select count(*) from steps where first_at <> earliest_at or last_at <> latest_at or earliest_at < before_at
"""

# A file of the lake holds every number of its range: what is missing lies between two of them.
GAPS: Final = """
select coalesce(sum(highest - lowest + 1 - facts), 0)::bigint
from (select broker_id, max(lsn) as highest, min(lsn) as lowest, count(*) as facts from facts group by broker_id)
"""
