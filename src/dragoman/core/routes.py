"""Finds the connection that a message's answer goes to."""

from __future__ import annotations

from typing import final

from dragoman.model.message import Message
from dragoman.model.peer import Peer


@final
class Routes:
    """Address → the newest connection that claims it.

    Two connections may claim one identity: each gets the answers to its own requests; answers to requests of a connection that has
    ended go to the newest one with that address.
    """

    def __init__(self) -> None:
        self.peers: dict[bytes, Peer] = {}
        self.older: dict[bytes, list[Peer]] = {}  # the other connections that claim an address, the oldest first

    def add(self, peer: Peer) -> None:
        before = self.peers.get(peer.address)
        if before is not None and before is not peer:
            self.older.setdefault(peer.address, []).append(before)
        self.peers[peer.address] = peer

    def remove(self, peer: Peer) -> None:
        """Remove a connection; if it was the newest of its address, the next newest replaces it."""
        address = peer.address
        older = self.older.get(address)
        if self.peers.get(address) is not peer:
            if older is not None and peer in older:
                older.remove(peer)
        elif older:
            self.peers[address] = older.pop()
        else:
            del self.peers[address]
        if older is not None and not older:
            del self.older[address]

    def client_of(self, m: Message) -> Peer | None:
        client = m.client
        if client is not None and client.is_connected:
            return client
        return self.peers.get(m.address) if not m.is_unreadable else None
