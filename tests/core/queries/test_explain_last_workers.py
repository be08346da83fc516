"""Who left a queue last, and why: told before and after a start."""

from __future__ import annotations

from tests.core.harness import House
from tests.core.queries.explaining import message_lines, serve
from tests.core.replaying import check_replay, restart

ANEW = "the broker started anew, and it did not come back"


def test_who_left_a_queue_last_is_known_after_a_start_too(house: House) -> None:
    serve(house, b"thumbs", 0).leave()
    serve(house, b"mail", 0)
    worker = serve(house, b"other", 0)
    worker.inform((10, b"another"))
    jobs = [house.client().request(queue) for queue in (b"thumbs", b"mail", b"other")]
    house.pass_time(2)
    check_replay(house)
    for by_checkpoint in (False, True):
        after = restart(house, by_checkpoint=by_checkpoint)
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


def test_a_queue_whose_name_reads_like_two_is_replayed_as_it_was(house: House) -> None:
    serve(house, b"a", 0, b"one")
    serve(house, b"a\t5 b", 0, b"two").leave()
    check_replay(house)
    check_replay(restart(house, by_checkpoint=True))
