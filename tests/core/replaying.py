"""The same state twice: as the commands made it, and as its facts tell it to a core that was not there."""

from __future__ import annotations

from dragoman.core.checkpoint import encode
from dragoman.core.core import Core
from dragoman.core.replay import Replay
from dragoman.core.settings import CoreSettings
from tests.core.harness import FIRST_PLACE, House


def same(place: int) -> int:
    return place


def canonical(core: Core) -> list[bytes]:
    return encode(core.state, same)


def replayed(house: House, settings: CoreSettings | None = None) -> Core:
    """A core that only read the facts."""
    house.commit()
    core = Core(settings or house.core.settings, house.load)
    replay = Replay(core)
    place = FIRST_PLACE
    for instant_ns, records in house.blocks:
        replay.block(records, place, instant_ns)
        place += len(records)
    return core


def from_checkpoint(house: House, settings: CoreSettings | None = None) -> Core:
    """A core that only read a checkpoint."""
    house.commit()
    core = Core(settings or house.core.settings, house.load)
    Replay(core).block(b"".join(canonical(house.core)), 0, house.core.now_ns)
    return core


def check_replay(house: House) -> None:
    """Replay, and a checkpoint with nothing behind it, both give the live state byte for byte."""
    house.commit()
    live = canonical(house.core)
    assert canonical(replayed(house)) == live
    assert canonical(from_checkpoint(house)) == live
