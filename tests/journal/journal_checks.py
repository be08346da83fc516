"""Requirements on every journal, as tests that any implementation of `append`, `commit` and `read` can inherit.

class TestMyLog(JournalChecks):
    def open_log(self): ...      # the same log again after each call: closed or crashed before
    def crash(self): ...         # lose everything that is not committed
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from dragoman.journal.journal import Journal

_RECORD_HEAD_SIZE = 5


class JournalChecks(ABC):
    """Inherit in a test class; each `test_` method is one requirement."""

    @abstractmethod
    def open_log(self) -> Journal:
        """Open the log under test, with all data it has stored so far."""

    @abstractmethod
    def crash(self) -> None:
        """End the open log in the harshest way that its durability must survive."""

    def test_the_first_fact_has_lsn_one_and_each_block_follows_the_last(self) -> None:
        log = self.open_log()
        assert log.append([_facts(1, 3)], 3, 10) == 3
        assert log.append([_facts(4, 1)], 1, 20) == 4
        assert log.commit() == 4

    def test_blocks_are_read_back_as_they_were_appended(self) -> None:
        log = self.open_log()
        log.append([_facts(1, 3)], 3, 10)
        log.append([_facts(4, 1)], 1, 20)
        log.commit()
        blocks = [(block.first_lsn, block.count, block.time_ns, block.records) for block in log.read(1)]
        assert blocks == [(1, 3, 10, _facts(1, 3)), (4, 1, 20, _facts(4, 1))]

    def test_reading_begins_with_the_block_that_holds_the_lsn(self) -> None:
        log = self.open_log()
        for first in (1, 4, 7):
            log.append([_facts(first, 3)], 3, first)
        log.commit()
        assert [block.first_lsn for block in log.read(5)] == [4, 7]
        assert list(log.read(10)) == []

    def test_what_was_committed_survives_a_crash_in_order(self) -> None:
        log = self.open_log()
        for first in range(1, 30, 3):
            log.append([_facts(first, 3)], 3, first)
        kept_lsn = log.commit()
        assert kept_lsn == 30
        self.crash()
        log = self.open_log()
        assert b"".join(block.records for block in log.read(1)) == _facts(1, 30)

    def test_after_a_crash_numbers_go_on_behind_what_is_there(self) -> None:
        log = self.open_log()
        log.append([_facts(1, 2)], 2, 1)
        log.commit()
        self.crash()
        log = self.open_log()
        there = sum(block.count for block in log.read(1))
        assert there >= 2
        assert log.append([_facts(there + 1, 1)], 1, 2) == there + 1

    def test_a_crash_never_splits_a_block(self) -> None:
        log = self.open_log()
        log.append([_facts(1, 5)], 5, 1)
        log.commit()
        log.append([_facts(6, 5)], 5, 2)
        self.crash()
        assert sum(block.count for block in self.open_log().read(1)) in (5, 10)


def _facts(first: int, count: int) -> bytes:
    records = []
    for number in range(first, first + count):
        body = b"fact %d" % number
        records.append((_RECORD_HEAD_SIZE + len(body)).to_bytes(4, "little") + b"\x01" + body)
    return b"".join(records)
