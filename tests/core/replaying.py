"""The same state twice: as the commands made it, and as its facts tell it to a core that was not there."""

from __future__ import annotations

from dragoman.core.core import Core
from dragoman.core.settings import CoreSettings
from dragoman.core.storage.replay import Replay
from dragoman.core.storage.snapshot import encode
from dragoman.core.timers import Timers
from dragoman.dialects.registry import Dialects
from dragoman.dialects.session import Outboxes
from tests.core.harness import FIRST_PLACE, House


def same(place: int) -> int:
    return place


def canonical(core: Core) -> list[bytes]:
    return encode(core.state, same)


def replayed(house: House, settings: CoreSettings | None = None) -> Core:
    """A core that only read the facts."""
    house.commit()
    core = house.new_core(settings or house.core.settings)
    replay = Replay(core)
    place = FIRST_PLACE
    for instant_ns, records in house.blocks:
        replay.block(records, place, instant_ns)
        place += len(records)
    return core


def from_checkpoint(house: House, settings: CoreSettings | None = None) -> Core:
    """A core that only read a checkpoint."""
    house.commit()
    core = house.new_core(settings or house.core.settings)
    Replay(core).block(b"".join(canonical(house.core)), 0, house.core.now_ns)
    return core


def check_replay(house: House) -> None:
    """Replay, and a checkpoint with nothing behind it, both give the live state byte for byte."""
    house.commit()
    live = canonical(house.core)
    assert canonical(replayed(house)) == live
    assert canonical(from_checkpoint(house)) == live


def restart(house: House, *, by_checkpoint: bool) -> House:
    """The broker that comes after this one, as far as it can know: from all facts, or from a checkpoint alone."""
    house.commit()
    after = House(house.core.settings)
    after.records, after.blocks = house.records, list(house.blocks)
    after.read_whole_size = house.read_whole_size
    core = after.new_core(house.core.settings)
    if by_checkpoint:
        Replay(core).block(b"".join(canonical(house.core)), 0, house.core.now_ns)
    else:
        replay, place = Replay(core), FIRST_PLACE
        for instant_ns, records in after.blocks:
            replay.block(records, place, instant_ns)
            place += len(records)
    after.core, after.timers, after.outboxes = core, Timers(core), Outboxes(core)
    after.outboxes.message_size_max = house.outboxes.message_size_max
    after.dialects = Dialects(after.outboxes, b"\x07" * 10)
    after.emqp = after.dialects.emqp
    after.ids, after.now_ns = house.ids, house.now_ns
    core.set_time(house.now_ns)
    core.log.base_place = FIRST_PLACE + len(after.records)
    core.start(house.core.state.boot_no + 1, b"0.1.0", bytes(16))
    after.outboxes.boot_no = core.state.boot_no
    after.commit()
    return after
