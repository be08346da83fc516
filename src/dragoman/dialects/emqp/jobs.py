"""Looking into eMQP frames where the protocol itself puts a meaning there: queue lists, schedules, jobs of the original."""

from __future__ import annotations

import hashlib
import math

import msgspec
from librt.strings import BytesWriter, write_i64_be

from dragoman.dialects.emqp.dialect import EmqpDialect, EmqpSettings
from dragoman.dialects.emqp.headers import SECONDS_MAX
from dragoman.model.exchange import Exchange
from dragoman.model.message import Message
from dragoman.model.units import SECOND_NS
from dragoman.model.words import BAD_HEADER, BAD_SCHEDULE, EMQP, REFUSAL_TEXTS, TAKEN
from dragoman.wire.zmtp.frames import LONG


def read_queues(frame: bytes, settings: EmqpSettings) -> list[tuple[int, bytes]]:
    """`[[30,"low"],[10,"default"]]`, a JSON list of names, or one bare name; empty means the default queue."""
    if not frame:
        return [(settings.default_weight, settings.default_queue)]
    if frame[:1] != b"[":
        return [(settings.default_weight, frame)]
    try:
        items = msgspec.json.decode(frame)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return [(settings.default_weight, frame)]
    queues: dict[bytes, int] = {}
    for item in items:
        if isinstance(item, str):
            queues[item.encode()] = settings.default_weight
        elif (
            isinstance(item, list) and len(item) == 2 and isinstance(item[0], (int, float)) and isinstance(item[1], str)
        ):
            weight = item[0]
            queues[item[1].encode()] = int(weight) if math.isfinite(weight) else settings.default_weight
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
    if headers.runs == 0:
        return m, TAKEN, ""
    cron = fields[5].decode("utf-8", "replace")
    interval_ns = int(interval_s * SECOND_NS) if interval_s > 0 else 0
    refusal = exchange.schedule(m, interval_ns, cron, headers.runs)
    return m, refusal, f"{cron!r} is not a cron expression" if refusal == BAD_SCHEDULE else REFUSAL_TEXTS[refusal]


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
        value = msgspec.json.decode(m.body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return isinstance(value, list) and len(value) >= 2


def error_value(code: str, text: str) -> bytes:
    """How a failure is answered: as our own workers answer theirs."""
    return msgspec.json.encode({"error": {"type": code, "message": text}})


def write_long_frame_head(out: BytesWriter, size: int) -> None:
    """The head of a last frame whose body follows by reference."""
    out.append(LONG)
    write_i64_be(out, size)
