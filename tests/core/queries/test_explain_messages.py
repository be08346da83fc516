"""Why a message does not move, provoked by peers and time alone."""

from __future__ import annotations

import pytest

from dragoman.core import operator
from dragoman.core.queries import explain, lookup, views
from dragoman.core.settings import CoreSettings
from dragoman.model import phrases
from dragoman.model.units import SECOND_NS
from dragoman.model.words import BY_OPERATOR, PROTOCOL_FAULT, PURGED, WORKER_LEFT
from tests.core.harness import FIRST_PLACE, START_NS, Client, House
from tests.core.queries.explaining import JOB, heard, message_lines, serve
from tests.core.replaying import check_replay, replayed, restart
from tests.dialects.rq.nodes import consumer


def test_a_message_nobody_ever_served_says_so(house: House) -> None:
    job = house.client().request(b"thumbs")
    assert message_lines(house, job) == ["waits: no worker serves `thumbs`, and none is known to have"]


def test_a_message_whose_last_worker_was_lost_says_when_it_left(house: House) -> None:
    worker = serve(house, b"thumbs", 0)
    house.pass_time(2)
    worker.leave()
    job = house.client().request(b"thumbs")
    house.pass_time(3)
    [line] = message_lines(house, job)
    assert line == (
        "waits: no worker serves `thumbs`; the last one left 22:13:22 UTC, 3.0 s ago (its connection ended without a goodbye)"
    )


def test_a_message_in_a_draining_broker_says_that_it_will_be_served_after_the_next_start(house: House) -> None:
    serve(house, b"mail", 1)
    house.core.dispatch.is_stopped = True
    job = house.client().request(b"mail")
    assert message_lines(house, job) == [
        "waits: the broker is draining and gives nothing to workers; it is served after the next start"
    ]


def test_a_message_in_a_paused_queue_says_how_to_resume(house: House) -> None:
    serve(house, b"mail", 1)
    operator.set_paused(house.core, b"mail", True)
    job = house.client().request(b"mail")
    assert message_lines(house, job) == [
        "waits: the queue `mail` is paused; `dragoman queues resume mail` lets it go on"
    ]


def test_a_message_behind_busy_workers_counts_their_leases_and_those_before_it(house: House) -> None:
    for identity in (b"a", b"b", b"c"):
        serve(house, b"mail", 8, identity)
    client = house.client()
    jobs = [client.request(b"mail") for _ in range(30)]
    assert message_lines(house, jobs[-1]) == [
        "waits: 3 workers serve `mail` and all their slots are taken (24 leased)",
        "waits behind 5 others",
    ]
    assert message_lines(house, jobs[24])[1:] == []


def test_clients_take_turns_so_another_clients_line_counts_only_as_far_as_ones_own(house: House) -> None:
    for _ in range(100):
        house.client(b"greedy").request(b"mail")
    modest = Client(house, "emqp.client", b"modest")
    modest.request(b"mail")
    job = modest.request(b"mail")
    assert message_lines(house, job)[-1] == "waits behind 3 others"


def test_higher_priorities_stand_before_a_message(house: House) -> None:
    client = house.client()
    job = client.request(b"mail")
    for _ in range(4):
        client.request(b"mail", headers=b"priority:5")
    assert message_lines(house, job)[-1] == "waits behind 4 others"


def test_a_worker_that_never_said_ready_is_named_as_the_reason(house: House) -> None:
    serve(house, b"mail", 0)
    job = house.client().request(b"mail")
    assert message_lines(house, job) == [
        "waits: 1 worker serves `mail`, but none has said that it has room (eMQP: no READY came)"
    ]


def test_a_worker_that_does_not_read_is_named_as_the_reason(house: House) -> None:
    worker = serve(house, b"mail", 1)
    worker.session.is_blocked = True
    job = house.client().request(b"mail")
    assert message_lines(house, job) == ["waits: 1 worker serves `mail`, but what is sent to them is not read"]


def test_a_body_that_only_original_workers_could_get_waits_and_says_why(house: House) -> None:
    worker = house.worker()
    worker.inform_as_original((10, b"mail"))
    worker.ready(1)
    job = house.client().request(b"mail", body=b"\xff\xfe not json")
    worker.ready(1)
    assert worker.jobs() == []
    assert message_lines(house, job) == [
        "waits: not a JSON job; only original EventMQ workers serve `mail`, and such a body would reset them"
    ]


def test_a_body_that_only_a_busy_worker_takes_says_so(house: House) -> None:
    original = house.worker(b"original")
    original.inform_as_original((10, b"mail"))
    original.ready(2)
    ours = serve(house, b"mail", 1, b"ours")
    client = house.client()
    first = client.request(b"mail", body=b"\xff 1")
    assert ours.jobs() == [first]
    job = client.request(b"mail", body=b"\xff 2")
    original.ready(1)
    assert message_lines(house, job) == [
        "waits: not a JSON job, and of 2 workers on `mail` no free one takes other bodies"
    ]


def test_a_delay_its_client_asked_for_is_told_with_its_end(house: House) -> None:
    job = house.client().request(b"mail", headers=b"delay:90")
    house.pass_time(30)
    assert message_lines(house, job) == [
        "waits: delayed until 22:14:50 UTC (60.0 s from now; its client asked for the delay)"
    ]


def test_a_backoff_is_told_with_its_cause_and_the_coming_attempt(house: House) -> None:
    worker = serve(house, b"mail", 1)
    job = house.client().request(b"mail", headers=b"retry-count:3")
    worker.reply(job, b'{"error":{"type":"X","message":"no"}}')
    assert message_lines(house, job) == [
        "waits: delayed until 22:13:21 UTC (1.0 s from now; attempt 2 is next: before, the worker answered that it failed)"
    ]


def test_a_delayed_message_of_a_paused_queue_says_that_it_will_wait_on(house: House) -> None:
    job = house.client().request(b"mail", headers=b"delay:5")
    operator.set_paused(house.core, b"mail", True)
    assert message_lines(house, job)[1] == "then it waits on: the queue `mail` is paused"


def test_an_expiry_is_told_while_it_waits(house: House) -> None:
    job = house.client().request(b"mail", headers=b"expires:60")
    assert message_lines(house, job)[-1] == "expires 22:14:20 UTC (in 60.0 s) if nobody has taken it by then"


def test_a_leased_message_names_its_worker_its_age_and_its_time_bound(house: House) -> None:
    worker = serve(house, b"mail", 1)
    job = house.client().request(b"mail", headers=b"timeout:30")
    house.pass_time(2)
    worker.heartbeat()
    house.pass_time(0.3)
    number = worker.session.number
    assert message_lines(house, job) == [
        f"leased to worker w{phrases.number_text(number)} (worker) for 2.3 s (attempt 1), time bound in 27.7 s",
        f"last sign of life from worker w{phrases.number_text(number)} 300 ms ago",
    ]


def test_a_leased_message_without_a_bound_says_so(house: House) -> None:
    serve(house, b"mail", 1)
    job = house.client().request(b"mail")
    assert message_lines(house, job)[0].endswith("(attempt 1), no time bound")


def test_a_bound_that_has_passed_but_is_not_swept_yet_is_told(house: House) -> None:
    serve(house, b"mail", 1)
    job = house.client().request(b"mail", headers=b"timeout:1")
    house.core.set_time(START_NS + 2 * SECOND_NS)
    assert message_lines(house, job)[0].endswith("its time bound has just passed")


def test_a_message_held_by_a_dismissed_worker_says_that_it_may_still_answer(house: House) -> None:
    serve(house, b"mail", 1)
    job = house.client().request(b"mail")
    house.core.roster.dismiss(next(iter(house.core.workers.values())))
    assert "that worker is dismissed: it takes nothing new and may still answer" in message_lines(house, job)


def test_a_message_held_by_a_leaving_worker_says_that_it_may_still_answer(house: House) -> None:
    worker = serve(house, b"mail", 1)
    job = house.client().request(b"mail")
    worker.say(b"KBYE", b"k")
    assert "that worker is leaving: it takes nothing new and may still answer" in message_lines(house, job)


def test_a_message_held_by_a_worker_that_does_not_read_says_so(house: House) -> None:
    worker = serve(house, b"mail", 1)
    job = house.client().request(b"mail")
    worker.session.is_blocked = True
    assert "that worker does not read what is sent to it" in message_lines(house, job)


def test_a_second_attempt_tells_how_the_first_ended(house: House) -> None:
    worker = serve(house, b"mail", 2)
    job = house.client().request(b"mail", headers=b"retry-count:3")
    worker.reply(job, b'{"error":{}}')
    house.pass_time(1.1)
    assert worker.jobs() == [job, job]
    lines = message_lines(house, job)
    assert "(attempt 2)" in lines[0]
    assert lines[-1] == "the attempt before ended because the worker answered that it failed"


def test_a_message_that_killed_its_workers_names_them(house: House) -> None:
    job = house.client().request(b"mail", body=JOB)
    numbers = []
    for name in (b"a", b"b", b"c"):
        worker = serve(house, b"mail", 1, name)
        house.pass_time(3)
        worker.heartbeat()
        house.pass_time(1)
        assert worker.jobs() == [job]
        numbers.append(worker.session.number)
        worker.leave()
    names = ", ".join(f"w{phrases.number_text(number)}" for number in numbers)
    lines = message_lines(house, job)
    assert lines[0] == f"quarantined: 3 workers died holding it ({names})"
    assert lines[1].startswith("`dragoman quarantine retry 1.")


def test_a_guaranteed_message_without_retries_left_says_why_it_is_quarantined(house: House) -> None:
    worker = serve(house, b"mail", 1)
    job = house.client().request(b"mail", headers=b"guarantee,retry-count:0")
    worker.reply(job, b'{"error":{}}')
    assert message_lines(house, job)[0] == (
        "quarantined: it is guaranteed and its retries are used up (attempt 1: the worker answered that it failed)"
    )


def test_a_message_on_disk_only_is_explained_without_moving_it() -> None:
    settings = CoreSettings()
    settings.head_max = 2
    house = House(settings)
    client = house.client()
    jobs = [client.request(b"mail") for _ in range(6)]
    assert message_lines(house, jobs[5])[-1] == "waits behind 5 others"
    m = lookup.find_message(house.core, jobs[4].decode())
    assert m is not None
    view = views.message_view(house.core, m)
    assert view["is_on_disk_only"] is True
    assert view["ahead"] == 4
    worker = serve(house, b"mail", 6)
    assert worker.jobs() == jobs


# Reasons in words: how the last worker went, and how an attempt ended.


def left_line(house: House) -> str:
    """What a message without a worker says of the last one."""
    return message_lines(house, house.client().request(b"mail"))[0]


def test_a_worker_that_fell_silent_lost_its_heartbeat(house: House) -> None:
    serve(house, b"mail", 0)
    house.pass_time(60)
    assert left_line(house).endswith("(heartbeat lost)")


def test_a_worker_that_broke_its_protocol_is_told_so(house: House) -> None:
    serve(house, b"mail", 0).session.lost(PROTOCOL_FAULT)
    assert left_line(house).endswith("(it broke its protocol)")


def test_a_worker_that_said_goodbye_is_told_so(house: House) -> None:
    serve(house, b"mail", 0).say(b"KBYE", b"k")
    assert left_line(house).endswith("(it said goodbye)")


def test_a_worker_that_the_operator_sent_away_is_told_so(house: House) -> None:
    house.core.roster.leave(serve(house, b"mail", 0).session, BY_OPERATOR)
    assert left_line(house).endswith("(the operator sent it away)")


@pytest.mark.parametrize(
    ("reason", "told"), [(WORKER_LEFT, "it said goodbye"), (BY_OPERATOR, "the operator sent it away")]
)
def test_how_a_worker_went_that_left_before_its_connection_ended_is_known_after_a_start(
    house: House, reason: int, told: str
) -> None:
    worker = serve(house, b"mail", 0)
    house.core.roster.leave(worker.session, reason)
    worker.leave()
    check_replay(house)
    assert left_line(restart(house, by_checkpoint=False)).endswith(f"({told})")


def test_a_worker_that_serves_other_queues_now_is_told_so(house: House) -> None:
    serve(house, b"mail", 0).inform((10, b"other"))
    assert left_line(house).endswith("(it serves other queues now)")


def test_a_time_bound_that_passed_is_told_as_such(house: House) -> None:
    worker = serve(house, b"mail", 1)
    job = house.client().request(b"mail", headers=b"timeout:1,retry-count:3")
    for _ in range(3):
        house.pass_time(0.4)
        worker.heartbeat()
    assert message_lines(house, job)[0].endswith("attempt 2 is next: before, it took longer than its time bound)")


def test_an_attempt_whose_worker_was_lost_is_told_by_the_next_one(house: House) -> None:
    worker = serve(house, b"mail", 1, b"first")
    job = house.client().request(b"mail")
    worker.leave()
    serve(house, b"mail", 1, b"second")
    assert message_lines(house, job)[-1] == "the attempt before ended because the worker was lost"


def test_an_attempt_whose_worker_left_in_order_is_told_by_the_next_one(house: House) -> None:
    worker = serve(house, b"mail", 1, b"first")
    job = house.client().request(b"mail")
    worker.say(b"KBYE", b"k")
    worker.leave()
    serve(house, b"mail", 1, b"second")
    assert (
        message_lines(house, job)[-1]
        == "the attempt before ended because the worker had said goodbye, or was sent away, and went"
    )


def test_what_a_worker_gave_back_says_so(house: House) -> None:
    node = consumer(house, "mail")
    job = house.client().request(b"mail", body=b"x")
    assert node.hears()
    node.say("CLEAR ID=0 UNDELIVERED")
    assert message_lines(house, job)[0].endswith("attempt 2 is next: before, the worker gave it back)")


def test_a_message_whose_record_is_damaged_says_where() -> None:
    settings = CoreSettings()
    settings.head_max = 1
    house = House(settings)
    client = house.client()
    for _ in range(2):
        job = client.request(b"mail")
    waiting = lookup.find_message(house.core, job.decode())
    assert waiting is not None
    house.damaged.add(waiting.place)
    serve(house, b"mail", 2)
    [m] = house.core.state.quarantine.values()
    at, number = m.place - FIRST_PLACE, phrases.number_text(m.number)
    assert heard(explain.explain_message(house.core, m)) == [
        f"quarantined: its record in the journal is damaged (0000000001.seg at byte {at}: the record's CRC does not match)",
        f"`dragoman quarantine retry {number}` reads it again, `dragoman quarantine drop {number}` ends it",
    ]
    check_replay(house)


def test_a_message_let_out_of_quarantine_says_that_it_was_there(house: House) -> None:
    job = house.client().request(b"mail")
    for name in (b"a", b"b", b"c"):
        serve(house, b"mail", 1, name).leave()
        house.pass_time(5)
    [message] = house.core.state.quarantine.values()
    operator.requeue(house.core, message)
    serve(house, b"mail", 1)
    assert message_lines(house, job)[-1].endswith("it was set aside as one that kills workers, and let out again")


def test_a_reason_of_a_journal_that_has_more_of_them_is_shown_as_its_fact_has_it() -> None:
    assert explain.text_of(explain.LEFT_TEXTS, PURGED) == "purged"


# Kinds of workers, and moments between two steps.


def test_a_message_that_nobody_has_been_given_yet_is_next(house: House) -> None:
    worker = serve(house, b"mail", 1)
    worker.session.is_blocked = True
    job = house.client().request(b"mail")
    worker.session.is_blocked = False
    assert message_lines(house, job) == ["waits, and is next: a worker with a free slot takes it in a moment"]


def test_a_lease_whose_worker_is_gone_with_the_boot_before_says_so(house: House) -> None:
    serve(house, b"mail", 1)
    job = house.client().request(b"mail")
    core = replayed(house)
    m = lookup.find_message(core, job.decode())
    assert m is not None
    assert heard(explain.explain_message(core, m)) == [
        "leased (attempt 1), but its worker's session has ended: it goes back to its queue"
    ]


def test_a_message_that_was_settled_meanwhile_says_so(house: House) -> None:
    worker = serve(house, b"mail", 1)
    job = house.client().request(b"mail")
    m = lookup.find_message(house.core, job.decode())
    assert m is not None
    worker.reply(job)
    assert heard(explain.explain_message(house.core, m)) == ["settled: done"]


def test_a_body_that_no_worker_of_the_queue_can_be_told_says_so(house: House) -> None:
    house.dialects.rq.settings.librq_safe = True
    job = house.client().request(b"mail", body=b"")
    consumer(house, "mail")
    assert message_lines(house, job) == [
        "waits: no worker of `mail` can be told this body; one of another dialect could be"
    ]


def test_a_body_that_only_a_busy_worker_can_be_told_says_so(house: House) -> None:
    house.dialects.rq.settings.librq_safe = True
    serve(house, b"mail", 1)
    client = house.client()
    client.request(b"mail")
    job = client.request(b"mail", body=b"")
    consumer(house, "mail")
    assert message_lines(house, job)[0] == "waits: of 2 workers on `mail` no free one can be told this body"
