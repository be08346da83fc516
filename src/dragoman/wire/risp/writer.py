"""Encodes operations as RISP bytes, in the field order of the original implementation; the layouts are in docs/reference/rq.md."""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, write_i16_be, write_i32_be
from mypy_extensions import i16, i32, i64

from dragoman.wire.risp import words

CLEAR_ID: Final = bytes([words.CLEAR, words.ID])
PING_BYTES: Final = bytes([words.PING])
PONG_BYTES: Final = bytes([words.PONG])
NODE_CLOSING: Final = bytes([words.CLOSING])
CONTROLLER_CLOSING: Final = bytes([words.CLEAR, words.CLOSING])
FULL: Final = bytes([words.SERVER_FULL])


def id_bytes(request_id: int) -> bytes:
    return request_id.to_bytes(4, "big")


def write_number(out: BytesWriter, command: int, number: i64) -> None:
    """Append a u32 parameter; also the length before a payload."""
    out.append(command)
    write_i32_be(out, i32(number if number < 0x8000_0000 else number - 0x1_0000_0000))


def write_short(out: BytesWriter, command: int, number: i64) -> None:
    out.append(command)
    write_i16_be(out, i16(number if number < 0x8000 else number - 0x1_0000))


def write_queue(out: BytesWriter, queue: bytes) -> None:
    out.append(words.QUEUE)
    out.append(len(queue))
    out.write(queue)


def request_head(queue_id: int) -> bytes:
    """The common start of every request and broadcast to a consumer of this queue, up to the payload's length."""
    out = BytesWriter()
    out.append(words.CLEAR)
    write_short(out, words.QUEUEID, queue_id)
    out.append(words.PAYLOAD)
    return out.getvalue()


def encode_request(
    request_id: bytes, queue: bytes, body: bytes, is_noreply: bool, retries: int, timeout_s: int
) -> bytes:
    """Encode a source's request; negative numbers are omitted."""
    out = BytesWriter()
    out.write(CLEAR_ID)
    out.write(request_id)
    write_queue(out, queue)
    write_number(out, words.PAYLOAD, len(body))
    out.write(body)
    if is_noreply:
        out.append(words.NOREPLY)
    if retries >= 0:
        out.append(words.RETRIES)
        out.append(retries)
    if timeout_s >= 0:
        write_short(out, words.TIMEOUT, timeout_s)
    out.append(words.REQUEST)
    return out.getvalue()


def encode_delivered(request_id: bytes) -> bytes:
    return b"%s%s%c" % (CLEAR_ID, request_id, words.DELIVERED)


def encode_undelivered(request_id: bytes) -> bytes:
    return b"%s%s%c" % (CLEAR_ID, request_id, words.UNDELIVERED)


def encode_reply(request_id: bytes, body: bytes) -> bytes:
    return b"%s%s%c%s%s%c" % (CLEAR_ID, request_id, words.PAYLOAD, id_bytes(len(body)), body, words.REPLY)


def encode_broadcast(queue: bytes, body: bytes) -> bytes:
    """Encode a broadcast to a controller."""
    out = BytesWriter()
    out.append(words.CLEAR)
    write_queue(out, queue)
    write_number(out, words.PAYLOAD, len(body))
    out.write(body)
    out.append(words.BROADCAST)
    return out.getvalue()


def encode_broadcast_to_consumer(queue_id: int, body: bytes) -> bytes:
    out = BytesWriter()
    out.write(request_head(queue_id))
    write_i32_be(out, len(body))
    out.write(body)
    out.append(words.BROADCAST)
    return out.getvalue()


def encode_consume(queue: bytes, messages_max: int, priority: int, is_exclusive: bool) -> bytes:
    """Encode a consumer's registration; negative numbers are omitted."""
    out = BytesWriter()
    out.append(words.CLEAR)
    if is_exclusive:
        out.append(words.EXCLUSIVE)
    write_queue(out, queue)
    if messages_max >= 0:
        write_short(out, words.MAX, messages_max)
    if priority >= 0:
        out.append(words.PRIORITY)
        out.append(priority)
    out.append(words.CONSUME)
    return out.getvalue()


def encode_consuming(queue_id: int, queue: bytes) -> bytes:
    out = BytesWriter()
    out.append(words.CLEAR)
    write_short(out, words.QUEUEID, queue_id)
    write_queue(out, queue)
    out.append(words.CONSUMING)
    return out.getvalue()


def encode_cancel_queue(queue: bytes) -> bytes:
    out = BytesWriter()
    out.append(words.CLEAR)
    write_queue(out, queue)
    out.append(words.CANCEL_QUEUE)
    return out.getvalue()
