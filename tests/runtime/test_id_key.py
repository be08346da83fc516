"""The key of the ids that leave the broker: made once, kept in the journal, read by those who trace, in no lake."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from dragoman.core.core import Core
from dragoman.core.settings import CoreSettings
from dragoman.core.storage.snapshot import encode
from dragoman.journal.journal import Journal
from dragoman.journal.segment_views import segment_views
from dragoman.journal.settings import JournalSettings
from dragoman.journal.tools.backup import backup, restore
from dragoman.journal.tools.salvage import salvage
from dragoman.model.enums import EBUS, TAKEN
from dragoman.model.facts.columns import FactColumns
from dragoman.model.facts.decode import decode_block
from dragoman.model.message import Message, in_own_shape
from dragoman.model.phrases import number_text
from dragoman.runtime.recovery import begin_boot, recover
from dragoman.runtime.search.naming import stored_ids
from dragoman.runtime.search.trace import KEYLESS, find_lives


class Boot:
    """One life of a broker without sockets."""

    def __init__(self, data: Path, durability: str = "os") -> None:
        self.journal = Journal.open(
            JournalSettings(str(data / "journal"), durability, zero_fill=False), now_ns=time.time_ns()
        )
        self.core, _ = recover(self.journal, CoreSettings())
        begin_boot(self.core, self.journal, time.time_ns())

    def accept(self) -> int:
        self.core.log.base_position = self.journal.next_position()
        m = Message(EBUS, b"hello", b"rid", b"data")
        assert self.core.submit(m) == TAKEN
        count = self.core.log.count
        self.journal.append(self.core.log.take_parts(), count, self.core.now_ns)
        self.journal.commit()
        return m.number

    def checkpoint_and_trim(self) -> None:
        """Only the newest segment stays, which begins with a checkpoint."""
        self.journal.roll(encode(self.core.state, None))
        self.journal.sync()
        assert self.journal.confirm_checkpoint()
        newest = self.journal.segments()[-1].segment_no
        self.journal.drop([s.segment_no for s in self.journal.segments() if s.segment_no < newest])

    def close(self) -> bytes:
        self.journal.close()
        return self.core.ids.key


def test_a_key_is_made_at_the_first_start_and_is_the_same_for_ever(tmp_path: Path) -> None:
    first = Boot(tmp_path / "one")
    assert len(first.core.ids.key) == 16
    assert first.core.ids.first == (1 << 40) + 1
    key = first.close()
    for _ in range(2):
        again = Boot(tmp_path / "one")
        assert again.core.ids.first == (1 << 40) + 1
        assert again.close() == key
    assert Boot(tmp_path / "two").close() != key
    assert Boot(tmp_path / "three", "memory").close() != Boot(tmp_path / "three", "memory").close()


def test_the_key_outlives_the_segments_it_was_written_to(tmp_path: Path) -> None:
    boot = Boot(tmp_path)
    boot.checkpoint_and_trim()
    key = boot.close()
    assert stored_ids(segment_views(str(tmp_path / "journal"))).key == key
    again = Boot(tmp_path)
    again.checkpoint_and_trim()
    assert again.close() == key
    assert Boot(tmp_path).close() == key


def test_backups_and_what_is_salvaged_have_the_key(tmp_path: Path) -> None:
    boot = Boot(tmp_path / "data")
    boot.accept()
    key = boot.close()
    backup(str(tmp_path / "data"), str(tmp_path / "backup"))
    restore(str(tmp_path / "backup"), str(tmp_path / "restored"))
    assert Boot(tmp_path / "restored").close() == key
    salvage(str(tmp_path / "data" / "journal"), str(tmp_path / "salvaged" / "journal"))
    assert Boot(tmp_path / "salvaged").close() == key


@pytest.mark.parametrize("is_trimmed", [False, True])
def test_a_message_is_traced_by_the_id_its_worker_was_given_in_every_dialects_shape(
    tmp_path: Path, is_trimmed: bool
) -> None:
    boot = Boot(tmp_path)
    if is_trimmed:
        boot.checkpoint_and_trim()
    for _ in range(5):
        boot.accept()
    number = boot.accept()
    digits = boot.core.ids.digits(number)
    boot.close()
    shapes = [digits.decode(), in_own_shape(digits).decode(), f"{digits.decode()}.client.17"]
    for key in [*shapes, number_text(number), str(number)]:
        [life] = find_lives(str(tmp_path / "journal"), key)
        assert (life.number, life.worker_id) == (number, digits.decode())


def test_a_journal_without_a_key_says_so_of_an_id_that_needs_one(tmp_path: Path) -> None:
    journal = Journal.open(JournalSettings(str(tmp_path), "os", zero_fill=False))
    core = Core(CoreSettings(), journal.read_record)
    core.log.numbered(1, 1, 0, b"0.0.9")
    journal.append(core.log.take_parts(), 1, 5)
    journal.close()
    notes: list[str] = []
    assert find_lives(str(tmp_path), "8c6fa548454e028b", notes=notes) == []
    assert notes == [KEYLESS]
    notes.clear()
    assert find_lives(str(tmp_path), "some-other-id", notes=notes) == []
    assert notes == []


def test_the_key_reaches_no_lake_and_no_list_of_facts(tmp_path: Path) -> None:
    boot = Boot(tmp_path)
    blocks = list(boot.journal.read(1))
    key = boot.close()
    assert any(key in block.records for block in blocks)
    columns = FactColumns(1)
    for block in blocks:
        assert columns.add(block.records, block.first_lsn, block.time_ns) == block.first_lsn + block.count
        assert key.hex() not in repr(decode_block(block.records))
    for column in (columns.text, columns.client_id, columns.body):
        assert key not in column.getvalue()


def test_an_older_journal_gets_a_key_for_what_comes_and_keeps_the_form_of_what_was(tmp_path: Path) -> None:
    journal = Journal.open(JournalSettings(str(tmp_path / "journal"), "os", zero_fill=False), now_ns=time.time_ns())
    core = Core(CoreSettings(), journal.read_record)
    core.log.base_position = journal.next_position()
    core.log.numbered(1, 1, 0, b"0.0.9")
    core.state.on_started(1)
    m = Message(EBUS, b"hello", b"rid", b"data")
    core.submit(m)
    journal.append(core.log.take_parts(), 3, 5)
    journal.close()
    boot = Boot(tmp_path)
    assert boot.core.ids.digits(m.number) == b"%016x" % m.number
    number = boot.accept()
    assert boot.core.ids.digits(number) != b"%016x" % number
    key = boot.close()
    assert Boot(tmp_path).close() == key
