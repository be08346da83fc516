"""RISP streams cut anywhere mean the same; sizes are refused before their bytes are kept."""

from __future__ import annotations

import random

import pytest

from dragoman.errors import OperationWithoutId, PayloadTooLarge, RepeatedTooOften
from dragoman.limits import RISP_REPEATED_SIZE_MAX
from dragoman.wire.risp.reader import RispReader
from tests.dialects.rq.spelling import risp
from tests.wire.risp.transcript import Transcript

SIZE_MAX = 1000
# Every operation in the originals' order and in another, repeated acting bytes without CLEAR, signs of life anywhere.
STREAM = " ".join(
    [
        "CLEAR ID=7 QUEUE=jobs PAYLOAD=hello REQUEST",
        "CLEAR ID=8 QUEUE=jobs PAYLOAD=hello NOREPLY REQUEST",
        "CLEAR ID=9 QUEUE=jobs PAYLOAD=hello RETRIES=3 REQUEST",
        "CLEAR ID=10 QUEUE=a-longer-name-than-eight PAYLOAD=hello NOREPLY RETRIES=3 TIMEOUT=60000 REQUEST",
        "CLEAR ID=4294967295 QUEUE=a-longer-name-than-EIGHT PAYLOAD= TIMEOUT=1 REQUEST",
        "REQUEST PING REQUEST DELIVERED",  # the fields are still there
        "CLEAR ID=7 DELIVERED PONG",
        "REPLY UNDELIVERED",
        "CLEAR ID=7 PAYLOAD=world REPLY",
        "PING NOP BROADCAST",
        "CLEAR PING PAYLOAD=x PONG ID=2147483648 QUEUEID=65535 QUEUE=q TIMEOUT=3 NOREPLY REQUEST",
        "CLEAR EXCLUSIVE QUEUE=jobs MAX=1 PRIORITY=20 CONSUME",
        "CLEAR QUEUE=jobs CONSUME",
        "CLEAR QUEUEID=1 QUEUE=jobs CONSUMING",
        "CLEAR QUEUEID=1 PAYLOAD=body NOREPLY ID=3 REQUEST",
        "CLEAR QUEUE=jobs PAYLOAD=all BROADCAST",
        "CLEAR QUEUEID=2 PAYLOAD=one PAYLOAD=two BROADCAST",
        "CLEAR QUEUEID=2 CANCEL_QUEUE",
        "CLEAR ID=5 UNDELIVERED",
        "CLEAR 63 95=1 127=2 159=3 191=abc 223=defg 255=hijkl ID=1 QUEUE=q PAYLOAD=r 31 REQUEST",
        "CLOSING SERVER_FULL CLEAR CLOSING",
    ]
)
BYTES = risp(STREAM)


def heard(*parts: bytes) -> list[tuple[object, ...]]:
    ear = Transcript()
    reader = RispReader(ear, SIZE_MAX)
    for part in parts:
        reader.feed(part)
    return ear.operations


def test_each_operation_tells_what_its_fields_say() -> None:
    assert heard(risp("CLEAR ID=7 QUEUE=jobs PAYLOAD=hello NOREPLY RETRIES=3 TIMEOUT=9 REQUEST")) == [
        ("request", b"\0\0\0\x07", b"jobs", -1, b"hello", True, 3, 9)
    ]
    assert heard(risp("CLEAR QUEUEID=1 PAYLOAD=body ID=3 REQUEST")) == [
        ("request", b"\0\0\0\x03", b"", 1, b"body", False, -1, -1)
    ]
    assert heard(risp("CLEAR ID=4294967295 DELIVERED CLEAR ID=2147483648 PAYLOAD=z REPLY")) == [
        ("delivered", 4294967295),
        ("reply", 2147483648, b"z"),
    ]
    assert heard(risp("CLEAR EXCLUSIVE QUEUE=jobs MAX=1 PRIORITY=20 CONSUME")) == [
        ("consume", b"jobs", -1, 1, 20, True)
    ]


def test_fields_stay_until_clear() -> None:
    assert heard(risp("CLEAR ID=1 QUEUE=q PAYLOAD=r NOREPLY REQUEST ID=2 REQUEST CLEAR ID=3 QUEUE=q REQUEST")) == [
        ("request", b"\0\0\0\x01", b"q", -1, b"r", True, -1, -1),
        ("request", b"\0\0\0\x02", b"q", -1, b"r", True, -1, -1),
        ("request", b"\0\0\0\x03", b"q", -1, b"", False, -1, -1),
    ]


def test_a_stream_cut_in_two_anywhere_means_the_same() -> None:
    whole = heard(BYTES)
    assert len(whole) == 32
    for cut in range(len(BYTES) + 1):
        assert heard(BYTES[:cut], BYTES[cut:]) == whole, f"cut at {cut}"


def test_a_stream_that_comes_a_byte_at_a_time_means_the_same() -> None:
    assert heard(*[BYTES[at : at + 1] for at in range(len(BYTES))]) == heard(BYTES)


def test_a_stream_cut_into_any_pieces_means_the_same() -> None:
    for seed in range(200):
        chance = random.Random(seed)
        cuts = sorted(chance.choices(range(len(BYTES) + 1), k=chance.randrange(12)))
        parts = [BYTES[a:b] for a, b in zip([0, *cuts], [*cuts, len(BYTES)], strict=True)]
        assert heard(*parts) == heard(BYTES), f"seed {seed}"


@pytest.mark.parametrize("start", ["CLEAR ID=1", "CLEAR ID=1 QUEUE=q", "CLEAR"])
@pytest.mark.parametrize("cut", [0, 1])
def test_a_payload_over_the_limit_is_refused_by_its_announcement(start: str, cut: int) -> None:
    ear = Transcript()
    reader = RispReader(ear, SIZE_MAX)
    opening = risp(start)
    reader.feed(opening[: len(opening) * cut])
    with pytest.raises(PayloadTooLarge) as refused:
        reader.feed(opening[len(opening) * cut :] + b"\xe0\xff\xff\xff\xff" + b"z" * 20)
    assert (refused.value.size, refused.value.size_max) == (0xFFFFFFFF, SIZE_MAX)
    assert ear.operations == []


def test_a_payload_of_just_the_limit_is_taken_and_one_more_is_not() -> None:
    body = "x" * SIZE_MAX
    assert heard(risp(f"CLEAR ID=1 PAYLOAD={body} REPLY")) == [("reply", 1, body.encode())]
    with pytest.raises(PayloadTooLarge):
        heard(risp(f"CLEAR ID=1 PAYLOAD={body}x REPLY"))


def test_an_unknown_text_of_any_length_is_skipped_without_being_kept() -> None:
    ear = Transcript()
    reader = RispReader(ear, SIZE_MAX)
    reader.feed(risp("CLEAR ID=1") + b"\xff\x00\x10\x00\x00")
    for _ in range(16):
        reader.feed(b"\x0a" * 65536)
    reader.feed(risp("DELIVERED"))
    assert ear.operations == [("delivered", 1)]


@pytest.mark.parametrize(("word", "number"), [("REQUEST", 10), ("REPLY", 11), ("DELIVERED", 13), ("UNDELIVERED", 16)])
def test_what_needs_an_id_and_has_none_is_refused(word: str, number: int) -> None:
    with pytest.raises(OperationWithoutId) as refused:
        heard(risp(f"CLEAR ID=1 CLEAR QUEUE=q PAYLOAD=r {word}"))
    assert refused.value.command == number


@pytest.mark.parametrize("head", ["CLEAR", "CLEAR PING ID=1"])  # read whole, and gathered
@pytest.mark.parametrize("again", ["REQUEST", "ID=2 REQUEST", "BROADCAST", "ID=3 REPLY"])
def test_a_payload_that_few_bytes_repeat_again_and_again_costs_the_connection(head: str, again: str) -> None:
    ear = Transcript()
    reader = RispReader(ear, SIZE_MAX)
    reader.feed(risp(f"{head} ID=1 QUEUE=q PAYLOAD={'x' * SIZE_MAX} REQUEST"))
    with pytest.raises(RepeatedTooOften):
        reader.feed(risp(again) * 100_000)
    repeated = len(ear.operations) - 1
    assert RISP_REPEATED_SIZE_MAX // (SIZE_MAX + 64) <= repeated <= RISP_REPEATED_SIZE_MAX // SIZE_MAX + 2


def test_an_operation_that_one_byte_repeats_again_and_again_costs_the_connection() -> None:
    ear = Transcript()
    reader = RispReader(ear, SIZE_MAX)
    with pytest.raises(RepeatedTooOften):
        reader.feed(risp("CLEAR QUEUE=q CONSUME") * 2 + risp("CONSUME") * 100_000)
    assert len(ear.operations) < 20_000


def test_a_peer_that_says_everything_anew_needs_no_clear() -> None:
    ear = Transcript()
    reader = RispReader(ear, SIZE_MAX)
    reader.feed(risp("ID=1 DELIVERED ID=1 PAYLOAD=value REPLY QUEUE=q CONSUME ID=2 PAYLOAD= REQUEST") * 30_000)
    assert len(ear.operations) == 120_000


def test_a_payload_may_be_repeated_once_whatever_its_size() -> None:
    body = "x" * (RISP_REPEATED_SIZE_MAX * 2)
    ear = Transcript()
    RispReader(ear, len(body)).feed(risp(f"CLEAR ID=1 QUEUE=q PAYLOAD={body} REQUEST BROADCAST"))
    assert [said[0] for said in ear.operations] == ["request", "broadcast"]
