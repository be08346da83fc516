"""From the operator's words (seconds, names) to what the compiled rooms decide by (nanoseconds, bytes, small ints)."""

from __future__ import annotations

from dragoman.core.settings import CATCH_UP_ALL, CATCH_UP_NONE, CATCH_UP_ONE, CoreSettings
from dragoman.dialects.emqp.dialect import EmqpSettings
from dragoman.runtime.config import Config

CATCH_UPS = {"none": CATCH_UP_NONE, "one": CATCH_UP_ONE, "all": CATCH_UP_ALL}


def ns(seconds: float) -> int:
    return int(seconds * 1_000_000_000)


def apply_core(config: Config, settings: CoreSettings) -> None:
    """Also used at a reload: the core reads its settings each time it decides."""
    queues = config.queues
    settings.head_max = queues.head_max
    settings.queue_messages_max = config.limits.queue_messages_max
    settings.backoff_initial_ns = ns(queues.backoff_initial_s)
    settings.backoff_max_ns = ns(queues.backoff_max_s)
    settings.quarantine_after = queues.quarantine_after
    settings.starve_turns = queues.starve_turns
    settings.timeout_ns = ns(queues.timeout_s)
    settings.dedupe_window_ns = ns(queues.dedupe_window_s)
    settings.dedupe_keys_max = queues.dedupe_keys_max
    settings.catch_up = CATCH_UPS[config.schedules.catch_up]
    settings.timezone = config.schedules.timezone


def apply_emqp(config: Config, settings: EmqpSettings) -> None:
    emqp = config.emqp
    settings.heartbeat_ns = ns(emqp.heartbeat_s)
    settings.worker_lost_ns = ns(emqp.worker_lost_s)
    settings.json_only = emqp.json_only
    settings.external_scheduler = emqp.scheduler == "external"
    settings.default_queue = emqp.default_queue.encode()
    settings.default_weight = emqp.default_weight
    settings.timeout_grace_ns = ns(emqp.timeout_grace_s)
    settings.original_timeout_ns = ns(emqp.original_timeout_s)
