"""Messages that wait in a journal of any version are delivered by this one; damage there costs what it must and no more."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from dragoman.journal.disk import Disk
from dragoman.journal.recovery.scan import read_segment_file
from dragoman.model.enums import DAMAGED
from tests.runtime.journaled_broker import JournaledBroker, bodies
from tests.runtime.make_fixture import DELAY_S, DELAYED, LARGE, LATER, OWN_BLOCKS, RETURNED, SHARED_BLOCK

FIXTURES = sorted(Path(__file__).parent.glob("fixture_v*"))
WAITING = [RETURNED, *SHARED_BLOCK, *OWN_BLOCKS, LARGE, LATER]


@pytest.fixture(params=FIXTURES, ids=lambda path: path.name)
def directory(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    shutil.copytree(request.param, tmp_path / "journal")
    return tmp_path / "journal"


def flip(directory: Path, body: bytes) -> None:
    """Damage one byte of a body in the first segment."""
    path = directory / "0000000001.seg"
    content = bytearray(path.read_bytes())
    content[content.index(body) + len(body) // 2] ^= 0x20
    path.write_bytes(content)


def is_version_1(directory: Path) -> bool:
    header = read_segment_file(Disk(), str(directory), 1).header
    assert header is not None
    return header.version == 1


def test_every_waiting_message_is_delivered_and_goes_on_in_this_version(directory: Path) -> None:
    broker = JournaledBroker(Disk(), str(directory))
    assert bodies(broker.serve()) == WAITING
    broker.pass_time(DELAY_S + 1)  # in which its worker is lost
    broker.checkpoint()
    broker = broker.restarted()
    broker.pass_time(0.1)
    assert sorted(bodies(broker.serve())) == sorted([*WAITING, DELAYED])
    broker.journal.close()


@pytest.mark.parametrize("body", [SHARED_BLOCK[1], OWN_BLOCKS[1], LARGE, RETURNED, DELAYED])
def test_damage_costs_the_message_or_in_version_1_its_block(directory: Path, body: bytes) -> None:
    flip(directory, body)
    lost = SHARED_BLOCK if body in SHARED_BLOCK and is_version_1(directory) else [body]
    broker = JournaledBroker(Disk(), str(directory))
    broker.pass_time(DELAY_S + 1)
    assert sorted(bodies(broker.serve())) == sorted(b for b in [*WAITING, DELAYED] if b not in lost)
    found = list(broker.core.state.quarantine.values())
    assert [(m.last_reason, m.damage[:23]) for m in found] == [(DAMAGED, b"0000000001.seg at byte ")] * len(lost)
    broker.checkpoint()
    broker = broker.restarted()
    assert sorted(broker.core.state.quarantine) == sorted(m.number for m in found)
    broker.journal.close()
