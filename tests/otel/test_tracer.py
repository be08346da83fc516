"""From facts to spans, without a broker: what is remembered, what is not, and what every reader decides alike."""

from __future__ import annotations

import pytest

from dragoman.journal.format import Block
from dragoman.model import enums
from dragoman.model.facts.layout import DELIVERED, QUEUE_NAMED
from dragoman.model.facts.records import FactLog
from dragoman.model.facts.sampling import SAMPLES, is_sampled
from dragoman.model.message import Message
from dragoman.otel.spans import ERROR, LEASE, MESSAGE, OK, REPLY, UNSET, WAIT, WORK, Ids, Span
from dragoman.otel.tracer import Tracer

BROKER_ID = bytes(range(16))
DONE, REJECTED, EXPIRED, CANCELLED = 3, 4, 5, 6
TRACEPARENT = b"traceparent:00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
PARENT_ID = "b7ad6b7169203331"
BOOT = 1 << 40


class Story:
    """Facts told one block after the other, each at an instant of its own."""

    def __init__(self, ratio: float = 1.0, open_max: int = 100) -> None:
        self.tracer = Tracer(BROKER_ID, ratio, open_max)
        self.log = FactLog()
        self.blocks: list[Block] = []
        self.next_lsn = 1

    def tell(self, at_ns: int) -> list[Span]:
        """Everything that was logged, as one block."""
        count = self.log.count
        self.blocks.append(Block(0, self.next_lsn, count, at_ns, self.log.take()))
        self.next_lsn += count
        return self.tracer.take(self.blocks[-1], 0)

    def accept(
        self, number: int = BOOT + 1, headers: bytes = b"", at_ns: int = 100, dialect: int = enums.EMQP
    ) -> Message:
        m = Message(dialect, b"mail", b"id-1", b"body")
        m.number, m.queue_no, m.headers, m.accepted_ns = number, 1, headers, at_ns
        m.flags = enums.REPLY_WANTED
        self.log.numbered(QUEUE_NAMED, 1, 0, b"mail")
        self.log.accepted(m)
        self.tell(at_ns)
        return m

    def lease(self, m: Message, at_ns: int) -> None:
        m.attempt += 1
        m.leased_ns = at_ns
        m.first_leased_ns = m.first_leased_ns or at_ns
        self.log.leased(m, 7)
        assert self.tell(at_ns) == []

    def release(self, m: Message, reason: int, at_ns: int, due_ns: int = 0) -> list[Span]:
        self.log.released(m, 7, enums.EMQP, 1, due_ns, reason, False)
        return self.tell(at_ns)

    def close(
        self, m: Message, outcome: int, reason: int, at_ns: int, worker_no: int = 7, holder_no: int = 7
    ) -> list[Span]:
        self.log.closed(m, worker_no, enums.EMQP, 5, outcome, reason, holder_no)
        return self.tell(at_ns)


def shape(spans: list[Span]) -> dict[str, tuple[int, int]]:
    return {span.name: (span.start_ns, span.end_ns) for span in spans}


def test_a_message_of_which_only_the_end_is_known_still_has_all_its_spans() -> None:
    story = Story(open_max=0)
    m = story.accept(headers=TRACEPARENT)
    story.lease(m, 200)
    spans = story.close(m, DONE, enums.ANSWERED, 300)
    assert shape(spans) == {
        "message mail": (100, 300),
        "wait mail": (100, 200),
        "work mail": (200, 300),
        "reply mail": (300, 300),
    }
    assert spans[0].parent_id == b"", "its client's trace was not remembered"
    assert "dragoman.client.message.id" not in spans[0].attributes


def test_the_same_facts_make_the_same_spans_for_every_reader() -> None:
    story = Story()
    m = story.accept(headers=TRACEPARENT)
    story.lease(m, 200)
    first = story.release(m, enums.TIMED_OUT, 300, due_ns=350)
    story.lease(m, 400)
    last = story.close(m, DONE, enums.ANSWERED, 500)
    again = Tracer(BROKER_ID, 1.0, 100)
    assert [span for block in story.blocks for span in again.take(block, 0)] == first + last
    elsewhere = Tracer(bytes(16), 1.0, 100)
    other = [span for block in story.blocks for span in elsewhere.take(block, 0)]
    assert not {span.span_id for span in other} & {span.span_id for span in first + last}


def test_facts_before_the_cursor_are_remembered_and_not_exported_again() -> None:
    story = Story()
    m = story.accept(headers=TRACEPARENT)
    story.lease(m, 200)
    story.release(m, enums.TIMED_OUT, 300)
    cursor_lsn = story.next_lsn
    story.lease(m, 400)
    told = story.close(m, DONE, enums.ANSWERED, 500)
    after_crash = Tracer(BROKER_ID, 1.0, 100)
    assert [span for block in story.blocks for span in after_crash.take(block, cursor_lsn)] == told
    assert after_crash.open == {}


def test_a_message_cancelled_before_it_was_due_never_waited() -> None:
    story = Story()
    m = story.accept()
    m.asked_due_ns = 900
    spans = story.close(m, CANCELLED, enums.BY_CLIENT, 300, worker_no=0, holder_no=0)
    assert shape(spans) == {"message mail": (100, 300)}
    assert spans[0].status == UNSET


def test_a_message_that_expires_in_its_queue_waited_to_its_end() -> None:
    story = Story()
    spans = story.close(story.accept(), EXPIRED, enums.PAST_EXPIRY, 300, worker_no=0, holder_no=0)
    assert shape(spans) == {"message mail": (100, 300), "wait mail": (100, 300)}
    assert (spans[0].status, spans[0].attributes["error.type"]) == (ERROR, "past_expiry")


def test_one_that_expires_while_it_waits_again_has_a_second_wait() -> None:
    story = Story()
    m = story.accept()
    story.lease(m, 200)
    story.release(m, enums.TIMED_OUT, 300)
    spans = story.close(m, EXPIRED, enums.PAST_EXPIRY, 900, worker_no=0, holder_no=0)
    waits = [
        (span.start_ns, span.end_ns, span.attributes["dragoman.attempt"]) for span in spans if span.name == "wait mail"
    ]
    assert waits == [(100, 200, 1), (300, 900, 2)]


def test_a_failed_attempt_is_an_error_and_a_returned_one_is_not() -> None:
    story = Story()
    m = story.accept()
    story.lease(m, 200)
    (returned,) = story.release(m, enums.RETURNED, 300)
    story.lease(m, 400)
    _, lost = story.release(m, enums.WORKER_LOST, 500)
    story.lease(m, 600)
    root, _, _, last, _ = story.close(m, REJECTED, enums.RETRIES_USED_UP, 700)
    assert [span.status for span in (returned, lost, root, last)] == [UNSET, ERROR, ERROR, ERROR]
    assert [link.span_id for link in last.links] == [lost.span_id]
    assert [link.span_id for link in lost.links] == [returned.span_id]


def test_an_attempt_that_an_earlier_holder_settled_is_neither_success_nor_failure() -> None:
    story = Story()
    m = story.accept()
    story.lease(m, 200)
    spans = {span.name: span for span in story.close(m, DONE, enums.ANSWERED_LATE, 300, worker_no=6, holder_no=7)}
    work = spans["work mail"]
    assert (work.status, work.attributes["dragoman.worker.id"], work.attributes["dragoman.settled_by"]) == (
        UNSET,
        "w0.7",
        "w0.6",
    )
    assert "dragoman.worker.dialect" not in work.attributes
    assert spans["message mail"].status == OK


def test_until_a_worker_confirms_that_it_has_begun_the_lease_counts() -> None:
    story = Story()
    m = story.accept(dialect=enums.RQ)
    story.lease(m, 200)
    m.delivered_ns = 250
    spans = {span.name: span for span in story.close(m, DONE, enums.ANSWERED, 300)}
    lease, work = spans["lease mail"], spans["work mail"]
    assert (lease.start_ns, lease.end_ns, work.start_ns, work.end_ns) == (200, 250, 250, 300)
    assert (lease.trace_id, lease.parent_id) == (work.trace_id, spans["message mail"].span_id)
    assert lease.span_id != work.span_id
    assert (lease.attributes["dragoman.attempt"], lease.attributes["dragoman.worker.id"]) == (1, "w0.7")
    assert (lease.status, work.status) == (UNSET, OK)


def test_an_attempt_that_had_begun_and_was_cut_off_has_its_lease_and_the_next_has_none() -> None:
    story = Story()
    m = story.accept(dialect=enums.RQ)
    story.lease(m, 200)
    story.log.numbered(DELIVERED, m.number, 7, b"")
    assert story.tell(250) == []
    assert shape(story.release(m, enums.TIMED_OUT, 300)) == {"lease mail": (200, 250), "work mail": (250, 300)}
    story.lease(m, 400)
    story.log.quarantined(m, 7, enums.RQ, enums.WORKERS_DIED, 7)
    assert shape(story.tell(500)) == {"wait mail": (300, 400), "work mail": (400, 500)}


def test_ids_stay_what_they_were_in_every_version() -> None:
    ids = Ids(BROKER_ID)
    assert [ids.span_id(BOOT, kind, 1).hex() for kind in (MESSAGE, WAIT, WORK, REPLY, LEASE)] == [
        "4e15a10d64d769b8",
        "9f5372bd8193f664",
        "2ded7bd3b8defd9f",
        "8006d76fccb6eed0",
        "e8eed236d0a5ecb2",
    ]
    assert ids.trace_id(BOOT).hex() == "bc63025cb8f358e9ff0f71f1149f6723"


def test_an_answer_that_nobody_could_be_given_is_no_reply() -> None:
    story = Story()
    m = story.accept()
    story.lease(m, 200)
    assert "reply mail" not in shape(story.close(m, DONE, enums.REPLY_UNDELIVERABLE, 300))


def test_a_quarantined_messages_time_there_is_no_wait() -> None:
    story = Story()
    m = story.accept()
    story.lease(m, 200)
    story.log.quarantined(m, 7, enums.EMQP, enums.WORKERS_DIED, 7)
    (work,) = story.tell(300)
    assert (work.start_ns, work.end_ns, work.status) == (200, 300, ERROR)
    story.log.requeued(m, False)
    assert story.tell(800) == []
    story.lease(m, 900)
    waits = [span for span in story.close(m, DONE, enums.ANSWERED, 950) if span.name == "wait mail"]
    assert [(span.start_ns, span.end_ns) for span in waits] == [(100, 200), (800, 900)]


def test_a_clock_that_stepped_back_makes_no_span_that_ends_before_it_begins() -> None:
    story = Story()
    m = story.accept(at_ns=500)
    story.lease(m, 200)
    spans = story.close(m, DONE, enums.ANSWERED, 300)
    assert all(span.start_ns <= span.end_ns for span in spans)


def test_memory_is_bounded_and_given_back() -> None:
    story = Story(open_max=2)
    messages = [story.accept(BOOT + number) for number in range(5)]
    assert len(story.tracer.open) == 2
    for m in messages:
        story.close(m, CANCELLED, enums.BY_CLIENT, 300, worker_no=0, holder_no=0)
    assert story.tracer.open == {}
    assert story.tracer.oldest_lsn() == 0


def test_a_traceparent_of_another_dialects_body_is_not_believed() -> None:
    story = Story()
    m = story.accept(headers=TRACEPARENT, dialect=enums.EBUS)
    assert story.close(m, CANCELLED, enums.BY_CLIENT, 300, worker_no=0, holder_no=0)[0].parent_id == b""


@pytest.mark.parametrize("dialect", [enums.EMQP, enums.SCALE0])
def test_a_client_that_samples_is_traced_whatever_the_share(dialect: int) -> None:
    story = Story(ratio=0.0)
    m = story.accept(headers=TRACEPARENT, dialect=dialect)
    assert story.close(m, CANCELLED, enums.BY_CLIENT, 300, worker_no=0, holder_no=0)[0].parent_id.hex() == PARENT_ID


def test_a_queue_whose_name_is_not_known_is_shown_by_its_number() -> None:
    story = Story()
    m = story.accept()
    m.queue_no = 9
    assert story.close(m, CANCELLED, enums.BY_CLIENT, 300, worker_no=0, holder_no=0)[0].name == "message #9"


def test_the_share_of_messages_is_what_was_asked_for_in_every_boot() -> None:
    for boot_no in (1, 2, 77):
        for share in (0.0, 0.01, 0.5, 1.0):
            numbers = range(boot_no << 40, (boot_no << 40) + 20_000)
            chosen = sum(is_sampled(number, round(share * SAMPLES)) for number in numbers)
            assert abs(chosen - share * 20_000) <= 20, (boot_no, share)


def test_a_message_that_is_not_sampled_has_no_span_at_all() -> None:
    story = Story(ratio=0.0)
    m = story.accept()
    story.lease(m, 200)
    assert story.release(m, enums.TIMED_OUT, 300) == []
    assert story.close(m, CANCELLED, enums.BY_CLIENT, 400, worker_no=0, holder_no=0) == []
