"""The numbers an operator may change that the core decides by. docs/reference/config.md explains each."""

from __future__ import annotations

from typing import Final, final

from dragoman.limits import NO_BOUND
from dragoman.model.units import SECOND_NS

CATCH_UP_NONE: Final = 0
CATCH_UP_ONE: Final = 1
CATCH_UP_ALL: Final = 2


@final
class CoreSettings:
    """Defaults as in the configuration; the runtime overwrites what the operator set."""

    def __init__(self) -> None:
        self.head_max: int = 100_000  # messages of one line kept in memory; beyond, they live on disk
        self.queue_messages_max: int = 0  # waiting messages per queue; 0: no limit
        self.backoff_initial_ns: int = SECOND_NS
        self.backoff_max_ns: int = 60 * SECOND_NS
        self.quarantine_after: int = 3  # distinct workers that died holding a message
        self.starve_turns: int = 10  # a waiting queue of low weight is served at least once in so many turns
        self.timeout_ns: int = 0  # bound on an attempt where the client gave none; 0: none
        self.dedupe_window_ns: int = 600 * SECOND_NS
        self.dedupe_keys_max: int = 100_000  # per queue
        self.catch_up: int = CATCH_UP_ONE
        # Shares of the memory budget (runtime/memory); without one there is no bound.
        self.bodies_max: int = (
            NO_BOUND  # bytes of bodies in memory: beyond, those that need not be there are on disk only
        )
        self.large_bodies_max: int = NO_BOUND  # the same for bodies that are large: they leave memory first
        self.objects_max: int = NO_BOUND  # messages in memory: beyond, waiting ones are 40 bytes each
        self.messages_size_max: int = NO_BOUND  # what all messages may take of memory: beyond, new ones are refused
        self.forget_ns: int = 0  # an empty, unserved queue unused for so long is forgotten; 0: never
        self.timezone: str = "UTC"
        self.dismissed_ns: int = (
            86_400 * SECOND_NS
        )  # how long a dismissed identity is kept out after its connection ended
