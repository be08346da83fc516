"""What an operator sees when parts of a journal are gone."""

from __future__ import annotations

import pytest

from tests.runtime.conftest import NewBroker
from tests.runtime.daemon import Daemon
from tests.runtime.peers import Client


def stopped(new_broker: NewBroker, *, is_killed: bool = False) -> Daemon:
    """A broker that kept a message and is down."""
    broker = new_broker(durability="disk").start()
    with Client(broker) as client:
        client.keep(b"jobs", b"x" * 1000)
    if is_killed:
        broker.kill()
    else:
        assert broker.stop() == 0
    return broker


def test_a_missing_segment_refuses_the_start_in_words(new_broker: NewBroker) -> None:
    broker = stopped(new_broker)
    segment = max((broker.data / "journal").glob("*.seg"))
    segment.unlink()
    broker.launch()
    assert broker.exit_code() == 5
    assert "[JOURNAL_DAMAGED]" in broker.process.log()
    assert segment.name in broker.process.log()
    assert "dragoman journal salvage" in broker.process.log()
    assert "Traceback" not in broker.process.log()


@pytest.mark.long
@pytest.mark.parametrize("cut", [1, 50, 500])
def test_a_cut_end_refuses_the_start_in_words(new_broker: NewBroker, cut: int) -> None:
    broker = stopped(new_broker)
    segment = max((broker.data / "journal").glob("*.seg"))
    segment.write_bytes(segment.read_bytes()[:-cut])
    broker.launch()
    assert broker.exit_code() == 5
    assert segment.name in broker.process.log()
    assert "Traceback" not in broker.process.log()


def test_a_torn_tail_is_logged_with_its_size(new_broker: NewBroker) -> None:
    broker = stopped(new_broker, is_killed=True)
    segment = max((broker.data / "journal").glob("*.seg"))
    content = segment.read_bytes()
    end = len(content.rstrip(b"\0")) + 16  # the last record may end with zeros
    segment.write_bytes(content[:end] + b"DGBK half a block" + content[end + 17 :])
    broker.start()
    (line,) = broker.lines("the journal was mended at the start")
    assert line["file"].endswith(segment.name)
    assert 17 <= line["bytes"] <= 17 + 16


def test_damaged_superblocks_are_made_anew_with_a_word(new_broker: NewBroker) -> None:
    broker = stopped(new_broker)
    for copy in (broker.data / "journal").glob("superblock.*"):
        copy.write_bytes(b"\xff" * 100)
    broker.start()
    assert len(broker.lines("the journal was mended at the start")) == 2
    assert broker.ask("queues")["queues"][0]["waiting"] == 1
    assert broker.stop() == 0
    broker.start()
    assert not broker.lines("the journal was mended at the start")[2:]
