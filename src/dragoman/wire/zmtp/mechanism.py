"""Security mechanisms: what is said between greeting and traffic, once the peer's greeting named the same mechanism.

A mechanism is a small machine of its own. `start` gives the command that this side sends first (`b""`: it waits), `step`
takes each command of the peer and gives the answer (`b""`: none), until `is_done`; then `peer_metadata` holds the raw
properties the peer proved. ERROR commands of the peer never reach it. Faults are raised as `HandshakeFailed`.

PLAIN and CURVE fit here: they keep their step in attributes and hand out the metadata when their READY or INITIATE has come.
"""

from __future__ import annotations

from typing import final

from mypy_extensions import mypyc_attr

from dragoman.errors import HandshakeFailed
from dragoman.wire.zmtp.commands import READY, build, data_of, name_of, printable


@mypyc_attr(allow_interpreted_subclasses=True)
class Mechanism:
    """One connection's security handshake. A fresh one for each connection."""

    def __init__(self, name: bytes, says_as_server: bool) -> None:
        self.name = name
        self.says_as_server = says_as_server
        self.is_done = False
        self.peer_metadata = b""

    def start(self, metadata: bytes) -> bytes:
        """The first command to send, given our own properties."""
        raise NotImplementedError

    def step(self, command: bytes) -> bytes:
        """Take the peer's next command, give the answer."""
        raise NotImplementedError


@final
class NullMechanism(Mechanism):
    """No security: each side says READY with its properties, in any order."""

    def __init__(self) -> None:
        # RFC 37: with NULL the as-server field is zero on both sides.
        super().__init__(b"NULL", False)

    def start(self, metadata: bytes) -> bytes:
        return build(READY, metadata)

    def step(self, command: bytes) -> bytes:
        name = name_of(command)
        if name != READY:
            raise HandshakeFailed(f"READY was due, {printable(name)} came")
        self.peer_metadata = data_of(command)
        self.is_done = True
        return b""
