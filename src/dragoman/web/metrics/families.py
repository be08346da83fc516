"""Every metric of `/metrics`: its name, its meaning, and the admin responses it is computed from.

Label values are the queues that web/metrics/metric_labels chose, states, dialects, and constants of our own: never a message id, never a
peer. docs/howto/prometheus.md lists the metrics; contrib/ has a dashboard and alerts that use them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from dragoman.model.buckets import counts_of
from dragoman.model.units import SECOND_NS
from dragoman.web.metrics.exposition import COARSE, FINE, Counts, Family, Kind, cumulative, sum_s
from dragoman.web.metrics.metric_labels import OTHER, SUMMED_STATES, Rest, View

# Reasons why the broker refuses new work, and the kinds of findings of `stuck`.
REFUSALS: Final = ("DRAINING", "JOURNAL_FULL", "JOURNAL_FAILING")
FINDINGS: Final = (
    "queue_without_worker",
    "idle_worker",
    "blocked_worker",
    "paused_with_waiting",
    "old_message",
    "lake_behind",
    "refusing",
)

# What `limits.memory_max` counts, and what is dropped to stay below it: name, the key in `status`, meaning.
MEMORY_KINDS: Final = ("messages", "uncommitted", "unfinished", "news", "answers", "outboxes")
MEMORY_DROPS: Final = (
    ("dragoman_news_dropped", "news_dropped", "News not given to a subscriber that did not read."),
    (
        "dragoman_deaf_ended",
        "outboxes_dropped",
        "Connections ended because too much waited for peers that did not read.",
    ),
    ("dragoman_unfinished_ended", "unfinished_dropped", "Connections ended because of a message that was cut short."),
)
# Metrics of the whole broker: name, kind, the key of `tallies`, meaning.
TALLIES: Final[tuple[tuple[str, Kind, str, str], ...]] = (
    ("dragoman_queues", "gauge", "queues", "Queues that have a name."),
    ("dragoman_workers", "gauge", "workers", "Workers connected."),
    ("dragoman_worker_slots_free", "gauge", "slots_free", "Messages that workers have room for now."),
    ("dragoman_schedules", "gauge", "schedules", "Schedules."),
    ("dragoman_subscriptions", "gauge", "subscriptions", "Prefixes that subscribers listen to."),
    ("dragoman_boots", "counter", "boot_no", "Starts of the broker on this data directory."),
    ("dragoman_messages_accepted", "counter", "accepted", "Messages taken over from clients."),
    ("dragoman_messages_settled", "counter", "settled", "Messages that have come to an end, of whatever kind."),
    ("dragoman_messages_done", "counter", "done", "Messages that a worker answered."),
    ("dragoman_messages_failed", "counter", "failed", "Messages that ended without success."),
    ("dragoman_attempts_released", "counter", "released", "Attempts after which a message waited again."),
    ("dragoman_news_published", "counter", "published", "News published since the start."),
)
# Metrics of each chosen queue and of the rest: name, the key of its view, meaning.
QUEUE_COUNTERS: Final = (
    ("dragoman_queue_accepted", "accepted", "Messages taken over from clients, by queue."),
    ("dragoman_queue_done", "done", "Messages that a worker answered, by queue."),
    ("dragoman_queue_failed", "failed", "Messages that ended without success, by queue."),
    ("dragoman_queue_released", "released", "Attempts after which a message waited again, by queue."),
)
# Metrics of the chosen queues alone: a worker may serve many queues, so the rest has no sum.
QUEUE_GAUGES: Final = (
    ("dragoman_queue_workers", "workers", "Workers that serve the queue."),
    ("dragoman_queue_slots_free", "slots_free", "Messages that these workers have room for now."),
    ("dragoman_queue_paused", "is_paused", "1 while the queue gives nothing out."),
    ("dragoman_queue_draining", "is_draining", "1 while the queue takes nothing new."),
)


@dataclass(frozen=True, slots=True)
class Answers:
    """The broker's responses for one scrape."""

    status: dict[str, Any]
    tallies: dict[str, Any]
    findings: list[dict[str, str]]
    shown: list[View]
    rest: Rest


def up(is_up: bool) -> Family:
    family = Family("dragoman_up", "gauge", "1 while the broker answers its web page.")
    family.add(int(is_up))
    return family


def families(answers: Answers) -> Iterator[Family]:
    yield up(True)
    yield from _broker(answers)
    yield from _keeping(answers.status)
    yield from _queues(answers)


def _broker(answers: Answers) -> Iterator[Family]:
    status, tallies = answers.status, answers.tallies
    build = Family("dragoman_build", "info", "The broker's version, how it is built, and how sure it keeps things.")
    build.add(1, {"version": status["version"], "build": status["build"], "durability": status["durability"]})
    yield build
    yield _one("dragoman_start_time_seconds", "When the broker started.", tallies["started_ns"] / SECOND_NS)
    yield _one("dragoman_connections", "Connections of peers.", status["connections"])
    yield from _memory(status["memory"])
    holds = Family("dragoman_loop_holds", "counter", "Callbacks that held the loop for longer than 20 ms of CPU.")
    holds.add(status["loop"]["holds"])
    yield holds
    longest_s = status["loop"]["longest_ns"] / SECOND_NS
    yield _one("dragoman_loop_hold_longest_seconds", "The longest of all callbacks since the start.", longest_s)
    for name, kind, key, about in TALLIES:
        family = Family(name, kind, about)
        family.add(tallies[key])
        yield family
    yield _labelled("dragoman_messages", "Open messages.", "state", {key: tallies[key] for key in SUMMED_STATES})
    is_refusing = {code: int(tallies["refusing"] == code) for code in REFUSALS}
    yield _labelled("dragoman_refusing", "1 while new work is refused for this reason.", "reason", is_refusing)
    found = {kind: sum(finding["kind"] == kind for finding in answers.findings) for kind in FINDINGS}
    yield _labelled("dragoman_stuck", "Findings of what does not move; of each kind 50 at most.", "kind", found)
    yield from _dialects(tallies)
    yield _duration("dragoman_message_wait_seconds", "From accepted, or due, to the first worker.", tallies["wait"])
    yield _duration("dragoman_message_total_seconds", "From accepted to settled.", tallies["total"])


def _memory(memory: dict[str, Any]) -> Iterator[Family]:
    yield _one("dragoman_memory_bytes", "Memory that the broker's process holds.", memory["resident"])
    yield _one("dragoman_memory_max_bytes", "The memory budget (limits.memory_max).", memory["max"])
    used = {kind: memory[kind] for kind in MEMORY_KINDS}
    yield _labelled("dragoman_memory_used_bytes", "What is counted against the budget.", "kind", used)
    yield _one("dragoman_paused_senders", "Senders that are not read because memory is short.", memory["paused"])
    for name, key, about in MEMORY_DROPS:
        family = Family(name, "counter", about)
        family.add(memory[key])
        yield family


def _dialects(tallies: dict[str, Any]) -> Iterator[Family]:
    accepted = Family(
        "dragoman_dialect_accepted", "counter", "Messages accepted since the start, by the client's dialect."
    )
    settled = Family(
        "dragoman_dialect_settled", "counter", "Messages settled since the start, by the client's dialect."
    )
    for row in tallies["dialects"]:
        accepted.add(row["accepted"], {"dialect": row["dialect"]})
        settled.add(row["settled"], {"dialect": row["dialect"]})
    crossings = Family(
        "dragoman_crossings",
        "counter",
        "Messages since the start that a worker settled, by the dialects of both sides.",
    )
    for row in tallies["crossings"]:
        crossings.add(row["count"], {"client": row["client"], "worker": row["worker"]})
    yield from (accepted, settled, crossings)


def _keeping(status: dict[str, Any]) -> Iterator[Family]:
    journal, index, lake, otel = status["journal"], status["index"], status["lake"], status["otel"]
    yield _one("dragoman_journal_bytes", "Bytes of the journal's files.", journal["size"])
    yield _one("dragoman_journal_max_bytes", "What they may take (journal.size_max).", journal["size_max"])
    yield _one(
        "dragoman_journal_live_bytes",
        "Bytes of those that hold live messages; 0 while all take less than half of what they may.",
        journal["live_size"],
    )
    yield _one("dragoman_journal_segments", "Files of the journal.", journal["segments"])
    yield _one(
        "dragoman_journal_damaged_blocks",
        "Damaged places in kept files, found by the scrub.",
        journal["damaged_blocks"],
    )
    yield _one("dragoman_journal_uncommitted_bytes", "Bytes of facts not yet committed.", journal["uncommitted_size"])
    lag = max(journal["next_lsn"] - 1 - journal["synced_lsn"], 0)
    yield _one("dragoman_journal_unsynced_facts", "Facts that a power loss would take away.", lag)
    yield _one("dragoman_journal_trouble", "1 while the journal cannot be written.", int(bool(journal["trouble"])))
    if index is not None:
        yield _one("dragoman_index_trouble", "1 while the journal cannot be indexed.", int(bool(index["trouble"])))
    if lake is not None:
        yield _one("dragoman_lake_behind_facts", "Synced facts that the lake does not have yet.", lake["behind"])
        yield _one("dragoman_lake_trouble", "1 while the lake cannot be written.", int(bool(lake["trouble"])))
    if otel is not None:
        yield _one("dragoman_otel_behind_facts", "Synced facts the collector was not told of yet.", otel["behind"])
        yield _one("dragoman_otel_trouble", "1 while the collector takes no spans.", int(bool(otel["trouble"])))
        missed = Family("dragoman_otel_missed_facts", "counter", "Facts that went before the collector could be told.")
        missed.add(otel["missed_facts"])
        yield missed


def _queues(answers: Answers) -> Iterator[Family]:
    shown, rest, now_ns = answers.shown, answers.rest, answers.tallies["now_ns"]
    messages = Family("dragoman_queue_messages", "gauge", "Open messages, by queue.")
    oldest = Family("dragoman_queue_oldest_seconds", "gauge", "Age of the longest waiting message; 0: none waits.")
    waits = Family("dragoman_queue_wait_seconds", "histogram", "As dragoman_message_wait_seconds, by queue.")
    totals = Family("dragoman_queue_total_seconds", "histogram", "As dragoman_message_total_seconds, by queue.")
    for view in shown:
        labels = {"queue": view["queue"]}
        for state in SUMMED_STATES:
            messages.add(view[state], {**labels, "state": state})
        oldest.add(max(now_ns - view["oldest_ns"], 0) / SECOND_NS if view["oldest_ns"] else 0, labels)
        _add_duration(waits, counts_of(view["wait"]), COARSE, labels)
        _add_duration(totals, counts_of(view["total_time"]), COARSE, labels)
    counters = [Family(name, "counter", about) for name, _, about in QUEUE_COUNTERS]
    for family, (_, key, _) in zip(counters, QUEUE_COUNTERS, strict=True):
        for view in shown:
            family.add(view[key], {"queue": view["queue"]})
    if rest.queues:
        others = {"queue": OTHER}
        for state in SUMMED_STATES:
            messages.add(rest.states[state], {**others, "state": state})
        for family, (_, key, _) in zip(counters, QUEUE_COUNTERS, strict=True):
            family.add(rest.counts[key], others)
        _add_duration(waits, rest.wait, COARSE, others)
        _add_duration(totals, rest.total, COARSE, others)
    yield from (messages, oldest, *counters)
    for name, key, about in QUEUE_GAUGES:
        family = Family(name, "gauge", about)
        for view in shown:
            family.add(int(view[key]), {"queue": view["queue"]})
        yield family
    yield from (waits, totals)


def _one(name: str, about: str, value: float) -> Family:
    family = Family(name, "gauge", about)
    family.add(value)
    return family


def _labelled(name: str, about: str, label: str, values: dict[str, int]) -> Family:
    family = Family(name, "gauge", about)
    for word, value in values.items():
        family.add(value, {label: word})
    return family


def _duration(name: str, about: str, pairs: list[list[int]]) -> Family:
    family = Family(name, "histogram", about)
    _add_duration(family, counts_of(pairs), FINE, {})
    return family


def _add_duration(family: Family, counts: Counts, octaves: range, labels: dict[str, str]) -> None:
    family.add_histogram(cumulative(counts, octaves), sum_s(counts), labels)
