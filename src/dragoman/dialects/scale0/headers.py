"""Parses and builds the header of a Scale0 message: one JSON object.

A round trip has three headers, so plain ones (ASCII, no escapes, no nesting except a list of names) are parsed in one pass by offset. All
others use a JSON parser, which is slower; both give the same result, and only the slow one reports errors.

An `id` belongs to its client: a text or a number, it is returned exactly as it was sent. So its token is stored as written.
"""

from __future__ import annotations

import math
from typing import Final, final

import msgspec
from librt.strings import read_i64_le
from mypy_extensions import i64

from dragoman.dialects.traceparent import is_traceparent
from dragoman.limits import HEADERS_SIZE_MAX

NO_TIME: Final = -1
UNKNOWN_LOAD: Final = -1.0
INTERVAL_S_MAX: Final = 86400.0  # a worker with less than one heartbeat a day is useless
QUOTE: Final = 0x22
COMMA: Final = 0x2C
ZERO: Final = 0x30
NINE: Final = 0x39
BACKSLASH: Final = 0x5C
DELETE: Final = 0x7F
EVERY_BYTE: Final = 0x0101010101010101  # times a byte: that byte eight times
RAW: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


@final
class Header:
    """The fields of a header. Texts are UTF-8 bytes; a token is a JSON value as it was written; empty: not present."""

    def __init__(self) -> None:
        self.problem: str = ""  # why it is invalid
        self.id: bytes = b""  # token; for a plain id use `id_token`
        self.has_plain_id: bool = False  # it is a text without characters to escape
        self.text: bytes = b""  # if so, the header, with the offsets of the id in it
        self.id_at: i64 = 0
        self.id_end: i64 = 0
        self.service: bytes = b""
        self.services: bytes = b""  # token
        self.version: bytes = b""  # token
        self.time_ms: i64 = NO_TIME
        self.interval_s: float = 0.0
        self.is_busy: bool = False
        self.identity: bytes = b""
        self.config_type: bytes = b""
        self.code: int = 0
        self.reason: bytes = b""
        self.broker: bytes = b""
        self.load: float = UNKNOWN_LOAD
        self.traceparent: bytes = b""

    def id_token(self) -> bytes:
        return self.text[self.id_at : self.id_end] if self.has_plain_id else self.id


def read_header(text: bytes) -> Header:
    h = Header()
    if not walk(text, h):
        h = Header()
        read_slowly(text, h)
    return h


@final
class HeaderCache:
    """Caches a peer's last header. The next one is mostly identical, or differs only in its id, and need not be parsed."""

    def __init__(self) -> None:
        self.text: bytes = b""
        self.last = Header()
        self.head: bytes = b""  # up to the quote that begins the id
        self.tail: bytes = b""  # from the quote that ends it
        self.head_size: i64 = 0  # 0: it has no plain id
        self.tail_size: i64 = 0

    def read(self, text: bytes) -> Header:
        """Parse a header; the result is valid until the next call."""
        if text == self.text:
            return self.last
        head_size: i64 = self.head_size
        end: i64 = len(text) - self.tail_size
        if head_size > 0 and end >= head_size and is_at(text, end, self.tail) and is_at(text, 0, self.head):
            if plain_end(text, head_size, end + 1) == end:
                last = self.last
                last.text = text
                last.id_end = end + 1
                self.text = text
                return last
        h = read_header(text)
        if len(text) > HEADERS_SIZE_MAX:
            return h  # refused later, so not worth caching
        self.text = text
        self.last = h
        self.head_size = 0
        if h.has_plain_id:
            self.head_size = h.id_at + 1
            self.head = text[: h.id_at + 1]
            self.tail = text[h.id_end - 1 :]
            self.tail_size = len(self.tail)
        return h


def walk(text: bytes, h: Header) -> bool:
    """Parse a plain header; False when it is not plain, whether it is valid or not."""
    end: i64 = len(text)
    if end == 0:
        return True
    if end < 2 or end > HEADERS_SIZE_MAX or text[0] != 0x7B or text[end - 1] != 0x7D:
        return False
    end -= 1  # the closing brace
    at: i64 = skip_blanks(text, 1, end)
    if at == end:
        return True
    while True:
        if text[at] != QUOTE:
            return False
        key_at: i64 = at + 1
        key_end: i64 = plain_end(text, key_at, end)
        if key_end < 0:
            return False
        at = skip_blanks(text, key_end + 1, end)
        if at >= end or text[at] != 0x3A:
            return False
        at = skip_blanks(text, at + 1, end)
        if at >= end:
            return False
        value_at: i64 = at
        first: i64 = text[at]
        if first == QUOTE:
            at = plain_end(text, at + 1, end) + 1
        elif ZERO <= first <= NINE:
            at = number_end(text, at, end)
        elif first == 0x5B:
            at = list_end(text, at + 1, end)
        elif text[at : at + 4] == b"true":
            at += 4
        elif text[at : at + 5] == b"false":
            at += 5
        else:
            return False
        if at <= 0 or not take(h, text, key_at, key_end, value_at, at):
            return False
        at = skip_blanks(text, at, end)
        if at == end:
            return True
        if text[at] != COMMA:
            return False
        at = skip_blanks(text, at + 1, end)
        if at >= end:
            return False


def skip_blanks(text: bytes, at: i64, end: i64) -> i64:
    while at < end and (text[at] == 0x20 or text[at] == 0x0A or text[at] == 0x0D or text[at] == 0x09):
        at += 1
    return at


def plain_end(text: bytes, at: i64, end: i64) -> i64:
    """The offset of the closing quote of a plain text that begins at `at`; -1: it is not plain."""
    while at + 8 <= end and is_plain_word(read_i64_le(text, at)):  # an id has some eighty bytes
        at += 8
    while at < end:
        char: i64 = text[at]
        if char == QUOTE:
            return at
        if char < 0x20 or char >= DELETE or char == BACKSLASH:
            return -1
        at += 1
    return -1


def is_plain_word(word: i64) -> bool:
    """Whether none of eight bytes ends a plain text or must be escaped in it; all eight are compared at once.

    With all bytes below 0x80, `byte - n` borrows, which sets bit 7 of the result, where a byte is below n (or after such a byte); so a byte that
    is equal to another has a difference (by xor) below one."""
    ones: i64 = EVERY_BYTE  # products of a variable: mypyc makes an int object of a literal above 2**62
    if word >> 7 & ones != 0:
        return False
    quotes: i64 = word ^ ones * QUOTE
    backslashes: i64 = word ^ ones * BACKSLASH
    deletes: i64 = word ^ ones * DELETE
    below: i64 = word - ones * 0x20 | quotes - ones | backslashes - ones | deletes - ones
    return below >> 7 & ones == 0


def number_end(text: bytes, at: i64, end: i64) -> i64:
    """The offset after a number without sign and exponent; -1: not such a number."""
    start: i64 = at
    while at < end and ZERO <= text[at] <= NINE:
        at += 1
    if (text[start] == ZERO and at - start > 1) or at - start > 15:
        return -1
    if at < end and text[at] == 0x2E:
        at += 1
        start = at
        while at < end and ZERO <= text[at] <= NINE:
            at += 1
        if at == start:
            return -1
    if at < end and (text[at] == 0x65 or text[at] == 0x45):
        return -1
    return at


def list_end(text: bytes, at: i64, end: i64) -> i64:
    """The offset after a list of plain texts; -1: not such a list."""
    at = skip_blanks(text, at, end)
    if at < end and text[at] == 0x5D:
        return at + 1
    while at < end and text[at] == QUOTE:
        at = plain_end(text, at + 1, end)
        if at < 0:
            return -1
        at = skip_blanks(text, at + 1, end)
        if at >= end:
            return -1
        if text[at] == 0x5D:
            return at + 1
        if text[at] != COMMA:
            return -1
        at = skip_blanks(text, at + 1, end)
    return -1


def is_at(text: bytes, at: i64, part: bytes) -> bool:
    """Whether `part` occurs at `at`, where the text must be long enough: compares eight bytes at a time, without allocating."""
    index: i64 = 0
    size: i64 = len(part)
    while index + 8 <= size:
        if read_i64_le(text, at + index) != read_i64_le(part, index):
            return False
        index += 8
    if index > 0:  # the rest is in the last eight bytes
        return read_i64_le(text, at + size - 8) == read_i64_le(part, size - 8)
    while index < size:
        if text[at + index] != part[index]:
            return False
        index += 1
    return True


def take(h: Header, text: bytes, key_at: i64, key_end: i64, at: i64, end: i64) -> bool:
    """Store one member; the common ones without temporary objects."""
    size: i64 = key_end - key_at
    if size == 2 and is_at(text, key_at, b"id"):
        h.has_plain_id = text[at] == QUOTE
        if h.has_plain_id:
            h.text = text
            h.id_at = at
            h.id_end = end
        else:
            h.id = text[at:end]
        return text[at] <= NINE  # a quote or a digit
    if size == 4 and is_at(text, key_at, b"time"):
        return take_time(h, text, at, end)
    if size == 7 and is_at(text, key_at, b"service"):
        if text[at] != QUOTE:
            return False
        h.service = text[at + 1 : end - 1]
        return True
    if size == 8 and is_at(text, key_at, b"services"):
        h.services = text[at:end]
        return text[at] == QUOTE or text[at] == 0x5B
    if size == 14 and is_at(text, key_at, b"config_version"):
        h.version = text[at:end]
        return True
    return put(h, text[key_at:key_end], text[at:end])


def take_time(h: Header, text: bytes, at: i64, end: i64) -> bool:
    if text[at] > NINE or text[at] == QUOTE:
        return False
    time_ms: i64 = 0
    while at < end and text[at] != 0x2E:
        time_ms = time_ms * 10 + text[at] - ZERO
        at += 1
    part: i64 = 0
    while part < 3:
        at += 1
        time_ms *= 10
        if at < end:
            time_ms += text[at] - ZERO
        part += 1
    h.time_ms = time_ms
    return True


def read_slowly(text: bytes, h: Header) -> None:
    if len(text) > HEADERS_SIZE_MAX:
        h.problem = f"a header of more than {HEADERS_SIZE_MAX} bytes"
        return
    try:
        text.decode()
        members: dict[str, msgspec.Raw] = RAW.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        h.problem = "the header is not one JSON object"
        return
    for key, raw in members.items():
        name = key.encode("utf-8", "replace")
        if not put(h, name, bytes(raw)) and not h.problem:
            h.problem = f"{key[:40]} has a value it cannot have"


def put(h: Header, key: bytes, token: bytes) -> bool:
    """Store a member by its token; False when the value is invalid for this key. `null` means absent."""
    if token == b"null":
        return True
    if key == b"id":
        h.id = token
        return token[0] == QUOTE or token[0] == 0x2D or ZERO <= token[0] <= NINE
    if key == b"heartbeat_interval":
        h.interval_s = number(token)
        return 0.0 < h.interval_s <= INTERVAL_S_MAX
    if key == b"busy":
        h.is_busy = token == b"true"
        return h.is_busy or token == b"false"
    if key == b"config_version" or key == b"configversion":
        h.version = token
    elif key == b"service":
        h.service = text_of(token)
        return token[0] == QUOTE
    elif key == b"services":
        h.services = token
        return token[0] == QUOTE or token[0] == 0x5B
    elif key == b"identity":
        h.identity = text_of(token)
    elif key == b"config_type":
        h.config_type = text_of(token)
    elif key == b"time":
        seconds = number(token)
        if math.isnan(seconds):
            return False
        h.time_ms = i64(int(seconds * 1000)) if seconds >= 0.0 else 0
    elif key == b"code":
        code = number(token)
        h.code = int(code) if 0.0 <= code < 1e9 else 0
    elif key == b"reason":
        h.reason = text_of(token)
    elif key == b"broker":
        h.broker = text_of(token)
    elif key == b"traceparent":
        value = text_of(token)
        h.traceparent = value if is_traceparent(value) else b""
    elif key == b"load":
        load = number(token)
        h.load = load if 0.0 <= load <= 1.0 else UNKNOWN_LOAD
    return True


def number(token: bytes) -> float:
    """Parse a number, also one in quotes; NaN when it is none. Limited to what a float represents exactly."""
    text = text_of(token)
    try:
        value = float(text)
    except ValueError:
        return math.nan
    return value if -9e15 < value < 9e15 else math.nan


def text_of(token: bytes) -> bytes:
    """A token as text: the content of a string, anything else as written."""
    if token[:1] != b'"':
        return token
    if b"\\" not in token:
        return token[1:-1]
    try:
        return msgspec.json.decode(token, type=str).encode("utf-8", "replace")
    except msgspec.DecodeError:
        return b""


def names_of(token: bytes) -> list[bytes]:
    """The names in `services`: a list of texts, or one text with commas."""
    if not token:
        return []
    try:
        value: object = msgspec.json.decode(token)
    except (msgspec.DecodeError, RecursionError):
        return []
    items: list[object] = []
    if isinstance(value, list):
        items = value
    elif isinstance(value, str):
        items = [part.strip() for part in value.split(",")]
    found: dict[bytes, bool] = {}  # ordered, and fast to search with ten thousand names
    for item in items:
        if isinstance(item, str) and item:
            found[item.encode("utf-8", "replace")] = True
    return list(found)


def is_plain(text: bytes) -> bool:
    """Whether a text can be put between quotes without escaping."""
    at: i64 = 0
    end: i64 = len(text)
    while at < end:
        char: i64 = text[at]
        if char < 0x20 or char >= DELETE or char == QUOTE or char == BACKSLASH:
            return False
        at += 1
    return True


def token_of(text: bytes) -> bytes:
    """A text as a JSON string."""
    if is_plain(text):
        return b'"%s"' % text
    return msgspec.json.encode(text.decode("utf-8", "replace"))
