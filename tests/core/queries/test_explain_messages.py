"""Why a message does not move, provoked by peers and time alone."""

from __future__ import annotations

import pytest

from dragoman.core import operator
from dragoman.core.queries import explain, lookup, views
from dragoman.core.settings import CoreSettings
from dragoman.model import phrases
from dragoman.model.enums import BY_OPERATOR, PROTOCOL_FAULT, PURGED, WORKER_LEFT
from dragoman.model.units import SECOND_NS
from tests.core.harness import FIRST_POSITION, START_NS, Client, InMemoryBroker
from tests.core.queries.explaining import JOB, heard, message_lines, serve
from tests.core.replaying import check_replay, replayed, restart
from tests.dialects.rq.nodes import consumer


def test_a_message_nobody_ever_served_says_so(broker: InMemoryBroker) -> None:
    job = broker.client().request(b"thumbs")
    assert message_lines(broker, job) == ["waits: no worker serves `thumbs`, and none is known to have"]


def test_a_message_whose_last_worker_was_lost_says_when_it_left(broker: InMemoryBroker) -> None:
    worker = serve(broker, b"thumbs", 0)
    broker.pass_time(2)
    worker.leave()
    job = broker.client().request(b"thumbs")
    broker.pass_time(3)
    [line] = message_lines(broker, job)
    assert line == (
        "waits: no worker serves `thumbs`; the last one left 22:13:22 UTC, 3.0 s ago (its connection ended without a goodbye)"
    )


def test_a_message_in_a_draining_broker_says_that_it_will_be_served_after_the_next_start(
    broker: InMemoryBroker,
) -> None:
    serve(broker, b"mail", 1)
    broker.core.dispatch.is_stopped = True
    job = broker.client().request(b"mail")
    assert message_lines(broker, job) == [
        "waits: the broker is draining and gives nothing to workers; it is served after the next start"
    ]


def test_a_message_in_a_paused_queue_says_how_to_resume(broker: InMemoryBroker) -> None:
    serve(broker, b"mail", 1)
    operator.set_paused(broker.core, b"mail", True)
    job = broker.client().request(b"mail")
    assert message_lines(broker, job) == [
        "waits: the queue `mail` is paused; `dragoman queues resume mail` lets it go on"
    ]


def test_a_message_behind_busy_workers_counts_their_leases_and_those_before_it(broker: InMemoryBroker) -> None:
    for identity in (b"a", b"b", b"c"):
        serve(broker, b"mail", 8, identity)
    client = broker.client()
    jobs = [client.request(b"mail") for _ in range(30)]
    assert message_lines(broker, jobs[-1]) == [
        "waits: 3 workers serve `mail` and all their slots are taken (24 leased)",
        "waits behind 5 others",
    ]
    assert message_lines(broker, jobs[24])[1:] == []


def test_clients_take_turns_so_another_clients_line_counts_only_as_far_as_ones_own(broker: InMemoryBroker) -> None:
    for _ in range(100):
        broker.client(b"greedy").request(b"mail")
    modest = Client(broker, "emqp.client", b"modest")
    modest.request(b"mail")
    job = modest.request(b"mail")
    assert message_lines(broker, job)[-1] == "waits behind 3 others"


def test_higher_priorities_stand_before_a_message(broker: InMemoryBroker) -> None:
    client = broker.client()
    job = client.request(b"mail")
    for _ in range(4):
        client.request(b"mail", headers=b"priority:5")
    assert message_lines(broker, job)[-1] == "waits behind 4 others"


def test_a_worker_that_never_sent_ready_is_named_as_the_reason(broker: InMemoryBroker) -> None:
    serve(broker, b"mail", 0)
    job = broker.client().request(b"mail")
    assert message_lines(broker, job) == [
        "waits: 1 worker serves `mail`, but none has said that it has room (eMQP: no READY came)"
    ]


def test_a_worker_that_does_not_read_is_named_as_the_reason(broker: InMemoryBroker) -> None:
    worker = serve(broker, b"mail", 1)
    worker.session.is_blocked = True
    job = broker.client().request(b"mail")
    assert message_lines(broker, job) == ["waits: 1 worker serves `mail`, but what is sent to them is not read"]


def test_a_body_that_only_original_workers_could_get_waits_and_says_why(broker: InMemoryBroker) -> None:
    worker = broker.worker()
    worker.inform_as_original((10, b"mail"))
    worker.ready(1)
    job = broker.client().request(b"mail", body=b"\xff\xfe not json")
    worker.ready(1)
    assert worker.jobs() == []
    assert message_lines(broker, job) == [
        "waits: not a JSON job; only original EventMQ workers serve `mail`, and such a body would reset them"
    ]


def test_a_body_that_only_a_busy_worker_takes_says_so(broker: InMemoryBroker) -> None:
    original = broker.worker(b"original")
    original.inform_as_original((10, b"mail"))
    original.ready(2)
    ours = serve(broker, b"mail", 1, b"ours")
    client = broker.client()
    first = client.request(b"mail", body=b"\xff 1")
    assert ours.jobs() == [first]
    job = client.request(b"mail", body=b"\xff 2")
    original.ready(1)
    assert message_lines(broker, job) == [
        "waits: not a JSON job, and of 2 workers on `mail` no free one takes other bodies"
    ]


def test_a_delay_its_client_asked_for_is_reported_with_its_end(broker: InMemoryBroker) -> None:
    job = broker.client().request(b"mail", headers=b"delay:90")
    broker.pass_time(30)
    assert message_lines(broker, job) == [
        "waits: delayed until 22:14:50 UTC (60.0 s from now; its client asked for the delay)"
    ]


def test_a_backoff_is_reported_with_its_cause_and_the_coming_attempt(broker: InMemoryBroker) -> None:
    worker = serve(broker, b"mail", 1)
    job = broker.client().request(b"mail", headers=b"retry-count:3")
    worker.reply(job, b'{"error":{"type":"X","message":"no"}}')
    assert message_lines(broker, job) == [
        "waits: delayed until 22:13:21 UTC (1.0 s from now; attempt 2 is next: before, the worker answered that it failed)"
    ]


def test_a_delayed_message_of_a_paused_queue_says_that_it_will_wait_on(broker: InMemoryBroker) -> None:
    job = broker.client().request(b"mail", headers=b"delay:5")
    operator.set_paused(broker.core, b"mail", True)
    assert message_lines(broker, job)[1] == "then it waits on: the queue `mail` is paused"


def test_an_expiry_is_reported_while_it_waits(broker: InMemoryBroker) -> None:
    job = broker.client().request(b"mail", headers=b"expires:60")
    assert message_lines(broker, job)[-1] == "expires 22:14:20 UTC (in 60.0 s) if nobody has taken it by then"


def test_a_leased_message_names_its_worker_its_age_and_its_time_bound(broker: InMemoryBroker) -> None:
    worker = serve(broker, b"mail", 1)
    job = broker.client().request(b"mail", headers=b"timeout:30")
    broker.pass_time(2)
    worker.heartbeat()
    broker.pass_time(0.3)
    number = worker.session.number
    assert message_lines(broker, job) == [
        f"leased to worker w{phrases.number_text(number)} (worker) for 2.3 s (attempt 1), time bound in 27.7 s",
        f"last sign of life from worker w{phrases.number_text(number)} 300 ms ago",
    ]


def test_a_leased_message_without_a_bound_says_so(broker: InMemoryBroker) -> None:
    serve(broker, b"mail", 1)
    job = broker.client().request(b"mail")
    assert message_lines(broker, job)[0].endswith("(attempt 1), no time bound")


def test_a_bound_that_has_passed_but_is_not_swept_yet_is_reported(broker: InMemoryBroker) -> None:
    serve(broker, b"mail", 1)
    job = broker.client().request(b"mail", headers=b"timeout:1")
    broker.core.set_time(START_NS + 2 * SECOND_NS)
    assert message_lines(broker, job)[0].endswith("its time bound has just passed")


def test_a_message_held_by_a_dismissed_worker_says_that_it_may_still_answer(broker: InMemoryBroker) -> None:
    serve(broker, b"mail", 1)
    job = broker.client().request(b"mail")
    broker.core.roster.dismiss(next(iter(broker.core.workers.values())))
    assert "that worker is dismissed: it takes nothing new and may still answer" in message_lines(broker, job)


def test_a_message_held_by_a_leaving_worker_says_that_it_may_still_answer(broker: InMemoryBroker) -> None:
    worker = serve(broker, b"mail", 1)
    job = broker.client().request(b"mail")
    worker.say(b"KBYE", b"k")
    assert "that worker is leaving: it takes nothing new and may still answer" in message_lines(broker, job)


def test_a_message_held_by_a_worker_that_does_not_read_says_so(broker: InMemoryBroker) -> None:
    worker = serve(broker, b"mail", 1)
    job = broker.client().request(b"mail")
    worker.session.is_blocked = True
    assert "that worker does not read what is sent to it" in message_lines(broker, job)


def test_a_second_attempt_tells_how_the_first_ended(broker: InMemoryBroker) -> None:
    worker = serve(broker, b"mail", 2)
    job = broker.client().request(b"mail", headers=b"retry-count:3")
    worker.reply(job, b'{"error":{}}')
    broker.pass_time(1.1)
    assert worker.jobs() == [job, job]
    lines = message_lines(broker, job)
    assert "(attempt 2)" in lines[0]
    assert lines[-1] == "the attempt before ended because the worker answered that it failed"


def test_a_message_that_killed_its_workers_names_them(broker: InMemoryBroker) -> None:
    job = broker.client().request(b"mail", body=JOB)
    numbers = []
    for name in (b"a", b"b", b"c"):
        worker = serve(broker, b"mail", 1, name)
        broker.pass_time(3)
        worker.heartbeat()
        broker.pass_time(1)
        assert worker.jobs() == [job]
        numbers.append(worker.session.number)
        worker.leave()
    names = ", ".join(f"w{phrases.number_text(number)}" for number in numbers)
    lines = message_lines(broker, job)
    assert lines[0] == f"quarantined: 3 workers died holding it ({names})"
    assert lines[1].startswith("`dragoman quarantine retry 1.")


def test_a_guaranteed_message_without_retries_left_says_why_it_is_quarantined(broker: InMemoryBroker) -> None:
    worker = serve(broker, b"mail", 1)
    job = broker.client().request(b"mail", headers=b"guarantee,retry-count:0")
    worker.reply(job, b'{"error":{}}')
    assert message_lines(broker, job)[0] == (
        "quarantined: it is guaranteed and its retries are used up (attempt 1: the worker answered that it failed)"
    )


def test_a_message_on_disk_only_is_explained_without_moving_it() -> None:
    settings = CoreSettings()
    settings.head_max = 2
    broker = InMemoryBroker(settings)
    client = broker.client()
    jobs = [client.request(b"mail") for _ in range(6)]
    assert message_lines(broker, jobs[5])[-1] == "waits behind 5 others"
    m = lookup.find_message(broker.core, jobs[4].decode())
    assert m is not None
    view = views.message_view(broker.core, m)
    assert view["is_on_disk_only"] is True
    assert view["ahead"] == 4
    worker = serve(broker, b"mail", 6)
    assert worker.jobs() == jobs


# Reasons in words: how the last worker went, and how an attempt ended.


def left_line(broker: InMemoryBroker) -> str:
    """What a message without a worker says of the last one."""
    return message_lines(broker, broker.client().request(b"mail"))[0]


def test_a_worker_that_fell_silent_lost_its_heartbeat(broker: InMemoryBroker) -> None:
    serve(broker, b"mail", 0)
    broker.pass_time(60)
    assert left_line(broker).endswith("(heartbeat lost)")


def test_that_a_worker_broke_its_protocol_is_the_reason(broker: InMemoryBroker) -> None:
    serve(broker, b"mail", 0).session.lost(PROTOCOL_FAULT)
    assert left_line(broker).endswith("(it broke its protocol)")


def test_that_a_worker_sent_goodbye_is_the_reason(broker: InMemoryBroker) -> None:
    serve(broker, b"mail", 0).say(b"KBYE", b"k")
    assert left_line(broker).endswith("(it said goodbye)")


def test_that_the_operator_dismissed_a_worker_is_the_reason(broker: InMemoryBroker) -> None:
    broker.core.roster.leave(serve(broker, b"mail", 0).session, BY_OPERATOR)
    assert left_line(broker).endswith("(the operator sent it away)")


@pytest.mark.parametrize(
    ("reason", "told"), [(WORKER_LEFT, "it said goodbye"), (BY_OPERATOR, "the operator sent it away")]
)
def test_how_a_worker_went_that_left_before_its_connection_ended_is_known_after_a_start(
    broker: InMemoryBroker, reason: int, told: str
) -> None:
    worker = serve(broker, b"mail", 0)
    broker.core.roster.leave(worker.session, reason)
    worker.leave()
    check_replay(broker)
    assert left_line(restart(broker, by_checkpoint=False)).endswith(f"({told})")


def test_that_a_worker_serves_other_queues_now_is_the_reason(broker: InMemoryBroker) -> None:
    serve(broker, b"mail", 0).inform((10, b"other"))
    assert left_line(broker).endswith("(it serves other queues now)")


def test_a_time_bound_that_passed_is_reported_as_such(broker: InMemoryBroker) -> None:
    worker = serve(broker, b"mail", 1)
    job = broker.client().request(b"mail", headers=b"timeout:1,retry-count:3")
    for _ in range(3):
        broker.pass_time(0.4)
        worker.heartbeat()
    assert message_lines(broker, job)[0].endswith("attempt 2 is next: before, it took longer than its time bound)")


def test_an_attempt_whose_worker_was_lost_is_shown_with_the_next_one(broker: InMemoryBroker) -> None:
    worker = serve(broker, b"mail", 1, b"first")
    job = broker.client().request(b"mail")
    worker.leave()
    serve(broker, b"mail", 1, b"second")
    assert message_lines(broker, job)[-1] == "the attempt before ended because the worker was lost"


def test_an_attempt_whose_worker_left_in_order_is_shown_with_the_next_one(broker: InMemoryBroker) -> None:
    worker = serve(broker, b"mail", 1, b"first")
    job = broker.client().request(b"mail")
    worker.say(b"KBYE", b"k")
    worker.leave()
    serve(broker, b"mail", 1, b"second")
    assert (
        message_lines(broker, job)[-1]
        == "the attempt before ended because the worker had said goodbye, or was sent away, and went"
    )


def test_what_a_worker_gave_back_says_so(broker: InMemoryBroker) -> None:
    node = consumer(broker, "mail")
    job = broker.client().request(b"mail", body=b"x")
    assert node.hears()
    node.say("CLEAR ID=0 UNDELIVERED")
    assert message_lines(broker, job)[0].endswith("attempt 2 is next: before, the worker gave it back)")


def test_a_message_whose_record_is_damaged_says_where() -> None:
    settings = CoreSettings()
    settings.head_max = 1
    broker = InMemoryBroker(settings)
    client = broker.client()
    for _ in range(2):
        job = client.request(b"mail")
    waiting = lookup.find_message(broker.core, job.decode())
    assert waiting is not None
    broker.damaged.add(waiting.position)
    serve(broker, b"mail", 2)
    [m] = broker.core.state.quarantine.values()
    at, number = m.position - FIRST_POSITION, phrases.number_text(m.number)
    assert heard(explain.explain_message(broker.core, m)) == [
        f"quarantined: its record in the journal is damaged (0000000001.seg at byte {at}: the record's CRC does not match)",
        f"`dragoman quarantine retry {number}` reads it again, `dragoman quarantine drop {number}` ends it",
    ]
    check_replay(broker)


def test_a_message_let_out_of_quarantine_says_that_it_was_there(broker: InMemoryBroker) -> None:
    job = broker.client().request(b"mail")
    for name in (b"a", b"b", b"c"):
        serve(broker, b"mail", 1, name).leave()
        broker.pass_time(5)
    [message] = broker.core.state.quarantine.values()
    operator.requeue(broker.core, message)
    serve(broker, b"mail", 1)
    assert message_lines(broker, job)[-1].endswith("it was set aside as one that kills workers, and let out again")


def test_a_reason_of_a_journal_that_has_more_of_them_is_shown_as_its_fact_has_it() -> None:
    assert explain.text_of(explain.LEFT_TEXTS, PURGED) == "purged"


# Kinds of workers, and moments between two steps.


def test_a_message_that_nobody_has_been_given_yet_is_next(broker: InMemoryBroker) -> None:
    worker = serve(broker, b"mail", 1)
    worker.session.is_blocked = True
    job = broker.client().request(b"mail")
    worker.session.is_blocked = False
    assert message_lines(broker, job) == ["waits, and is next: a worker with a free slot takes it in a moment"]


def test_a_lease_whose_worker_is_gone_with_the_boot_before_says_so(broker: InMemoryBroker) -> None:
    serve(broker, b"mail", 1)
    job = broker.client().request(b"mail")
    core = replayed(broker)
    m = lookup.find_message(core, job.decode())
    assert m is not None
    assert heard(explain.explain_message(core, m)) == [
        "leased (attempt 1), but its worker's session has ended: it goes back to its queue"
    ]


def test_a_message_that_was_settled_meanwhile_says_so(broker: InMemoryBroker) -> None:
    worker = serve(broker, b"mail", 1)
    job = broker.client().request(b"mail")
    m = lookup.find_message(broker.core, job.decode())
    assert m is not None
    worker.reply(job)
    assert heard(explain.explain_message(broker.core, m)) == ["settled: done"]


def test_a_body_that_no_worker_of_the_queue_can_encode_is_the_reason(broker: InMemoryBroker) -> None:
    broker.dialects.rq.settings.librq_safe = True
    job = broker.client().request(b"mail", body=b"")
    consumer(broker, "mail")
    assert message_lines(broker, job) == [
        "waits: no worker of `mail` can be sent this body; one of another dialect could be"
    ]


def test_a_body_that_only_a_busy_worker_can_encode_is_the_reason(broker: InMemoryBroker) -> None:
    broker.dialects.rq.settings.librq_safe = True
    serve(broker, b"mail", 1)
    client = broker.client()
    client.request(b"mail")
    job = client.request(b"mail", body=b"")
    consumer(broker, "mail")
    assert message_lines(broker, job)[0] == "waits: of 2 workers on `mail` no free one can be sent this body"
