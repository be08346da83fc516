"""Open messages by what they have in common: nothing that matches is left out without a word."""

from __future__ import annotations

from typing import Any

from dragoman.core.queries import matching, views
from dragoman.core.settings import CoreSettings
from dragoman.limits import MESSAGES_LOOKED_AT_MAX, MESSAGES_PASSED_BY_MAX
from dragoman.model.enums import EMQP, FAILED, RQ
from dragoman.model.message import Message
from dragoman.model.units import SECOND_NS
from tests.core.harness import InMemoryBroker, Worker


def serve(broker: InMemoryBroker, queue: bytes, slots: int = 1) -> Worker:
    worker = broker.worker()
    worker.inform((10, queue))
    worker.ready(slots)
    return worker


def listed(broker: InMemoryBroker, wanted: matching.Wanted, offset: int = 0, limit: int = 100) -> Any:
    return views.messages(broker.core, offset, limit, wanted)


def ids(found: Any) -> list[str]:
    return [message["client_id"] for message in found["messages"]]


def crowded(broker: InMemoryBroker) -> dict[str, bytes]:
    """One message of each state."""
    worker = serve(broker, b"mail", 2)
    client = broker.client()
    jobs = {"quarantined": client.request(b"mail", headers=b"guarantee,retry-count:0")}
    worker.reply(jobs["quarantined"], b'{"error":{}}')
    broker.pass_time(1)
    jobs["leased"] = client.request(b"mail")
    broker.pass_time(1)
    jobs["delayed"] = client.request(b"mail", headers=b"delay:600")
    broker.pass_time(1)
    jobs["waiting"] = client.request(b"mail")
    return jobs


def test_every_state_is_found_alone_and_all_together_oldest_first() -> None:
    broker = InMemoryBroker()
    jobs = crowded(broker)
    for state, job in jobs.items():
        wanted = matching.Wanted()
        wanted.state = matching.STATES[state]
        assert ids(listed(broker, wanted)) == [job.decode()], state
    found = listed(broker, matching.Wanted())
    assert ids(found) == [job.decode() for job in jobs.values()]
    assert (found["total"], found["is_cut"]) == (4, False)


def test_pages_go_on_where_the_last_one_ended() -> None:
    broker = InMemoryBroker()
    jobs = [job.decode() for job in crowded(broker).values()]
    pages = [ids(listed(broker, matching.Wanted(), offset, 2)) for offset in (0, 2, 4)]
    assert pages == [jobs[:2], jobs[2:], []]


def test_age_dialect_reason_and_holder_must_all_match() -> None:
    broker = InMemoryBroker()
    jobs = crowded(broker)
    wanted = matching.Wanted()
    wanted.accepted_before_ns = broker.now_ns - 2 * SECOND_NS
    assert ids(listed(broker, wanted)) == [jobs["quarantined"].decode(), jobs["leased"].decode()]
    wanted.reason = FAILED
    assert ids(listed(broker, wanted)) == [jobs["quarantined"].decode()]
    wanted.dialect = EMQP
    assert len(ids(listed(broker, wanted))) == 1
    wanted.dialect = RQ
    assert ids(listed(broker, wanted)) == []
    held = matching.Wanted()
    [held.worker] = broker.core.workers.values()
    assert ids(listed(broker, held)) == [jobs["leased"].decode()]


def test_a_list_says_that_more_may_match_when_some_are_on_disk_only() -> None:
    settings = CoreSettings()
    settings.head_max = 2
    broker = InMemoryBroker(settings)
    client = broker.client()
    jobs = [client.request(b"mail").decode() for _ in range(5)]
    found = listed(broker, matching.Wanted())
    assert ids(found) == jobs[:2]
    assert found["is_cut"] is True


def test_a_long_queue_does_not_hide_a_short_one_and_the_work_is_bounded() -> None:
    broker = InMemoryBroker()
    for number in range(MESSAGES_LOOKED_AT_MAX + 500):
        m = Message(EMQP, b"long", b"m%d" % number, b"")
        broker.core.submit(m)
    broker.commit()
    job = broker.client().request(b"short")
    found = matching.find(broker.core, matching.Wanted())
    assert found.is_cut
    assert found.left >= 0
    assert job in [m.client_id for m in found.found]
    only = matching.Wanted()
    only.queue_no = broker.core.state.queues[b"short"].number
    assert not matching.find(broker.core, only).is_cut


def test_looking_at_messages_moves_none() -> None:
    broker = InMemoryBroker()
    client = broker.client()
    jobs = [client.request(b"mail") for _ in range(3)]
    listed(broker, matching.Wanted())
    worker = serve(broker, b"mail", 3)
    assert worker.jobs() == jobs


def test_a_listed_message_does_not_count_who_stands_before_it() -> None:
    broker = InMemoryBroker()
    job = broker.client().request(b"mail")
    [listed_one] = listed(broker, matching.Wanted())["messages"]
    m = broker.core.lookup(job)
    assert m is not None
    whole = views.message_view(broker.core, m)
    assert whole.pop("ahead") == 0
    assert listed_one == whole


def delay_many(broker: InMemoryBroker, queue: bytes, count: int) -> None:
    for number in range(count):
        m = Message(EMQP, queue, b"d%d" % number, b"")
        m.due_ns = broker.now_ns + 600 * SECOND_NS
        broker.core.submit(m)
    broker.commit()
    assert broker.core.state.queues[queue].delayed == count


def test_messages_of_other_queues_do_not_hide_those_of_the_one_that_is_asked_about() -> None:
    broker = InMemoryBroker()
    delay_many(broker, b"late", MESSAGES_LOOKED_AT_MAX + 500)
    client = broker.client()
    jobs = [client.request(b"mail"), client.request(b"mail", headers=b"delay:600")]
    wanted = matching.Wanted()
    wanted.queue_no = broker.core.state.queues[b"mail"].number
    found = matching.find(broker.core, wanted)
    assert [m.client_id for m in found.found] == jobs
    assert not found.is_cut
    assert found.left == MESSAGES_LOOKED_AT_MAX - 2


def test_what_waits_is_found_although_very_many_are_delayed() -> None:
    broker = InMemoryBroker()
    delay_many(broker, b"mail", MESSAGES_LOOKED_AT_MAX + 500)
    job = broker.client().request(b"mail")
    found = matching.find(broker.core, matching.Wanted())
    assert job in [m.client_id for m in found.found]
    assert (found.is_cut, found.left) == (True, 0)


def test_entries_that_stand_for_no_message_any_more_are_steps_that_end() -> None:
    broker = InMemoryBroker()
    broker.core.state.delayed.extend((broker.now_ns + number, 1) for number in range(MESSAGES_PASSED_BY_MAX + 1))
    found = matching.find(broker.core, matching.Wanted())
    assert (found.is_cut, found.steps_left, found.found) == (True, 0, [])


def test_messages_are_found_by_the_identity_of_their_client_and_by_when_they_were_accepted() -> None:
    broker = InMemoryBroker()
    first, second = broker.client(), broker.client()
    jobs = [first.request(b"mail").decode(), second.request(b"mail").decode()]
    broker.pass_time(10)
    jobs.append(first.request(b"mail").decode())
    for m in broker.core.state.messages.values():
        m.address = b"\x01anna" if m.client_id.decode() != jobs[1] else b"\x81anna"
    wanted = matching.Wanted()
    wanted.clients = {b"anna", b"else"}
    assert ids(listed(broker, wanted)) == [jobs[0], jobs[2]], "an anonymous one has no identity"
    wanted.accepted_from_ns = broker.core.now_ns - 5 * SECOND_NS
    assert ids(listed(broker, wanted)) == [jobs[2]]
    wanted.clients = {b"nobody"}
    assert ids(listed(broker, wanted)) == []
