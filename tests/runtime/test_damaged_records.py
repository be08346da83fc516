"""A record that was damaged on disk costs its own message: it is quarantined with the evidence, its neighbours flow."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest

from dragoman.core import operator
from dragoman.core.core import Core
from dragoman.core.queries.explain import explain_message
from dragoman.core.queries.lookup import find_message
from dragoman.core.queries.views import listed_view
from dragoman.core.storage.live_walk import Carrier, live_count
from dragoman.core.storage.snapshot import encode
from dragoman.core.storage.stored import peek_body
from dragoman.crc import crc32
from dragoman.errors import RecordDamaged
from dragoman.journal.journal import Journal
from dragoman.model.enums import BY_OPERATOR, DAMAGED, DROPPED, TAKEN
from dragoman.model.facts.records import carried_at
from dragoman.model.message import Message
from dragoman.runtime.recovery import recover
from dragoman.testing.disk import FakeDisk
from dragoman_lab.sim.checks.recount import recount
from tests.runtime.journaled_broker import JournaledBroker, bodies

COUNT = 7
VICTIM = 3
BODIES = [b"body %d " % n + bytes([65 + n]) * 200 for n in range(COUNT)]
NEIGHBOURS = [body for n, body in enumerate(BODIES) if n != VICTIM]

Damage = Callable[[bytearray, int, int], None]


def flipped(at: int) -> Damage:
    """One byte of the victim's record, counted from its beginning, or from its end where that is negative."""

    def damage(content: bytearray, start: int, size: int) -> None:
        content[start + at if at >= 0 else start + size + at] ^= 0x01

    return damage


def zeroed(content: bytearray, start: int, size: int) -> None:
    content[start : start + size] = bytes(size)


def made_of_another(content: bytearray, start: int, size: int) -> None:
    """The record of a neighbour, whole and with its CRC, where the victim's should be."""
    content[start : start + size] = content[start - size : start]


def cut(content: bytearray, start: int, size: int) -> None:
    del content[start + size // 2 :]


DAMAGES = {
    "body": flipped(-50),
    "size": flipped(0),
    "size beyond the file": flipped(3),
    "kind": flipped(4),
    "number": flipped(8),
    "size of the client's id": flipped(56),
    "sign that there is a CRC": flipped(62),
    "CRC": flipped(-1),
    "zeros": zeroed,
    "another's record": made_of_another,
    "end of the file": cut,
}


def filled(disk: FakeDisk | None = None, headers: bytes = b"") -> JournaledBroker:
    """Messages that wait in the first segment, behind which lie two checkpoints."""
    broker = JournaledBroker(disk or FakeDisk())
    client = broker.client()
    for n, body in enumerate(BODIES):
        client.request(b"mail", body, headers, b"job-%d" % n)
    broker.checkpoint()
    client.request(b"other", b"later")
    broker.checkpoint()
    return broker


def position_of(broker: JournaledBroker, n: int) -> int:
    """Where the record of the n-th message lies."""
    m = find_message(broker.core, f"job-{n}")
    assert m is not None
    return m.position


def do_damage(broker: JournaledBroker, damage: Damage, n: int = VICTIM) -> str:
    """Damage a record for good; the path of its segment."""
    disk = broker.disk
    assert isinstance(disk, FakeDisk)
    position = position_of(broker, n)
    path = broker.segment(position >> 32)
    content, offset = bytearray(disk.content(path)), position & 0xFFFFFFFF
    damage(content, offset, int.from_bytes(content[offset : offset + 4], "little"))
    overwrite(disk, path, content)
    return path


def overwrite(disk: FakeDisk, path: str, content: bytearray) -> None:
    """Change the bytes of a file that may be open."""
    before = disk.content(path)
    for at, byte in enumerate(content):
        if before[at] != byte:
            disk.damage(path, at, before[at] ^ byte)
    if len(content) < len(before):
        disk.lose_tail(path, len(content))


def the_quarantined(broker: JournaledBroker) -> Message:
    (m,) = broker.core.state.quarantine.values()
    return m


def check_replica(broker: JournaledBroker) -> None:
    """What another start would make of the journal is what this broker knows."""
    broker.commit()
    disk = copy.deepcopy(broker.disk)
    assert isinstance(disk, FakeDisk)
    disk.kill()
    journal = Journal.open(broker.journal.settings, disk)
    other, _ = recover(journal, broker.core.settings)
    assert fingerprints(other, journal) == fingerprints(broker.core, broker.journal)
    recount(broker.core)


def fingerprints(core: Core, journal: Journal) -> list[bytes]:
    """The canonical encoding, with a checksum of its record instead of each place: a start may move records."""

    def checksum(position: int) -> int:
        try:
            record = journal.read_record(position)
        except RecordDamaged:
            return 0
        return crc32(record[carried_at(record) :])

    return encode(core.state, checksum)


@pytest.mark.parametrize("is_restarted", [False, True], ids=["running", "restarted"])
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_record_is_quarantined_and_its_neighbours_flow(damage: Damage, is_restarted: bool) -> None:
    broker = filled()
    path = do_damage(broker, damage)
    if is_restarted:
        broker = broker.restarted()
    worker = broker.serve()
    lost = [BODIES[n] for n in range(VICTIM, COUNT)] if damage is cut else [BODIES[VICTIM]]
    assert bodies(worker) == [body for body in BODIES if body not in lost]
    assert worker.session.is_connected
    assert len(broker.core.state.quarantine) == len(lost)
    m = min(broker.core.state.quarantine.values(), key=lambda m: m.number)
    assert m.last_reason == DAMAGED
    assert m.damage.startswith(b"%s at byte " % path.rpartition("/")[2].encode())
    assert "its record in the journal is damaged (0000000001.seg at byte " in explain_message(broker.core, m)[0]
    assert str(listed_view(broker.core, m)["damage"]).startswith("0000000001.seg at byte ")
    quarantined = broker.facts_kept("quarantined")
    assert [(fact["reason"], fact["leased_ns"]) for fact in quarantined] == [("damaged", 0)] * len(lost)
    assert quarantined[0]["damage"] == m.damage.decode()
    check_replica(broker)


def test_a_lost_segment_costs_what_waits_in_it_and_nothing_else() -> None:
    broker = filled()
    broker.disk.unlink(broker.segment(1))
    assert bodies(broker.serve(b"other")) == [b"later"]
    assert bodies(broker.serve()) == BODIES[:1], "it was still in memory"
    assert all(b"0000000001.seg" in m.damage for m in broker.core.state.quarantine.values())
    assert len(broker.core.state.quarantine) == COUNT - 1
    check_replica(broker)


def test_quarantine_by_damage_is_kept_over_restarts_and_checkpoints() -> None:
    broker = filled()
    do_damage(broker, DAMAGES["body"])
    broker = broker.restarted()
    assert bodies(broker.serve()) == NEIGHBOURS
    m = the_quarantined(broker)
    for _ in range(2):
        broker.checkpoint()
        broker = broker.restarted()
        again = the_quarantined(broker)
        assert (again.number, again.damage, again.queue) == (m.number, m.damage, b"mail")
        check_replica(broker)


def test_a_retry_reads_again_and_goes_back_to_quarantine_or_on() -> None:
    broker = filled(headers=b"reply-requested")
    path = do_damage(broker, DAMAGES["body"])
    broker = broker.restarted()
    worker = broker.serve(slots=COUNT - 1)
    assert bodies(worker) == NEIGHBOURS
    m = the_quarantined(broker)
    assert operator.requeue(broker.core, m) == TAKEN
    worker.ready(1)
    assert bodies(worker) == []
    assert the_quarantined(broker) is m
    check_replica(broker)
    disk = broker.disk
    assert isinstance(disk, FakeDisk)
    overwrite(disk, path, sound(disk, path, m))
    assert operator.requeue(broker.core, m) == TAKEN
    assert bodies(worker) == [BODIES[VICTIM]]
    assert (m.client_id, m.damage, m.is_unreadable) == (b"job-3", b"", False)
    check_replica(broker)


def sound(disk: FakeDisk, path: str, m: Message) -> bytearray:
    """The segment as it was before the body was damaged."""
    content = bytearray(disk.content(path))
    offset = m.position & 0xFFFFFFFF
    DAMAGES["body"](content, offset, int.from_bytes(content[offset : offset + 4], "little"))
    return content


@pytest.mark.parametrize("how", ["cancel", "drop", "purge", "expire"])
def test_a_damaged_message_can_be_ended(how: str) -> None:
    broker = filled(headers=b"expires:60" if how == "expire" else b"")
    do_damage(broker, DAMAGES["body"])
    broker = broker.restarted()
    if how == "purge":
        assert operator.purge(broker.core, b"mail", COUNT) == COUNT
    elif how == "expire":
        broker.pass_time(100)
    elif how == "cancel":
        m = broker.core.state.take(victim_number(broker))
        assert m is not None
        assert broker.core.cancel(m, BY_OPERATOR) == TAKEN
        assert bodies(broker.serve()) == NEIGHBOURS
    else:
        assert bodies(broker.serve()) == NEIGHBOURS
        assert broker.core.cancel(the_quarantined(broker), DROPPED) == TAKEN
    assert broker.core.state.quarantine == {}
    assert broker.core.state.queues[b"mail"].waiting == 0
    check_replica(broker)


def victim_number(broker: JournaledBroker) -> int:
    """The first message of the first boot has number 1 << 40 | 2: the queue's name was told before."""
    return (1 << 40) + 1 + VICTIM


def test_a_question_about_a_damaged_message_is_answered_in_words() -> None:
    broker = filled()
    do_damage(broker, DAMAGES["body"])
    m = find_message(broker.core, str(victim_number(broker)))
    assert m is not None
    assert m.damage
    assert find_message(broker.core, "job-3") is None, "its client's id cannot be proved"
    with pytest.raises(RecordDamaged, match=r"0000000001\.seg at byte \d+: the record's CRC does not match"):
        peek_body(broker.core.state, m, 100)


def test_the_client_of_a_delayed_message_is_notified_that_it_failed() -> None:
    broker = JournaledBroker(FakeDisk())
    client = broker.client()
    for n in range(3):
        client.request(b"mail", BODIES[n], b"delay:1,reply-requested", b"job-%d" % n)
    broker.checkpoint()
    do_damage(broker, DAMAGES["body"], 2)
    worker = broker.serve()
    client.take(b"REPLY")
    broker.pass_time(2)
    assert sorted(bodies(worker)) == BODIES[:2]
    told = [frames for frames in client.take(b"REPLY") if b"DAMAGED" in frames[1]]
    assert [frames[2] for frames in told] == [b"job-2"]
    assert the_quarantined(broker).client_id == b"job-2"
    check_replica(broker)


def test_carrying_leaves_a_damaged_record_where_it_is() -> None:
    broker = filled()
    do_damage(broker, DAMAGES["body"])
    state = broker.core.state
    carrier = Carrier(state, broker.core.log, broker.core.quarantine, 1)
    while carrier.step(2):
        pass
    count = live_count(state)
    assert count.counts[1] == 1, "the damaged one keeps its segment, as evidence"
    assert count.carriable(1) == 0, "and nobody tries to carry it again"
    check_replica(broker)
    assert bodies(broker.serve()) == NEIGHBOURS


def test_a_message_that_was_tried_before_is_quarantined_at_the_start() -> None:
    """Its record is asked for while the checkpoint is read."""
    broker = filled()
    worker = broker.serve(slots=COUNT)
    assert bodies(worker) == BODIES
    path = do_damage(broker, DAMAGES["body"])
    broker.checkpoint()
    broker = broker.restarted()
    m = the_quarantined(broker)
    assert (m.number, m.last_reason, m.attempt) == (victim_number(broker), DAMAGED, 1)
    assert path.rpartition("/")[2].encode() in m.damage
    assert sorted(bodies(broker.serve())) == sorted(NEIGHBOURS)
    check_replica(broker)


def test_a_message_that_was_carried_forward_needs_nothing_of_its_old_segment() -> None:
    """The checkpoint still names the old place; the carried record behind it has all there is to know."""
    broker = filled()
    assert bodies(broker.serve(slots=COUNT)) == BODIES
    broker.checkpoint()
    carrier = Carrier(broker.core.state, broker.core.log, broker.core.quarantine, 1)
    while carrier.step(2):
        pass
    broker.commit()
    broker.journal.close()
    broker.disk.unlink(broker.segment(1))
    broker = JournaledBroker(broker.disk, broker.directory, broker.now_ns)
    assert broker.core.state.quarantine == {}
    assert find_message(broker.core, f"job-{VICTIM}") is not None
    assert sorted(bodies(broker.serve())) == sorted(BODIES)
    recount(broker.core)
