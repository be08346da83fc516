"""Parses operations from a RISP byte stream cut anywhere. Invariant: a payload's announced size is checked before any of it is stored.

There is no framing. Parameters collect in an accumulator, CLEAR empties it, and an acting byte executes with its contents; PING, PONG and
NOP leave it alone. Between two buffers the reader stores the accumulator, an incomplete parameter (a few bytes, or a growing payload), or
the number of bytes of an unknown parameter still to skip.

The operations that make up most of the traffic, in the field order of the original implementation, have a fast path that bypasses the
accumulator:

    01 80 id4 0d                                                      delivered
    01 80 id4 e0 len4 data 0b                                         reply
    01 80 id4 a0 L queue e0 len4 data [21] [41 rr] [61 hhll] 0a       request

If the byte after such an operation is not CLEAR, the accumulator is filled from the operation's bytes (`_recall`), so that both paths
give the same result.

A single byte can repeat an operation, payload included, at no cost to the sender. So the reader adds up the size of what is repeated and
ends the connection of a peer that repeats too much.
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import read_i16_be, read_i32_be
from mypy_extensions import i64, mypyc_attr

from dragoman.errors import OperationWithoutId, PayloadTooLarge, RepeatedTooOften
from dragoman.limits import RISP_REPEATED_SIZE_MAX
from dragoman.wire.risp import commands

# The size counted for repeating an operation without a payload.
REPETITION_SIZE: Final = 64


@mypyc_attr(allow_interpreted_subclasses=True)
class RispHandler:
    """Receives one peer's operations: the reader calls it at each acting byte, with the parameters accumulated so far. An operation without a
    method in the subclass is ignored.

    `queue` is empty and `queue_id` is ABSENT (-1) where the peer gave none; QUEUE wins over QUEUEID. An id is passed as its four bytes where
    it is only forwarded, as a number where it is looked up.
    """

    def on_request(
        self, request_id: bytes, queue: bytes, queue_id: i64, body: bytes, no_reply: bool, retries: i64, timeout_s: i64
    ) -> None:
        pass

    def on_delivered(self, request_id: i64) -> None:
        pass

    def on_reply(self, request_id: i64, body: bytes) -> None:
        pass

    def on_undelivered(self, request_id: i64) -> None:
        pass

    def on_broadcast(self, queue: bytes, queue_id: i64, body: bytes) -> None:
        pass

    def on_consume(self, queue: bytes, queue_id: i64, messages_max: i64, priority: i64, is_exclusive: bool) -> None:
        pass

    def on_consuming(self, queue: bytes, queue_id: i64) -> None:
        self.on_stray(commands.CONSUMING)

    def on_cancel_queue(self, queue: bytes, queue_id: i64) -> None:
        pass

    def on_ping(self) -> None:
        pass

    def on_pong(self) -> None:
        pass

    def on_closing(self) -> None:
        pass

    def on_server_full(self) -> None:
        self.on_stray(commands.SERVER_FULL)

    def on_stray(self, command: i64) -> None:
        """An acting command that rq does not have, or that only a controller sends."""


@final
class RispReader:
    """Decodes one peer's RISP stream: bytes in, handler calls out. No sockets, no clock, no broker."""

    def __init__(self, handler: RispHandler, payload_size_max: int) -> None:
        self.handler = handler
        self._payload_size_max: i64 = payload_size_max
        self._last_queue = b""  # the queue name of the previous request: most requests of a peer share it
        self._recent = b""  # the last operation read on the fast path, while the accumulator does not reflect it
        self._rest = b""  # an incomplete parameter, other than a payload
        self._growing: bytearray | None = None  # an incomplete payload
        self._missing: i64 = 0  # bytes it still lacks
        self._skipping: i64 = 0  # bytes of an unknown parameter still to skip
        # The accumulator.
        self._id = b""
        self._queue = b""
        self._queue_id: i64 = commands.ABSENT
        self._payload = b""
        self._no_reply = False
        self._is_exclusive = False
        self._priority: i64 = commands.ABSENT
        self._retries: i64 = commands.ABSENT
        self._timeout_s: i64 = commands.ABSENT
        self._messages_max: i64 = commands.ABSENT
        # A parameter has arrived since the last acting byte.
        self._is_new = False
        self._is_spent = False  # an operation has used the payload
        self._is_gone = False  # used and no longer stored
        self._repeated: i64 = 0  # bytes repeated since CLEAR

    def feed(self, data: bytes) -> None:
        """Parse the next bytes and call the handler for each operation they complete. After a PeerError the reader must not be used again."""
        if not data:
            return
        start: i64 = 0
        if self._recent:
            recent = self._recent
            self._recent = b""
            if data[0] != commands.CLEAR:
                self._recall(recent)
        if self._rest:
            data = self._rest + data
            self._rest = b""
        elif self._growing is not None:
            start = self._grow(data)
        elif self._skipping > 0:
            start = min(self._skipping, len(data))
            self._skipping -= start
        if start < len(data):
            self._walk(data, start)

    def unfinished_size(self) -> int:
        """The number of bytes stored: an incomplete parameter, and the payloads of the current and the last operation."""
        size: i64 = len(self._rest) + len(self._payload) + len(self._recent)
        growing = self._growing
        if growing is not None:
            size += len(growing)
        return size

    def missing_size(self) -> int:
        """The number of bytes that an incomplete payload still lacks."""
        return int(self._missing) if self._growing is not None else 0

    def forget_spent(self) -> None:
        """Free the payload that was used. A peer that repeats it, which the original implementation never does, loses its connection."""
        if self._recent:
            recent = self._recent
            self._recent = b""
            self._recall(recent)
        if self._is_spent and self._payload:
            self._payload = b""
            self._is_gone = True

    def is_cut_short(self) -> bool:
        """Whether the stream ends in the middle of an operation."""
        return self._growing is not None or len(self._rest) > 0 or (len(self._payload) > 0 and not self._is_spent)

    def _walk(self, data: bytes, start: i64) -> None:
        end: i64 = len(data)
        at: i64 = start
        whole_at: i64 = -1  # where the last fast-path operation began, if nothing has touched the accumulator since
        while at < end:
            command: i64 = data[at]
            if command == commands.CLEAR:
                if end - at >= 7 and data[at + 1] == commands.ID:
                    stop = self._whole(data, at, end)
                    if stop > 0:
                        whole_at = at
                        at = stop
                        continue
                self._clear()
                whole_at = -1
                at += 1
                continue
            if whole_at >= 0 and command != commands.PING and command != commands.PONG and command != commands.NOP:
                self._recall(data[whole_at:at])
                whole_at = -1
            if command < commands.FLAGS:
                at += 1
                self._act(command)
            else:
                stop = self._gather(data, at, end)
                if stop < 0:
                    break
                at = stop
        if whole_at >= 0:
            self._recent = data[whole_at:at] if at == end else b""

    # -- whole operations -----------------------------------------------------------------------------------------------

    def _whole(self, data: bytes, at: i64, end: i64) -> i64:
        """Execute the common operation that begins with CLEAR ID at `at`. Returns where it ends, or 0 when it is another operation or
        incomplete. The caller guarantees at least 7 bytes."""
        kind: i64 = data[at + 6]
        if kind == commands.DELIVERED:
            self.handler.on_delivered(i64(read_i32_be(data, at + 2)) & commands.U32)
            return at + 7
        size: i64
        stop: i64
        if kind == commands.PAYLOAD:
            if end - at < 12:
                return 0
            size = i64(read_i32_be(data, at + 7)) & commands.U32
            if size > self._payload_size_max:
                raise PayloadTooLarge(size, self._payload_size_max)
            stop = at + 11 + size
            if stop >= end or data[stop] != commands.REPLY:
                return 0
            self.handler.on_reply(i64(read_i32_be(data, at + 2)) & commands.U32, data[at + 11 : stop])
            return stop + 1
        if kind != commands.QUEUE or end - at < 8:
            return 0
        name_size: i64 = data[at + 7]
        name_at: i64 = at + 8
        size_at: i64 = name_at + name_size + 1
        if end - size_at < 5 or data[size_at - 1] != commands.PAYLOAD:
            return 0
        size = i64(read_i32_be(data, size_at)) & commands.U32
        if size > self._payload_size_max:
            raise PayloadTooLarge(size, self._payload_size_max)
        stop = size_at + 4 + size
        if stop >= end:
            return 0
        body_stop: i64 = stop
        no_reply = False
        retries: i64 = commands.ABSENT
        timeout_s: i64 = commands.ABSENT
        if data[stop] != commands.REQUEST:
            if data[stop] == commands.NOREPLY:
                no_reply = True
                stop += 1
            if end - stop >= 2 and data[stop] == commands.RETRIES:
                retries = data[stop + 1]
                stop += 2
            if end - stop >= 3 and data[stop] == commands.TIMEOUT:
                timeout_s = i64(read_i16_be(data, stop + 1)) & commands.U16
                stop += 3
            if stop >= end or data[stop] != commands.REQUEST:
                return 0
        if name_size != len(self._last_queue) or not commands.is_at(data, name_at, self._last_queue, name_size):
            self._last_queue = data[name_at : name_at + name_size]
        body = data[size_at + 4 : body_stop]
        self.handler.on_request(
            data[at + 2 : at + 6], self._last_queue, commands.ABSENT, body, no_reply, retries, timeout_s
        )
        return stop + 1

    def _recall(self, operation: bytes) -> None:
        """Fill the accumulator with the parameters of an operation that was read on the fast path."""
        self._clear()
        at: i64 = 1
        end: i64 = len(operation) - 1  # without its acting byte
        while at < end:
            at = self._gather(operation, at, end)
        self._is_new = False
        self._is_spent = True

    # -- the accumulator ------------------------------------------------------------------------------------------------

    def _clear(self) -> None:
        self._id = b""
        self._queue = b""
        self._queue_id = commands.ABSENT
        self._payload = b""
        self._no_reply = False
        self._is_exclusive = False
        self._priority = commands.ABSENT
        self._retries = commands.ABSENT
        self._timeout_s = commands.ABSENT
        self._messages_max = commands.ABSENT
        self._is_spent = self._is_gone = False
        self._repeated = 0

    def _gather(self, data: bytes, at: i64, end: i64) -> i64:
        """Read the parameter at `at`. Returns where it ends, or -1 when it is incomplete; its bytes are then stored or counted for skipping."""
        command: i64 = data[at]
        self._is_new = True
        if command < commands.BYTES:
            if command == commands.NOREPLY:
                self._no_reply = True
            elif command == commands.EXCLUSIVE:
                self._is_exclusive = True
            return at + 1
        if command < commands.TINY_TEXTS:
            return self._gather_number(data, command, at, end)
        return self._gather_text(data, command, at, end)

    def _gather_number(self, data: bytes, command: i64, at: i64, end: i64) -> i64:
        size: i64 = 2 if command < commands.SHORTS else 3 if command < commands.LONGS else 5
        if end - at < size:
            self._rest = data[at:]
            return -1
        if command == commands.ID:
            self._id = data[at + 1 : at + 5]
        elif command < commands.SHORTS:
            if command == commands.PRIORITY:
                self._priority = data[at + 1]
            elif command == commands.RETRIES:
                self._retries = data[at + 1]
        elif command == commands.QUEUEID:
            self._queue_id = i64(read_i16_be(data, at + 1)) & commands.U16
        elif command == commands.TIMEOUT:
            self._timeout_s = i64(read_i16_be(data, at + 1)) & commands.U16
        elif command == commands.MAX:
            self._messages_max = i64(read_i16_be(data, at + 1)) & commands.U16
        return at + size

    def _gather_text(self, data: bytes, command: i64, at: i64, end: i64) -> i64:
        text_at: i64 = at + (2 if command < commands.SHORT_TEXTS else 3 if command < commands.LONG_TEXTS else 5)
        if end < text_at:
            self._rest = data[at:]
            return -1
        size: i64
        if command < commands.SHORT_TEXTS:
            size = data[at + 1]
        elif command < commands.LONG_TEXTS:
            size = i64(read_i16_be(data, at + 1)) & commands.U16
        else:
            size = i64(read_i32_be(data, at + 1)) & commands.U32
        stop: i64 = text_at + size
        if command == commands.PAYLOAD:
            if size > self._payload_size_max:
                raise PayloadTooLarge(size, self._payload_size_max)
            if stop > end:
                self._payload = b""  # a second payload without CLEAR replaces the first
                self._growing = bytearray(data[text_at:])
                self._missing = stop - end
                return -1
            self._payload = data[text_at:stop]
            self._is_spent = self._is_gone = False
        elif command == commands.QUEUE:
            if stop > end:
                self._rest = data[at:]
                return -1
            self._queue = data[text_at:stop]
        elif stop > end:
            self._skipping = stop - end
            return -1
        return stop

    def _grow(self, data: bytes) -> i64:
        """Append the received bytes to the incomplete payload; returns how many bytes it took."""
        growing = self._growing
        assert growing is not None
        missing: i64 = self._missing
        if len(data) < missing:
            growing += data
            self._missing = missing - len(data)
            return len(data)
        growing += data[:missing]
        self._payload = bytes(growing)
        self._is_spent = self._is_gone = False
        self._growing = None
        self._missing = 0
        return missing

    # -- acting commands ------------------------------------------------------------------------------------------------

    def _act(self, command: i64) -> None:
        handler = self.handler
        if command == commands.PING:
            handler.on_ping()
        elif command == commands.PONG:
            handler.on_pong()
        elif command != commands.NOP:
            self._count(command)
            self._operate(command)

    def _count(self, command: i64) -> None:
        """Limit how much a peer may repeat; a single repetition may be of any size."""
        size: i64 = 0 if self._is_new else REPETITION_SIZE
        self._is_new = False
        if command == commands.REQUEST or command == commands.REPLY or command == commands.BROADCAST:
            if self._is_gone:
                raise RepeatedTooOften(RISP_REPEATED_SIZE_MAX)
            if self._is_spent:
                size += len(self._payload)
            self._is_spent = True
        if size > 0:
            if self._repeated > RISP_REPEATED_SIZE_MAX:
                raise RepeatedTooOften(RISP_REPEATED_SIZE_MAX)
            self._repeated += size

    def _operate(self, command: i64) -> None:
        handler = self.handler
        if command == commands.REQUEST:
            request_id = self._need_id(command)
            handler.on_request(
                request_id, self._queue, self._queue_id, self._payload, self._no_reply, self._retries, self._timeout_s
            )
        elif command == commands.DELIVERED:
            handler.on_delivered(number_of(self._need_id(command)))
        elif command == commands.REPLY:
            handler.on_reply(number_of(self._need_id(command)), self._payload)
        elif command == commands.UNDELIVERED:
            handler.on_undelivered(number_of(self._need_id(command)))
        elif command == commands.BROADCAST:
            handler.on_broadcast(self._queue, self._queue_id, self._payload)
        elif command == commands.CONSUME:
            handler.on_consume(self._queue, self._queue_id, self._messages_max, self._priority, self._is_exclusive)
        elif command == commands.CONSUMING:
            handler.on_consuming(self._queue, self._queue_id)
        elif command == commands.CANCEL_QUEUE:
            handler.on_cancel_queue(self._queue, self._queue_id)
        elif command == commands.CLOSING:
            handler.on_closing()
        elif command == commands.SERVER_FULL:
            handler.on_server_full()
        else:
            handler.on_stray(command)

    def _need_id(self, command: i64) -> bytes:
        if not self._id:
            raise OperationWithoutId(command)
        return self._id


def number_of(request_id: bytes) -> i64:
    """Convert an id to a number."""
    return i64(read_i32_be(request_id, 0)) & commands.U32
