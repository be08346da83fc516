"""The text forms of earlier Scale0 programs, in the order they were written. None of them knows TASK: such a worker is answered in its own
form, and never gets a task.

    first    PING "<uri> <svc,svc> <seconds>"     ← PONG "<seconds>"
    second   READY "<uri> <svc>"                  ← OK ""; we PING t, it PONGs t; HEARTBEAT t is echoed
    newest   READY "<svc,svc>", HEARTBEAT t       ← [id, OK] and [id, HEARTBEAT, t] on the PUB port, where all get [PING, t], and
                                                    send it back: PING t
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dragoman.dialects.scale0.commands import HEARTBEAT, OK, PING, PONG, READY
from dragoman.limits import NAME_SIZE_MAX
from dragoman.model.units import SECOND_NS

if TYPE_CHECKING:
    from dragoman.dialects.scale0.sessions import Scale0Session

FIRST: Final = 1
SECOND: Final = 2
NEWEST: Final = 3

# The most listeners of the PUB port for which a broadcast takes negligible time.
LISTENERS_QUICK: Final = 8


def take(session: Scale0Session, command: bytes, text: bytes) -> None:
    tokens = text.split() if len(text) <= NAME_SIZE_MAX else []
    if not tokens:
        session.misunderstood("the header is not one JSON object", b"")
    elif command == PING:
        on_ping(session, tokens)
    elif command == READY:
        on_ready(session, tokens)
    elif command == HEARTBEAT:
        on_heartbeat(session, text)
    elif command == PONG:
        if session.is_req:
            session.send_now([OK, b""])
    else:
        session.misunderstood("the header is not one JSON object", b"")


def on_ping(session: Scale0Session, tokens: list[bytes]) -> None:
    """Handle a PING. With one token it is our own PING returned, which needs no answer; only a REQ socket waits for one."""
    if len(tokens) > 1:
        session.generation = FIRST
    elif not session.is_req:
        return
    session.send_now([PONG, b"%d" % (session.exchange.now_ns // SECOND_NS)])


def on_ready(session: Scale0Session, tokens: list[bytes]) -> None:
    if len(tokens) > 1 and b"://" in tokens[0]:
        session.generation = SECOND
        session.send_now([OK, b""])
        return
    session.generation = NEWEST
    if session.is_req:
        session.send_now([OK, b""])
    elif session.identity:
        broadcast(session, [session.identity, OK])


def on_heartbeat(session: Scale0Session, text: bytes) -> None:
    if session.generation == SECOND or session.is_req or not session.identity:
        session.send_now([HEARTBEAT, text])
    else:
        broadcast(session, [session.identity, HEARTBEAT, text])


def broadcast(session: Scale0Session, frames: list[bytes]) -> None:
    session.scale0.broadcast(frames)
    session.had_enough = len(session.scale0.listeners) > LISTENERS_QUICK
