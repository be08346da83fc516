"""The life of a message.

              ┌──────── release ────────┐
              ▼                         │
    accept ─► WAITING ──── lease ───► LEASED ──── answer ──► DONE
              │ │ │                     │ │ └──── reject ──► REJECTED
              │ │ └─ expire ► EXPIRED ◄─┘ │
              │ └─── cancel ► CANCELLED ◄─┤
              ▲                           │
              └── requeue ─ QUARANTINED ◄─┘ quarantine (from WAITING too, where its record is damaged)

Every id is in exactly one state; an unknown id is "unknown", never "pending". A message may be answered while it waits:
an earlier holder's reply that names it still counts (the first answer wins). QUARANTINED is open: its body is kept until the
operator requeues or drops it. Nothing moves a message but this table.
"""

from __future__ import annotations

from typing import Final

WAITING: Final = 0
LEASED: Final = 1
QUARANTINED: Final = 2
DONE: Final = 3
REJECTED: Final = 4
EXPIRED: Final = 5
CANCELLED: Final = 6
STATE_NAMES: Final = ["waiting", "leased", "quarantined", "done", "rejected", "expired", "cancelled"]
FIRST_END: Final = DONE  # this state and all after it are ends

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

# Every legal move of a message; nothing else moves one.
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


def moved(state: int, move: int) -> int:
    """The state after a move; an illegal one is our own fault."""
    after = NEXT[state * MOVES + move]
    assert after != NO, f"a {STATE_NAMES[state]} message cannot {MOVE_NAMES[move]}"
    return after
