"""Promise 4: the state replayed from disk has the same canonical encoding as the state in memory, byte for byte."""

from __future__ import annotations

import copy
import zlib
from typing import TYPE_CHECKING

from dragoman.core.core import Core
from dragoman.core.settings import CoreSettings
from dragoman.core.storage.snapshot import encode
from dragoman.journal.journal import Journal
from dragoman.model.facts.records import carried_at
from dragoman.runtime.recovery import recover
from dragoman.runtime.settings import apply_settings

if TYPE_CHECKING:
    from dragoman_lab.sim.machine.life import Life
    from dragoman_lab.sim.world import World


def check_replica(world: World, life: Life) -> None:
    """Open a copy of the disk beside the running broker and compare the states. Record references change at a start, so the record's
    checksum is compared instead of its reference: that also proves that every reference still leads to the right record."""
    if world.plan.durability == "memory" or not life.is_settled or world.corruption.numbers:
        return
    disk = copy.deepcopy(world.disk)
    disk.restore()
    disk.kill()
    disk.capacity = None
    disk.fail_syncs(0)
    disk.fail_writes(0)
    journal = Journal.open(world.plan.journal, disk, now_ns=world.wall_ns())
    settings = CoreSettings()
    apply_settings(world.plan.config, settings)
    replica, _ = recover(journal, settings)
    here, there = fingerprints(life.core, life.journal), fingerprints(replica, journal)
    for mine, other in zip(here, there, strict=False):
        assert mine == other, f"replay differs:\n  live     {mine.hex()}\n  replayed {other.hex()}"
    assert len(here) == len(there)


def fingerprints(core: Core, journal: Journal) -> list[bytes]:
    return encode(core.state, lambda place: checksum(journal.read_record(place)))


def checksum(record: bytes) -> int:
    return zlib.crc32(record[carried_at(record) :])
