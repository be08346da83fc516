"""What is counted since the start: each message once, where its fact is made, and nothing of it in a replay."""

from __future__ import annotations

from typing import Any

from dragoman.core.queries import views
from dragoman.core.settings import CoreSettings
from dragoman.core.storage.replay import Replay
from dragoman.limits import QUEUES_TALLIED_MAX
from dragoman.model.buckets import bucket_begin_ns, bucket_of
from dragoman.model.enums import BY_CLIENT, EMQP, TAKEN
from dragoman.model.message import Message
from dragoman.model.units import SECOND_NS
from tests.core.harness import FIRST_POSITION, START_NS, InMemoryBroker, Worker

MS_NS = 1_000_000


def serve(broker: InMemoryBroker, queue: bytes, slots: int = 1, identity: bytes = b"worker") -> Worker:
    worker = broker.worker(identity)
    worker.inform((10, queue))
    worker.ready(slots)
    return worker


def tallies(broker: InMemoryBroker) -> Any:
    return views.tallies(broker.core)


def queue_tally(broker: InMemoryBroker, name: str) -> Any:
    page: Any = views.queue_tallies(broker.core, 0, 10, name, is_by_depth=False)
    [found] = page["queues"]
    return found


def test_a_wait_is_counted_once_at_the_first_lease_and_a_total_at_the_end() -> None:
    broker = InMemoryBroker()
    job = broker.client().request(b"mail", headers=b"retry-count:3")
    broker.pass_time(2)
    worker = serve(broker, b"mail", 2)
    worker.reply(job, b'{"error":{}}')
    broker.pass_time(1.1)
    assert worker.jobs() == [job, job]
    worker.reply(job)
    wait, total = bucket_of(2 * SECOND_NS), bucket_of(3100 * MS_NS)
    for view, total_key in ((tallies(broker), "total"), (queue_tally(broker, "mail"), "total_time")):
        assert view["wait"] == [[wait, 1]]
        assert view[total_key] == [[total, 1]]


def test_a_delay_its_client_asked_for_is_no_wait_but_part_of_the_total() -> None:
    broker = InMemoryBroker()
    worker = serve(broker, b"mail")
    job = broker.client().request(b"mail", headers=b"delay:5")
    broker.pass_time(5.2)
    worker.reply(job)
    [[wait, _]], [[total, _]] = tallies(broker)["wait"], tallies(broker)["total"]
    assert bucket_begin_ns(wait) <= 200 * MS_NS
    assert bucket_begin_ns(total) >= 4 * SECOND_NS


def test_dialects_and_crossings_count_what_was_accepted_and_who_settled_it() -> None:
    broker = InMemoryBroker()
    worker = serve(broker, b"mail")
    client = broker.client()
    worker.reply(client.request(b"mail"))
    client.request(b"mail", headers=b"expires:1")
    broker.pass_time(2)  # nobody has room: it expires, and no worker settled it
    found = tallies(broker)
    emqp = next(row for row in found["dialects"] if row["dialect"] == "emqp")
    assert (emqp["accepted"], emqp["settled"]) == (2, 2)
    assert found["crossings"] == [{"client": "emqp", "worker": "emqp", "count": 1}]
    assert [row["dialect"] for row in found["dialects"]] == ["internal", "scale0", "pingpong", "emqp", "ebus", "rq"]


def test_a_schedules_messages_are_accepted_from_the_broker_itself() -> None:
    broker = InMemoryBroker()
    broker.client().say(b"SCHEDULE", b"s", b"mail", b"nohaste", b"1", b'["run", {}]', b"")
    broker.pass_time(3.5)
    assert tallies(broker)["dialects"][0] == {"dialect": "internal", "accepted": 3, "settled": 0}


def test_replay_counts_nothing() -> None:
    broker = InMemoryBroker()
    worker = serve(broker, b"mail")
    worker.reply(broker.client().request(b"mail"))
    broker.client().request(b"mail")
    again = InMemoryBroker(CoreSettings())
    replay = Replay(again.core)
    position = FIRST_POSITION
    for time_ns, records in broker.blocks:
        replay.block(records, position, time_ns)
        position += len(records)
    found = tallies(again)
    assert found["accepted"] == 2
    assert found["wait"] == found["total"] == found["crossings"] == []
    assert all(row["accepted"] == 0 for row in found["dialects"])


def test_every_key_of_the_counters_is_there_with_the_boot() -> None:
    broker = InMemoryBroker()
    found = tallies(broker)
    assert found["boot_no"] == 1
    assert found["started_ns"] == found["now_ns"] == broker.now_ns
    assert found["waiting"] == 0


def test_the_oldest_is_found_over_all_lines_and_among_the_returned() -> None:
    broker = InMemoryBroker()
    first_ns = broker.now_ns
    broker.client(b"a").request(b"mail")
    broker.pass_time(1)
    broker.client(b"b").request(b"mail", headers=b"priority:5")
    assert queue_tally(broker, "mail")["oldest_ns"] == first_ns
    worker = serve(broker, b"mail", 3)
    assert len(worker.jobs()) == 2
    assert queue_tally(broker, "mail")["oldest_ns"] == 0
    worker.leave()
    broker.pass_time(1)
    broker.client(b"a").request(b"mail")
    assert queue_tally(broker, "mail")["oldest_ns"] == first_ns


def test_a_delayed_message_is_as_old_as_the_end_of_its_delay() -> None:
    broker = InMemoryBroker()
    broker.client().request(b"mail", headers=b"delay:5")
    assert queue_tally(broker, "mail")["oldest_ns"] == 0
    broker.pass_time(6)
    assert queue_tally(broker, "mail")["oldest_ns"] == START_NS + 5 * SECOND_NS


def test_the_head_of_a_line_that_is_on_disk_only_counts() -> None:
    settings = CoreSettings()
    settings.head_max = 1
    broker = InMemoryBroker(settings)
    client = broker.client()
    first = client.request(b"mail")
    broker.pass_time(1)
    second_ns = broker.now_ns
    client.request(b"mail")
    message = broker.core.lookup(first)
    assert message is not None
    assert broker.core.cancel(message, BY_CLIENT) == TAKEN
    assert queue_tally(broker, "mail")["oldest_ns"] == second_ns


def test_queues_beyond_the_bound_are_counted_together_and_still_in_the_whole() -> None:
    broker = InMemoryBroker()
    for number in range(QUEUES_TALLIED_MAX + 2):
        m = Message(EMQP, b"queue %d" % number, b"", b"")
        broker.core.submit(m)
        broker.core.cancel(m, BY_CLIENT)
    assert queue_tally(broker, f"queue {QUEUES_TALLIED_MAX - 1}")["total_time"] == [[0, 1]]
    assert queue_tally(broker, f"queue {QUEUES_TALLIED_MAX + 1}")["total_time"] == []
    assert tallies(broker)["total"] == [[0, QUEUES_TALLIED_MAX + 2]]
