"""An independent reading of the facts, without the core's code: which fact may follow which, and what is open at the end.

Each request has a token in its body and its reply repeats it, in every dialect: so a reply identifies its request by itself, and so does a
message among the facts.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from dragoman.journal.format import Block
from dragoman.model.facts.decode import decode_block

Fact = dict[str, Any]
WAITING, LEASED, QUARANTINED = "waiting", "leased", "quarantined"
TOKEN = re.compile(rb"(?<![a-z])[a-z]+[0-9]*~[0-9]{4}")
MARK = b"~"
BEFORE_MARK, BEHIND_MARK = 8, 5  # bytes of a token on either side


def token(owner: str, count: int) -> str:
    return f"{owner}~{count:04d}"


def body_of(token: str, fill_size: int) -> bytes:
    """A job that the original's eMQP workers can parse, and all other workers, too."""
    return json.dumps(["run", {"token": token, "fill": "x" * fill_size}]).encode()


def tokens_in(data: bytes) -> set[str]:
    """The tokens in the data. Searches only around the mark: bodies are large, and most of their bytes are filling."""
    found = set()
    at = data.find(MARK)
    while at >= 0:
        match = TOKEN.search(data, max(at - BEFORE_MARK, 0), at + BEHIND_MARK)
        if match is not None:
            found.add(match[0].decode())
        at = data.find(MARK, at + 1)
    return found


def token_in(data: bytes) -> str:
    """The token in a body; empty for messages outside the ledger (a schedule's job, a rude peer's)."""
    return min(tokens_in(data), default="")


@dataclass(slots=True)
class CheckedMessage:
    """One message according to the facts."""

    state: str = WAITING
    worker_no: int = 0
    attempt: int = 0
    reason: str = ""
    accepted_ns: int = 0
    ended_ns: int = 0  # when its client was sent an outcome: at the first quarantine, or at the close
    ended_boot_no: int = 0


@dataclass
class Chronicle:
    """Every fact since the first start, in order."""

    blocks: list[Block] = field(default_factory=list)
    open: dict[int, CheckedMessage] = field(default_factory=dict)
    closed: dict[int, CheckedMessage] = field(default_factory=dict)
    by_token: dict[str, list[int]] = field(default_factory=dict)
    workers: set[int] = field(default_factory=set)
    broken: set[int] = field(default_factory=set)  # leased when the broker started, and not yet released by a fact
    damaged: set[int] = field(default_factory=set)  # quarantined because their records could not be read
    fired: set[tuple[int, int]] = field(default_factory=set)
    last_fired: dict[int, int] = field(default_factory=dict)  # schedule → its last due instant
    was_set_back: bool = False  # the wall clock, at least once
    paused: set[int] = field(default_factory=set)
    draining: set[int] = field(default_factory=set)
    keys: dict[tuple[int, str], list[int]] = field(default_factory=dict)
    tally: Counter[str] = field(default_factory=Counter)
    boot_no: int = 0
    next_lsn: int = 1
    last_time_ns: int = 0  # of the newest block with facts
    _block_ns: int = 0  # of the block that is being read

    def append(self, records: bytes, count: int, time_ns: int) -> None:
        # A power loss may drop a block without facts (carried records), unnoticed here: its time is not a lower bound.
        assert time_ns >= self.last_time_ns, "time never runs backwards over blocks"
        self.last_time_ns = time_ns if count else self.last_time_ns
        self.blocks.append(Block(0, self.next_lsn, count, time_ns, records))
        self.next_lsn += count
        self._block_ns = time_ns
        self._read(records, count)

    def digest(self) -> str:
        """A hash of all blocks, the same for the same run."""
        digest = hashlib.sha256()
        for block in self.blocks:
            digest.update(b"%d %d " % (block.time_ns, block.count))
            digest.update(block.records)
        return digest.hexdigest()

    def cut(self, next_lsn: int) -> Chronicle:
        """A copy without the facts from `next_lsn` on, which a crash has lost."""
        shorter = Chronicle(was_set_back=self.was_set_back)
        for block in self.blocks:
            if block.first_lsn < next_lsn:
                assert block.first_lsn + block.count <= next_lsn, "a block is kept whole or not at all"
                shorter.append(block.records, block.count, block.time_ns)
        return shorter

    def _read(self, records: bytes, count: int) -> None:
        found = 0
        for fact in decode_block(records, with_body=True):
            name = str(fact["fact"])
            self.tally[f"{name} {fact['reason']}" if "reason" in fact else name] += 1
            if name == "closed" and fact["reason"] in ("answered", "answered_late"):
                self.tally[f"crossed {fact['dialect']} to {fact['worker_dialect']}"] += 1
            if name in ("checkpoint", "carried"):
                continue
            found += 1
            handler = getattr(self, f"_on_{name}", None)
            if handler is not None:
                handler(fact)
        assert found == count, "a block counts its facts"
        assert not self.broken, f"a start released {len(self.broken)} leases without saying so"
        for number, life in self.open.items():
            assert life.state != LEASED or life.worker_no in self.workers, (
                f"{number} is leased to a worker that is gone"
            )

    def _on_started(self, fact: Fact) -> None:
        assert fact["boot_no"] == self.boot_no + 1, "each boot has the next number"
        self.boot_no += 1
        self.workers.clear()
        for number, life in self.open.items():
            if life.state == LEASED:
                life.state = WAITING
                self.broken.add(number)

    def _on_worker_joined(self, fact: Fact) -> None:
        self.workers.add(fact["worker_no"])

    def _on_worker_left(self, fact: Fact) -> None:
        self.workers.discard(fact["worker_no"])

    def _on_accepted(self, fact: Fact) -> None:
        number = fact["message_no"]
        assert number not in self.open, f"{number} is accepted twice"
        assert number not in self.closed, f"{number} is accepted after its end"
        assert fact["queue_no"] not in self.draining, f"{number} is accepted by a queue that drains"
        token = token_in(fact["body"])
        self.open[number] = CheckedMessage(accepted_ns=self._block_ns)
        if fact["dedupe"]:
            self.keys.setdefault((fact["queue_no"], fact["dedupe"]), []).append(number)
        if token and not fact["schedule_no"]:
            self.by_token.setdefault(token, []).append(number)

    def _on_leased(self, fact: Fact) -> None:
        life = self._moved(fact, WAITING)
        life.state, life.worker_no = LEASED, fact["worker_no"]
        life.attempt += 1
        assert fact["attempt"] == life.attempt, "attempts are counted without gaps"

    def _on_delivered(self, fact: Fact) -> None:
        life = self._moved(fact, LEASED)
        assert fact["worker_no"] == life.worker_no, "a delivery is confirmed by the holder"

    def _on_released(self, fact: Fact) -> None:
        if fact["reason"] == "broker_started":
            number = fact["message_no"]
            assert number in self.broken, f"a start released {number}, which was not leased"
            self.broken.remove(number)
            assert fact["worker_no"] == self.open[number].worker_no, "a lease is released by its holder"
            return
        life = self._moved(fact, LEASED)
        assert fact["worker_no"] == life.worker_no, "a lease is released by its holder"
        life.state = WAITING

    def _on_quarantined(self, fact: Fact) -> None:
        is_damaged = fact["reason"] == "damaged"
        life = self._moved(fact, WAITING if is_damaged else LEASED)
        life.state = QUARANTINED
        self._ended(life)
        if is_damaged:
            self.damaged.add(fact["message_no"])

    def _on_requeued(self, fact: Fact) -> None:
        self._moved(fact, QUARANTINED, WAITING).state = WAITING

    def _on_closed(self, fact: Fact) -> None:
        number = fact["message_no"]
        life = self._moved(fact, WAITING, LEASED, QUARANTINED)
        del self.open[number]
        life.state, life.reason = fact["outcome"], fact["reason"]
        self._ended(life)
        self.closed[number] = life

    def _ended(self, life: CheckedMessage) -> None:
        if not life.ended_boot_no:
            life.ended_ns, life.ended_boot_no = self._block_ns, self.boot_no

    def remembers(self, number: int, at_ns: int, boot_no: int, kept_ns: int) -> bool:
        """Whether a boot still had this message at an instant: open, or its outcome, which it keeps for `kept_ns` and not over a restart."""
        life = self.open.get(number) or self.closed[number]
        if not life.ended_boot_no or life.ended_ns > at_ns:
            return True
        return life.ended_boot_no == boot_no and at_ns < life.ended_ns + kept_ns

    def _on_paused(self, fact: Fact) -> None:
        self.paused.add(fact["queue_no"])
        self.draining.discard(fact["queue_no"])

    def _on_resumed(self, fact: Fact) -> None:
        self.paused.discard(fact["queue_no"])
        if "is_draining" in fact:
            self.draining.add(fact["queue_no"])
        else:
            self.draining.discard(fact["queue_no"])

    def check_keys(self) -> None:
        for (_, key), numbers in self.keys.items():
            assert len(numbers) == 1, f"dedupe key {key} was accepted {len(numbers)} times"

    def _on_fired(self, fact: Fact) -> None:
        number, due_ns = fact["schedule_no"], fact["due_ns"]
        if self.was_set_back and due_ns < self.last_fired.get(number, 0):
            # After the clock was set back, an instant that was due under the earlier clock is due once more when its time comes.
            self.fired = {(no, at) for no, at in self.fired if no != number or at < due_ns}
        assert (number, due_ns) not in self.fired, "a due instant makes at most one message"
        self.fired.add((number, due_ns))
        self.last_fired[number] = due_ns

    def _moved(self, fact: Fact, *states: str) -> CheckedMessage:
        number = fact["message_no"]
        life = self.open.get(number)
        assert life is not None, f"{fact['fact']} of {number}, which is not open"
        assert life.state in states, f"{fact['fact']} of {number}, which is {life.state}"
        return life
