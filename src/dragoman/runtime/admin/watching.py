"""Admin operations that stream the traffic of the listeners."""

from __future__ import annotations

import asyncio
import time
from typing import Annotated, Any, Final, Protocol, cast

import msgspec

from dragoman.dialects.description import RISP, TEXT
from dragoman.dialects.registry import wire_of
from dragoman.runtime.admin.face import BrokerFace, Say, Stream, not_found
from dragoman.runtime.admin.risp_text import items_of
from dragoman.runtime.admin.tap import SAID, Sight, TapBoard

SWEEP_S: Final = 0.1
Size = Annotated[int, msgspec.Meta(ge=0)]


class WatchedFace(Protocol):
    """What a tap needs from a broker process in addition to `BrokerFace`."""

    taps: TapBoard
    broker: Any


class Tap(Stream):
    """All traffic of the given listeners (none given: all), optionally of one peer or one command. `size_max` truncates frames."""

    listeners: tuple[str, ...] = ()
    peer: str = ""
    command: str = ""
    size_max: Size = 0

    async def stream(self, face: BrokerFace, say: Say) -> object:
        for name in self.listeners:
            if name not in face.listeners:
                raise not_found("open listener", name)
        watched = cast(WatchedFace, face)
        began_s = time.monotonic()

        def watch(sight: Sight) -> None:
            if self._wants(sight):
                say({"t": round(time.monotonic() - began_s, 6), **event_of(sight, self.size_max)})

        watched.taps.watch(watched.broker, watch)
        try:
            say({"kind": "watching", "t": 0.0})
            while True:
                await asyncio.sleep(SWEEP_S)
                watched.taps.sweep(watched.broker)
        finally:
            watched.taps.unwatch(watched.broker, watch)

    def _wants(self, sight: Sight) -> bool:
        if self.listeners and sight.listener not in self.listeners:
            return False
        if self.peer and not sight.peer.startswith(self.peer) and sight.identity != self.peer.encode():
            return False
        return not self.command or (sight.kind == SAID and says(sight, self.command))


def says(sight: Sight, word: str) -> bool:
    """Whether a message contains this command: as a frame of its own, as a string in a JSON frame, as an RQ command, or as a word of a text."""
    if wire_of(sight.listener) == RISP:
        return any(item.name == word.upper() for item in items_of(sight.frames[0])[0])
    wanted = word.encode()
    if wire_of(sight.listener) == TEXT:
        return wanted.upper() in sight.frames[0].upper().split()
    quoted = b'"%s"' % wanted
    return any(
        frame == wanted or frame == wanted.upper() or (frame[:1] == b"{" and quoted in frame) for frame in sight.frames
    )


def event_of(sight: Sight, size_max: int) -> dict[str, object]:
    """An event as JSON: bytes in hex."""
    event: dict[str, object] = {
        "kind": sight.kind,
        "listener": sight.listener,
        "connection": sight.connection_no,
        "peer": sight.peer,
        "to": "broker" if sight.to_broker else "peer",
    }
    if sight.identity:
        event["identity"] = sight.identity.hex()
    if sight.kind == SAID:
        event["sizes"] = [len(frame) for frame in sight.frames]
        event["frames"] = [(frame[:size_max] if size_max else frame).hex() for frame in sight.frames]
    elif sight.socket_types[0]:
        event["socket_types"] = list(sight.socket_types)
    return event
