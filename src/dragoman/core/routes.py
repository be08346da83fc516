"""Where answers go: the connections clients can be reached on now."""

from __future__ import annotations

from typing import final

from dragoman.model.message import Message
from dragoman.model.peer import Peer


@final
class Routes:
    """Address → the newest connection that claims it.

    Two peers may claim one identity: each gets the answers to what it asked on its own connection; what was asked on a
    connection that has ended goes to the newest one with that address.
    """

    def __init__(self) -> None:
        self.peers: dict[bytes, Peer] = {}

    def add(self, peer: Peer) -> None:
        self.peers[peer.address] = peer

    def remove(self, peer: Peer) -> None:
        if self.peers.get(peer.address) is peer:
            del self.peers[peer.address]

    def client_of(self, m: Message) -> Peer | None:
        client = m.client
        if client is not None and client.is_connected:
            return client
        return self.peers.get(m.address)
