"""Small messages that wait among large ones that are done: what is done goes, and new work is taken."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.errors import Refused
from dragoman.journal.format import segment_name
from dragoman.testing.broker import RunningBroker
from tests.waiting import wait_for

SETTINGS = ("journal.segment_size=64KiB", "journal.size_max=1MiB")
LARGE = 30_000
DEADLINE_S = 60.0


def length(text: str) -> int:
    return len(text)


@pytest.mark.long
@pytest.mark.timeout(150)
def test_large_history_around_small_waiting_messages_never_keeps_a_journal_full(tmp_path: Path) -> None:
    with RunningBroker(tmp_path / "data", "os", SETTINGS) as broker, broker.app() as app:
        job = app.job(queue="done")(length)

        def is_kept(number: int) -> bool:
            try:
                app.send_sync("waiting", b"%d" % number)
            except Refused:
                return False
            return True

        def is_done() -> bool:
            try:
                return job.ask_sync("x" * LARGE) == LARGE
            except Refused:
                return False

        with broker.worker(app):
            for number in range(30):
                wait_for("a small message to be kept", lambda n=number: is_kept(n), DEADLINE_S)
                wait_for("a large job to be done", is_done, DEADLINE_S)
                wait_for("another", is_done, DEADLINE_S)
        first = tmp_path / "data" / "journal" / segment_name(1)
        wait_for("the first segment to be dropped", lambda: not first.exists(), DEADLINE_S)
