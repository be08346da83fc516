"""What peers requested, what the broker sent to them, and the obligations that follow, in every dialect."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

from dragoman.model.facts.layout import BOOT_SHIFT
from dragoman_lab.sim.checks.facts import Chronicle, token_in, tokens_in

ANSWERED_REASONS = ("answered", "answered_late")
TIMED_OUT_VALUE = b"TimeoutError"  # an eMQP worker's reply that names no request


@dataclass(slots=True)
class Request:
    """One request, however often it was sent."""

    token: str
    owner: str
    wants_reply: bool = True
    wants_ack: bool = False
    wants_handover: bool = False
    takes_one_answer: bool = False  # a REQ peer
    is_deduped: bool = False
    runs_once: bool = False  # sent again, it must not run again while the broker remembers it
    kept_ns: int = 0  # for so long the broker remembers how it ended
    may_miss_answer: bool = False  # its client cancelled it
    sent: int = 0
    acks: int = 0
    handovers: int = 0
    results: int = 0  # a worker's reply, or the broker's notice that an accepted request will have none
    refusals: int = 0
    deliveries: int = 0
    handings: int = 0  # deliveries to workers that do not confirm them, before the client was sent a failure
    is_failed: bool = False  # the client was sent a failure: nothing more is sent about it, whatever an operator does with the message
    is_corrupted: bool = False  # the record of one of its messages was damaged on disk
    may_be_forged: bool = False  # a rude peer had it, whose random bytes may be a result
    # False once its connection ended, or the broker died, before it ended: replies may be lost from then on.
    is_undisturbed: bool = True

    @property
    def is_obliged(self) -> bool:
        """Whether anything that its acceptance caused has left the broker."""
        return bool(self.acks or self.handovers or self.results or self.deliveries)


@dataclass
class Ledger:
    requests: dict[str, Request] = field(default_factory=dict)
    open_by_owner: dict[str, set[str]] = field(default_factory=dict)
    bodies: dict[str, bytes] = field(default_factory=dict)  # by token, where a worker must be given exactly these bytes

    def sent(self, request: Request) -> None:
        known = self.requests.setdefault(request.token, request)
        known.sent += 1
        self.open_by_owner.setdefault(request.owner, set()).add(request.token)

    def disturbed(self, owner: str) -> None:
        """The owner's connection ended: from now on replies may not reach it."""
        for token in self.open_by_owner.pop(owner, ()):
            self.requests[token].is_undisturbed = False

    def all_disturbed(self) -> None:
        for owner in list(self.open_by_owner):
            self.disturbed(owner)

    def given(self, body: bytes, *, confirms: bool = False) -> str:
        """Record that a worker was given a job; `confirms`: it confirms delivery before the client is notified."""
        token = token_in(body)
        request = self.requests.get(token)
        if request is not None:
            assert self.bodies.get(token, b"") in body, f"{token} was given to a worker as {body!r}"
            request.deliveries += 1
            request.handings += not confirms and not request.is_failed
        return token

    def given_to_rude(self, data: bytes) -> None:
        """Record that a peer that replies with nonsense has the job."""
        request = self.requests.get(token_in(data))
        if request is not None:
            request.may_be_forged = True

    def own(self, owner: str, token: str | None) -> Request:
        """The request that a reply is for; it must be one of the receiver's own."""
        request = self.requests.get(token or "")
        assert request is not None, f"{owner} got an answer to a request that it never sent"
        assert request.owner == owner, f"{owner} got an answer meant for {request.owner}"
        return request

    def acked(self, owner: str, token: str | None) -> None:
        self.own(owner, token).acks += 1

    def handed_over(self, owner: str, token: str | None) -> None:
        self.own(owner, token).handovers += 1

    def answered(self, owner: str, token: str | None, value: bytes) -> None:
        """Record a worker's reply and check that it answers this request."""
        request = self.own(owner, token)
        request.results += 1
        found = tokens_in(value)
        may_be_empty = TIMED_OUT_VALUE in value or request.may_be_forged
        assert found == {request.token} or (not found and may_be_empty), f"{request.token} was answered with {value!r}"

    def failed(self, owner: str, token: str | None, value: bytes) -> None:
        """Record a notice from the broker or the worker that an accepted request has no result."""
        self._ends_without(self.own(owner, token), value).results += 1

    def refused(self, owner: str, token: str | None, value: bytes) -> None:
        """Record a notice that no reply will come; in this dialect it is unknown whether the request was accepted."""
        self._ends_without(self.own(owner, token), value).refusals += 1

    def _ends_without(self, request: Request, value: bytes) -> Request:
        request.is_failed = True
        assert tokens_in(value) <= {request.token}, f"{request.token} failed with {value!r}"
        return request

    def check_counts(self) -> None:
        """Check that each reply and acknowledgement was sent at most once per request sent."""
        for r in self.requests.values():
            assert r.acks <= r.sent, f"{r.token}: sent {r.sent}, acknowledged {r.acks} times"
            assert r.handovers <= r.sent, f"{r.token}: sent {r.sent}, handed over {r.handovers} times"
            assert r.results + r.refusals <= r.sent, (
                f"{r.token}: sent {r.sent}, answered {r.results} + {r.refusals} times"
            )
            assert not r.results or r.wants_reply or r.takes_one_answer, f"{r.token}: a result that nobody asked for"
            if r.takes_one_answer:
                answers = r.acks + r.handovers + r.results + r.refusals
                assert answers <= r.sent, f"{r.token}: a REQ peer got {answers} answers to {r.sent} requests"

    def check_kept(self, chronicle: Chronicle) -> None:
        """Check that accepted requests are kept: if an acceptance caused any output, the acceptance is among the facts."""
        for r in self.requests.values():
            numbers = chronicle.by_token.get(r.token, [])
            accepted = len(numbers)
            assert accepted <= r.sent, f"{r.token} was sent {r.sent} times and accepted {accepted} times"
            if r.runs_once and not r.is_corrupted:
                self._check_runs(r, numbers, chronicle)
            if r.is_obliged and not (accepted or r.is_deduped):
                raise AssertionError(f"{r.token} was promised and is lost: {r}")

    def _check_runs(self, r: Request, numbers: list[int], chronicle: Chronicle) -> None:
        """Check that it was accepted again only once its outcome was forgotten. Of two messages the facts say when the broker read the second:
        with a slow disk that is long after its client sent it."""
        for earlier, later in pairwise(numbers):
            life = chronicle.open.get(later) or chronicle.closed[later]
            is_known = chronicle.remembers(earlier, life.accepted_ns, later >> BOOT_SHIFT, r.kept_ns)
            assert not is_known, (
                f"{r.token} was sent {r.sent} times and runs again as {later}, while {earlier} is remembered"
            )

    def forgive(self, chronicle: Chronicle) -> None:
        """After a power loss under durability `os`: unsynced facts may be lost, and their effects may happen again."""
        for r in self.requests.values():
            settled = sum(number in chronicle.closed for number in chronicle.by_token.get(r.token, ()))
            r.acks = r.deliveries = r.handovers = r.handings = 0
            # One that was sent twice may have one end that is kept and one that is lost: the lost one is answered again.
            r.results = min(r.results, settled)
            r.refusals = min(r.refusals, settled - r.results)
            r.is_failed = r.is_failed and settled > 0

    def check_end(self, chronicle: Chronicle) -> None:
        """Check at the end, when all failures are over: every undisturbed client got everything it requested."""
        for r in self.requests.values():
            numbers = chronicle.by_token.get(r.token, [])
            for number in numbers:
                assert number not in chronicle.open, f"{r.token} is {chronicle.open[number].state} for ever"
            if r.is_undisturbed and r.sent == 1 and len(numbers) == 1 and not r.is_corrupted:
                self._check_answers(r, chronicle.closed[numbers[0]].reason)

    def _check_answers(self, r: Request, reason: str) -> None:
        if r.wants_reply and not r.may_miss_answer:
            assert r.results + r.refusals == 1, f"{r.token} waits for ever for its result ({reason}): {r}"
        if r.wants_ack and not (r.takes_one_answer and r.wants_reply):
            assert r.acks == 1, f"{r.token} waits for ever for its ACK: {r}"
        if r.wants_handover and (r.handings or (reason in ANSWERED_REASONS and not r.is_failed)):
            assert r.handovers == 1, f"{r.token} was never notified that a worker has it ({reason}): {r}"
