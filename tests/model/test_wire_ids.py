"""Numbers as ids that leave the broker, and back."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

from dragoman.model.message import fact_id, in_own_shape, own_digits
from dragoman.model.wire_ids import KNOWN_COUNT, WireIds, word_at

BOOT = 1 << 40


def keyed(key: bytes = b"\x05" * 16, first: int = BOOT + 1) -> WireIds:
    ids = WireIds()
    ids.set_key(key, first)
    return ids


def test_the_permutation_is_speck64_128_as_its_authors_published_it() -> None:
    ids = keyed(bytes.fromhex("0001020308090a0b1011121318191a1b"), 1)
    assert ids.digits(0x3B7265747475432D) == b"8c6fa548454e028b"
    assert ids.number_at(b"8c6fa548454e028b", 0) == 0x3B7265747475432D


def test_every_number_comes_back_from_its_id() -> None:
    chance = Random(7)
    ids = keyed(chance.randbytes(16))
    numbers = [BOOT + 1, BOOT + 2, (1 << 63) - 2] + [chance.randrange(BOOT + 1, 1 << 63) for _ in range(500)]
    for number in numbers:
        digits = ids.digits(number)
        assert ids.number_at(digits, 0) == number, "seed 7"
        assert ids.number_at(b"xx" + digits + b".more", 2) == number, "seed 7"
        assert ids.plain_at(digits, 0) == -1, "seed 7"
        assert ids.numbers_of(digits.decode()) == [number], "seed 7"
        assert ids.numbers_of(in_own_shape(digits).decode()) == [number], "seed 7"
        assert ids.numbers_of(f"{digits.decode()}.origin.client") == [number], "seed 7"


def test_eight_digits_are_a_word_only_in_their_one_form() -> None:
    chance = Random(11)
    for _ in range(3000):
        text = bytes(chance.choice(b"0123456789abcdefABGg@/:`\x00\xb0\xff") for _ in range(8))
        expected = int(text, 16) if all(byte in b"0123456789abcdef" for byte in text) else -1
        assert word_at(b"?" + text, 1) == expected, f"seed 11, {text!r}"
    for word in (0, 1, 0x89ABCDEF, 0xFFFFFFFF):
        assert word_at(b"%08x" % word, 0) == word


def test_ids_of_numbers_in_a_row_have_about_half_of_their_bits_in_common() -> None:
    ids = keyed()
    values = [int(ids.digits(BOOT + 1 + count), 16) for count in range(2000)]
    assert len(set(values)) == 2000
    differing = [(a ^ b).bit_count() for a, b in pairwise(values)]
    assert 31 < sum(differing) / len(differing) < 33
    assert min(differing) >= 8


def test_another_key_gives_other_ids() -> None:
    assert keyed(b"\x05" * 16).digits(BOOT + 1) != keyed(b"\x05" * 15 + b"\x04").digits(BOOT + 1)


def test_numbers_from_before_the_key_keep_their_form_and_no_others_have_it() -> None:
    ids = keyed(first=2 * BOOT + 1)
    assert ids.digits(BOOT + 5) == b"0000010000000005"
    assert ids.plain_at(b"0000010000000005", 0) == BOOT + 5
    assert ids.number_at(b"0000010000000005", 0) == -1
    assert ids.plain_at(b"0000020000000005", 0) == -1
    assert ids.plain_at(b"0000000000000000", 0) == -1


@pytest.mark.parametrize("text", [b"", b"00", b"00000000000000zz", b"8C6FA548454E028B", b"ffffffffffffff f"])
def test_what_is_no_id_has_no_number(text: bytes) -> None:
    ids = keyed()
    assert ids.number_at(text, 0) == ids.plain_at(text, 0) == -1
    assert ids.number_at(text, -1) == ids.number_at(text, 100) == -1
    assert ids.numbers_of(text.decode()) == []


def test_without_a_key_numbers_leave_as_they_are() -> None:
    ids = WireIds()
    assert ids.digits(BOOT + 5) == b"0000010000000005"
    assert ids.number_at(b"0000010000000005", 0) == -1
    assert ids.plain_at(b"0000010000000005", 0) == BOOT + 5


def test_facts_name_a_message_in_the_same_shape_by_its_number() -> None:
    assert fact_id(BOOT + 5) == b"00000000-0000-0000-0000-010000000005"
    assert own_digits(fact_id(BOOT + 5)) == b"0000010000000005"
    assert own_digits(b"00000001-0000-0000-0000-010000000005") == own_digits(b"short") == b""


def test_an_id_is_known_after_very_many_others_were_given_out_too() -> None:
    """Those that were given out last are looked up, all others are computed."""
    ids = keyed()
    digits = [ids.digits(BOOT + 1 + count) for count in range(3 * KNOWN_COUNT)]
    assert [ids.number_at(text, 0) for text in digits] == [BOOT + 1 + count for count in range(3 * KNOWN_COUNT)]
    other = keyed(b"\x06" * 16)
    assert [other.number_at(text, 0) for text in digits[-10:]] != [ids.number_at(text, 0) for text in digits[-10:]]
    ids.set_key(b"\x07" * 16, BOOT + 1)
    assert ids.number_at(digits[-1], 0) != BOOT + 3 * KNOWN_COUNT
