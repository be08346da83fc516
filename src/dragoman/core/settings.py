"""The settings that the core's decisions depend on. docs/reference/config.md explains each."""

from __future__ import annotations

from typing import Final, final

from dragoman.limits import LOAD_STEP_SIZE, NO_BOUND
from dragoman.model.units import SECOND_NS

CATCH_UP_NONE: Final = 0
CATCH_UP_ONE: Final = 1
CATCH_UP_ALL: Final = 2


@final
class CoreSettings:
    """The core's settings, with their defaults. The configuration takes its defaults from here; the runtime sets what the operator changed."""

    def __init__(self) -> None:
        self.head_max: int = 100_000  # messages of one lane kept in memory; the rest are on disk only
        self.queue_messages_max: int = 0  # waiting and delayed messages per queue; 0: no limit
        self.backoff_initial_ns: int = SECOND_NS
        self.backoff_max_ns: int = 60 * SECOND_NS
        self.quarantine_after: int = 3  # distinct workers that died holding a message
        self.starve_turns: int = 10  # a non-empty queue is served next after being passed over this often
        self.timeout_ns: int = 0  # timeout of an attempt if neither message nor worker sets one; 0: none
        self.dedupe_window_ns: int = 600 * SECOND_NS
        self.dedupe_keys_max: int = 100_000  # per queue
        self.catch_up: int = CATCH_UP_ONE
        # Shares of the memory budget (runtime/memory); unlimited without a budget.
        # Bytes of bodies in memory; above it, bodies that are not needed now are on disk only.
        self.bodies_max: int = NO_BOUND
        self.large_bodies_max: int = NO_BOUND  # the same for large bodies, which are unloaded first
        self.objects_max: int = NO_BOUND  # message objects in memory; above it, waiting ones take 40 bytes each
        self.load_step_size: int = LOAD_STEP_SIZE  # bytes of bodies read back in one step; a larger one takes several
        self.messages_size_max: int = NO_BOUND  # bytes of memory of all messages; above it, new ones are refused
        # An empty queue without workers that was not used for this long is forgotten; 0: never.
        self.forget_ns: int = 604_800 * SECOND_NS
        self.timezone: str = "UTC"
        # How long a dismissal outlasts the connection of a worker known by identity.
        self.dismissed_ns: int = 86_400 * SECOND_NS
