"""The client's end of Scale0: tasks to bytes, the broker's bytes to outcomes. No sockets, no clock.

    CONNECT ──► CONFIG        TASK ──► TASKREPLY, or ERROR with its id

A client may ask at once: the broker takes a TASK without a configuration.
"""

from __future__ import annotations

from typing import Final, final

from dragoman.dialects.scale0.accord import Accord
from dragoman.dialects.scale0.complaints import REFUSED_WORDS
from dragoman.dialects.scale0.headers import read_header, text_of, token_of
from dragoman.dialects.scale0.words import ERROR, MOVED, NOT_UNDERSTOOD, TASK, TASKREPLY
from dragoman.dialects.sides import ANSWERED, FAILED, REFUSED, ClientSide, Wish
from dragoman.wire.zmtp.frames import write_message

ABSENT: Final = b""


@final
class Scale0ClientSide(ClientSide):
    """One client connection. `seeks`: this is not the broker we wanted, so ask it which to use."""

    def __init__(self, identity: bytes, message_size_max: int, seeks: bool = False, wall_s: float = 0.0) -> None:
        super().__init__()
        self.accord = Accord(self, identity, message_size_max, seeks, wall_s)

    def opening(self) -> bytes:
        return self.accord.zmtp.greeting()

    def receive(self, data: bytes) -> list[tuple[int, bytes, bytes]]:
        said: list[tuple[int, bytes, bytes]] = []
        accord = self.accord
        for frames in accord.zmtp.receive(data):
            if len(frames) >= 2:
                self.hear(frames, said)
        accord.opened()
        if accord.zmtp.is_ready and not accord.seeks:
            self.is_ready = True
        return said

    def hear(self, frames: list[bytes], said: list[tuple[int, bytes, bytes]]) -> None:
        command = frames[0]
        h = read_header(frames[1])
        if h.problem:
            return  # no broker says so
        if command == TASKREPLY:
            said.append((ANSWERED, text_of(h.id_token()), frames[2] if len(frames) > 2 else ABSENT))
        elif command == ERROR and h.id_token():
            is_refusal = h.code == MOVED or h.code == NOT_UNDERSTOOD or h.reason.partition(b":")[0] in REFUSED_WORDS
            said.append((REFUSED if is_refusal else FAILED, text_of(h.id_token()), h.reason))
        else:
            self.accord.hear(command, h)

    def request(self, call_id: bytes, wish: Wish, body: bytes) -> None:
        accord = self.accord
        header = b'{"id":%s,"service":%s%s}' % (token_of(call_id), token_of(wish.queue), accord.stamp())
        write_message(accord.out, [TASK, header, body], False)

    def cancel(self, call_id: bytes) -> None:
        """Scale0 has no word for it."""

    def publish(self, topic: bytes, body: bytes) -> None:
        raise AssertionError("scale0 publishes nothing")

    def beat(self, now_s: float) -> None:
        self.accord.beat(now_s)
        if self.accord.is_ping_due():
            self.accord.ping(b"")

    def take_out(self) -> bytes:
        return self.accord.take_out()
