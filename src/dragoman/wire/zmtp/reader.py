"""Parses frames from a byte stream cut anywhere. Invariant: a frame's announced size is checked before any of its body is stored.

The reader walks each buffer once, by offset. Messages are appended to the caller's list; a *control frame* (any command, and every frame
until `is_open`) ends the walk and is returned alone, because it may change how the following bytes are read. Between two buffers the
reader keeps nothing, an incomplete header (at most 9 bytes), or an incomplete body. Such a body grows in a BytesIO, whose `getvalue`
does not copy: no byte is copied more than a constant number of times however finely the stream is cut, and a peer that announces much but
sends little occupies little memory.
"""

from __future__ import annotations

from io import BytesIO
from typing import Final, final

from librt.strings import read_i64_be
from mypy_extensions import i64

from dragoman import errors
from dragoman.limits import FRAMES_MAX, HANDSHAKE_COMMAND_SIZE_MAX
from dragoman.wire.zmtp.frames import COMMAND, LONG, MORE

HEADER_SIZE_LONG: Final = 9
HEADER_SIZE_LONG_V1: Final = 10
# Sizes of a FramePrefix.
PREFIX_SIZE_MIN: Final = 9
PREFIX_SIZE_MAX: Final = 24


@final
class FramePrefix:
    """The leading frames that most messages of a dialect share, recognised as one run of bytes: complete frames, all with MORE, in the form
    of 2.0 and 3.x.

    Three native comparisons replace parsing, allocating and comparing as many frames: a tenth of the broker's hot path. A message whose
    prefix arrived complete in one buffer has the prefix's `bytes` object itself as its first frame; a prefix cut between two buffers is
    read frame by frame. A peer cannot forge it: the session compares identity, and a peer's bytes are never that object."""

    def __init__(self, frames: bytes, body_size: int) -> None:
        assert PREFIX_SIZE_MIN <= len(frames) <= PREFIX_SIZE_MAX, "three reads of eight bytes cover it"
        self.frames = frames
        self.size: i64 = len(frames)
        self.body_size: i64 = body_size  # without the frames' headers: counts towards the message's size
        self.head: i64 = read_i64_be(frames, 0)
        self.middle_at: i64 = 8 if len(frames) >= 16 else len(frames) - 8
        self.middle: i64 = read_i64_be(frames, int(self.middle_at))
        self.tail: i64 = read_i64_be(frames, len(frames) - 8)

    def is_at(self, data: bytes, at: i64) -> bool:
        """Whether the prefix occurs in `data` at `at`; at least PREFIX_SIZE_MAX bytes must follow `at`."""
        return (
            read_i64_be(data, at) == self.head
            and read_i64_be(data, at + self.middle_at) == self.middle
            and read_i64_be(data, at + self.size - 8) == self.tail
        )


@final
class FrameReader:
    """Decodes one peer's frames, in the form of 1.0 (`is_v1`) or of 2.0 and 3.x."""

    def __init__(self, message_size_max: int) -> None:
        self.is_v1 = False
        self.is_open = False
        self.has_commands = False
        self.prefixes: list[FramePrefix] = []  # a message that begins with one has it as its first frame
        self.control_size_max: i64 = HANDSHAKE_COMMAND_SIZE_MAX
        self._message_size_max: i64 = message_size_max
        self._data = b""
        self._at: i64 = 0
        self._frames: list[bytes] = []
        self._size: i64 = 0
        self._body: BytesIO | None = None
        self._body_size: i64 = 0
        self._body_flags: i64 = 0
        self._missing: i64 = 0

    def feed(self, data: bytes) -> None:
        """Set the next bytes; `walk` must have used up the previous ones."""
        # Only an incomplete header can be left over here, so this copies the new bytes once and a few old ones.
        self._data = self._data + data if self._data else data
        self._at = 0

    def walk(self, messages: list[list[bytes]]) -> bytes | None:
        """Append the complete messages; return the next control frame, or None when the bytes are used up."""
        if self._body is not None:
            whole = self._gather()
            if whole is None:
                return None
            if not self.is_open or self._body_flags & COMMAND:
                return whole
            self._add(whole, self._body_flags, messages)
        data = self._data
        end: i64 = len(data)
        at: i64 = self._at
        frames = self._frames
        size: i64 = self._size
        size_max: i64 = self._message_size_max
        is_v1 = self.is_v1
        flags_max: i64 = MORE | LONG if self.is_open else -1
        prefixes = self.prefixes if self.is_open and not is_v1 else []
        while end - at >= 2:
            if len(frames) == 0 and end - at >= PREFIX_SIZE_MAX:
                for opening in prefixes:
                    if opening.is_at(data, at):
                        frames.append(opening.frames)
                        size = opening.body_size
                        at += opening.size
                        break
            flags: i64
            body_at: i64
            body_size: i64
            if is_v1:
                header_size: i64 = HEADER_SIZE_LONG_V1 if data[at] == 0xFF else 2
                if end - at < header_size:
                    break
                body_at = at + header_size
                body_size = size_of_body_v1(data, at)
                # Old libzmq leaves garbage in the other bits of a 1.0 frame's flags.
                flags = data[body_at - 1] & MORE
            else:
                flags = data[at]
                if flags & LONG:
                    if end - at < HEADER_SIZE_LONG:
                        break
                    body_at = at + HEADER_SIZE_LONG
                    body_size = read_i64_be(data, at + 1)
                else:
                    body_at = at + 2
                    body_size = data[at + 1]
            if flags > flags_max:
                self._check_control(flags, body_size)
                self._frames = frames
                self._size = size
                return self._control(data, flags, body_at, body_size)
            if body_size < 0 or body_size > size_max - size:
                raise errors.MessageTooLarge(int(size) + unsigned(body_size), size_max)
            size += body_size
            if len(frames) >= FRAMES_MAX:
                raise errors.TooManyFrames(FRAMES_MAX)
            at = body_at + body_size
            if at > end:
                self._begin(data, flags, body_at, body_size)
                at = end
                break
            frames.append(data[body_at:at])
            if not flags & MORE:
                messages.append(frames)
                frames = []
                size = 0
        # Not the whole buffer: an idle connection must not keep its last buffer alive.
        self._data = data[at:]
        self._at = 0
        self._frames = frames
        self._size = size
        return None

    def unfinished_size(self) -> int:
        """The number of bytes stored of an incomplete message or control frame."""
        size: i64 = self._size
        body = self._body
        if body is not None:
            if self.is_open and not self._body_flags & COMMAND:
                size -= self._missing
            else:
                size += self._body_size
        return size

    def missing_size(self) -> int:
        """The number of bytes that an incomplete body still lacks."""
        return int(self._missing) if self._body is not None else 0

    def _check_control(self, flags: i64, size: i64) -> None:
        """Raise for a frame that is neither part of a message at this point nor a valid control frame."""
        if flags & ~(MORE | LONG | COMMAND):
            raise errors.BadFrameFlags(flags)
        if self.has_commands and not flags & COMMAND:
            raise errors.HandshakeFailed("a message came before the handshake was done")
        if flags & COMMAND and not self.has_commands:
            raise errors.BadFrameFlags(flags)
        # Except 1.0 identities: their other flags may be garbage, see `walk`.
        if flags & MORE and not self.is_v1:
            raise errors.BadFrameFlags(flags)
        if size < 0 or size > self.control_size_max:
            if self.has_commands:
                raise errors.CommandTooLarge(unsigned(size), self.control_size_max)
            raise errors.IdentityTooLong(unsigned(size), self.control_size_max)

    def _control(self, data: bytes, flags: i64, body_at: i64, body_size: i64) -> bytes | None:
        stop: i64 = body_at + body_size
        if stop > len(data):
            self._begin(data, flags, body_at, body_size)
            self._data = b""
            return None
        self._at = stop
        return data[body_at:stop]

    def _begin(self, data: bytes, flags: i64, body_at: i64, body_size: i64) -> None:
        """Store the part of a body that has arrived."""
        body = BytesIO()
        self._body_size = body.write(data[body_at:])
        self._body = body
        self._body_flags = flags
        self._missing = body_at + body_size - len(data)

    def _gather(self) -> bytes | None:
        """Append the received bytes to the incomplete body; returns the body once it is complete."""
        body = self._body
        assert body is not None
        data = self._data
        if len(data) < self._missing:
            body.write(data)
            self._body_size += len(data)
            self._missing -= len(data)
            self._data = b""
            return None
        body.write(data[: self._missing])
        self._at = self._missing
        self._body = None
        return body.getvalue()  # no copy: BytesIO shares its buffer

    def _add(self, frame: bytes, flags: i64, messages: list[list[bytes]]) -> None:
        self._frames.append(frame)
        if not flags & MORE:
            messages.append(self._frames)
            self._frames = []
            self._size = 0


def size_of_body_v1(data: bytes, at: i64) -> i64:
    """The body size in a complete 1.0 header."""
    size: i64 = data[at]
    if size == 0xFF:
        size = read_i64_be(data, at + 1)
    if size == 0:
        raise errors.BadFrameSize(0)
    # A size with its top bit set reads as negative; the caller then refuses it as too large.
    return size - 1 if size > 0 else size


def unsigned(size: i64) -> int:
    """The unsigned value of a header's eight size bytes."""
    return int(size) if size >= 0 else int(size) + (1 << 64)
