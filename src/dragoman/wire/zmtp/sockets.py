"""Socket types of ZMTP: their names, their numbers in a 2.0 greeting, and who may talk to whom (RFC 37)."""

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

# A 2.0 greeting names a socket type by its place in this list (RFC 15; XPUB and XSUB as libzmq 3.2 sends them).
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
    """Whether RFC 37 lets these two socket types share a connection."""
    return ours in PEERS and theirs in PEERS[ours]


def is_publisher(socket_type: bytes) -> bool:
    """Whether subscriptions arrive at this socket type."""
    return socket_type in (PUB, XPUB)


def is_subscriber(socket_type: bytes) -> bool:
    """Whether subscriptions leave from this socket type."""
    return socket_type in (SUB, XSUB)


def sends_identity(socket_type: bytes) -> bool:
    """Whether READY carries an Identity: only sockets that are answered by address have one."""
    return socket_type in (REQ, DEALER, ROUTER)
