"""The life of a message: every state, every move."""

from __future__ import annotations

import pytest

from dragoman.core.lifecycle import (
    ANSWER,
    CANCEL,
    CANCELLED,
    DONE,
    EXPIRE,
    EXPIRED,
    FIRST_END,
    LEASE,
    LEASED,
    MOVE_NAMES,
    MOVES,
    NEXT,
    QUARANTINE,
    QUARANTINED,
    REJECT,
    REJECTED,
    RELEASE,
    REQUEUE,
    WAITING,
    moved,
)
from dragoman.model.enums import STATE_NAMES

LEGAL = {
    (WAITING, LEASE): LEASED,
    (WAITING, ANSWER): DONE,  # an earlier holder's answer still counts
    (WAITING, REJECT): REJECTED,
    (WAITING, EXPIRE): EXPIRED,
    (WAITING, CANCEL): CANCELLED,
    (WAITING, QUARANTINE): QUARANTINED,  # its record is damaged
    (LEASED, RELEASE): WAITING,
    (LEASED, ANSWER): DONE,
    (LEASED, REJECT): REJECTED,
    (LEASED, EXPIRE): EXPIRED,
    (LEASED, CANCEL): CANCELLED,
    (LEASED, QUARANTINE): QUARANTINED,
    (QUARANTINED, ANSWER): DONE,
    (QUARANTINED, CANCEL): CANCELLED,
    (QUARANTINED, REQUEUE): WAITING,
}


@pytest.mark.parametrize("state", range(len(STATE_NAMES)), ids=STATE_NAMES)
@pytest.mark.parametrize("move", range(MOVES), ids=MOVE_NAMES)
def test_every_state_takes_every_move_as_the_table_says_or_refuses_it_loudly(state: int, move: int) -> None:
    if (state, move) in LEGAL:
        assert moved(state, move) == LEGAL[state, move]
    else:
        with pytest.raises(AssertionError, match=f"a {STATE_NAMES[state]} message cannot {MOVE_NAMES[move]}"):
            moved(state, move)


def test_the_table_has_a_cell_for_every_state_and_move() -> None:
    assert len(NEXT) == len(STATE_NAMES) * MOVES
    assert len(MOVE_NAMES) == MOVES


def test_nothing_moves_a_message_out_of_an_end() -> None:
    assert all(cell < 0 for cell in NEXT[FIRST_END * MOVES :])


def test_every_end_can_be_reached_from_waiting() -> None:
    reached, edge = {WAITING}, [WAITING]
    while edge:
        state = edge.pop()
        for move in range(MOVES):
            after = NEXT[state * MOVES + move]
            if after >= 0 and after not in reached:
                reached.add(after)
                edge.append(after)
    assert reached == set(range(len(STATE_NAMES)))


def test_a_closed_fact_names_its_outcome_by_the_same_words() -> None:
    assert STATE_NAMES == STATE_NAMES
