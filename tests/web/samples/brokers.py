"""A broker as the page's sampler sees it, without one: answers made up by chance, and a clock of its own."""

from __future__ import annotations

import random
from typing import Any

from dragoman.errors import AdminUnreachable
from dragoman.model.units import SECOND_NS

BEGIN_NS = 1_700_000_000 * SECOND_NS
DIALECTS = ("emqp", "ebus")


class FakeBroker:
    """Answers what a `Link` answers. Counters only rise; those that a real broker counts from its start on begin anew with `restart`."""

    def __init__(self, seed: int = 0, queues: int = 3) -> None:
        self._random = random.Random(seed)
        self.now_ns = self.started_ns = BEGIN_NS
        self.boot_no = 1
        self.is_away = False
        self.queues_total = queues
        self.queues = [
            {"queue_no": number, "accepted": 0, "waiting": 0, "delayed": 0, "leased": 0, "quarantined": 0}
            for number in range(1, queues + 1)
        ]
        self._begin()

    def _begin(self) -> None:
        self.accepted = dict.fromkeys(DIALECTS, 0)
        self.crossings: dict[tuple[str, str], int] = {}
        self.times: dict[int, dict[int, int]] = {one["queue_no"]: {} for one in self.queues}

    def restart(self, pause_s: float = 1.0) -> None:
        self.now_ns += int(pause_s * SECOND_NS)
        self.started_ns = self.now_ns
        self.boot_no += 1
        self._begin()

    def work(self, span_s: float = 1.0) -> None:
        """So much time passes, and messages with it."""
        self.now_ns += int(span_s * SECOND_NS)
        for queue in self.queues:
            client, worker = self._random.choice(DIALECTS), self._random.choice(DIALECTS)
            taken = self._random.randrange(4)
            self.accepted[client] += taken
            self.crossings[client, worker] = self.crossings.get((client, worker), 0) + taken
            queue["accepted"] += taken
            queue["waiting"] = self._random.randrange(50)
            bucket, times = self._random.randrange(320), self.times[queue["queue_no"]]
            times[bucket] = times.get(bucket, 0) + 1

    def fill_buckets(self) -> None:
        """As many durations as a broker can tell of."""
        self.times = {number: dict.fromkeys(range(320), 10**9) for number in self.times}

    async def ask(self, op: str, **args: object) -> Any:
        if self.is_away:
            raise AdminUnreachable("nowhere", "it was stopped")
        return {"tallies": self._tallies, "queue_tallies": self._queue_tallies, "stuck": lambda: {"findings": []}}[op]()

    def _tallies(self) -> dict[str, Any]:
        total = sum(queue["accepted"] for queue in self.queues)
        return {
            "now_ns": self.now_ns, "boot_no": self.boot_no, "started_ns": self.started_ns,
            "accepted": total, "settled": total // 2, "waiting": 7, "leased": 3, "queues": self.queues_total,
            "wait": [[5, total]], "total": [[9, total]],
            "dialects": [{"dialect": name, "accepted": count, "settled": 0} for name, count in self.accepted.items()],
            "crossings": [{"client": c, "worker": w, "count": count} for (c, w), count in self.crossings.items()],
        }  # fmt: skip

    def _queue_tallies(self) -> dict[str, Any]:
        def view(queue: dict[str, int]) -> dict[str, Any]:
            pairs = [[bucket, count] for bucket, count in sorted(self.times[queue["queue_no"]].items())]
            return {**queue, "queue": f"queue-{queue['queue_no']}", "wait": pairs, "total_time": pairs}

        return {"total": self.queues_total, "queues": [view(queue) for queue in self.queues]}
