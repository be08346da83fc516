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
from dragoman.web.metrics.exposition import COARSE, FINE, NO_LABELS, Counts, Family, Kind, Labels, cumulative, sum_s
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

# What `limits.memory_max` counts.
MEMORY_KINDS: Final = ("messages", "uncommitted", "unfinished", "news", "answers", "outboxes")
# Metrics of the whole broker: name, kind, meaning, and where the value is: in `tallies`, or in a section of `status`. A section that is
# switched off is None and has no metrics.
BROKER: Final[tuple[tuple[str, Kind, str, str], ...]] = (
    ("dragoman_memory_bytes", "gauge", "Resident memory of the broker's process.", "memory.resident"),
    ("dragoman_memory_max_bytes", "gauge", "The memory budget (limits.memory_max).", "memory.max"),
    ("dragoman_paused_senders", "gauge", "Senders that are not read because memory is short.", "memory.paused"),
    ("dragoman_news_dropped", "counter", "News not given to a subscriber that did not read.", "memory.news_dropped"),
    ("dragoman_deaf_ended", "counter", "Connections ended: their peers did not read.", "memory.outboxes_dropped"),
    ("dragoman_unfinished_ended", "counter", "Connections ended: half a message came.", "memory.unfinished_dropped"),
    ("dragoman_loop_holds", "counter", "Callbacks that ran for longer than 20 ms of CPU.", "loop.holds"),
    ("dragoman_queues", "gauge", "Queues that have a name.", "tallies.queues"),
    ("dragoman_workers", "gauge", "Workers connected.", "tallies.workers"),
    ("dragoman_worker_slots_free", "gauge", "Messages that workers have room for now.", "tallies.slots_free"),
    ("dragoman_schedules", "gauge", "Schedules.", "tallies.schedules"),
    ("dragoman_subscriptions", "gauge", "Prefixes that subscribers listen to.", "tallies.subscriptions"),
    ("dragoman_boots", "counter", "Starts of the broker on this data directory.", "tallies.boot_no"),
    ("dragoman_messages_accepted", "counter", "Messages accepted from clients.", "tallies.accepted"),
    ("dragoman_messages_settled", "counter", "Messages that ended, in whatever way.", "tallies.settled"),
    ("dragoman_messages_done", "counter", "Messages that a worker answered.", "tallies.done"),
    ("dragoman_messages_failed", "counter", "Messages that ended without success.", "tallies.failed"),
    ("dragoman_attempts_released", "counter", "Attempts after which a message waited again.", "tallies.released"),
    ("dragoman_news_published", "counter", "News published since the start.", "tallies.published"),
    ("dragoman_journal_bytes", "gauge", "Bytes of the journal's files.", "journal.size"),
    ("dragoman_journal_max_bytes", "gauge", "What they may take (journal.size_max).", "journal.size_max"),
    (
        "dragoman_journal_live_bytes",
        "gauge",
        "Bytes of files with live data; 0 below half the limit.",
        "journal.live_size",
    ),
    ("dragoman_journal_segments", "gauge", "Files of the journal.", "journal.segments"),
    ("dragoman_journal_damaged_blocks", "gauge", "Damaged blocks found by the scrub.", "journal.damaged_blocks"),
    ("dragoman_journal_uncommitted_bytes", "gauge", "Bytes of facts not yet committed.", "journal.uncommitted_size"),
    ("dragoman_journal_trouble", "gauge", "1 while the journal cannot be written.", "journal.trouble"),
    ("dragoman_index_trouble", "gauge", "1 while the journal cannot be indexed.", "index.trouble"),
    ("dragoman_lake_behind_facts", "gauge", "Synced facts that the lake does not have yet.", "lake.behind"),
    ("dragoman_lake_trouble", "gauge", "1 while the lake cannot be written.", "lake.trouble"),
    ("dragoman_otel_behind_facts", "gauge", "Synced facts that were not sent to the collector yet.", "otel.behind"),
    ("dragoman_otel_trouble", "gauge", "1 while the collector accepts no spans.", "otel.trouble"),
    ("dragoman_otel_missed_facts", "counter", "Facts deleted before they were sent.", "otel.missed_facts"),
)
# Metrics of each chosen queue and of the rest: name, the key of its view, meaning.
QUEUE_COUNTERS: Final = (
    ("dragoman_queue_accepted", "accepted", "Messages accepted from clients, by queue."),
    ("dragoman_queue_done", "done", "Messages that a worker answered, by queue."),
    ("dragoman_queue_failed", "failed", "Messages that ended without success, by queue."),
    ("dragoman_queue_released", "released", "Attempts after which a message waited again, by queue."),
)
# Metrics of the chosen queues alone: a worker may serve many queues, so the rest has no sum.
QUEUE_GAUGES: Final = (
    ("dragoman_queue_workers", "workers", "Workers that serve the queue."),
    ("dragoman_queue_slots_free", "slots_free", "Messages that these workers have room for now."),
    ("dragoman_queue_paused", "is_paused", "1 while the queue gives nothing out."),
    ("dragoman_queue_draining", "is_draining", "1 while the queue accepts nothing new."),
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
    return _one("dragoman_up", "gauge", "1 while the broker answers its web page.", int(is_up))


def families(answers: Answers) -> Iterator[Family]:
    yield up(True)
    yield from _broker(answers)
    yield from _dialects(answers.tallies)
    yield from _queues(answers)


def _broker(answers: Answers) -> Iterator[Family]:
    status, tallies, journal = answers.status, answers.tallies, answers.status["journal"]
    build = {key: status[key] for key in ("version", "build", "durability")}
    yield _one("dragoman_build", "info", "The broker's version, its build and its durability.", 1, build)
    start_s, longest_s = tallies["started_ns"] / SECOND_NS, status["loop"]["longest_ns"] / SECOND_NS
    yield _one("dragoman_start_time_seconds", "gauge", "When the broker started.", start_s)
    yield _one("dragoman_connections", "gauge", "Connections of peers.", status["connections"])
    yield _one(
        "dragoman_loop_hold_longest_seconds", "gauge", "The longest of all callbacks since the start.", longest_s
    )
    for name, kind, about, path in BROKER:
        section, _, key = path.partition(".")
        found = tallies if section == "tallies" else status[section]
        if found is not None:
            yield _one(name, kind, about, int(bool(found[key])) if key == "trouble" else found[key])
    lag = max(journal["next_lsn"] - 1 - journal["synced_lsn"], 0)
    yield _one("dragoman_journal_unsynced_facts", "gauge", "Facts that a power loss would delete.", lag)
    used = {kind: status["memory"][kind] for kind in MEMORY_KINDS}
    yield _labelled("dragoman_memory_used_bytes", "What is counted against the budget.", "kind", used)
    yield _labelled("dragoman_messages", "Open messages.", "state", {key: tallies[key] for key in SUMMED_STATES})
    is_refusing = {code: int(tallies["refusing"] == code) for code in REFUSALS}
    yield _labelled("dragoman_refusing", "1 while new work is refused for this reason.", "reason", is_refusing)
    findings = {kind: sum(finding["kind"] == kind for finding in answers.findings) for kind in FINDINGS}
    yield _labelled("dragoman_stuck", "Findings of what does not move; of each kind 50 at most.", "kind", findings)
    for key, about in (("wait", "From accepted, or due, to the first worker."), ("total", "From accepted to settled.")):
        family = Family(f"dragoman_message_{key}_seconds", "histogram", about)
        _add_duration(family, counts_of(tallies[key]), FINE, {})
        yield family


def _dialects(tallies: dict[str, Any]) -> Iterator[Family]:
    for key in ("accepted", "settled"):
        about = f"Messages {key} since the start, by the client's dialect."
        family = Family(f"dragoman_dialect_{key}", "counter", about)
        for row in tallies["dialects"]:
            family.add(row[key], {"dialect": row["dialect"]})
        yield family
    about = "Messages since the start that a worker settled, by the dialects of both sides."
    crossings = Family("dragoman_crossings", "counter", about)
    for row in tallies["crossings"]:
        crossings.add(row["count"], {"client": row["client"], "worker": row["worker"]})
    yield crossings


def _queues(answers: Answers) -> Iterator[Family]:
    shown, rest, now_ns = answers.shown, answers.rest, answers.tallies["now_ns"]
    times = {"wait": list(rest.wait.items()), "total_time": list(rest.total.items())}
    summed = [*shown, {"queue": OTHER, **rest.states, **rest.counts, **times}] if rest.queues else shown
    messages = Family("dragoman_queue_messages", "gauge", "Open messages, by queue.")
    oldest = Family("dragoman_queue_oldest_seconds", "gauge", "Age of the longest waiting message; 0: none waits.")
    waits = Family("dragoman_queue_wait_seconds", "histogram", "As dragoman_message_wait_seconds, by queue.")
    totals = Family("dragoman_queue_total_seconds", "histogram", "As dragoman_message_total_seconds, by queue.")
    for view in summed:
        labels = {"queue": view["queue"]}
        for state in SUMMED_STATES:
            messages.add(view[state], {**labels, "state": state})
        _add_duration(waits, counts_of(view["wait"]), COARSE, labels)
        _add_duration(totals, counts_of(view["total_time"]), COARSE, labels)
    for view in shown:
        age_s = max(now_ns - view["oldest_ns"], 0) / SECOND_NS if view["oldest_ns"] else 0
        oldest.add(age_s, {"queue": view["queue"]})
    yield from (messages, oldest, waits, totals)
    counter: Kind = "counter"
    gauge: Kind = "gauge"
    for table, kind, views in ((QUEUE_COUNTERS, counter, summed), (QUEUE_GAUGES, gauge, shown)):
        for name, key, about in table:
            family = Family(name, kind, about)
            for view in views:
                family.add(int(view[key]), {"queue": view["queue"]})
            yield family


def _one(name: str, kind: Kind, about: str, value: float, labels: Labels = NO_LABELS) -> Family:
    family = Family(name, kind, about)
    family.add(value, labels)
    return family


def _labelled(name: str, about: str, label: str, values: dict[str, int]) -> Family:
    family = Family(name, "gauge", about)
    for word, value in values.items():
        family.add(value, {label: word})
    return family


def _add_duration(family: Family, counts: Counts, octaves: range, labels: dict[str, str]) -> None:
    family.add_histogram(cumulative(counts, octaves), sum_s(counts), labels)
