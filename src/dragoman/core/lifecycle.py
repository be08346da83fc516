"""The states of a message and the moves between them.

              ┌──────── release ────────┐
              ▼                         │
    accept ─► WAITING ──── lease ───► LEASED ──── answer ──► DONE
              │ │ │                     │ │ └──── reject ──► REJECTED
              │ │ └─ expire ► EXPIRED ◄─┘ │
              │ └─── cancel ► CANCELLED ◄─┤
              ▲                           │
              └── requeue ─ QUARANTINED ◄─┘ quarantine (from WAITING too, where its record is damaged)

    not drawn:  WAITING ─ answer ► DONE, WAITING ─ reject ► REJECTED, QUARANTINED ─ answer ► DONE   by an earlier holder
                QUARANTINED ─ cancel ► CANCELLED                                                    by the operator

Every message is in exactly one state; an id that is not known is reported as "unknown", never as pending. The first answer wins, also that of
an earlier holder. A QUARANTINED message is open: its body is kept until the operator requeues or drops it. Every decision to change a state
goes through the table below; a replayed close takes the outcome from its fact.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Final

from mypy_extensions import i64

from dragoman.model.enums import STATE_NAMES
from dragoman.model.message import Message

WAITING: Final = 0
LEASED: Final = 1
QUARANTINED: Final = 2
DONE: Final = 3
REJECTED: Final = 4
EXPIRED: Final = 5
CANCELLED: Final = 6
FIRST_END: Final = DONE  # this state and all after it are final

LEASE: Final = 0
RELEASE: Final = 1
ANSWER: Final = 2
REJECT: Final = 3
EXPIRE: Final = 4
CANCEL: Final = 5
QUARANTINE: Final = 6
REQUEUE: Final = 7
MOVES: Final = 8
MOVE_NAMES: Final = ["lease", "release", "answer", "reject", "expire", "cancel", "quarantine", "requeue"]

NO: Final = -1

# Every legal move of a message; no command makes another.
NEXT: Final[list[int]] = [
    # LEASE  RELEASE  ANSWER  REJECT    EXPIRE   CANCEL     QUARANTINE   REQUEUE
    LEASED,  NO,      DONE,   REJECTED, EXPIRED, CANCELLED, QUARANTINED, NO,       # WAITING
    NO,      WAITING, DONE,   REJECTED, EXPIRED, CANCELLED, QUARANTINED, NO,       # LEASED
    NO,      NO,      DONE,   NO,       NO,      CANCELLED, NO,          WAITING,  # QUARANTINED
    NO,      NO,      NO,     NO,       NO,      NO,        NO,          NO,       # DONE
    NO,      NO,      NO,     NO,       NO,      NO,        NO,          NO,       # REJECTED
    NO,      NO,      NO,     NO,       NO,      NO,        NO,          NO,       # EXPIRED
    NO,      NO,      NO,     NO,       NO,      NO,        NO,          NO,       # CANCELLED
]  # fmt: skip
REFUSED: Final = 0xFF  # NO in `AFTER`
AFTER: Final[bytes] = bytes([cell & 0xFF for cell in NEXT])  # the same table as bytes: a cell of it is no object


def moved(state: i64, move: i64) -> i64:
    """The state after a move; an illegal move is a bug."""
    after: i64 = AFTER[state * MOVES + move]
    assert after != REFUSED, f"a {STATE_NAMES[state]} message cannot {MOVE_NAMES[move]}"
    return after


def leased_messages(messages: dict[int, Message]) -> list[Message]:
    """The leased messages by number: the same order live and in a replay."""
    return sorted([m for m in messages.values() if m.state == LEASED], key=attrgetter("number"))
