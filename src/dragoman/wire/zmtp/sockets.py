"""Socket types of ZMTP: their names, their numbers in a 2.0 greeting, and which types may connect (RFC 37)."""

from __future__ import annotations

from typing import Final

PAIR: Final = b"PAIR"
PUB: Final = b"PUB"
SUB: Final = b"SUB"
REQ: Final = b"REQ"
REP: Final = b"REP"
DEALER: Final = b"DEALER"
ROUTER: Final = b"ROUTER"
PULL: Final = b"PULL"
PUSH: Final = b"PUSH"
XPUB: Final = b"XPUB"
XSUB: Final = b"XSUB"

# A 2.0 greeting identifies a socket type by its index in this list (RFC 15; XPUB and XSUB as in libzmq 3.2).
TYPES: Final[list[bytes]] = [PAIR, PUB, SUB, REQ, REP, DEALER, ROUTER, PULL, PUSH, XPUB, XSUB]

PEERS: Final[dict[bytes, list[bytes]]] = {
    PAIR: [PAIR],
    PUB: [SUB, XSUB],
    SUB: [PUB, XPUB],
    REQ: [REP, ROUTER],
    REP: [REQ, DEALER],
    DEALER: [REP, DEALER, ROUTER],
    ROUTER: [REQ, DEALER, ROUTER],
    PULL: [PUSH],
    PUSH: [PULL],
    XPUB: [SUB, XSUB],
    XSUB: [PUB, XPUB],
}


def can_talk(ours: bytes, theirs: bytes) -> bool:
    """Whether RFC 37 allows a connection between these two socket types."""
    return ours in PEERS and theirs in PEERS[ours]


def is_publisher(socket_type: bytes) -> bool:
    """Whether this socket type receives subscriptions."""
    return socket_type in (PUB, XPUB)


def is_subscriber(socket_type: bytes) -> bool:
    """Whether this socket type sends subscriptions."""
    return socket_type in (SUB, XSUB)


def sends_identity(socket_type: bytes) -> bool:
    """Whether READY carries an Identity: only socket types that are addressed by it have one."""
    return socket_type in (REQ, DEALER, ROUTER)
