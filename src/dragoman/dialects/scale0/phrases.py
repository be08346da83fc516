"""Caches parts that many messages share: what follows the id in a header is the same for a whole tick.

    TASK       {"id":"<digits>.<origin>.<client's id>","traceparent":…,"service":…,"time":…,"config_version":…}
    TASKREPLY  {"id":<as the client wrote it>,"time":…,"config_version":…}
    PONG       {"time":…,"config_version":…}

The digits (`WireIds`) identify the message; origin and client's id are for human readers. `traceparent` is present if the client sent
one.
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import BytesWriter

from dragoman.dialects.scale0.commands import PONG
from dragoman.dialects.scale0.headers import is_plain, token_of
from dragoman.dialects.traceparent import traceparent_of, without_traceparent
from dragoman.limits import SCALE0_PHRASES_MAX
from dragoman.model.enums import SCALE0
from dragoman.model.message import Message
from dragoman.model.wire_ids import DIGITS, WireIds
from dragoman.wire.zmtp.frames import LONG, MORE, SHORT_BODY_SIZE_MAX, encode_message

ORIGIN_SIZE_MAX: Final = 64


@final
class Phrases:
    """The cached parts for one version of the configuration."""

    def __init__(self, version: bytes, ids: WireIds) -> None:
        self.ids = ids
        self.version = version
        self.version_token: bytes = b'"%s"' % version
        self.now_ns: int = -1
        self.reply_tail: bytes = b""  # after the id of a TASKREPLY to the end of the header
        self.pong_header: bytes = b""
        self.pong: bytes = b""  # the whole message, in the form of ZMTP 2.0 and later
        self.tails: dict[bytes, bytes] = {}  # of a TASK, by service
        self.origins: dict[bytes, bytes] = {}  # by address
        # The parts found last: a task is mostly followed by another one of the same service and client.
        self.recent_service: bytes = b""
        self.recent_tail: bytes = b""  # empty: none at the present time
        self.recent_address: bytes = b""
        self.recent_origin: bytes = self.origin_of(b"")

    def at(self, now_ns: int) -> None:
        """Set the tick's time and rebuild the parts that contain it."""
        if now_ns != self.now_ns:
            self.now_ns = now_ns
            stamp = b'"time":%d.%03d,"config_version":"%s"}' % (
                now_ns // 1_000_000_000,
                now_ns % 1_000_000_000 // 1_000_000,
                self.version,
            )
            self.reply_tail = b"," + stamp
            self.pong_header = b"{" + stamp
            self.pong = encode_message([PONG, self.pong_header])
            self.tails.clear()
            self.recent_tail = b""

    def tail_for(self, service: bytes) -> bytes:
        tail = self.tails.get(service)
        if tail is None:
            if len(self.tails) >= SCALE0_PHRASES_MAX:
                self.tails.clear()
            tail = b'","service":%s%s' % (token_of(service), self.reply_tail)
            self.tails[service] = tail
        return tail

    def origin_of(self, address: bytes) -> bytes:
        """The origin of a message in readable form, between dots."""
        origin = self.origins.get(address)
        if origin is None:
            if len(self.origins) >= SCALE0_PHRASES_MAX:
                self.origins.clear()
            origin = address[1 : 1 + ORIGIN_SIZE_MAX]
            if not is_plain(origin):
                origin = origin.hex().encode()
            origin = b".%s." % origin
            self.origins[address] = origin
        return origin

    def write_task_header(self, out: BytesWriter, m: Message) -> None:
        """Append the header frame of a TASK, with MORE."""
        if m.address is not self.recent_address:
            self.recent_origin = self.origin_of(m.address)
            self.recent_address = m.address
        if m.queue is not self.recent_service or len(self.recent_tail) == 0:
            self.recent_tail = self.tail_for(m.queue)
            self.recent_service = m.queue
        origin = self.recent_origin
        client_id = readable_id(m)
        trace = trace_part(m)
        tail = self.recent_tail
        write_head(out, 7 + DIGITS + len(origin) + len(client_id) + len(trace) + len(tail))
        out.write(b'{"id":"')
        self.ids.write(out, m.number)
        out.write(origin)
        out.write(client_id)
        if len(trace) > 0:
            out.write(trace)
        out.write(tail)

    def task_header(self, m: Message) -> bytes:
        """The header of a TASK as bytes."""
        return b'{"id":"%s%s%s' % (self.task_id(m), trace_part(m), self.tail_for(m.queue))

    def task_id(self, m: Message) -> bytes:
        """The task's id towards workers."""
        return b"%s%s%s" % (self.ids.digits(m.number), self.origin_of(m.address), readable_id(m))

    def write_reply_header(self, out: BytesWriter, m: Message) -> None:
        """Append the header frame of a TASKREPLY to a client, with MORE."""
        token = without_traceparent(m.headers)
        client_id = m.client_id
        tail = self.reply_tail
        if len(token) > 0:
            write_head(out, 6 + len(token) + len(tail))
            out.write(b'{"id":')
            out.write(token)
        else:
            write_head(out, 8 + len(client_id) + len(tail))
            out.write(b'{"id":"')
            out.write(client_id)
            out.write(b'"')
        out.write(tail)

    def reply_header(self, m: Message) -> bytes:
        """The header of a TASKREPLY as bytes."""
        return b'{"id":%s%s' % (id_token(m), self.reply_tail)


def write_head(out: BytesWriter, size: int) -> None:
    """Append the header of a frame that is not the last, whose body follows in parts."""
    if size <= SHORT_BODY_SIZE_MAX:
        out.append(MORE)
        out.append(size)
    else:
        out.append(LONG | MORE)
        out.write(size.to_bytes(8, "big"))


def readable_id(m: Message) -> bytes:
    """A client's id that needs no escaping: one of another dialect may contain any bytes, and becomes hex."""
    client_id = m.client_id
    if (m.dialect == SCALE0 and len(without_traceparent(m.headers)) == 0) or is_plain(client_id):
        return client_id
    return client_id.hex().encode()


def id_token(m: Message) -> bytes:
    """A Scale0 client's id as it was written: stored in the message's headers, unless it is a plain text."""
    token = without_traceparent(m.headers)
    return token if token else b'"%s"' % m.client_id


def trace_part(m: Message) -> bytes:
    """The part between the id of a TASK, whose quote is still open, and its tail."""
    traceparent = traceparent_of(m)
    return b'","traceparent":"%s' % traceparent if len(traceparent) > 0 else b""


def error_header(code: int, reason: bytes, token: bytes) -> bytes:
    """Build the header of an ERROR; `token` is the id of the message it refers to, if any."""
    if token:
        return b'{"code":%d,"reason":%s,"id":%s}' % (code, token_of(reason), token)
    return b'{"code":%d,"reason":%s}' % (code, token_of(reason))
