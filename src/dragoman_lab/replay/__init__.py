"""Turns an incident into a test: a slice of a journal, replayed in the simulator.

`dragoman export-test` writes a pytest file whose tables list what peers, operators and clocks did; `replay` repeats it with a simulated
broker and clock, and returns the history of each message. The file may be edited: rows can be added, moved and removed.

Reading order: `tables` (the file's tables), `telling` (histories as text, and how they are compared); `play/`: `stage` (the broker),
`peers` (its clients and workers), `player` (what each row of a story does); `export/`: `history` (a journal read), `cast`, `guesses`,
`script` (from facts to tables), `page` (tables to text); `command`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from dragoman.model.units import SECOND_NS
from dragoman.runtime.config import Flags, load
from dragoman_lab.replay.play.player import Player
from dragoman_lab.replay.play.stage import Stage
from dragoman_lab.replay.tables import Row, Table
from dragoman_lab.replay.telling import Told
from dragoman_lab.sim.world import quiet_logs

__all__ = ["Told", "replay"]


def replay(
    *, start: str, settings: Mapping[str, Any], clients: Table, workers: Table, messages: Table, story: list[Row]
) -> Told:
    """Replay a story and return the histories of its messages.

    `start`: the wall clock at second 0 of the story, ISO 8601. `settings`: as `dragoman up --set` takes them. The rest are the tables of an
    exported test (`tables` explains their columns, `player` the verbs of a story).
    """
    assert story, "a story without rows tells nothing"
    config = load(None, {}, Flags(settings=tuple(f"{key}={value}" for key, value in settings.items())))
    start_ns = round(datetime.fromisoformat(start).timestamp() * 1_000_000) * 1000 + round(story[0][0] * SECOND_NS)
    player = Player(clients, workers, messages, story)
    with quiet_logs():
        return player.play(Stage(config, start_ns, player.notes.on_fact))
