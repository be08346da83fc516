"""Plays recorded peers: sends what they sent, in the same order and at the same pace, and compares the broker's messages with the recorded
ones. The first difference that matters ends the replay."""

from __future__ import annotations

import selectors
import socket
import time
import uuid
from collections import deque
from dataclasses import dataclass
from typing import Any, Final

from dragoman.cli.tap import readable
from dragoman.errors import PeerError
from dragoman.runtime.admin.risp_text import Item
from dragoman.wire.zmtp.connection import ZmtpConnection
from dragoman.wire.zmtp.frames import encode_message
from dragoman_lab.recordings.captures import Entry, ReplayFailed
from dragoman_lab.recordings.likeness import Likeness, is_life_sign, operations_of

PATIENCE_S: Final = 5.0
SETTLE_S: Final = 0.3
# The socket type of a peer if the recording does not have it.
USUAL_TYPES: Final = {"emqp.subscribe": "SUB", "ebus.subscribe": "SUB", "ebus.publish": "PUB", "scale0.publish": "SUB"}
CONNECT_S: Final = 5.0
CHUNK_SIZE: Final = 1 << 18


class RecordedPeer:
    """One recorded connection, played again: a socket, and the messages received and not yet compared."""

    def __init__(self, address: tuple[str, int], likeness: Likeness) -> None:
        try:
            self.socket = socket.create_connection(address, CONNECT_S)
        except OSError as error:
            raise ReplayFailed(f"no connection to {address[0]}:{address[1]}: {error.strerror or error}") from error
        self.likeness = likeness
        self.received: deque[Any] = deque()
        self.is_ended = False  # by the broker

    def fileno(self) -> int:
        return self.socket.fileno()

    def read(self) -> None:
        """Read what has arrived, after `select` reported the socket as readable."""
        try:
            data = self.socket.recv(CHUNK_SIZE)
        except OSError:
            data = b""
        if data:
            self.decode(data)
        else:
            self.is_ended = True

    def send(self, data: bytes) -> None:
        try:
            self.socket.sendall(data)
        except OSError:
            self.is_ended = True

    def decode(self, data: bytes) -> None:
        """Add the messages in the data to `received`."""
        raise NotImplementedError


class ZmtpPeer(RecordedPeer):
    def __init__(self, address: tuple[str, int], likeness: Likeness, socket_type: str) -> None:
        super().__init__(address, likeness)
        self.zmtp = ZmtpConnection(socket_type.encode(), str(uuid.uuid4()).encode())
        self.send(self.zmtp.greeting())
        end_s = time.monotonic() + CONNECT_S
        while not self.zmtp.is_ready and not self.is_ended:
            self.socket.settimeout(max(end_s - time.monotonic(), 0.001))
            self.read()
        if not self.zmtp.is_ready:
            self.socket.close()
            raise ReplayFailed(f"{address[0]}:{address[1]} did not finish the handshake with a {socket_type}")
        self.socket.settimeout(CONNECT_S)

    def decode(self, data: bytes) -> None:
        try:
            messages = self.zmtp.receive(data)
        except PeerError:
            self.is_ended = True
            return
        self.received.extend(frames for frames in messages if not is_life_sign(frames))
        out = self.zmtp.take_outgoing()
        if out:
            self.send(out)

    def repeat(self, entry: Entry) -> None:
        """Send what the recorded peer sent."""
        assert entry.frames is not None
        frames = self.likeness.to_say(entry.frames)
        if self.zmtp.socket_type in (b"SUB", b"XSUB") and len(frames) == 1 and frames[0][:1] in (b"\x00", b"\x01"):
            is_new = frames[0][0] == 1
            self.send(self.zmtp.subscribe_bytes(frames[0][1:], is_new))
        else:
            self.send(encode_message(frames, self.zmtp.is_v1))

    def expected(self, entry: Entry) -> list[Any]:
        """The messages of the broker in a recorded line, without heartbeats."""
        assert entry.frames is not None
        return [] if is_life_sign(entry.frames) else [entry.frames]

    def is_like(self, entry: Entry, expected: list[bytes], received: list[bytes]) -> bool:
        return self.likeness.is_like(expected, received)

    def text_of(self, message: list[bytes]) -> str:
        return readable(message)


class RispPeer(RecordedPeer):
    _rest = b""

    def decode(self, data: bytes) -> None:
        operations, self._rest = operations_of(self._rest + data)
        self.received.extend(operations)

    def repeat(self, entry: Entry) -> None:
        assert entry.data is not None
        self.send(self.likeness.risp_to_say(entry.conn, entry.data))

    def expected(self, entry: Entry) -> list[Any]:
        assert entry.data is not None
        return operations_of(entry.data)[0]

    def is_like(self, entry: Entry, expected: list[Item], received: list[Item]) -> bool:
        return self.likeness.is_like_operation(entry.conn, expected, received)

    def text_of(self, message: list[Item]) -> str:
        return " ".join(map(str, message))


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first message of the broker that differs from the recording."""

    line_no: int  # of the recording; 0: after its end
    link: str
    conn: str
    expected: str
    heard: str


class Player:
    def __init__(
        self,
        entries: list[Entry],
        addresses: dict[str, tuple[str, int]],
        listeners: dict[str, str],
        speed: float = 1.0,
        patience_s: float = PATIENCE_S,
    ) -> None:
        """`addresses` are by listener; `listeners` maps the recording's links to listeners."""
        self._entries, self._addresses, self._listeners = entries, addresses, listeners
        self._speed, self._patience_s = speed, patience_s
        self._types = {entry.key: entry.socket_type for entry in entries if entry.socket_type and entry.to_broker}
        self._peers: dict[tuple[str, str], ZmtpPeer | RispPeer] = {}
        self._closed: set[tuple[str, str]] = set()
        self._selector = selectors.DefaultSelector()
        self._likeness = Likeness()
        self.sent = 0  # messages that the recorded peers sent again
        self.matched = 0  # messages of the broker that were as recorded

    def play(self) -> Divergence | None:
        began_s = time.monotonic()
        first_s = self._entries[0].t_s if self._entries else 0.0
        try:
            for entry in self._entries:
                due_s = began_s + (entry.t_s - first_s) / self._speed if self._speed > 0 else 0.0
                found = self._step(entry, due_s)
                if found is not None:
                    return found
            return self._look_for_more()
        finally:
            for peer in self._peers.values():
                peer.socket.close()
            self._selector.close()

    def _step(self, entry: Entry, due_s: float) -> Divergence | None:
        if entry.key in self._closed:
            return None
        if entry.to_broker:
            self._receive_until(due_s)
        if entry.is_eof:
            if entry.to_broker:
                self._close(entry.key)
            return None
        peer = self._peer(entry)
        if entry.socket_type:
            return None if entry.to_broker else self._check_type(entry, peer)
        if entry.to_broker:
            peer.repeat(entry)
            self.sent += 1
            return None
        for expected in peer.expected(entry):
            self._receive_until(max(due_s, time.monotonic()) + self._patience_s, peer)
            if not peer.received:
                silence = (
                    "the broker ended the connection" if peer.is_ended else f"nothing within {self._patience_s:g} s"
                )
                return Divergence(entry.line_no, entry.link, entry.conn, peer.text_of(expected), silence)
            received = peer.received.popleft()
            if not peer.is_like(entry, expected, received):
                texts = peer.text_of(expected), peer.text_of(received)
                return Divergence(entry.line_no, entry.link, entry.conn, *texts)
            self.matched += 1
        return None

    def _peer(self, entry: Entry) -> ZmtpPeer | RispPeer:
        peer = self._peers.get(entry.key)
        if peer is None:
            listener = self._listeners.get(entry.link, entry.link or "rq")
            if listener not in self._addresses:
                raise ReplayFailed(f"the recording talks to {entry.link!r}, and no listener {listener!r} is open")
            address = self._addresses[listener]
            if entry.data is not None or (listener == "rq" and not entry.socket_type):
                peer = RispPeer(address, self._likeness)
            else:
                usual = USUAL_TYPES.get(listener, "DEALER")
                peer = ZmtpPeer(address, self._likeness, self._types.get(entry.key, usual))
            self._peers[entry.key] = peer
            self._selector.register(peer, selectors.EVENT_READ, peer)
        return peer

    def _close(self, key: tuple[str, str]) -> None:
        self._closed.add(key)
        peer = self._peers.pop(key, None)
        if peer is not None:
            self._forget(peer)
            peer.socket.close()

    def _forget(self, peer: ZmtpPeer | RispPeer) -> None:
        if peer.fileno() in self._selector.get_map():
            self._selector.unregister(peer)

    def _receive_until(self, end_s: float, peer: ZmtpPeer | RispPeer | None = None) -> None:
        """Receive on all connections until `end_s`, or until `peer` has a message or its connection has ended."""
        while peer is None or not (peer.received or peer.is_ended):
            remaining_s = end_s - time.monotonic()
            for key, _ in self._selector.select(max(remaining_s, 0.0)) if self._selector.get_map() else ():
                key.data.read()
                if key.data.is_ended:
                    self._forget(key.data)
            if remaining_s <= 0:
                return
            if not self._selector.get_map():
                time.sleep(remaining_s)

    def _check_type(self, entry: Entry, peer: ZmtpPeer | RispPeer) -> Divergence | None:
        theirs = peer.zmtp.peer_socket_type.decode() if isinstance(peer, ZmtpPeer) else ""
        if theirs == entry.socket_type:
            return None
        return Divergence(entry.line_no, entry.link, entry.conn, f"a {entry.socket_type} socket", f"a {theirs} socket")

    def _look_for_more(self) -> Divergence | None:
        """After the last line, the broker must send nothing more to the peers that are still connected."""
        self._receive_until(time.monotonic() + SETTLE_S)
        for (link, conn), peer in self._peers.items():
            if peer.received:
                return Divergence(0, link, conn, "nothing more", peer.text_of(peer.received[0]))
        return None
