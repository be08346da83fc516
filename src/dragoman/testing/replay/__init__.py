"""From an incident to a test: a slice of a journal, played again in the simulator.

`dragoman export-test` writes a pytest file whose tables say what peers, operators and clocks did; `replay` does it again to a simulated
broker, on a clock of its own, and returns what became of each message. The file is yours: rows may be added, moved and taken out.

Reading order: `tables` (what the file's tables hold), `bodies`, `stage` (the broker), `clients`, `workers`, `zmtp_workers`, `rq_worker`
(its peers), `desk` (its operator), `notebook`, `player` (what each row of a story does), `telling` (lives in words, and how they are compared); and
for the export: `instants`, `history` (a journal read), `cast`, `causes`, `opening`, `rows`, `guesses`, `script` (from facts to tables), `proving`,
`page` (tables to text), `command`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from dragoman.runtime.config import Flags, load
from dragoman.testing.replay.player import Player
from dragoman.testing.replay.stage import Stage
from dragoman.testing.replay.tables import SECOND_NS, Row, Table
from dragoman.testing.replay.telling import Told
from dragoman.testing.sim.report import quiet_logs

__all__ = ["Told", "replay"]


def replay(
    *, start: str, settings: Mapping[str, Any], clients: Table, workers: Table, messages: Table, story: list[Row]
) -> Told:
    """Play a story and return what became of its messages.

    `start`: the wall clock at second 0 of the story, ISO 8601. `settings`: as `dragoman up --set` takes them. The rest are the tables of an
    exported test (`tables` explains their columns, `player` the words of a story).
    """
    assert story, "a story without rows tells nothing"
    config = load(None, {}, Flags(settings=tuple(f"{key}={value}" for key, value in settings.items())))
    start_ns = round(datetime.fromisoformat(start).timestamp() * 1_000_000) * 1000 + round(story[0][0] * SECOND_NS)
    player = Player(clients, workers, messages, story)
    with quiet_logs():
        return player.play(Stage(config, start_ns, player.notes.on_fact))
