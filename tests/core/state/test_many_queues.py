"""Workers that serve very many queues: what a join costs grows with their number, not with its square, live and in a replay.

Journals of earlier versions hold joins of more queues than a worker may name today: a start must read them in their length's time.
"""

from __future__ import annotations

import time

import pytest

from dragoman.core.state.queue import Queue, ServingHistory
from dragoman.limits import SERVED_MAX
from dragoman.model.enums import SUPERSEDED
from tests.core.harness import InMemoryBroker
from tests.core.replaying import check_replay


def join_twice_ns(count: int) -> int:
    """Thread CPU of reading two joins of the same worker, the second of which names every other queue."""
    queues = {b"q%d" % no: Queue(no, b"q%d" % no) for no in range(1, count + 1)}
    text = b"\t".join([b"emqp.worker", b"", b"", *(b"10 %s" % name for name in queues)])
    half = b"\t".join([b"emqp.worker", b"", b"", *(b"10 %s" % name for name in list(queues)[::2])])
    by_no = {queue.number: queue for queue in queues.values()}
    serving_history = ServingHistory()
    began_ns = time.thread_time_ns()
    serving_history.on_joined(1, text, queues, by_no, 1)
    serving_history.on_joined(1, half, queues, by_no, 2)
    took_ns = time.thread_time_ns() - began_ns
    assert serving_history.serves[1] == list(range(1, count + 1, 2))
    assert serving_history.left == dict.fromkeys(range(2, count + 1, 2), (2, SUPERSEDED))
    return took_ns


@pytest.mark.long
def test_a_second_join_costs_as_many_steps_as_it_names_queues() -> None:
    few_ns = min(join_twice_ns(5_000) for _ in range(3))
    many_ns = min(join_twice_ns(40_000) for _ in range(3))
    assert many_ns < 32 * few_ns, f"eight times the queues took {many_ns / few_ns:.0f} times as long"


def test_joining_again_with_other_queues_replays_to_the_same_state() -> None:
    broker = InMemoryBroker()
    worker = broker.worker()
    worker.inform(*((10, b"a%d" % no) for no in range(SERVED_MAX)))
    worker.inform(*((10, b"a%d" % no) for no in range(SERVED_MAX // 2)))
    check_replay(broker)
    worker.leave()
    check_replay(broker)
