"""The same state twice: as the commands made it, and as its facts tell it to a core that was not there."""

from __future__ import annotations

from dragoman.core.core import Core
from dragoman.core.settings import CoreSettings
from dragoman.core.storage.replay import Replay
from dragoman.core.storage.snapshot import encode
from dragoman.core.timers import Timers
from dragoman.dialects.registry import Dialects
from dragoman.dialects.session import Outboxes
from tests.core.harness import FIRST_POSITION, InMemoryBroker


def same(position: int) -> int:
    return position


def canonical(core: Core) -> list[bytes]:
    return encode(core.state, same)


def replayed(broker: InMemoryBroker, settings: CoreSettings | None = None) -> Core:
    """A core that only read the facts."""
    broker.commit()
    core = broker.new_core(settings or broker.core.settings)
    replay = Replay(core)
    position = FIRST_POSITION
    for instant_ns, records in broker.blocks:
        replay.block(records, position, instant_ns)
        position += len(records)
    return core


def from_checkpoint(broker: InMemoryBroker, settings: CoreSettings | None = None) -> Core:
    """A core that only read a checkpoint."""
    broker.commit()
    core = broker.new_core(settings or broker.core.settings)
    Replay(core).block(b"".join(canonical(broker.core)), 0, broker.core.now_ns)
    return core


def check_replay(broker: InMemoryBroker) -> None:
    """Replay, and a checkpoint with nothing behind it, both give the live state byte for byte."""
    broker.commit()
    live = canonical(broker.core)
    assert canonical(replayed(broker)) == live
    assert canonical(from_checkpoint(broker)) == live


def restart(broker: InMemoryBroker, *, by_checkpoint: bool) -> InMemoryBroker:
    """The broker that comes after this one, as far as it can know: from all facts, or from a checkpoint alone."""
    broker.commit()
    after = InMemoryBroker(broker.core.settings)
    after.records, after.blocks = broker.records, list(broker.blocks)
    after.read_whole_size = broker.read_whole_size
    core = after.new_core(broker.core.settings)
    if by_checkpoint:
        Replay(core).block(b"".join(canonical(broker.core)), 0, broker.core.now_ns)
    else:
        replay, position = Replay(core), FIRST_POSITION
        for instant_ns, records in after.blocks:
            replay.block(records, position, instant_ns)
            position += len(records)
    after.core, after.timers, after.outboxes = core, Timers(core), Outboxes(core)
    after.outboxes.message_size_max = broker.outboxes.message_size_max
    after.dialects = Dialects(after.outboxes, b"\x07" * 10)
    after.emqp = after.dialects.emqp
    after.ids, after.now_ns = broker.ids, broker.now_ns
    core.set_time(broker.now_ns)
    core.log.base_position = FIRST_POSITION + len(after.records)
    core.start(broker.core.state.boot_no + 1, b"0.1.0", bytes(16))
    after.outboxes.boot_no = core.state.boot_no
    after.commit()
    return after
