"""Looking into eMQP frames where the protocol itself puts a meaning there: queue lists, schedules, jobs of the original."""

from __future__ import annotations

import hashlib
import json
import math
from typing import Final

import msgspec
from librt.strings import BytesWriter, write_i64_be

from dragoman.dialects.emqp.dialect import EmqpDialect, EmqpSettings
from dragoman.dialects.emqp.headers import SECONDS_MAX
from dragoman.limits import SCHEDULE_INTERVAL_NS_MIN, WEIGHT_MAX
from dragoman.model.exchange import Exchange
from dragoman.model.message import Message
from dragoman.model.units import SECOND_NS
from dragoman.model.words import BAD_HEADER, BAD_SCHEDULE, EMQP, NO_HASTE, REFUSAL_TEXTS, TAKEN
from dragoman.wire.zmtp.frames import LONG

# What every job of the original names.
JOB_KEYS: Final = ["path", "callable", "args", "kwargs", "class_args", "class_kwargs"]


def read_queues(frame: bytes, settings: EmqpSettings) -> list[tuple[int, bytes]]:
    """`[[30,"low"],[10,"default"]]`, a JSON list of names, or one bare name; empty means the default queue."""
    if not frame:
        return [(settings.default_weight, settings.default_queue)]
    if frame[:1] != b"[":
        return [(settings.default_weight, frame)]
    try:
        items = msgspec.json.decode(frame)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return [(settings.default_weight, frame)]
    queues: dict[bytes, int] = {}
    for item in items:
        if isinstance(item, str):
            queues[item.encode() or settings.default_queue] = settings.default_weight
        elif (
            isinstance(item, list) and len(item) == 2 and isinstance(item[0], (int, float)) and isinstance(item[1], str)
        ):
            queues[item[1].encode() or settings.default_queue] = int(max(-WEIGHT_MAX, min(item[0], WEIGHT_MAX)))
    if not queues:
        return [(settings.default_weight, settings.default_queue)]
    return [(weight, name) for name, weight in queues.items()]


def schedule(
    is_new: bool, frames: list[bytes], at: int, exchange: Exchange, emqp: EmqpDialect
) -> tuple[Message, int, str]:
    """SCHEDULE and UNSCHEDULE: `id, queue, headers, interval, body, cron`. Returns its message, the refusal and its words."""
    fields = [*frames[at:], b"", b"", b"", b"", b"", b""]
    headers = emqp.meanings.of(fields[2])
    queue = fields[1] if fields[1] else emqp.settings.default_queue
    m = Message(EMQP, queue, fields[0], fields[4])
    if headers.problem:
        return m, BAD_HEADER, headers.problem
    m.headers = fields[2]
    m.flags = headers.flags
    m.retries_left = headers.retries
    m.timeout_ns = headers.timeout_ns
    m.priority = headers.priority
    m.dedupe = schedule_key(m.body)
    if not is_new:
        refusal = exchange.unschedule(m.dedupe)
        return m, refusal, "no schedule has this job"
    try:
        interval_s = float(fields[3])
    except ValueError:
        interval_s = math.nan
    if not interval_s <= SECONDS_MAX:
        return m, BAD_SCHEDULE, "the interval wants seconds, or -1 for cron"
    interval_ns = int(interval_s * SECOND_NS) if interval_s > 0 else 0
    if interval_s > 0 and interval_ns < SCHEDULE_INTERVAL_NS_MIN:
        return m, BAD_SCHEDULE, f"the interval is below {SCHEDULE_INTERVAL_NS_MIN / SECOND_NS} seconds"
    if headers.runs == 0:
        exchange.unschedule(m.dedupe)
        return m, TAKEN, ""
    cron = fields[5].decode("utf-8", "replace")
    refusal = exchange.schedule(m, interval_ns, cron, headers.runs)
    return m, refusal, f"{cron[:64]!r} is not a cron expression" if refusal == BAD_SCHEDULE else REFUSAL_TEXTS[refusal]


def why_no_scheduler_takes(is_new: bool, frames: list[bytes], at: int, exchange: Exchange, emqp: EmqpDialect) -> str:
    """What in a SCHEDULE or UNSCHEDULE would end the original's scheduler; empty: nothing."""
    if len(frames) != at + 6:
        return "it wants queue, headers, interval, body and cron"
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
    headers = emqp.meanings.of(frames[at + 2])
    if headers.problem:
        return headers.problem
    for item in frames[at + 2].split(b","):
        if b"run_count:" in item and not item.strip().startswith(b"run_count:"):
            return "a header looks like run_count"
    if is_new and interval_s < 0:
        if not exchange.is_cron(frames[at + 5].decode()):
            return "it is not a cron expression"
        if headers.runs > 0 and not headers.flags & NO_HASTE:
            return "run_count with cron wants nohaste too"
    return ""


def schedule_key(body: bytes) -> bytes:
    """What makes two schedules the same: the job's meaning, not the order in which its JSON was written."""
    try:
        value = msgspec.json.decode(body)
        body = msgspec.json.encode(value, order="deterministic")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass
    return hashlib.sha256(body).digest()


def is_original_job(m: Message) -> bool:
    """Whether the original's worker can take it: all frames UTF-8, the body a JSON list of two or more. Else it resets itself."""
    try:
        m.wire_id.decode()
        m.queue.decode()
        m.headers.decode()
        value = json_value(m.body)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, list) and len(value) >= 2


def json_value(body: bytes) -> object:
    """A body as Python's own reader sees it, which the original uses: NaN and Infinity are numbers to it. Raises ValueError."""
    try:
        value: object = msgspec.json.decode(body)
    except msgspec.DecodeError:
        value = json.loads(body.decode())
    return value


def error_value(code: str, text: str) -> bytes:
    """How a failure is answered: as our own workers answer theirs."""
    return msgspec.json.encode({"error": {"type": code, "message": text}})


def write_long_frame_head(out: BytesWriter, size: int) -> None:
    """The head of a last frame whose body follows by reference."""
    out.append(LONG)
    write_i64_be(out, size)
