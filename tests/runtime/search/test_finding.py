"""A generated broker's journal of several segments, searched: page by page the same as by reading every fact."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dragoman import limits
from dragoman.cli.root import run
from dragoman.core.core import Core
from dragoman.core.settings import CoreSettings
from dragoman.core.storage.snapshot import encode
from dragoman.errors import BadSearch
from dragoman.journal.journal import Journal
from dragoman.journal.reader import JournalReader
from dragoman.journal.segment_views import segment_views
from dragoman.journal.settings import JournalSettings
from dragoman.journal.tools.indexer import Indexer
from dragoman.journal.tools.verify import no_progress
from dragoman.model import enums
from dragoman.model.facts import layout
from dragoman.model.facts.decode import decode_block
from dragoman.model.facts.records import FactLog
from dragoman.model.message import Message
from dragoman.model.phrases import number_text
from dragoman.runtime.search.finding import FOREVER, Answer, Finder, Question, find_messages
from dragoman.runtime.search.naming import Naming
from dragoman_lab.generate.broker import Plan
from dragoman_lab.generate.world import World

pytestmark = pytest.mark.long

PLAN = Plan(facts=6_000, seed=5, days=3)
ENDS = ("done", "rejected", "expired", "cancelled")

Fact = dict[str, Any]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("world") / "journal"
    settings = JournalSettings(str(directory), "os", segment_size=96 * 1024, zero_fill=False)
    journal = Journal.open(settings, now_ns=1, new_broker_id=PLAN.broker_id)

    def take(records: bytes, first_lsn: int, count: int, time_ns: int) -> None:
        if journal.wants_roll(len(records)):
            journal.sync()
            journal.roll()
        journal.append([records], count, time_ns)

    World(PLAN).run(take)
    journal.close()
    Indexer(str(directory), step_size=100_000).work()
    return directory


@pytest.fixture(scope="module")
def history(world: Path) -> History:
    return History(world)


class History:
    """Every fact that a journal still has, and what a search should say of them."""

    def __init__(self, directory: Path) -> None:
        self.facts: list[Fact] = []
        for block in JournalReader(str(directory)).read(0):
            decoded = [fact for fact in decode_block(block.records) if fact["fact"] != "carried"]
            for ordinal, fact in enumerate(decoded):
                self.facts.append({**fact, "lsn": block.first_lsn + ordinal, "time_ns": block.time_ns})
        self.queues = {fact["queue_no"]: fact["queue"] for fact in self.of("queue_named")}
        self.workers = {fact["worker_no"]: (fact["identity"], fact["remote"]) for fact in self.of("worker_joined")}
        self.accepted = {fact["message_no"]: fact for fact in self.of("accepted")}
        self.closed = {fact["message_no"]: fact for fact in self.of("closed")}

    def of(self, name: str) -> list[Fact]:
        return [fact for fact in self.facts if fact["fact"] == name]

    def listed(self, question: Question) -> list[tuple[int, int]]:
        """lsn and number of each message that should be found, newest first."""
        found: dict[int, int] = {}
        for fact in self.facts:
            if question.from_ns <= fact["time_ns"] < question.to_ns and self.shows(fact, question):
                if self.fits(fact["message_no"], question):
                    found[fact["message_no"]] = fact["lsn"]
        return sorted(((lsn, number) for number, lsn in found.items()), reverse=True)

    def shows(self, fact: Fact, question: Question) -> bool:
        name = fact["fact"]
        if question.peer:
            if name == "accepted":
                return bool(fact["address"][1:] == question.peer and not fact["address"].startswith("\\x"))
            return name in ("leased", "closed") and any(
                question.peer in (*self.workers.get(no, ()), f"w{number_text(no)}")
                for no in (fact["worker_no"], fact.get("holder_no", 0))
            )
        if name == "accepted":
            return question.state in ("", "open")
        if name != "closed":
            return False
        begin = self.accepted.get(fact["message_no"])
        return question.state != "" or begin is None or begin["time_ns"] < question.from_ns

    def fits(self, number: int, question: Question) -> bool:
        end = self.closed.get(number)
        begin = self.accepted.get(number) or end
        assert begin is not None
        if question.queue and self.queues[begin["queue_no"]] != question.queue:
            return False
        if question.dialect and begin["dialect"] != question.dialect:
            return False
        if question.state == "open":
            return end is None
        if question.state == "ended":
            return end is not None
        return not question.state or (end is not None and end["outcome"] == question.state)


def pages(directory: Path, question: Question) -> Iterator[Answer]:
    for _ in range(2000):
        answer = find_messages(str(directory), question)
        yield answer
        if not answer.next_lsn:
            return
        assert answer.next_lsn < question.before_lsn, "no progress"
        question = replace(question, before_lsn=answer.next_lsn)
    raise AssertionError("the pages do not end")


def found(directory: Path, question: Question) -> list[tuple[int, int]]:
    return [(row.lsn, row.number) for answer in pages(directory, question) for row in answer.rows]


def questions(history: History) -> list[Question]:
    times = sorted({fact["time_ns"] for fact in history.facts})
    early, late = times[len(times) // 4], times[3 * len(times) // 4]
    queue = Counter(history.queues[fact["queue_no"]] for fact in history.of("closed")).most_common(3)[-1][0]
    clients = Counter(fact["address"][1:] for fact in history.of("accepted") if fact["address"][:1] != "\\")
    settlers = Counter(fact["worker_no"] for fact in history.of("closed") if fact["worker_no"])
    worker = settlers.most_common()[len(settlers) // 2][0]
    asked = [Question(state=state) for state in ("", "open", "ended", *ENDS)]
    asked += [Question(queue=queue), Question(dialect="rq"), Question(queue=queue, dialect="rq", state="rejected")]
    asked += [Question(peer=f"w{number_text(worker)}")]
    asked += [Question(peer=name) for name in history.workers[worker] if name]
    asked += [Question(peer=name, state=state) for name, _ in clients.most_common(2) for state in ("", "done", "open")]
    asked += [Question(peer="nobody"), Question(queue="nobody")]
    return asked + [replace(one, from_ns=early, to_ns=late) for one in asked]


@pytest.mark.parametrize("limit", [7, 1000])
def test_pages_have_every_message_once_newest_first(world: Path, history: History, limit: int) -> None:
    for question in questions(history):
        if limit == 7 and not (question.queue or question.peer):
            continue  # hundreds of pages
        asked = replace(question, limit=limit)
        assert found(world, asked) == history.listed(asked), asked


def test_these_questions_have_what_they_are_made_for(world: Path, history: History) -> None:
    """Else the tests here would prove nothing."""
    counts = [len(history.listed(question)) for question in questions(history)]
    assert sum(count > 0 for count in counts) > len(counts) * 2 // 3, counts
    assert len(list(world.glob("*.seg"))) > 5
    crossing = [number for number, end in history.closed.items() if end["lsn"] - history.accepted[number]["lsn"] > 1000]
    assert len(crossing) > 5, "lives must reach over segments"
    assert len(history.listed(Question(state="open"))) > 5
    assert len(history.of("accepted")) > 1000


def test_small_bounds_cost_pages_and_no_message(world: Path, history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "FIND_SIZE_MAX", 200_000)
    monkeypatch.setattr(limits, "FIND_TOLD_MAX", 20)
    monkeypatch.setattr(limits, "FIND_TOLD_STEP", 8)
    for question in questions(history):
        if question.queue or question.peer or question.state in ("open", "expired"):
            assert found(world, question) == history.listed(question), question


def test_an_answer_says_how_far_back_it_looked(world: Path, history: History) -> None:
    asked = Question(state="done", limit=30)
    below_ns = FOREVER
    for answer in pages(world, asked):
        assert answer.searched_from_ns <= below_ns
        assert all(answer.searched_from_ns <= row.ended_ns <= below_ns for row in answer.rows)
        below_ns = answer.searched_from_ns
    assert below_ns == history.facts[0]["time_ns"]


def test_an_answer_that_is_cut_by_its_size_goes_on_from_where_it_stopped(
    world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "FIND_SIZE_MAX", 200_000)
    answer = find_messages(str(world), Question(peer="nobody"))
    assert not answer.rows
    assert answer.next_lsn > 1
    assert answer.searched_from_ns > 0


def test_without_indexes_the_answers_are_the_same(world: Path, history: History, tmp_path: Path) -> None:
    bare = tmp_path / "journal"
    shutil.copytree(world, bare, ignore=shutil.ignore_patterns("*.idx"))
    for question in questions(history)[::4]:
        asked = replace(question, limit=1000)
        assert found(bare, asked) == history.listed(asked), asked


def test_a_row_without_the_segments_that_may_tell_its_end_does_not_call_it_open(
    world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = tmp_path / "journal"
    shutil.copytree(world, bare, ignore=shutil.ignore_patterns("*.idx"))
    monkeypatch.setattr(limits, "FIND_SIZE_MAX", 300_000)
    answers = list(pages(bare, Question(limit=1000)))
    rows = [row for answer in answers for row in answer.rows]
    states = {row.state for row in rows if row.lsn < 1000}
    assert "unknown" in states
    assert "open" not in states
    assert "no index" in answers[0].notes[0]


def test_what_was_accepted_in_segments_that_are_gone_is_found_by_its_end(world: Path, tmp_path: Path) -> None:
    trimmed = tmp_path / "journal"
    shutil.copytree(world, trimmed)
    for path in [*sorted(trimmed.glob("*.seg"))[:2], sorted(trimmed.glob("*.seg"))[4]]:
        path.unlink()
        path.with_suffix(".idx").unlink()
    kept = History(trimmed)
    orphans = [end for number, end in kept.closed.items() if number not in kept.accepted]
    assert len(orphans) >= 5
    naming = History(world)
    for question in (Question(limit=1000), Question(state="ended", limit=1000)):
        rows = [row for answer in pages(trimmed, question) for row in answer.rows]
        assert sorted(row.number for row in rows) == sorted(number for _, number in kept.listed(question))
        assert [row.lsn for row in rows] == sorted((row.lsn for row in rows), reverse=True)
        told = {row.number: row for row in rows}
        for end in orphans:
            assert told[end["message_no"]].state == end["outcome"]
            assert told[end["message_no"]].dialect == end["dialect"]
    queue_no = orphans[0]["queue_no"]
    question = Question(queue=naming.queues[queue_no], state="ended", limit=1000)
    known = find_messages(str(trimmed), question, Naming(queues=naming.queues))
    assert orphans[0]["message_no"] in {row.number for row in known.rows}


def test_a_queue_whose_naming_is_gone_from_the_journal_is_called_as_the_newest_checkpoint_says(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    directory = tmp_path / "journal"
    core = Core(CoreSettings(), lambda place: b"")
    journal = Journal.open(JournalSettings(str(directory), "os", zero_fill=False))
    log = FactLog()
    for number, name in ((1, b"mail"), (2, b"odd\xff")):
        core.state.on_queue_named(number, name)
        log.numbered(layout.QUEUE_NAMED, number, 0, name)
    journal.append(log.take_parts(), 2, 1)
    for checkpoint in (encode(core.state, None), None):  # the newest segment need not begin with one
        journal.roll(checkpoint)
    for number, queue_no in ((11, 1), (12, 2)):
        m = Message(enums.EMQP, b"", b"", b"")
        m.number, m.queue_no = number, queue_no
        log.accepted(m)
    journal.append(log.take_parts(), 2, 2)
    journal.close()
    (directory / "0000000001.seg").unlink()
    assert [(row.number, row.queue) for row in find_messages(str(directory), Question()).rows] == [
        (12, "odd\\xff"),
        (11, "mail"),
    ]
    assert [row.number for row in find_messages(str(directory), Question(queue="mail")).rows] == [11]
    assert [row.number for row in find_messages(str(directory), Question(queue="odd\\xff")).rows] == [12]
    assert find_messages(str(directory), Question(queue="nobody")).rows == []
    assert run(["trace", "11", "--data", str(tmp_path)]) == 0
    assert capfd.readouterr().out.startswith("message 0.11 in mail\n")


def test_a_worker_whose_identity_is_no_text_is_found_by_all_its_spellings(world: Path, history: History) -> None:
    worker_no = history.of("closed")[-1]["worker_no"]
    expected = history.listed(Question(peer=f"w{number_text(worker_no)}", limit=1000))
    for known in ("ff00", "\\xff\0"):  # by a running broker, and by a fact
        naming = Naming(workers={worker_no: [known, ""]})
        for peer in ("ff00", "FF00", "\\xff\0", "\\xff\\x00", "\udcff\0"):
            answer = find_messages(str(world), Question(peer=peer, limit=1000), naming)
            assert [(row.lsn, row.number) for row in answer.rows] == expected != [], (known, peer)


def test_a_segment_that_is_trimmed_during_a_search_takes_nothing_of_others_with_it(world: Path, tmp_path: Path) -> None:
    trimmed = tmp_path / "journal"
    shutil.copytree(world, trimmed)
    segments = segment_views(str(trimmed))
    oldest = sorted(trimmed.glob("*.seg"))[0]
    oldest.unlink()
    oldest.with_suffix(".idx").unlink()
    kept = History(trimmed)
    worker_no = next(end["worker_no"] for end in reversed(kept.of("closed")) if end["worker_no"] in kept.workers)
    question = Question(peer=kept.workers[worker_no][0] or kept.workers[worker_no][1], limit=1000)
    answer = Finder(segments, question, Naming()).find(no_progress)
    assert [(row.lsn, row.number) for row in answer.rows] == kept.listed(question) != []


def test_a_row_says_who_sent_it_who_settled_it_and_when(world: Path, history: History) -> None:
    answer = find_messages(str(world), Question(state="done", limit=200))
    for row in answer.rows:
        begin, end = history.accepted[row.number], history.closed[row.number]
        client = "" if begin["address"].startswith("\\x") else begin["address"][1:]
        assert (row.client_id, row.dialect, row.client) == (begin["client_id"], begin["dialect"], client)
        assert (row.accepted_ns, row.ended_ns) == (begin["time_ns"], end["time_ns"])
        assert (row.state, row.reason, row.worker_no) == ("done", end["reason"], end["worker_no"])
        assert row.queue == history.queues[end["queue_no"]]
        assert row.worker_name in history.workers[end["worker_no"]]


@pytest.mark.parametrize(
    "question",
    [
        Question(state="floating"),
        Question(dialect="latin"),
        Question(from_ns=5, to_ns=5),
        Question(limit=0),
        Question(before_lsn=0),
        Question(before_lsn=FOREVER + 1),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, question: Question) -> None:
    with pytest.raises(BadSearch):
        find_messages(str(tmp_path), question)


@pytest.mark.parametrize("peer", ["", "\udcff", "9" * 19, "w" + "9" * 19, "w1." + "9" * 19, "x" * 3000, "\\x", "a\\x0"])
def test_any_text_may_be_asked_for_as_a_peer(world: Path, peer: str) -> None:
    assert find_messages(str(world), Question(peer=peer, queue="nobody")).rows == []
