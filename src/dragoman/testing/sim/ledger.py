"""What peers asked, what left the broker for them, and what that obliges the broker to.

A request's id is also in its body, a worker's value repeats it, and so an answer tells which request it belongs to.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from dragoman.model.words import REFUSAL_CODES
from dragoman.testing.sim.facts import Chronicle

if TYPE_CHECKING:
    from dragoman.testing.sim.net import Wire

REFUSALS = frozenset(REFUSAL_CODES)


@dataclass(slots=True)
class Request:
    """One request, as often as it was sent."""

    rid: str
    owner: str
    wants_reply: bool
    wants_ack: bool
    is_req: bool
    is_deduped: bool
    sent: int = 0
    acks: int = 0
    handovers: int = 0
    results: int = 0
    refusals: int = 0
    deliveries: int = 0
    # False once its connection ended, or the broker died, while it was under way: answers may be lost from then on.
    is_undisturbed: bool = True

    @property
    def is_obliged(self) -> bool:
        """Something that its acceptance caused has left the broker."""
        return bool(self.acks or self.handovers or self.results or self.deliveries)


@dataclass
class Ledger:
    requests: dict[str, Request] = field(default_factory=dict)
    open_by_owner: dict[str, set[str]] = field(default_factory=dict)
    news: int = 0

    def sent(self, request: Request) -> None:
        known = self.requests.setdefault(request.rid, request)
        known.sent += 1
        self.open_by_owner.setdefault(request.owner, set()).add(request.rid)

    def disturbed(self, owner: str) -> None:
        """The owner's connection ended: from here on its answers may miss it."""
        for rid in self.open_by_owner.pop(owner, ()):
            self.requests[rid].is_undisturbed = False

    def all_disturbed(self) -> None:
        for owner in list(self.open_by_owner):
            self.disturbed(owner)

    # -- what leaves ----------------------------------------------------------------------------------------------------

    def on_left(self, wire: Wire, frames: list[bytes]) -> None:
        if wire.socket_type == b"SUB":
            self.news += 1
            return
        if wire.far.is_rude:
            return
        assert frames[:2] == [b"", b"eMQP/1.0"], frames
        command = frames[2]
        if command == b"REQUEST":
            token = token_of(frames[6])
            if token in self.requests:
                self.requests[token].deliveries += 1
        elif command == b"ACK" and wire.listener == "emqp.client":
            self._own(wire, frames[4]).acks += 1
        elif command == b"REPLY" and wire.listener == "emqp.client" and len(frames) == 5:
            self._own(wire, frames[4]).handovers += 1
        elif command == b"REPLY" and wire.listener == "emqp.client":
            self._answered(self._own(wire, frames[5]), frames[4])

    def _own(self, wire: Wire, rid: bytes) -> Request:
        request = self.requests.get(rid.decode())
        assert request is not None, f"an answer to {rid!r}, which nobody asked"
        assert request.owner == wire.far.name, f"{wire.far.name} got an answer meant for {request.owner}"
        return request

    def _answered(self, request: Request, value: bytes) -> None:
        found = json.loads(value)
        error = found.get("error")
        if error is not None and error["type"] in REFUSALS:
            request.refusals += 1
            return
        request.results += 1
        if error is not None and error["type"] != "JobFailed":
            return  # the broker's own word: expired, cancelled, timed out …
        said = error["message"] if error is not None else found["value"]
        assert said in (request.rid, "TimeoutError"), f"{request.rid} was answered with {said!r}"

    # -- what must hold -------------------------------------------------------------------------------------------------

    def check_counts(self) -> None:
        """At most once, whatever happened."""
        for r in self.requests.values():
            assert r.acks <= r.sent, f"{r.rid}: sent {r.sent}, acknowledged {r.acks} times"
            assert r.handovers <= r.sent, f"{r.rid}: sent {r.sent}, handed over {r.handovers} times"
            assert r.results + r.refusals <= r.sent, (
                f"{r.rid}: sent {r.sent}, answered {r.results} + {r.refusals} times"
            )
            assert not r.results or r.wants_reply or r.is_req, f"{r.rid}: a result that nobody asked for"
            if r.is_req:
                answers = r.acks + r.handovers + r.results + r.refusals
                assert answers <= r.sent, f"{r.rid}: a REQ peer got {answers} answers to {r.sent} requests"

    def check_kept(self, chronicle: Chronicle) -> None:
        """Accepted is kept: whatever an acceptance caused to leave, the acceptance is among the facts."""
        for r in self.requests.values():
            accepted = len(chronicle.by_client_id.get(r.rid, ()))
            assert accepted <= r.sent, f"{r.rid} was sent {r.sent} times and accepted {accepted} times"
            if r.is_obliged and not (accepted or r.is_deduped):
                raise AssertionError(f"{r.rid} was promised and is lost: {r}")

    def forgive(self, chronicle: Chronicle) -> None:
        """Power was lost under durability `os`: what was not synced may be gone, and may happen again."""
        for r in self.requests.values():
            settled = [no for no in chronicle.by_client_id.get(r.rid, ()) if no in chronicle.closed]
            r.acks = r.deliveries = r.handovers = 0
            if not settled:
                r.results = 0

    def check_end(self, chronicle: Chronicle) -> None:
        """All is healed and quiet: whoever was there all the time got everything it asked for."""
        for r in self.requests.values():
            numbers = chronicle.by_client_id.get(r.rid, [])
            for number in numbers:
                assert number not in chronicle.open, f"{r.rid} is {chronicle.open[number].state} for ever"
            if r.is_undisturbed and r.sent == 1 and len(numbers) == 1:
                self._check_answers(r, chronicle.closed.get(numbers[0]) is not None)

    def _check_answers(self, r: Request, is_closed: bool) -> None:
        if r.wants_reply and is_closed:
            assert r.results == 1, f"{r.rid} waits for ever for its result: {r}"
        if r.wants_ack and not (r.is_req and r.wants_reply):
            assert r.acks == 1, f"{r.rid} waits for ever for its ACK: {r}"
        if r.deliveries and not r.is_req:
            assert r.handovers == 1, f"{r.rid} was never told that a worker has it: {r}"


def token_of(body: bytes) -> str:
    """The request id in a body, or the name of the schedule that made it."""
    text = body.removeprefix(b"\xff\xfe ").decode()
    return str(json.loads(text)[1]["token"])
