"""Plays a script before it is written: a message whose history differs from the journal is named in the file and not checked.

Where several clients' messages wait, the next one also depends on state that no fact records (which worker was idle a moment before). Where
the broker would give out another message than it did, the story gives it explicitly and notes that.
"""

from __future__ import annotations

from typing import Final

from dragoman.errors import NotReplayable
from dragoman.runtime.search.instants import written
from dragoman_lab.replay import replay
from dragoman_lab.replay.export.script import Script
from dragoman_lab.replay.telling import Told, differ

BY_HAND_MAX: Final = 40  # a story that needs more no longer tests the broker's own order


def prove(script: Script) -> None:
    """Remove from `script.lives` what cannot be checked, and record why; raises `NotReplayable` if nothing is left."""
    told = play(script)
    while told.astray >= 0 and script.by_hand < BY_HAND_MAX:
        place = told.astray + (script.story[told.astray][2] in ("asks", "makes"))
        if script.story[place : place + 1] == [] or script.story[place][2] != "takes":
            break
        at_s, who, _, message = script.story[place]
        script.story[place] = (at_s, who, "is given", message)
        script.by_hand += 1
        told = play(script)
    first = ""
    for message, expected in list(script.lives.items()):
        was = told.lives.get(message, [])
        difference = differ(message, expected, was)
        if difference:
            first = first or difference
            del script.lives[message]
            script.left_out[message] = in_short(expected, was)
    if not script.lives:
        on_the_way = f"; {told.troubles[0]}" if told.troubles else ""
        raise NotReplayable(
            f"no life of this slice comes out of the simulator as the journal tells it: {first}{on_the_way}"
        )
    try:
        told.check_order(script.story, script.lives)
    except AssertionError:
        script.is_ordered = False


def play(script: Script) -> Told:
    cast = script.cast
    return replay(
        start=written(script.start_ns),
        settings=script.settings,
        clients=cast.clients,
        workers=cast.workers,
        messages=cast.messages,
        story=script.story,
    )


def in_short(expected: list[str], was: list[str]) -> str:
    pairs = zip([*expected, "no more"], [*was, "no more"], strict=False)
    should, did = next(pair for pair in pairs if pair[0] != pair[1])
    return f"the journal says {should!r}, the simulator {did!r}"
