"""INFORM in its three shapes, what is answered, and which queues it means."""

from __future__ import annotations

import pytest

from dragoman.limits import SERVED_MAX
from tests.core.harness import InMemoryBroker
from tests.dialects.emqp.ready_peers import JOB, notes


def served(broker: InMemoryBroker) -> list[tuple[int, bytes]]:
    (worker,) = broker.core.all_workers()
    return [(serving.weight, serving.queue) for serving in worker.work.serves]


def test_an_inform_is_answered_by_an_ack_with_its_id_and_then_at_once_by_a_heartbeat() -> None:
    broker = InMemoryBroker()
    worker = broker.worker()
    worker.say(b"INFORM", b"the-id", b'[[30, "low"], [10, "default"]]', b"worker")
    worker.hear()
    ack, heartbeat = worker.heard
    assert ack[:3] == [b"", b"eMQP/1.0", b"ACK"]
    assert len(ack[3]) == 36
    assert ack[4:] == [b"the-id"]
    assert heartbeat[:3] == [b"", b"eMQP/1.0", b"HEARTBEAT"]
    assert float(heartbeat[4]) == 1_700_000_000.0
    assert len(heartbeat) == 5


def test_the_original_shape_names_weighted_queues() -> None:
    broker = InMemoryBroker()
    broker.worker().say(b"INFORM", b"1", b'[[30, "low"], [10, "default"]]', b"worker")
    assert served(broker) == [(30, b"low"), (10, b"default")]


def test_the_documents_shape_names_one_bare_queue_with_weight_ten() -> None:
    broker = InMemoryBroker()
    broker.worker().say(b"INFORM", b"1", b"mail")
    assert served(broker) == [(10, b"mail")]


def test_a_bare_queue_name_in_six_frames_has_weight_ten() -> None:
    broker = InMemoryBroker()
    broker.worker().say(b"INFORM", b"1", b"mail", b"worker")
    assert served(broker) == [(10, b"mail")]


def test_our_own_shape_has_a_seventh_frame_and_takes_any_body() -> None:
    broker = InMemoryBroker()
    worker = broker.worker()
    worker.say(b"INFORM", b"1", b'[[10,"mail"]]', b"worker", b"bytes")
    worker.ready()
    job = broker.client().request(b"mail", b"\xff\x00 not JSON")
    assert worker.jobs() == [job]


@pytest.mark.parametrize(
    "frame", [b"", b"[]", b"[[]]", b"[[10]]", b'[["10","mail"]]', b"[null]", b'[[10,""]]', b'[""]', b"[[1,2,3]]"]
)
def test_a_queue_frame_that_names_no_queue_means_the_default_queue(frame: bytes) -> None:
    broker = InMemoryBroker()
    broker.worker().say(b"INFORM", b"1", frame, b"worker")
    assert served(broker) == [(10, b"default")]


@pytest.mark.parametrize("frame", [b"[", b"[mail]", b'[[10,"\xff"]]', b"[" * 60_000])
def test_a_queue_frame_that_only_looks_like_json_is_a_name_if_it_is_short_enough(frame: bytes) -> None:
    broker = InMemoryBroker()
    worker = broker.worker()
    worker.say(b"INFORM", b"1", frame, b"worker")
    if len(frame) <= 255:
        assert served(broker) == [(10, frame)]
    else:
        assert broker.core.all_workers() == []
        assert worker.take(b"ACK") == []
        assert notes(broker) == {"EMQP_INFORM_REFUSED": 1}


def test_a_list_of_names_gives_each_the_usual_weight() -> None:
    broker = InMemoryBroker()
    broker.worker().say(b"INFORM", b"1", b'["a", [30, "b"]]', b"worker")
    assert served(broker) == [(30, b"b"), (10, b"a")]


@pytest.mark.parametrize(
    ("weight", "meant"),
    [
        (b"2.9", 2),
        (b"-3", -3),
        (b"0", 0),
        (b"9" * 30, 1_000_000_000),
        (b"9" * 400, 1_000_000_000),
        (b"1e300", 1_000_000_000),
    ],
)
def test_any_number_is_a_weight_within_bounds(weight: bytes, meant: int) -> None:
    broker = InMemoryBroker()
    broker.worker().say(b"INFORM", b"1", b'[[%s, "mail"]]' % weight, b"worker")
    assert served(broker) == [(meant, b"mail")]


def test_a_queue_named_twice_is_served_once_with_the_last_weight() -> None:
    broker = InMemoryBroker()
    broker.worker().say(b"INFORM", b"1", b'[[30, "mail"], [20, "mail"]]', b"worker")
    assert served(broker) == [(20, b"mail")]


def test_informing_again_replaces_the_queues_and_forgets_the_slots() -> None:
    broker = InMemoryBroker()
    worker = broker.worker()
    worker.inform((10, b"mail"))
    worker.ready(3)
    worker.inform((10, b"other"))
    client = broker.client()
    client.request(b"mail")
    client.request(b"other")
    assert worker.jobs() == []
    worker.ready()
    assert [frames[1] for frames in worker.take(b"REQUEST")] == [b"other"]
    assert len(worker.take(b"ACK")) == 2


def test_a_scheduler_informs_and_gets_ack_and_heartbeat_and_no_work() -> None:
    broker = InMemoryBroker()
    scheduler = broker.connect("emqp.client", b"scheduler")
    scheduler.say(b"INFORM", b"the-id", b"", b"scheduler")
    broker.client().request(b"default", JOB)
    scheduler.hear()
    assert [frames[2] for frames in scheduler.heard] == [b"ACK", b"HEARTBEAT"]
    assert scheduler.heard[0][4] == b"the-id"
    assert broker.core.all_workers() == []


def test_an_inform_that_would_name_too_many_queues_is_refused_whole() -> None:
    broker = InMemoryBroker()
    names = b",".join(b'"q%d"' % n for n in range(100_001))
    worker = broker.worker()
    worker.say(b"INFORM", b"1", b"[" + names + b"]", b"worker")
    assert worker.take(b"ACK") == []
    assert len(broker.core.state.queues) == 0
    assert notes(broker) == {"EMQP_INFORM_REFUSED": 1}


def test_a_refused_inform_leaves_an_earlier_one_in_force() -> None:
    broker = InMemoryBroker()
    worker = broker.worker()
    worker.inform((10, b"mail"))
    worker.say(b"INFORM", b"2", b"x" * 300)
    worker.ready()
    job = broker.client().request(b"mail", b"\xff not JSON")
    assert worker.jobs() == [job]
    assert worker.take(b"DISCONNECT") == []


def test_a_worker_may_inform_on_the_client_port_too() -> None:
    broker = InMemoryBroker()
    worker = broker.connect("emqp.client", b"w")
    worker.say(b"INFORM", b"1", b"mail")
    worker.say(b"READY", b"2")
    broker.client().request(b"mail")
    assert len(worker.take(b"REQUEST")) == 1


def many(count: int) -> tuple[tuple[int, bytes], ...]:
    return tuple((10, b"q%d" % no) for no in range(count))


def test_a_worker_may_name_as_many_queues_as_one_worker_serves() -> None:
    broker = InMemoryBroker()
    worker = broker.worker()
    worker.inform(*many(SERVED_MAX))
    assert len(served(broker)) == SERVED_MAX
    assert len(worker.take(b"ACK")) == 1


def test_a_worker_that_names_more_gets_no_ack_and_serves_nothing() -> None:
    broker = InMemoryBroker()
    worker = broker.worker()
    worker.inform(*many(SERVED_MAX + 1))
    assert broker.core.all_workers() == []
    assert broker.core.state.queues == {}
    assert worker.take(b"ACK") == []
    ((_, value, inform_id),) = worker.take(b"REPLY")
    assert inform_id == b"id-1"
    assert b'"type":"TOO_MANY_SERVED"' in value
    assert notes(broker) == {"EMQP_INFORM_REFUSED": 1}


def test_an_original_worker_that_names_more_hears_nothing_it_does_not_know() -> None:
    broker = InMemoryBroker()
    worker = broker.worker()
    worker.inform_as_original(*many(SERVED_MAX + 1))
    assert worker.heard == []


def test_a_worker_that_names_too_many_the_second_time_still_serves_the_first() -> None:
    broker = InMemoryBroker()
    worker = broker.worker()
    worker.inform((10, b"mail"))
    worker.inform(*many(SERVED_MAX + 1))
    assert served(broker) == [(10, b"mail")]


def test_a_queue_list_of_megabytes_is_refused_before_it_is_read() -> None:
    broker = InMemoryBroker()
    worker = broker.worker()
    worker.say(b"INFORM", b"1", b"[" + b'"a",' * 1_000_000 + b'"a"]', b"worker", b"bytes")
    assert broker.core.all_workers() == []
    ((_, value, _),) = worker.take(b"REPLY")
    assert b'"type":"TOO_LONG"' in value
