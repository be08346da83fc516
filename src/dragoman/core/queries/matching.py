"""Finds open messages that match a filter: for lists, and for retrying or dropping many at once.

Work is bounded: at most `MESSAGES_LOOKED_AT_MAX` messages are examined, divided among the queues, and the result says when there may be
more (`is_cut`). Messages that are on disk only are not read. With a filter for one queue, messages of others are skipped and counted
against a limit of their own, so that many of them do not hide the few that match.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Final, final

from dragoman.core.core import Core
from dragoman.core.lifecycle import LEASED, QUARANTINED, WAITING
from dragoman.core.state.lines import Lane, Line
from dragoman.limits import MESSAGES_LOOKED_AT_MAX, MESSAGES_PASSED_BY_MAX
from dragoman.model.message import IN_DELAYED, IN_FRESH, Message
from dragoman.model.peer import Peer, is_client_in

ANY: Final = -1
DELAYED: Final = 100  # waiting, but not yet in a line
STATES: Final = {"": ANY, "waiting": WAITING, "delayed": DELAYED, "leased": LEASED, "quarantined": QUARANTINED}


@final
class Wanted:
    """A filter of messages; a field that is not set matches any."""

    def __init__(self) -> None:
        self.queue_no: int = ANY
        self.state: int = ANY
        self.dialect: int = ANY
        self.reason: int = ANY  # why the last attempt ended
        self.worker: Peer | None = None  # the worker that holds it
        self.clients: set[bytes] = set()  # identities of the client; empty: any
        self.accepted_before_ns: int = 0  # 0: any time
        self.accepted_from_ns: int = 0

    def matches(self, m: Message) -> bool:
        return (
            self.queue_no in (ANY, m.queue_no)
            and self.dialect in (ANY, m.dialect)
            and self.reason in (ANY, m.last_reason)
            and self.accepted_from_ns <= m.accepted_ns
            and (self.accepted_before_ns == 0 or m.accepted_ns <= self.accepted_before_ns)
            and (self.worker is None or m.worker is self.worker)
            and (not self.clients or is_client_in(m.address, self.clients))
            and self.may_be(DELAYED if m.where == IN_DELAYED else m.state)
        )

    def may_be(self, state: int) -> bool:
        return self.state in (ANY, state)


@final
class Matches:
    """The matches so far, and how many more messages may be examined or skipped."""

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        self.found: list[Message] = []
        self.left: int = MESSAGES_LOOKED_AT_MAX
        self.steps_left: int = MESSAGES_PASSED_BY_MAX
        self.is_cut: bool = False

    def look(self, m: Message) -> bool:
        """Examine a message; False when the limit is reached and it was not examined."""
        if self.wanted.queue_no not in (ANY, m.queue_no):
            return self.pass_by()
        if self.left == 0:
            self.is_cut = True
            return False
        self.left -= 1
        if self.wanted.matches(m):
            self.found.append(m)
        return True

    def pass_by(self) -> bool:
        """Skip an entry; False when no more may be skipped."""
        if self.steps_left == 0:
            self.is_cut = True
            return False
        self.steps_left -= 1
        return True


def find(core: Core, wanted: Wanted) -> Matches:
    """Open messages that match, by queue, the oldest of each first."""
    matches = Matches(wanted)
    if wanted.worker is not None:
        look_at_all(matches, wanted.worker.work.leases)
    else:
        if wanted.may_be(LEASED):  # bounded by the workers' slots
            for peer in core.workers.values():
                if peer.work.leases and not look_at_all(matches, peer.work.leases):
                    break
        if wanted.may_be(WAITING):
            look_at_lines(core, matches)
        if wanted.may_be(QUARANTINED):
            look_at_all(matches, core.state.quarantine)
        if wanted.may_be(DELAYED):
            look_at_delayed(core, matches)
    matches.found.sort(key=attrgetter("queue_no", "accepted_ns", "number"))
    return matches


def look_at_all(matches: Matches, messages: dict[int, Message]) -> bool:
    return all(matches.look(m) for m in messages.values())


def look_at_delayed(core: Core, matches: Matches) -> None:
    state = core.state
    for entry in state.delayed:
        if not (matches.look(state.messages[entry[1]]) if state.is_delayed(entry) else matches.pass_by()):
            return


def look_at_lines(core: Core, matches: Matches) -> None:
    """Examine waiting messages. Each queue has a share of the limit, so that a long one does not hide the others."""
    queue_no = matches.wanted.queue_no
    queues = [q for q in core.state.queues_by_no.values() if q.waiting > 0 and queue_no in (ANY, q.number)]
    left = len(queues)
    for queue in queues:
        share = max(matches.left // left, 1)
        left -= 1
        share = look_at_lanes(matches, queue.lanes, share)
        for group in queue.unfit:
            share = look_at_lanes(matches, group.lanes, share)


def look_at_lanes(matches: Matches, lanes: list[Lane], share: int) -> int:
    for lane in lanes:
        for line in lane.lines.values():
            if line.size > 0:
                share = look_at_line(matches, line, share)
    return share


def look_at_line(matches: Matches, line: Line, share: int) -> int:
    """Examine the messages of a line in memory; returns what is left of the queue's share."""
    if line.tail.live > 0:
        matches.is_cut = True
    for m in line.returned_live():
        if share == 0 or not matches.look(m):
            matches.is_cut = True
            return 0
        share -= 1
    for m in line.fresh:
        if m.where == IN_FRESH and m.line is line:
            if share == 0 or not matches.look(m):
                matches.is_cut = True
                return 0
            share -= 1
    return share
