"""A script is played before it is written: what does not come out as the journal tells it is named and not checked, never checked in vain.

Whose turn it is, where several clients' messages wait, also goes by what no fact tells (who was idle a moment before). Where the broker would
give out another message than it did, the story gives it by hand, and says so.
"""

from __future__ import annotations

from typing import Final

from dragoman.errors import NotReplayable
from dragoman.runtime.instants import written
from dragoman.testing.replay import replay
from dragoman.testing.replay.script import Script
from dragoman.testing.replay.telling import Told, differ

BY_HAND_MAX: Final = 40  # a story that needs more is no longer the broker's


def prove(script: Script) -> None:
    """Take out of `script.lives` what cannot be checked, and say why; `NotReplayable` when nothing is left."""
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
