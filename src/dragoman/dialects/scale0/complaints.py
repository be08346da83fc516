"""The errors sent to a peer: ERROR with one of Scale0's five codes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from mypy_extensions import i64

from dragoman.dialects.scale0 import negotiation
from dragoman.dialects.scale0.headers import token_of
from dragoman.dialects.scale0.phrases import id_token
from dragoman.dialects.scale0.words import HOSTILE, MOVED, NOT_ACCEPTING, NOT_UNDERSTOOD
from dragoman.model.message import Message
from dragoman.model.units import SECOND_NS
from dragoman.model.words import (
    BAD_HEADER,
    DRAINING,
    INEXPRESSIBLE,
    PROTOCOL_FAULT,
    REFUSAL_CODES,
    REFUSAL_TEXTS,
    TOO_LONG,
)

if TYPE_CHECKING:
    from dragoman.dialects.scale0.sessions import Scale0Session


# The prefix of an ERROR's reason when the message was not accepted.
NOT_TAKEN: Final = "NOT_ACCEPTING"
SKEWED: Final = "CLOCK_SKEW"
REFUSED_WORDS: Final = [code.encode() for code in [NOT_TAKEN, SKEWED, *REFUSAL_CODES[1:]]]


def error_header(code: int, reason: bytes, token: bytes) -> bytes:
    """Build the header of an ERROR; `token` is the id of the message it refers to, if any."""
    if token:
        return b'{"code":%d,"reason":%s,"id":%s}' % (code, token_of(reason), token)
    return b'{"code":%d,"reason":%s}' % (code, token_of(reason))


def say_skew(session: Scale0Session, time_ms: i64, token: bytes) -> None:
    session.exchange.note(session, "SCALE0_CLOCK_SKEW")
    skew_s = int(time_ms) / 1000 - session.scale0.wall_ns() / SECOND_NS
    session.error(NOT_ACCEPTING, f"{SKEWED}: your clock is {skew_s:+.3f} s off the broker's", token)


def misunderstood(session: Scale0Session, reason: str, token: bytes) -> None:
    """Answer and count a message that is not understood: a peer that sends too many gets one more error and is then ignored for a while."""
    now_ns = session.exchange.now_ns
    settings = session.scale0.settings
    if now_ns - session.first_offence_ns > settings.ban_ns:
        session.offences = 0
        session.first_offence_ns = now_ns
    session.offences += 1
    if session.offences <= settings.offences_max:
        session.exchange.note(session, "SCALE0_NOT_UNDERSTOOD")
        session.error(NOT_UNDERSTOOD, reason, token)
        return
    session.exchange.note(session, "SCALE0_HOSTILE")
    session.error(HOSTILE, f"{session.offences} messages that mean nothing here", b"")
    session.banned_until_ns = now_ns + settings.ban_ns
    if session.who:
        session.scale0.ban(session.who)
    session.exchange.lose(session, PROTOCOL_FAULT)


def refuse(session: Scale0Session, m: Message, refusal: int) -> None:
    """Answer new work that was not accepted."""
    if refusal == DRAINING:
        code = MOVED
    elif refusal == TOO_LONG or refusal == BAD_HEADER or refusal == INEXPRESSIBLE:
        code = NOT_UNDERSTOOD
    else:
        code = NOT_ACCEPTING
    session.error(code, f"{REFUSAL_CODES[refusal]}: {REFUSAL_TEXTS[refusal]}", id_token(m))
    if refusal == DRAINING and not session.is_req:
        negotiation.send_elsewhere(session, "this broker is stopping")
