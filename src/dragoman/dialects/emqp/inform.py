"""INFORM: a peer registers as a scheduler, or as a worker of some queues."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dragoman.dialects.emqp import jobs
from dragoman.dialects.emqp.words import ACK, REPLY, SCHEDULER
from dragoman.limits import SERVED_TEXT_SIZE_MAX
from dragoman.model.peer import TAKES_ANYTHING, TAKES_JSON_JOBS
from dragoman.model.words import REFUSAL_CODES, REFUSAL_TEXTS, TAKEN, TOO_LONG

if TYPE_CHECKING:
    from dragoman.dialects.emqp.session import EmqpSession

# What is known about a peer (`EmqpSession.informed`).
UNKNOWN: Final = 0
ORIGINAL: Final = 1  # its INFORM has the original's form: accepts JSON jobs only
ANYTHING: Final = 2  # its INFORM has the specification's form, or says that it accepts bytes


def take(session: EmqpSession, frames: list[bytes], at: int) -> None:
    """Handle an INFORM; `at` is the index of the message id."""
    count = len(frames)
    role = frames[at + 2] if count > at + 2 else b""
    if role == SCHEDULER:
        session.is_scheduler = True
        session.emqp.schedulers[session.connection_no] = session
    else:
        settings = session.emqp.settings
        text = frames[at + 1] if count > at + 1 else b""
        refusal = TOO_LONG
        if len(text) <= SERVED_TEXT_SIZE_MAX:  # checked before parsing: megabytes of JSON would block all connections
            refusal = session.exchange.join(session, jobs.read_queues(text, settings))
        if refusal != TAKEN:
            refuse(session, frames, at, refusal)
            return
        session.is_scheduler = False
        session.emqp.schedulers.pop(session.connection_no, None)
        session.informed = ORIGINAL if count == at + 3 else ANYTHING
        is_picky = session.informed == ORIGINAL and settings.json_only
        session.body_constraint = TAKES_JSON_JOBS if is_picky else TAKES_ANYTHING
        session.lease_grace_ns = settings.timeout_grace_ns if session.informed == ORIGINAL else 0
        session.lease_ns = settings.original_timeout_ns if session.informed == ORIGINAL else 0
    session.tell_now([ACK, session.emqp.next_id(), frames[at]])
    session.send_heartbeat(session.exchange.now_ns)  # the original starts its processes on it


def refuse(session: EmqpSession, frames: list[bytes], at: int, refusal: int) -> None:
    """Refuse an INFORM without an ACK. Only a worker that accepts bytes gets a REPLY; the original would not understand it."""
    session.exchange.note(session, "EMQP_INFORM_REFUSED")
    if len(frames) > at + 3:
        error = jobs.error_value(REFUSAL_CODES[refusal], REFUSAL_TEXTS[refusal])
        session.tell_now([REPLY, session.emqp.next_id(), error, frames[at]])
