"""A record that was damaged on disk costs its own message: it is quarantined with the evidence, its neighbours flow."""

from __future__ import annotations

import copy
from collections.abc import Callable

import pytest

from dragoman.core import operator
from dragoman.core.core import Core
from dragoman.core.queries.explain import explain_message
from dragoman.core.queries.lookup import find_message
from dragoman.core.queries.peek import peek_body
from dragoman.core.queries.views import listed_view
from dragoman.core.storage.carry import Carrier, live_count
from dragoman.core.storage.snapshot import encode
from dragoman.crc import crc32
from dragoman.errors import RecordDamaged
from dragoman.journal import Journal
from dragoman.model.facts.records import carried_at
from dragoman.model.message import Message
from dragoman.model.words import BY_OPERATOR, DAMAGED, DROPPED, TAKEN
from dragoman.runtime.recovery import recover
from dragoman.testing.disk import FakeDisk
from dragoman_lab.sim.checks.recount import recount
from tests.runtime.kept_house import KeptHouse, bodies

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


def filled(disk: FakeDisk | None = None, headers: bytes = b"") -> KeptHouse:
    """Messages that wait in the first segment, behind which lie two checkpoints."""
    house = KeptHouse(disk or FakeDisk())
    client = house.client()
    for n, body in enumerate(BODIES):
        client.request(b"mail", body, headers, b"job-%d" % n)
    house.checkpoint()
    client.request(b"other", b"later")
    house.checkpoint()
    return house


def place_of(house: KeptHouse, n: int) -> int:
    """Where the record of the n-th message lies."""
    m = find_message(house.core, f"job-{n}")
    assert m is not None
    return m.place


def do_damage(house: KeptHouse, damage: Damage, n: int = VICTIM) -> str:
    """Damage a record for good; the path of its segment."""
    disk = house.disk
    assert isinstance(disk, FakeDisk)
    place = place_of(house, n)
    path = house.segment(place >> 32)
    content, offset = bytearray(disk.content(path)), place & 0xFFFFFFFF
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


def the_quarantined(house: KeptHouse) -> Message:
    (m,) = house.core.state.quarantine.values()
    return m


def check_replica(house: KeptHouse) -> None:
    """What another start would make of the journal is what this broker knows."""
    house.commit()
    disk = copy.deepcopy(house.disk)
    assert isinstance(disk, FakeDisk)
    disk.kill()
    journal = Journal.open(house.journal.settings, disk)
    other, _ = recover(journal, house.core.settings)
    assert fingerprints(other, journal) == fingerprints(house.core, house.journal)
    recount(house.core)


def fingerprints(core: Core, journal: Journal) -> list[bytes]:
    """The canonical encoding, with a checksum of its record instead of each place: a start may move records."""

    def checksum(place: int) -> int:
        try:
            record = journal.read_record(place)
        except RecordDamaged:
            return 0
        return crc32(record[carried_at(record) :])

    return encode(core.state, checksum)


@pytest.mark.parametrize("is_restarted", [False, True], ids=["running", "restarted"])
@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_record_is_quarantined_and_its_neighbours_flow(damage: Damage, is_restarted: bool) -> None:
    house = filled()
    path = do_damage(house, damage)
    if is_restarted:
        house = house.restarted()
    worker = house.serve()
    lost = [BODIES[n] for n in range(VICTIM, COUNT)] if damage is cut else [BODIES[VICTIM]]
    assert bodies(worker) == [body for body in BODIES if body not in lost]
    assert worker.session.is_connected
    assert len(house.core.state.quarantine) == len(lost)
    m = min(house.core.state.quarantine.values(), key=lambda m: m.number)
    assert m.last_reason == DAMAGED
    assert m.damage.startswith(b"%s at byte " % path.rpartition("/")[2].encode())
    assert "its record in the journal is damaged (0000000001.seg at byte " in explain_message(house.core, m)[0]
    assert str(listed_view(house.core, m)["damage"]).startswith("0000000001.seg at byte ")
    quarantined = house.facts_kept("quarantined")
    assert [(fact["reason"], fact["leased_ns"]) for fact in quarantined] == [("damaged", 0)] * len(lost)
    assert quarantined[0]["damage"] == m.damage.decode()
    check_replica(house)


def test_a_lost_segment_costs_what_waits_in_it_and_nothing_else() -> None:
    house = filled()
    house.disk.unlink(house.segment(1))
    assert bodies(house.serve(b"other")) == [b"later"]
    assert bodies(house.serve()) == BODIES[:1], "it was still in memory"
    assert all(b"0000000001.seg" in m.damage for m in house.core.state.quarantine.values())
    assert len(house.core.state.quarantine) == COUNT - 1
    check_replica(house)


def test_quarantine_by_damage_is_kept_over_restarts_and_checkpoints() -> None:
    house = filled()
    do_damage(house, DAMAGES["body"])
    house = house.restarted()
    assert bodies(house.serve()) == NEIGHBOURS
    m = the_quarantined(house)
    for _ in range(2):
        house.checkpoint()
        house = house.restarted()
        again = the_quarantined(house)
        assert (again.number, again.damage, again.queue) == (m.number, m.damage, b"mail")
        check_replica(house)


def test_a_retry_reads_again_and_goes_back_to_quarantine_or_on() -> None:
    house = filled(headers=b"reply-requested")
    path = do_damage(house, DAMAGES["body"])
    house = house.restarted()
    worker = house.serve(slots=COUNT - 1)
    assert bodies(worker) == NEIGHBOURS
    m = the_quarantined(house)
    assert operator.requeue(house.core, m) == TAKEN
    worker.ready(1)
    assert bodies(worker) == []
    assert the_quarantined(house) is m
    check_replica(house)
    disk = house.disk
    assert isinstance(disk, FakeDisk)
    overwrite(disk, path, sound(disk, path, m))
    assert operator.requeue(house.core, m) == TAKEN
    assert bodies(worker) == [BODIES[VICTIM]]
    assert (m.client_id, m.damage, m.is_bare) == (b"job-3", b"", False)
    check_replica(house)


def sound(disk: FakeDisk, path: str, m: Message) -> bytearray:
    """The segment as it was before the body was damaged."""
    content = bytearray(disk.content(path))
    offset = m.place & 0xFFFFFFFF
    DAMAGES["body"](content, offset, int.from_bytes(content[offset : offset + 4], "little"))
    return content


@pytest.mark.parametrize("how", ["cancel", "drop", "purge", "expire"])
def test_a_damaged_message_can_be_ended(how: str) -> None:
    house = filled(headers=b"expires:60" if how == "expire" else b"")
    do_damage(house, DAMAGES["body"])
    house = house.restarted()
    if how == "purge":
        assert operator.purge(house.core, b"mail", COUNT) == COUNT
    elif how == "expire":
        house.pass_time(100)
    elif how == "cancel":
        m = house.core.state.take(victim_number(house))
        assert m is not None
        assert house.core.cancel(m, BY_OPERATOR) == TAKEN
        assert bodies(house.serve()) == NEIGHBOURS
    else:
        assert bodies(house.serve()) == NEIGHBOURS
        assert house.core.cancel(the_quarantined(house), DROPPED) == TAKEN
    assert house.core.state.quarantine == {}
    assert house.core.state.queues[b"mail"].waiting == 0
    check_replica(house)


def victim_number(house: KeptHouse) -> int:
    """The first message of the first boot has number 1 << 40 | 2: the queue's name was told before."""
    return (1 << 40) + 1 + VICTIM


def test_a_question_about_a_damaged_message_is_answered_in_words() -> None:
    house = filled()
    do_damage(house, DAMAGES["body"])
    m = find_message(house.core, str(victim_number(house)))
    assert m is not None
    assert m.damage
    assert find_message(house.core, "job-3") is None, "its client's id cannot be proved"
    with pytest.raises(RecordDamaged, match=r"0000000001\.seg at byte \d+: the record's CRC does not match"):
        peek_body(house.core.state, m, 100)


def test_the_client_of_a_delayed_message_is_told_that_it_failed() -> None:
    house = KeptHouse(FakeDisk())
    client = house.client()
    for n in range(3):
        client.request(b"mail", BODIES[n], b"delay:1,reply-requested", b"job-%d" % n)
    house.checkpoint()
    do_damage(house, DAMAGES["body"], 2)
    worker = house.serve()
    client.take(b"REPLY")
    house.pass_time(2)
    assert sorted(bodies(worker)) == BODIES[:2]
    told = [frames for frames in client.take(b"REPLY") if b"DAMAGED" in frames[1]]
    assert [frames[2] for frames in told] == [b"job-2"]
    assert the_quarantined(house).client_id == b"job-2"
    check_replica(house)


def test_carrying_leaves_a_damaged_record_where_it_is() -> None:
    house = filled()
    do_damage(house, DAMAGES["body"])
    state = house.core.state
    carrier = Carrier(state, house.core.log, house.core.quarantine, 1)
    while carrier.step(2):
        pass
    count = live_count(state)
    assert count.counts[1] == 1, "the damaged one keeps its segment, as evidence"
    assert count.carriable(1) == 0, "and nobody tries to carry it again"
    check_replica(house)
    assert bodies(house.serve()) == NEIGHBOURS


def test_a_message_that_was_tried_before_is_quarantined_at_the_start() -> None:
    """Its record is asked for while the checkpoint is read."""
    house = filled()
    worker = house.serve(slots=COUNT)
    assert bodies(worker) == BODIES
    path = do_damage(house, DAMAGES["body"])
    house.checkpoint()
    house = house.restarted()
    m = the_quarantined(house)
    assert (m.number, m.last_reason, m.attempt) == (victim_number(house), DAMAGED, 1)
    assert path.rpartition("/")[2].encode() in m.damage
    assert sorted(bodies(house.serve())) == sorted(NEIGHBOURS)
    check_replica(house)


def test_a_message_that_was_carried_forward_needs_nothing_of_its_old_segment() -> None:
    """The checkpoint still names the old place; the carried record behind it has all there is to know."""
    house = filled()
    assert bodies(house.serve(slots=COUNT)) == BODIES
    house.checkpoint()
    carrier = Carrier(house.core.state, house.core.log, house.core.quarantine, 1)
    while carrier.step(2):
        pass
    house.commit()
    house.journal.close()
    house.disk.unlink(house.segment(1))
    house = KeptHouse(house.disk, house.directory, house.now_ns)
    assert house.core.state.quarantine == {}
    assert find_message(house.core, f"job-{VICTIM}") is not None
    assert sorted(bodies(house.serve())) == sorted(BODIES)
    recount(house.core)
