"""A message: an opaque body, what its client asked for, and where it is in its life."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

if TYPE_CHECKING:
    from dragoman.model.peer import Peer

# `Message.where`: which line of its queue holds an entry for it. A line's entry that no longer agrees is stale and skipped.
NOWHERE: Final = 0
IN_FRESH: Final = 1
IN_RETURNED: Final = 2
IN_DELAYED: Final = 3


@final
class Message:
    """One message. A dialect fills in what the client said; from then on only the core's mutators change it."""

    def __init__(self, dialect: int, queue: bytes, client_id: bytes, body: bytes) -> None:
        self.dialect = dialect
        self.queue = queue
        self.client_id = client_id
        self.body = body
        self.body_size: int = len(body)
        self.headers: bytes = b""
        self.flags: int = 0
        self.priority: int = 0
        # More tries after a failed one; -1: the client did not say (see core/retries).
        self.retries_left: int = -1
        self.timeout_ns: int = 0  # bound on one attempt; 0: none
        self.expires_ns: int = 0  # wall instant after which it is not worth delivering; 0: never
        self.due_ns: int = 0  # not before this instant; 0: at once
        self.dedupe: bytes = b""
        self.schedule_no: int = 0  # the schedule that made it; 0: a client did

        self.client: Peer | None = None
        self.address: bytes = b""  # listener and identity: finds the client again after a restart

        self.number: int = 0
        self.queue_no: int = 0
        self.wire_id: bytes = b""  # its id towards workers, unique among the open ones
        self.place: int = 0  # where the journal keeps its record; 0: nowhere
        self.is_loaded: bool = True  # False: the body is on disk only
        self.fitness: int = -1  # a picky worker's judgement of the body, kept: -1 unknown, 0 unfit, 1 fit

        self.state: int = 0
        self.where: int = NOWHERE
        self.line: object = None  # the line that holds it while `where` is IN_FRESH or IN_RETURNED
        self.attempt: int = 0
        self.worker: Peer | None = None
        self.lease_until_ns: int = 0  # 0: this attempt has no time bound
        self.accepted_ns: int = 0
        self.first_leased_ns: int = 0
        self.leased_ns: int = 0
        self.delivered_ns: int = 0
        self.last_reason: int = 0
        self.died_with: list[int] | None = None  # the distinct workers that died holding it
        self.is_answerable: bool = True  # False once the client has had its one answer
