"""Workers of the ping-pong dialogue: who is free, who is not, and whose result counts."""

from __future__ import annotations

import pytest

from dragoman.core.settings import CoreSettings
from dragoman.model.enums import BY_OPERATOR
from dragoman.model.units import SECOND_NS
from tests.dialects.pingpong.in_memory import PONG, FakeClient, FakeWorker, PingpongBroker, ready_worker


@pytest.fixture
def broker() -> PingpongBroker:
    return PingpongBroker()


def timed_table() -> PingpongBroker:
    """A broker that bounds every attempt at two seconds."""
    settings = CoreSettings()
    settings.timeout_ns = 2 * SECOND_NS
    return PingpongBroker(settings)


def test_ready_is_answered_pong_and_makes_a_worker(broker: PingpongBroker) -> None:
    worker = FakeWorker(broker)
    worker.ready()
    assert worker.said() == [PONG]
    assert worker.broker_side.is_worker
    assert worker.broker_side.work.slots == 1


def test_a_ping_from_an_unknown_worker_registers_it(broker: PingpongBroker) -> None:
    worker = FakeWorker(broker)
    worker.ping()
    FakeClient(broker).order(b"job")
    assert worker.said() == [PONG, [b"", b"job"]]


def test_everything_a_worker_says_is_answered_pong(broker: PingpongBroker) -> None:
    worker = ready_worker(broker)
    FakeClient(broker).order(b"job")
    assert worker.said() == [[b"", b"job"]]
    for frames in ([b"", b"done"], [b"", b"PING"], [b"", b"READY"], [b"", b"nobody asked"], [b"", b"a", b"b"]):
        worker.send(*frames)
        assert worker.said() == [PONG]


def test_ready_and_ping_twice_still_make_one_slot(broker: PingpongBroker) -> None:
    worker = ready_worker(broker)
    for _ in range(3):
        worker.ready()
        worker.ping()
    client = FakeClient(broker)
    client.order(b"one")
    client.order(b"two")
    assert worker.jobs() == [[b"", b"one"]]


def test_a_result_answers_the_client_and_frees_the_worker(broker: PingpongBroker) -> None:
    worker, client = ready_worker(broker), FakeClient(broker)
    client.order(b"one")
    client.order(b"two")
    worker.result(b"1")
    assert client.results() == [b"1"]
    assert worker.jobs() == [[b"", b"one"], [b"", b"two"]]


def test_a_busy_worker_that_pings_gets_no_second_job(broker: PingpongBroker) -> None:
    worker, client = ready_worker(broker), FakeClient(broker)
    worker.result(b"nothing")  # late; and its form is plain from its first real result on
    client.order(b"zero")
    worker.result(b"0")
    client.order(b"one")
    client.order(b"two")
    worker.said()
    for _ in range(5):
        broker.pass_time(1.0)
        worker.ping()
        assert worker.said() == [PONG]
    assert worker.broker_side.work.slots == 0
    worker.result(b"1")
    assert worker.said() == [PONG, [b"", b"two"]]


def test_ready_from_a_busy_worker_is_only_a_sign_of_life(broker: PingpongBroker) -> None:
    worker, client = ready_worker(broker), FakeClient(broker)
    client.order(b"one")
    client.order(b"two")
    worker.said()
    broker.pass_time(1.0)
    worker.ready()
    assert worker.said() == [PONG]
    assert broker.notes() == {"PINGPONG_READY_WHILE_BUSY": 1}
    worker.result(b"1")
    assert client.results() == [b"1"]


def test_a_silent_idle_worker_leaves_the_line_after_three_seconds(broker: PingpongBroker) -> None:
    worker = ready_worker(broker)
    broker.pass_time(3.0)
    assert worker.broker_side.is_worker
    broker.pass_time(0.2)
    assert not worker.broker_side.is_worker
    FakeClient(broker).order(b"job")
    assert worker.said() == []
    worker.ping()
    assert worker.said() == [PONG, [b"", b"job"]]


def test_the_time_until_a_silent_worker_leaves_is_a_setting(broker: PingpongBroker) -> None:
    broker.pingpong.settings.worker_expire_ns = 10 * SECOND_NS
    worker = ready_worker(broker)
    broker.pass_time(9.0)
    assert worker.broker_side.is_worker


def test_a_silent_busy_worker_keeps_its_job(broker: PingpongBroker) -> None:
    worker, other, client = ready_worker(broker), ready_worker(broker), FakeClient(broker)
    client.order(b"job")
    broker.pass_time(60.0)
    worker.result(b"done at last")
    assert client.results() == [b"done at last"]
    assert other.jobs() == []


def test_an_unread_worker_is_not_silent(broker: PingpongBroker) -> None:
    worker = ready_worker(broker)
    worker.session.is_unread = True
    broker.pass_time(10.0)
    assert worker.broker_side.is_worker


def test_a_worker_lost_in_the_middle_of_a_job_gives_it_to_another(broker: PingpongBroker) -> None:
    worker, client = ready_worker(broker), FakeClient(broker)
    client.order(b"job")
    other = ready_worker(broker)
    worker.leave()
    assert other.jobs() == [[b"", b"job"]]
    other.result(b"done")
    assert client.results() == [b"done"]
    released = broker.facts("released")
    assert [fact["reason"] for fact in released] == ["worker_lost"]


def test_a_result_from_a_worker_that_holds_nothing_is_recorded_and_dropped(broker: PingpongBroker) -> None:
    worker, client = ready_worker(broker), FakeClient(broker)
    worker.result(b"what?")
    assert len(broker.facts("late")) == 1
    client.order(b"job")
    worker.result(b"1")
    assert client.results() == [b"1"]


def test_a_result_from_a_stranger_is_counted_and_makes_no_worker(broker: PingpongBroker) -> None:
    worker = FakeWorker(broker)
    worker.result(b"what?")
    assert worker.said() == [PONG]
    assert not worker.broker_side.is_worker
    assert broker.notes() == {"LATE_FROM_A_STRANGER": 1}


def test_the_late_result_of_an_owing_worker_never_answers_the_next_job() -> None:
    broker = timed_table()
    worker, client = ready_worker(broker), FakeClient(broker)
    client.order(b"slow")
    broker.pass_time(2.5)
    assert client.said() == [[b"", b"ERROR", b"TIMED_OUT"]]
    client.order(b"next")
    for _ in range(3):
        worker.ping()  # it is alive, and still at the slow one
        broker.pass_time(1.0)
    assert [b"", b"next"] not in worker.said()
    worker.result(b"slow at last")
    assert worker.said() == [PONG, [b"", b"next"]]
    assert client.said() == []
    worker.result(b"next done")
    assert client.results() == [b"next done"]
    assert len(broker.facts("late")) == 1


def test_ready_frees_an_owing_worker() -> None:
    broker = timed_table()
    worker, client = ready_worker(broker), FakeClient(broker)
    client.order(b"slow")
    broker.pass_time(2.5)
    client.order(b"next")
    worker.said()
    worker.ready()
    assert worker.said() == [PONG, [b"", b"next"]]


def test_a_ready_that_crossed_a_cancelled_job_does_not_free_its_worker(broker: PingpongBroker) -> None:
    # Simulator seed 82008644: READY was sent before the job arrived, and read after the job was withdrawn.
    worker, client = ready_worker(broker), FakeClient(broker)
    client.order(b"job")
    message = next(iter(worker.broker_side.work.leases.values()))
    broker.core.cancel(message, BY_OPERATOR)
    client.order(b"next")
    worker.ready()
    assert [b"", b"next"] not in worker.said()
    assert broker.notes() == {"PINGPONG_READY_WHILE_BUSY": 1}
    broker.pass_time(1.0)
    worker.ready()
    assert worker.said() == [PONG, [b"", b"next"]]


def test_a_new_connection_owes_nothing() -> None:
    broker = timed_table()
    worker, client = ready_worker(broker, b"same"), FakeClient(broker)
    client.order(b"slow")
    broker.pass_time(2.5)
    client.order(b"next")
    worker.leave()
    again = ready_worker(broker, b"same")
    assert again.jobs() == [[b"", b"next"]]


def test_an_owing_worker_may_be_silent_for_as_long_as_it_works() -> None:
    broker = timed_table()
    worker, client = ready_worker(broker), FakeClient(broker)
    client.order(b"slow")
    broker.pass_time(30.0)
    assert worker.broker_side.is_worker
    worker.result(b"late")
    client.order(b"next")
    assert worker.jobs()[-1] == [b"", b"next"]


def test_a_cancelled_job_makes_its_worker_owe(broker: PingpongBroker) -> None:
    worker, client = ready_worker(broker), FakeClient(broker)
    client.order(b"job")
    message = next(iter(worker.broker_side.work.leases.values()))
    broker.core.cancel(message, BY_OPERATOR)
    assert client.said() == [[b"", b"ERROR", b"BY_OPERATOR"]]
    client.order(b"next")
    assert [b"", b"next"] not in worker.said()
    worker.result(b"late")
    assert worker.said() == [PONG, [b"", b"next"]]


def test_exit_is_never_sent_unless_the_setting_allows_it(broker: PingpongBroker) -> None:
    worker = ready_worker(broker)
    broker.pingpong.draining()
    broker.core.roster.dismiss(worker.broker_side)
    broker.pingpong.closing()
    assert worker.said() == []


def test_a_drain_tells_idle_workers_to_exit_and_busy_ones_after_their_result(broker: PingpongBroker) -> None:
    broker.pingpong.settings.send_exit = True
    busy, idle, client = ready_worker(broker), ready_worker(broker), FakeClient(broker)
    client.order(b"job")
    assert busy.jobs() == [[b"", b"job"]]
    broker.pingpong.draining()
    assert idle.said() == [[b"", b"EXIT"]]
    assert busy.said() == []
    busy.result(b"done")
    assert busy.said() == [PONG, [b"", b"EXIT"]]
    assert client.results() == [b"done"]


def test_a_dismissed_worker_is_asked_to_exit_and_gets_nothing_more(broker: PingpongBroker) -> None:
    broker.pingpong.settings.send_exit = True
    worker = ready_worker(broker)
    broker.core.roster.dismiss(worker.broker_side)
    assert worker.said() == [[b"", b"EXIT"]]
    worker.ping()
    FakeClient(broker).order(b"job")
    assert worker.said() == [PONG]


def test_all_workers_serve_the_one_queue_a_setting_names(broker: PingpongBroker) -> None:
    broker.pingpong.settings.queue = b"orders"
    worker = ready_worker(broker)
    client = broker.client()
    client.request(b"orders", b"from emqp", b"reply-requested")
    assert worker.jobs() == [[b"", b"from emqp"]]
    worker.result(b"result")
    assert [frames[1] for frames in client.take(b"REPLY") if len(frames) == 3] == [b"result"]


def test_an_old_peer_of_zmtp_1_is_spoken_to_in_its_frames(broker: PingpongBroker) -> None:
    """The frame form is the connection's; what is said in it is the same."""
    worker = FakeWorker(broker)
    worker.broker_side.zmtp.is_v1 = True
    worker.broker_side.is_usual = False
    worker.broker_side.on_message([b"", b"READY"])
    assert worker.session.take_all() == b"\x01\x01\x05\x00PONG"


def test_a_job_larger_than_a_short_frame_arrives_whole(broker: PingpongBroker) -> None:
    worker, client = ready_worker(broker), FakeClient(broker)
    for size in (0, 1, 255, 256, 16_384, 16_385, 300_000):
        client.order(b"x" * size)
        assert worker.jobs() == [[b"", b"x" * size]]
        worker.result(b"y" * size)
        assert client.results() == [b"y" * size]


def test_a_worker_that_reads_nothing_gets_no_job(broker: PingpongBroker) -> None:
    worker = ready_worker(broker)
    worker.session.set_socket_full(True)
    FakeClient(broker).order(b"job")
    assert worker.said() == []
    worker.session.set_socket_full(False)
    assert worker.said() == [[b"", b"job"]]


def test_a_busy_workers_pong_travels_with_its_next_job_and_comes_by_itself_when_there_is_none(
    broker: PingpongBroker,
) -> None:
    worker, client = ready_worker(broker), FakeClient(broker)
    client.order(b"one")
    assert worker.said() == [[b"", b"one"]]
    worker.result(b"1")
    assert worker.said() == [PONG], "at once, for nothing is known of its pace"
    client.order(b"two")
    worker.result(b"2")
    assert worker.said() == [[b"", b"two"]]
    client.order(b"three")
    assert worker.said() == [PONG, [b"", b"three"]]
    worker.result(b"3")
    assert worker.said() == []
    broker.pass_time(0.1)
    assert worker.said() == [PONG]
    assert client.results() == [b"1", b"2", b"3"]


def test_a_ping_after_a_result_finds_both_pongs(broker: PingpongBroker) -> None:
    worker, client = ready_worker(broker), FakeClient(broker)
    for body in (b"one", b"two"):
        client.order(body)
        worker.result(body)
    worker.said()
    worker.ping()
    assert worker.said() == [PONG, PONG]
