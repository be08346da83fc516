"""Finds messages, queues, workers and schedules without changing anything: a query must not affect when a message is served.

`State.take` loads a message from disk and moves it to the front of its line; the functions here read a copy instead.
"""

from __future__ import annotations

from typing import Final

from dragoman.core.core import Core
from dragoman.core.state.lines import Lane, Line, line_key
from dragoman.core.state.queue import Queue
from dragoman.core.storage.stored import peek_by_id, peek_by_number
from dragoman.model.enums import shown
from dragoman.model.message import IN_FRESH, Message
from dragoman.model.peer import Peer
from dragoman.model.phrases import read_number

NUMBER_FORM: Final = "number:"


def find_message(core: Core, key: str) -> Message | None:
    """An open message by its client's id, its id towards workers in the form of any dialect, or its number; a copy if it is on disk only.

    A client may choose an id that looks like a number, so a plain number is tried last, after all ids; `number:1.17` is tried as a number
    first.
    """
    state = core.state
    if key.startswith(NUMBER_FORM):
        m = find_number(core, key.removeprefix(NUMBER_FORM))
        if m is not None:
            return m
    text = key.encode("utf-8", "surrogateescape")
    m = state.find(text)
    if m is not None:
        return m
    for m in state.messages.values():  # asked by a person, so rare enough for a scan of all messages
        if m.client_id == text:
            return m
    m = peek_by_id(state, text)
    if m is not None:
        return m
    for number in state.ids.numbers_of(key):
        m = state.messages.get(number) or peek_by_number(state, number)
        if m is not None:
            return m
    return find_number(core, key)


def find_number(core: Core, text: str) -> Message | None:
    number = read_number(text)
    if number < 0:
        return None
    m = core.state.messages.get(number)
    return m if m is not None else peek_by_number(core.state, number)


def find_queue(core: Core, name: str) -> Queue | None:
    """A queue by its name; a name that is not text may be given as it is shown (`bin\\xff`)."""
    found = core.state.queues.get(name.encode("utf-8", "backslashreplace"))
    if found is None and "\\x" in name:
        for queue in core.state.queues_by_no.values():
            if shown(queue.name) == name:
                return queue
    return found


def find_worker(core: Core, key: str) -> Peer | None:
    """A worker by its number (with or without a leading w) or by its identity; a binary identity in hex or as facts show it."""
    number = read_number(key.removeprefix("w"))
    if number in core.workers:
        return core.workers[number]
    for peer in core.workers.values():
        if is_identity(peer.identity, key):
            return peer
    return None


def worker_name(peer: Peer) -> str:
    """A worker's identity as text, a binary one in hex; its remote address if it has none."""
    return identity_text(peer.identity) if peer.identity else peer.remote


def identity_text(identity: bytes) -> str:
    name = shown(identity)
    return name if name.isprintable() and "\\x" not in name else identity.hex()


def is_identity(identity: bytes, key: str) -> bool:
    """Whether a text denotes an identity: as it is named, or as facts show it."""
    return len(identity) > 0 and key in (identity_text(identity), shown(identity))


def find_absent(core: Core, key: str) -> list[bytes]:
    """The lasting ids of dismissed workers, connected or not, by the number they had or by their identity."""
    number = read_number(key.removeprefix("w"))
    found: list[bytes] = []
    for lasting_id, one in core.roster.dismissals.by_id.items():
        if one.worker_no == number or is_identity(one.identity, key):
            found.append(lasting_id)
    return found


def count_ahead(core: Core, m: Message) -> int:
    """Count the messages before a waiting message: all of higher priorities, those of its own line, and about as many of each other client's
    line, because lines are served round-robin."""
    queue = core.state.queues_by_no[m.queue_no]
    lanes = queue.lanes
    for group in queue.unfit:
        if group.kinds == m.unfit:
            lanes = group.lanes
    ahead = 0
    for lane in lanes:
        if lane.priority > m.priority:
            ahead += lane_size(lane)
        elif lane.priority == m.priority:
            ahead += ahead_in_lane(lane, m)
    return ahead


def lane_size(lane: Lane) -> int:
    return sum([line.size for line in lane.lines.values()])


def ahead_in_lane(lane: Lane, m: Message) -> int:
    own = lane.lines.get(line_key(m.address))
    if own is None:
        return 0
    ahead = ahead_in_line(own, m)
    total = ahead
    for line in lane.lines.values():
        if line is not own:  # lines are served round-robin
            total += min(line.size, ahead + 1)
    return total


def ahead_in_line(line: Line, m: Message) -> int:
    ahead = 0
    for other in line.returned_live():
        if other is m:
            return ahead
        ahead += 1
    for other in line.fresh:
        if other is m:
            return ahead
        if other.where == IN_FRESH:
            ahead += 1
    at = line.tail.find(m.number)
    return ahead + max(at - line.tail.head, 0)
