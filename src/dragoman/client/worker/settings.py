"""What a worker program is told."""

from __future__ import annotations

import msgspec


class WorkerSettings(msgspec.Struct, frozen=True):
    """The numbers after `--slots` are eMQP's own."""

    slots: int = 8  # jobs at once, of each process
    processes: int = 0  # child processes that run the jobs; 0: this process runs them
    queues: tuple[tuple[int, str], ...] = ()  # (weight, name); none: the queues of the App's jobs
    allow_import: tuple[str, ...] = ()  # modules whose functions may be run though they are no jobs of the App
    drain_s: float = 30.0  # how long running jobs may go on after SIGTERM
    heartbeat_s: float = 3.0
    broker_lost_s: float = 15.0  # a broker silent for so long is given up


DEFAULT_WEIGHT = 10
# How long a busy job may keep the interpreter before the post gets its turn: Python's own 5 ms is long for a heartbeat's
# neighbour, an answer, and every job in between pays it.
SWITCH_INTERVAL_S = 0.001
