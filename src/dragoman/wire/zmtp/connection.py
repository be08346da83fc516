"""One ZMTP connection as a state machine without I/O: received bytes in, messages and bytes to send out.

    GREETING ── 64 bytes, mechanism NULL ──────► HANDSHAKE ── READY, types fit ──► TRAFFIC     3.0, 3.1
        │ ──── 12 bytes, types fit ────────────► IDENTITY ─── one frame ─────────► TRAFFIC     2.0
        │ ──── no signature ───────────────────► IDENTITY ─── one frame ─────────► TRAFFIC     1.0, where it is allowed
        │ ──── an HTTP request, a TLS hello ───► FAILED
        any fault, from any state ─────────────► FAILED

`receive` raises the fault, except when complete messages precede it in the same buffer: then it returns them, sets `fault`, and the
next `receive` raises. So which messages of a peer get through never depends on how the stream was cut.
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import BytesWriter

from dragoman import errors
from dragoman.errors import BadCommand, PeerError, PeerRefused
from dragoman.limits import COMMAND_SIZE_MAX, IDENTITY_SIZE_MAX, MESSAGE_SIZE_MAX
from dragoman.wire import first_bytes
from dragoman.wire.zmtp import commands, greeting
from dragoman.wire.zmtp.frames import encode_command, encode_message
from dragoman.wire.zmtp.reader import FrameReader

GREETING: Final = 0
HANDSHAKE: Final = 1
IDENTITY: Final = 2
TRAFFIC: Final = 3
FAILED: Final = 4

V1: Final = 1
V2: Final = 2
V3_0: Final = 30
V3_1: Final = 31


@final
class ZmtpConnection:
    """Decodes one peer's ZMTP stream: bytes in, messages out. No sockets, no clock."""

    def __init__(
        self,
        socket_type: bytes,
        identity: bytes = b"",
        message_size_max: int = MESSAGE_SIZE_MAX,
        allows_v1: bool = True,
    ) -> None:
        assert socket_type in greeting.PEERS
        assert len(identity) <= IDENTITY_SIZE_MAX
        self.socket_type = socket_type
        self.identity = identity
        self.allows_v1 = allows_v1
        self.program = b""  # sent in the handshake if set (commands.PROGRAM)
        self.is_ready = False
        self.is_v1 = False
        self.peer_version = 0
        self.peer_socket_type = b""
        self.peer_identity = b""
        self.peer_metadata: dict[bytes, bytes] = {}
        self.fault: PeerError | None = None
        self._state = GREETING
        self._received = b""
        self._out = BytesWriter()
        self.reader = FrameReader(message_size_max)
        self._forwards_subscriptions = True

    def greeting(self) -> bytes:
        """The bytes to send at connect; the rest follows through `take_outgoing` once the peer's protocol version is known."""
        return greeting.signature(self.identity)

    def take_outgoing(self) -> bytes:
        """Bytes to send immediately, without waiting for a commit: handshake, PONG, ERROR. Never longer than the input, plus 1 KiB."""
        if len(self._out) == 0:
            return b""
        out = self._out.getvalue()
        self._out = BytesWriter()
        return out

    def receive(self, data: bytes) -> list[list[bytes]]:
        """Process the next bytes of the stream and return the messages they complete, each a list of frames."""
        if self.fault is not None:
            raise self.fault.with_traceback(None)
        messages: list[list[bytes]] = []
        try:
            if self._state == GREETING:
                data = self._receive_greeting(data)
                if self._state == GREETING:
                    return messages
            reader = self.reader
            reader.feed(data)
            control = reader.walk(messages)
            while control is not None:
                self._on_control(control, messages)
                control = reader.walk(messages)
        except PeerError as error:
            self.abandon(error)
            if not messages:
                raise
        return messages

    def subscribe_bytes(self, prefix: bytes, is_wanted: bool = True) -> bytes:
        """A subscription, or its end, in the form this peer understands; empty for a 1.0 publisher, which sends everything."""
        assert self.is_ready
        assert self.socket_type in greeting.SENDS_SUBSCRIPTIONS
        if self.peer_version >= V3_1:
            return encode_command(commands.build(commands.SUBSCRIBE if is_wanted else commands.CANCEL, prefix))
        if not self._forwards_subscriptions:
            return b""
        return encode_message([(b"\x01" if is_wanted else b"\x00") + prefix], self.is_v1)

    def abandon(self, error: PeerError) -> None:
        """Fail the stream; the part of an incomplete message that was received is dropped."""
        # Only 3.x has ERROR, and only during its handshake; an ERROR is not answered with another.
        if self._state == HANDSHAKE and not isinstance(error, PeerRefused):
            self._out.write(encode_command(commands.build_error(f"{error.code}: {error}")))
        self._state = FAILED
        self.fault = error
        self._received = b""
        self.reader = FrameReader(0)

    def _receive_greeting(self, data: bytes) -> bytes:
        """Consume greeting bytes; returns those after the greeting once it is complete, which shows in `_state`."""
        before = len(self._received)
        received = self._received + data[: greeting.GREETING_SIZE_V3 - before]
        if not received:
            return b""
        if greeting.is_unversioned(received):
            data = self._received + data
            self._received = b""
            if self._is_recognised(data):
                self._meet_unversioned()
                return data
            self._received = data
            return b""
        self._received = received
        if before < greeting.SIGNATURE_SIZE <= len(received):
            self._out.append(greeting.VERSION_BYTE)
        if len(received) <= greeting.VERSION_AT:
            return b""
        version = received[greeting.VERSION_AT]
        is_old = version < greeting.VERSION_BYTE
        if before <= greeting.VERSION_AT:
            if is_old:
                self._out.append(greeting.TYPES.index(self.socket_type))
            else:
                self._out.write(greeting.REST_OF_GREETING)
        size = greeting.GREETING_SIZE_V2 if is_old else greeting.GREETING_SIZE_V3
        if len(received) < size:
            return b""
        if is_old:
            self._meet_old(version, received[greeting.MINOR_AT])
        else:
            self._meet_current(received)
        self._received = b""
        return data[size - before :]

    def _is_recognised(self, received: bytes) -> bool:
        """Whether bytes without a signature come from a 1.0 peer; False while that is undecided. Raises when they do not."""
        kind = first_bytes.judge(received)
        first_bytes.refuse(kind)
        if kind == first_bytes.UNDECIDED or len(received) < 2:
            return False
        if not greeting.is_identity_of_1_0(received):
            raise errors.BadGreeting("it begins neither with a signature nor with an identity")
        if not self.allows_v1:
            raise errors.LegacyGreetingOff
        return True

    def _meet_unversioned(self) -> None:
        """Handle a 1.0 peer: it took our signature for the header of our identity frame, so the identity's bytes follow."""
        self._out.write(self.identity)
        self._forwards_subscriptions = False
        self._await_identity(V1)

    def _meet_old(self, version: int, socket_code: int) -> None:
        """Handle a 2.0 peer, or one of the few with a version byte of 0 and frames of 1.0."""
        if socket_code >= len(greeting.TYPES):
            raise errors.BadGreeting(f"socket type {socket_code} does not exist")
        self._check_socket_type(greeting.TYPES[socket_code])
        self._await_identity(V2 if version > 0 else V1)
        self._out.write(encode_message([self.identity], self.is_v1))

    def _await_identity(self, version: int) -> None:
        self.peer_version = version
        self.is_v1 = version == V1
        self.reader.is_v1 = self.is_v1
        self.reader.control_size_max = IDENTITY_SIZE_MAX
        self._state = IDENTITY

    def _meet_current(self, received: bytes) -> None:
        """Handle a 3.x peer; peers with a higher minor version fall back to ours."""
        self.peer_version = V3_0 if received[greeting.VERSION_AT] == 3 and received[greeting.MINOR_AT] == 0 else V3_1
        self._state = HANDSHAKE
        self.reader.has_commands = True
        theirs = greeting.mechanism_of(received)
        if theirs != greeting.MECHANISM:
            raise errors.MechanismMismatch(greeting.MECHANISM, theirs)
        self._out.write(encode_command(commands.build(commands.READY, self._metadata())))

    def _metadata(self) -> bytes:
        metadata = commands.build_property(b"Socket-Type", self.socket_type)
        if self.socket_type in greeting.SENDS_IDENTITY:
            metadata += commands.build_property(b"Identity", self.identity)
        if self.program:
            metadata += commands.build_property(commands.PROGRAM, self.program)
        return metadata

    def _check_socket_type(self, theirs: bytes) -> None:
        if theirs not in greeting.PEERS[self.socket_type]:
            raise errors.SocketTypeMismatch(self.socket_type, theirs)
        self.peer_socket_type = theirs

    def _on_control(self, body: bytes, messages: list[list[bytes]]) -> None:
        if self._state == IDENTITY:
            self._on_identity(body, messages)
        elif self._state == HANDSHAKE:
            self._on_handshake(body)
        else:
            self._on_command(body, messages)

    def _on_identity(self, identity: bytes, messages: list[list[bytes]]) -> None:
        self.peer_identity = identity
        self._open()
        if not self._forwards_subscriptions and self.socket_type in greeting.RECEIVES_SUBSCRIPTIONS:
            # A 1.0 subscriber filters locally and sends no subscription: it gets everything.
            messages.append([b"\x01"])

    def _on_handshake(self, command: bytes) -> None:
        """Handle the one command of a NULL handshake: READY with the peer's properties."""
        name, data = commands.split(command)
        if name == commands.ERROR:
            raise PeerRefused(commands.reason_of(data))
        if name != commands.READY:
            raise errors.HandshakeFailed(f"READY was due, {commands.printable(name)} came")
        self.peer_metadata = commands.read_metadata(data)
        self._check_socket_type(self.peer_metadata.get(commands.SOCKET_TYPE, b""))
        identity = self.peer_metadata.get(commands.IDENTITY, b"")
        if len(identity) > IDENTITY_SIZE_MAX:
            raise errors.IdentityTooLong(len(identity), IDENTITY_SIZE_MAX)
        self.peer_identity = identity
        self._open()

    def _open(self) -> None:
        self._state = TRAFFIC
        self.is_ready = True
        self.reader.is_open = True
        self.reader.control_size_max = COMMAND_SIZE_MAX

    def _on_command(self, command: bytes, messages: list[list[bytes]]) -> None:
        """Handle a command between messages, or between the frames of one: libzmq sends PINGs there."""
        name, data = commands.split(command)
        if name == commands.PING:
            self._out.write(encode_command(commands.build_pong(data)))
        elif name == commands.SUBSCRIBE or name == commands.CANCEL:
            if self.socket_type not in greeting.RECEIVES_SUBSCRIPTIONS:
                raise BadCommand("a subscription reached a socket that publishes nothing")
            messages.append([(b"\x01" if name == commands.SUBSCRIBE else b"\x00") + data])
        elif name == commands.ERROR:
            raise PeerRefused(commands.reason_of(data))
        elif name == commands.READY:
            raise BadCommand("READY came twice")
        # PONG needs no handling: any byte shows that the peer is alive. Unknown names from later versions are ignored, as in libzmq.
