"""One worker connection, which reconnects when it is lost.

    connect ──► serve ──► accepted by the broker ──► jobs and answers ──► lost, silent or closed by the broker ──► connect …

Where answers do not survive their connection, an answer whose connection is lost is dropped: the broker has given the job to another worker
by then. Where they do (eMQP), it is sent on the next connection. A broker that closes its worker connections may still want the answers to
running jobs (rq, scale0): the old connection stays open until they are sent.
"""

from __future__ import annotations

import logging
from typing import Final, Protocol

from dragoman.client.address import WORKER, Address
from dragoman.client.connection import ReconnectingConnection, new_identity, new_message_ids
from dragoman.client.link import Link
from dragoman.client.worker import WorkerSettings
from dragoman.dialects.endpoint import WorkerEndpoint

SILENT_S: Final = 5.0  # a broker that has not sent a byte by then is given up

log = logging.getLogger("dragoman.worker")


class ConnectionLease:
    """The jobs of one connection that have not ended."""

    __slots__ = ("connection", "endpoint", "is_leaving", "is_lost", "link", "runs")

    def __init__(self, connection: WorkerConnection, link: Link[WorkerEndpoint]) -> None:
        self.connection = connection
        self.endpoint = link.endpoint
        self.link = link
        self.runs = 0  # jobs received on it that have not ended
        self.is_leaving = False
        self.is_lost = False


class ConnectionOwner(Protocol):
    """The methods of its session that a WorkerConnection calls."""

    def begin(self, lease: ConnectionLease, jobs: list[tuple[bytes, float, bytes]]) -> None:
        """Start jobs that were received: (request id, timeout in seconds or 0, body)."""

    def withdraw(self, lease: ConnectionLease, request_ids: list[bytes]) -> None:
        """The broker no longer wants answers to these."""

    def free_slots(self) -> int:
        """How many jobs a new connection may accept."""

    def connection_changed(self) -> None:
        """A connection began or stopped serving."""


class WorkerConnection:
    """Maintains one worker connection for its owner."""

    def __init__(
        self, address: Address, settings: WorkerSettings, queues: list[tuple[int, bytes]], owner: ConnectionOwner
    ) -> None:
        self.is_serving = False
        self.is_dismissed = False
        self._profile = address.profile
        self._settings = settings
        self._queues = queues
        self._owner = owner
        self._ids = new_message_ids()
        self._program = new_identity()  # the same on every connection, so that a dismissal by the operator outlasts one
        self._unsent: list[tuple[bytes, bytes]] = []  # answers that wait for a connection; at most one per slot
        self._lease: ConnectionLease | None = None
        self._leases: dict[Link[WorkerEndpoint], ConnectionLease] = {}  # of all connections that are not lost
        self._is_leaving = False
        self._connection = ReconnectingConnection(address, WORKER, self._make, self._up, self._down)

    def start(self) -> None:
        self._connection.start()

    @property
    def problem(self) -> str:
        return self._connection.problem

    # -- answers --------------------------------------------------------------------------------------------------------

    def answer(self, lease: ConnectionLease, request_id: bytes, value: bytes) -> bool:
        """Send an answer; False when it is lost with its connection."""
        if lease.is_lost:
            if not self._profile.answers_survive:
                return False
            # `is_serving` may still refer to the lost connection.
            if not self.is_serving or self._lease is None or self._lease.is_lost:
                self._unsent.append((request_id, value))
                return True
            lease = self._lease
        lease.endpoint.reply(request_id, value)
        lease.link.push()
        return True

    def finish(self, lease: ConnectionLease, request_id: bytes, value: bytes | None) -> bool:
        """Answer a job, unless it is already answered (None), and free its slot; False when the answer is lost with its connection."""
        lease.runs -= 1
        if lease.is_lost:
            return self._finish_lost(lease, request_id, value)
        endpoint, link = lease.endpoint, lease.link
        if value is not None:
            endpoint.reply(request_id, value)
        if not lease.is_leaving and not self._is_leaving:
            endpoint.ready(1)
        if not link.is_flush_due:
            link.push()
        if lease.is_leaving and lease.runs <= 0:
            link.close()
        return True

    def _finish_lost(self, lease: ConnectionLease, request_id: bytes, value: bytes | None) -> bool:
        is_kept = value is None or self.answer(lease, request_id, value)
        carrier = self._lease if self._profile.answers_survive else None
        if carrier is not None and not carrier.is_lost and not self._is_leaving:
            carrier.endpoint.ready(1)
            carrier.link.push()
        return is_kept

    # -- the connection -------------------------------------------------------------------------------------------------

    def _make(self) -> Link[WorkerEndpoint]:
        # A new identity: the broker must not confuse this connection with the previous one.
        setup = self._connection.new_setup(new_identity(), self._ids)
        setup.program = self._program
        setup.heartbeat_s = self._settings.heartbeat_s
        setup.broker_lost_s = self._settings.broker_lost_s
        endpoint = self._profile.endpoints().worker(setup)
        if not self._is_leaving:
            endpoint.serve(self._queues, self._owner.free_slots())
        link = Link(endpoint, self._receive, self._over, self._gone, self._readied, self._profile.hello)
        self._lease = self._leases[link] = ConnectionLease(self, link)
        return link

    def _up(self, link: Link[WorkerEndpoint]) -> None:
        link.loop.call_later(SILENT_S, self._check, link)

    def _check(self, link: Link[WorkerEndpoint]) -> None:
        if not link.has_received and not link.lost.is_set():
            link.abort(f"the broker sent nothing for {SILENT_S:g} s")

    def _readied(self, link: Link[WorkerEndpoint]) -> None:
        self.is_serving = True
        # Before the broker learns of free slots: it would assign these jobs to another worker.
        for request_id, value in self._unsent:
            link.endpoint.reply(request_id, value)
        self._unsent.clear()
        if self._is_leaving:
            self._leave(self._leases[link])
        else:
            self._owner.connection_changed()

    def _down(self) -> None:
        if self.is_serving:
            self.is_serving = False
            if not self._is_leaving:
                log.warning("lost the broker: %s", self._connection.problem)
            self._owner.connection_changed()

    def _receive(self, link: Link[WorkerEndpoint], data: bytes) -> None:
        endpoint = link.endpoint
        jobs = endpoint.receive(data)
        if jobs:
            self._owner.begin(self._leases[link], jobs)
        if endpoint.cancelled:
            cancelled, endpoint.cancelled = endpoint.cancelled, []
            self._owner.withdraw(self._leases[link], cancelled)
        if endpoint.is_dismissed != self.is_dismissed:
            self._tell_dismissed(endpoint.is_dismissed)

    def _tell_dismissed(self, is_dismissed: bool) -> None:
        self.is_dismissed = is_dismissed
        if is_dismissed:
            log.warning("dismissed by the operator: what runs is finished, nothing new comes until we are admitted")
        elif self.is_serving:
            log.info("admitted by the operator")

    def _over(self, link: Link[WorkerEndpoint], is_silent: bool) -> None:
        lease = self._leases[link]
        if is_silent:
            link.abort(link.reason)
        elif self._profile.stays and lease.runs > 0:
            lease.is_leaving = True
            link.left.set()
        else:
            # Jobs that end from now on are answered over the next connection, whether or not this one can still send what it has buffered.
            lease.is_lost = self._profile.answers_survive
            link.leave()

    def _gone(self, link: Link[WorkerEndpoint]) -> None:
        self._leases.pop(link).is_lost = True

    # -- the end --------------------------------------------------------------------------------------------------------

    def _leave(self, lease: ConnectionLease) -> None:
        # Where answers survive, the connection stays open: the answer to a job of an earlier connection may have to be sent on it.
        lease.is_leaving = not self._profile.answers_survive
        lease.endpoint.goodbye()
        lease.link.push()
        if lease.runs <= 0 and self._profile.one_job:
            lease.link.close()  # the dialect has no goodbye: the next job would arrive

    def leave(self) -> None:
        """Accept no new jobs; running jobs are still answered, where their connection is open or answers survive."""
        self._is_leaving = True
        if not self._profile.answers_survive:
            self._connection.end_with_link()
        if self._lease is not None and self.is_serving:
            self._leave(self._lease)

    async def close(self) -> None:
        for lease in list(self._leases.values()):
            if lease is not self._lease:
                lease.link.close()
        await self._connection.close()
