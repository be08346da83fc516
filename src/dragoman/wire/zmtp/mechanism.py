"""Security mechanisms: the handshake between greeting and traffic, once the peer's greeting named the same mechanism.

A mechanism is a state machine. `start` returns the first command to send (`b""`: wait for the peer), `step` takes each command of the peer
and returns the answer (`b""`: none), until `is_done`; then `peer_metadata` holds the peer's raw properties. The connection handles the
peer's ERROR commands itself. Faults are raised as `HandshakeFailed`.

PLAIN and CURVE fit this interface: they keep their state in attributes and set the metadata when their READY or INITIATE has arrived.
"""

from __future__ import annotations

from typing import final

from mypy_extensions import mypyc_attr

from dragoman.errors import HandshakeFailed
from dragoman.wire.zmtp.commands import READY, build, printable, split


@mypyc_attr(allow_interpreted_subclasses=True)
class Mechanism:
    """One connection's security handshake; each connection has its own instance."""

    def __init__(self, name: bytes, is_server: bool) -> None:
        self.name = name
        self.is_server = is_server  # what our greeting claims
        self.is_done = False
        self.peer_metadata = b""

    def start(self, metadata: bytes) -> bytes:
        """Return the first command to send; `metadata` is our own properties."""
        raise NotImplementedError

    def step(self, command: bytes) -> bytes:
        """Process the peer's next command and return the answer."""
        raise NotImplementedError


@final
class NullMechanism(Mechanism):
    """No security: each peer sends READY with its properties, in any order."""

    def __init__(self) -> None:
        # RFC 37: with NULL the as-server field is zero in both directions.
        super().__init__(b"NULL", False)

    def start(self, metadata: bytes) -> bytes:
        return build(READY, metadata)

    def step(self, command: bytes) -> bytes:
        name, data = split(command)
        if name != READY:
            raise HandshakeFailed(f"READY was due, {printable(name)} came")
        self.peer_metadata = data
        self.is_done = True
        return b""
