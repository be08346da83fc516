"""What the broker acknowledged is there after kill −9, on a full disk, and however often the journal went round."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.testing.disk import FakeDisk
from tests.runtime.conftest import DISK_SIZE, NewBroker
from tests.runtime.daemon import Daemon
from tests.runtime.journaled_broker import JournaledBroker
from tests.runtime.peers import Client, Worker, error_of, exchange
from tests.waiting import wait_for


@pytest.mark.parametrize("durability", ["disk", "os"])
def test_every_acknowledged_message_is_there_after_kill_9(new_broker: NewBroker, durability: str) -> None:
    broker = new_broker(durability=durability).start()
    with Client(broker) as client, Worker(broker, b"jobs", slots=20) as worker:
        for number in range(300):
            client.request(b"jobs", b"ack-requested", b"%d" % number)
        kept = {client.hear_word(b"ACK")[2] for _ in range(200)}
        held = {worker.take()[0] for _ in range(20)}
        broker.kill()  # while the rest is on its way
    broker.start()
    with Worker(broker, b"jobs", slots=1000) as worker:
        found: set[bytes] = set()
        while not kept | held <= found:
            found.add(worker.take()[0])


@pytest.mark.long
@pytest.mark.parametrize("durability", ["disk", "os"])
def test_what_was_answered_before_kill_9_does_not_run_again(new_broker: NewBroker, durability: str) -> None:
    broker = new_broker(durability=durability).start()
    with Client(broker) as client, Worker(broker, b"jobs") as worker:
        done = [client.request(b"jobs", b"reply-requested") for _ in range(20)]
        worker.serve(20)
        for request_id in done:
            client.result(request_id)
        left = client.keep(b"jobs")
        broker.kill()
    broker.start()
    with Worker(broker, b"jobs", slots=5) as worker:
        assert worker.take()[0] == left
        assert broker.ask("queues")["queues"][0]["waiting"] == 0


def test_after_a_restart_each_of_two_longest_identities_gets_its_own_answer() -> None:
    broker = JournaledBroker(FakeDisk())
    identities = [b"x" * 254 + b"1", b"x" * 254 + b"2"]
    jobs = [broker.client(identity).request(b"mail", headers=b"reply-requested") for identity in identities]
    broker = broker.restarted()
    clients = [broker.client(identity) for identity in identities]
    worker = broker.serve()
    for job in worker.jobs():
        worker.reply(job)
    answers = [[frames[2] for frames in client.take(b"REPLY") if len(frames) == 3] for client in clients]
    assert answers == [[job] for job in jobs]


def test_memory_keeps_nothing_and_starts_again(new_broker: NewBroker) -> None:
    broker = new_broker(durability="memory").start()
    with Client(broker) as client:
        client.keep(b"jobs")
        broker.kill()
    broker.start()
    assert broker.ask("queues")["queues"] == []
    with Client(broker) as client:
        client.keep(b"jobs")


def test_memory_is_refused_where_a_kept_journal_lies(broker: Daemon) -> None:
    assert broker.stop() == 0
    broker.flags = ("--durability=memory",)
    broker.launch()
    assert broker.exit_code() == 5
    assert "[JOURNAL_MISPLACED]" in broker.process.log()


@pytest.mark.long
@pytest.mark.parametrize("durability", ["disk", "os"])
def test_a_full_disk_refuses_new_work_settles_held_work_and_recovers(
    new_broker: NewBroker, small_disk: Path, durability: str
) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(DISK_SIZE // 2))
    broker = new_broker("journal.segment_size=64KiB", data=small_disk / "data", durability=durability).start()
    with Client(broker) as client, Worker(broker, b"held") as worker:
        held = client.request(b"held", b"reply-requested")
        worker.take()
        assert client.hear_word(b"REPLY")[2] == held, "handed over"
        kept = fill(client)
        assert client.refusal(client.request(b"more", b"", b"{}")) == "JOURNAL_FULL"
        worker.answer(held)
        assert client.result(held) == b'{"value":1}', "what is held may end"
        broker.kill()
    if durability == "os":
        ballast.unlink()  # what may not be synced is written again by the next start, which needs room for it
    broker.start()
    with Worker(broker, b"jobs", slots=1000) as worker:
        found = {worker.take()[0] for _ in kept}
        assert found == kept, "nothing acknowledged is lost"
    ballast.unlink(missing_ok=True)
    with Client(broker) as client:
        wait_for("new work to be taken again", lambda: is_kept(client))


@pytest.mark.long
def test_work_waiting_on_a_full_disk_can_be_done_and_space_comes_back_without_a_restart(
    new_broker: NewBroker, small_disk: Path
) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(DISK_SIZE // 2))
    broker = new_broker("journal.segment_size=64KiB", data=small_disk / "data").start()
    with Client(broker) as client, Worker(broker, b"jobs", slots=0) as worker:
        kept = fill(client)
        worker.ready()
        assert set(worker.serve(len(kept))) == kept
        ballast.unlink()
        wait_for("new work to be taken again", lambda: is_kept(client))
    assert broker.lines("new work is refused")[0]["code"] == "JOURNAL_FULL"
    assert broker.lines("new work is taken again")
    assert broker.stop() == 0


def fill(client: Client) -> set[bytes]:
    """Send until the broker refuses; the ids of what it kept."""
    kept: set[bytes] = set()
    while True:
        client.request(b"jobs", b"ack-requested", b"x" * 8000)
        frames = client.hear_word(b"ACK", b"REPLY")
        if frames[0] == b"REPLY":
            assert error_of(frames[2]) == "JOURNAL_FULL"
            return kept
        kept.add(frames[2])


def is_kept(client: Client) -> bool:
    client.request(b"again", b"ack-requested")
    return client.hear_word(b"ACK", b"REPLY")[0] == b"ACK"


@pytest.mark.long
def test_the_journal_stays_bounded_while_one_old_message_waits_and_is_carried_along(new_broker: NewBroker) -> None:
    broker = new_broker("journal.segment_size=64KiB", "journal.size_max=1MiB").start()
    with Client(broker) as client, Worker(broker, b"busy", slots=50) as worker:
        old = client.keep(b"patient", b"do not forget me")
        sizes: list[int] = []

        def has_gone_round() -> bool:
            exchange(client, worker, b"busy", 3, 20_000)
            sizes.append(broker.ask("status")["journal"]["size"])
            return len(broker.lines("segments dropped")) >= 8 and sizes[-1] < 1.5 * 2**20

        wait_for("the journal to let go of its oldest segments again and again", has_gone_round)
        assert max(sizes) < 6 * 2**20, "what is dropped waits for a checkpoint, and that for two syncs"
        assert not broker.lines("the journal is full: new work is refused")
        broker.kill()
    broker.start()
    with Worker(broker, b"patient") as worker:
        assert worker.take() == (old, b"do not forget me")


@pytest.mark.long
@pytest.mark.parametrize("durability", ["os", "disk"])
def test_a_journal_over_its_size_shrinks_although_nothing_more_happens(new_broker: NewBroker, durability: str) -> None:
    broker = new_broker("journal.segment_size=64KiB", "journal.size_max=1MiB", durability=durability).start()
    with Client(broker) as client:
        fill(client)
    wait_for("the client to be gone", lambda: broker.ask("status")["connections"] == 0)
    broker.ask("purge", queue="jobs")
    assert broker.ask("status")["journal"]["size"] > 2**20
    wait_for("the quiet journal to shrink", lambda: broker.ask("status")["journal"]["size"] <= 2**20)


@pytest.mark.long
def test_live_messages_over_the_journals_size_are_refused_until_some_are_done(new_broker: NewBroker) -> None:
    broker = new_broker("journal.segment_size=64KiB", "journal.size_max=1MiB").start()
    with Client(broker) as client, Worker(broker, b"jobs", slots=0) as worker:
        kept = fill(client)
        assert 100 < len(kept) < 1000
        worker.ready()
        assert set(worker.serve(len(kept))) == kept
        wait_for("new work to be taken again", lambda: is_kept(client))
