"""The simulator must be able to fail: brokers that break a promise on purpose, and the seeds that see it.

What compiled code calls directly can be broken only in the plain build.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable

import pytest

from dragoman.model.facts.layout import NOTED
from dragoman.runtime.broker import Broker
from dragoman.runtime.committer import Committer
from dragoman.runtime.connection import Connection
from dragoman.testing.disk import FakeDisk
from dragoman.version import build_flavour
from dragoman_lab.sim.world import run_seed

SEEDS = range(1, 160)
PLAIN_BUILD = pytest.mark.skipif(build_flavour() == "compiled", reason="a compiled method cannot be replaced")


def first_failure() -> str:
    """What the first seed that fails says."""
    for seed in SEEDS:
        verdict = run_seed(seed)
        if verdict.failure:
            return verdict.failure
    return ""


def sends_before_it_keeps(monkeypatch: pytest.MonkeyPatch) -> None:
    commit = Broker._commit

    def hasty(self: Broker) -> None:
        self.outboxes.send_all()
        commit(self)

    monkeypatch.setattr(Broker, "_commit", hasty)


def takes_a_sync_for_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Committer, "_sync", lambda self: self._loop.call_soon_threadsafe(self._synced, None))


def never_feeds_a_worker_that_reads_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(self: Connection) -> None:
        if self.session is not None and self.transport is not None and not self.transport.is_closing():
            self.session.sink = self.transport.write
            self.session.is_blocked = False

    monkeypatch.setattr(Connection, "resume_writing", forgetful)


def tells_one_what_is_meant_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Connection.connection_made

    def mixed_up(self: Connection, transport: asyncio.BaseTransport) -> None:
        made(self, transport)
        others = [c for c in self.broker.connections.values() if c.listener == "rq" and c is not self]
        if self.listener == "rq" and self.session is not None and others:
            other = others[0]
            self.session.sink = lambda data: None if other.session is None else other.session.sink(data)

    monkeypatch.setattr(Connection, "connection_made", mixed_up)


def never_ends_a_greeting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Broker, "_end_impatiently", lambda self, before_ns: None)


def makes_thousands_of_facts_in_one_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    sweep = Broker._sweep

    def busy(self: Broker) -> None:
        if self.core.log.count == 0:
            for number in range(3501):
                self.core.log.numbered(NOTED, number, 0, b"BUSY")
        sweep(self)

    monkeypatch.setattr(Broker, "_sweep", busy)


def has_a_disk_that_keeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeDisk, "sync", lambda self, fd: None)


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("breaks", "says"),
    [
        pytest.param(
            sends_before_it_keeps,
            "is lost|never made|before it is kept|differ|for ever|answered . . . times",
            marks=PLAIN_BUILD,
        ),
        (takes_a_sync_for_done, "before it is kept|is lost"),
        (never_feeds_a_worker_that_reads_again, "in no idle line|beside a free worker|is not lost"),
        (
            tells_one_what_is_meant_for_another,
            "never sent|meant for|was answered with|DELIVERED|CONSUM|not consume|not answered|for ever",
        ),
        pytest.param(never_ends_a_greeting, "still connected", marks=PLAIN_BUILD),
        (makes_thousands_of_facts_in_one_sweep, "units of work in one callback"),
        (has_a_disk_that_keeps_nothing, "lost|JournalDamaged|never made"),
    ],
)
def test_a_broker_that_breaks_a_promise_is_seen(
    breaks: Callable[[pytest.MonkeyPatch], None], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    breaks(monkeypatch)
    failure = first_failure()
    assert failure, f"{breaks.__name__}: no seed saw it"
    assert re.search(says, failure), failure
