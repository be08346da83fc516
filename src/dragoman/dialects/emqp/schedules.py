"""SCHEDULE and UNSCHEDULE: stored by the broker itself, or forwarded to the original's scheduler if configured."""

from __future__ import annotations

import hashlib
import math
from typing import TYPE_CHECKING, Final

import msgspec

from dragoman.dialects.emqp.commands import SCHEDULE
from dragoman.dialects.emqp.headers import SECONDS_MAX
from dragoman.dialects.emqp.jobs import json_value
from dragoman.limits import JSON_READ_SIZE_MAX, SCHEDULE_INTERVAL_NS_MIN
from dragoman.model import enums
from dragoman.model.message import Message
from dragoman.model.units import SECOND_NS

if TYPE_CHECKING:
    from dragoman.dialects.emqp.sessions import EmqpSession

# The keys of every job of the original.
JOB_KEYS: Final = ["path", "callable", "args", "kwargs", "class_args", "class_kwargs"]


def take(session: EmqpSession, command: bytes, frames: list[bytes], at: int) -> None:
    """Handle a client's SCHEDULE or UNSCHEDULE; `at` is the index of its id."""
    emqp = session.emqp
    if emqp.settings.external_scheduler:
        forward(session, command, frames, at)
        return
    m, refusal, problem = schedule(session, command == SCHEDULE, frames, at)
    if refusal != enums.TAKEN:
        session.refuse(m, refusal, problem)
    elif m.flags & enums.KEPT_WANTED:
        session.kept(m)


def forward(session: EmqpSession, command: bytes, frames: list[bytes], at: int) -> None:
    emqp = session.emqp
    m = Message(enums.EMQP, b"", frames[at], b"")
    problem = why_no_scheduler_takes(session, command == SCHEDULE, frames, at)
    if problem:
        session.refuse(m, enums.BAD_SCHEDULE, problem)
        return
    for scheduler in emqp.schedulers.values():
        scheduler.tell([command, *frames[at:]])
        return
    session.exchange.note(session, "EMQP_NO_SCHEDULER")
    session.refuse(m, enums.NOT_FOUND, "no scheduler is connected")


def schedule(session: EmqpSession, is_new: bool, frames: list[bytes], at: int) -> tuple[Message, int, str]:
    """Handle SCHEDULE or UNSCHEDULE: `id, queue, headers, interval, body, cron`. Returns its message, the refusal and its text."""
    fields = [*frames[at:], b"", b"", b"", b"", b"", b""]
    exchange = session.exchange
    headers = session.emqp.meanings.of(fields[2])
    m = Message(enums.EMQP, fields[1] or session.emqp.settings.default_queue, fields[0], fields[4])
    if headers.problem:
        return m, enums.BAD_HEADER, headers.problem
    m.headers = fields[2]
    m.flags = headers.flags
    m.retries_left = headers.retries
    m.timeout_ns = headers.timeout_ns
    m.priority = headers.priority
    m.expires_ns = headers.expires_ns
    m.dedupe = schedule_key(m.body)
    if not is_new:
        return m, exchange.unschedule(m.dedupe, enums.BY_CLIENT), "no schedule has this job"
    try:
        interval_s = float(fields[3])
    except ValueError:
        interval_s = math.nan
    if not interval_s <= SECONDS_MAX:
        return m, enums.BAD_SCHEDULE, "the interval wants seconds, or -1 for cron"
    interval_ns = int(interval_s * SECOND_NS) if interval_s > 0 else 0
    if interval_s > 0 and interval_ns < SCHEDULE_INTERVAL_NS_MIN:
        return m, enums.BAD_SCHEDULE, f"the interval is below {SCHEDULE_INTERVAL_NS_MIN / SECOND_NS} seconds"
    if headers.runs == 0:
        exchange.unschedule(m.dedupe, enums.BY_CLIENT)
        return m, enums.TAKEN, ""
    cron = seconds_first(fields[5].decode("utf-8", "replace"))
    refusal = exchange.schedule(m, interval_ns, cron, headers.runs)
    is_bad = refusal == enums.BAD_SCHEDULE
    return m, refusal, f"{cron[:64]!r} is not a cron expression" if is_bad else enums.REFUSAL_TEXTS[refusal]


def seconds_first(cron: str) -> str:
    """Move the seconds to the front: they are the original's sixth and last field, and the core expects them first."""
    fields = cron.split()
    return " ".join([fields[5], *fields[:5]]) if len(fields) == 6 else cron


def why_no_scheduler_takes(session: EmqpSession, is_new: bool, frames: list[bytes], at: int) -> str:
    """The reason why a SCHEDULE or UNSCHEDULE would crash the original's scheduler; empty: it would not."""
    if len(frames) != at + 6:
        return "it wants queue, headers, interval, body and cron"
    if len(frames[at + 4]) > JSON_READ_SIZE_MAX:
        return f"the body has more than {JSON_READ_SIZE_MAX} bytes"
    try:
        for frame in frames[at:]:
            frame.decode()
        interval_s = int(frames[at + 3])
        value = json_value(frames[at + 4])
    except (ValueError, RecursionError):
        return "every frame must be UTF-8, the interval whole seconds and the body JSON"
    if not isinstance(value, list) or len(value) < 2 or not isinstance(value[1], dict):
        return 'the body must be ["run", {...}]'
    for key in JOB_KEYS:
        if key not in value[1]:
            return f"the job has no {key}"
    headers = session.emqp.meanings.of(frames[at + 2])
    if headers.problem:
        return headers.problem
    for item in frames[at + 2].split(b","):
        if b"run_count:" in item and not item.strip().startswith(b"run_count:"):
            return "a header looks like run_count"
    if is_new and interval_s < 0:
        if not session.exchange.is_cron(frames[at + 5].decode()):
            return "it is not a cron expression"
        if headers.runs > 0 and not headers.flags & enums.NO_HASTE:
            return "run_count with cron wants nohaste too"
    return ""


def schedule_key(body: bytes) -> bytes:
    """The identity of a schedule: a hash of the job's JSON in canonical order. A body over JSON_READ_SIZE_MAX is hashed as it is."""
    if len(body) <= JSON_READ_SIZE_MAX:
        try:
            value = msgspec.json.decode(body)
            body = msgspec.json.encode(value, order="deterministic")
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            pass
    return hashlib.sha256(body).digest()
