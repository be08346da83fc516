"""The ids of messages on the wire: their numbers, permuted with a key, so that one id cannot be derived from another.

    id      sixteen hex digits: the number's two 32-bit halves through Speck64/128 (27 rounds of add, rotate, xor)
    ebus    <id>                                    scale0   <id>.<origin>.<client's id>
    emqp    00000000-0000-0000-<4 digits>-<12 digits>, if the client's own id cannot be used

A peer that presents a message's id was sent it. No table is needed: the permutation is inverted. The key is created at the first start and
kept in the journal. Numbers below `first` were sent before there was a key, as plain numbers; they keep that form.

The guarantee is limited: a worker that sees any number of its own ids can neither compute nor guess those of others. An id is not a
secret from peers that may see the message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from librt.strings import BytesWriter, read_i64_le, write_i32_le, write_i64_le
from librt.vecs import append, vec
from mypy_extensions import i64

from dragoman.model.facts.layout import BOOT_SHIFT, KEYED, KEYED_KEY
from dragoman.model.message import OWN_SHAPE, Message, fact_id, in_own_shape, own_digits

if TYPE_CHECKING:
    from dragoman.model.peer import Peer

KEY_SIZE: Final = 16
DIGITS: Final = 16
ROUNDS: Final = 27
WORD: Final = 0xFFFFFFFF
HALF: Final = 0x7FFFFFFF
# A cache of the ids sent last, because inverting 27 rounds takes 90 ns. The slot is the last twelve bits of an id, so those are not stored.
KNOWN_BITS: Final = 12
KNOWN_COUNT: Final = 1 << KNOWN_BITS
KNOWN_MASK: Final = KNOWN_COUNT - 1
NO_KEY: Final = (1 << 63) - 1  # `first` where there is no key: every number is below it


@final
class WireIds:
    """Converts numbers to ids and back, for one broker."""

    def __init__(self) -> None:
        self.key: bytes = b""
        self.first: int = NO_KEY
        self.end: int = NO_KEY  # numbers from here on do not exist yet
        self._round_keys: vec[i64] = vec[i64]()
        self._known_ids: vec[i64] = vec[i64]([0] * KNOWN_COUNT)
        self._known_numbers: vec[i64] = vec[i64]([0] * KNOWN_COUNT)

    def set_key(self, key: bytes, first: int) -> None:
        """Permute numbers from `first` on with this key."""
        assert len(key) == KEY_SIZE, "a key of another size"
        self.key = key
        self.first = first
        self._round_keys = round_keys(key)
        self._known_numbers = vec[i64]([0] * KNOWN_COUNT)

    def begin(self, key: bytes, boot_no: int) -> None:
        """Begin a boot; use this key if there is none yet."""
        if not self.key and key:
            self.set_key(key, (boot_no << BOOT_SHIFT) + 1)
        self.end = boot_no + 1 << BOOT_SHIFT

    def write_key(self, out: BytesWriter) -> None:
        """Write the record of the key, at every start: storage, not a fact. `i64 first, key (16)`"""
        write_i32_le(out, KEYED_KEY + KEY_SIZE)
        out.append(KEYED)
        write_i64_le(out, self.first)
        out.write(self.key)

    def write(self, out: BytesWriter, number: i64) -> None:
        """Write the sixteen digits of a message's id."""
        x: i64 = number >> 32 & WORD
        y: i64 = number & WORD
        if number >= i64(self.first):
            keys = self._round_keys
            at: i64 = 0
            while at < ROUNDS:
                x = ((x >> 8 | x << 24) + y & WORD) ^ keys[at]
                y = (y << 3 & WORD | y >> 29) ^ x
                at += 1
            slot: i64 = y & KNOWN_MASK
            self._known_ids[slot] = x << 20 | y >> KNOWN_BITS
            self._known_numbers[slot] = number
        write_i64_le(out, hex_digits(x))
        write_i64_le(out, hex_digits(y))

    def digits(self, number: int) -> bytes:
        out = BytesWriter()
        self.write(out, number)
        return out.getvalue()

    def of(self, m: Message) -> bytes:
        """A message's id for workers whose dialect uses UUIDs: its client's id if that is unique, else the broker's own as a UUID."""
        if len(m.wire_id) == 0:
            m.wire_id = in_own_shape(self.digits(m.number))
        return m.wire_id

    def number_at(self, text: bytes, at: i64) -> int:
        """The number of the id at an offset; -1 if no number of the broker has that id."""
        if at < 0 or len(text) < at + DIGITS:
            return -1
        x: i64 = word_at(text, at)
        y: i64 = word_at(text, at + 8)
        if x < 0 or y < 0 or not self.key:
            return -1
        slot: i64 = y & KNOWN_MASK
        if self._known_ids[slot] == (x << 20 | y >> KNOWN_BITS):
            known: i64 = self._known_numbers[slot]
            if known != 0:
                return known
        keys = self._round_keys
        turn: i64 = ROUNDS
        while turn > 0:
            turn -= 1
            y ^= x
            y = y >> 3 | y << 29 & WORD
            x = (x ^ keys[turn]) - y & WORD
            x = x << 8 & WORD | x >> 24
        if x > HALF:
            return -1
        number: int = x << 32 | y
        return number if self.first <= number < self.end else -1

    def plain_at(self, text: bytes, at: i64) -> int:
        """The plain number at an offset, if it is from before there was a key; else -1."""
        if at < 0 or len(text) < at + DIGITS:
            return -1
        x: i64 = word_at(text, at)
        y: i64 = word_at(text, at + 8)
        if x < 0 or x > HALF or y < 0:
            return -1
        number: int = x << 32 | y
        return number if 0 < number < self.first else -1

    def find(self, messages: dict[int, Message], text: bytes, at: i64, worker: Peer | None) -> Message | None:
        """The message in `messages` whose id is at an offset, as presented by this worker. A plain number can be guessed: it counts unless
        another worker holds the message."""
        number = self.number_at(text, at)
        m = messages.get(number) if number > 0 else None
        if m is None:
            number = self.plain_at(text, at)
            m = messages.get(number) if number > 0 else None
            if m is not None and worker is not None and m.worker is not None and m.worker is not worker:
                return None
        return m

    def fact_id(self, text: bytes, at: i64, text_id: bytes) -> bytes:
        """The id in facts of the message, open or not, whose id is at an offset; `text_id` if it is not an id of the broker."""
        number = self.number_at(text, at)
        if number < 0:
            number = self.plain_at(text, at)
        return fact_id(number) if number > 0 else text_id

    def numbers_of(self, key: str) -> list[int]:
        """The numbers that a text may denote as an id in any form above, the likelier one first."""
        digits = digits_in(key)
        return [number for number in (self.number_at(digits, 0), self.plain_at(digits, 0)) if number > 0]


def digits_in(key: str) -> bytes:
    """The sixteen digits of an id in any form above; empty for any other text."""
    text = key.encode("utf-8", "replace")
    if text.startswith(OWN_SHAPE):
        return own_digits(text)
    if len(text) < DIGITS or (len(text) > DIGITS and text[DIGITS] != 0x2E):
        return b""
    return text[:DIGITS] if word_at(text, 0) >= 0 and word_at(text, 8) >= 0 else b""


def round_keys(key: bytes) -> vec[i64]:
    """Speck's key schedule: expands the four words of the key, the first one first, to one word per round."""
    words = [int.from_bytes(key[at : at + 4], "little") for at in range(0, KEY_SIZE, 4)]
    keys = vec[i64]()
    y: i64 = words[0]
    rest = words[1:]
    turn: i64 = 0
    while turn < ROUNDS:
        keys = append(keys, y)
        x: i64 = rest[turn]
        x = ((x >> 8 | x << 24) + y & WORD) ^ turn
        rest.append(int(x))
        y = (y << 3 & WORD | y >> 29) ^ x
        turn += 1
    return keys


def hex_digits(word: i64) -> i64:
    """The eight hex digits of a 32-bit word as eight bytes, the first digit lowest: spread to one nibble per byte, then all to ASCII at once."""
    spread: i64 = word >> 16 | (word & 0xFFFF) << 32
    spread = spread >> 8 & 0x000000FF000000FF | (spread & 0x000000FF000000FF) << 16
    spread = spread >> 4 & 0x000F000F000F000F | (spread & 0x000F000F000F000F) << 8
    is_letter: i64 = spread + 0x0606060606060606 >> 4 & 0x0101010101010101
    return spread + 0x3030303030303030 + is_letter * 0x27


def word_at(text: bytes, at: i64) -> i64:
    """The word given by eight lower-case hex digits at an offset; -1 if they are not such digits."""
    digits: i64 = read_i64_le(text, at)
    word: i64 = (digits & 0x0F0F0F0F0F0F0F0F) + (digits >> 6 & 0x0101010101010101) * 9
    word = (word << 4 | word >> 8) & 0x00FF00FF00FF00FF
    word = (word << 8 | word >> 16) & 0x0000FFFF0000FFFF
    word = (word << 16 | word >> 32) & WORD
    if hex_digits(word) != digits:  # no conditional expression: mypyc would make an int object of the word
        return -1
    return word
