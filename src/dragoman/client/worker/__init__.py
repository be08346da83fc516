"""The worker program: a session communicates with the broker, a crew runs the jobs, and neither can block the other.

session.py     one worker from the broker's point of view: its connections, jobs, slots, timeouts
crew.py        runs jobs in this process: coroutines on a loop of their own, plain functions in threads
lookup.py      finds the function that a body names, among the App's jobs and the allowed modules
child.py       a crew in a child process; its session stays in the parent
worker.py      session, crew and what else a worker does, in one process
program.py     the composition root; handles signals, drains, starts such children and replaces those that die
"""

from __future__ import annotations

import msgspec


class WorkerSettings(msgspec.Struct, frozen=True):
    """The settings of a worker program; only eMQP uses `heartbeat_s` and `broker_lost_s`."""

    slots: int = 8  # concurrent jobs of each process
    processes: int = 0  # child processes that run the jobs; 0: this process runs them
    queues: tuple[tuple[int, str], ...] = ()  # (weight, name); empty: the queues of the App's jobs
    allow_import: tuple[str, ...] = ()  # modules whose functions may be run although they are not jobs of the App
    drain_s: float = 30.0  # how long running jobs may continue after SIGTERM
    heartbeat_s: float = 3.0
    broker_lost_s: float = 15.0  # a broker silent for this long is given up


DEFAULT_WEIGHT = 10
# How long a busy job may run before the session's thread gets the interpreter: Python's default of 5 ms would delay heartbeats and
# answers, and every job after them.
SWITCH_INTERVAL_S = 0.001
