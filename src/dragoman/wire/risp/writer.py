"""Encodes operations as RISP bytes, in the field order of the original implementation; the layouts are in docs/reference/rq.md."""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, write_i32_be
from mypy_extensions import i32

from dragoman.wire.risp import commands

CLEAR_ID: Final = bytes([commands.CLEAR, commands.ID])
PING_BYTES: Final = bytes([commands.PING])
PONG_BYTES: Final = bytes([commands.PONG])
NODE_CLOSING: Final = bytes([commands.CLOSING])
CONTROLLER_CLOSING: Final = bytes([commands.CLEAR, commands.CLOSING])
FULL: Final = bytes([commands.SERVER_FULL])


def id_bytes(number: int) -> bytes:
    """An id, or the length of a payload."""
    return number.to_bytes(4, "big")


def short_field(command: int, number: int) -> bytes:
    """A u16 parameter."""
    return b"%c%s" % (command, number.to_bytes(2, "big"))


def queue_field(queue: bytes) -> bytes:
    return b"%c%c%s" % (commands.QUEUE, len(queue), queue)


def request_head(queue_id: int) -> bytes:
    """The common start of every request and broadcast to a consumer of this queue, up to the payload's length."""
    return b"%c%s%c" % (commands.CLEAR, short_field(commands.QUEUEID, queue_id), commands.PAYLOAD)


def encode_request(request_id: bytes, queue: bytes, body: bytes, no_reply: bool, retries: int, timeout_s: int) -> bytes:
    """Encode a source's request; negative numbers are omitted."""
    out = BytesWriter()
    out.write(CLEAR_ID)
    out.write(request_id)
    out.append(commands.QUEUE)
    out.append(len(queue))
    out.write(queue)
    out.append(commands.PAYLOAD)
    write_i32_be(out, i32(len(body)))
    out.write(body)
    if no_reply:
        out.append(commands.NOREPLY)
    if retries >= 0:
        out.append(commands.RETRIES)
        out.append(retries)
    if timeout_s >= 0:
        out.write(short_field(commands.TIMEOUT, timeout_s))
    out.append(commands.REQUEST)
    return out.getvalue()


def encode_delivered(request_id: bytes) -> bytes:
    return b"%s%s%c" % (CLEAR_ID, request_id, commands.DELIVERED)


def encode_undelivered(request_id: bytes) -> bytes:
    return b"%s%s%c" % (CLEAR_ID, request_id, commands.UNDELIVERED)


def encode_reply(request_id: bytes, body: bytes) -> bytes:
    return b"%s%s%c%s%s%c" % (CLEAR_ID, request_id, commands.PAYLOAD, id_bytes(len(body)), body, commands.REPLY)


def encode_broadcast(queue: bytes, body: bytes) -> bytes:
    """Encode a broadcast to a controller."""
    size = id_bytes(len(body))
    return b"%c%s%c%s%s%c" % (commands.CLEAR, queue_field(queue), commands.PAYLOAD, size, body, commands.BROADCAST)


def encode_broadcast_to_consumer(queue_id: int, body: bytes) -> bytes:
    return b"%s%s%s%c" % (request_head(queue_id), id_bytes(len(body)), body, commands.BROADCAST)


def encode_consume(queue: bytes, messages_max: int, priority: int) -> bytes:
    """Encode a consumer's registration."""
    limit = short_field(commands.MAX, messages_max)
    return b"%c%s%s%c%c%c" % (commands.CLEAR, queue_field(queue), limit, commands.PRIORITY, priority, commands.CONSUME)


def encode_consuming(queue_id: int, queue: bytes) -> bytes:
    return b"%c%s%s%c" % (
        commands.CLEAR,
        short_field(commands.QUEUEID, queue_id),
        queue_field(queue),
        commands.CONSUMING,
    )
