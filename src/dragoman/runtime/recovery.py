"""Rebuilds the core from the journal at start."""

from __future__ import annotations

import secrets
import time

import structlog

from dragoman.core.core import Core
from dragoman.core.settings import CoreSettings
from dragoman.core.storage.live_walk import live_count
from dragoman.core.storage.replay import Replay
from dragoman.errors import JournalDamaged, JournalUnavailable
from dragoman.journal.disk import DiskFace
from dragoman.journal.journal import Journal
from dragoman.journal.settings import JournalSettings
from dragoman.model.wire_ids import KEY_SIZE
from dragoman.version import VERSION

log = structlog.get_logger("dragoman")


def open_journal(settings: JournalSettings, disk: DiskFace | None = None) -> Journal:
    """Open the journal, and log what an operator should know about its files."""
    journal = Journal.open(settings, disk, now_ns=time.time_ns())
    for finding in journal.findings:
        where = {"file": finding.file, "offset": finding.offset, "bytes": finding.size}
        if finding.is_loss:
            log.error("kept facts are missing", code=JournalDamaged.code, reason=finding.text, **where)
        else:
            log.warning("the journal was mended at the start", reason=finding.text, **where)
    return journal


def recover(journal: Journal, settings: CoreSettings) -> tuple[Core, set[int]]:
    """The core rebuilt from the journal, and the segments that its checkpoint refers to."""
    core = Core(settings, journal.read_record, journal.look, journal.begin_load)
    replay = Replay(core)
    for block in journal.replay():
        replay.block(block.records, block.position, block.time_ns)
    journal.prepare_reads(replay.checkpoint.segments.union(live_count(core.state).counts))
    return core, replay.checkpoint.segments


def begin_boot(core: Core, journal: Journal, now_ns: int, id_key: bytes = b"") -> None:
    """Assign this boot its number and store it before any id is derived from it. `id_key` is for a journal that has no id key yet;
    empty: a random one is generated."""
    core.set_time(now_ns)
    is_kept = journal.settings.durability != "memory"
    core.log.base_position = journal.next_position() if is_kept else 0
    core.start(core.state.boot_no + 1, VERSION.encode(), id_key or secrets.token_bytes(KEY_SIZE))
    count = core.log.count
    try:
        # `settling`: a broker must be able to start on a full disk too, or the waiting work could never be done.
        journal.append(core.log.take_parts(), count, core.now_ns, settling=True)
        journal.sync()
    except JournalUnavailable as trouble:
        log.error("the journal cannot take the start of this boot", code=trouble.code, trouble=str(trouble))
        raise
