"""What the workers of a replay have in common: they come, show that they live, take what they have room for, and end it as told.

Who had room when, no fact tells; who took what does. So a worker has room when the story says that it takes something: one of eMQP or
Scale0 asks for it then, and one that need not ask (its dialect has it given more as soon as it answered) is *gated*: it does not read what
it is sent, so it is given nothing, but for the one message that it takes.
"""

from __future__ import annotations

from dragoman.runtime.config import Config
from dragoman.testing.replay.stage import Stage
from dragoman.testing.replay.tables import SECOND_NS, Guest
from dragoman.testing.sim.net import StillWire, Wire

GARBAGE = b"\xff" * 16  # breaks ZMTP wherever it stands


class ReplayWorker:
    """One session of one worker. A verb returns False where its dialect has no word for it."""

    listener = ""
    is_rude = False
    is_gated = False
    minds_stale = False  # what was taken from it still counts for it, until it says a word about it

    def __init__(self, stage: Stage, guest: Guest) -> None:
        self.stage, self.guest = stage, guest
        self.name = guest.name
        self.queues = guest.queues
        self.wire: Wire | None = None
        self.arrivals: list[bytes] = []  # what it was given, in order, each by what its answer must name
        self.is_silent = False
        self.wants_one = False  # it asked for a message that has not come yet
        self.spare = 0  # slots that an open gate keeps from it
        self.beat_ns = int(self.beat_s(stage.plan.config) * SECOND_NS)

    # -- its connection -------------------------------------------------------------------------------------------------

    def come(self) -> None:
        self.wire = StillWire(self.stage, self, self.listener, self.guest.identity)
        session = self.wire.connection.session
        if session is not None:
            session.is_blocked = self.is_gated
        self.arrive()
        self.stage.settle()
        self._next_beat()

    def serve(self, queues: dict[bytes, int]) -> None:
        """From now on these queues."""
        self.queues = queues
        self.arrive()
        self.stage.settle()

    def _next_beat(self) -> None:
        if self.beat_ns:
            self.stage.timeline.after(self.beat_ns, self._beat)

    def _beat(self) -> None:
        if self.is_connected and not self.is_silent:
            self.beat()
            self._next_beat()

    def fall_silent(self, rooms: int) -> None:
        """A last sign of life, with which it asks for all that it will be given still."""
        for _ in range(rooms):
            self.make_room([])
        if not rooms:
            self.beat()
        self.stage.settle()
        self.is_silent = True

    def die(self) -> None:
        if self.wire is not None:
            self.wire.cut()
            self.stage.settle()

    def misbehave(self) -> None:
        self.speaking.send(self.garbage())
        self.stage.settle()

    @property
    def is_connected(self) -> bool:
        return self.wire is not None and self.wire.is_up

    @property
    def speaking(self) -> Wire:
        assert self.wire is not None, f"{self.name} has not come yet"
        return self.wire

    # -- a dialect's own ------------------------------------------------------------------------------------------------

    def beat_s(self, config: Config) -> float:
        """How often it shows that it lives; 0: only when it is asked."""
        raise NotImplementedError

    def arrive(self) -> None:
        raise NotImplementedError

    def beat(self) -> None:
        """Its sign of life."""

    def make_room(self, stale: list[bytes]) -> None:
        """Ask for one more message. `stale`: what was taken from it before it answered."""

    def answer(self, key: bytes) -> bool:
        raise NotImplementedError

    def fail(self, key: bytes) -> bool:
        return False

    def reject(self, key: bytes) -> bool:
        return False

    def give_back(self, key: bytes) -> bool:
        return False

    def confirm(self, key: bytes) -> bool:
        return False

    def part(self) -> bool:
        """Take nothing new from now on."""
        return False

    def garbage(self) -> bytes:
        return GARBAGE

    # -- what it hears --------------------------------------------------------------------------------------------------

    def given(self, key: bytes) -> None:
        self.wants_one = False
        self.arrivals.append(key)

    def on_left(self, wire: Wire, frames: list[bytes]) -> None:
        """It is heard at once."""

    def on_message(self, wire: Wire, frames: list[bytes]) -> None:
        raise NotImplementedError

    def on_lost(self, wire: Wire) -> None:
        """It does not come back: who does is another worker."""
