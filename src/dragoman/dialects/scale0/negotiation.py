"""The broker's handling of CONNECT and NEEDBROKER: a peer's name, services and configuration, and redirection to another broker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dragoman.dialects.scale0.commands import CHANGEBROKER, CONFIG, MOVED, NOT_ACCEPTING
from dragoman.dialects.scale0.configuration import notations
from dragoman.dialects.scale0.headers import Header, names_of, token_of
from dragoman.limits import SERVED_MAX
from dragoman.model.enums import REFUSAL_CODES, REFUSAL_TEXTS, TAKEN, TOO_MANY_SERVED

if TYPE_CHECKING:
    from dragoman.dialects.scale0.sessions import Scale0Session

STOPPING: Final = "this broker is stopping"
WEIGHT: Final = 10  # Scale0 has no weights: all services of a worker are equal


def on_connect(session: Scale0Session, h: Header) -> None:
    config_type = notations.type_named(h.config_type)
    if h.problem or not config_type:
        shown = h.config_type[:40].decode("utf-8", "replace")
        session.misunderstood(h.problem or f"config_type is JSON, XML or ZFL, not {shown}", b"")
        return
    if not take_offer(session, h):
        return
    session.config_type = config_type
    if session.scale0.is_draining:
        move(session)
    elif not session.scale0.documents.is_accepting:
        session.error(NOT_ACCEPTING, "the broker takes nobody new", b"")
    else:
        session.owes_config = False
        send_config(session)


def take_offer(session: Scale0Session, h: Header) -> bool:
    """Store the name and the services that it offers; False when these are too many and the peer got an error."""
    offered = names_of(h.services)
    if len(offered) > SERVED_MAX:
        complaint = f"services: {REFUSAL_CODES[TOO_MANY_SERVED]}: {REFUSAL_TEXTS[TOO_MANY_SERVED]}"
        session.misunderstood(complaint, b"")
        return False
    if h.identity:
        set_name(session, h.identity)
    if h.services:
        session.offered_token = h.services
        session.offered = offered
        session.is_unregistered = True
    return True


def set_name(session: Scale0Session, identity: bytes) -> None:
    name = identity.decode("utf-8", "replace")
    if name != session.name:
        session.name = name
        session.is_unregistered = True


def register(session: Scale0Session) -> bool:
    """Register a worker's services with the core; False when they are refused and the worker got an error."""
    served = session.scale0.documents.services_of(session.name, session.offered)
    session.is_unregistered = False
    if session.is_worker and served == session.serving:
        return True
    if not served:
        session.exchange.note(session, "SCALE0_NO_SERVICES")  # its messages are only heartbeats
        if session.is_worker:
            session.serving = served
            session.exchange.leave(session)  # it may still answer its leased tasks
        return True
    refusal = session.exchange.join(session, [(WEIGHT, name) for name in served])
    if refusal != TAKEN:
        session.is_unregistered = True
        session.misunderstood(f"services: {REFUSAL_CODES[refusal]}: {REFUSAL_TEXTS[refusal]}", b"")
        return False
    session.serving = served
    return True


def register_again(session: Scale0Session) -> None:
    """Register the services again, which the configuration may have changed; a queued worker stays queued."""
    slots = session.work.slots
    was = session.serving
    if register(session) and session.serving is not was and slots > 0:
        session.exchange.ready(session, slots)


def send_config(session: Scale0Session) -> None:
    known = session.scale0.documents
    tree = known.document_for(session.name, session.offered, session.is_on_worker_port)
    load = session.scale0.own_load()  # for other brokers, which connect as clients
    header = b'{"config_type":"%s","config_version":"%s","load":%.3f}' % (
        session.config_type,
        known.version.encode(),
        load,
    )
    session.config_version = known.version.encode()
    session.send_now([CONFIG, header, notations.write(session.config_type, tree)])


def on_needbroker(session: Scale0Session, h: Header) -> None:
    """Answer NEEDBROKER, whatever state this broker is in."""
    if h.problem:
        session.misunderstood(h.problem, b"")
        return
    if not take_offer(session, h):
        return
    if session.scale0.is_draining:
        move(session)
    elif not send_elsewhere(session, "least loaded"):
        session.error(NOT_ACCEPTING, "no broker serves this; do not ask again", b"")


def move(session: Scale0Session) -> None:
    """Send 301 and CHANGEBROKER. A REQ socket gets only one of them: CHANGEBROKER, if there is another broker."""
    if session.is_req and send_elsewhere(session, STOPPING):
        return
    session.error(MOVED, STOPPING, b"")
    if not session.is_req:
        send_elsewhere(session, STOPPING)


def send_elsewhere(session: Scale0Session, reason: str) -> bool:
    """Send CHANGEBROKER, if there is another broker for it."""
    services = session.scale0.documents.services_of(session.name, session.offered)
    address = session.scale0.broker_for(services, not session.is_on_worker_port)
    if address:
        header = b'{"broker":%s,"reason":%s}' % (token_of(address.encode()), token_of(reason.encode()))
        session.send_now([CHANGEBROKER, header])
    return address != ""
