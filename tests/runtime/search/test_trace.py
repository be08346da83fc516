"""Lives read from journals that hold what a short run does not: reused ids, schedules, late answers, trimmed beginnings."""

from __future__ import annotations

from pathlib import Path

from dragoman.journal.journal import Journal
from dragoman.journal.settings import JournalSettings
from dragoman.model import enums
from dragoman.model.facts import layout, records
from dragoman.model.facts.records import FactLog
from dragoman.model.message import Message, fact_id
from dragoman.model.phrases import number_text
from dragoman.runtime.search.trace import MessageHistory, end_line
from tests.runtime.search.histories import trace

START_NS = 1_700_000_000_000_000_000


class Scribe:
    """Writes facts into a real journal, one block each."""

    def __init__(self, directory: Path) -> None:
        self.directory = str(directory)
        self.journal = Journal.open(JournalSettings(self.directory, "os"))
        self.log = FactLog()
        self.now_ns = START_NS
        self.log.numbered(layout.STARTED, 1, 0, b"0.1.0")
        self.log.numbered(layout.QUEUE_NAMED, 1, 0, b"mail")

    def keep(self) -> None:
        count = self.log.count
        self.journal.append(self.log.take_parts(), count, self.now_ns)
        self.now_ns += 1_000_000

    def accept(self, number: int, client_id: bytes = b"", queue_no: int = 1) -> Message:
        m = Message(enums.EMQP, b"mail", client_id, b"body")
        m.number, m.queue_no, m.accepted_ns = number, queue_no, self.now_ns
        self.log.accepted(m)
        self.keep()
        return m

    def lease(self, m: Message, worker_no: int) -> None:
        m.attempt += 1
        m.leased_ns = self.now_ns
        m.first_leased_ns = m.first_leased_ns or self.now_ns
        self.log.leased(m, worker_no)
        self.keep()

    def settle(self, m: Message, worker_no: int) -> None:
        self.log.closed(m, worker_no, enums.EMQP, 9, 3, enums.ANSWERED, worker_no)
        self.keep()

    def trace(self, key: str) -> list[MessageHistory]:
        return trace(self.directory, key)


def names(life: MessageHistory) -> list[str]:
    return [fact["fact"] for fact in life.facts]


def test_an_id_used_twice_has_two_lives(tmp_path: Path) -> None:
    scribe = Scribe(tmp_path)
    for number in (10, 20):
        m = scribe.accept(number, b"again")
        scribe.lease(m, 5)
        scribe.settle(m, 5)
    scribe.accept(30, b"other")
    lives = scribe.trace("again")
    assert [life.number for life in lives] == [10, 20]
    assert [names(life) for life in lives] == [["accepted", "leased", "closed"]] * 2
    assert [life.queue for life in lives] == ["mail", "mail"]


def test_a_message_of_a_schedule_is_found_by_number_and_by_its_wire_id(tmp_path: Path) -> None:
    scribe = Scribe(tmp_path)
    number = 1 << 40 | 7
    scribe.log.numbered(layout.FIRED, 3, START_NS, records.fired_text(number, START_NS + 5, -1))
    scribe.accept(number)
    for key in (str(number), number_text(number), fact_id(number).decode()):
        [life] = scribe.trace(key)
        assert names(life) == ["fired", "accepted"]


def test_a_lease_names_the_worker_that_joined_before_the_message_came(tmp_path: Path) -> None:
    scribe = Scribe(tmp_path)
    scribe.log.numbered(layout.WORKER_JOINED, 5, enums.EMQP, b"emqp.worker\t127.0.0.1:9\t" + b"bob".hex().encode())
    m = scribe.accept(10, b"x")
    scribe.lease(m, 5)
    [life] = scribe.trace("x")
    assert life.facts[1]["worker"] == "bob"


def test_a_late_answer_belongs_to_the_life_it_names(tmp_path: Path) -> None:
    scribe = Scribe(tmp_path)
    m = scribe.accept(10, b"x")
    scribe.lease(m, 5)
    scribe.settle(m, 5)
    scribe.log.numbered(layout.LATE, 6, enums.EMQP, b"x")
    scribe.log.numbered(layout.LATE, 6, enums.EMQP, b"y")
    scribe.keep()
    [life] = scribe.trace("x")
    assert names(life) == ["accepted", "leased", "closed", "late"]


def test_a_start_ends_a_lease_but_is_no_event_of_a_waiting_message(tmp_path: Path) -> None:
    scribe = Scribe(tmp_path)
    leased, waiting = scribe.accept(10, b"leased"), scribe.accept(11, b"waiting")
    scribe.lease(leased, 5)
    scribe.log.numbered(layout.STARTED, 2, 0, b"0.1.0")
    scribe.keep()
    scribe.lease(leased, 6)
    assert names(scribe.trace("leased")[0]) == ["accepted", "leased", "started", "leased"]
    assert names(scribe.trace("waiting")[0]) == ["accepted"]
    assert waiting.number == 11


def test_a_life_without_its_beginning_says_so(tmp_path: Path) -> None:
    scribe = Scribe(tmp_path)
    m = Message(enums.EMQP, b"mail", b"x", b"body")
    m.number, m.queue_no, m.accepted_ns = 10, 4, START_NS
    scribe.lease(m, 5)
    scribe.settle(m, 5)
    [life] = scribe.trace("10")
    assert not life.is_begun
    assert (life.queue_no, life.queue) == (4, "")


def test_a_carried_record_is_the_beginning_where_the_accepted_one_is_gone(tmp_path: Path) -> None:
    scribe = Scribe(tmp_path)
    m = scribe.accept(10, b"here")
    scribe.log.accepted(m)
    accepted = scribe.log.take()
    carried = (len(accepted) + 13).to_bytes(4, "little") + b"\xc9" + START_NS.to_bytes(8, "little") + accepted
    gone = carried.replace(b"here", b"gone").replace((10).to_bytes(8, "little"), (11).to_bytes(8, "little"))
    scribe.log.numbered(layout.PAUSED, 1, 0, b"")
    scribe.journal.append([carried, gone, *scribe.log.take_parts()], 1, scribe.now_ns)
    assert names(scribe.trace("here")[0]) == ["accepted"]
    [life] = scribe.trace("gone")
    assert names(life) == ["carried"]
    assert life.is_begun


def test_facts_are_numbered_as_the_journal_numbers_them(tmp_path: Path) -> None:
    scribe = Scribe(tmp_path)
    m = scribe.accept(10, b"x")  # third fact of the first block
    scribe.lease(m, 5)
    assert [fact["lsn"] for fact in scribe.trace("x")[0].facts] == [3, 4]


def test_how_a_message_ended_is_one_sentence(tmp_path: Path) -> None:
    scribe = Scribe(tmp_path)
    m = scribe.accept(10, b"x")
    scribe.lease(m, 1 << 40 | 5)
    scribe.settle(m, 1 << 40 | 5)
    assert end_line(scribe.trace("x")[0]) == (
        "settled: done (answered) 2023-11-14 22:13:20 UTC, 2.0 ms after it was accepted, by worker (w1.5), attempt 1"
    )


def test_progress_goes_by_bytes_and_reaches_the_end(tmp_path: Path) -> None:
    scribe = Scribe(tmp_path)
    scribe.accept(10, b"x")
    scribe.journal.roll()
    scribe.accept(11, b"x")
    seen: list[tuple[int, int]] = []
    trace(str(tmp_path), "x", lambda done, total: seen.append((done, total)))
    assert len(seen) == 2
    assert seen[-1][0] == seen[-1][1] > 0
