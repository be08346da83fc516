"""An index changes how fast an answer comes, never the answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman import limits
from dragoman.journal.journal import Journal
from dragoman.journal.reader import JournalReader
from dragoman.journal.settings import JournalSettings
from dragoman.journal.tools.indexer import Indexer
from dragoman.model.facts.decode import decode_block
from dragoman.model.message import fact_id
from dragoman.model.phrases import number_text
from dragoman.runtime.search.trace import find_lives
from dragoman_lab.generate.broker import Plan
from dragoman_lab.generate.world import World
from tests.runtime.search.histories import History, trace

PLAN = Plan(facts=12_000, seed=11, days=3)
STEPS, KEYS = 120, 30


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20))
def test_with_and_without_indexes_every_key_has_the_same_lives(seed: int) -> None:
    history = History(seed)
    history.go(STEPS)
    for key in history.chance.sample(sorted(history.keys), KEYS):
        assert history.lives(key, with_indexes=True) == history.lives(key, with_indexes=False), f"seed {seed}, {key!r}"


def test_these_journals_have_what_they_are_made_for() -> None:
    """Else the test above would prove nothing."""
    kinds: set[str] = set()
    lives_of_one_key, indexed, segments, crossing = 0, 0, 0, 0
    for seed in range(10):
        history = History(seed)
        history.go(STEPS)
        for key in history.chance.sample(sorted(history.keys), KEYS):
            lives = history.lives(key, with_indexes=True)
            kinds |= {fact["fact"] for life in lives for fact in life.facts}
            lives_of_one_key = max(lives_of_one_key, len(lives))
            crossing += any(life.facts[-1]["lsn"] - life.facts[0]["lsn"] > 200 for life in lives)
        indexed, segments = indexed + history.covered()[0], segments + history.covered()[1]
    assert kinds >= {"accepted", "carried", "leased", "released", "closed", "quarantined", "late", "started", "fired"}
    assert lives_of_one_key > 3
    assert segments > 20
    assert 0.4 * segments < indexed < segments, "some segments must be covered, and some not"
    assert crossing > 10, "lives must reach over segments"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A generated broker's journal of several segments, indexed but for its end."""
    directory = tmp_path_factory.mktemp("world") / "journal"
    settings = JournalSettings(str(directory), "os", segment_size=512 * 1024, zero_fill=False)
    journal = Journal.open(settings, new_broker_id=PLAN.broker_id)
    indexer = Indexer(str(directory), step_size=100_000)

    def take(records: bytes, first_lsn: int, count: int, time_ns: int) -> None:
        if journal.wants_roll(len(records)):
            journal.sync()
            journal.roll()
            indexer.work()
        journal.append([records], count, time_ns)

    World(PLAN).run(take)
    journal.close()
    return directory


@pytest.mark.long
def test_every_message_of_a_generated_world_is_found_by_number_and_by_id(world: Path) -> None:
    facts = [fact for block in JournalReader(str(world)).read(0) for fact in decode_block(block.records)]
    accepted = [fact for fact in facts if fact["fact"] == "accepted"]
    for fact in accepted[:: len(accepted) // 25]:
        number = int(str(fact["message_no"]))
        scanned = trace(str(world), str(number))
        keys = [str(number), number_text(number), fact_id(number).decode()]
        assert [find_lives(str(world), key) for key in keys] == [scanned] * 3
        assert scanned[0].number == number
        client_id = str(fact["client_id"])
        if fact["client_id"] and fact["dialect"] != "rq":
            assert number in [life.number for life in find_lives(str(world), client_id)]


def test_nobody_is_asked_where_the_lake_is_while_the_journal_knows_all(world: Path) -> None:
    def ask() -> str:
        raise AssertionError("settings and a running broker take longer than the search")

    facts = [fact for block in JournalReader(str(world)).read(0) for fact in decode_block(block.records)]
    number = next(fact["message_no"] for fact in facts if fact["fact"] == "accepted")
    assert find_lives(str(world), str(number), lake=ask)


def test_names_recorded_in_another_segment_are_found(world: Path) -> None:
    facts = [fact for block in JournalReader(str(world)).read(0) for fact in decode_block(block.records)]
    leased = [fact for fact in facts if fact["fact"] == "leased"][-1]
    [life] = find_lives(str(world), str(leased["message_no"]))
    assert life.queue
    assert any(fact.get("worker") for fact in life.facts)


def test_a_search_with_too_many_keys_reads_segments_instead(world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = str(decode_block(next(JournalReader(str(world)).read(900)).records)[0].get("message_no", 1 << 40 | 50))
    expected = find_lives(str(world), key)
    monkeypatch.setattr(limits, "INDEX_KEYS_MAX", 0)
    assert find_lives(str(world), key) == expected


@pytest.mark.parametrize("key", ["", "9" * 19, f"{'9' * 19}.1", "\udcff", "x" * 3000])
def test_keys_that_no_record_can_hold_find_nothing(world: Path, key: str) -> None:
    assert find_lives(str(world), key) == []
