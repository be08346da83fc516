"""Plays recorded peers: sends what they sent, in the same order and at the same pace, and compares the broker's messages with the recorded
ones. The first difference that matters ends the replay."""

from __future__ import annotations

import selectors
import socket
import time
import uuid
from collections import deque
from dataclasses import dataclass
from typing import Final

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
USUAL_TYPES: Final = {
    "emqp.subscribe": "SUB",
    "ebus.subscribe": "SUB",
    "ebus.publish": "PUB",
    "scale0.publish": "SUB",
}
CONNECT_S: Final = 5.0
CHUNK_SIZE: Final = 1 << 18


class Line:
    """What ZMTP and RISP connections share: a socket, and the messages received and not yet compared."""

    def __init__(self, place: tuple[str, int]) -> None:
        try:
            self.socket = socket.create_connection(place, CONNECT_S)
        except OSError as error:
            raise ReplayFailed(f"no connection to {place[0]}:{place[1]}: {error.strerror or error}") from error
        self.is_ended = False  # by the broker

    def fileno(self) -> int:
        return self.socket.fileno()

    def close(self) -> None:
        self.socket.close()

    def hear(self) -> None:
        """Read what has arrived, after `select` reported the socket as readable."""
        try:
            data = self.socket.recv(CHUNK_SIZE)
        except OSError:
            data = b""
        if data:
            self.take(data)
        else:
            self.is_ended = True

    def send(self, data: bytes) -> None:
        try:
            self.socket.sendall(data)
        except OSError:
            self.is_ended = True

    def take(self, data: bytes) -> None:
        raise NotImplementedError


class ZmtpLine(Line):
    def __init__(self, place: tuple[str, int], socket_type: str) -> None:
        super().__init__(place)
        self.zmtp = ZmtpConnection(socket_type.encode(), str(uuid.uuid4()).encode())
        self.heard: deque[list[bytes]] = deque()
        self.send(self.zmtp.greeting())
        end_s = time.monotonic() + CONNECT_S
        while not self.zmtp.is_ready and not self.is_ended:
            self.socket.settimeout(max(end_s - time.monotonic(), 0.001))
            self.hear()
        if not self.zmtp.is_ready:
            self.close()
            raise ReplayFailed(f"{place[0]}:{place[1]} did not finish the handshake with a {socket_type}")
        self.socket.settimeout(CONNECT_S)

    def take(self, data: bytes) -> None:
        try:
            messages = self.zmtp.receive(data)
        except PeerError:
            self.is_ended = True
            return
        self.heard.extend(frames for frames in messages if not is_life_sign(frames))
        out = self.zmtp.take_outgoing()
        if out:
            self.send(out)

    def say(self, frames: list[bytes]) -> None:
        if self.zmtp.socket_type in (b"SUB", b"XSUB") and len(frames) == 1 and frames[0][:1] in (b"\x00", b"\x01"):
            is_new = frames[0][0] == 1
            self.send(self.zmtp.subscribe_bytes(frames[0][1:], is_new))
        else:
            self.send(encode_message(frames, self.zmtp.is_v1))


class RispLine(Line):
    def __init__(self, place: tuple[str, int]) -> None:
        super().__init__(place)
        self.heard: deque[list[Item]] = deque()
        self._rest = b""

    def take(self, data: bytes) -> None:
        operations, self._rest = operations_of(self._rest + data)
        self.heard.extend(operations)


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first message of the broker that differs from the recording."""

    line_no: int  # of the recording; 0: after its end
    link: str
    conn: str
    expected: str
    heard: str


class Player:
    """One replay of one recording."""

    def __init__(
        self,
        entries: list[Entry],
        places: dict[str, tuple[str, int]],
        listeners: dict[str, str],
        speed: float = 1.0,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._entries = entries
        self._places = places  # addresses of listeners
        self._listeners = listeners  # listener names of the recording's links
        self._speed = speed
        self._patience_s = patience_s
        self._types = {entry.key: entry.socket_type for entry in entries if entry.socket_type and entry.to_broker}
        self._lines: dict[tuple[str, str], Line] = {}
        self._closed: set[tuple[str, str]] = set()
        self._selector = selectors.DefaultSelector()
        self._likeness = Likeness()
        self.said = 0  # messages that the recorded peers sent again
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
            for line in self._lines.values():
                line.close()
            self._selector.close()

    def _step(self, entry: Entry, due_s: float) -> Divergence | None:
        if entry.key in self._closed:
            return None
        if entry.to_broker:
            self._hear_until(due_s)
        if entry.is_eof:
            if entry.to_broker:
                self._close(entry.key)
            return None
        line = self._line(entry)
        if entry.socket_type:
            return None if entry.to_broker else self._check_type(entry, line)
        if isinstance(line, RispLine):
            assert entry.data is not None
            if entry.to_broker:
                line.send(self._likeness.risp_to_say(entry.conn, entry.data))
                self.said += 1
                return None
            return self._expect_risp(entry, line, due_s)
        assert isinstance(line, ZmtpLine)
        assert entry.frames is not None
        if entry.to_broker:
            line.say(self._likeness.to_say(entry.frames))
            self.said += 1
            return None
        return self._expect(entry, line, due_s)

    def _line(self, entry: Entry) -> Line:
        line = self._lines.get(entry.key)
        if line is None:
            listener = self._listeners.get(entry.link, entry.link or "rq")
            if listener not in self._places:
                raise ReplayFailed(f"the recording talks to {entry.link!r}, and no listener {listener!r} is open")
            place = self._places[listener]
            usual = USUAL_TYPES.get(listener, "DEALER")
            is_risp = entry.data is not None or (listener == "rq" and not entry.socket_type)
            line = RispLine(place) if is_risp else ZmtpLine(place, self._types.get(entry.key, usual))
            self._lines[entry.key] = line
            self._selector.register(line, selectors.EVENT_READ, line)
        return line

    def _close(self, key: tuple[str, str]) -> None:
        self._closed.add(key)
        line = self._lines.pop(key, None)
        if line is not None:
            self._forget(line)
            line.close()

    def _forget(self, line: Line) -> None:
        if line.fileno() in self._selector.get_map():
            self._selector.unregister(line)

    # -- receiving --------------------------------------------------------------------------------------------------------

    def _hear_until(self, end_s: float, line: ZmtpLine | RispLine | None = None) -> None:
        """Receive on all connections until `end_s`, or until `line` has a message or has ended."""
        while line is None or not (line.heard or line.is_ended):
            remaining_s = end_s - time.monotonic()
            for key, _ in self._selector.select(max(remaining_s, 0.0)) if self._selector.get_map() else ():
                key.data.hear()
                if key.data.is_ended:
                    self._forget(key.data)
            if remaining_s <= 0:
                return
            if not self._selector.get_map():
                time.sleep(remaining_s)

    def _wait_for(self, line: ZmtpLine | RispLine, due_s: float) -> None:
        self._hear_until(max(due_s, time.monotonic()) + self._patience_s, line)

    def _expect(self, entry: Entry, line: ZmtpLine, due_s: float) -> Divergence | None:
        assert entry.frames is not None
        if is_life_sign(entry.frames):
            return None
        self._wait_for(line, due_s)
        if not line.heard:
            return self._silence(entry, line, readable(entry.frames))
        heard = line.heard.popleft()
        if not self._likeness.is_like(entry.frames, heard):
            return Divergence(entry.line_no, entry.link, entry.conn, readable(entry.frames), readable(heard))
        self.matched += 1
        return None

    def _expect_risp(self, entry: Entry, line: RispLine, due_s: float) -> Divergence | None:
        assert entry.data is not None
        for operation in operations_of(entry.data)[0]:
            expected = " ".join(map(str, operation))
            self._wait_for(line, due_s)
            if not line.heard:
                return self._silence(entry, line, expected)
            heard = line.heard.popleft()
            if not self._likeness.is_like_operation(entry.conn, operation, heard):
                return Divergence(entry.line_no, entry.link, entry.conn, expected, " ".join(map(str, heard)))
            self.matched += 1
        return None

    def _silence(self, entry: Entry, line: Line, expected: str) -> Divergence:
        heard = "the broker ended the connection" if line.is_ended else f"nothing within {self._patience_s:g} s"
        return Divergence(entry.line_no, entry.link, entry.conn, expected, heard)

    def _check_type(self, entry: Entry, line: Line) -> Divergence | None:
        theirs = line.zmtp.peer_socket_type.decode() if isinstance(line, ZmtpLine) else ""
        if theirs == entry.socket_type:
            return None
        return Divergence(entry.line_no, entry.link, entry.conn, f"a {entry.socket_type} socket", f"a {theirs} socket")

    def _look_for_more(self) -> Divergence | None:
        """After the last line, the broker must send nothing more to the peers that are still connected."""
        self._hear_until(time.monotonic() + SETTLE_S)
        for (link, conn), line in self._lines.items():
            if isinstance(line, ZmtpLine) and line.heard:
                return Divergence(0, link, conn, "nothing more", readable(line.heard[0]))
            if isinstance(line, RispLine) and line.heard:
                return Divergence(0, link, conn, "nothing more", " ".join(map(str, line.heard[0])))
        return None
