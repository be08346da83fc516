"""Frames around a command: empty ones before it, the version, case, and messages that are too short or unknown."""

from __future__ import annotations

import pytest

from dragoman.wire.zmtp.frames import encode_message
from tests.core.harness import InMemoryBroker
from tests.dialects.emqp.ready_peers import JOB, notes, ready_worker, results


@pytest.mark.parametrize("empties", [0, 1, 2])
def test_as_many_empty_frames_as_the_peer_sends_come_before_the_answer(empties: int) -> None:
    broker = InMemoryBroker()
    worker = ready_worker(broker)
    client = broker.client()
    envelope = [b""] * empties
    client.give(encode_message([*envelope, b"eMQP/1.0", b"REQUEST", b"1", b"mail", b"reply-requested", JOB]))
    worker.reply(b"1", b"v")
    client.hear()
    assert [frames[: empties + 2] for frames in client.heard] == [[*envelope, b"eMQP/1.0", b"REPLY"]] * 2


@pytest.mark.parametrize("empties", [0, 2])
def test_a_worker_with_an_unusual_envelope_is_served_in_kind(empties: int) -> None:
    broker = InMemoryBroker()
    worker = broker.worker()
    envelope = [b""] * empties
    worker.give(encode_message([*envelope, b"eMQP/1.0", b"INFORM", b"1", b"mail"]))
    worker.give(encode_message([*envelope, b"eMQP/1.0", b"READY", b"2"]))
    broker.client().request(b"mail", JOB, b"", b"the-id")
    worker.hear()
    assert worker.heard[-1] == [*envelope, b"eMQP/1.0", b"REQUEST", b"the-id", b"mail", b"reply-requested", JOB]


def test_rubbish_between_does_not_change_how_a_peer_is_answered() -> None:
    broker = InMemoryBroker()
    worker = ready_worker(broker)
    worker.give(encode_message([b"rubbish"]))
    worker.give(encode_message([b"", b"", b"SMTP/1.0", b"READY", b"1"]))
    broker.client().request(b"mail", JOB, b"", b"the-id")
    assert [frames[0] for frames in worker.take(b"REQUEST")] == [b"the-id"]


@pytest.mark.parametrize("version", [b"eMQP/1.0", b"eMQP/1.1", b"eMQP/1.37"])
def test_every_version_one_is_accepted(version: bytes) -> None:
    broker = InMemoryBroker()
    worker = ready_worker(broker)
    client = broker.client()
    client.give(encode_message([b"", version, b"REQUEST", b"1", b"mail", b"", JOB]))
    assert worker.jobs() == [b"1"]


@pytest.mark.parametrize("version", [b"eMQP/2.0", b"EMQP/1.0", b"eMQP/1", b"", b"HTTP/1.1", b"\xff"])
def test_another_major_version_is_ignored_and_noted(version: bytes) -> None:
    broker = InMemoryBroker()
    client = broker.client()
    client.give(encode_message([b"", version or b"x", b"REQUEST", b"1", b"mail", b"reply-requested", JOB]))
    client.hear()
    assert client.heard == []
    assert broker.facts("accepted") == []
    assert notes(broker) == {"EMQP_VERSION": 1}


@pytest.mark.parametrize("inform", [b"inform", b"Inform", b"INFORM"])
@pytest.mark.parametrize("ready", [b"ready", b"Ready"])
@pytest.mark.parametrize("request_word", [b"request", b"ReQuEsT"])
@pytest.mark.parametrize("reply", [b"reply", b"Reply"])
def test_commands_are_matched_without_regard_to_case(
    inform: bytes, ready: bytes, request_word: bytes, reply: bytes
) -> None:
    broker = InMemoryBroker()
    worker = broker.worker()
    worker.say(inform, b"1", b"mail")
    worker.say(ready, b"2")
    client = broker.client()
    client.say(request_word, b"the-id", b"mail", b"reply-requested", JOB)
    worker.say(reply, b"3", b"v", b"the-id")
    assert results(client) == [(b"the-id", b"v")]


@pytest.mark.parametrize(
    "frames", [[b""], [b"x"], [b"", b""], [b"", b"eMQP/1.0"], [b"", b"eMQP/1.0", b"READY"], [b"", b"", b""]]
)
def test_a_message_without_a_command_and_an_id_is_noted(frames: list[bytes]) -> None:
    broker = InMemoryBroker()
    worker = ready_worker(broker)
    worker.heard.clear()
    worker.give(encode_message(frames))
    worker.hear()
    assert worker.heard == []
    assert notes(broker) == {"EMQP_SHORT_MESSAGE": 1}


@pytest.mark.parametrize("frames", [[b"1"], [b"1", b"value"]])
def test_a_short_reply_is_noted_and_settles_nothing(frames: list[bytes]) -> None:
    broker = InMemoryBroker()
    worker = ready_worker(broker)
    broker.client().request(b"mail", JOB, b"", b"1")
    worker.say(b"REPLY", *frames)
    assert broker.facts("closed") == []
    assert notes(broker) == {"EMQP_SHORT_MESSAGE": 1}


@pytest.mark.parametrize("command", [b"HELLO", b"", b"\xff\xfe", b"ACK", b"REQUEST ", b"X" * 5000])
def test_unknown_commands_are_ignored_and_noted(command: bytes) -> None:
    broker = InMemoryBroker()
    client = broker.client()
    client.say(command, b"1", b"mail", b"", JOB)
    client.hear()
    assert client.heard == []
    assert notes(broker) == {"EMQP_UNKNOWN_COMMAND": 1}


def test_oddities_are_facts_once_a_second_with_their_count() -> None:
    broker = InMemoryBroker()
    broker.pass_time(2)
    client = broker.client()
    for _ in range(3):
        client.say(b"HELLO", b"1")
    broker.pass_time(1.1)
    assert [(fact["code"], fact["count"]) for fact in broker.facts("noted")] == [("EMQP_UNKNOWN_COMMAND", 3)]


def test_frames_behind_the_known_ones_are_ignored() -> None:
    broker = InMemoryBroker()
    worker = ready_worker(broker)
    broker.client().say(b"REQUEST", b"1", b"mail", b"", JOB, b"and", b"more")
    assert worker.take(b"REQUEST") == [[b"1", b"mail", b"reply-requested", JOB]]


def test_many_messages_in_one_read_are_all_understood_and_answered_in_order() -> None:
    broker = InMemoryBroker()
    worker = ready_worker(broker, slots=50)
    client = broker.client()
    parts = [encode_message([b"", b"eMQP/1.0", b"REQUEST", b"%d" % n, b"mail", b"", JOB]) for n in range(50)]
    client.give(b"".join(parts))
    assert worker.jobs() == [b"%d" % n for n in range(50)]
    client.hear()
    assert [frames[4] for frames in client.heard] == [b"%d" % n for n in range(50)]


def test_messages_cut_anywhere_mean_the_same() -> None:
    broker = InMemoryBroker()
    worker = ready_worker(broker)
    client = broker.client()
    for byte in encode_message([b"", b"eMQP/1.0", b"REQUEST", b"1", b"mail", b"", JOB]):
        client.give(bytes([byte]))
    assert worker.take(b"REQUEST") == [[b"1", b"mail", b"reply-requested", JOB]]
