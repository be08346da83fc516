"""The ids under which messages leave the broker: their numbers, permuted under a key, so that nobody can count from one to the next.

    id      sixteen hex digits: the number's two 32-bit halves through Speck64/128 (27 rounds of add, rotate, xor)
    ebus    <id>                                    scale0   <id>.<origin>.<client's id>
    emqp    00000000-0000-0000-<4 digits>-<12 digits>, where the client's own id cannot serve

A peer that presents a message's id was given it. No table is needed: the number is computed back. The key is made at the first start and
kept in the journal. Numbers below `first` left the broker before there was a key, as they are; they keep that form.

The claim is modest: a worker that sees any number of ids of its own can neither compute nor guess those of others. An id is not a
secret towards those who may see the message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from librt.strings import BytesWriter, write_i32_le, write_i64_le
from librt.vecs import append, vec
from mypy_extensions import i64

from dragoman.model.message import OWN_SHAPE, Message, fact_id, in_own_shape, own_digits
from dragoman.model.records import KEYED

if TYPE_CHECKING:
    from dragoman.model.peer import Peer

BOOT_SHIFT: Final = 40  # message_no = boot_no << 40 | counter
KEY_SIZE: Final = 16
DIGITS: Final = 16
ROUNDS: Final = 27
WORD: Final = 0xFFFFFFFF
HALF: Final = 0x7FFFFFFF
NO_KEY: Final = (1 << 63) - 1  # `first` where there is no key: every number is below it


@final
class WireIds:
    """Numbers to ids and back, for one broker."""

    def __init__(self) -> None:
        self.key: bytes = b""
        self.first: int = NO_KEY
        self.end: int = NO_KEY  # no number is so large, as far as we know
        self._round_keys: vec[i64] = vec[i64]()

    def set_key(self, key: bytes, first: int) -> None:
        """Numbers from `first` on leave permuted."""
        assert len(key) == KEY_SIZE, "a key of another size"
        self.key = key
        self.first = first
        self._round_keys = round_keys(key)

    def begin(self, key: bytes, boot_no: int) -> None:
        """A new boot numbers messages from now on; the first of them that has no key yet takes this one."""
        if not self.key and key:
            self.set_key(key, (boot_no << BOOT_SHIFT) + 1)
        self.end = boot_no + 1 << BOOT_SHIFT

    def write_key(self, out: BytesWriter) -> None:
        """A record of the key, written at every start: storage, not a fact. `i64 first, key (16)`"""
        write_i32_le(out, 13 + KEY_SIZE)
        out.append(KEYED)
        write_i64_le(out, self.first)
        out.write(self.key)

    # -- out ------------------------------------------------------------------------------------------------------------

    def write(self, out: BytesWriter, number: i64) -> None:
        """The sixteen digits of a message's id."""
        x: i64 = number >> 32 & WORD
        y: i64 = number & WORD
        if number >= i64(self.first):
            keys = self._round_keys
            at: i64 = 0
            while at < ROUNDS:
                x = ((x >> 8 | x << 24) + y & WORD) ^ keys[at]
                y = (y << 3 & WORD | y >> 29) ^ x
                at += 1
        write_i64_le(out, hex_digits(x))
        write_i64_le(out, hex_digits(y))

    def digits(self, number: int) -> bytes:
        out = BytesWriter()
        self.write(out, number)
        return out.getvalue()

    def of(self, m: Message) -> bytes:
        """A message's id towards workers that are told one in the shape of a uuid: its client's own where that is unique, else ours."""
        if not m.wire_id:
            m.wire_id = in_own_shape(self.digits(m.number))
        return m.wire_id

    # -- in -------------------------------------------------------------------------------------------------------------

    def number_at(self, text: bytes, at: i64) -> int:
        """The number whose id stands at an offset; -1 when no number of ours gives that id."""
        if at < 0 or len(text) < at + DIGITS:
            return -1
        x: i64 = word_at(text, at)
        y: i64 = word_at(text, at + 8)
        if x < 0 or y < 0 or not self.key:
            return -1
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
        """The number that stands there as it is, if numbers left the broker like that when it was given; else -1."""
        if at < 0 or len(text) < at + DIGITS:
            return -1
        x: i64 = word_at(text, at)
        y: i64 = word_at(text, at + 8)
        if x < 0 or x > HALF or y < 0:
            return -1
        number: int = x << 32 | y
        return number if 0 < number < self.first else -1

    def find(self, messages: dict[int, Message], text: bytes, at: i64, worker: Peer | None) -> Message | None:
        """The message, of some by their numbers, whose id stands there as this worker presents it. A plain number anybody can guess: it
        counts unless another worker holds the message."""
        number = self.number_at(text, at)
        m = messages.get(number) if number > 0 else None
        if m is None:
            number = self.plain_at(text, at)
            m = messages.get(number) if number > 0 else None
            if m is not None and worker is not None and m.worker is not None and m.worker is not worker:
                return None
        return m

    def fact_id(self, text: bytes, at: i64, said: bytes) -> bytes:
        """How facts name the message, open or not, whose id stands there; `said` when there is none of ours."""
        number = self.number_at(text, at)
        if number < 0:
            number = self.plain_at(text, at)
        return fact_id(number) if number > 0 else said

    def numbers_of(self, key: str) -> list[int]:
        """The numbers that a text may mean which is an id of any shape above; the likelier one first."""
        digits = digits_in(key)
        return [number for number in (self.number_at(digits, 0), self.plain_at(digits, 0)) if number > 0]


def digits_in(key: str) -> bytes:
    """The sixteen digits of a text that has one of the shapes above; empty for any other."""
    text = key.encode("utf-8", "replace")
    if text.startswith(OWN_SHAPE):
        return own_digits(text)
    if len(text) < DIGITS or (len(text) > DIGITS and text[DIGITS] != 0x2E):
        return b""
    return text[:DIGITS] if word_at(text, 0) >= 0 and word_at(text, 8) >= 0 else b""


def round_keys(key: bytes) -> vec[i64]:
    """Speck's key schedule: four words of the key, the first one first, become a word for each round."""
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
    """The eight hex digits of a 32-bit word as eight bytes, the first digit lowest: spread to nibbles, then to ASCII, all at once."""
    spread: i64 = word >> 16 | (word & 0xFFFF) << 32
    spread = spread >> 8 & 0x000000FF000000FF | (spread & 0x000000FF000000FF) << 16
    spread = spread >> 4 & 0x000F000F000F000F | (spread & 0x000F000F000F000F) << 8
    is_letter: i64 = spread + 0x0606060606060606 >> 4 & 0x0101010101010101
    return spread + 0x3030303030303030 + is_letter * 0x27


def word_at(text: bytes, at: i64) -> i64:
    """The word whose eight lower-case hex digits stand there; -1 when they do not."""
    word: i64 = 0
    end: i64 = at + 8
    while at < end:
        digit: i64 = text[at]
        if 48 <= digit <= 57:
            word = word << 4 | digit - 48
        elif 97 <= digit <= 102:
            word = word << 4 | digit - 87
        else:
            return -1
        at += 1
    return word
