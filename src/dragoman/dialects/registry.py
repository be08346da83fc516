"""Every listener: its number (part of reply addresses, kept for ever) and the session that speaks there."""

from __future__ import annotations

from typing import Final

from dragoman.dialects.emqp.dialect import EmqpDialect
from dragoman.dialects.emqp.session import EmqpSession
from dragoman.dialects.emqp.subscriber import EmqpSubscriber
from dragoman.dialects.session import Hub, Session

LISTENER_NUMBERS: Final = {
    "emqp.client": 1,
    "emqp.worker": 2,
    "emqp.admin": 3,
    "emqp.publish": 4,
    "emqp.subscribe": 5,
}


def make_session(listener: str, hub: Hub, emqp: EmqpDialect) -> Session:
    """The session for a new connection to a listener."""
    number = LISTENER_NUMBERS[listener]
    if listener == "emqp.subscribe":
        return EmqpSubscriber(listener, number, hub)
    return EmqpSession(listener, number, hub, emqp)
