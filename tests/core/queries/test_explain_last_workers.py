"""Who left a queue last, and why: told before and after a start."""

from __future__ import annotations

from tests.core.harness import InMemoryBroker
from tests.core.queries.explaining import message_lines, serve
from tests.core.replaying import check_replay, restart

ANEW = "the broker started anew, and it did not come back"


def test_who_left_a_queue_last_is_known_after_a_start_too(broker: InMemoryBroker) -> None:
    serve(broker, b"thumbs", 0).leave()
    serve(broker, b"mail", 0)
    worker = serve(broker, b"other", 0)
    worker.inform((10, b"another"))
    jobs = [broker.client().request(queue) for queue in (b"thumbs", b"mail", b"other")]
    broker.pass_time(2)
    check_replay(broker)
    for by_checkpoint in (False, True):
        after = restart(broker, by_checkpoint=by_checkpoint)
        assert [message_lines(after, job) for job in jobs] == [
            [
                "waits: no worker serves `thumbs`; the last one left 22:13:20 UTC, 2.0 s ago (its connection ended without a goodbye)"
            ],
            [f"waits: no worker serves `mail`; the last one left 22:13:22 UTC, 0.0 ms ago ({ANEW})"],
            ["waits: no worker serves `other`; the last one left 22:13:20 UTC, 2.0 s ago (it serves other queues now)"],
        ]
        check_replay(after)
        again = restart(after, by_checkpoint=by_checkpoint)
        assert [message_lines(again, job) for job in jobs] == [message_lines(after, job) for job in jobs]


def test_a_queue_whose_name_reads_like_two_is_replayed_as_it_was(broker: InMemoryBroker) -> None:
    serve(broker, b"a", 0, b"one")
    serve(broker, b"a\t5 b", 0, b"two").leave()
    check_replay(broker)
    check_replay(restart(broker, by_checkpoint=True))
